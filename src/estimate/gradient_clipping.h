// torch.nn.utils.clip_grad_norm_ in its foreach form, which CUDA tensors take by default.
#pragma once

#include <vector>

#include "estimate/parameters.h"

namespace membill {

// The tensors of one call: per group of a dtype the kernel's scratch and one norm a gradient, then scalars. Gradients are scaled
// in place. Source: torch 2.15 torch/nn/utils/clip_grad.py, aten/src/ATen/native/cuda/ForeachReduceOp.cu.
void clip_gradients(Recorder& recorder, std::vector<TrainedParameter>& trained);

}  // namespace membill
