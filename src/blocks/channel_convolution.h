// Convolutions over the tokens of each channel, as linear attentions and short convolutions have them.
#pragma once

#include "blocks/forward.h"

namespace membill {

// What a projection gave, transposed to channels first: the gradient is copied for its matrix product.
[[nodiscard]] Tensor channels_first(Forward& f, const Tensor& x);

// torch.nn.functional.conv1d over each channel by itself, into `shape`: a contiguous copy of the input while it runs.
[[nodiscard]] Tensor channel_convolution(Forward& f, const Tensor& given, Parameter& weight, const Shape& shape,
                                         Parameter* bias = nullptr);

}  // namespace membill
