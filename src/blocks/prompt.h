// Prompt tuning and p-tuning: trained tokens before the text (peft 0.21.2).
#pragma once

#include "blocks/forward.h"

namespace membill {

// The embeddings of the text behind those of the virtual tokens (peft_model.py PeftModelForCausalLM.forward); f.labels gets as many
// more.
[[nodiscard]] Tensor with_prompt(Forward& f, const Tensor& ids, const Tensor& embedded);

}  // namespace membill
