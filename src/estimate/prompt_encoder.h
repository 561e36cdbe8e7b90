// The trained tokens of prompt tuning and p-tuning.
#pragma once

#include "estimate/parameters.h"

namespace membill {

// Allocates the encoder and adds it to the job's trained parameters.
void add_prompt_encoder(Recorder& recorder, const TrainingPlan& plan, const Dims& dims, JobModules& job);

}  // namespace membill
