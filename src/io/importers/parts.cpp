#include "io/importers/parts.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"
#include "membill/catalog.h"

namespace membill::io {
namespace {

struct Name {
  std::string_view from, to;
};

constexpr std::array kAttentions{Name{"sdpa", "sdpa"},
                                 Name{"auto", "sdpa"},
                                 Name{"eager", "eager"},
                                 Name{"disabled", "eager"},
                                 Name{"xformers", "mem-efficient"},
                                 Name{"mem-efficient", "mem-efficient"},
                                 Name{"fa2", "flash"},
                                 Name{"fa3", "flash"},
                                 Name{"flash", "flash"},
                                 Name{"flash-attn", "flash"},
                                 Name{"flash-attention", "flash"},
                                 Name{"flash-attention-2", "flash"},
                                 Name{"flash-attention2", "flash"},
                                 Name{"flash-attention-3", "flash"},
                                 Name{"flash-attention-4", "flash"},
                                 Name{"flash-attention-v2", "flash"},
                                 Name{"flash-attn-2", "flash"},
                                 Name{"flash-attn-3", "flash"},
                                 Name{"flash-attn-4", "flash"}};
// Kernels that keep what flash keeps: q, k, v, the output and a statistic of each row.
constexpr std::array kLikeFlash{"flex-attention", "sage", "sage-attention", "kernels-community", "flash-mla"};

constexpr std::array kOptimizers{Name{"torch.optim.AdamW", "adamw"},
                                 Name{"optimi_adamw", "adamw"},
                                 Name{"adamw_anyprecision", "adamw-anyprecision"},
                                 Name{"OneBitAdam", "adamw"},
                                 Name{"OnebitAdam", "adamw"},
                                 Name{"ZeroOneAdam", "adamw"},
                                 Name{"OneBitLamb", "lamb"},
                                 Name{"OnebitLamb", "lamb"},
                                 Name{"FusedAdam", "adamw_torch_fused"},
                                 Name{"bitsandbytes.optim.PagedAdamW8bit", "paged_adamw_8bit"},
                                 Name{"bitsandbytes.optim.PagedAdamW", "paged_adamw_32bit"},
                                 Name{"bitsandbytes.optim.AdamW8bit", "adamw_8bit"},
                                 Name{"bitsandbytes.optim.AdamW", "adamw"},
                                 Name{"torch.optim.SGD", "sgd"},
                                 Name{"torch.optim.Adam", "adam"},
                                 Name{"torchao.prototype.low_bit_optim.AdamW8bit", "adamw_torch_8bit"},
                                 Name{"torchao.prototype.low_bit_optim.AdamW4bit", "adamw_torch_4bit"},
                                 Name{"torchao.optim.AdamW8bit", "adamw_torch_8bit"},
                                 Name{"torchao.optim.AdamW4bit", "adamw_torch_4bit"},
                                 Name{"torchao.prototype.low_bit_optim.CPUOffloadOptimizer", "cpu-adam"},
                                 Name{"ao_adamw_8bit", "adamw_torch_8bit"},
                                 Name{"ao_adamw_4bit", "adamw_torch_4bit"},
                                 Name{"q_galore_adamw8bit", "q_galore"}};

bool starts_like_flash(const std::string& kebab) {
  for (const char* name : kLikeFlash) {
    if (kebab.starts_with(name)) return true;
  }
  return false;
}

void read_allocator(const std::string& text, Draft& draft) {
  const Value fields = allocator_fields(text);
  for (const auto& [key, value] : fields.entries()) draft.set("allocator." + key, value);
}

// A comma inside of brackets belongs to its option.
std::vector<std::string> allocator_options(const std::string& text) {
  std::vector<std::string> options(1);
  int open = 0;
  for (const char c : text) {
    open += (c == '[') - (c == ']');
    if (c == ',' && open == 0)
      options.emplace_back();
    else
      options.back() += c;
  }
  return options;
}

}  // namespace

Value texts_value(const std::vector<std::string>& texts) {
  std::vector<Value> items;
  items.reserve(texts.size());
  for (const std::string& text : texts) items.push_back(Value::of(text));
  return Value::make_list(std::move(items));
}

void set_lora(const LoraArguments& lora, Draft& draft) {
  draft.set("method", Value::of(lora.dora ? "dora" : "lora"));
  draft.set("adapter.rank", lora.rank);
  draft.set("adapter.alpha", lora.alpha);
  if (lora.dropout) draft.set("adapter.dropout", Value::of(*lora.dropout));
  std::vector<std::string> targets = lora.targets;
  if (targets.size() == 1 && (to_kebab(targets[0]) == "all" || to_kebab(targets[0]) == "all-linear"))
    targets = {"all-linear"};
  draft.set("adapter.targets", texts_value(targets));
  if (!lora.modules_to_save.empty()) draft.set("adapter.modules_to_save", texts_value(lora.modules_to_save));
  if (!lora.exclude.empty()) draft.set("adapter.exclude", texts_value(lora.exclude));
  if (!lora.layers.is_null()) draft.set("adapter.layers", lora.layers);
  if (!lora.ranks.is_null()) draft.set("adapter.rank_pattern", lora.ranks);
}

Value read_pattern(KeyReader& reader, std::string_view key) {
  const Value* given = reader.given(key);
  if (given == nullptr) return {};
  if (given->is_map()) return given->entries().empty() ? Value() : *given;
  reader.problem(key, "needs a map from names of modules to numbers, not " + value_text(*given));
  return {};
}

std::string in_text_part(std::string name) {
  for (const std::string_view part : {"language_model.", "language_model\\."}) {
    for (std::size_t at = name.find(part); at != std::string::npos; at = name.find(part, at))
      name.erase(at, part.size());
  }
  return name;
}

std::string in_new_names(std::string name) {
  constexpr std::string_view kOld = "block_sparse_moe";
  if (const std::size_t at = name.find(kOld); at != std::string::npos) name.replace(at, kOld.size(), "mlp");
  return in_text_part(std::move(name));
}

std::vector<std::string> read_targets(KeyReader& reader, std::string_view key) {
  const Value* value = reader.given(key);
  const bool pattern =
      value != nullptr && value->is_string() && value->as_string().find_first_of("*+?()|^\\") != std::string::npos;
  std::vector<std::string> targets = pattern ? std::vector<std::string>{value->as_string()} : reader.texts(key);
  std::transform(targets.begin(), targets.end(), targets.begin(), in_text_part);
  return targets;
}

void set_attention(const std::string& name, const std::string& key, Draft& draft) {
  const std::string kebab = to_kebab(name);
  for (const Name& known : kAttentions) {
    if (known.from == kebab) return draft.set("attention", Value::of(std::string(known.to)));
  }
  if (starts_like_flash(kebab)) {
    draft.set("attention", Value::of("flash"));
    return draft.assume("attention " + quoted(name) + " is billed as flash attention");
  }
  draft.problems.add({draft.file, key, "has the unknown value " + quoted(name), "flash_attention_2, sdpa or eager"});
}

void set_bits(std::int64_t bits, const std::string& type, bool double_quant, bool kbit_prepare, Draft& draft) {
  draft.quantized = true;
  draft.set("weights", Value::of(bits == 8 ? std::string("int8") : to_lower(type)));
  if (bits == 4) draft.set("double_quant", Value::of(double_quant));
  draft.set("kbit_prepare", Value::of(kbit_prepare));
}

void set_quant_storage(const std::string& dtype, Draft& draft) {
  const std::string weights = plan_text(draft, "weights"), word = dtype_word(dtype);
  const bool four_bits = weights == "nf4" || weights == "fp4";
  if (!four_bits || !plan_text(draft, "engine").starts_with("fsdp") || word.empty() || word == "auto") return;
  draft.set("sharding.quant_storage", Value::of(word));
}

std::string dtype_word(std::string_view text) {
  std::string word = to_lower(text);
  if (word.starts_with("torch.")) word.erase(0, 6);
  if (word == "bf16" || word == "bfloat16" || word == "bf16-true") return "bf16";
  if (word == "fp16" || word == "float16" || word == "half" || word == "16-true") return "fp16";
  if (word == "fp32" || word == "float32" || word == "float" || word == "32-true") return "fp32";
  return word == "auto" ? "auto" : "";
}

void set_optimizer(const std::string& name, Draft& draft) {
  const std::string lower = to_lower(name);
  if (lower.starts_with("onebit") || lower.starts_with("zeroone"))
    draft.warnings.push_back("the buffers of " + name + " for compressed gradients are not billed");
  for (const Name& known : kOptimizers) {
    if (known.from == name) return draft.set("optimizer", Value::of(std::string(known.to)));
  }
  draft.set("optimizer", Value::of(name));
}

void set_optimizer_arguments(const Value& arguments, Draft& draft) {
  if (arguments.is_map()) {
    for (const auto& [key, value] : arguments.entries()) {
      if (!value.is_map() && !value.is_list() && !value.is_null())
        draft.set("optimizer_args." + key, Value::of(value_text(value)));
    }
    return;
  }
  for (const std::string& part : split(arguments.is_string() ? arguments.as_string() : std::string(), ',')) {
    const std::size_t equals = part.find('=');
    const std::string key(trim(std::string_view(part).substr(0, equals)));
    if (equals == std::string::npos || key.empty()) continue;
    const std::string value(trim(std::string_view(part).substr(equals + 1)));
    if (!value.empty()) draft.set("optimizer_args." + key, Value::of(value));
  }
}

void set_layerwise(Draft& draft) {
  draft.set("optimizer_in_backward", Value::of(true));
  draft.set("clip", Value::of(false));
}

void warn_of_left_out(std::span<const LeftOut> keys, KeyReader& reader, Draft& draft) {
  for (const LeftOut& left : keys) {
    const Value* value = reader.given(left.key);
    if (value == nullptr || to_lower(value_text(*value)) == (left.usual ? "true" : "false")) continue;
    draft.warnings.push_back(std::string(left.key) + " " + std::string(left.what));
  }
}

void take_stage_numbers(std::string_view keys, KeyReader& reader, Draft& draft) {
  for (const std::string& key : split(keys, ' ')) {
    const std::optional<double> number = reader.real(key);
    if (number.value_or(0) != 0) draft.set("stage_args." + key, Value::of(reader.text(key).value_or("")));
  }
}

std::string plan_text(const Draft& draft, std::string_view key) {
  const Value* value = draft.plan.find(key);
  return value != nullptr && value->is_string() ? value->as_string() : std::string();
}

bool trains_adapters(const Draft& draft) {
  const std::string method = plan_text(draft, "method");
  return !method.empty() && method != "full" && method != "freeze";
}

Value allocator_fields(const std::string& text) {
  Value fields = Value::make_map();
  for (const std::string& part : allocator_options(text)) {
    const std::size_t colon = part.find(':');
    if (colon == std::string::npos) continue;
    const std::string key(trim(std::string_view(part).substr(0, colon)));
    const std::string value = to_lower(trim(std::string_view(part).substr(colon + 1)));
    if (key == "expandable_segments") fields.set(key, Value::of(value == "true"));
    if (key == "roundup_power2_divisions") fields.set(key, Value::of(value));
    if (key == "max_split_size_mb" || key == "garbage_collection_threshold") fields.set(key, flag_value(value));
  }
  return fields;
}

void read_environment(const Launch& launch, Draft& draft) {
  for (const char* name : {"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"}) {
    const std::string* found = launch.environment.find(name);
    if (found == nullptr) continue;
    read_allocator(*found, draft);
    draft.records.push_back({draft.file, name, KeyState::read, *found, "the caching allocator's settings"});
  }
}

}  // namespace membill::io
