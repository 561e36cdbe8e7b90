// Simulates a whole job on one card: load and build, the first step, the step that is billed. The result is a trace.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "blocks/causal_lm.h"
#include "membill/hardware.h"
#include "membill/model_spec.h"
#include "membill/training_plan.h"
#include "trace/trace.h"

namespace membill {

struct Simulation {
  Trace trace;
  SymbolTable symbols;
  std::int64_t trainable_parameters = 0;
  bool activations_known = true;  // false: the model type has no block program; only parameters and states are billed
  bool tied_embeddings = false;   // of the whole model
  std::map<std::string, std::int64_t> host, nvme;  // bytes in host memory and in files on NVMe by item id
  std::vector<std::string> assumptions, warnings;
};

// `expand`: simulate every layer instead of three of each run (the same trace, longer; tests compare the two).
[[nodiscard]] Simulation simulate(const ModelSpec& model, const TrainingPlan& plan, const Hardware& hardware,
                                  bool expand = false);
// The same trace, whose symbols know for which other batches and lengths it is the same (SymbolTable::decisions()).
[[nodiscard]] Simulation simulate_shape(const ModelSpec& model, const TrainingPlan& plan, const Hardware& hardware);

}  // namespace membill
