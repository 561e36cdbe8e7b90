#include "base/text.h"
#include "catalog/plan_fields/row.h"
#include "membill/problem.h"

namespace membill {
namespace {

using Plan = TrainingPlan;

constexpr RealRange kDropout{0.0, 1.0, true};

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

std::vector<PlanFieldRow> adapter_fields() {
  constexpr auto kAdapter = &Plan::adapter;
  return {
      count_row<1, kLargestCount, kAdapter, &AdapterPlan::rank>({"adapter.rank", "--rank", "rank of the adapters"}),
      count_row<1, kLargestCount, kAdapter, &AdapterPlan::alpha>(
          {"adapter.alpha", "--alpha", "scale of the adapters (no effect on memory)"}),
      make_row(
          {"adapter.targets", "--targets", "modules that get an adapter: names, or all-linear; none: PEFT's default"},
          "names", read_targets, write_field<kAdapter, &AdapterPlan::targets>),
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
  for (PlanFieldRow& row : adapter_fields()) rows.push_back(std::move(row));
  return rows;
}

}  // namespace membill
