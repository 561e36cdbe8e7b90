// The peak of a trace as a maximum of a few polynomials in the symbols that vary: folded once, evaluated for every case.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "trace/trace.h"

namespace membill {

// The same peak as fold_peak() finds, for every value of the symbols that vary for which the decisions of the trace hold.
class PeakFormula {
 public:
  // None where a loop's number of turns varies.
  [[nodiscard]] static std::optional<PeakFormula> of(const Trace& trace, const SymbolTable& symbols);

  struct Peak {
    std::int64_t highest = 0;
    std::int32_t moment = 0;  // index into Trace::moments: the first that is as high
  };
  // Under the table's present values. REQUIRES: the table that it was made with, or a copy. Throws OverflowError.
  [[nodiscard]] Peak evaluate(const SymbolTable& symbols) const;
  // Whether the decisions of the trace come out the same under the table's present values.
  [[nodiscard]] bool holds(const SymbolTable& symbols) const;
  // How many polynomials are left.
  [[nodiscard]] std::size_t size() const { return candidates_.size(); }

 private:
  class Walk;
  // Coefficients in the order of products_.
  using Coefficients = std::vector<std::int64_t>;
  struct Candidate {
    Coefficients sum;
    std::int32_t moment = 0;
  };
  std::vector<Size> products_;  // of symbols that vary; the first is 1
  std::vector<Candidate> candidates_;
  std::vector<Decision> decisions_;  // those that some values of at least 1 can change
};

}  // namespace membill
