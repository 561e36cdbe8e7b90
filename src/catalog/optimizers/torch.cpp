#include "catalog/optimizers/groups.h"

namespace membill {
namespace {

constexpr const char* kMeasured =
    "torch 2.15 torch/optim, states and temporaries measured with requested_bytes on torch 2.15.0";
constexpr const char* kScheduleFree = "facebookresearch/schedule_free schedulefree/*_schedulefree.py (commit 00835729)";

std::vector<OptimizerRow> adam_rows() {
  return {
      {.name = "adamw",
       .summary = "AdamW of PyTorch: two moments in the parameter's dtype",
       .aliases = {"adamw_torch", "adamw_hf", "adamw_torch_xla", "torch.optim.AdamW"},
       .fused_aliases = {"adamw_torch_fused", "adamw_torch_npu_fused", "adamw_apex_fused", "fused_adamw"},
       .states = {kFirstMoment, kSecondMoment},
       .loop = StepTemporaries::two_one_kept,
       .foreach = StepTemporaries::one_list,
       .has_foreach = true,
       .has_fused = true,
       .fused_step_counter = true,
       .source = kMeasured},
      {.name = "adam",
       .summary = "Adam of PyTorch: as AdamW, another weight decay",
       .aliases = {"torch.optim.Adam"},
       .fused_aliases = {"fused_adam"},
       .states = {kFirstMoment, kSecondMoment},
       .loop = StepTemporaries::two_one_kept,
       .foreach = StepTemporaries::one_list,
       .has_foreach = true,
       .has_fused = true,
       .fused_step_counter = true,
       .source = "torch 2.15 torch/optim/adam.py: AdamW is Adam with decoupled weight decay, the same code"},
      {.name = "adamw-anyprecision",
       .summary = "AnyPrecisionAdamW of torchdistx with Hugging Face's defaults: two fp32 moments",
       .states = {kFirstMoment32, kSecondMoment32},
       .loop = StepTemporaries::other,
       .source = "transformers src/transformers/trainer_optimizer.py: momentum_dtype and variance_dtype float32, no "
                 "Kahan sum"},
      {.name = "stable-adamw",
       .summary = "StableAdamW of torch-optimi: two moments in the parameter's dtype, a compensation for 16-bit ones",
       .states = {kFirstMoment, kSecondMoment},
       .loop = StepTemporaries::other,
       .source = "torch-optimi 0.3.3 optimi/stableadamw.py, its Triton kernels, measured; kahan_sum as "
                 "transformers src/transformers/trainer_optimizer.py leaves it"},
      {.name = "grokadamw",
       .summary = "GrokAdamW: two moments and an average of gradients, on the host between steps",
       .states = {kFirstMoment, kSecondMoment, {"grok", "average of the gradients"}},
       .loop = StepTemporaries::other,
       .paged = true,
       .paged_minimum = 1,
       .source = "grokadamw 0.1.2 grokadamw/grokadamw.py, measured: states lie on the host between steps"},
      {.name = "adopt",
       .summary = "ADOPT: two moments in the parameter's dtype",
       .aliases = {"adopt_adamw"},
       .states = {kFirstMoment, kSecondMoment},
       .loop = StepTemporaries::other,
       .source = "Taniguchi et al. 2024 (ADOPT), algorithm 2"},
      {.name = "lamb",
       .summary = "LAMB: two moments in the parameter's dtype",
       .aliases = {"fused_lamb"},
       .states = {kFirstMoment, kSecondMoment},
       .loop = StepTemporaries::other,
       .source = "You et al. 2019 (LAMB), algorithm 2"},
  };
}

std::vector<OptimizerRow> plain_rows() {
  return {
      {.name = "sgd",
       .summary = "SGD without momentum: no state",
       .aliases = {"torch.optim.SGD"},
       .has_foreach = true,
       .has_fused = true,
       .source = kMeasured},
      {.name = "sgd-momentum",
       .summary = "SGD with momentum: one state in the parameter's dtype",
       .states = {{"m", "momentum"}},
       .has_foreach = true,
       .has_fused = true,
       .source = kMeasured},
      {.name = "adagrad",
       .summary = "Adagrad of PyTorch: one state, made when the optimizer is constructed",
       .states = {{"v", "sum of squared gradients"}},
       .loop = StepTemporaries::one_kept,
       .foreach = StepTemporaries::two_lists,
       .has_foreach = true,
       .at_construction = true,
       .source = kMeasured},
      {.name = "rmsprop",
       .summary = "RMSprop of PyTorch without momentum: one state",
       .states = {{"v", "average of squared gradients"}},
       .loop = StepTemporaries::one_kept,
       .foreach = StepTemporaries::one_list,
       .has_foreach = true,
       .source = kMeasured},
      {.name = "lion",
       .summary = "Lion of lion-pytorch: one state in the parameter's dtype",
       .states = {{"m", "momentum"}},
       .loop = StepTemporaries::two,
       .source = "lion-pytorch 0.2.5 lion_pytorch/lion_pytorch.py, measured: clone, and add out of place"},
  };
}

std::vector<OptimizerRow> factored_rows() {
  return {
      {.name = "adafactor",
       .summary = "Adafactor of Transformers without momentum: row and column factors in fp32",
       .aliases = {"transformers.optimization.Adafactor"},
       .states = {{"v", "factored second moment", StateWidth::fp32, StateShape::factored_rows_and_columns},
                  {"rms", "size of the parameter", StateWidth::fp32, StateShape::one_per_tensor}},
       .loop = StepTemporaries::adafactor,
       .source = "transformers 5.24 src/transformers/optimization.py; measured with requested_bytes on torch 2.15.0"},
      {.name = "came",
       .summary = "CAME: momentum and two factored second moments, all in fp32",
       .aliases = {"came_pytorch"},
       .states = {kFirstMoment32,
                  {"v", "factored second moment", StateWidth::fp32, StateShape::factored_rows_and_columns},
                  {"residual", "factored confidence, of matrices only", StateWidth::fp32,
                   StateShape::factored_of_matrices}},
       .loop = StepTemporaries::other,
       .source = "came-pytorch 0.1.3 came_pytorch/CAME.py, measured"},
  };
}

std::vector<OptimizerRow> schedule_free_rows() {
  return {
      {.name = "schedule-free-adamw",
       .summary = "Schedule-Free AdamW: the averaged point and a second moment",
       .states = {{"z", "averaged point"}, kSecondMoment},
       .loop = StepTemporaries::one_kept,
       .foreach = StepTemporaries::one_list,
       .has_foreach = true,
       .source = kScheduleFree},
      {.name = "schedule-free-radam",
       .summary = "Schedule-Free RAdam: the averaged point and a second moment",
       .states = {{"z", "averaged point"}, kSecondMoment},
       .loop = StepTemporaries::one_kept,
       .foreach = StepTemporaries::one_list,
       .has_foreach = true,
       .source = kScheduleFree},
      {.name = "schedule-free-sgd",
       .summary = "Schedule-Free SGD: the averaged point",
       .states = {{"z", "averaged point"}},
       .has_foreach = true,
       .source = kScheduleFree},
  };
}

}  // namespace

std::vector<OptimizerRow> torch_optimizers() {
  std::vector<OptimizerRow> rows = adam_rows();
  for (const auto& more : {plain_rows(), factored_rows(), schedule_free_rows()}) {
    rows.insert(rows.end(), more.begin(), more.end());
  }
  return rows;
}

}  // namespace membill
