#include "io/model_source.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "base/text.h"
#include "io/embedded.h"
#include "io/field_reader.h"
#include "io/hf_config.h"
#include "io/json_reader.h"
#include "io/safetensors.h"
#include "membill/catalog.h"
#include "membill/vision_part.h"

namespace membill::io {
namespace {

namespace fs = std::filesystem;

// The text in quotes that begins at or after `from`, which is moved behind it; empty when there is none.
std::string_view scan_text(std::string_view text, std::size_t& from) {
  const std::size_t open = text.find('"', from);
  const std::size_t close = open == std::string_view::npos ? open : text.find('"', open + 1);
  from = close == std::string_view::npos ? text.size() : close + 1;
  return close == std::string_view::npos ? std::string_view() : text.substr(open + 1, close - open - 1);
}

// The text of the first "name" of a preset, without reading the whole of it.
std::string_view scan_hub_id(std::string_view text) {
  constexpr std::string_view kKey = "\"name\"";
  std::size_t at = text.find(kKey);
  if (at == std::string_view::npos) return {};
  at += kKey.size();
  return scan_text(text, at);
}

// The keys of a preset's "aliases", likewise.
std::vector<std::string> scan_aliases(std::string_view text) {
  constexpr std::string_view kKey = "\"aliases\"";
  std::vector<std::string> result;
  std::size_t at = text.find(kKey);
  if (at == std::string_view::npos) return result;
  int depth = 0;
  for (at += kKey.size(); at < text.size();) {
    const char c = text[at];
    if (c == '"') {
      const std::string_view word = scan_text(text, at);
      if (depth == 1) result.emplace_back(word);
      continue;
    }
    depth += c == '{' ? 1 : c == '}' ? -1 : 0;
    ++at;
    if (c == '}' && depth == 0) break;
  }
  return result;
}

// The preset's config as the checkpoint `alias` has it.
void apply_alias(const Value& aliases, const std::string& alias, Value& config) {
  const Value* changes = aliases.is_map() ? aliases.find(alias) : nullptr;
  if (changes == nullptr || !changes->is_map()) return;
  for (const auto& [key, value] : changes->entries()) config.set(key, value);
}

// Reads a file of data/models (schema: data/schema/model.schema.json); `alias`: the checkpoint of its "aliases" that is meant.
LoadedModel load_preset(const TextFile& file, const std::string& short_name, const std::string& alias = {}) {
  const Value preset = parse_json(file.text, file.name, JsonDialect::python);
  LoadedModel model;
  model.name = short_name;
  model.file = file.name;
  model.alias = alias;
  model.source = "preset " + short_name;
  Problems problems;
  FieldReader reader(preset, file.name, "", problems);
  if (const std::optional<std::string> source = reader.text("source")) model.source += ": " + *source;
  for (const std::string_view key : {"name", "short", "torch_dtype_source", "aliases_source", "released_weights"})
    (void)reader.text(key);
  for (const std::string_view key : {"checked_against", "published", "published_active"}) (void)reader.value(key);
  reader.require("config");
  const Value* aliases = reader.value("aliases");
  if (const Value* written = reader.value("config")) {
    Value config = *written;
    if (aliases != nullptr && !alias.empty()) apply_alias(*aliases, alias, config);
    resolve_config(config, model, problems);
  }
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

bool looks_like_a_path(std::string_view text) {
  return text.find('/') != std::string_view::npos || text.ends_with(".json") || text.ends_with(".yaml") ||
         text.front() == '.';
}

std::string names_of(const std::vector<NamedPreset>& presets) {
  std::vector<std::string> names;
  names.reserve(presets.size());
  for (const NamedPreset& preset : presets) names.push_back(preset.preset.short_name);
  return first_names(names, 8);
}

[[noreturn]] void refuse_name(std::string_view text, const std::string& key, const std::vector<ModelPreset>& presets) {
  std::string message =
      quoted(text) + (looks_like_a_path(text) ? " is no file and no preset" : " is no preset and no file");
  if (const std::vector<NamedPreset> longer = presets_beginning(text, presets); !longer.empty())
    throw InputError(Problem{"", key, std::move(message), names_of(longer)});
  std::vector<std::string_view> names;
  for (const ModelPreset& preset : presets) {
    names.push_back(preset.short_name);
    names.push_back(preset.hub_id);
    names.insert(names.end(), preset.aliases.begin(), preset.aliases.end());
  }
  throw InputError(Problem{"", key, std::move(message), std::string(nearest_word(text, names))});
}

// A copy's model: the preset that its name leads to, stored as its name says.
LoadedModel load_related(std::string_view text, const NamedPreset& related, const PresetFiles& files) {
  const std::string& name = related.preset.short_name;
  const std::string alias = related.alias.ends_with('*') ? std::string() : related.alias;
  LoadedModel model = load_preset(files.find(name).value(), name, alias);
  model.related = true;
  if (model.stored.method.empty()) model.stored = storage_named(text);
  model.warnings.push_back(quoted(text) + " has the shapes of the preset " + name);
  return model;
}

// The short name of the preset of just this hub id, where no folder of the user's can have another.
std::string preset_of_hub_id(std::string_view hub_id, const DataDirs& dirs) {
  if (!dirs.folders.empty()) return {};
  for (const EmbeddedFile& file : embedded_files("models"))
    if (scan_hub_id(file.text) == hub_id) return std::string(file.name);
  return {};
}

LoadedModel load_named(std::string_view text, const DataDirs& dirs, const std::string& key) {
  const PresetFiles files("models", dirs);
  if (const std::optional<TextFile> file = files.find(text)) return load_preset(*file, std::string(text));
  if (const std::string name = preset_of_hub_id(text, dirs); !name.empty())
    return load_preset(files.find(name).value(), name);
  const std::vector<ModelPreset> presets = all_models(dirs);
  const std::vector<NamedPreset> found = presets_named(text, presets);
  if (found.size() != 1) {
    if (const std::optional<NamedPreset> related = related_preset(text, presets))
      return load_related(text, *related, files);
    if (const std::optional<NamedPreset> base = stated_base(text, presets)) return load_related(text, *base, files);
  }
  if (found.empty()) refuse_name(text, key, presets);
  if (found.size() > 1) {
    throw InputError(Problem{"", key, quoted(text) + " may be more than one preset", names_of(found)});
  }
  const std::string& name = found.front().preset.short_name;
  return load_preset(files.find(name).value(), name, found.front().alias);
}

// The weights of the vision part, where its class is known.
bool add_vision(const LoadedModel& model, ModelSpec& spec, Problems& problems) {
  if (model.vision_type.empty()) return false;
  Problems found;
  const VisionPart part{model.wrapper_type, model.vision_type, model.wrapper, model.vision};
  if (!add_vision_part(spec, part, found)) return false;
  for (Problem problem : found.list()) {
    problem.file = model.file;
    problem.key = "vision_config." + problem.key;
    problems.add(std::move(problem));
  }
  return true;
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
  const bool sees = add_vision(model, spec, problems);
  if (const std::string_view name = wrapper_class(model.wrapper_type); !name.empty()) spec.class_name = name;
  problems.throw_if_any();
  spec.labels = classifier_labels(model.config);
  spec.name = model.name;
  spec.source = model.source;
  spec.stored_dtype = model.stored_dtype;
  spec.stored = model.stored;
  for (const std::string& part : model.not_counted)
    if (!sees || part != "vision_config") spec.not_counted.push_back(part);
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
      result.push_back(ModelPreset{name, std::string(scan_hub_id(file->text)), scan_aliases(file->text)});
  }
  return result;
}

}  // namespace membill::io
