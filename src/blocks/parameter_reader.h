// What an engine does when code reads a parameter itself, without its module.
#pragma once

#include "blocks/forward.h"

namespace membill {

// Parameters that are made whole together, for a moment: bytes of each.
struct WholeParameters {
  int unit = TraceWriter::kNoUnit;
  std::vector<Size> bytes;
};

class ParameterReader {
 public:
  virtual ~ParameterReader() = default;
  // What the reader holds instead of the parameter; not defined where the engine makes it whole in its place.
  virtual Tensor read(Parameter& weight) = 0;
  // What makes every parameter whole at once, for code that runs without the engine; nothing where the engine goes on around it.
  virtual std::vector<Tensor> gather_all() { return {}; }
  // What it makes whole, group after group, for code that hands every parameter to another program. `merged`: adapters are merged first.
  virtual std::vector<WholeParameters> handed_over(bool merged) {
    return static_cast<void>(merged), std::vector<WholeParameters>();
  }
};

[[nodiscard]] inline Tensor read_parameter(Forward& f, Parameter& weight) {
  auto* reader = dynamic_cast<ParameterReader*>(f.hooks);
  return reader == nullptr ? Tensor() : reader->read(weight);
}

}  // namespace membill
