#include "io/preset_files.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "base/text.h"
#include "io/embedded.h"
#include "membill/problem.h"

namespace membill::io {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view kEnding = ".json";

bool can_be_a_file_name(std::string_view name) {
  return !name.empty() && name.front() != '.' &&
         name.find_first_of(std::string_view("/\0", 2)) == std::string_view::npos;
}

void add_folder(DataDirs& dirs, const std::string& folder, const std::string& given_by) {
  std::error_code error;
  if (!fs::is_directory(folder, error))
    throw InputError(Problem{given_by, "", membill::quoted(folder) + " is no folder", ""});
  dirs.folders.push_back(folder);
}

}  // namespace

DataDirs data_dirs(const std::string& data_flag) {
  DataDirs dirs;
  if (!data_flag.empty()) add_folder(dirs, data_flag, "--data");
  const char* variable = std::getenv("MEMBILL_DATA");  // NOLINT(concurrency-mt-unsafe): before any thread starts
  if (variable != nullptr && *variable != '\0') add_folder(dirs, variable, "$MEMBILL_DATA");
  return dirs;
}

std::string first_names(const std::vector<std::string>& names, std::size_t most) {
  if (names.size() <= most) return join(names, ", ");
  return join({names.begin(), names.begin() + static_cast<std::ptrdiff_t>(most)}, ", ") + ", ...";
}

std::optional<TextFile> PresetFiles::find(std::string_view name) const {
  if (!can_be_a_file_name(name)) return std::nullopt;
  const std::string file_name = std::string(name) + std::string(kEnding);
  for (const std::string& folder : dirs_.folders) {
    const fs::path path = fs::path(folder) / kind_ / file_name;
    std::error_code error;
    if (fs::exists(path, error)) return read_file(path.string());
  }
  const EmbeddedFile* embedded = find_embedded(kind_, name);
  if (embedded == nullptr) return std::nullopt;
  return TextFile{file_name, std::string(embedded->text)};
}

std::vector<std::string> PresetFiles::names() const {
  std::vector<std::string> result;
  for (const EmbeddedFile& file : embedded_files(kind_)) result.emplace_back(file.name);
  for (const std::string& folder : dirs_.folders) {
    std::error_code error;
    for (const fs::directory_entry& entry : fs::directory_iterator(fs::path(folder) / kind_, error)) {
      const fs::path& path = entry.path();
      if (path.extension() == kEnding && can_be_a_file_name(path.stem().string()))
        result.push_back(path.stem().string());
    }
  }
  std::sort(result.begin(), result.end());
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

}  // namespace membill::io
