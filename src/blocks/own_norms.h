// Norms that model families write themselves in Python, beside llama's.
#pragma once

#include "blocks/forward.h"

namespace membill {

// GemmaRMSNorm: everything in fp32, weight as 1 + w; the input's type at the end.
[[nodiscard]] Tensor gemma_rms_norm(Forward& f, Module& module, Tensor x);
// Gemma4RMSNorm: the root by torch.pow, weight as it is, or none.
[[nodiscard]] Tensor gemma4_rms_norm(Forward& f, Module* module, Tensor x);
// Olmo2RMSNorm: the product with the weight in fp32, then the input's type.
[[nodiscard]] Tensor olmo2_rms_norm(Forward& f, Module& module, Tensor x);
// CohereLayerNorm: mean and variance operator by operator in fp32, no bias.
[[nodiscard]] Tensor cohere_layer_norm(Forward& f, Module& module, Tensor x);
// OlmoLayerNorm: torch's layer_norm in fp32 without weight or bias.
[[nodiscard]] Tensor olmo_layer_norm(Forward& f, Tensor x);

}  // namespace membill
