// A model that is given by sizes instead of a config: llama's shape.
#include <algorithm>
#include <array>
#include <string>

#include "catalog/families/config_reader.h"
#include "catalog/families/llama_shape.h"
#include "membill/catalog.h"

namespace membill {

namespace {

// The flags and job-file keys of a generic model, beside the config keys that they stand for.
constexpr std::array<census::Spelling, 7> kGenericKeys = {{{"hidden_size", "hidden"},
                                                           {"num_hidden_layers", "layers"},
                                                           {"num_attention_heads", "heads"},
                                                           {"num_key_value_heads", "kv_heads"},
                                                           {"head_dim", "head_dim"},
                                                           {"intermediate_size", "intermediate"},
                                                           {"vocab_size", "vocab"}}};

constexpr std::int64_t kLlamaVocab = 32000;
constexpr std::int64_t kLlamaHeadWidth = 128;

// llama rounds 8/3 of the hidden size up to a multiple of 256.
std::int64_t llama_intermediate(std::int64_t hidden) { return round_up(ceil_div(checked_mul(8, hidden), 3), 256); }

// Heads of 128 where they fit, else the largest power of two below that divides the hidden size.
std::int64_t llama_heads(std::int64_t hidden) {
  std::int64_t width = kLlamaHeadWidth;
  while (hidden % width != 0) width /= 2;
  return std::max<std::int64_t>(hidden / width, 1);
}

// Parameters outside of the layers: two tables and the final norm.
std::int64_t outside_of_layers(std::int64_t vocab, std::int64_t hidden) {
  return checked_add(checked_mul(checked_mul(2, vocab), hidden), hidden);
}

std::int64_t layer_parameters(const GenericModel& model, std::int64_t intermediate) {
  const std::int64_t hidden = *model.hidden;
  const std::int64_t head = model.head_dim.value_or(hidden / *model.heads);
  const std::int64_t q = checked_mul(*model.heads, head);
  const std::int64_t kv = checked_mul(model.kv_heads.value_or(*model.heads), head);
  const std::int64_t columns =
      checked_add(checked_add(checked_mul(2, q), checked_mul(2, kv)), checked_mul(3, intermediate));
  return checked_mul(hidden, checked_add(columns, 2));
}

// The hidden size (a multiple of 128) whose llama of `layers` layers comes nearest to `total`.
std::int64_t hidden_for(std::int64_t total, std::int64_t layers, std::int64_t vocab) {
  const auto parameters = [&](std::int64_t hidden) {
    const std::int64_t layer =
        checked_mul(hidden, checked_add(checked_mul(4, hidden), checked_mul(3, llama_intermediate(hidden))));
    return checked_add(outside_of_layers(vocab, hidden), checked_mul(layers, layer));
  };
  std::int64_t low = 1, high = 512;  // in units of 128: 65536 is wider than any model
  while (low < high) {
    const std::int64_t middle = (low + high) / 2;
    if (parameters(middle * kLlamaHeadWidth) < total) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  const std::int64_t above = low * kLlamaHeadWidth;
  if (low == 1) return above;
  const std::int64_t below = above - kLlamaHeadWidth;
  return total - parameters(below) < parameters(above) - total ? below : above;
}

// Fills what is missing so that the total comes near `given.params`, or follows llama's proportions.
void fill_missing(GenericModel& model) {
  const std::int64_t vocab = model.vocab.value_or(kLlamaVocab);
  model.vocab = vocab;
  if (model.params && !model.hidden) model.hidden = hidden_for(*model.params, *model.layers, vocab);
  if (!model.heads) model.heads = llama_heads(*model.hidden);
  if (model.params && !model.layers) {
    const std::int64_t layer = layer_parameters(model, model.intermediate.value_or(llama_intermediate(*model.hidden)));
    const std::int64_t inside = std::max<std::int64_t>(*model.params - outside_of_layers(vocab, *model.hidden), 0);
    model.layers = std::max<std::int64_t>((inside + layer / 2) / layer, 1);
  }
  if (model.intermediate) return;
  model.intermediate = llama_intermediate(*model.hidden);
  if (!model.params) return;
  const std::int64_t rest =
      checked_add(outside_of_layers(vocab, *model.hidden), checked_mul(*model.layers, layer_parameters(model, 0)));
  const std::int64_t column = checked_mul(checked_mul(3, *model.hidden), *model.layers);
  const std::int64_t nearest = (*model.params - rest + column / 2) / column;
  if (nearest >= 1) model.intermediate = nearest;
}

bool sizes_are_sane(const GenericModel& given, Problems& problems) {
  const struct {
    const char* key;
    const std::optional<std::int64_t>& size;
    std::int64_t most;
  } rows[] = {
      {"hidden", given.hidden, census::kLargestCount},     {"layers", given.layers, census::kMostListed},
      {"heads", given.heads, census::kLargestCount},       {"kv_heads", given.kv_heads, census::kLargestCount},
      {"head_dim", given.head_dim, census::kLargestCount}, {"intermediate", given.intermediate, census::kLargestCount},
      {"vocab", given.vocab, census::kLargestCount}};
  bool sane = true;
  for (const auto& row : rows) {
    if (!row.size || (*row.size >= 1 && *row.size <= row.most)) continue;
    problems.add(
        {"", row.key, "must be between 1 and " + std::to_string(row.most) + ", not " + std::to_string(*row.size), ""});
    sane = false;
  }
  if (given.params && *given.params < 1) {
    problems.add({"", "params", "must be at least 1, not " + std::to_string(*given.params), ""});
    sane = false;
  }
  return sane;
}

Value as_config(const GenericModel& model) {
  Value config = Value::make_map();
  const auto set = [&](std::string_view key, const std::optional<std::int64_t>& size) {
    if (size) config.set(key, Value::of(*size));
  };
  set("hidden", model.hidden);
  set("layers", model.layers);
  set("heads", model.heads);
  set("kv_heads", model.kv_heads);
  set("head_dim", model.head_dim);
  set("intermediate", model.intermediate);
  set("vocab", model.vocab);
  return config;
}

ModelSpec only_a_total(std::int64_t params) {
  ModelSpec spec;
  spec.model_type = "generic";
  spec.stated_parameters = params;
  spec.dimensions_known = false;
  return spec;
}

}  // namespace

ModelSpec generic_model(const GenericModel& given, Problems& problems) {
  ModelSpec spec;
  if (!sizes_are_sane(given, problems)) return spec;
  if (given.params && !given.hidden && !given.layers) {
    spec = only_a_total(*given.params);
  } else if (!given.params && !(given.hidden && given.layers)) {
    for (const auto& [key, size] : {std::pair{"hidden", given.hidden}, std::pair{"layers", given.layers}}) {
      if (!size) problems.add({"", key, "is missing: a generic model needs hidden and layers, or params", ""});
    }
    return spec;
  } else {
    GenericModel model = given;
    fill_missing(model);
    const Value config = as_config(model);
    const census::ConfigReader reader(config, problems, kGenericKeys);
    spec = census::describe_llama_shape(reader, "generic", "");
  }
  spec.name = "generic";
  spec.source = "command line";
  if (spec.dimensions_known && given.params && spec.parameters() != *given.params) {
    spec.warnings.push_back("the sizes give " + std::to_string(spec.parameters()) + " parameters, not the " +
                            std::to_string(*given.params) + " that were stated");
  }
  return spec;
}

}  // namespace membill
