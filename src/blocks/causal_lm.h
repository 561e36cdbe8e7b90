// One forward of a causal language model with its loss.
#pragma once

#include <functional>

#include "blocks/architecture.h"
#include "blocks/forward.h"

namespace membill {

// One simulated unit of a stack: the layers that it stands for, in order.
struct UnitModules {
  int unit = TraceWriter::kNoUnit;
  std::vector<Modules> layers;        // one per layer of the unit
  std::vector<std::int32_t> kinds;    // layer kind of each
  std::vector<std::int64_t> numbers;  // place of each in its stack, from 0; of the first layer that it stands for
  std::size_t section = 0;            // index into ModelSpec::sections
};

struct ModelModules {
  Modules outer;                   // modules outside of stacks
  std::vector<UnitModules> units;  // in forward order
  std::unique_ptr<PromptEncoder> prompt;
};

// Whether layer `layer` of a stack, from 0, is recomputed: layers n, 2n, ... for every n-th, as torchtitan's selective
// checkpointing of layers counts (torchtitan/distributed/activation_checkpoint.py).
[[nodiscard]] bool is_checkpointed(const CheckpointPlan& plan, std::int64_t layer);

// How these layers are recomputed, as one.
[[nodiscard]] Recorder::CheckpointKind layer_checkpoint(const Forward& f, const Architecture& architecture,
                                                        const std::vector<Modules*>& layers);

// The operators whose results `plan` keeps: "ops:aten.mm, aten.addmm". Other names are left out.
[[nodiscard]] AtenOperators kept_operators(const CheckpointPlan& plan);

// input_ids -> final hidden states, as the base model's forward. Everything that it holds in local variables is gone when it returns.
[[nodiscard]] Tensor decoder_forward(Forward& f, const Architecture& architecture, ModelModules& modules,
                                     const Tensor& ids);

// input_ids -> loss, as <Type>ForCausalLM.forward with labels, or, of a model whose head is a score, as
// <Type>ForSequenceClassification.forward with a label a row. `ids` is the caller's. The moment "loss" begins at the head.
// When `outputs` is given, the logits stay there, as in a caller that keeps the model's outputs.
[[nodiscard]] Tensor causal_lm_forward(Forward& f, const Architecture& architecture, ModelModules& modules,
                                       const Tensor& ids, Tensor* outputs);

// The module that a sequence classifier has in place of the language model's head.
inline constexpr std::string_view kScoreHead = "score";

}  // namespace membill
