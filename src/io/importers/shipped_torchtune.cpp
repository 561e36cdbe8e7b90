#include "io/importers/shipped_torchtune.h"

#include <filesystem>
#include <string_view>
#include <system_error>

#include "io/embedded.h"
#include "io/json_reader.h"

namespace membill::io {

std::optional<Value> shipped_torchtune(const std::string& name) {
  constexpr std::string_view kFolder = "recipes/configs/", kEnding = ".yaml";
  std::string stem = name;
  if (stem.ends_with(kEnding)) {
    std::error_code error;
    if (std::filesystem::exists(stem, error)) return std::nullopt;
    stem.resize(stem.size() - kEnding.size());
  }
  if (const std::size_t at = stem.find(kFolder); at != std::string::npos) stem.erase(0, at + kFolder.size());
  const EmbeddedFile* table = find_embedded("torchtune", "configs");
  if (table == nullptr) return std::nullopt;
  const Value tree = parse_json(table->text, "configs.json");
  const Value* configs = tree.find("configs");
  const Value* found = configs == nullptr ? nullptr : configs->find(stem);
  return found == nullptr ? std::nullopt : std::optional(*found);
}

}  // namespace membill::io
