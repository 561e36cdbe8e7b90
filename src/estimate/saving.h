// The checkpoint between training steps.
#pragma once

#include "estimate/engines/engine.h"
#include "estimate/parameters.h"

namespace membill {

// Moment "save": what the engine gathers for it, or, where every rank has the model, the copies that its state needs on the card. What is
// only read on its way to the host makes none. Source: transformers 5.24 trainer.py _save_checkpoint.
void save_checkpoint(Recorder& recorder, const ModelSpec& model, const TrainingPlan& plan, const Hardware& hardware,
                     JobModules& job, EngineRun* engine);

// What rank 0 collects in host memory for it, which the host's total leaves out; empty: nothing.
[[nodiscard]] std::string saving_note(const ModelSpec& model, const TrainingPlan& plan, const Hardware& hardware,
                                      std::int64_t trainable);

}  // namespace membill
