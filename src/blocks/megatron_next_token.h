// Layers that predict the tokens after the next one, each with a loss over the whole vocabulary (megatron-core 0.16
// transformer/multi_token_prediction.py, models/gpt/gpt_model.py _postprocess).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "blocks/architecture.h"

namespace membill {

// How many such layers the plan asks for; 0 outside of Megatron.
[[nodiscard]] std::int64_t next_token_layers(const TrainingPlan& plan);

// The section of one of them, from 0, in a rank's census, and whether a section is one.
[[nodiscard]] std::string next_token_section(std::int64_t layer);
[[nodiscard]] bool is_next_token_part(const Section& section);

// The states of all of them behind `hidden`, each a part of one tensor.
[[nodiscard]] std::vector<Tensor> next_token_states(Forward& f, const Architecture& architecture, const Modules& outer,
                                                    Tensor hidden);

// `hidden` with the losses of those states hanging on it, computed by the head's matrix. `kept_logits` receives what a variable
// of the model holds until it returns.
[[nodiscard]] Tensor with_next_token_losses(Forward& f, Parameter& head, const std::vector<Tensor>& states,
                                            const Tensor& labels, Tensor& kept_logits);

}  // namespace membill
