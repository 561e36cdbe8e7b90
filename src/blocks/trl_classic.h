// Log-probabilities of labels over whole logits, as TRL before 1.0 makes them.
#pragma once

#include "blocks/forward.h"

namespace membill {

// selective_log_softmax of trl 0.24. Over fp32 logits: gather minus logsumexp, row by row. The logits stay until backward, which
// holds the rows' gradients and their stack at once, then a zero-filled tensor of the gather. Over 16-bit ones: the log-softmax of
// each row, which stays.
[[nodiscard]] Tensor classic_log_probabilities(Forward& f, const Tensor& logits);

// What use_weighting makes of logits without gradients (trl 0.24 trainer/dpo_trainer.py, WPO). Returns what lives on.
[[nodiscard]] Tensor policy_weights(Forward& f, const Tensor& logits);

// entropy_from_logits without gradients, in chunks of 128 positions.
void classic_entropies(Forward& f, const Tensor& logits);

// transformers' LabelSmoother (trainer_pt_utils.py) over the logits of all positions but each row's last.
[[nodiscard]] Tensor label_smoothed_loss(Forward& f, const Tensor& logits);

// The metrics of an SFT step, without gradients: entropies, and of several rows a shifted copy for the accuracy.
void classic_supervised_metrics(Forward& f, const Tensor& logits);

}  // namespace membill
