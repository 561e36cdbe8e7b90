#include "io/embedded.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "support/catch.h"
#include "support/places.h"

using membill::io::embedded_files;
using membill::io::EmbeddedFile;
using membill::io::find_embedded;

TEST_CASE("every data file is embedded byte for byte") {
  namespace fs = std::filesystem;
  for (const fs::directory_entry& folder : fs::directory_iterator(membill::test::in_source("data"))) {
    if (!folder.is_directory()) continue;
    const std::string folder_name = folder.path().filename().string();
    std::size_t count = 0;
    for (const fs::directory_entry& file : fs::directory_iterator(folder.path())) {
      if (file.path().extension() != ".json") continue;
      ++count;
      INFO(file.path().string());
      const EmbeddedFile* embedded = find_embedded(folder_name, file.path().stem().string());
      REQUIRE(embedded != nullptr);
      std::ifstream stream(file.path(), std::ios::binary);
      const std::string text{std::istreambuf_iterator<char>(stream), {}};
      CHECK(std::string(embedded->text) == text);
    }
    INFO(folder_name);
    CHECK(embedded_files(folder_name).size() == count);
    CHECK(std::ranges::is_sorted(embedded_files(folder_name), {}, &EmbeddedFile::name));
  }
}

TEST_CASE("an unknown embedded file or folder is not found") {
  CHECK(embedded_files("no-such-folder").empty());
  CHECK(find_embedded("no-such-folder", "x") == nullptr);
  CHECK(find_embedded("models", "no-such-model") == nullptr);
  CHECK(find_embedded("models", "") == nullptr);
}
