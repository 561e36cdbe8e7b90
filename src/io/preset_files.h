// Presets: JSON files of one kind ("models", "hardware"), compiled into the program or in the user's own folders.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/text_file.h"

namespace membill::io {

// Folders that hold the user's own presets, in `models/` and `hardware/` inside of them; the first that has a name wins, and wins
// over the program's own preset of that name.
struct DataDirs {
  std::vector<std::string> folders;
};

// The folders of --data (empty: not given) and of $MEMBILL_DATA, in this order. Throws InputError when one is no folder.
[[nodiscard]] DataDirs data_dirs(const std::string& data_flag);

// The first `most` of `names` by commas; ", ..." stands for the others.
[[nodiscard]] std::string first_names(const std::vector<std::string>& names, std::size_t most);

class PresetFiles {
 public:
  // `kind` is "models" or "hardware".
  PresetFiles(std::string kind, DataDirs dirs) : kind_(std::move(kind)), dirs_(std::move(dirs)) {}

  // The preset whose file is called `name`.json. Throws InputError when a user's file cannot be read.
  [[nodiscard]] std::optional<TextFile> find(std::string_view name) const;
  // Names of all presets, sorted, each once.
  [[nodiscard]] std::vector<std::string> names() const;

 private:
  std::string kind_;
  DataDirs dirs_;
};

}  // namespace membill::io
