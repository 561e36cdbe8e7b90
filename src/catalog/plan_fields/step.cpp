#include "base/text.h"
#include "catalog/plan_fields/row.h"
#include "membill/problem.h"

namespace membill {
namespace {

using Plan = TrainingPlan;

constexpr RealRange kImbalance{1.0, 1e6};
constexpr std::array<std::string_view, 3> kRecomputeMethods{"", "uniform", "block"};

constexpr std::string_view kSelective = "selective";
constexpr std::string_view kChunked = "chunked";

// The part after "word:" of `text`, when `text` begins so.
bool after_colon(std::string_view text, std::string_view word, std::string_view& rest) {
  if (text.size() <= word.size() || text.substr(0, word.size()) != word || text[word.size()] != ':') return false;
  rest = text.substr(word.size() + 1);
  return true;
}

// none, full, selective, or selective:core_attn,mlp (Megatron's names, or ops:aten.mm,...).
std::string read_checkpointing(const Value& value, Plan& plan, std::string& hint) {
  std::string_view names;
  if (value.is_string() && after_colon(value.as_string(), kSelective, names)) {
    std::vector<std::string> list;
    if (std::string wrong = read_texts(Value::of(std::string(names)), list); !wrong.empty()) return wrong;
    if (list.empty()) return "needs names after 'selective:'";
    plan.checkpointing.mode = Checkpointing::selective;
    plan.checkpointing.selective = std::move(list);
    return {};
  }
  if (value.is_bool()) {
    hint = value.as_bool() ? "full" : "none";
    return "needs a word, not " + describe(value);
  }
  return read_word_field<kCheckpointingWords, &Plan::checkpointing, &CheckpointPlan::mode>(value, plan, hint);
}

bool only_mode(const CheckpointPlan& plan) {
  const CheckpointPlan plain;
  return plan.reentrant == plain.reentrant && plan.every == plain.every && plan.offload == plain.offload &&
         plan.selective == plain.selective && plan.method == plain.method && plan.layers == plain.layers;
}

// The word alone, or a map when anything else was said.
std::string write_checkpointing(const Plan& plan) {
  const CheckpointPlan& c = plan.checkpointing;
  std::string mode = to_json(word_of(kCheckpointingWords, c.mode));
  if (only_mode(c)) return mode;
  std::string result = "{\"mode\": " + mode + ", \"reentrant\": " + to_json(c.reentrant) +
                       ", \"every\": " + to_json(c.every) + ", \"offload\": " + to_json(c.offload) +
                       ", \"selective\": " + to_json(c.selective);
  if (!c.method.empty()) result += ", \"method\": " + to_json(c.method);
  if (c.layers) result += ", \"layers\": " + to_json(*c.layers);
  return result + "}";
}

std::string read_recompute_method(const Value& value, Plan& plan, std::string& hint) {
  if (value.is_null()) return plan.checkpointing.method.clear(), std::string();
  std::size_t index = 0;
  std::string wrong = read_word(value, {kRecomputeMethods.begin() + 1, kRecomputeMethods.end()}, index, hint);
  if (wrong.empty()) plan.checkpointing.method = kRecomputeMethods[index + 1];
  return wrong;
}

std::vector<PlanFieldRow> checkpointing_fields() {
  constexpr auto kCheckpointing = &Plan::checkpointing;
  std::vector<PlanFieldRow> parts{
      make_row({"checkpointing.mode", "", "as checkpointing, inside a map"}, help_of(kCheckpointingWords),
               read_checkpointing, write_word_field<kCheckpointingWords, kCheckpointing, &CheckpointPlan::mode>),
      bool_row<kCheckpointing, &CheckpointPlan::reentrant>(
          {"checkpointing.reentrant", "--reentrant", "torch.utils.checkpoint's use_reentrant"}),
      count_row<1, kLargestCount, kCheckpointing, &CheckpointPlan::every>(
          {"checkpointing.every", "--checkpoint-every", "every n-th layer is checkpointed"}),
      bool_row<kCheckpointing, &CheckpointPlan::offload>(
          {"checkpointing.offload", "--checkpoint-offload", "the checkpoints live on the host"}),
      texts_row<kCheckpointing, &CheckpointPlan::selective>(
          {"checkpointing.selective", "",
           "what selective recomputes: core_attn, mlp, ...; or what it keeps: ops:aten.mm,..."}),
      make_row({"checkpointing.method", "--checkpoint-method", "Megatron's recompute_method"}, "uniform block",
               read_recompute_method,
               [](const Plan& plan) {
                 return plan.checkpointing.method.empty() ? "null" : to_json(plan.checkpointing.method);
               }),
      count_row<1, kLargestCount, kCheckpointing, &CheckpointPlan::layers>(
          {"checkpointing.layers", "--checkpoint-layers", "Megatron's recompute_num_layers"}),
  };
  std::vector<PlanFieldRow> rows{make_row(
      {"checkpointing", "--checkpointing", "which layers run their forward again in backward; selective:core_attn,mlp"},
      help_of(kCheckpointingWords), read_checkpointing, write_checkpointing)};
  for (PlanFieldRow& part : parts) {
    part.part = true;
    rows.push_back(std::move(part));
  }
  return rows;
}

// null, native, upcast, fused, or chunked:N.
std::string read_loss(const Value& value, Plan& plan, std::string& hint) {
  if (value.is_null()) {
    plan.loss.reset();
    plan.loss_chunk = 0;
    return {};
  }
  std::string_view rows;
  if (value.is_string() && after_colon(value.as_string(), kChunked, rows)) {
    std::int64_t chunk = 0;
    std::string why;
    if (!parse_count(rows, chunk, why)) return "rows of a chunk: " + why;
    if (chunk < 1 || chunk > kLargestCount) return "needs 1 or more rows in a chunk";
    plan.loss = LossKind::chunked;
    plan.loss_chunk = chunk;
    return {};
  }
  LossKind kind{};
  std::size_t index = 0;
  std::string wrong = read_word(value, names_of(kLossWords), index, hint);
  if (!wrong.empty()) return wrong;
  kind = kLossWords[index].value;
  if (kind == LossKind::chunked) return hint = "chunked:1024", "needs the rows of a chunk";
  plan.loss = kind;
  plan.loss_chunk = 0;
  return {};
}

std::string write_loss(const Plan& plan) {
  if (!plan.loss) return "null";
  if (*plan.loss == LossKind::chunked) return to_json("chunked:" + std::to_string(plan.loss_chunk));
  return to_json(word_of(kLossWords, *plan.loss));
}

std::vector<PlanFieldRow> batch_fields() {
  return {
      count_row<1, kLargestCount, &Plan::batch>(
          {"batch", "--batch", "sequences of a micro-batch on one data-parallel rank"}),
      count_row<1, kLargestCount, &Plan::seq>({"seq", "--seq", "tokens of a sequence"}),
      count_row<1, kLargestCount, &Plan::accumulate>({"accumulate", "--accumulate", "micro-batches of a step"}),
      word_row<kLengthWords, &Plan::varied_lengths>(
          {"lengths", "--lengths", "varied: padded to the longest of each batch"}),
      bool_row<&Plan::packing>({"packing", "--packing", "several samples share a sequence"}),
      bool_row<&Plan::padding_free>({"padding_free", "--padding-free", "samples are joined without padding"}),
  };
}

std::vector<PlanFieldRow> code_fields() {
  return {
      word_row<kAttentionWords, &Plan::attention>(
          {"attention", "--attention", "attention kernel; sdpa: what PyTorch picks"}),
      bool_row<&Plan::attention_mask>(
          {"attention_mask", "--attention-mask", "a padding mask that cannot be dropped is passed"}),
      make_row({"loss", "--loss", "how the loss treats the logits; chunked:N; null: what the implementation does"},
               help_of(kLossWords), read_loss, write_loss),
      word_row<kLoopWords, &Plan::loop>(
          {"loop", "--loop", "trainer: Hugging Face's and all built on it; plain: hand-written"}),
      bool_row<&Plan::clip>({"clip", "--clip", "gradients are clipped by norm"}),
      bool_row<&Plan::keep_outputs>(
          {"keep_outputs", "--keep-outputs", "the loop still holds the logits during backward"}),
      word_row<kImplementationWords, &Plan::implementation>(
          {"implementation", "--implementation", "whose code of the model runs"}),
      bool_row<&Plan::liger, &LigerPlan::rope>({"liger.rope", "--liger-rope", "Liger's rotary embedding"}),
      bool_row<&Plan::liger, &LigerPlan::rms_norm>({"liger.rms_norm", "--liger-rms-norm", "Liger's RMSNorm"}),
      bool_row<&Plan::liger, &LigerPlan::swiglu>({"liger.swiglu", "--liger-swiglu", "Liger's gated MLP"}),
      bool_row<&Plan::liger, &LigerPlan::cross_entropy>(
          {"liger.cross_entropy", "--liger-cross-entropy", "Liger's loss, whole or fused as `loss` says"}),
      bool_row<&Plan::compile>({"compile", "--compile", "torch.compile of the blocks"}),
      real_row<kDropout, &Plan::dropout>({"dropout", "--dropout", "overrides the dropouts of the config"}),
      count_row<1, kLargestCount, &Plan::vocab_pad_to>(
          {"vocab_pad_to", "--vocab-pad-to", "pads the vocabulary to a multiple, as Megatron does"}),
      real_row<kImbalance, &Plan::imbalance>(
          {"imbalance", "--imbalance", "tokens of the fullest expert over the mean"}),
  };
}

}  // namespace

std::vector<PlanFieldRow> step_fields() {
  std::vector<PlanFieldRow> rows;
  for (const auto& group : {batch_fields(), checkpointing_fields(), code_fields()}) {
    rows.insert(rows.end(), group.begin(), group.end());
  }
  return rows;
}

}  // namespace membill
