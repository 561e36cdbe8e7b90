// What PEFT adds to a built model: adapters on the matched modules, copies of modules_to_save.
#pragma once

#include "catalog/adapters.h"
#include "estimate/parameters.h"

namespace membill {

// Adds adapters and saved copies to `job`, in model order, allocating them inside their units; of methods that put none on modules,
// the copies. REQUIRES: the targets match.
void add_adapters(Recorder& recorder, const ModelSpec& model, const TrainingPlan& plan, JobModules& job);

}  // namespace membill
