// The fused head of TRL 1.x: log-probabilities of the labels without whole logits.
#pragma once

#include "blocks/forward.h"

namespace membill {

// Per-position results besides the log-probabilities, as TRL's trainers ask for them: SFT for entropy and top-1, DPO for all.
struct FusedHeadOutputs {
  bool entropy = false, log_sum_of_squares = false, mean_logits = false, top1 = false;
};

// What a fused forward returns, by position (all but each row's last); fields that were not asked for are not defined.
struct FusedHeadResult {
  Tensor log_probabilities, entropy, log_sum_of_squares, mean_logits, top1, counts;
};

// Whether the stage's trainer reads the head's matrix by the fused head, so that the head's own forward never runs.
[[nodiscard]] bool reads_head(const TrainingPlan& plan);

// model(..., labels=labels, fused_lm_head=True) after the decoder: the `counted` positions whose label is not -100 are copied and
// multiplied with tiles of the head, 4096 tokens by 32768 words at a time; backward makes the tiles again and sums the gradients of
// the copied rows and of the head in fp32. `hidden` is given up when the forward returns.
// Source: trl 1.16 trainer/utils.py add_fused_lm_head, kernels/chunked_logprob.py.
[[nodiscard]] FusedHeadResult fused_log_probabilities(Forward& f, Module& head, Tensor hidden, const Size& counted,
                                                      const FusedHeadOutputs& outputs);

}  // namespace membill
