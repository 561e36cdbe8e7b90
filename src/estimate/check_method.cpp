#include <algorithm>
#include <array>
#include <string_view>

#include "blocks/architecture.h"
#include "blocks/generations.h"
#include "blocks/stage_args.h"
#include "blocks/torchtune_distill.h"
#include "catalog/encoder_classifier.h"
#include "catalog/liger_types.h"
#include "catalog/plan_fields/words.h"
#include "estimate/checks.h"
#include "estimate/inference.h"
#include "estimate/rollout.h"
#include "membill/catalog.h"

namespace membill {
namespace {

bool trains_base(Method method) { return method == Method::full || method == Method::freeze; }

std::string name_of(const auto& words, auto value) { return std::string(word_of(words, value)); }

// An argument of the optimizer that is given and is no whole number of at least 1.
void check_count(const TrainingPlan& plan, const char* argument, Problems& problems) {
  const auto found = plan.optimizer_args.find(argument);
  if (found == plan.optimizer_args.end()) return;
  std::int64_t count = 0;
  std::string why;
  if (parse_count(found->second, count, why) && count >= 1) return;
  problems.add({"", std::string("optimizer_args.") + argument,
                "needs a whole number, 1 or more, not " + quoted(found->second), ""});
}

}  // namespace

const LayerKind* first_layer(const ModelSpec& model) {
  const LayerKind* first = nullptr;
  for (const Section& section : model.sections) {
    if (section.layer_kinds.empty() || section.kinds.empty()) continue;
    if (section.name == "decoder" || section.name == "layers") return &section.kinds.front();
    if (first == nullptr) first = &section.kinds.front();
  }
  return first;
}

// TRL's trainers take causal language models; an encoder's hidden states have no next word.
void check_stage(const ModelSpec& model, const TrainingPlan& plan, Problems& problems) {
  const Architecture* program = find_architecture(model.model_type, Implementation::hf);
  const bool encoder = (program != nullptr && !program->causal()) ||
                       std::any_of(model.sections.begin(), model.sections.end(),
                                   [](const Section& section) { return section.name == "encoder"; });
  constexpr std::array<std::string_view, 4> kPrefixed{"llama", "mistral", "qwen2", "qwen3"};
  if (plan.method == Method::prefix &&
      std::find(kPrefixed.begin(), kPrefixed.end(), model.model_type) == kPrefixed.end()) {
    problems.add({"", "method", "prefix is billed for llama, mistral, qwen2 and qwen3, not " + model.model_type,
                  "prompt or lora"});
  }
  const bool generates_words = program == nullptr || program->causal();
  const bool scores = plan.stage == Stage::classification && has_encoder_classifier(model.model_type);
  const bool takes_encoders = is_supervised(plan) || scores || (plan.stage == Stage::inference && generates_words);
  if (encoder && (plan.method == Method::prompt || plan.method == Method::ptuning)) {
    problems.add({"", "method",
                  name_of(kMethodWords, plan.method) + " is billed for causal language models, not " + model.model_type,
                  "lora"});
  }
  if (!encoder || takes_encoders) return;
  problems.add({"", "stage",
                name_of(kStageWords, plan.stage) + " is for causal language models, not " + model.model_type, "sft"});
}

// Logits of both models are compared word by word.
void check_teacher(const ModelSpec& model, const TrainingPlan& plan, Problems& problems) {
  const bool distills = plan.stage == Stage::distill;
  if (!distills && plan.teacher)
    problems.add({"", "teacher", "is of stage distill, not of " + name_of(kStageWords, plan.stage), "stage distill"});
  if (!distills) return;
  if (!divergence(plan))
    problems.add({"", "stage_args.kd_loss", "has the unknown value " + quoted(stage_word(plan, "kd_loss")),
                  "forward, reverse or symmetric"});
  if (model.teacher == nullptr)
    return problems.add({"", "teacher", "is missing: distill learns from another model", "a row of membill models"});
  const ModelSpec& teacher = *model.teacher;
  if (runs_torchtune_distillation(plan) && find_architecture(teacher.model_type, plan.implementation) == nullptr)
    problems.add({"", "teacher", "torchtune has no model of type " + quoted(teacher.model_type), ""});
  if (teacher.vocab != model.vocab)
    problems.add({"", "teacher",
                  "has " + std::to_string(teacher.vocab) + " words, the model that learns " +
                      std::to_string(model.vocab) + ": their logits cannot be compared",
                  ""});
}

// What PEFT's adapters work with.
void check_adapters(const TrainingPlan& plan, Problems& problems) {
  const std::string method = name_of(kMethodWords, plan.method);
  const bool whole_matrix = plan.method == Method::loha || plan.method == Method::lokr;
  if (whole_matrix && weight_format(plan.weights).quantized) {
    problems.add({"", "weights",
                  method + " adds a matrix to a whole weight, not to " + std::string(weight_format(plan.weights).name),
                  "weights bf16"});
  }
  const Packing packing = weight_format(plan.weights).packing;
  if (plan.method == Method::dora && (packing == Packing::gptq || packing == Packing::awq)) {
    problems.add(
        {"", "method", "PEFT has no DoRA over " + std::string(weight_format(plan.weights).name) + " weights", "lora"});
  }
  if (whole_matrix && plan.adapter.dropout > 0)
    problems.add({"", "adapter.dropout", method + "'s rank dropout is not billed", "0"});
  if (plan.adapter.trainable_tokens > 0 && plan.method != Method::lora && plan.method != Method::dora) {
    problems.add(
        {"", "adapter.trainable_tokens", "PEFT trains rows of the embedding beside LoRA alone", "method lora"});
  }
}

// A row of what a stage generates is a prompt and its completion.
void check_rows(const TrainingPlan& plan, Problems& problems) {
  if (!generates(plan.stage) && plan.stage != Stage::inference) return;
  if (plan.packing || plan.padding_free)
    problems.add({"", plan.packing ? "packing" : "padding_free",
                  name_of(kStageWords, plan.stage) + " joins no samples to a row", "false"});
  const std::string seq = std::to_string(plan.seq);
  if (plan.completion && plan.prompt) {
    const std::int64_t tokens = checked_add(*plan.prompt, *plan.completion);
    if (tokens != plan.seq)
      problems.add({"", "seq", "is " + seq + ", prompt and completion are " + std::to_string(tokens) + " tokens",
                    "seq " + std::to_string(tokens)});
  } else if (plan.completion.value_or(0) >= plan.seq || plan.prompt.value_or(0) >= plan.seq || plan.seq < 2) {
    problems.add(
        {"", "seq",
         "is " + seq + ", which leaves no token for the " + std::string(plan.completion ? "prompt" : "completion"),
         ""});
  }
}

void check_method(const ModelSpec& model, const TrainingPlan& plan, Problems& problems) {
  const WeightFormatRow& format = weight_format(plan.weights);
  const RegimeRow& row = regime(plan.precision);
  const std::string format_name(format.name);
  if (plan.stage != Stage::inference && trains_base(plan.method) && !format.trainable) {
    problems.add({"", "weights",
                  format_name + " weights cannot be trained by method " + name_of(kMethodWords, plan.method),
                  "method lora, or weights bf16"});
  }
  check_stage(model, plan, problems);
  check_teacher(model, plan, problems);
  check_rows(plan, problems);
  check_stage_args(plan, problems);
  check_adapters(plan, problems);
  check_inference(plan, problems);
  if (!format.quantized && row.storage && *row.storage != plan.weights) {
    const std::string storage(weight_format(*row.storage).name);
    problems.add({"", "weights",
                  format_name + " contradicts precision " + std::string(row.name) + ", which stores " + storage,
                  "weights " + storage});
  }
  if (plan.method == Method::freeze && model.dimensions_known && plan.freeze.trainable_layers > model.layers) {
    problems.add({"", "freeze.trainable_layers",
                  std::to_string(plan.freeze.trainable_layers) + " exceeds the model's " +
                      std::to_string(model.layers) + " layers",
                  ""});
  }
  if (plan.implementation == Implementation::liger && !is_patched_by_liger(model.model_type)) {
    problems.add({"", "implementation", "Liger has no kernels for model type " + quoted(model.model_type), "hf"});
  }
  if (plan.method == Method::freeze && plan.checkpointing.mode == Checkpointing::full && plan.checkpointing.reentrant &&
      !generations(plan).checkpoints_need_gradient) {
    problems.add(
        {"", "checkpointing.reentrant",
         "a reentrant checkpoint of layers whose input needs no gradient makes none: frozen layers end the chain",
         "reentrant false"});
  }
  if (plan.checkpointing.mode == Checkpointing::selective && plan.checkpointing.reentrant) {
    problems.add(
        {"", "checkpointing.reentrant", "a reentrant checkpoint keeps no operators' results", "reentrant false"});
  }
  if (plan.method == Method::prefix && plan.checkpointing.mode != Checkpointing::none) {
    problems.add({"", "checkpointing", "PEFT's prefix tuning does not work with gradient checkpointing", "none"});
  }
  if (!model.dimensions_known && plan.method != Method::full) {
    problems.add({"", "method", name_of(kMethodWords, plan.method) + " needs a model whose modules are known",
                  "a config.json, or --hidden and --layers"});
  }
  if (model.dimensions_known && (model.layers < 1 || model.hidden < 1)) {
    problems.add({"", "model", "has no layers", ""});
  }
}

void check_optimizer(const TrainingPlan& plan, Problems& problems) {
  const OptimizerRow* row = find_optimizer(plan.optimizer);
  if (row == nullptr) {
    problems.add({"", "optimizer", "has the unknown value " + quoted(plan.optimizer), "see membill optimizers"});
    return;
  }
  const std::string name(row->name);
  if (plan.optimizer_impl == OptimizerImpl::fused && row->has_foreach && !row->has_fused) {
    problems.add({"", "optimizer_impl", name + " has no fused implementation", "foreach or loop"});
  }
  if (row->default_rank > 0) check_count(plan, "rank", problems);
  if (row->minimum_elements > 0) check_count(plan, "min_8bit_size", problems);
  const bool in_backward = plan.optimizer_in_backward || row->gradients == GradientLife::one_tensor;
  if (in_backward && plan.accumulate > 1) {
    const std::string who = plan.optimizer_in_backward ? "optimizer_in_backward" : "optimizer " + name;
    problems.add({"", "accumulate", who + " updates after every micro-batch, nothing can accumulate", "accumulate 1"});
  }
  if (plan.optimizer_in_backward && plan.clip) {
    problems.add({"", "clip", "needs all gradients at once, optimizer_in_backward frees each", "clip false"});
  }
}

void check_kernels(const ModelSpec& model, const TrainingPlan& plan, const Hardware& hardware, Problems& problems) {
  const RegimeRow& row = regime(plan.precision);
  if (plan.attention == AttentionKernel::flash && row.compute == DType::fp32) {
    problems.add({"", "attention", "flash has no fp32 kernel", "sdpa, or precision amp-bf16"});
  }
  const LayerKind* layer = first_layer(model);
  if (plan.attention == AttentionKernel::mem_efficient && row.compute != DType::fp32 && layer != nullptr &&
      layer->attention.head_dim % 8 != 0) {
    problems.add({"", "attention",
                  "mem-efficient in 16-bit needs a head size that is a multiple of 8, not " +
                      std::to_string(layer->attention.head_dim),
                  "flash or sdpa"});
  }
  if (plan.precision == Precision::fp8 && hardware.gpu && hardware.gpu->fp8 && !*hardware.gpu->fp8) {
    problems.add({"", "precision", "fp8 needs a card with fp8 units, " + hardware.gpu->name + " has none", "amp-bf16"});
  }
}

}  // namespace membill
