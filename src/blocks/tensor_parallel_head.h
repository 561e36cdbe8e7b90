// The head of a model whose layers DeepSpeed's AutoTP splits: each rank's part of the vocabulary, gathered (deepspeed 0.19
// module_inject/layers.py GatherFromTensorParallelRegion).
#pragma once

#include "blocks/forward.h"

namespace membill {

[[nodiscard]] bool gathers_split_logits(const TrainingPlan& plan);
// Whole logits from this rank's.
[[nodiscard]] Tensor with_gathered_logits(Forward& f, Tensor logits);

// A head that is tied to the embedding keeps its part of the logits, and the embedding its part of the words (deepspeed 0.19
// module_inject/layers.py VocabParallelLinear, VocabParallelEmbedding; sequence/cross_entropy.py).
[[nodiscard]] bool keeps_split_vocabulary(const ModelSpec& model, const TrainingPlan& plan);
// The embedding of all ranks' words, summed in place.
[[nodiscard]] Tensor embed_own_words(Forward& f, Module& words, const Tensor& ids);
// Cross entropy of this rank's logits, whose exponentials are kept.
[[nodiscard]] Tensor loss_of_split_logits(Forward& f, const Tensor& logits, const Tensor& labels);

}  // namespace membill
