// The step of Transformers' Adafactor without momentum: transformers 5.24 src/transformers/optimization.py.
#pragma once

#include <vector>

#include "estimate/optimizer_states.h"
#include "estimate/parameters.h"

namespace membill {

// One step. States are made on the way where has_states says that a parameter has none yet.
void step_adafactor(Recorder& recorder, std::vector<TrainedParameter>& trained, OptimizerStates& states,
                    std::vector<bool>& has_states);

}  // namespace membill
