#include "io/importers/called_script.h"

#include <filesystem>
#include <system_error>

#include "io/importers/launch_programs.h"
#include "io/importers/shell_scope.h"
#include "io/text_file.h"
#include "membill/problem.h"

namespace membill::io {
namespace {

namespace fs = std::filesystem;

bool is_script(const std::string& path) {
  return path.ends_with(".sh") || path.ends_with(".bash") || path.ends_with(".slurm") || path.ends_with(".sbatch");
}

bool is_shell(const std::string& name) {
  return name == "bash" || name == "sh" || name == "zsh" || name == "source" || name == "." || name == "sbatch";
}

std::string existing(const std::string& path, const std::string& folder) {
  std::error_code error;
  if (fs::is_regular_file(path, error)) return path;
  const std::string beside = (fs::path(folder) / path).string();
  return !folder.empty() && fs::is_regular_file(beside, error) ? beside : std::string();
}

std::string in_quotes(const std::string& word) {
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

}  // namespace

std::optional<CalledScript> called_script(const ShellCommand& command, const std::string& folder) {
  const std::vector<std::string>& words = command.words;
  CalledScript called;
  called.variables = command.variables;
  std::size_t at = 0;
  for (; at < words.size() && is_assignment(words[at]); ++at) {
    const std::size_t equals = words[at].find('=');
    called.variables.set(words[at].substr(0, equals), words[at].substr(equals + 1));
  }
  const bool by_shell = at < words.size() && is_shell(base_name(words[at]));
  if (by_shell) ++at;
  for (; by_shell && at < words.size() && words[at].starts_with('-'); ++at)
    if (!is_option(words[at]) && words[at].find('c') != std::string::npos) return std::nullopt;
  if (at >= words.size() || (!by_shell && !is_script(words[at]))) return std::nullopt;
  const std::string path = existing(words[at], folder);
  if (path.empty()) return std::nullopt;
  try {
    const TextFile file = read_file(path);
    called.text = "set --";
    for (std::size_t i = at + 1; i < words.size(); ++i) called.text += " " + in_quotes(words[i]);
    called.text += "\n" + file.text;
    called.file = file.name;
    called.folder = fs::path(path).parent_path().string();
  } catch (const InputError&) {
    return std::nullopt;
  }
  return called;
}

}  // namespace membill::io
