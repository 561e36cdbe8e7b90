#include "cli/inputs.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>
#include <system_error>

#include "base/text.h"
#include "catalog/adapters.h"
#include "cli/data_option.h"
#include "cli/environment.h"
#include "cli/input_notes.h"
#include "cli/machine.h"
#include "cli/model_options.h"
#include "cli/plan_options.h"
#include "estimate/checks.h"
#include "estimate/stored_weights.h"
#include "estimate/supported.h"
#include "io/importers/importer.h"
#include "io/job_file.h"
#include "membill/catalog.h"
#include "membill/estimate.h"
#include "membill/vision_part.h"

namespace membill::cli {
namespace {

// The flag of a job-file key; the key itself when it has none.
std::string flag_of(const std::string& key) {
  if (key == "hardware.count") return "--gpus";
  if (key == "hardware.nodes") return "--nodes";
  if (key == "hardware.others_use") return "--others-use";
  const PlanFieldRow* row = find_plan_field(key);
  return row == nullptr || row->flag.empty() ? key : row->flag;
}

// A problem of the three inputs together belongs to the flag that was typed, else to the job file.
Problem placed(Problem problem, const Arguments& arguments, const std::string& job_file) {
  if (!problem.file.empty()) return problem;
  const std::string flag = flag_of(problem.key);
  const bool typed = arguments.has(flag) || job_file.empty();
  problem.file = typed ? kCommandLine : job_file;
  if (typed) problem.key = flag;
  return problem;
}

// Runs one reader; its problems join the others.
template <typename Read>
void collect(Problems& problems, const Read& read) {
  try {
    read();
  } catch (const InputError& error) {
    for (const Problem& problem : error.problems()) problems.add(problem);
  }
}

constexpr const char* kFramework = "--framework";

// How a framework shards by default is how its default engine does: another one's way is for the command line to say.
void leave_out_sharding(const std::string& engine, io::JobFile& job) {
  const Value* by_default = job.plan.find("engine");
  if (by_default == nullptr || !by_default->is_string() || by_default->as_string() == to_lower(engine)) return;
  Value plan = Value::make_map();
  for (const auto& [key, value] : job.plan.entries())
    if (!key.starts_with("sharding")) plan.set(key, value);
  job.plan = std::move(plan);
}

io::JobFile read_job(const Arguments& arguments, const std::string* model, const std::string* job_path,
                     const io::DataDirs& dirs, const char* format_option, Problems& problems) {
  io::ImportContext context;
  context.dirs = dirs;
  context.given = given_plan_keys(arguments);
  if (model != nullptr) context.model = *model;
  if (const std::string* format = arguments.value(format_option)) context.format = *format;
  std::string why;
  std::int64_t gpus = 0;
  const std::string* count = arguments.value("--gpus");  // a wrong one is read_machine's to refuse
  if (count != nullptr && parse_count(*count, gpus, why) && gpus > 0) context.gpus = gpus;
  if (const std::string* framework = arguments.value(kFramework)) {
    if (job_path != nullptr || !arguments.command.empty())
      problems.add({kCommandLine, kFramework, "is for a plan without a job file, which says it itself", ""});
    const std::string* method = arguments.value("--method");
    io::JobFile job = io::import_defaults(*framework, method == nullptr ? "" : *method, context, problems);
    if (const std::string* engine = arguments.value("--engine")) leave_out_sharding(*engine, job);
    return job;
  }
  return job_path != nullptr ? io::import_job(*job_path, context, problems)
                             : io::import_command(arguments.command, context, problems);
}

// Whether a key that no table knows speaks of what memory goes by.
bool is_telling(const std::string& key) {
  constexpr std::string_view kWords[] = {"fsdp",      "quant",    "quantize", "quantization", "lora",         "qlora",
                                         "peft",      "parallel", "batch",    "seqlen",       "offload",      "freeze",
                                         "frozen",    "zero",     "bits",     "precision",    "dtype",        "fp8",
                                         "fp16",      "bf16",     "packing",  "liger",        "unsloth",      "experts",
                                         "optimizer", "4bit",     "8bit",     "int8",         "checkpointing"};
  std::string spaced = key;
  std::replace_if(
      spaced.begin(), spaced.end(), [](char c) { return c == '.' || c == '-'; }, '_');
  const std::vector<std::string> parts = split(spaced, '_');
  const auto has = [&](std::string_view word) { return std::find(parts.begin(), parts.end(), word) != parts.end(); };
  if (has("eval") || has("val") || has("test")) return false;
  return std::any_of(std::begin(kWords), std::end(kWords), has);
}

// What the importer filled in or left out belongs into the report.
void add_remarks(const io::JobFile& job, Inputs& inputs) {
  for (const std::string& text : job.assumptions) inputs.hardware.assumptions.push_back(job.file + ": " + text);
  for (const std::string& text : job.warnings) inputs.model.warnings.push_back(job.file + ": " + text);
  std::string unknown;
  for (const io::KeyRecord& record : job.records) {
    if (record.state != io::KeyState::unknown || (record.note.empty() && !is_telling(record.key))) continue;
    unknown += (unknown.empty() ? "" : ", ") + record.key;
    if (!record.note.empty()) unknown += " (nearest: " + record.note + ")";
  }
  if (!unknown.empty()) inputs.model.warnings.push_back(job.file + ": unknown keys: " + unknown);
}

// PEFT passes over targets that no module has as long as another one matches: jobs of frameworks that name some run. What membill's own
// flags and job files name may only be a slip, which validate() refuses.
void pass_over_targets(const Arguments& arguments, const io::JobFile& job, Inputs& inputs) {
  if (job.format.empty() || arguments.has("--targets") || !adapts_modules(inputs.plan.method)) return;
  AdapterPlan& adapter = inputs.plan.adapter;
  const AdapterMatch match = match_adapter_targets(inputs.model, adapter, inputs.plan.method);
  if (match.modules.empty() || !match.failure.empty()) return;
  for (const UnmatchedTarget& unmatched : match.unmatched) {
    const std::string near = unmatched.nearest.empty() ? "" : ", nearest: " + unmatched.nearest;
    inputs.model.warnings.push_back(job.file + ": PEFT passes over the target " + membill::quoted(unmatched.target) +
                                    ", which no module of the model has" + near);
    adapter.targets.erase(std::remove(adapter.targets.begin(), adapter.targets.end(), unmatched.target),
                          adapter.targets.end());
  }
}

// Frameworks that keep the vision part as it is, unless they are told otherwise, put no adapters on it either (LLaMA-Factory 0.9
// model/adapter.py patch_target_modules, ms-swift 4 tuners: freeze_vit, freeze_aligner).
void leave_vision_out(const Arguments& arguments, const io::JobFile& job, Inputs& inputs) {
  constexpr const char* kParts = R"((.*\.)?(visual|vision_tower|vision_model|multi_modal_projector)\..*)";
  const std::vector<Section>& sections = inputs.model.sections;
  const bool sees = std::any_of(sections.begin(), sections.end(), is_vision_part);
  if (!sees || arguments.has("--targets") || !adapts_modules(inputs.plan.method)) return;
  if (inputs.plan.engine == Engine::megatron) return;  // whose adapters never reach it
  const VisionPlan& vision = inputs.plan.vision;
  if (vision.images > 0 && !vision.freeze_tower) return;
  if (job.format == "llamafactory" || job.format == "ms-swift") inputs.plan.adapter.exclude.emplace_back(kParts);
}

// What a framework's job does beside its step, or to make it smaller: where this version does not bill that, the step is billed without.
struct PassedOver {
  const char* limit;   // its key among what is not billed
  const char* key;     // of the job that asks for it
  const char* option;  // of the command line, which is never passed over
  void (*leave_out)(TrainingPlan& plan);
  const char* warning;
};
constexpr PassedOver kPassedOver[] = {
    {"evaluation.batch", "evaluation.batch", "--evaluation-batch",
     [](TrainingPlan& plan) { plan.evaluation.batch.reset(); }, "the evaluation is not billed, the steps between are"},
    {"compile", "compile", "--compile", [](TrainingPlan& plan) { plan.compile = false; },
     "torch.compile is not billed here: the layers are billed as they run without it"},
    {"checkpointing", "checkpointing.offload", "--checkpointing",
     [](TrainingPlan& plan) { plan.checkpointing.offload = false; },
     "activations that the host keeps are not billed here: they are billed on the card"}};

bool is_limited(const TrainingPlan& plan, const std::string& key) {
  const std::vector<Problem> limits = not_billed_yet(plan);
  return std::any_of(limits.begin(), limits.end(), [&](const Problem& problem) { return problem.key == key; });
}

void pass_over_what_is_not_billed(const Arguments& arguments, const io::JobFile& job, Inputs& inputs) {
  if (job.format.empty()) return;
  for (const PassedOver& part : kPassedOver) {
    if (job.plan.find(part.key) == nullptr || arguments.has(part.option) || !is_limited(inputs.plan, part.limit))
      continue;
    TrainingPlan without = inputs.plan;
    part.leave_out(without);
    if (is_limited(without, part.limit)) continue;
    inputs.plan = std::move(without);
    inputs.model.warnings.push_back(job.file + ": " + part.warning);
  }
}

bool is_set(const Arguments& arguments, const std::string& key) {
  const auto sets = arguments.values("--set");
  return std::any_of(sets.begin(), sets.end(), [&](const std::string& text) { return text.starts_with(key + "="); });
}

// Whether somebody says how the base's weights are stored; `qlora` leaves a base that is packed already as it is.
bool says_weights(const Arguments& arguments, const io::JobFile& job) {
  return arguments.has("--weights") || job.plan.find("weights") != nullptr || is_set(arguments, "weights");
}

bool says_fsdp_strategy(const Arguments& arguments, const io::JobFile& job) {
  const Value* sharding = job.plan.find("sharding");
  return arguments.has("--fsdp") || is_set(arguments, "sharding.fsdp") || job.plan.find("sharding.fsdp") != nullptr ||
         (sharding != nullptr && sharding->find("fsdp") != nullptr);
}

bool names_model(const io::JobFile& job) { return job.model || job.config || job.generic; }

// Whether something in the job's file is wrong: what it does not say may then be there all the same.
bool has_problem(const Problems& problems, const std::string& file) {
  return std::any_of(problems.list().begin(), problems.list().end(),
                     [&](const Problem& problem) { return problem.file == file; });
}

// Whether what the job trains was read without a problem, so that its names can be looked up.
bool names_are_read(const Problems& problems) {
  return std::none_of(problems.list().begin(), problems.list().end(), [](const Problem& problem) {
    return problem.key.find("target") != std::string::npos || problem.key.find("method") != std::string::npos ||
           problem.key.find("adapter") != std::string::npos;
  });
}

// What the environment says of the allocator, what the job says of plan and machine, then the command line's options, which win.
void read_plan_and_machine(const Arguments& arguments, JobInputs& inputs, Problems& problems) {
  const std::string environment = apply_environment(inputs.job_plan, problems);
  read_plan(inputs.job.plan, inputs.job.file, inputs.job_plan, problems);
  inputs.plan = inputs.job_plan;
  apply_plan_options(arguments, inputs.plan, problems);
  collect(problems, [&] { inputs.hardware = read_machine(arguments, inputs.job, inputs.plan, inputs.dirs, problems); });
  if (!environment.empty()) inputs.hardware.assumptions.push_back(environment);
}

}  // namespace

std::string settle_weights(const Arguments& arguments, const Inputs& inputs, const Hardware& hardware,
                           TrainingPlan& plan) {
  if (says_weights(arguments, inputs.job)) return {};
  const StoredWeights& by_name = inputs.job.stored;
  return take_stored_weights(by_name.method.empty() ? inputs.model.stored : by_name, inputs.model, hardware, plan);
}

std::string settle_sharding(const Arguments& arguments, const Inputs& inputs, TrainingPlan& plan) {
  const bool is_fsdp = plan.engine == Engine::fsdp || plan.engine == Engine::fsdp2;
  if (!is_fsdp || plan.sharding.fsdp != "none" || says_fsdp_strategy(arguments, inputs.job)) return {};
  plan.sharding.fsdp = "full_shard";
  return "no strategy of FSDP is said: full_shard, its own default, is taken";
}

std::vector<std::string> job_formats() {
  std::vector<std::string> names;
  for (const io::Importer& importer : io::importers()) names.emplace_back(importer.name);
  names.insert(names.end(), {"script", "membill"});
  return names;
}

JobInputs read_job_inputs(const Arguments& arguments, const std::string* model, const std::string* job_path,
                          const char* format_option, Problems& problems) {
  JobInputs inputs;
  collect(problems, [&] { inputs.dirs = data_dirs(arguments); });
  if (job_path != nullptr || !arguments.command.empty() || arguments.has(kFramework)) {
    collect(problems, [&] { inputs.job = read_job(arguments, model, job_path, inputs.dirs, format_option, problems); });
  }
  read_plan_and_machine(arguments, inputs, problems);
  return inputs;
}

ArgumentSpec model_argument() {
  return {
      "MODEL", "a preset, a config.json, a model folder, a job file, or - for a config on standard input", false, {}};
}

namespace {

bool ends_as_job(const std::string& name) {
  constexpr std::array<std::string_view, 8> kEndings{".yaml",  ".yml",    ".sh", ".bash",
                                                     ".slurm", ".sbatch", ".py", ".ipynb"};
  return std::any_of(kEndings.begin(), kEndings.end(), [&](std::string_view ending) { return name.ends_with(ending); });
}

}  // namespace

bool names_job(const std::string& name) {
  std::error_code error;
  return std::filesystem::is_regular_file(name, error) && (ends_as_job(name) || io::holds_job(name));
}

bool can_only_name_model(const std::string& name) {
  constexpr std::array<std::string_view, 3> kOtherEndings{".json", ".toml", ".txt"};
  std::error_code error;
  const bool is_path = name == "-" || ends_as_job(name) || std::filesystem::exists(name, error);
  return !is_path && std::none_of(kOtherEndings.begin(), kOtherEndings.end(),
                                  [&](std::string_view ending) { return name.ends_with(ending); });
}

std::vector<OptionSpec> input_options() {
  std::vector<OptionSpec> all{
      {"--job", Takes::value, "FILE", "a job file of any format, or a launch script; options beside it win", "Job", {}},
      {"--as", Takes::value, "FORMAT", "the job file's format, where its content leaves it open", "Job", job_formats()},
      {kFramework, Takes::value, "NAME", "whose defaults hold where no option says otherwise", "Job",
       io::front_ends()}};
  for (std::vector<OptionSpec> more : {machine_options(), model_options(), plan_options()}) {
    all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  }
  return all;
}

namespace {

// The rest of the inputs, once job, plan and machine are read. Without a job that could be read, a model that only it would name is no
// problem.
Inputs complete(JobInputs read, const Arguments& arguments, const std::string* model, bool job_is_readable, Check check,
                Problems& problems) {
  Inputs inputs;
  inputs.plan = std::move(read.plan);
  inputs.job_plan = std::move(read.job_plan);
  inputs.hardware = std::move(read.hardware);
  inputs.dirs = std::move(read.dirs);
  inputs.job = std::move(read.job);
  const io::JobFile& job = inputs.job;
  if (job_is_readable || model != nullptr) {
    collect(problems, [&] { inputs.model = read_model(arguments, model, job, inputs.dirs, problems); });
  }
  collect(problems, [&] { inputs.model.teacher = read_teacher(inputs.plan, job, inputs.dirs); });
  if (!problems.empty()) {
    Problems names;
    if (names_are_read(problems)) check_modules(inputs.model, inputs.plan, names);
    for (const Problem& problem : names.list()) problems.add(placed(problem, arguments, job.file));
  }
  problems.throw_if_any();
  add_remarks(job, inputs);
  for (const std::string& settled : {settle_weights(arguments, inputs, inputs.hardware, inputs.plan),
                                     settle_sharding(arguments, inputs, inputs.plan)})
    if (!settled.empty()) inputs.hardware.assumptions.push_back(settled);
  leave_vision_out(arguments, job, inputs);
  pass_over_targets(arguments, job, inputs);
  pass_over_what_is_not_billed(arguments, job, inputs);
  if (check == Check::together) {
    for (Problem& problem : validate(inputs.model, inputs.plan, inputs.hardware)) {
      problems.add(placed(std::move(problem), arguments, job.file));
    }
    problems.throw_if_any();
  }
  inputs.notes = input_notes(arguments, job, inputs);
  return inputs;
}

}  // namespace

Inputs read_inputs(const Arguments& arguments, const std::string* model, const std::string* job_path, Check check) {
  if (model != nullptr && job_path == nullptr && names_job(*model)) std::swap(model, job_path);
  Problems problems;
  JobInputs read = read_job_inputs(arguments, model, job_path, "--as", problems);
  const bool has_job = job_path != nullptr || !arguments.command.empty();
  const bool job_is_readable =
      !has_job || (!read.job.file.empty() && (names_model(read.job) || !has_problem(problems, read.job.file)));
  return complete(std::move(read), arguments, model, job_is_readable, check, problems);
}

Inputs inputs_of(const Arguments& arguments, const std::string* model, io::JobFile job, Check check) {
  Problems problems;
  JobInputs read;
  collect(problems, [&] { read.dirs = data_dirs(arguments); });
  read.job = std::move(job);
  read_plan_and_machine(arguments, read, problems);
  return complete(std::move(read), arguments, model, true, check, problems);
}

}  // namespace membill::cli
