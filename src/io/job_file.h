// membill's own job file: the model, the hardware and the plan of one job, as JSON or YAML.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/importers/key_table.h"
#include "io/preset_files.h"
#include "membill/catalog.h"
#include "membill/problem.h"
#include "membill/units.h"
#include "membill/value.h"

namespace membill::io {

// The `hardware` map. What is absent is left to flags or to the defaults of Hardware.
struct HardwareRequest {
  std::optional<std::string> gpu;     // a preset, a size, or "auto"
  std::optional<std::int64_t> count;  // cards in all, >= 1
  std::optional<std::int64_t> nodes;  // >= 1
  std::optional<Bytes> host_ram;      // of one node
  std::optional<Bytes> others_use;    // of each card
};

// A job before its names are looked up. At most one of model, config and generic is set.
struct JobFile {
  std::string file;                     // name in problems
  std::optional<std::string> model;     // a preset, a path (of the job file's folder when it is not there), a hub id
  std::optional<Value> config;          // model: {config: {...}}
  std::optional<GenericModel> generic;  // model: {params: 7e9, hidden: 4096, ...}
  std::optional<Value> teacher;         // teacher: {config: {...}}; one with a name is the plan's
  HardwareRequest hardware;
  Value plan = Value::make_map();  // all other keys: for read_plan
  // Of a job that a framework's importer has read.
  std::string format;                    // "llamafactory"; empty: membill's own
  std::vector<KeyRecord> records;        // what became of each key
  std::vector<std::string> assumptions;  // what was filled in where the job is silent
  std::vector<std::string> warnings;     // what the job does that is not billed
  StoredWeights stored;                  // of a checkpoint that only its name describes ("...-AWQ")
};

// JSON when the first character is '{', else YAML.
[[nodiscard]] Value parse_tree(std::string_view text, const std::string& file);
// The same as the readers of public frameworks take it: of a YAML key that stands twice the last counts, JSON may hold comments and
// commas before a closing bracket (DeepSpeed's Hjson). What was passed over is noted in `lenient`.
[[nodiscard]] Value parse_tree(std::string_view text, const std::string& file, Problems& lenient);

// Splits a job's tree into its parts. Problems: a model that is neither a name nor a map of the two forms, unknown keys of `model` and
// `hardware`, wrong types, sizes without a unit, a mistyped `model` or `hardware` (with the right word). Keys of the plan are left to
// read_plan. `folder` is where relative model paths are looked for after the current one; "" for none.
[[nodiscard]] JobFile split_job(const Value& tree, const std::string& file, const std::string& folder,
                                Problems& problems);

// Reads the job file at `path` ("-": standard input). Throws InputError when it cannot be read or parsed; what is wrong inside is added
// to `problems`, so that it is reported with the problems of the plan.
[[nodiscard]] JobFile read_job_file(const std::string& path, Problems& problems);

// Keys of a generic model, of a job file and as flags ("params", "hidden", "layers", "heads", "kv_heads", "head_dim", "intermediate",
// "vocab"): sets the one that `key` names from `text`. False, with `why`, when the text is wrong. REQUIRES: a known key.
[[nodiscard]] bool set_generic(GenericModel& model, std::string_view key, std::string_view text, std::string& why);

}  // namespace membill::io
