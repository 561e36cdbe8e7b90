// Releases of the programs that run a job, from the requirements and lock files beside it.
#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "base/text.h"
#include "io/importers/parts.h"
#include "io/text_file.h"

namespace membill::io {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 9> kFiles{"requirements.txt", "uv.lock",         "poetry.lock",
                                                 "pdm.lock",         "pylock.toml",     "Pipfile.lock",
                                                 "pyproject.toml",   "environment.yml", "environment.yaml"};
constexpr std::array<std::string_view, 8> kPrograms{"torch",     "transformers", "peft",         "trl",
                                                    "deepspeed", "accelerate",   "bitsandbytes", "liger-kernel"};
constexpr int kFoldersUp = 3;

bool is_version_char(char c) { return is_digit(c) || (c >= 'a' && c <= 'z') || c == '.' || c == '+'; }

std::string version_at(std::string_view text) {
  std::size_t end = 0;
  while (end < text.size() && is_version_char(text[end])) ++end;
  while (end > 0 && (text[end - 1] == '.' || text[end - 1] == '+')) --end;
  return end > 0 && is_digit(text.front()) ? std::string(text.substr(0, end)) : std::string();
}

// A line without what stands around a requirement: blanks, quotes, "- " of a list, a comma at the end.
std::string_view bare(std::string_view line) {
  line = trim(line);
  if (line.starts_with("- ")) line = trim(line.substr(2));
  while (!line.empty() && (line.front() == '"' || line.front() == '\'')) line.remove_prefix(1);
  return line;
}

// What follows `name` in a requirement; nothing when the line is about something else.
std::optional<std::string_view> after_name(std::string_view line, std::string_view name) {
  if (to_kebab(line.substr(0, name.size())) != name) return std::nullopt;
  line.remove_prefix(name.size());
  if (line.starts_with("[")) line.remove_prefix(std::min(line.size(), line.find(']') + 1));
  line = trim(line);
  if (!line.empty() && line.front() != '=' && line.front() != '~' && line.front() != '"') return std::nullopt;
  return line;
}

// "==0.24.0", "~=4.51", "=0.24" of conda: the release that is pinned; empty: none is.
std::string pinned(std::string_view rest) {
  for (const std::string_view sign : {"===", "==", "~=", "="}) {
    if (rest.starts_with(sign)) return version_at(bare(rest.substr(sign.size())));
  }
  return {};
}

// name = "trl", then version = "0.24.0" (uv.lock, poetry.lock); "trl": {..., "version": "==0.24.0"} (Pipfile.lock).
class Pins {
 public:
  void read(std::string_view text) {
    for (const std::string& line : split(text, '\n')) read_line(bare(line));
  }

  [[nodiscard]] const std::map<std::string, std::string>& found() const { return found_; }

 private:
  void read_line(std::string_view line) {
    if (line.starts_with("name = ")) return open_block(bare(line.substr(7)));
    if (line.starts_with("version")) return close_block(line.substr(7));
    for (const std::string_view program : kPrograms) {
      const std::optional<std::string_view> rest = after_name(line, program);
      if (!rest) continue;
      if (rest->starts_with("\": {")) block_ = program;
      add(program, pinned(*rest));
    }
  }

  void open_block(std::string_view name) {
    block_.clear();
    for (const std::string_view program : kPrograms) {
      if (name == std::string(program) + "\"") block_ = program;
    }
  }

  void close_block(std::string_view rest) {
    if (block_.empty()) return;
    const std::size_t digit = rest.find_first_of("0123456789");
    if (digit != std::string_view::npos) add(block_, version_at(rest.substr(digit)));
    block_.clear();
  }

  void add(std::string_view program, std::string version) {
    if (!version.empty()) found_.emplace(program, std::move(version));
  }

  std::string block_;
  std::map<std::string, std::string> found_;
};

std::map<std::string, std::string> pins_of(const fs::path& path) {
  Pins pins;
  try {
    pins.read(read_file(path.string()).text);
  } catch (const InputError&) {
    return {};  // a file that cannot be read says nothing
  }
  return pins.found();
}

// The pins of one folder's files; false: there are none.
bool take_pins(const fs::path& folder, Draft& draft) {
  std::string taken;
  for (const std::string_view name : kFiles) {
    std::error_code error;
    const fs::path path = folder / name;
    if (!fs::is_regular_file(path, error)) continue;
    for (const auto& [program, version] : pins_of(path)) {
      if (draft.plan.find("software." + program) != nullptr) continue;
      draft.set("software." + program, Value::of(version));
      draft.records.push_back({std::string(name), program, KeyState::read, version,
                               "release of what runs the job; --set software." + program});
      taken += (taken.empty() ? "" : ", ") + program + " " + version + " (" + std::string(name) + ")";
    }
  }
  if (!taken.empty()) draft.assume("releases as pinned beside it: " + taken);
  return !taken.empty();
}

}  // namespace

void read_software(Draft& draft) {
  fs::path folder = draft.folder.empty() ? fs::path(".") : fs::path(draft.folder);
  for (int up = 0; up <= kFoldersUp; ++up, folder /= "..") {
    if (take_pins(folder, draft)) return;
  }
}

void take_installed(const std::string& requirements, Draft& draft) {
  Pins pins;
  pins.read(requirements);
  std::string taken;
  for (const auto& [program, version] : pins.found()) {
    if (draft.plan.find("software." + program) != nullptr) continue;
    draft.set("software." + program, Value::of(version));
    taken += (taken.empty() ? "" : ", ") + program + " " + version;
  }
  if (!taken.empty()) draft.assume("releases as it installs them: " + taken);
}

void take_release(const std::string& program, const std::string& version, Draft& draft) {
  const std::string key = "software." + program;
  if (draft.plan.find(key) != nullptr) return;
  draft.set(key, Value::of(version));
  draft.assume(program + " " + version + " taken; " + (program == "trl" ? "--trl" : "--set " + key + "=...") +
               " says another");
}

}  // namespace membill::io
