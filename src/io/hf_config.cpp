#include "io/hf_config.h"

#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "io/embedded.h"
#include "io/json_reader.h"
#include "io/quantization_config.h"
#include "membill/catalog.h"

namespace membill::io {
namespace {

// Where wrappers keep their language model.
constexpr std::array<std::string_view, 3> kTextParts{"text_config", "llm_config", "language_config"};
// Maps of a config that are no part of the network.
constexpr std::array<std::string_view, 3> kSettings{"quantization_config", "generation_config", "compression_config"};
// Parts that configs of the first generation name without "_config".
constexpr std::array<std::string_view, 2> kOldParts{"visual", "audio"};

constexpr std::string_view kGenericHint = "or describe it: --params 7e9 --hidden 4096 --layers 32";

template <std::size_t n>
bool is_among(std::string_view key, const std::array<std::string_view, n>& keys) {
  for (const std::string_view known : keys) {
    if (known == key) return true;
  }
  return false;
}

std::string text_at(const Value& map, std::string_view key) {
  const Value* found = map.find(key);
  return found != nullptr && found->is_string() ? found->as_string() : std::string();
}

const Value* map_at(const Value& map, std::string_view key) {
  const Value* found = map.find(key);
  return found != nullptr && found->is_map() ? found : nullptr;
}

// The key of the text part; empty: there is none.
std::string_view text_part_key(const Value& config) {
  for (const std::string_view key : kTextParts) {
    if (map_at(config, key) != nullptr) return key;
  }
  return {};
}

// The class defaults of a model type, or null: none are known.
Value defaults_of(std::string_view model_type) {
  const EmbeddedFile* file = find_embedded("defaults", model_type);
  return file == nullptr ? Value() : parse_json(file->text, std::string(model_type) + ".json");
}

std::string default_text_type(const Value& defaults) {
  const Value* parts = map_at(defaults, "parts");
  return parts == nullptr ? std::string() : text_at(*parts, "text_config");
}

bool is_left_out(const Value::Entry& entry) {
  const auto& [key, value] = entry;
  if (!value.is_map() || is_among(key, kTextParts) || is_among(key, kSettings)) return false;
  return is_among(key, kOldParts) || (key.size() > 7 && key.ends_with("_config"));
}

// Parts of the file, and parts that the class builds although the file does not speak of them.
std::vector<std::string> left_out_parts(const Value& config, const Value* class_parts) {
  std::vector<std::string> result;
  for (const Value::Entry& entry : config.entries()) {
    if (is_left_out(entry)) result.push_back(entry.first);
  }
  if (class_parts == nullptr) return result;
  for (const Value::Entry& part : class_parts->entries()) {
    if (!is_among(part.first, kTextParts) && config.find(part.first) == nullptr) result.push_back(part.first);
  }
  return result;
}

std::string dtype_of(const Value& config) {
  std::string written = text_at(config, "dtype");
  if (written.empty()) written = text_at(config, "torch_dtype");
  return written.starts_with("torch.") ? written.substr(6) : written;
}

// The model type that a config without one must mean, by the class that it names; empty: none.
std::string type_of_architecture(const Value& config) {
  const Value* classes = config.find("architectures");
  if (classes == nullptr || !classes->is_list()) return {};
  for (const Value& name : classes->items()) {
    for (const Family& family : families()) {
      if (name.is_string() && name.as_string() == family.class_name) return std::string(family.model_type);
    }
  }
  return {};
}

std::string type_of(const Value& config, LoadedModel& model, Problems& problems) {
  const Value* written = config.find("model_type");
  if (written != nullptr && !written->is_null()) {
    if (written->is_string() && !written->as_string().empty()) return written->as_string();
    problems.add(Problem{model.file, "model_type", "needs the name of a model type", ""});
    return {};
  }
  std::string type = type_of_architecture(config);
  if (type.empty()) {
    problems.add(
        Problem{model.file, "model_type", "is missing: this is no config.json of a model", std::string(kGenericHint)});
  } else {
    model.warnings.push_back(model.file + ": model_type is missing; taken from architectures: " + type);
  }
  return type;
}

// A wrapper's text part as a config of its own. Its head is tied as the wrapper says, in the file or by its class.
Value text_config_of(const Value& config, const Value* part, const std::string& type, const Value& wrapper_defaults) {
  Value text = part != nullptr ? *part : config;
  text.set("model_type", Value::of(type));
  const Value* tied = config.find("tie_word_embeddings");
  if (tied == nullptr && map_at(wrapper_defaults, "defaults") != nullptr) {
    tied = wrapper_defaults.find("defaults")->find("tie_word_embeddings");
  }
  if (tied != nullptr && !tied->is_null()) text.set("tie_word_embeddings", *tied);
  return text;
}

// The vision part as a config of its own: the file's, or what the class builds when the file does not speak of it (of a type that
// other classes share, each builds another one: not known). Its type is the file's where that has class defaults, else the wrapper's.
void read_vision_part(const Value& config, const Value& defaults, const std::string& type, LoadedModel& model) {
  const Value* parts = map_at(defaults, "parts");
  const Value* written = map_at(config, "vision_config");
  const std::string by_class = parts == nullptr ? std::string() : text_at(*parts, "vision_config");
  const std::string by_file = written == nullptr ? std::string() : text_at(*written, "model_type");
  model.vision_type = defaults_of(by_file).is_map() && by_file != type ? by_file : by_class;
  if (written == nullptr && !by_class.starts_with(type)) model.vision_type.clear();
  if (model.vision_type.empty()) return;
  const Value own_defaults = defaults_of(model.vision_type);
  const Value part = written == nullptr ? Value::make_map() : *written;
  model.vision = own_defaults.is_map() ? with_class_defaults(part, own_defaults) : part;
  model.wrapper = with_class_defaults(config, defaults);
}

void refuse_type(const std::string& type, const std::string& key, const LoadedModel& model, Problems& problems) {
  std::vector<std::string_view> known;
  for (const Family& family : families()) known.push_back(family.model_type);
  const std::string_view nearest = nearest_word(type, known);
  std::string hint = nearest.empty() ? std::string() : "nearest known: " + std::string(nearest) + "; ";
  problems.add(Problem{model.file, key, quoted(type) + " is no model type that membill knows",
                       hint + std::string(kGenericHint)});
}

}  // namespace

void resolve_config(const Value& config, LoadedModel& model, Problems& problems) {
  if (!config.is_map()) {
    const std::string kind(Value::kind_name(config.kind()));
    return problems.add(Problem{model.file, "", "a config is a map, not " + kind, ""});
  }
  const std::string type = type_of(config, model, problems);
  if (type.empty()) return;
  const Value defaults = defaults_of(type);
  const std::string_view part_key = text_part_key(config);
  const Value* part = map_at(config, part_key);
  const std::string class_text_type = default_text_type(defaults);
  const bool is_wrapper = find_family(type) == nullptr && (part != nullptr || !class_text_type.empty());
  std::string text_type = part != nullptr ? text_at(*part, "model_type") : std::string();
  if (find_family(text_type) == nullptr && !class_text_type.empty()) text_type = class_text_type;

  model.model_type = is_wrapper ? text_type : type;
  if (find_family(model.model_type) == nullptr) {
    const bool blame_part = is_wrapper && !text_type.empty();
    const std::string key = blame_part ? std::string(part_key) + ".model_type" : "model_type";
    return refuse_type(blame_part ? text_type : type, key, model, problems);
  }
  if (is_wrapper) model.part = part_key, model.wrapper_type = type;
  if (is_wrapper && defaults.is_map()) read_vision_part(config, defaults, type, model);
  model.not_counted = left_out_parts(config, is_wrapper ? map_at(defaults, "parts") : nullptr);
  const Value own = is_wrapper ? text_config_of(config, part, text_type, defaults) : config;
  const Value own_defaults = is_wrapper ? defaults_of(text_type) : defaults;
  model.config = own_defaults.is_map() ? with_class_defaults(own, own_defaults) : own;
  model.stored_dtype = dtype_of(config).empty() ? dtype_of(own) : dtype_of(config);
  model.stored = read_quantization(config);
  if (model.stored.method.empty()) model.stored = read_quantization(own);
}

}  // namespace membill::io
