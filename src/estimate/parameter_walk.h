// Visits the trained parameters in the order of model.parameters(), each inside its unit of the trace.
#pragma once

#include <vector>

#include "estimate/parameters.h"

namespace membill {

// Calls `work(trained, index)` for each. After the last, the writer is outside of every unit.
template <typename Work>
void walk_parameters(TraceWriter& writer, std::vector<TrainedParameter>& trained, Work work) {
  const auto visit = [&](int unit) {
    if (unit == writer.unit()) return;
    if (writer.unit() != TraceWriter::kNoUnit) writer.leave();
    if (unit != TraceWriter::kNoUnit) writer.enter(unit, true);
  };
  for (std::size_t i = 0; i < trained.size(); ++i) {
    visit(trained[i].parameter->unit);
    work(trained[i], i);
  }
  visit(TraceWriter::kNoUnit);
}

// The same from the last to the first, as CPython empties a list.
template <typename Work>
void walk_parameters_backwards(TraceWriter& writer, std::vector<TrainedParameter>& trained, Work work) {
  const auto visit = [&](int unit) {
    if (unit == writer.unit()) return;
    if (writer.unit() != TraceWriter::kNoUnit) writer.leave();
    if (unit != TraceWriter::kNoUnit) writer.enter(unit, false);
  };
  for (std::size_t i = trained.size(); i-- > 0;) {
    visit(trained[i].parameter->unit);
    work(trained[i], i);
  }
  visit(TraceWriter::kNoUnit);
}

}  // namespace membill
