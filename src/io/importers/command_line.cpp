#include "io/importers/command_line.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <system_error>

#include "base/text.h"
#include "io/text_file.h"
#include "membill/catalog.h"

namespace membill::io {
namespace {

namespace fs = std::filesystem;

// Programs that start the one after them.
constexpr std::array<std::string_view, 10> kWrappers{"nohup", "time", "exec", "env",  "sudo",
                                                     "eval",  "srun", "do",   "then", "else"};
// Options of launchers that stand alone; all others take a value.
constexpr std::string_view kAlone =
    "standalone use_env run_path no_python multi_gpu use_deepspeed use_fsdp debug same_network no_local_rank no_ssh "
    "force_multi m module "
    "enable_each_rank_log bind_cores_to_rank mixed_precision_ use_megatron_lm cpu quiet";
// Programs with commands of their own, and the commands that train.
struct Tool {
  std::string_view name, commands;
};
constexpr Tool kTools[] = {
    {"swift", "sft pt rlhf"},
    {"megatron", "sft pt rlhf"},
    {"llamafactory-cli", "train"},
    {"axolotl", "train"},
    {"tune", "run"},
    {"trl", "sft dpo orpo kto reward grpo rloo cpo"},
    {"litgpt", "finetune finetune_lora finetune_full finetune_adapter finetune_adapter_v2 pretrain"},
    {"unsloth", "train"}};
// Modules and scripts that are such a program by another name.
struct Alias {
  std::string_view script, tool, command;
};
constexpr Alias kAliases[] = {{"axolotl.cli.train", "axolotl", "train"},
                              {"axolotl.cli", "axolotl", "train"},
                              {"llamafactory.cli", "llamafactory-cli", "train"},
                              {"src/train.py", "llamafactory-cli", "train"},
                              {"src/train_bash.py", "llamafactory-cli", "train"},
                              {"llm_sft.py", "swift", "sft"},
                              {"swift.cli.sft", "swift", "sft"},
                              {"swift/cli/sft.py", "swift", "sft"},
                              {"swift/cli/pt.py", "swift", "pt"},
                              {"swift/cli/rlhf.py", "swift", "rlhf"},
                              {"swift/cli/_megatron/sft.py", "megatron", "sft"},
                              {"trl/scripts/sft.py", "trl", "sft"},
                              {"trl/scripts/dpo.py", "trl", "dpo"},
                              {"scripts/run_sft.py", "trl", "sft"},
                              {"scripts/run_dpo.py", "trl", "dpo"},
                              {"scripts/run_orpo.py", "trl", "orpo"},
                              {"src/open_r1/sft.py", "trl", "sft"},
                              {"src/open_r1/grpo.py", "trl", "grpo"},
                              {"examples/scripts/sft.py", "trl", "sft"},
                              {"examples/scripts/dpo.py", "trl", "dpo"}};

std::string base_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

std::string underscored(std::string text) {
  std::replace(text.begin(), text.end(), '-', '_');
  return text;
}

bool holds(std::string_view words, std::string_view word) {
  const std::vector<std::string> all = split(words, ' ');
  return std::find(all.begin(), all.end(), word) != all.end();
}

bool is_option(const std::string& word) { return word.size() > 2 && word[0] == '-' && word[1] == '-'; }

void set_dotted(Value& map, const std::string& key, Value value) {
  const std::size_t dot = key.find('.');
  const Value* branch = dot == std::string::npos ? nullptr : map.find(key.substr(0, dot));
  if (branch == nullptr || !branch->is_map()) return map.set(key, std::move(value));
  Value inner = *branch;
  set_dotted(inner, key.substr(dot + 1), std::move(value));
  map.set(key.substr(0, dot), std::move(inner));
}

class CommandParser {
 public:
  CommandParser(const std::vector<std::string>& words, const Variables& environment, const std::string& file,
                const std::string& folder, Problems& problems)
      : words_(words), problems_(problems) {
    source_.file = file;
    source_.folder = folder;
    source_.arguments = true;
    source_.launch.environment = environment;
  }

  std::optional<JobSource> parse() {
    skip_wrappers();
    if (!find_program()) return std::nullopt;
    read_arguments();
    if (accelerates_) source_.launch.accelerate = accelerate_;
    return std::move(source_);
  }

 private:
  bool done() const { return at_ >= words_.size(); }
  const std::string& word() const { return words_[at_]; }

  void skip_wrappers() {
    while (!done()) {
      const bool wrapper = std::find(kWrappers.begin(), kWrappers.end(), word()) != kWrappers.end();
      const std::size_t equals = word().find('=');
      const bool assignment =
          equals != std::string::npos && equals > 0 && !is_option(word()) && word().find('/') > equals;
      if (assignment) source_.launch.environment[word().substr(0, equals)] = word().substr(equals + 1);
      if (!wrapper && !assignment && !(wrapped_ && word().starts_with("-"))) return;
      wrapped_ = wrapped_ || wrapper;
      ++at_;
    }
  }

  bool find_program() {
    if (done()) return false;
    const std::string name = base_name(words_[at_++]);
    if (name == "torchrun" || name == "torchrun_") return read_torchrun();
    if (name == "deepspeed") return read_deepspeed();
    if (name == "accelerate") return read_accelerate();
    if (name.starts_with("python")) return read_python();
    return read_tool(name);
  }

  bool read_tool(const std::string& name) {
    for (const Tool& tool : kTools) {
      if (tool.name != name || done() || !holds(tool.commands, underscored(word()))) continue;
      source_.launch.program = {name, underscored(words_[at_++])};
      if (name == "tune") return read_tune();
      return true;
    }
    return false;
  }

  bool read_tune() {
    const Value options = launcher_options();
    set_processes(options);
    if (done()) return false;
    source_.launch.program.push_back(words_[at_++]);
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
    if (local && *local < 1'000'000 && nodes.value_or(1) < 1'000'000)
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
    if (const auto cards = count_of(options, "num_gpus"); cards && *cards < 1'000'000 && nodes < 1'000'000)
      source_.launch.processes = *cards * nodes;
    const Value* include = options.find("include");
    if (include != nullptr && !source_.launch.processes) {
      const std::string text = value_text(*include);  // "localhost:0,1,2"
      source_.launch.processes = std::count(text.begin(), text.end(), ',') + 1;
    }
    if (!source_.launch.processes) count_visible_cards();
    return read_script();
  }

  void count_visible_cards() {
    const auto found = source_.launch.environment.find("CUDA_VISIBLE_DEVICES");
    if (found == source_.launch.environment.end() || found->second.empty() ||
        found->second.find('$') != std::string::npos)
      return;
    source_.launch.processes = std::count(found->second.begin(), found->second.end(), ',') + 1;
  }

  bool read_accelerate() {
    if (done() || word() != "launch") return false;
    ++at_;
    Value options = launcher_options();
    source_.launch.distributed = accelerates_ = true;
    source_.launch.accelerate_file = source_.file;
    if (const Value* path = options.find("config_file")) read_accelerate_file(value_text(*path));
    add_accelerate_options(options);
    return read_script();
  }

  void read_accelerate_file(const std::string& path) {
    if (const std::optional<Value> part = read_file_of(path, "--config_file"); part && part->is_map()) {
      accelerate_ = *part;
      source_.launch.accelerate_file = last_name(path);
    }
  }

  void add_accelerate_options(const Value& options) {
    Value deepspeed = Value::make_map(), fsdp = Value::make_map();
    for (const auto& [key, value] : options.entries()) {
      if (key == "config_file" || key == "m" || key == "module") continue;
      if (key == "use_deepspeed") accelerate_.set("distributed_type", Value::of("DEEPSPEED"));
      if (key == "use_fsdp") accelerate_.set("distributed_type", Value::of("FSDP"));
      if (key == "multi_gpu") accelerate_.set("distributed_type", Value::of("MULTI_GPU"));
      if (key.starts_with("use_") || key == "multi_gpu") continue;
      if (key.starts_with("fsdp_")) {
        fsdp.set(key, value);
      } else if (key == "deepspeed_config_file" || key == "zero_stage" || key.starts_with("offload_") ||
                 key.starts_with("zero3_") || key == "gradient_clipping" || key == "deepspeed_hostfile" ||
                 key == "deepspeed_multinode_launcher") {
        deepspeed.set(key, value);
      } else {
        accelerate_.set(key, value);
      }
    }
    if (!deepspeed.entries().empty()) accelerate_.set("deepspeed_config", deepspeed);
    if (!fsdp.entries().empty()) accelerate_.set("fsdp_config", fsdp);
  }

  bool read_python() {
    while (!done() && word().starts_with("-") && word() != "-m" && word() != "-c") ++at_;
    if (done() || word() == "-c") return false;
    if (word() != "-m") return read_script();
    ++at_;
    if (done()) return false;
    if (word() == "torch.distributed.run" || word() == "torch.distributed.launch") return ++at_, read_torchrun();
    if (word() == "accelerate.commands.launch") {
      words_[at_] = "launch";
      return read_accelerate();
    }
    return read_script();
  }

  bool read_script() {
    if (!done() && (word() == "-m" || word() == "--module")) ++at_;
    if (!done() && base_name(word()).starts_with("python")) ++at_;
    if (done()) return false;
    const std::string script = words_[at_++];
    const std::string name = base_name(script);
    for (const Tool& tool : kTools) {
      if (name == tool.name && !done()) return --at_, ++at_, read_tool(name);
    }
    for (const Alias& alias : kAliases) {
      const bool whole = script == alias.script || script.ends_with("/" + std::string(alias.script));
      if (whole || name == alias.script) {
        source_.launch.program = {std::string(alias.tool), std::string(alias.command)};
        return true;
      }
    }
    source_.launch.program = {name};
    return true;
  }

  // Options before the program: "--nproc_per_node 8", "--standalone".
  Value launcher_options() {
    Value options = Value::make_map();
    while (!done() && word().starts_with("-") && word() != "-m") {
      std::string name =
          word().substr(word().find_first_not_of('-') == std::string::npos ? 0 : word().find_first_not_of('-'));
      ++at_;
      const std::size_t equals = name.find('=');
      if (equals != std::string::npos) {
        options.set(underscored(name.substr(0, equals)), flag_value(name.substr(equals + 1)));
        continue;
      }
      const std::string key = underscored(name);
      const bool alone = holds(kAlone, key) || done() || is_option(word());
      options.set(key, alone ? Value::of(true) : flag_value(word()));
      if (!alone) ++at_;
    }
    return options;
  }

  // Arguments of the program: a file of keys, and flags that go before them.
  void read_arguments() {
    Value flags = Value::make_map();
    while (!done()) {
      const std::string current = words_[at_++];
      if (is_option(current)) {
        read_flag(current, flags);
      } else if (current.size() > 1 && current[0] == '-' && !is_digit(current[1])) {
        read_flag("-" + current, flags);
      } else if (current.find('=') != std::string::npos && !source_.launch.program.empty() &&
                 !current.starts_with('-')) {
        const std::size_t start = current.find_first_not_of('+');  // hydra's mark of a new key
        if (start == std::string::npos || current[start] == '=') continue;
        flags.set(current.substr(start, current.find('=') - start), flag_value(current.substr(current.find('=') + 1)));
      } else if (current.ends_with(".yaml") || current.ends_with(".yml") || current.ends_with(".json")) {
        read_main_file(current, "");
      }
    }
    const Value* config = flags.find("config");
    if (config != nullptr && config->is_string()) read_main_file(config->as_string(), "--config");
    for (auto& [key, value] : flags.entries()) {
      if (key != "config" || source_.launch.program.size() < 2) set_dotted(source_.keys, key, std::move(value));
    }
  }

  void read_main_file(const std::string& path, const std::string& key) {
    std::optional<Value> tree = read_file_of(path, key);
    if (!tree) return;
    if (!tree->is_map()) return problems_.add({last_name(path), "", "is no map of keys", ""});
    source_.keys = std::move(*tree);
    source_.file = last_name(path);
  }

  void read_flag(const std::string& current, Value& flags) {
    std::string name = current.substr(2);
    const std::size_t equals = name.find('=');
    if (equals != std::string::npos)
      return flags.set(underscored(name.substr(0, equals)), flag_value(name.substr(equals + 1)));
    std::vector<Value> values;
    while (!done() && !is_option(word()) &&
           !(word().size() > 1 && word()[0] == '-' && !is_digit(word()[1]) && word()[1] != '.')) {
      values.push_back(flag_value(words_[at_++]));
    }
    const std::string key = underscored(name);
    if (values.empty()) return flags.set(key, Value::of(true));
    flags.set(key, values.size() == 1 ? std::move(values.front()) : Value::make_list(std::move(values)));
  }

  std::optional<Value> read_file_of(const std::string& path, const std::string& key) {
    const ImportContext context;
    Draft draft(context, problems_);
    draft.file = source_.file;
    draft.folder = source_.folder;
    return read_part(path, draft, key);
  }

  std::vector<std::string> words_;
  Problems& problems_;
  JobSource source_;
  std::size_t at_ = 0;
  bool wrapped_ = false, accelerates_ = false;
  Value accelerate_ = Value::make_map();
};

}  // namespace

std::optional<JobSource> parse_command(const std::vector<std::string>& words, const Variables& environment,
                                       const std::string& file, const std::string& folder, Problems& problems) {
  return CommandParser(words, environment, file, folder, problems).parse();
}

}  // namespace membill::io
