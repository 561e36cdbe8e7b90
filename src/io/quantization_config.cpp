#include "io/quantization_config.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/text.h"
#include "membill/catalog.h"

namespace membill::io {
namespace {

constexpr const char* kHead = "lm_head";

const Value& nothing() {
  static const Value kNothing;
  return kNothing;
}

const Value& part(const Value& map, std::string_view key) {
  const Value* found = map.is_map() ? map.find(key) : nullptr;
  return found == nullptr ? nothing() : *found;
}

std::string word(const Value& map, std::string_view key) {
  const Value& value = part(map, key);
  return value.is_string() ? to_lower(value.as_string()) : std::string();
}

std::optional<std::int64_t> whole(const Value& map, std::string_view key) {
  const Value& value = part(map, key);
  return value.is_int() ? std::optional(value.as_int()) : std::nullopt;
}

// The first of `keys` that holds a whole number.
std::optional<std::int64_t> whole(const Value& map, std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) {
    if (const auto value = whole(map, key)) return value;
  }
  return std::nullopt;
}

bool flag(const Value& map, std::string_view key, bool otherwise = false) {
  const Value& value = part(map, key);
  return value.is_bool() ? value.as_bool() : otherwise;
}

// The words of the first of `keys` that holds a list.
std::optional<std::vector<std::string>> words(const Value& map, std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) {
    const Value& list = part(map, key);
    if (!list.is_list()) continue;
    std::vector<std::string> result;
    for (const Value& item : list.items())
      if (item.is_string()) result.push_back(item.as_string());
    return result;
  }
  return std::nullopt;
}

std::optional<WeightFormat> of_bits(std::string_view stem, std::int64_t bits) {
  const WeightFormatRow* row = find_weight_format(std::string(stem) + "-int" + std::to_string(bits));
  return row == nullptr ? std::nullopt : std::optional(row->format);
}

// Groups of rows: 0 and what is no group mean the whole row.
std::optional<std::int64_t> group_of(std::optional<std::int64_t> size) {
  if (size && *size < 1) return -1;
  return size;
}

void with_head(StoredWeights& stored) {
  if (stored.layout.skip) stored.layout.skip->emplace_back(kHead);
}

// transformers quantizers/quantizer_bnb_4bit.py: a list of modules takes the place of the head.
void read_bitsandbytes(const Value& settings, StoredWeights& stored) {
  stored.double_quant = flag(settings, "bnb_4bit_use_double_quant");
  stored.layout.skip = words(settings, {"llm_int8_skip_modules"});
  if (flag(settings, "load_in_8bit") || flag(settings, "_load_in_8bit")) {
    stored.format = WeightFormat::int8;
  } else {
    stored.format = word(settings, "bnb_4bit_quant_type") == "nf4" ? WeightFormat::nf4 : WeightFormat::fp4;
  }
}

// gptqmodel's rules that begin with "-:" leave modules whole.
void read_gptq(const Value& settings, StoredWeights& stored) {
  stored.format = of_bits("gptq", whole(settings, {"bits", "w_bit"}).value_or(4));
  stored.layout.group_size = group_of(whole(settings, {"group_size", "q_group_size"}));
  std::vector<std::string> skip;
  const Value& rules = part(settings, "dynamic");
  if (rules.is_map()) {
    for (const Value::Entry& rule : rules.entries())
      if (rule.first.starts_with("-:")) skip.push_back("re:" + rule.first.substr(2));
  }
  if (!flag(settings, kHead) && !skip.empty()) skip.emplace_back(kHead);
  if (!skip.empty() || flag(settings, kHead)) stored.layout.skip = std::move(skip);
}

void read_awq(const Value& settings, StoredWeights& stored) {
  stored.format = of_bits("awq", whole(settings, {"bits", "w_bit"}).value_or(4));
  stored.layout.group_size = group_of(whole(settings, {"group_size", "q_group_size"}));
  stored.layout.skip = words(settings, {"modules_to_not_convert"});
  with_head(stored);
}

void read_hqq(const Value& settings, StoredWeights& stored) {
  const Value& weights = part(part(settings, "quant_config"), "weight_quant_params");
  if (!weights.is_map()) return;  // settings of its own for each module
  stored.format = of_bits("hqq", whole(weights, "nbits").value_or(4));
  stored.layout.group_size = group_of(whole(weights, "group_size"));
  stored.layout.skip = words(settings, {"skip_modules"});
}

// Blocks of fp8: square ones, or none.
void set_blocks(const Value& sides, StoredWeights& stored) {
  stored.format = WeightFormat::fp8;
  stored.layout.group_size = -1;
  if (!sides.is_list() || sides.items().size() != 2) return;
  const Value &rows = sides.items()[0], &columns = sides.items()[1];
  if (rows.is_int() && columns.is_int() && rows.as_int() > 0 && rows.as_int() == columns.as_int())
    stored.layout.group_size = rows.as_int();
  else
    stored.format.reset();
}

void read_fp8(const Value& settings, StoredWeights& stored) {
  stored.layout.skip = words(settings, {"modules_to_not_convert", "ignored_layers"});
  if (word(settings, "expert_dtype") == "fp4") return;
  const Value& sides = part(settings, "weight_block_size");
  if (settings.find("weight_block_size") == nullptr && word(settings, "quant_method") == "fp8")
    stored.format = WeightFormat::fp8;  // Transformers' default
  else
    set_blocks(sides, stored);
}

void read_fp8_rows(const Value& settings, StoredWeights& stored) {
  stored.format = WeightFormat::fp8_rows;
  stored.layout.skip = words(settings, {"modules_to_not_convert"});
  with_head(stored);
}

void read_mxfp4(const Value&, StoredWeights& stored) { stored.format = WeightFormat::mxfp4; }

std::optional<WeightFormat> integers(std::int64_t bits, const std::string& strategy) {
  if (bits == 4 && (strategy == "group" || strategy == "channel")) return WeightFormat::packed_int4;
  return bits == 8 && strategy == "channel" ? std::optional(WeightFormat::int8_rows) : std::nullopt;
}

// One scheme of compressed-tensors or modelopt.
void read_scheme(const Value& weights, StoredWeights& stored) {
  const std::int64_t bits = whole(weights, "num_bits").value_or(0);
  const std::optional<std::int64_t> group = whole(weights, "group_size");
  const std::string strategy = word(weights, "strategy");
  if (word(weights, "type") == "int") {
    stored.format = integers(bits, strategy);
    stored.layout.group_size = strategy == "channel" ? -1 : group_of(group);
    stored.layout.zero_points = !flag(weights, "symmetric", true);
  } else if (bits == 8) {
    set_blocks(part(weights, "block_structure"), stored);
    if (strategy == "channel") stored.format = WeightFormat::fp8_rows;
  } else if (bits == 4) {
    stored.format = group == 32 ? WeightFormat::mxfp4 : WeightFormat::nvfp4;
  }
  if (stored.format == WeightFormat::fp8_rows || stored.format == WeightFormat::nvfp4) stored.layout.group_size.reset();
}

void read_schemes(const Value& settings, StoredWeights& stored) {
  stored.layout.skip = words(settings, {"ignore", "exclude_modules"});
  const Value& groups = part(settings, "config_groups");
  if (groups.is_map() && groups.entries().size() == 1)
    return read_scheme(part(groups.entries().front().second, "weights"), stored);
  const std::string algorithm = word(settings, "quant_algo");
  if (groups.is_map()) return;
  if (algorithm == "fp8") set_blocks(nothing(), stored);
  if (algorithm == "nvfp4") stored.format = WeightFormat::nvfp4;
}

struct Method {
  std::string_view name;
  void (*read)(const Value& settings, StoredWeights& stored);
};
constexpr std::array kMethods{
    Method{"bitsandbytes", read_bitsandbytes},
    Method{"gptq", read_gptq},
    Method{"awq", read_awq},
    Method{"hqq", read_hqq},
    Method{"fp8", read_fp8},
    Method{"fbgemm_fp8", read_fp8_rows},
    Method{"mxfp4", read_mxfp4},
    Method{"compressed-tensors", read_schemes},
    Method{"modelopt", read_schemes},
};

std::string method_of(const Value& settings) {
  std::string method = word(settings, "quant_method");
  if (!method.empty()) return method;
  const bool bits = settings.find("load_in_4bit") != nullptr || settings.find("load_in_8bit") != nullptr;
  return bits ? "bitsandbytes" : "unknown";
}

}  // namespace

StoredWeights read_quantization(const Value& config) {
  StoredWeights stored;
  for (const std::string_view key : {"quantization_config", "compression_config"}) {
    const Value& settings = part(config, key);
    if (!settings.is_map()) continue;
    stored.method = method_of(settings);
    for (const Method& method : kMethods) {
      if (method.name == stored.method) method.read(settings, stored);
    }
    break;
  }
  return stored;
}

}  // namespace membill::io
