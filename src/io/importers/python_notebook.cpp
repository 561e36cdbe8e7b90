#include "io/importers/python_notebook.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <vector>

#include "base/text.h"
#include "io/json_reader.h"
#include "io/value_writer.h"

namespace membill::io {
namespace {

constexpr std::string_view kNotebook = ".ipynb";
constexpr std::string_view kEnd = "MEMBILL_END_OF_FILE";

std::string heredoc(const std::string& path, std::string_view text) {
  return "cat > '" + path + "' <<'" + std::string(kEnd) + "'\n" + std::string(text) +
         (text.ends_with('\n') ? "" : "\n") + std::string(kEnd) + "\n";
}

// {name} as a shell writes it.
std::string with_variables_of_shell(std::string_view command) {
  std::string text;
  for (std::size_t at = 0; at < command.size(); ++at) {
    const std::size_t close = command[at] == '{' ? command.find('}', at) : std::string_view::npos;
    const std::string_view name =
        close == std::string_view::npos ? std::string_view() : command.substr(at + 1, close - at - 1);
    const bool is_one = !name.empty() && !is_digit(name.front()) && std::all_of(name.begin(), name.end(), [](char c) {
      return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    });
    if (is_one && (at == 0 || command[at - 1] != '$')) text += '$';
    text += command[at];
  }
  return text;
}

class TextReader {
 public:
  explicit TextReader(ProgramText& text) : text_(text) {}

  void add_cell(const std::string& cell) {
    const std::string_view body = trim(cell);
    const std::string_view first = trim(body.substr(0, body.find('\n')));
    const std::string_view rest = body.find('\n') == std::string_view::npos ? "" : body.substr(body.find('\n') + 1);
    if (first.starts_with("%%writefile")) {
      const std::vector<std::string> words = split(first, ' ');
      if (words.size() > 1) text_.script += heredoc(words.back(), rest);
    } else if (first.starts_with("%%bash") || first.starts_with("%%sh") || first.starts_with("%%script bash")) {
      text_.script += std::string(rest) + "\n";
      note_requirements(rest);
    } else {
      add_lines(cell);
      text_.program += cell + "\n";
    }
  }

  void add_lines(std::string_view program) {
    std::string command;
    bool goes_on = false;  // the command before ends with a backslash
    for (const std::string& line : split(program, '\n')) {
      const std::string_view bare = trim(line);
      if (goes_on || bare.starts_with('!') || bare.starts_with("%pip")) {
        text_.script += with_variables_of_shell(goes_on ? bare : bare.substr(1)) + "\n";
        command = (goes_on ? command + " " : "") + std::string(bare);
        goes_on = bare.ends_with('\\');
        if (!goes_on) note_requirements(command);
      } else if (bare.starts_with("get_ipython().system(") && bare.size() > 24) {
        text_.script += with_variables_of_shell(bare.substr(22, bare.size() - 24)) + "\n";
        note_requirements(bare);
      } else if (bare.starts_with("%env ")) {
        text_.script += "export " + std::string(trim(bare.substr(5))) + "\n";
      }
    }
  }

 private:
  // pip install NAME==RELEASE ...
  void note_requirements(std::string_view text) {
    if (text.find("pip install") == std::string_view::npos) return;
    std::string words(text);
    std::replace(words.begin(), words.end(), '\n', ' ');
    std::erase_if(words, [](char c) { return c == '"' || c == '\''; });
    for (const std::string& word : split(words, ' '))
      if (word.find("==") != std::string::npos) text_.requirements += word + "\n";
  }

  ProgramText& text_;
};

std::string source_of(const Value& cell) {
  const Value *kind = cell.find("cell_type"), *source = cell.find("source");
  if (kind == nullptr || source == nullptr || !kind->is_string() || kind->as_string() != "code") return {};
  if (source->is_string()) return source->as_string();
  std::string text;
  if (source->is_list())
    for (const Value& line : source->items()) text += line.is_string() ? line.as_string() : std::string();
  return text;
}

// What a program writes and starts by itself.
class ActsOfProgram {
 public:
  explicit ActsOfProgram(const PythonProgram& program) : program_(program) {}

  std::string files() {
    std::string script;
    for (const PythonCall& call : program_.calls()) {
      const std::string name = call.function();
      const bool dumps = name == "dump" || name == "safe_dump";
      if (!(dumps && call.arguments.size() >= 2) && !(name == "write" && call.arguments.size() == 1)) continue;
      const auto path = dumps ? opened(call.arguments[1].value) : opened_as(call.object());
      const auto text = dumps ? dumped(call.arguments[0].value) : text_value(call.arguments[0].value);
      if (path && text) script += heredoc(*path, *text);
    }
    return script;
  }

  std::string commands() {
    static constexpr std::array<std::string_view, 6> kStarters{"os.system",        "subprocess.run",
                                                               "subprocess.call",  "subprocess.check_call",
                                                               "subprocess.Popen", "subprocess.check_output"};
    std::string script;
    for (const PythonCall& call : program_.calls()) {
      if (std::find(kStarters.begin(), kStarters.end(), call.name) == kStarters.end() || call.arguments.empty())
        continue;
      const std::optional<Value> words = program_.evaluate(call.arguments.front().value);
      if (words && words->is_string()) script += words->as_string() + "\n";
      if (words && words->is_list()) script += line_of(*words) + "\n";
    }
    return script;
  }

 private:
  static std::string line_of(const Value& words) {
    std::string line;
    for (const Value& word : words.items()) {
      std::string text = word.is_string() ? word.as_string() : write_json_line(word);
      std::replace(text.begin(), text.end(), '\'', '"');
      line += "'" + text + "' ";
    }
    return line;
  }

  [[nodiscard]] std::optional<std::string> text_value(PythonRange range) const {
    const std::optional<Value> value = program_.evaluate(range);
    return value && value->is_string() ? std::optional(value->as_string()) : std::nullopt;
  }

  // The path of open(PATH, "w").
  [[nodiscard]] std::optional<std::string> path_of(const PythonCall* open) const {
    if (open == nullptr || open->function() != "open" || open->arguments.size() < 2) return std::nullopt;
    const auto mode = text_value(open->arguments[1].value);
    return mode && mode->find('w') != std::string::npos ? text_value(open->arguments[0].value) : std::nullopt;
  }
  [[nodiscard]] std::optional<std::string> opened(PythonRange range) const { return path_of(program_.call_of(range)); }
  [[nodiscard]] std::optional<std::string> opened_as(const std::string& name) const {
    return name.empty() ? std::nullopt : path_of(program_.call_named(name));
  }

  // What dump() writes: a map as JSON, which YAML reads too; the text that yaml.safe_load read.
  [[nodiscard]] std::optional<std::string> dumped(PythonRange range) const {
    const PythonCall* loaded = program_.call_of(range);
    if (loaded != nullptr && (loaded->function() == "safe_load" || loaded->function() == "load") &&
        !loaded->arguments.empty())
      return text_value(loaded->arguments.front().value);
    const std::optional<Value> value = program_.evaluate(range);
    return value && value->is_map() ? std::optional(write_json(*value)) : std::nullopt;
  }

  const PythonProgram& program_;
};

// NAME='value' for each $NAME or ${NAME} of the script that the program knows.
std::string values_of_names(const std::string& script, const PythonProgram& program) {
  std::set<std::string> names;
  for (std::size_t at = script.find('$'); at != std::string::npos; at = script.find('$', at + 1)) {
    std::size_t begin = at + 1;
    if (begin < script.size() && script[begin] == '{') ++begin;
    std::size_t end = begin;
    while (end < script.size() &&
           (is_digit(script[end]) || script[end] == '_' || (script[end] >= 'a' && script[end] <= 'z') ||
            (script[end] >= 'A' && script[end] <= 'Z')))
      ++end;
    if (end > begin && names.size() < 200) names.insert(script.substr(begin, end - begin));
  }
  std::string values;
  for (const std::string& name : names) {
    const std::optional<Value> value = program.value_of(name);
    if (!value || (!value->is_string() && !value->is_number())) continue;
    const std::string text = value->is_string() ? value->as_string() : write_json_line(*value);
    if (text.find('\'') == std::string::npos && text.find('\n') == std::string::npos)
      values += name + "='" + text + "'\n";
  }
  return values;
}

}  // namespace

bool is_python(std::string_view text, const std::string& file) {
  if (file.ends_with(".py") || file.ends_with(kNotebook)) return true;
  const std::string_view first = text.substr(0, text.find('\n'));
  if (first.starts_with("#!")) return first.find("python") != std::string_view::npos;
  const std::size_t dot = file.rfind('.');
  return dot == std::string::npos && text.find("import ") != std::string_view::npos &&
         text.find("from_pretrained(") != std::string_view::npos;
}

ProgramText program_text(std::string_view text, const std::string& file) {
  ProgramText result;
  TextReader reader(result);
  const bool notebook =
      file.ends_with(kNotebook) || (text.starts_with('{') && text.find("\"cells\"") != std::string_view::npos);
  if (!notebook) {
    result.program = text;
    reader.add_lines(text);
    return result;
  }
  const Value tree = parse_json(text, file, JsonDialect::python);
  const Value* cells = tree.find("cells");
  if (cells != nullptr && cells->is_list())
    for (const Value& cell : cells->items())
      if (const std::string source = source_of(cell); !source.empty()) reader.add_cell(source);
  return result;
}

std::string whole_script(const ProgramText& text, const PythonProgram& program) {
  ActsOfProgram acts(program);
  return values_of_names(text.script, program) + acts.files() + text.script + acts.commands();
}

}  // namespace membill::io
