#include "estimate/sequence_checks.h"

#include <algorithm>
#include <string_view>

#include "base/engine_keys.h"
#include "blocks/generations.h"
#include "blocks/sequence_spread.h"
#include "catalog/plan_fields/words.h"
#include "estimate/checks.h"
#include "estimate/engines/placement.h"
#include "membill/catalog.h"

namespace membill {
namespace {

bool pads(SequenceCode code) { return code != SequenceCode::accelerate; }

// Tokens of which a sequence must have a multiple.
std::int64_t token_multiple(const TrainingPlan& plan) {
  const ParallelPlan& p = plan.parallel;
  if (sequence_ranks(plan) > 1 && pads(sequence_code(plan))) return 1;
  return p.cp > 1 ? 2 * p.cp : 1;
}

bool has_windows(const ModelSpec& model, std::int64_t seq) {
  return std::any_of(model.sections.begin(), model.sections.end(), [seq](const Section& section) {
    return std::any_of(section.kinds.begin(), section.kinds.end(), [seq](const LayerKind& kind) {
      return kind.attention.sliding_window && *kind.attention.sliding_window <= seq;
    });
  });
}

bool has_other_attention(const ModelSpec& model) {
  return std::any_of(model.sections.begin(), model.sections.end(), [](const Section& section) {
    return std::any_of(section.kinds.begin(), section.kinds.end(), [](const LayerKind& kind) {
      return kind.linear_attention || kind.state_space || kind.attention.latent;
    });
  });
}

// Key and value heads are shared out, or each is there for several ranks.
void check_key_heads(const ModelSpec& model, const TrainingPlan& plan, Problems& problems) {
  const std::int64_t ranks = plan.parallel.ulysses;
  const LayerKind* layer = first_layer(model);
  if (ranks < 2 || layer == nullptr || layer->attention.kv_heads < 1) return;
  const std::int64_t heads = layer->attention.kv_heads;
  const bool shared_out = heads % ranks == 0, repeated = ranks % heads == 0;
  if (shared_out || (repeated && sequence_code(plan) != SequenceCode::ms_swift)) return;
  problems.add(
      {"", "parallel.ulysses",
       std::to_string(ranks) + " ranks do not share the " + std::to_string(heads) + " key and value heads" +
           (sequence_code(plan) == SequenceCode::ms_swift ? ": ms-swift's ring for the rest is not billed" : ""),
       "parallel.ulysses " + std::to_string(heads)});
}

// accelerate 1.15 big_modeling.py _attach_context_parallel_hooks, _refuse_recurrent_layers_under_sequence_parallelism.
void check_layers(const ModelSpec& model, const TrainingPlan& plan, Problems& problems) {
  const char* key = plan.parallel.cp > 1 ? "parallel.cp" : "parallel.ulysses";
  if (has_other_attention(model))
    problems.add(
        {"", key, "linear and latent attention over spread sequences are not billed", std::string(key) + " 1"});
  if (has_windows(model, plan.seq) && plan.attention != AttentionKernel::flash)
    problems.add({"", key, "sliding windows over spread sequences are not billed", "attention flash"});
}

std::string unbilled_kernel(const TrainingPlan& plan) {
  const AttentionKernel kernel = plan.attention;
  if (kernel != AttentionKernel::sdpa && kernel != AttentionKernel::flash)
    return "sequence parallelism over attention " + std::string(word_of(kAttentionWords, kernel));
  const bool fp32 = !regime(plan.precision).autocast && plan.precision == Precision::fp32;
  if (plan.parallel.cp > 1 && fp32) return "context parallelism in fp32";
  const bool masked = plan.attention_mask || (joins_rows(plan) && kernel == AttentionKernel::sdpa);
  return masked ? "a mask beside sequence parallelism" : "";
}

std::string unbilled_code(const TrainingPlan& plan) {
  const std::string engine(word_of(kEngineWords, plan.engine));
  const SequenceCode code = sequence_code(plan);
  if (plan.parallel.cp > 1) {
    if (code == SequenceCode::axolotl)
      return plan.attention != AttentionKernel::flash || plan.batch > 1 || !plan.packing
                 ? "axolotl's ring without packed rows of one batch and attention flash"
                 : "";
    if (code != SequenceCode::accelerate) return "context parallelism of " + engine_word(plan, "sequence_code", "");
    return plan.engine == Engine::fsdp2 ? "" : "context parallelism (cp) with engine " + engine;
  }
  if (code == SequenceCode::axolotl) return "Ulysses of axolotl";
  const bool accelerate = code == SequenceCode::accelerate;
  return accelerate && plan.engine != Engine::deepspeed ? "Ulysses (ulysses) of accelerate with engine " + engine : "";
}

}  // namespace

void check_sequence_ranks(const ModelSpec& model, const TrainingPlan& plan, Problems& problems) {
  const ParallelPlan& p = plan.parallel;
  const std::int64_t multiple = p.cp >= 1 ? token_multiple(plan) : 1;
  if (p.cp > 1 && plan.seq >= 1 && plan.seq % multiple != 0)
    problems.add({"", "parallel.cp", "needs a seq that is a multiple of 2 x cp, " + std::to_string(multiple), ""});
  if (p.ulysses > 1 && plan.seq >= 1 && plan.seq % p.ulysses != 0 && !pads(sequence_code(plan)))
    problems.add(
        {"", "parallel.ulysses",
         std::to_string(p.ulysses) + " does not divide the " + std::to_string(plan.seq) + " tokens of a sequence", ""});
  if (p.cp < 1 || p.ulysses < 1 || sequence_ranks(plan) == 1) return;
  check_key_heads(model, plan, problems);
  check_layers(model, plan, problems);
}

std::string unbilled_sequence_parallelism(const TrainingPlan& plan) {
  const ParallelPlan& p = plan.parallel;
  if (p.cp < 1 || p.ulysses < 1 || sequence_ranks(plan) == 1) return {};
  if (p.cp > 1 && p.ulysses > 1) return "cp beside ulysses";
  if (plan.stage != Stage::sft && plan.stage != Stage::pretrain)
    return "sequence parallelism of stage " + std::string(word_of(kStageWords, plan.stage));
  const bool titan = plan.implementation == Implementation::torchtitan && p.cp > 1;
  if (!titan && plan.implementation != Implementation::hf && plan.implementation != Implementation::liger)
    return "sequence parallelism with implementation " +
           std::string(word_of(kImplementationWords, plan.implementation));
  const bool tokens = plan.method == Method::prompt || plan.method == Method::prefix || plan.method == Method::ptuning;
  if (tokens) return "sequence parallelism with virtual tokens";
  if (generations(plan).trl == Generations::Trl::classic) return "sequence parallelism with TRL before 1.0";
  if (std::string kernel = unbilled_kernel(plan); !kernel.empty()) return kernel;
  return unbilled_code(plan);
}

}  // namespace membill
