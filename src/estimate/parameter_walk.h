// Visits the trained parameters in the order of model.parameters(), each inside its unit of the trace.
#pragma once

#include <vector>

#include "estimate/parameters.h"

namespace membill {

// Calls `work(trained, index)` for each. After the last, the writer is outside of every unit.
template <typename Work>
void walk_parameters(TraceWriter& writer, std::vector<TrainedParameter>& trained, Work work) {
  for (std::size_t i = 0; i < trained.size(); ++i) {
    writer.visit(trained[i].parameter->unit, true);
    work(trained[i], i);
  }
  writer.visit(TraceWriter::kNoUnit, true);
}

// The same from the last to the first, as CPython empties a list.
template <typename Work>
void walk_parameters_backwards(TraceWriter& writer, std::vector<TrainedParameter>& trained, Work work) {
  for (std::size_t i = trained.size(); i-- > 0;) {
    writer.visit(trained[i].parameter->unit, false);
    work(trained[i], i);
  }
  writer.visit(TraceWriter::kNoUnit, false);
}

}  // namespace membill
