#include "io/model_source.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "base/text.h"
#include "io/field_reader.h"
#include "io/hf_config.h"
#include "io/json_reader.h"
#include "io/safetensors.h"
#include "membill/catalog.h"

namespace membill::io {
namespace {

namespace fs = std::filesystem;

// The text of the first "name" of a preset, without reading the whole of it.
std::string scan_hub_id(std::string_view text) {
  constexpr std::string_view kKey = "\"name\"";
  const std::size_t key = text.find(kKey);
  if (key == std::string_view::npos) return {};
  const std::size_t open = text.find('"', key + kKey.size());
  if (open == std::string_view::npos) return {};
  const std::size_t close = text.find('"', open + 1);
  return close == std::string_view::npos ? std::string() : std::string(text.substr(open + 1, close - open - 1));
}

// Reads a file of data/models (schema: data/schema/model.json).
LoadedModel load_preset(const TextFile& file, const std::string& short_name) {
  const Value preset = parse_json(file.text, file.name, JsonDialect::python);
  LoadedModel model;
  model.name = short_name;
  model.file = file.name;
  model.source = "preset " + short_name;
  Problems problems;
  FieldReader reader(preset, file.name, "", problems);
  if (const std::optional<std::string> source = reader.text("source")) model.source += ": " + *source;
  for (const std::string_view key : {"name", "short", "torch_dtype_source", "released_weights"}) (void)reader.text(key);
  for (const std::string_view key : {"checked_against", "published", "published_active"}) (void)reader.value(key);
  reader.require("config");
  if (const Value* config = reader.value("config")) resolve_config(*config, model, problems);
  reader.finish();
  problems.throw_if_any();
  return model;
}

LoadedModel load_file(const std::string& path, const std::string& name, const std::string& folder) {
  const TextFile file = read_file(path);
  LoadedModel model;
  model.name = name;
  model.file = file.name;
  model.folder = folder;
  model.source = file.name;
  Problems problems;
  resolve_config(parse_json(file.text, file.name, JsonDialect::python), model, problems);
  problems.throw_if_any();
  return model;
}

// Says what a folder without config.json holds instead.
std::string hint_for_folder(const fs::path& folder) {
  std::error_code error;
  if (fs::exists(folder / "adapter_config.json", error)) return "it holds an adapter: name the base model instead";
  if (fs::exists(folder / "params.json", error))
    return "params.json is not read: convert the model to Hugging Face's form";
  return {};
}

bool is_same(std::string_view a, std::string_view b) { return to_lower(a) == to_lower(b); }

bool is_tail(std::string_view whole, std::string_view tail) {
  return whole.size() >= tail.size() && is_same(whole.substr(whole.size() - tail.size()), tail);
}

bool looks_like_a_path(std::string_view text) {
  return text.find('/') != std::string_view::npos || text.ends_with(".json") || text.ends_with(".yaml") ||
         text.front() == '.';
}

// The preset that `text` names, by exact name first, then by its tail.
std::vector<ModelPreset> presets_named(std::string_view text, const std::vector<ModelPreset>& presets) {
  std::vector<ModelPreset> found;
  for (const ModelPreset& preset : presets) {
    if (is_same(preset.short_name, text) || is_same(preset.hub_id, text)) return {preset};
    if (is_tail(preset.short_name, text) || is_tail(preset.hub_id, text)) found.push_back(preset);
  }
  return found;
}

std::string names_of(const std::vector<ModelPreset>& presets) {
  constexpr std::size_t kMost = 8;
  std::string result;
  for (std::size_t i = 0; i < std::min(kMost, presets.size()); ++i)
    result += (i == 0 ? "" : ", ") + presets[i].short_name;
  return presets.size() > kMost ? result + ", ..." : result;
}

[[noreturn]] void refuse_name(std::string_view text, const std::string& key, const std::vector<ModelPreset>& presets) {
  std::vector<std::string_view> names;
  for (const ModelPreset& preset : presets) {
    names.push_back(preset.short_name);
    names.push_back(preset.hub_id);
  }
  const std::string_view nearest = nearest_word(text, names);
  std::string message =
      quoted(text) + (looks_like_a_path(text) ? " is no file and no preset" : " is no preset and no file");
  throw InputError(Problem{"", key, std::move(message), std::string(nearest)});
}

LoadedModel load_named(std::string_view text, const DataDirs& dirs, const std::string& key) {
  const PresetFiles files("models", dirs);
  if (const std::optional<TextFile> file = files.find(text)) return load_preset(*file, std::string(text));
  const std::vector<ModelPreset> presets = all_models(dirs);
  const std::vector<ModelPreset> found = presets_named(text, presets);
  if (found.empty()) refuse_name(text, key, presets);
  if (found.size() > 1) {
    throw InputError(Problem{"", key, quoted(text) + " may be more than one preset", names_of(found)});
  }
  return load_preset(files.find(found.front().short_name).value(), found.front().short_name);
}

}  // namespace

LoadedModel load_model(std::string_view argument, const DataDirs& dirs, const std::string& key) {
  const std::string text(argument);
  if (text.empty()) throw InputError(Problem{"", key, "is empty", ""});
  if (text == "-") return load_file(text, "standard input", "");
  std::error_code error;
  const fs::path path(text);
  const bool is_preset = !looks_like_a_path(text) && PresetFiles("models", dirs).find(text).has_value();
  if (fs::is_directory(path, error)) {
    const fs::path config = path / "config.json";
    if (fs::exists(config, error)) return load_file(config.string(), text, text);
    if (!is_preset)
      throw InputError(Problem{last_name(text), "", "the folder holds no config.json", hint_for_folder(path)});
  } else if (!is_preset && fs::exists(path, error)) {
    const std::string folder = path.has_parent_path() ? path.parent_path().string() : ".";
    return load_file(text, text, fs::is_regular_file(path, error) ? folder : "");
  }
  return load_named(text, dirs, key);
}

LoadedModel load_config(const Value& config, const std::string& file, const std::string& name) {
  LoadedModel model;
  model.name = name;
  model.file = file;
  model.source = file.empty() ? name : file + ": " + name;
  Problems problems;
  resolve_config(config, model, problems);
  problems.throw_if_any();
  return model;
}

ModelSpec describe_model(const LoadedModel& model) {
  const Family* family = find_family(model.model_type);
  if (family == nullptr) throw InputError(Problem{model.file, "model_type", "is no known model type", ""});
  Problems found;
  ModelSpec spec = family->describe(model.config, found);
  Problems problems;
  for (Problem problem : found.list()) {
    if (problem.file.empty()) problem.file = model.file;
    if (!model.part.empty() && !problem.key.empty()) problem.key = model.part + "." + problem.key;
    problems.add(std::move(problem));
  }
  problems.throw_if_any();
  spec.name = model.name;
  spec.source = model.source;
  spec.stored_dtype = model.stored_dtype;
  spec.quantization = model.quantization;
  spec.not_counted = model.not_counted;
  spec.warnings.insert(spec.warnings.end(), model.warnings.begin(), model.warnings.end());
  if (!model.folder.empty()) {
    if (const std::optional<Checkpoint> checkpoint = read_checkpoint(model.folder)) {
      const std::vector<std::string> warnings = compare_with_census(*checkpoint, spec);
      spec.warnings.insert(spec.warnings.end(), warnings.begin(), warnings.end());
    }
  }
  return spec;
}

std::vector<ModelPreset> all_models(const DataDirs& dirs) {
  const PresetFiles files("models", dirs);
  std::vector<ModelPreset> result;
  for (const std::string& name : files.names()) {
    if (const std::optional<TextFile> file = files.find(name))
      result.push_back(ModelPreset{name, scan_hub_id(file->text)});
  }
  return result;
}

}  // namespace membill::io
