// What earlier releases of the frameworks did differently, where it moves memory.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "membill/training_plan.h"

namespace membill {

// A release that plan.software does not name is the one that block programs are written from: torch 2.15, transformers 5.24.
struct Generations {
  // How TRL's trainers get from hidden states to a loss: not at all (the model's own loss), over whole logits (before 1.0), or by
  // the fused head. A plan says that TRL runs it by naming its release; preference stages are TRL's in any case.
  enum class Trl : std::uint8_t { none, classic, fused };
  Trl trl = Trl::none;
  // transformers before 4.46: the model's forward turns the logits to fp32 and copies all positions but the last
  // (models/llama/modeling_llama.py of 4.45); later ones do so inside the loss function.
  bool logits_upcast_in_model = false;
  // transformers 4.46 to 4.48: the loss function copies all positions but the last of its fp32 logits (loss/loss_utils.py
  // ForCausalLMLoss); from 4.49 the labels are padded instead.
  bool logits_shifted_in_loss = false;
  // transformers before 4.54: SDPA gets keys and values repeated to all query heads (integrations/sdpa_attention.py use_gqa_in_sdpa).
  bool repeats_kv_heads = false;
  // transformers 4.48 to 4.55: SDPA gets heads that lie one after another (integrations/sdpa_attention.py calls contiguous()).
  bool contiguous_heads = false;
  // transformers from 5.0: turning checkpointing on makes the embedding's output need a gradient, also where no adapter asks for it
  // (modeling_utils.py gradient_checkpointing_enable).
  bool checkpoints_need_gradient = true;
  // bitsandbytes before 0.43: a weight is quantised from fp16, to which it is dequantised before it is cast (nn/modules.py Params4bit.cuda).
  bool quantizes_from_half = false;
  // bitsandbytes before 0.43.2: a linear over 4-bit weights keeps its input as an attribute of its node, through checkpoints and after
  // its backward, until the graph is gone (autograd/_functions.py MatMul4Bit ctx.tensors).
  bool holds_4bit_inputs = false;
  // transformers from 5.0: a layer's experts are one tensor, its two matrices joined, where checkpoints hold them apart
  // (conversion_mapping.py).
  bool joins_experts = true;
  // transformers before 4.53: a checkpoint is around a layer's module with all wrappers, later inside of it (modeling_layers.py
  // GradientCheckpointingLayer).
  bool checkpoints_around_wrappers = false;
  // torch before 2.0: zero_grad() fills gradients with zeros where later releases drop them (set_to_none, pytorch/pytorch#92731).
  bool gradients_stay = false;
  // torch before 1.11: softmax() saves its input, for its type alone (tools/autograd/derivatives.yaml _softmax_backward_data).
  bool softmax_saves_input = false;
  // torch from 2.9: rms_norm() is one kernel that keeps its input and a statistic a row (pytorch/pytorch#153666).
  bool fuses_rms_norm = true;
  // torch before 2.2: mean() saves its input instead of its shape (tools/autograd/derivatives.yaml).
  bool mean_saves_input = false;
  // torch 2.0 to 2.14: a cuBLAS workspace stays allocated for each thread that multiplied (pytorch/pytorch#95668); 2.15 takes one
  // for each product (pytorch/pytorch#194311). Before 2.0 cuBLAS takes it outside of the caching allocator.
  bool keeps_matmul_workspaces = false;
  bool matmul_workspaces_outside = false;
};

[[nodiscard]] Generations generations(const TrainingPlan& plan);

// Whether the rows of a batch are joined to one without padding: padding_free, and TRL's packing by best fit.
[[nodiscard]] bool joins_rows(const TrainingPlan& plan);

// Whether the framework brings models of its own in the place of Transformers'.
[[nodiscard]] bool has_own_model_code(const TrainingPlan& plan);

// trl 0.24 models/utils.py, 1.16 experimental/utils.py peft_module_casting_to_bf16: embeddings and head of a 4-bit model go back to
// 16 bits. Of 1.x the trainers of ORPO and CPO alone do so. Trainers of preferences then put an autocast of their own around the
// whole loss.
[[nodiscard]] bool casts_ends_to_16bit(const TrainingPlan& plan);

// "torch 2.15, transformers 5.24": the releases that are assumed since the plan names none. Empty when it names them all.
[[nodiscard]] std::string assumed_releases(const TrainingPlan& plan);

// True for the stages that TRL's trainers run on two sequences a sample, chosen and rejected.
[[nodiscard]] bool has_pairs(Stage stage);

}  // namespace membill
