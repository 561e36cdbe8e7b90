#include "io/importers/launcher.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "io/importers/launch_programs.h"
#include "io/importers/shipped_accelerate.h"
#include "io/importers/slurm.h"
#include "io/text_file.h"
#include "membill/catalog.h"

namespace membill::io {
namespace {

constexpr std::int64_t kMostCards = 1'000'000;

class LauncherReader {
 public:
  LauncherReader(WordCursor& cursor, JobSource& source, Problems& problems)
      : cursor_(cursor), source_(source), problems_(problems) {}

  bool read() {
    skip_wrappers();
    if (!find_program()) return false;
    if (accelerates_) source_.launch.accelerate = std::move(accelerate_);
    if (by_slurm_ && !source_.launch.processes) count_tasks();
    return true;
  }

 private:
  void skip_wrappers() {
    while (!cursor_.done()) {
      const bool wrapper = std::find(kWrappers.begin(), kWrappers.end(), cursor_.word()) != kWrappers.end();
      const std::size_t equals = cursor_.word().find('=');
      const bool assignment =
          equals != std::string::npos && equals > 0 && !is_option(cursor_.word()) && cursor_.word().find('/') > equals;
      if (assignment)
        source_.launch.environment.set(cursor_.word().substr(0, equals), cursor_.word().substr(equals + 1));
      if (!wrapper && !assignment && !(wrapped_ && cursor_.word().starts_with("-"))) return;
      wrapped_ = wrapped_ || wrapper;
      ++cursor_.at;
    }
  }

  [[nodiscard]] Variables& environment() { return source_.launch.environment; }

  static bool starts_training(const std::string& name) {
    const auto is_tool = [&](const TrainingTool& tool) { return tool.name == name; };
    return name == "torchrun" || name == "deepspeed" || name == "accelerate" || name.starts_with("python") ||
           std::any_of(std::begin(kTools), std::end(kTools), is_tool);
  }

  // Behind a runner: the first word that starts a training.
  void skip_runner() {
    if (cursor_.done() || !holds(kRunners, base_name(cursor_.word()))) return;
    by_slurm_ = base_name(cursor_.word()) == "srun";
    const bool by_mpi = base_name(cursor_.word()).starts_with("mpi");
    const std::size_t start = cursor_.at + 1;
    while (!cursor_.done() && !starts_training(base_name(cursor_.word()))) ++cursor_.at;
    // srun's own options go before the script's #SBATCH lines.
    const std::span<const std::string> options = std::span(cursor_.words).subspan(start, cursor_.at - start);
    if (by_slurm_) read_slurm_options(options, environment());
    if (by_mpi) count_mpi_processes(options);
  }

  // mpirun -np 16: a process for each card.
  void count_mpi_processes(std::span<const std::string> options) {
    for (std::size_t i = 0; i + 1 < options.size(); ++i) {
      if (options[i] != "-np" && options[i] != "-n" && options[i] != "--np") continue;
      const Value count = flag_value(options[i + 1]);
      if (!count.is_int() || count.as_int() < 2 || count.as_int() >= kMostCards) continue;
      source_.launch.processes = count.as_int();
      source_.launch.distributed = true;
      if (const std::int64_t nodes = environment().count("SLURM_NNODES"); nodes > 1) source_.launch.nodes = nodes;
    }
  }

  // Where srun itself starts a process for each card.
  void count_tasks() {
    const std::int64_t nodes = environment().count("SLURM_NNODES");
    const std::int64_t local = environment().count("SLURM_NTASKS_PER_NODE"),
                       tasks = environment().count("SLURM_NTASKS");
    if (nodes > 1) source_.launch.nodes = nodes;
    if (tasks > 0) source_.launch.processes = tasks;
    if (local > 0) source_.launch.processes = local * std::max<std::int64_t>(nodes, 1);
    source_.launch.distributed = source_.launch.distributed || source_.launch.processes.value_or(1) > 1;
  }

  bool find_program() {
    skip_runner();
    if (cursor_.done()) return false;
    const std::string name = base_name(cursor_.words[cursor_.at++]);
    if (name == "torchrun" || name == "torchrun_") return read_torchrun();
    if (name == "deepspeed") return read_deepspeed();
    if (name == "accelerate") return read_accelerate(true);
    if (name == "accelerate-launch") return read_accelerate(false);
    if (name.starts_with("python")) return read_python();
    return read_tool(name);
  }

  bool read_tool(const std::string& name) {
    for (const TrainingTool& tool : kTools) {
      if (tool.name != name || cursor_.done() || !holds(tool.commands, underscored(cursor_.word()))) continue;
      source_.launch.program = {name, underscored(cursor_.words[cursor_.at++])};
      if (name == "tune") return read_tune();
      if (name == "llamafactory-cli" || name == "axolotl") count_launched_cards();
      if (name == "litgpt" && source_.launch.program[1] == "finetune") join_method();
      return true;
    }
    return false;
  }

  // Tools that start a process for each visible card by themselves.
  void count_launched_cards() {
    count_visible_cards();
    if (const std::int64_t local = environment().count("NPROC_PER_NODE"); local > 0) source_.launch.processes = local;
    const std::int64_t nodes = environment().count("NNODES");
    if (nodes < 2 || !source_.launch.processes) return;
    source_.launch.nodes = nodes;
    *source_.launch.processes *= nodes;
  }

  // litgpt finetune lora: as finetune_lora.
  void join_method() {
    if (cursor_.done() || !holds("lora full adapter adapter_v2", underscored(cursor_.word()))) return;
    source_.launch.program[1] += "_" + underscored(cursor_.words[cursor_.at++]);
  }

  bool read_tune() {
    const Value options = launcher_options();
    set_processes(options);
    if (cursor_.done()) return false;
    source_.launch.program.push_back(cursor_.words[cursor_.at++]);
    return true;
  }

  bool read_torchrun() {
    const Value options = launcher_options();
    source_.launch.distributed = true;
    set_processes(options);
    return read_script();
  }

  void set_processes(const Value& options) {
    const std::optional<std::int64_t> local = count_of(options, "nproc_per_node");
    const std::optional<std::int64_t> nodes = nodes_of(options);
    source_.launch.nodes = nodes;
    if (local && *local < kMostCards && nodes.value_or(1) < kMostCards)
      source_.launch.processes = *local * nodes.value_or(1);
  }

  static std::optional<std::int64_t> nodes_of(const Value& options) {
    const Value* nodes = options.find("nnodes");
    if (nodes == nullptr) return std::nullopt;
    const std::string text = value_text(*nodes);  // "2" or "1:4"
    const Value most = flag_value(text.substr(text.find(':') == std::string::npos ? 0 : text.find(':') + 1));
    return most.is_int() && most.as_int() > 0 ? std::optional(most.as_int()) : std::nullopt;
  }

  static std::optional<std::int64_t> count_of(const Value& options, std::string_view key) {
    const Value* value = options.find(key);
    if (value == nullptr || !value->is_int() || value->as_int() < 1) return std::nullopt;
    return value->as_int();
  }

  bool read_deepspeed() {
    const Value options = launcher_options();
    source_.launch.distributed = true;
    const std::int64_t nodes = count_of(options, "num_nodes").value_or(1);
    if (nodes > 1) source_.launch.nodes = nodes;
    if (const auto cards = count_of(options, "num_gpus"); cards && *cards < kMostCards && nodes < kMostCards)
      source_.launch.processes = *cards * nodes;
    const Value* include = options.find("include");
    if (include != nullptr && !source_.launch.processes) {
      const std::string text = value_text(*include);  // "localhost:0,1,2"
      const auto nodes_named = std::count(text.begin(), text.end(), '@') + 1;
      if (text.find(':') != std::string::npos)
        source_.launch.processes = std::count(text.begin(), text.end(), ',') + nodes_named;
      if (nodes_named > 1) source_.launch.nodes = nodes_named;
    }
    if (!source_.launch.processes) count_visible_cards();
    return read_script();
  }

  void count_visible_cards() {
    const std::string* visible = environment().find("CUDA_VISIBLE_DEVICES");
    if (visible == nullptr || visible->empty() || visible->find('$') != std::string::npos) return;
    source_.launch.processes = std::count(visible->begin(), visible->end(), ',') + 1;
  }

  bool read_accelerate(bool has_command) {
    if (has_command && (cursor_.done() || cursor_.word() != "launch")) return false;
    if (has_command) ++cursor_.at;
    const Value options = launcher_options();
    source_.launch.distributed = accelerates_ = true;
    source_.launch.accelerate_file = source_.file;
    if (const Value* path = options.find("config_file")) read_accelerate_file(value_text(*path));
    add_accelerate_options(options);
    return read_script();
  }

  void read_accelerate_file(const std::string& path) {
    if (std::optional<ShippedAccelerate> shipped = shipped_accelerate(path, source_)) {
      source_.assumptions.push_back("--config_file " + path + " is not here: the file of that name that " +
                                    shipped->owner + " ships is taken");
      source_.launch.accelerate_file = last_name(path);
      accelerate_ = std::move(shipped->config);
      return;
    }
    if (const std::optional<Value> part = read_named_file(path, "--config_file", source_, problems_);
        part && part->is_map()) {
      accelerate_ = *part;
      source_.launch.accelerate_file = last_name(path);
    }
  }

  [[nodiscard]] Value part_of_config(const char* key) const {
    const Value* part = accelerate_.find(key);
    return part != nullptr && part->is_map() ? *part : Value::make_map();
  }

  // A switch between engines.
  bool add_switch(const std::string& key) {
    constexpr std::pair<std::string_view, const char*> kSwitches[] = {{"use_deepspeed", "DEEPSPEED"},
                                                                      {"use_fsdp", "FSDP"},
                                                                      {"multi_gpu", "MULTI_GPU"},
                                                                      {"use_megatron_lm", "MEGATRON_LM"}};
    for (const auto& [name, type] : kSwitches)
      if (key == name) accelerate_.set("distributed_type", Value::of(type));
    return key.starts_with("use_") || key == "multi_gpu";
  }

  // A count in a variable that the script does not set.
  bool is_unset_count(const std::string& key, const Value& value) {
    if (!key.starts_with("num_") || !value.is_string() || value.as_string().find('$') == std::string::npos)
      return false;
    source_.assumptions.push_back("--" + key + " " + value.as_string() + " is not set in the script: --gpus says it");
    return true;
  }

  void add_accelerate_options(const Value& options) {
    Value deepspeed = part_of_config("deepspeed_config"), fsdp = part_of_config("fsdp_config");
    Value megatron = part_of_config("megatron_lm_config"), parallelism = part_of_config("parallelism_config");
    for (const auto& [key, value] : options.entries()) {
      if (key == "config_file" || key == "m" || key == "module") continue;
      if (add_switch(key) || is_unset_count(key, value)) continue;
      if (key.starts_with("fsdp_")) {
        fsdp.set(key, value);
      } else if (key.starts_with("megatron_lm_")) {
        megatron.set(key, value);
      } else if (key.starts_with("parallelism_config_")) {
        parallelism.set(key, value);
      } else if (key == "deepspeed_config_file" || key == "zero_stage" || key.starts_with("offload_") ||
                 key.starts_with("zero3_") || key == "gradient_clipping" || key == "deepspeed_hostfile" ||
                 key == "deepspeed_multinode_launcher") {
        deepspeed.set(key, value);
      } else {
        accelerate_.set(key, value);
      }
    }
    for (const auto& [key, part] :
         {std::pair("deepspeed_config", &deepspeed), std::pair("fsdp_config", &fsdp),
          std::pair("megatron_lm_config", &megatron), std::pair("parallelism_config", &parallelism)}) {
      if (!part->entries().empty()) accelerate_.set(key, *part);
    }
  }

  bool read_python() {
    while (!cursor_.done() && cursor_.word().starts_with("-") && cursor_.word() != "-m" && cursor_.word() != "-c")
      ++cursor_.at;
    if (cursor_.done() || cursor_.word() == "-c") return false;
    if (cursor_.word() != "-m") return read_script();
    ++cursor_.at;
    if (cursor_.done()) return false;
    if (cursor_.word() == "torch.distributed.run" || cursor_.word() == "torch.distributed.launch")
      return ++cursor_.at, read_torchrun();
    if (cursor_.word() == "accelerate.commands.launch") return ++cursor_.at, read_accelerate(false);
    return read_script();
  }

  bool read_script() {
    if (!cursor_.done() && (cursor_.word() == "-m" || cursor_.word() == "--module")) ++cursor_.at;
    if (!cursor_.done() && is_option(cursor_.word()) && source_.launch.distributed) set_processes(launcher_options());
    if (!cursor_.done() && base_name(cursor_.word()).starts_with("python")) ++cursor_.at;
    if (cursor_.done()) return false;
    const std::string script = cursor_.words[cursor_.at++];
    const std::string name = base_name(script);
    for (const TrainingTool& tool : kTools) {
      if (name == tool.name && !cursor_.done()) return read_tool(name);
    }
    for (const ToolAlias& alias : kAliases) {
      const bool whole = script == alias.script || script.ends_with("/" + std::string(alias.script));
      if (whole || name == alias.script) {
        source_.launch.program = {std::string(alias.tool), std::string(alias.command)};
        return true;
      }
    }
    source_.launch.program = {name};
    source_.launch.path = script;
    return !trains_nothing(name);
  }

  // Options before the program: "--nproc_per_node 8", "--standalone".
  Value launcher_options() {
    Value options = Value::make_map();
    while (!cursor_.done() && cursor_.word().starts_with("-") && cursor_.word() != "-m") {
      std::string name = cursor_.word().substr(
          cursor_.word().find_first_not_of('-') == std::string::npos ? 0 : cursor_.word().find_first_not_of('-'));
      ++cursor_.at;
      const std::size_t equals = name.find('=');
      if (equals != std::string::npos) {
        options.set(underscored(name.substr(0, equals)), flag_value(name.substr(equals + 1)));
        continue;
      }
      const std::string key = underscored(name);
      const bool alone = holds(kAlone, key) || cursor_.done() || is_option(cursor_.word());
      options.set(key, alone ? Value::of(true) : flag_value(cursor_.word()));
      if (!alone) ++cursor_.at;
    }
    return options;
  }

  WordCursor& cursor_;
  JobSource& source_;
  Problems& problems_;
  bool wrapped_ = false, accelerates_ = false, by_slurm_ = false;
  Value accelerate_ = Value::make_map();
};

}  // namespace

bool read_launcher(WordCursor& cursor, JobSource& source, Problems& problems) {
  return LauncherReader(cursor, source, problems).read();
}

std::optional<Value> read_named_file(const std::string& path, const std::string& key, JobSource& source,
                                     Problems& problems) {
  const ImportContext context;
  Draft draft(context, problems);
  draft.file = source.file;
  draft.folder = source.folder;
  draft.files = source.launch.files;
  std::optional<Value> part = read_part(path, draft, key);
  for (std::string& warning : draft.warnings) source.warnings.push_back(std::move(warning));
  return part;
}

}  // namespace membill::io
