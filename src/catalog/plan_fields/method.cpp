#include "base/text.h"
#include "catalog/plan_fields/row.h"
#include "membill/problem.h"

namespace membill {
namespace {

using Plan = TrainingPlan;

// Words that name several things: refused, with the candidates.
struct AmbiguousWord {
  std::string_view word;
  std::string_view candidates;
};
constexpr std::array kAmbiguousPrecisions{AmbiguousWord{"bf16", "amp-bf16, pure-bf16 or master-bf16"},
                                          AmbiguousWord{"fp16", "amp-fp16, pure-fp16 or master-fp16"},
                                          AmbiguousWord{"bfloat16", "amp-bf16, pure-bf16 or master-bf16"},
                                          AmbiguousWord{"float16", "amp-fp16, pure-fp16 or master-fp16"},
                                          AmbiguousWord{"amp", "amp-bf16 or amp-fp16"},
                                          AmbiguousWord{"mixed", "amp-bf16, amp-fp16, master-bf16 or master-fp16"},
                                          AmbiguousWord{"no", "fp32, pure-bf16 or pure-fp16"}};
constexpr std::string_view kFourBit = "nf4, fp4, gptq-int4, awq-int4, hqq-int4 or mxfp4";
constexpr std::array kAmbiguousFormats{AmbiguousWord{"4bit", kFourBit}, AmbiguousWord{"int4", kFourBit},
                                       AmbiguousWord{"4-bit", kFourBit}, AmbiguousWord{"load-in-4bit", "nf4 or fp4"},
                                       AmbiguousWord{"bnb-4bit", "nf4 or fp4"}};

template <std::size_t N>
bool is_ambiguous(const std::array<AmbiguousWord, N>& words, std::string_view typed, std::string& hint) {
  for (const AmbiguousWord& word : words) {
    if (word.word == to_kebab(typed)) return hint = word.candidates, true;
  }
  return false;
}

template <typename Rows>
std::vector<std::string_view> names_in(const Rows& rows) {
  std::vector<std::string_view> names;
  for (const auto& row : rows) names.push_back(row.name);
  return names;
}

template <typename Rows>
std::string help_names(const Rows& rows) {
  std::string help;
  for (const auto& row : rows) help += (help.empty() ? "" : " ") + std::string(row.name);
  return help;
}

// qlora: LoRA over a 4-bit base, as its authors run it. A base that is quantised already stays.
void apply_qlora(Plan& plan) {
  plan.method = Method::lora;
  if (!weight_format(plan.weights).quantized) plan.weights = WeightFormat::nf4;
  plan.double_quant = true;
  plan.kbit_prepare = true;
}

std::string read_method(const Value& value, Plan& plan, std::string& hint) {
  std::vector<std::string_view> words = names_of(kMethodWords);
  words.push_back("qlora");
  std::size_t index = 0;
  std::string wrong = read_word(value, words, index, hint);
  if (!wrong.empty()) return wrong;
  if (index < kMethodWords.size()) {
    plan.method = kMethodWords[index].value;
  } else {
    apply_qlora(plan);
  }
  return {};
}

std::string read_weights(const Value& value, Plan& plan, std::string& hint) {
  if (value.is_string()) {
    if (const WeightFormatRow* row = find_weight_format(value.as_string()))
      return plan.weights = row->format, std::string();
    if (is_ambiguous(kAmbiguousFormats, value.as_string(), hint))
      return quoted(value.as_string()) + " may mean several formats";
  }
  std::size_t index = 0;
  return read_word(value, names_in(weight_formats()), index, hint);
}

std::string read_precision(const Value& value, Plan& plan, std::string& hint) {
  if (value.is_string()) {
    if (const RegimeRow* row = find_regime(value.as_string())) return plan.precision = row->precision, std::string();
    if (is_ambiguous(kAmbiguousPrecisions, value.as_string(), hint)) {
      return quoted(value.as_string()) + " may mean several regimes";
    }
  }
  std::size_t index = 0;
  return read_word(value, names_in(regimes()), index, hint);
}

std::string read_targets(const Value& value, Plan& plan, std::string&) {
  std::vector<std::string> targets;
  if (!value.is_null()) {
    if (std::string wrong = read_texts(value, targets); !wrong.empty()) return wrong;
  }
  for (std::string& target : targets) {
    if (to_kebab(target) == "all-linear") target = "all-linear";
  }
  plan.adapter.targets = std::move(targets);
  return {};
}

PlanFieldRow weights_row() {
  return make_row({"weights", "--weights", "storage of the base weights"}, help_names(weight_formats()), read_weights,
                  [](const Plan& plan) { return to_json(weight_format(plan.weights).name); });
}

PlanFieldRow precision_row() {
  return make_row({"precision", "--precision", "which copies of a parameter exist, and in which dtype ops run"},
                  help_names(regimes()), read_precision,
                  [](const Plan& plan) { return to_json(regime(plan.precision).name); });
}

std::string read_group_size(const Value& value, Plan& plan, std::string& hint) {
  constexpr std::int64_t kWholeRow = -1;
  std::optional<std::int64_t>& size = plan.quantization.group_size;
  if (value.is_null()) return size.reset(), std::string();
  if (value.is_int() && value.as_int() == kWholeRow) return size = kWholeRow, std::string();
  hint = "-1 for whole rows";
  return read_count(value, CountRange{1, kLargestCount}, size);
}

std::string read_skip(const Value& value, Plan& plan, std::string&) {
  std::optional<std::vector<std::string>>& skip = plan.quantization.skip;
  if (value.is_null()) return skip.reset(), std::string();
  std::vector<std::string> names;
  std::string wrong = read_texts(value, names);
  if (wrong.empty()) skip = std::move(names);
  return wrong;
}

std::string read_zero_points(const Value& value, Plan& plan, std::string&) {
  std::optional<bool>& zero_points = plan.quantization.zero_points;
  if (value.is_null()) return zero_points.reset(), std::string();
  return read_bool(value, zero_points.emplace());
}

std::string read_layers(const Value& value, Plan& plan, std::string&) {
  std::vector<std::int64_t> layers;
  const auto add = [&](const Value& item) {
    return read_count(item, CountRange{0, kLargestCount}, layers.emplace_back());
  };
  if (value.is_string()) {
    for (const std::string& part : split(value.as_string(), ',')) {
      std::string why;
      if (!parse_count(part, layers.emplace_back(), why)) return "needs layers, " + why;
    }
  } else if (value.is_list()) {
    for (const Value& item : value.items())
      if (std::string wrong = add(item); !wrong.empty()) return wrong;
  } else if (!value.is_null()) {
    if (std::string wrong = add(value); !wrong.empty()) return wrong;
  }
  plan.adapter.layers = std::move(layers);
  return {};
}

std::string write_layers(const Plan& plan) {
  std::string text;
  for (const std::int64_t layer : plan.adapter.layers) text += (text.empty() ? "" : ", ") + std::to_string(layer);
  return "[" + text + "]";
}

std::string read_rank_pattern(const Value& value, Plan& plan, std::string&) {
  std::map<std::string, std::int64_t> ranks;
  if (!value.is_null() && !value.is_map()) return "needs a map of names to ranks, not " + describe(value);
  if (value.is_map()) {
    for (const Value::Entry& entry : value.entries()) {
      if (std::string wrong = read_count(entry.second, CountRange{1, kLargestCount}, ranks[entry.first]);
          !wrong.empty())
        return quoted(entry.first) + " " + wrong;
    }
  }
  plan.adapter.rank_pattern = std::move(ranks);
  return {};
}

std::string write_rank_pattern(const Plan& plan) {
  std::string text;
  for (const auto& [name, rank] : plan.adapter.rank_pattern)
    text += (text.empty() ? "" : ", ") + to_json(name) + ": " + std::to_string(rank);
  return "{" + text + "}";
}

std::vector<PlanFieldRow> quantization_fields() {
  return {
      make_row({"quantization.group_size", "", "weights of a row that share a scale, -1: all; null: the format's"},
               "a count, or -1", read_group_size, write_field<&Plan::quantization, &QuantizationPlan::group_size>),
      make_row({"quantization.skip", "", "modules that stay whole; null: the output head"}, "names", read_skip,
               write_field<&Plan::quantization, &QuantizationPlan::skip>),
      make_row({"quantization.zero_points", "", "packed-int4 with zero points beside the scales"}, "true false",
               read_zero_points, write_field<&Plan::quantization, &QuantizationPlan::zero_points>),
  };
}

std::vector<PlanFieldRow> adapter_fields() {
  constexpr auto kAdapter = &Plan::adapter;
  return {
      count_row<1, kLargestCount, kAdapter, &AdapterPlan::rank>({"adapter.rank", "--rank", "rank of the adapters"}),
      count_row<1, kLargestCount, kAdapter, &AdapterPlan::alpha>(
          {"adapter.alpha", "--alpha", "scale of the adapters (no effect on memory)"}),
      make_row(
          {"adapter.targets", "--targets", "modules that get an adapter: names, or all-linear; none: PEFT's default"},
          "names", read_targets, write_field<kAdapter, &AdapterPlan::targets>),
      texts_row<kAdapter, &AdapterPlan::exclude>(
          {"adapter.exclude", "--exclude", "modules that get no adapter although a target matches"}),
      make_row({"adapter.layers", "--adapter-layers", "layers that get adapters, from 0; none: all"}, "counts",
               read_layers, write_layers),
      make_row({"adapter.rank_pattern", "", "ranks of modules that have others, by name or pattern"},
               "names and counts", read_rank_pattern, write_rank_pattern),
      bool_row<kAdapter, &AdapterPlan::lora_bias>(
          {"adapter.lora_bias", "--lora-bias", "LoRA's second matrix has a bias"}),
      real_row<kDropout, kAdapter, &AdapterPlan::dropout>(
          {"adapter.dropout", "--lora-dropout", "dropout before the adapters"}),
      word_row<kAdapterDTypeWords, kAdapter, &AdapterPlan::dtype>(
          {"adapter.dtype", "--adapter-dtype", "dtype of the adapters; auto: fp32 over 16-bit and quantised bases"}),
      texts_row<kAdapter, &AdapterPlan::modules_to_save>(
          {"adapter.modules_to_save", "--modules-to-save", "modules that train whole, as copies"}),
      bool_row<kAdapter, &AdapterPlan::rslora>(
          {"adapter.rslora", "--rslora", "rank-stabilised scale (no effect on memory)"}),
      count_row<1, kLargestCount, kAdapter, &AdapterPlan::init_rank>(
          {"adapter.init_rank", "--init-rank", "AdaLoRA's first rank"}),
      count_row<1, kLargestCount, kAdapter, &AdapterPlan::virtual_tokens>(
          {"adapter.virtual_tokens", "--virtual-tokens", "tokens of prompt, prefix and p-tuning"}),
      count_row<1, kLargestCount, kAdapter, &AdapterPlan::encoder_hidden>(
          {"adapter.encoder_hidden", "--encoder-hidden",
           "width of prefix's and p-tuning's encoder; null: the model's"}),
      bool_row<kAdapter, &AdapterPlan::prefix_projection>(
          {"adapter.prefix_projection", "--prefix-projection", "prefix: an MLP makes the keys and values"}),
      count_row<0, kLargestCount, kAdapter, &AdapterPlan::block_size>(
          {"adapter.block_size", "--block-size", "width of OFT's blocks; null: 32; 0: the rank is their number"}),
      count_row<1, kLargestCount, kAdapter, &AdapterPlan::decompose_factor>(
          {"adapter.decompose_factor", "", "LoKr: length of the smaller factor; null: near the square root"}),
      bool_row<kAdapter, &AdapterPlan::decompose_both>(
          {"adapter.decompose_both", "", "LoKr: the smaller factor may be low-rank too"}),
      count_row<0, kLargestCount, kAdapter, &AdapterPlan::trainable_tokens>(
          {"adapter.trainable_tokens", "--trainable-tokens", "rows of the embedding that train beside LoRA"}),
      count_row<0, kLargestCount, &Plan::freeze, &FreezePlan::trainable_layers>(
          {"freeze.trainable_layers", "--trainable-layers", "last layers that train under method freeze"}),
      texts_row<&Plan::freeze, &FreezePlan::trainable_modules>(
          {"freeze.trainable_modules", "--trainable-modules", "further modules that train under method freeze"}),
  };
}

}  // namespace

std::vector<PlanFieldRow> method_fields() {
  std::vector<PlanFieldRow> rows{
      word_row<kStageWords, &Plan::stage>({"stage", "--stage", "what the job does"}),
      make_row({"method", "--method", "which parameters train; qlora: lora over nf4"}, help_of(kMethodWords) + " qlora",
               read_method, write_word_field<kMethodWords, &Plan::method>),
      weights_row(),
      bool_row<&Plan::double_quant>({"double_quant", "--double-quant", "the scales of nf4 and fp4 are quantised too"}),
      bool_row<&Plan::kbit_prepare>(
          {"kbit_prepare", "--kbit-prepare", "PEFT's prepare_model_for_kbit_training, over quantised bases"}),
      precision_row(),
      word_row<kFloatWords, &Plan::gradient_dtype>(
          {"gradient_dtype", "--gradient-dtype", "dtype of gradients; null: what the regime says"}),
      word_row<kFloatWords, &Plan::moment_dtype>(
          {"moment_dtype", "--moment-dtype", "dtype of the optimizer's states; null: what regime and optimizer say"}),
  };
  for (std::vector<PlanFieldRow> more : {quantization_fields(), adapter_fields()})
    for (PlanFieldRow& row : more) rows.push_back(std::move(row));
  return rows;
}

}  // namespace membill
