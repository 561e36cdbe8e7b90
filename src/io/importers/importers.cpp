// The registry of formats, and how a job finds its importer.
#include <algorithm>
#include <filesystem>
#include <system_error>

#include "base/text.h"
#include "io/importers/called_script.h"
#include "io/importers/command_line.h"
#include "io/importers/foreign_formats.h"
#include "io/importers/formats.h"
#include "io/importers/importer.h"
#include "io/importers/parts.h"
#include "io/importers/python_import.h"
#include "io/importers/python_notebook.h"
#include "io/importers/references.h"
#include "io/importers/shell_words.h"
#include "io/importers/slurm.h"
#include "io/text_file.h"

namespace membill::io {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kOwn = "membill";
constexpr std::string_view kScript = "script";

std::vector<Importer> all_importers() {
  return {llamafactory_importer(), axolotl_importer(),  ms_swift_importer(),     megatron_swift_importer(),
          torchtune_importer(),    litgpt_importer(),   trl_importer(),          hf_trainer_importer(),
          unsloth_importer(),      megatron_importer(), deepspeed_importer(),    accelerate_importer(),
          fsdp_importer(),         peft_importer(),     verl_importer(),         torchtitan_importer(),
          fsdp_qlora_importer(),   openrlhf_importer(), llama_recipes_importer()};
}

std::string names_of_all() {
  std::string names;
  for (const Importer& importer : importers()) names += std::string(importer.name) + ", ";
  return names + std::string(kScript) + " or " + std::string(kOwn);
}

[[noreturn]] void refuse_format(const std::string& typed) {
  std::vector<std::string_view> names{kOwn, kScript};
  for (const Importer& importer : importers()) names.push_back(importer.name);
  const std::string_view near = nearest_word(typed, names);
  throw InputError(Problem{"", "--as", membill::quoted(typed) + " is no known format",
                           near.empty() ? names_of_all() : std::string(near)});
}

// Keys that membill's own job files have and frameworks' have not.
bool is_own(const Value& tree) {
  if (!tree.is_map()) return true;
  const Value* hardware = tree.find("hardware");
  const int own =
      count_keys(tree,
                 "method seq batch accumulate checkpointing precision weights adapter sharding parallel engine "
                 "attention implementation evaluation loop kbit_prepare allocator");
  return (hardware != nullptr && hardware->is_map()) || own >= 1 || tree.entries().empty() ||
         tree.find("model") != nullptr;
}

bool is_model_config(const Value& tree) {
  return tree.is_map() && tree.find("model_type") != nullptr &&
         count_keys(tree, "architectures hidden_size num_hidden_layers n_layer num_attention_heads vocab_size") >= 2;
}

int best_claim(const JobSource& source) {
  int best = 0;
  for (const Importer& importer : importers()) best = std::max(best, importer.claim(source));
  return best;
}

// Whether --as names a framework, whose arguments a command's are then.
bool is_forced(const ImportContext& context) { return context.format && *context.format != kScript; }

bool is_own_format(const ImportContext& context) { return context.format && *context.format == kOwn; }

bool looks_like_script(std::string_view text, const std::string& file) {
  if (text.starts_with("#!") || file.ends_with(".sh") || file.ends_with(".bash") || file.ends_with(".slurm") ||
      file.ends_with(".sbatch"))
    return true;
  if (file.ends_with(".yaml") || file.ends_with(".yml") || file.ends_with(".json") || file.ends_with(".toml") ||
      text.starts_with('{'))
    return false;
  static constexpr std::string_view kStarters[] = {"torchrun ",
                                                   "accelerate launch",
                                                   "python ",
                                                   "python3 ",
                                                   "deepspeed ",
                                                   "swift sft",
                                                   "swift rlhf",
                                                   "megatron sft",
                                                   "llamafactory-cli train",
                                                   "axolotl train",
                                                   "tune run",
                                                   "litgpt finetune",
                                                   "trl sft",
                                                   "trl dpo"};
  return std::any_of(std::begin(kStarters), std::end(kStarters),
                     [&](std::string_view starter) { return text.find(starter) != std::string_view::npos; });
}

std::string find_part(const std::string& path, const std::string& start) {
  std::error_code error;
  if (fs::exists(path, error)) return path;
  // Frameworks are started from the top of their checkout, of which the job lies some folders down.
  fs::path folder = start.empty() ? fs::path(".") : fs::path(start);
  for (int up = 0; up < 4; ++up, folder /= "..") {
    if (fs::exists(folder / path, error)) return (folder / path).string();
  }
  return {};
}

// What a launch script writes under `path`, however both spell it ("./job.yaml"); nullptr: no such file.
const std::string* find_written(const WrittenFiles* files, const std::string& path) {
  if (files == nullptr) return nullptr;
  const fs::path normal = fs::path(path).lexically_normal();
  const auto found = std::find_if(files->begin(), files->end(),
                                  [&](const auto& file) { return fs::path(file.first).lexically_normal() == normal; });
  return found == files->end() ? nullptr : &found->second;
}

// The last of the commands that some importer claims; nothing: none trains.
std::optional<JobFile> import_last(const std::vector<ShellCommand>& commands, const std::string& file,
                                   const std::string& folder, const ImportContext& context, Problems& problems,
                                   int calls = 0) {
  constexpr int kMostCalls = 3;  // scripts that start scripts
  for (auto command = commands.rbegin(); command != commands.rend(); ++command) {
    if (const auto called = calls < kMostCalls ? called_script(*command, folder) : std::nullopt) {
      const std::vector<ShellCommand> inner = split_script(called->text, called->variables);
      if (std::optional<JobFile> job = import_last(inner, called->file, called->folder, context, problems, calls + 1))
        return job;
      continue;
    }
    Problems found;
    const std::optional<JobSource> source = parse_command(*command, file, folder, found);
    if (!source) continue;
    const int claimed = best_claim(*source);
    if (found.empty() && !is_forced(context) && (claimed == 0 || leaves_adapters_to_program(*source, claimed))) {
      if (std::optional<JobFile> job = import_started(*source, context, problems)) return job;
      if (claimed == 0) continue;
    }
    if (found.empty()) return import_source(*source, context, problems);
    for (const Problem& problem : found.list()) problems.add(problem);
    JobFile job;
    job.file = file;
    return job;
  }
  return std::nullopt;
}

JobFile import_script(std::string_view text, const std::string& file, const std::string& folder,
                      const ImportContext& context, Problems& problems) {
  if (std::optional<JobFile> job = import_last(split_script(text), file, folder, context, problems)) {
    if (std::string remark = slurm_array_remark(text); !remark.empty()) job->assumptions.push_back(std::move(remark));
    return *std::move(job);
  }
  throw InputError(Problem{file, "", "no command in it trains a model that a known framework runs", names_of_all()});
}

// A program or a notebook that is started as it stands: the trainer that it builds, else the last training that it starts.
JobFile import_program(const ProgramText& text, const std::string& file, const std::string& folder,
                       const ImportContext& context, Problems& problems) {
  if (std::optional<JobFile> job = import_python(text, file, folder, {}, {}, context, problems)) return *std::move(job);
  const std::string script = whole_script(text, PythonProgram(text.program));
  if (std::optional<JobFile> job = import_last(split_script(script), file, folder, context, problems))
    return *std::move(job);
  throw InputError(Problem{file, "", "builds no trainer that is known (SFTTrainer, DPOTrainer, Trainer and the like)",
                           "the command that starts it: membill check -- python " + file + " ..."});
}

}  // namespace

std::span<const Importer> importers() {
  static const std::vector<Importer> kAll = all_importers();
  return kAll;
}

const Importer* find_importer(std::string_view name) {
  for (const Importer& importer : importers()) {
    if (importer.name == to_kebab(name)) return &importer;
  }
  return nullptr;
}

int count_keys(const Value& map, std::string_view words) {
  int count = 0;
  for (const std::string& word : split(words, ' ')) count += map.find(word) != nullptr ? 1 : 0;
  return count;
}

void erase_key(Value& map, std::string_view key) {
  std::erase_if(map.entries(), [&](const Value::Entry& entry) { return entry.first == key; });
}

namespace {

// What a framework's own reader passes over, as warnings.
std::vector<std::string> remarks_of(const Problems& lenient, const std::string& job) {
  std::vector<std::string> remarks;
  for (const Problem& problem : lenient.list()) {
    const std::string place = problem.file == job ? "" : problem.file + ": ";
    const bool is_key = !problem.key.empty();
    remarks.push_back(place + (is_key ? problem.key + ": " : "") + problem.message +
                      (is_key ? ": the last counts" : ""));
  }
  return remarks;
}

std::optional<Value> parse_part(std::string_view text, const std::string& file, Draft& draft) {
  try {
    Problems lenient;
    Value tree = parse_tree(text, file, lenient);
    for (std::string& remark : remarks_of(lenient, draft.file)) draft.warnings.push_back(std::move(remark));
    return tree;
  } catch (const InputError& problem) {
    for (const Problem& each : problem.problems()) draft.problems.add(each);
    return std::nullopt;
  }
}

}  // namespace

bool is_part_here(const std::string& path, const std::string& folder, const WrittenFiles* files) {
  return find_written(files, path) != nullptr || !find_part(path, folder).empty();
}

std::optional<NamedText> find_text(const std::string& path, const std::string& folder, const WrittenFiles* files) {
  if (const std::string* written = find_written(files, path)) return NamedText{*written, last_name(path), folder};
  const std::string found = find_part(path, folder);
  if (found.empty()) return std::nullopt;
  TextFile file = read_file(found);
  return NamedText{std::move(file.text), std::move(file.name), fs::path(found).parent_path().string()};
}

std::optional<Value> read_part(const std::string& path, Draft& draft, const std::string& key) {
  if (const std::string* written = find_written(draft.files.get(), path))
    return parse_part(*written, last_name(path), draft);
  const std::string found = find_part(path, draft.folder);
  if (found.empty()) {
    const bool position = path.size() > 1 && path[0] == '$' && is_digit(path[1]);
    draft.problems.add({draft.file, key, membill::quoted(path) + " is no file here",
                        position ? "the script's words behind it: membill check -- bash " + draft.file + " ..."
                                 : "start membill where the job is started"});
    return std::nullopt;
  }
  try {
    const TextFile file = read_file(found);
    return parse_part(file.text, file.name, draft);
  } catch (const InputError& problem) {
    for (const Problem& each : problem.problems()) draft.problems.add(each);
    return std::nullopt;
  }
}

const Importer& recognise(const JobSource& source, const std::optional<std::string>& format) {
  if (format) {
    const Importer* forced = find_importer(*format);
    if (forced == nullptr) refuse_format(*format);
    return *forced;
  }
  const Importer* best = nullptr;
  const Importer* rival = nullptr;
  int highest = 0;
  for (const Importer& importer : importers()) {
    const int claim = importer.claim(source);
    if (claim == 0 || claim < highest) continue;
    rival = claim == highest ? &importer : nullptr;
    if (claim == highest) continue;
    highest = claim;
    best = &importer;
  }
  if (best == nullptr)
    throw InputError(Problem{source.file, "", "is of no known format", "--as says it: " + names_of_all()});
  if (rival != nullptr) {
    throw InputError(Problem{source.file, "", "could be " + std::string(best->name) + " or " + std::string(rival->name),
                             "--as " + std::string(best->name) + " or --as " + std::string(rival->name)});
  }
  return *best;
}

JobFile import_source(const JobSource& source, const ImportContext& context, Problems& problems) {
  const std::optional<std::string> format = context.format == kScript ? std::nullopt : context.format;
  const Importer& importer = recognise(source, format);
  Draft draft(context, problems);
  draft.file = source.file;
  draft.folder = source.folder;
  draft.processes = source.launch.processes;
  draft.nodes = source.launch.nodes;
  draft.files = source.launch.files;
  draft.assumptions = source.assumptions;
  draft.warnings = source.warnings;
  for (const auto& [key, value] : context.given)
    if (key.starts_with("software.") && !value.empty() && is_digit(value.front())) draft.set(key, Value::of(value));
  take_installed(source.requirements, draft);
  if (context.reads_pins) read_software(draft);
  for (const auto& [program, version] : source.releases) take_release(program, version, draft);
  importer.read(source, draft);
  read_environment(source.launch, draft);
  JobFile job = finish_draft(draft);
  job.format = importer.name;
  return job;
}

JobFile import_text(std::string_view text, const std::string& file, const std::string& folder,
                    const ImportContext& context, Problems& problems) {
  if (context.format && *context.format != kOwn && *context.format != kScript &&
      find_importer(*context.format) == nullptr)
    refuse_format(*context.format);
  const std::string_view checked = check_text(text, file);
  const bool framework = context.format && *context.format != kOwn;
  const bool script = framework ? checked.starts_with("#!") : !context.format && looks_like_script(checked, file);
  if (!is_own_format(context) && is_python(checked, file))
    return import_program(program_text(checked, file), file, folder, context, problems);
  if (context.format == kScript || script) return import_script(checked, file, folder, context, problems);
  Problems lenient;
  const Value tree = parse_tree(text, file, lenient);
  JobSource source;
  source.file = file;
  source.folder = folder;
  source.warnings = remarks_of(lenient, file);
  if (tree.is_map()) source.keys = with_variables(tree, {}, source.assumptions);
  if (!context.format) {
    if (is_model_config(tree))
      throw InputError(Problem{file, "", "is a model's config.json, no job", "membill estimate " + file});
    refuse_foreign(tree, file);
  }
  const bool own = context.format ? *context.format == kOwn : best_claim(source) == 0 && is_own(tree);
  if (own) {
    for (const Problem& problem : lenient.list()) problems.add(problem);
    return split_job(tree, file, folder, problems);
  }
  if (!tree.is_map())
    throw InputError(
        Problem{file, "", "a job file is a map of keys, not " + std::string(Value::kind_name(tree.kind())), ""});
  return import_source(source, context, problems);
}

bool holds_job(const std::string& path) {
  try {
    const TextFile file = read_file(path);
    Problems lenient;
    JobSource source;
    source.keys = parse_tree(file.text, file.name, lenient);
    if (!source.keys.is_map() || source.keys.entries().empty()) return false;
    const auto is_there = [&](const char* key) { return source.keys.find(key) != nullptr; };
    if (is_there("model_type") || is_there("architectures") || is_there("schema")) return false;
    return is_own(source.keys) || best_claim(source) > 0;
  } catch (const InputError&) {
    return false;
  }
}

JobFile import_job(const std::string& path, const ImportContext& context, Problems& problems) {
  const TextFile file = read_file(path);
  const std::string folder = path == "-" ? std::string() : fs::path(path).parent_path().string();
  return import_text(file.text, file.name, folder, context, problems);
}

JobFile import_command(const std::vector<std::string>& words, const ImportContext& context, Problems& problems) {
  const std::string file = "command line";
  if (std::optional<JobFile> job = import_last(split_command(words), file, "", context, problems))
    return *std::move(job);
  // A program that no importer claims is said to be of no known format.
  if (const std::optional<JobSource> source = parse_command(ShellCommand{words, {}, nullptr}, file, "", problems))
    return import_source(*source, context, problems);
  throw InputError(
      Problem{file, "--", "the words after it start no program that trains", "torchrun train.py ..., swift sft ..."});
}

}  // namespace membill::io
