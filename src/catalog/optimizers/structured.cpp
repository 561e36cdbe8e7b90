#include "catalog/optimizers/groups.h"

namespace membill {
namespace {

std::vector<OptimizerRow> matrix_rows() {
  return {
      {.name = "muon",
       .summary = "Muon: one momentum for hidden matrices, AdamW for all other parameters",
       .aliases = {"dist_muon"},
       .states = {{"m", "momentum"}},
       .loop = StepTemporaries::other,
       .matrices_only = true,
       .source =
           "torch 2.15 torch/optim/_muon.py and AdamW's loop, measured; KellerJordan/Muon muon.py (commit 00ba60d3), "
           "SingleDeviceMuonWithAuxAdam, has the same states"},
      {.name = "shampoo",
       .summary = "Shampoo: a preconditioner and its root for each axis",
       .states = {{"preconditioner", "statistics of an axis", StateWidth::like_parameter, StateShape::square_per_axis},
                  {"root", "inverse root of the statistics", StateWidth::like_parameter, StateShape::square_per_axis}},
       .loop = StepTemporaries::other,
       .source = "Gupta, Koren and Singer 2018 (Shampoo), algorithm 1"},
      {.name = "soap",
       .summary = "SOAP: AdamW's moments in fp32 in the eigenbasis of Shampoo's statistics",
       .states = {kFirstMoment32,
                  kSecondMoment32,
                  {"preconditioner", "statistics of an axis", StateWidth::fp32, StateShape::square_per_axis},
                  {"basis", "eigenvectors of the statistics", StateWidth::fp32, StateShape::square_per_axis}},
       .loop = StepTemporaries::other,
       .largest_axis = 10000,
       .source = "nikhilvyas/SOAP soap.py (commit 01df6764): axes over max_precond_dim 10000 have no statistics"},
      {.name = "adam-mini",
       .summary = "Adam-mini: a first moment, and one second moment a row of a matrix",
       .states = {kFirstMoment, {"v", "second moment of a block", StateWidth::like_parameter, StateShape::adam_mini}},
       .loop = StepTemporaries::two,  // an update and its negative
       .source = "adam-mini 1.1.1 adam_mini/adam_mini.py"},
  };
}

std::vector<OptimizerRow> streaming_rows() {
  return {
      {.name = "lomo",
       .summary = "LOMO: SGD inside the backward, no state and no gradient buffer",
       .loop = StepTemporaries::other,
       .gradients = GradientLife::one_tensor,
       .source = "Lv et al. 2023 (LOMO), section 3; lomo-optim 0.1.1 lomo_optim/lomo.py, measured"},
      {.name = "adalomo",
       .summary = "AdaLOMO: factored second moment in fp32, updates inside the backward",
       .states = {{"v", "factored second moment", StateWidth::fp32, StateShape::factored_rows_and_columns}},
       .loop = StepTemporaries::other,
       .at_construction = true,
       .gradients = GradientLife::one_tensor,
       .source = "Lv et al. 2023 (AdaLomo), algorithm 1; lomo-optim 0.1.1 lomo_optim/adalomo.py, measured"},
      {.name = "badam",
       .summary = "BAdam: AdamW on one block of layers at a time, fp32 copy of that block",
       .states = {{"master", "fp32 copy of the active block", StateWidth::fp32}, kFirstMoment32, kSecondMoment32},
       .loop = StepTemporaries::other,
       .gradients = GradientLife::one_block,
       .source = "Luo, Yu and Li 2024 (BAdam), section 2"},
      {.name = "lisa",
       .summary = "LISA: AdamW on the embedding, the head and a few layers drawn at a time",
       .states = {kFirstMoment, kSecondMoment},
       .loop = StepTemporaries::other,
       .gradients = GradientLife::one_block,
       .source = "Pan et al. 2024 (LISA), algorithm 1"},
      {.name = "cpu-adam",
       .summary = "Adam on the host, as DeepSpeed offloads it: fp32 master and moments in host memory",
       .aliases = {"deepspeed_cpu_adam", "deepspeedcpuadam"},
       .states = {kFirstMoment32, kSecondMoment32},
       .on_host = true,
       .source = "Ren et al. 2021 (ZeRO-Offload), section 4; DeepSpeed deepspeed/ops/adam/cpu_adam.py"},
  };
}

}  // namespace

std::vector<OptimizerRow> structured_optimizers() {
  std::vector<OptimizerRow> rows = matrix_rows();
  const std::vector<OptimizerRow> more = streaming_rows();
  rows.insert(rows.end(), more.begin(), more.end());
  return rows;
}

}  // namespace membill
