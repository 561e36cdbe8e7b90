// What a recomputed block reads in place of its inputs.
#pragma once

#include <vector>

#include "program/recorder.h"

namespace membill {

// A detached copy of each input that gives its gradient to a leaf of its own.
struct Leaves {
  std::vector<Parameter> parameters;
  std::vector<Tensor> inputs;

  Leaves(Recorder& recorder, const std::vector<Tensor>& kept) : parameters(kept.size()) {
    for (std::size_t i = 0; i < kept.size(); ++i) {
      Tensor again = recorder.detach(kept[i]);
      again.body().requires_grad = kept[i].requires_grad();
      again.body().leaf = again.requires_grad() ? &parameters[i] : nullptr;
      inputs.push_back(std::move(again));
    }
  }

  Gradients gradients() {
    Gradients result;
    for (Parameter& parameter : parameters) result.push_back(std::move(parameter.gradient));
    return result;
  }
};

}  // namespace membill
