// Results that nodes of the graph keep, and whose memory goes when the forward has read them: they are made again when the gradient of
// a later result comes (megatron-core 0.16 tensor_parallel/random.py CheckpointWithoutOutput).
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "program/recorder.h"

namespace membill {

class DiscardedResults {
 public:
  using Body = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;
  // Runs `body`, of which the graph keeps `inputs` alone.
  [[nodiscard]] std::vector<Tensor> run(Recorder& r, std::vector<Tensor> inputs, Body body);
  // Whatever reads the results has run, and made `after`, which comes back with a hook on its gradient.
  [[nodiscard]] Tensor discard(Recorder& r, const Tensor& after);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace membill
