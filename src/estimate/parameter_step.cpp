#include "estimate/parameter_step.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "estimate/adam_mini_step.h"
#include "estimate/factored_steps.h"
#include "estimate/low_rank_steps.h"
#include "estimate/stable_step.h"

namespace membill {
namespace {

template <typename Step>
std::unique_ptr<ParameterStep> new_step(Recorder& recorder, OptimizerStates& states) {
  return std::make_unique<Step>(recorder, states);
}

struct LoopOfOptimizer {
  std::string_view optimizer;
  std::unique_ptr<ParameterStep> (*make)(Recorder& recorder, OptimizerStates& states);
};

constexpr std::array kLoops{
    LoopOfOptimizer{"adam-mini", &new_step<AdamMiniStep>},
    LoopOfOptimizer{"adafactor", &new_step<AdafactorStep>},
    LoopOfOptimizer{"adalomo", &new_step<AdaLomoStep>},
    LoopOfOptimizer{"apollo-adamw", &new_step<ApolloStep>},
    LoopOfOptimizer{"apollo-adamw-layerwise", &new_step<ApolloStep>},
    LoopOfOptimizer{"apollo-mini", &new_step<ApolloMiniStep>},
    LoopOfOptimizer{"came", &new_step<CameStep>},
    LoopOfOptimizer{"galore-adamw", &new_step<GaloreStep>},
    LoopOfOptimizer{"galore-adamw-8bit", &new_step<Galore8BitStep>},
    LoopOfOptimizer{"galore-adamw-8bit-layerwise", &new_step<Galore8BitStep>},
    LoopOfOptimizer{"galore-adamw-layerwise", &new_step<GaloreStep>},
    LoopOfOptimizer{"grokadamw", &new_step<GrokStep>},
    LoopOfOptimizer{"lion", &new_step<LionStep>},
    LoopOfOptimizer{"lomo", &new_step<LomoStep>},
    LoopOfOptimizer{"muon", &new_step<MuonStep>},
    LoopOfOptimizer{"stable-adamw", &new_step<StableStep>},
};

}  // namespace

void ParameterStep::size_of() const {
  const Tensor norm = scalar(DType::fp32);
  static_cast<void>(scalar(DType::fp32));
}

std::unique_ptr<ParameterStep> make_parameter_step(std::string_view name, Recorder& recorder, OptimizerStates& states) {
  const auto* const loop =
      std::find_if(kLoops.begin(), kLoops.end(), [&](const LoopOfOptimizer& l) { return l.optimizer == name; });
  return loop == kLoops.end() ? nullptr : loop->make(recorder, states);
}

}  // namespace membill
