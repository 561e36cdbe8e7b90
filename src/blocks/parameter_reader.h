// What an engine does when code reads a parameter itself, without its module.
#pragma once

#include "blocks/forward.h"

namespace membill {

class ParameterReader {
 public:
  virtual ~ParameterReader() = default;
  // What the reader holds instead of the parameter; not defined where the engine makes it whole in its place.
  virtual Tensor read(Parameter& weight) = 0;
  // What makes every parameter whole at once, for code that runs without the engine; nothing where the engine goes on around it.
  virtual std::vector<Tensor> gather_all() { return {}; }
};

[[nodiscard]] inline Tensor read_parameter(Forward& f, Parameter& weight) {
  auto* reader = dynamic_cast<ParameterReader*>(f.hooks);
  return reader == nullptr ? Tensor() : reader->read(weight);
}

}  // namespace membill
