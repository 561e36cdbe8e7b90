// Importers: job files and command lines of training frameworks, turned into membill's plan. Each format is one file with its keys as
// data and one line in importers.cpp.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/importers/key_table.h"
#include "io/importers/shell_words.h"
#include "io/job_file.h"
#include "io/preset_files.h"
#include "membill/problem.h"
#include "membill/source.h"
#include "membill/value.h"

namespace membill::io {

// What is said beside the job itself, on membill's own command line.
struct ImportContext {
  DataDirs dirs;
  std::optional<std::int64_t> gpus;          // --gpus
  std::optional<std::string> model;          // MODEL, which goes before the model of the job
  std::optional<std::string> format;         // --as
  bool reads_pins = true;                    // releases pinned in the job's folder; false: the text has no folder
  std::map<std::string, std::string> given;  // keys of the plan that the command line says, which goes before the job
};

// How a program is started.
struct Launch {
  std::vector<std::string> program;       // "swift" "sft"; "train.py"; empty for a file
  std::string path;                       // of a Python program, as it is spelled
  std::optional<std::int64_t> processes;  // in all
  std::optional<std::int64_t> nodes;
  bool distributed = false;         // a launcher of processes starts it (torchrun, deepspeed, accelerate)
  std::optional<Value> accelerate;  // accelerate's configuration, with the launcher's flags in it
  std::string accelerate_file;      // its name in problems and records
  Variables environment;
  std::shared_ptr<const WrittenFiles> files;
};

// One job as its framework spells it.
struct JobSource {
  Value keys = Value::make_map();
  std::string file;        // name in problems
  std::string folder;      // where files that it names are looked for after the current one; "" for none
  bool arguments = false;  // `keys` come from a command line
  Launch launch;
  std::string requirements;  // what it installs before it trains (NAME==RELEASE), one a line
  // Releases in which its arguments have the names that it uses, where nothing pins another.
  std::vector<std::pair<std::string, std::string>> releases;
  std::vector<std::string> assumptions, warnings;  // what was taken or passed over so far
};

struct ModelFacts;  // parts.h

// The job on its way to a plan. Importers set plan keys; what several of them decide together is settled by finish_draft.
struct Draft {
  Draft(const ImportContext& ctx, Problems& found) : context(ctx), problems(found) {}

  void set(std::string_view key, Value value) { plan.set(key, std::move(value)); }
  void set(std::string_view key, const std::optional<std::int64_t>& value) {
    if (value) plan.set(key, Value::of(*value));
  }
  // Whether the command line says this key of the plan, so that nothing needs to be assumed of it.
  [[nodiscard]] bool is_given(const std::string& key) const { return context.given.count(key) != 0; }
  void assume(std::string text) { assumptions.push_back(std::move(text)); }
  void add_records(const KeyReader& reader) {
    for (KeyRecord& record : reader.records()) records.push_back(std::move(record));
  }

  const ImportContext& context;
  Problems& problems;
  std::string file;
  std::string folder;
  std::shared_ptr<const WrittenFiles> files;  // that the launch script writes
  Value plan = Value::make_map();             // flat: dotted keys
  std::optional<std::string> model;           // as the framework spells it
  std::string model_key = "model";            // its key, for problems
  std::optional<Value> config;                // the model itself, where the job describes it: a Hugging Face config
  std::shared_ptr<const ModelFacts> facts;    // what find_model found last
  std::optional<std::int64_t> processes, nodes;
  // Precision: the dtype in which unquantised weights are stored (fp32, bf16, fp16; "auto": as the checkpoint says), and the autocast.
  std::string load_dtype = "auto";
  bool bf16 = false, fp16 = false;
  bool quantized = false;      // the base's storage is in `plan` already, or in `stored`
  StoredWeights stored;        // what the checkpoint's name says of it
  bool own_precision = false;  // the importer has set weights and precision itself
  bool saves = false;          // checkpoints between steps
  bool gathers_saved = false;  // DeepSpeed's stage 3: the whole state for them
  bool saves_shards = false;   // FSDP: each rank its own
  bool fsdp_upcasts = false;   // accelerate's FSDP: trainable shards are cast to fp32
  std::vector<KeyRecord> records;
  std::vector<std::string> assumptions;
  std::vector<std::string> warnings;
};

// A format.
struct Importer {
  std::string_view name;     // "llamafactory": what --as takes
  std::string_view summary;  // one line
  std::string_view source;   // where its keys are defined
  // How surely the job is of this format: 0 for not at all, 100 for a key or a program that no other format has.
  int (*claim)(const JobSource& source);
  void (*read)(const JobSource& source, Draft& draft);
};

[[nodiscard]] std::span<const Importer> importers();
// By name; nullptr: none.
[[nodiscard]] const Importer* find_importer(std::string_view name);

// The one importer that claims `source` most, or the one that `format` names. Throws InputError when two claim it alike, or none does.
[[nodiscard]] const Importer& recognise(const JobSource& source, const std::optional<std::string>& format);

// Whether the file at `path` is JSON or YAML with the keys of a job, not those of a model's config or of a saved report.
[[nodiscard]] bool holds_job(const std::string& path);
// Reads the job of any format in the file at `path` ("-": standard input): JSON, YAML or a launch script. membill's own job files too.
// Throws InputError when it cannot be read at all; what is wrong inside is added to `problems`.
[[nodiscard]] JobFile import_job(const std::string& path, const ImportContext& context, Problems& problems);
// The same from text.
[[nodiscard]] JobFile import_text(std::string_view text, const std::string& file, const std::string& folder,
                                  const ImportContext& context, Problems& problems);
// The same from the words of a command line.
[[nodiscard]] JobFile import_command(const std::vector<std::string>& words, const ImportContext& context,
                                     Problems& problems);
// The same from a job that was taken apart already.
[[nodiscard]] JobFile import_source(const JobSource& source, const ImportContext& context, Problems& problems);

// The job that front end `name` makes of nothing but a model and a `method` ("full", "lora", ...; empty: its own default). Throws
// InputError when it is no front end.
[[nodiscard]] JobFile import_defaults(const std::string& name, const std::string& method, const ImportContext& context,
                                      Problems& problems);
// What --framework takes.
[[nodiscard]] std::vector<std::string> front_ends();

// Keys of `map` among `words` (blanks between).
[[nodiscard]] int count_keys(const Value& map, std::string_view words);
// Takes `key` out of `map`.
void erase_key(Value& map, std::string_view key);
// Whether a file that a job names is there: written by its script, in the current folder, or in `folder` or up to three above it.
[[nodiscard]] bool is_part_here(const std::string& path, const std::string& folder, const WrittenFiles* files);
// The text of such a file, its name, and the folder that it lies in; nothing: it is not there. Throws InputError when it cannot be read.
struct NamedText {
  std::string text, name, folder;
};
[[nodiscard]] std::optional<NamedText> find_text(const std::string& path, const std::string& folder,
                                                 const WrittenFiles* files);
// Reads a JSON or YAML file that a job names, from the current folder or from `folder`; nothing and a problem of `key` when it is not
// there.
[[nodiscard]] std::optional<Value> read_part(const std::string& path, Draft& draft, const std::string& key);

}  // namespace membill::io
