#include "io/runtime_file.h"

#include <filesystem>
#include <fstream>
#include <system_error>

#include "base/text.h"
#include "io/json_reader.h"
#include "io/value_writer.h"
#include "membill/problem.h"

namespace membill::io {
namespace {

namespace fs = std::filesystem;

// The tree with one more text in source.runtime.
void add_source(Value& tree, const std::string& text) {
  Value source = tree.find("source") != nullptr ? *tree.find("source") : Value::make_map();
  std::vector<Value> texts;
  if (const Value* known = source.find("runtime"); known != nullptr && known->is_list()) texts = known->items();
  texts.push_back(Value::of(text));
  source.set("runtime", Value::make_list(std::move(texts)));
  tree.set("source", std::move(source));
}

}  // namespace

std::string keep_runtime_line(const DataDirs& dirs, const std::string& short_name, std::string_view key,
                              std::int64_t mib, const std::string& source) {
  if (dirs.folders.empty())
    throw InputError(Problem{"", "--data", "is missing: the figure is kept in a folder of your own", "--data DIR"});
  const std::optional<TextFile> preset = PresetFiles("hardware", dirs).find(short_name);
  if (!preset)
    throw InputError(Problem{"", "--gpu",
                             membill::quoted(short_name) + " is no card with a file: a size cannot be calibrated",
                             "--gpu NAME"});
  Value tree = parse_json(preset->text, preset->name);
  tree.set(key, Value::of(mib));
  add_source(tree, source);
  const fs::path folder = fs::path(dirs.folders.front()) / "hardware";
  std::error_code error;
  fs::create_directories(folder, error);
  std::string path = (folder / (short_name + ".json")).string();
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << write_json(tree);
  file.close();
  if (!file) throw InputError(Problem{path, "", "cannot be written", ""});
  return path;
}

}  // namespace membill::io
