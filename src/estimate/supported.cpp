#include "estimate/supported.h"

#include <algorithm>
#include <array>

#include "catalog/plan_fields/words.h"
#include "membill/catalog.h"

namespace membill {
namespace {

using Plan = TrainingPlan;

// A part of the plan: when it is not billed, the text that names it (empty: it is billed), and what is.
struct Limit {
  const char* key;
  std::string (*unbilled)(const Plan& plan);
  const char* billed;
};

template <typename T>
bool is_one_of(T value, std::initializer_list<T> billed) {
  return std::find(billed.begin(), billed.end(), value) != billed.end();
}

std::string unless(bool billed, std::string_view text) { return billed ? std::string() : std::string(text); }

std::string unbilled_optimizer(const Plan& plan) {
  const OptimizerRow* row = find_optimizer(plan.optimizer);
  if (row == nullptr) return {};
  const bool one_block = row->gradients == GradientLife::one_block;
  const bool shapes = std::none_of(row->states.begin(), row->states.end(),
                                   [](const OptimizerState& state) { return state.shape == StateShape::adam_mini; });
  return unless(!one_block && shapes, row->name);
}

// A reference model or a score under an engine that shards has not been measured.
std::string unbilled_stage(const Plan& plan) {
  const std::string stage(word_of(kStageWords, plan.stage));
  if (plan.stage == Stage::inference) return stage;
  const bool supervised = is_one_of(plan.stage, {Stage::sft, Stage::pretrain});
  if (supervised) return {};
  if (plan.implementation == Implementation::torchtune) return stage + " with torchtune";
  if (is_one_of(plan.engine, {Engine::torch, Engine::ddp})) return {};
  return stage + " with engine " + std::string(word_of(kEngineWords, plan.engine));
}

std::string unbilled_checkpointing(const Plan& plan) {
  const CheckpointPlan& c = plan.checkpointing;
  if (c.mode == Checkpointing::selective) return "selective";
  if (c.mode == Checkpointing::none) return {};
  if (c.every > 1) return "every " + std::to_string(c.every) + " layers";
  if (c.offload) return "offload";
  return unless(c.method.empty() && !c.layers, "Megatron's method");
}

constexpr std::array kLimits{
    Limit{"stage", unbilled_stage, "pretrain, sft, reward, dpo, orpo, simpo, kto"},
    Limit{"method",
          [](const Plan& p) {
            return unless(is_one_of(p.method, {Method::full, Method::freeze, Method::lora, Method::dora}),
                          word_of(kMethodWords, p.method));
          },
          "full, freeze, lora, qlora, dora"},
    Limit{"weights",
          [](const Plan& p) {
            return unless(is_one_of(p.weights, {WeightFormat::fp32, WeightFormat::bf16, WeightFormat::fp16,
                                                WeightFormat::int8, WeightFormat::nf4, WeightFormat::fp4}),
                          weight_format(p.weights).name);
          },
          "fp32, bf16, fp16, int8, nf4, fp4"},
    Limit{"freeze.trainable_modules",
          [](const Plan& p) { return unless(p.freeze.trainable_modules.empty(), "further modules"); }, "[]"},
    Limit{"precision", [](const Plan& p) { return unless(p.precision != Precision::fp8, regime(p.precision).name); },
          "fp32, amp-bf16, amp-fp16, pure-bf16, pure-fp16, master-bf16, master-fp16"},
    Limit{"optimizer", unbilled_optimizer, "every row of membill optimizers but adam-mini, badam, lisa"},
    Limit{"optimizer_in_backward",
          [](const Plan& p) { return unless(!p.optimizer_in_backward || p.engine == Engine::torch, "true"); },
          "false, or true with engine torch"},
    Limit{"checkpointing", unbilled_checkpointing, "none, full"},
    Limit{"attention",
          [](const Plan& p) {
            return unless(p.attention != AttentionKernel::fused_softmax, word_of(kAttentionWords, p.attention));
          },
          "sdpa, flash, mem-efficient, sdpa-math, eager"},
    Limit{"loss",
          [](const Plan& p) {
            return unless(!p.loss || is_one_of(*p.loss, {LossKind::native, LossKind::upcast}) ||
                              (*p.loss == LossKind::chunked && p.implementation == Implementation::torchtune),
                          p.loss ? word_of(kLossWords, *p.loss) : "");
          },
          "null, native, upcast; with torchtune chunked:N"},
    Limit{"implementation",
          [](const Plan& p) {
            return unless(
                is_one_of(p.implementation, {Implementation::hf, Implementation::liger, Implementation::torchtune}),
                word_of(kImplementationWords, p.implementation));
          },
          "hf, liger, torchtune"},
    Limit{"engine",
          [](const Plan& p) {
            return unless(is_one_of(p.engine, {Engine::torch, Engine::ddp}), word_of(kEngineWords, p.engine));
          },
          "torch, ddp"},
    Limit{"weights",
          [](const Plan& p) {
            const bool tune = p.implementation == Implementation::torchtune && weight_format(p.weights).quantized;
            return tune ? std::string(weight_format(p.weights).name) + " by torchtune" : std::string();
          },
          "fp32, bf16, fp16"},
    Limit{"compile", [](const Plan& p) { return unless(!p.compile, "true"); }, "false"},
    Limit{"packing", [](const Plan& p) { return unless(!p.packing, "true"); }, "false"},
    Limit{"padding_free", [](const Plan& p) { return unless(!p.padding_free, "true"); }, "false"},
    Limit{"vocab_pad_to", [](const Plan& p) { return unless(!p.vocab_pad_to, "padding"); }, "null"},
    Limit{"evaluation.batch", [](const Plan& p) { return unless(!p.evaluation_batch, "evaluation"); }, "null"},
};

}  // namespace

std::vector<Problem> not_billed_yet(const TrainingPlan& plan) {
  std::vector<Problem> problems;
  for (const Limit& limit : kLimits) {
    const std::string what = limit.unbilled(plan);
    if (!what.empty()) problems.push_back({"", limit.key, what + " is not billed yet", limit.billed});
  }
  return problems;
}

}  // namespace membill
