#include "io/importers/command_line.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "io/importers/launch_programs.h"
#include "io/importers/launcher.h"
#include "io/importers/references.h"
#include "io/importers/shipped_torchtune.h"
#include "io/text_file.h"
#include "membill/catalog.h"

namespace membill::io {
namespace {

void set_dotted(Value& map, const std::string& key, Value value) {
  const std::size_t dot = key.find('.');
  const Value* branch = dot == std::string::npos ? nullptr : map.find(key.substr(0, dot));
  if (branch == nullptr || !branch->is_map()) return map.set(key, std::move(value));
  Value inner = *branch;
  set_dotted(inner, key.substr(dot + 1), std::move(value));
  map.set(key.substr(0, dot), std::move(inner));
}

void remove_dotted(Value& map, const std::string& key) {
  const std::size_t dot = key.find('.');
  erase_key(map, key);
  if (dot == std::string::npos) return;
  for (auto& [name, inner] : map.entries()) {
    if (name == key.substr(0, dot) && inner.is_map()) remove_dotted(inner, key.substr(dot + 1));
  }
}

// Reads the arguments of a program that trains.
class CommandParser {
 public:
  CommandParser(const ShellCommand& command, const std::string& file, const std::string& folder, Problems& problems)
      : cursor_{command.words}, problems_(problems) {
    source_.file = file;
    source_.folder = folder;
    source_.arguments = true;
    source_.launch.environment = command.variables;
    source_.launch.files = command.files;
  }

  std::optional<JobSource> parse() {
    if (!read_launcher(cursor_, source_, problems_)) return std::nullopt;
    read_arguments();
    return std::move(source_);
  }

 private:
  // Arguments of the program: a file of keys, and flags that go before them.
  void read_arguments() {
    Value flags = Value::make_map();
    while (!cursor_.done()) {
      const std::string current = cursor_.words[cursor_.at++];
      if (current == "--") {
        read_launcher_rest();
      } else if (is_option(current)) {
        read_flag(current, flags);
      } else if (current.size() > 1 && current[0] == '-' && !is_digit(current[1])) {
        read_flag("-" + current, flags);
      } else {
        read_word(current, flags);
      }
    }
    if (!read_named_files(flags)) return;
    for (auto& [key, value] : flags.entries()) {
      if (key != "config" || source_.launch.program.size() < 2) set_dotted(source_.keys, key, std::move(value));
    }
    for (const std::string& key : removed_) remove_dotted(source_.keys, key);
  }

  // An argument that is no flag: KEY=VALUE, ~KEY, or a file of keys.
  void read_word(const std::string& word, Value& flags) {
    const std::size_t equals = word.find('=');
    if (word.starts_with('~')) {
      removed_.push_back(word.substr(1));  // hydra's and torchtune's mark of a key that is taken out
    } else if (equals != std::string::npos && !source_.launch.program.empty() && !word.starts_with('-')) {
      const std::size_t start = word.find_first_not_of('+');  // hydra's mark of a new key
      if (start < equals) flags.set(word.substr(start, equals - start), flag_value(word.substr(equals + 1)));
    } else if (word.ends_with(".yaml") || word.ends_with(".yml") || word.ends_with(".json")) {
      read_main_file(word, "");
    } else if (source_.launch.program.front() == "litgpt") {
      flags.set("checkpoint_dir", Value::of(word));
    }
  }

  // The files of keys that flags name; false: they name something else.
  bool read_named_files(const Value& flags) {
    const Value* config = flags.find("config");
    if (config != nullptr && flags.find("module") != nullptr && runs_torchtitan()) {
      problems_.add({source_.file, "--config", "names a Python function of torchtitan 0.3, which is not read",
                     "a TOML as 0.2.2 reads it by --job.config_file"});
      return false;
    }
    if (config != nullptr && config->is_string()) read_main_file(config->as_string(), "--config");
    const Value* titan = flags.find("job.config_file");
    if (titan != nullptr && titan->is_string()) read_main_file(titan->as_string(), "--job.config_file");
    return true;
  }

  [[nodiscard]] bool runs_torchtitan() const {
    const std::vector<std::string>& program = source_.launch.program;
    return std::any_of(program.begin(), program.end(),
                       [](const std::string& word) { return word.find("torchtitan") != std::string::npos; });
  }

  void read_main_file(const std::string& path, const std::string& key) {
    if (source_.launch.program.front() == "tune" && read_shipped(path, key)) return;
    std::optional<Value> tree = read_named_file(path, key, source_, problems_);
    if (!tree) return;
    if (!tree->is_map()) return problems_.add({last_name(path), "", "is no map of keys", ""});
    source_.keys = with_variables(*tree, source_.launch.environment, source_.assumptions);
    source_.file = last_name(path);
  }

  // axolotl train job.yml --launcher torchrun -- --nproc_per_node=2: what follows is the launcher's.
  void read_launcher_rest() {
    Value options = Value::make_map();
    while (!cursor_.done()) {
      const std::string current = cursor_.words[cursor_.at++];
      if (is_option(current)) read_flag(current, options);
    }
    for (const char* name : {"nproc_per_node", "num_processes"}) {
      const Value* count = options.find(name);
      if (count != nullptr && count->is_int() && count->as_int() > 0) source_.launch.processes = count->as_int();
    }
  }

  // A file that torchtune ships; true where it is one, or nothing else can be meant.
  bool read_shipped(const std::string& path, const std::string& key) {
    std::optional<Value> shipped = shipped_torchtune(path);
    if (shipped) {
      source_.keys = std::move(*shipped);
      source_.assumptions.push_back("the file " + path + " of torchtune 0.6.1 is taken");
      return true;
    }
    if (path.ends_with(".yaml") || path.ends_with(".yml")) return false;
    problems_.add({source_.file, key, membill::quoted(path) + " is no file that torchtune 0.6.1 ships",
                   "tune cp " + path + " job.yaml writes it here"});
    return true;
  }

  void read_flag(const std::string& current, Value& flags) {
    std::string name = current.substr(2);
    const std::size_t equals = name.find('=');
    if (equals != std::string::npos)
      return flags.set(underscored(name.substr(0, equals)), flag_value(name.substr(equals + 1)));
    std::vector<Value> values;
    const std::size_t most = name == "config" || name == "job.config_file" ? 1 : cursor_.words.size();
    while (!cursor_.done() && values.size() < most && !is_option(cursor_.word()) &&
           !(cursor_.word().size() > 1 && cursor_.word()[0] == '-' && !is_digit(cursor_.word()[1]) &&
             cursor_.word()[1] != '.')) {
      values.push_back(flag_value(cursor_.words[cursor_.at++]));
    }
    const std::string key = underscored(name);
    if (values.empty()) return flags.set(key, Value::of(true));
    flags.set(key, values.size() == 1 ? std::move(values.front()) : Value::make_list(std::move(values)));
  }

  WordCursor cursor_;
  std::vector<std::string> removed_;
  Problems& problems_;
  JobSource source_;
};

}  // namespace

std::optional<JobSource> parse_command(const ShellCommand& command, const std::string& file, const std::string& folder,
                                       Problems& problems) {
  return CommandParser(command, file, folder, problems).parse();
}

}  // namespace membill::io
