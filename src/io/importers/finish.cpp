// The end of an import: what several parts decide together.
#include <filesystem>
#include <system_error>

#include "base/text.h"
#include "io/importers/fine_tunes.h"
#include "io/importers/parts.h"
#include "io/model_source.h"

namespace membill::io {
namespace {

namespace fs = std::filesystem;

// Endings of hub names that say how the weights are stored, and the storage.
struct StoredEnding {
  std::string_view ending, quantization;
};
constexpr StoredEnding kStoredEndings[] = {
    {"-unsloth-bnb-4bit", "bnb-4bit"},
    {"-bnb-4bit", "bnb-4bit"},
    {"-gptq-int4", "gptq"},
    {"-gptq-int8", "gptq-int8"},
    {"-gptq", "gptq"},
    {"-awq", "awq"},
    {"-int4", "gptq"},
    {"-int8", "gptq-int8"},
    {"-awq-int4", "awq"},
    {"-aqlm-2bit-1x16", "aqlm"},
    {"-bf16", ""},
    {"-mxfp4", "mxfp4"},
    {"-fp8", "fp8"},
    {"-nvfp4", "nvfp4"},
};
// Endings of fine-tuned versions, whose shapes are those of the base.
constexpr std::string_view kTunedEndings[] = {"-instruct", "-chat-hf",  "-chat",    "-it",   "-base", "-hf",
                                              "-pt",       "-v0.1",     "-v0.2",    "-v0.3", "-2407", "-2501",
                                              "-2507",     "-thinking", "-deduped", "-fp16", "-bf16", "-dequantized"};
// What a base's name may end with where a mirror's does not.
constexpr std::string_view kBaseEndings[] = {"-v0.1", "-hf", "-instruct", "-pt", "-base"};
// Words inside of a name that change the training, not the shapes.
constexpr std::string_view kTunedWords[] = {"-coder", "-chat", "-math"};

bool cut_ending(std::string& name, std::string_view ending) {
  const std::string lower = to_lower(name);
  if (lower.size() <= ending.size() || !lower.ends_with(ending)) return false;
  name.resize(name.size() - ending.size());
  return true;
}

bool is_model_of(const std::string& hub_id, const std::string& lower_name) {
  return to_lower(hub_id.substr(hub_id.find('/') + 1)) == lower_name;
}

// The preset, or the alias of one, that a name without its owner means; empty for none.
std::string preset_of(const std::string& name, const std::vector<ModelPreset>& presets) {
  const std::string lower = to_lower(name);
  for (const ModelPreset& preset : presets) {
    if (lower == to_lower(preset.short_name) || is_model_of(preset.hub_id, lower)) return preset.short_name;
    for (const std::string& alias : preset.aliases) {
      if (is_model_of(alias, lower)) return alias;
    }
  }
  return {};
}

// Names of the same shapes, from the nearest on: without the owner, without "-bnb-4bit", without "-Instruct", as another owner says it.
std::vector<std::string> relatives(std::string name, std::string& quantization) {
  while (!name.empty() && name.back() == '/') name.pop_back();
  std::vector<std::string> result;
  name = name.substr(name.rfind('/') + 1);
  result.push_back(name);
  for (const StoredEnding& stored : kStoredEndings) {
    if (!cut_ending(name, stored.ending)) continue;
    quantization = stored.quantization;
    result.push_back(name);
    break;
  }
  for (bool cut = true; cut && result.size() < 8;) {
    cut = false;
    for (const std::string_view ending : kTunedEndings) {
      if (cut || !cut_ending(name, ending)) continue;
      result.push_back(name);
      cut = true;
    }
  }
  for (std::size_t i = 0, n = result.size(); i < n; ++i) {
    const std::string lower = to_lower(result[i]);
    if (lower.starts_with("meta-llama")) result.push_back(result[i].substr(5));
    if (lower.starts_with("llama")) result.push_back("Meta-" + result[i]);
    for (const std::string_view ending : kBaseEndings) result.push_back(result[i] + std::string(ending));
    for (const std::string_view word : kTunedWords) {
      const std::size_t at = lower.find(word);
      if (at != std::string::npos) result.push_back(result[i].substr(0, at) + result[i].substr(at + word.size()));
    }
  }
  return result;
}

std::string preset_of_relative(const std::string& name, const DataDirs& dirs, std::string& quantization) {
  const std::vector<ModelPreset> presets = all_models(dirs);
  for (const std::string& relative : relatives(name, quantization)) {
    if (std::string found = preset_of(relative, presets); !found.empty()) return found;
    if (std::string base = base_of_fine_tune(relative); !base.empty()) return base;
  }
  quantization.clear();
  return {};
}

bool is_there(const std::string& path) {
  std::error_code error;
  return !path.empty() && fs::exists(path, error);
}

std::optional<LoadedModel> try_load(const std::string& argument, const DataDirs& dirs) {
  try {
    return load_model(argument, dirs);
  } catch (const InputError&) {
    return std::nullopt;
  }
}

std::int64_t config_count(const LoadedModel& model, const char* key) {
  const Value* value = model.config.find(key);
  return value != nullptr && value->is_int() && value->as_int() > 0 ? value->as_int() : 0;
}

void set_stored_quantization(const std::string& method, Draft& draft) {
  static constexpr std::pair<std::string_view, std::string_view> kStored[] = {
      {"gptq", "gptq-int4"}, {"awq", "awq-int4"}, {"hqq", "hqq-int4"}, {"mxfp4", "mxfp4"}, {"fp8", "fp8"}};
  if (draft.quantized) return;
  if (method == "bnb-4bit" || method == "bitsandbytes") return set_bits(4, "nf4", true, true, draft);
  if (method == "mxfp4") {  // Transformers dequantises mxfp4 to bf16 for training
    draft.load_dtype = "bf16";
    return draft.assume("the mxfp4 weights are dequantised to bf16 for training");
  }
  for (const auto& [known, format] : kStored) {
    if (method != known) continue;
    draft.quantized = true;
    draft.set("weights", Value::of(std::string(format)));
    draft.set("kbit_prepare", Value::of(false));  // PEFT skips it for these
    return;
  }
  draft.warnings.push_back("the storage of the weights, " + method + ", is not modelled");
}

std::string compute_dtype(const Draft& draft) { return draft.bf16 ? "bf16" : draft.fp16 ? "fp16" : ""; }

void settle_deepspeed(Draft& draft) {
  const std::string compute = compute_dtype(draft);
  if (!draft.quantized) draft.set("weights", Value::of(compute.empty() ? "fp32" : compute));
  draft.set("precision", Value::of(compute.empty() ? "fp32" : "master-" + compute));
}

void settle_precision(Draft& draft) {
  if (draft.own_precision) return;
  if (plan_text(draft, "engine") == "deepspeed") return settle_deepspeed(draft);
  std::string load = draft.load_dtype;
  if (draft.fsdp_upcasts && !trains_adapters(draft)) load = "fp32";
  const std::string compute = compute_dtype(draft);
  if (!draft.quantized) draft.set("weights", Value::of(load));
  const std::string plain = load == "fp32" ? "fp32" : "pure-" + load;
  draft.set("precision", Value::of(compute.empty() ? plain : "amp-" + compute));
}

void settle_load_dtype(const ModelFacts& model, Draft& draft) {
  if (!model.quantization.empty()) set_stored_quantization(model.quantization, draft);
  if (draft.load_dtype != "auto") return;
  draft.load_dtype = model.stored_dtype;
  if (!draft.load_dtype.empty()) return;
  draft.load_dtype = "bf16";
  const bool upcast = draft.fsdp_upcasts && !trains_adapters(draft);
  if (!draft.own_precision && !draft.quantized && !upcast && plan_text(draft, "engine") != "deepspeed")
    draft.assume("the dtype of the checkpoint is not known: bf16 taken");
}

void settle_engine(Draft& draft) {
  const std::optional<std::int64_t> world = world_size(draft);
  const std::string engine = plan_text(draft, "engine");
  if (engine.empty()) {
    draft.set("engine", Value::of(world.value_or(1) > 1 ? "ddp" : "torch"));
  } else if (!world && engine != "torch") {
    draft.assume(draft.file + " does not say how many cards there are: 1 taken, --gpus says it");
  }
  if (plan_text(draft, "sharding.wrap") == "block" && trains_adapters(draft) && engine == "fsdp")
    draft.set("sharding.wrap", Value::of("peft"));
}

}  // namespace

ModelFacts find_model(const Draft& draft) {
  ModelFacts facts;
  const std::string name = draft.context.model ? *draft.context.model : draft.model.value_or("");
  if (name.empty()) return facts;
  facts.argument = name;
  const std::string beside = (fs::path(draft.folder) / name).string();
  if (!is_there(name) && !draft.folder.empty() && is_there(beside)) facts.argument = beside;
  std::optional<LoadedModel> loaded = try_load(facts.argument, draft.context.dirs);
  if (!loaded && !is_there(facts.argument)) {
    const std::string preset = preset_of_relative(name, draft.context.dirs, facts.quantization);
    if (!preset.empty()) loaded = try_load(preset, draft.context.dirs);
    if (loaded) facts.argument = preset;
  }
  if (!loaded) return facts;
  facts.known = true;
  if (!loaded->alias.empty() || to_lower(facts.argument) != to_lower(name)) facts.shapes_of = loaded->name;
  facts.stored_dtype = dtype_word(loaded->stored_dtype);
  if (facts.quantization.empty()) facts.quantization = loaded->quantization;
  facts.max_positions = config_count(*loaded, "max_position_embeddings");
  if (facts.max_positions == 0) facts.max_positions = config_count(*loaded, "n_positions");
  facts.hidden = config_count(*loaded, "hidden_size");
  return facts;
}

std::optional<std::int64_t> world_size(const Draft& draft) {
  return draft.context.gpus ? draft.context.gpus : draft.processes;
}

JobFile finish_draft(Draft& draft) {
  const ModelFacts model = find_model(draft);
  settle_load_dtype(model, draft);
  settle_engine(draft);
  settle_precision(draft);
  if (plan_text(draft, "attention") == "flash")
    draft.set("attention_mask", Value::of(false));  // padding is taken out before it
  if (!model.shapes_of.empty() && !draft.context.model && draft.model && !is_there(model.argument)) {
    draft.assume("model " + membill::quoted(*draft.model) + " has the shapes of the preset " + model.shapes_of);
  }
  JobFile job;
  job.file = draft.file;
  if (draft.model) job.model = model.argument.empty() || draft.context.model ? *draft.model : model.argument;
  if (!draft.model) job.config = std::move(draft.config);
  job.hardware.count = draft.processes;
  job.hardware.nodes = draft.nodes;
  job.plan = std::move(draft.plan);
  job.records = std::move(draft.records);
  job.assumptions = std::move(draft.assumptions);
  job.warnings = std::move(draft.warnings);
  return job;
}

}  // namespace membill::io
