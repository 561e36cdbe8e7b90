// Convolutions over the tokens of each channel, as linear attentions and short convolutions have them.
#pragma once

#include <string>

#include "blocks/forward.h"

namespace membill {

// What a projection gives, transposed to channels first. Its matrix product's backward reads rows of one tensor: the gradient is copied
// unless the batch has one row. That of bitsandbytes' 4-bit weights multiplies each row of the batch by itself and copies nothing.
[[nodiscard]] Tensor projected_channels_first(Forward& f, Module& projection, const Tensor& x);

// torch.nn.functional.conv1d over each channel by itself, into `shape`: a contiguous copy of the input while it runs.
[[nodiscard]] Tensor channel_convolution(Forward& f, const Tensor& given, Parameter& weight, const Shape& shape,
                                         Parameter* bias = nullptr);

// causal_conv1d_fn: an activation over the first tokens of a longer convolution, in the type of `mixed`.
[[nodiscard]] Tensor causal_convolution(Forward& f, Module& module, const Size& kernel, const std::string& act,
                                        const Tensor& mixed);

}  // namespace membill
