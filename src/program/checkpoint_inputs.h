// What becomes of a checkpoint's input between its two runs, where a function of one's own decides it.
#pragma once

#include <memory>

#include "program/tensor.h"

namespace membill {

// One input, from before the first run on.
class KeptInput {
 public:
  KeptInput() = default;
  KeptInput(const KeptInput&) = delete;
  KeptInput& operator=(const KeptInput&) = delete;
  virtual ~KeptInput() = default;
  // The first run is over. May empty `input`, for whoever else has it, too.
  virtual void leave(Recorder& recorder, Tensor& input) = 0;
  // The data again, before the second run.
  [[nodiscard]] virtual std::shared_ptr<Storage> bring_back(Recorder& recorder) = 0;
};

class InputKeeper {
 public:
  InputKeeper() = default;
  InputKeeper(const InputKeeper&) = delete;
  InputKeeper& operator=(const InputKeeper&) = delete;
  virtual ~InputKeeper() = default;
  // Before the first run.
  [[nodiscard]] virtual std::unique_ptr<KeptInput> keep(Recorder& recorder, const Tensor& input) = 0;
};

}  // namespace membill
