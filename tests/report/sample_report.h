// Reports written by hand, for tests of renderers.
#ifndef MEMBILL_TESTS_REPORT_SAMPLE_REPORT_H_
#define MEMBILL_TESTS_REPORT_SAMPLE_REPORT_H_

#include "membill/report.h"

namespace membill::test {

// Every field is set: two ranks, ranges, host items, notes, a verdict that does not fit.
[[nodiscard]] Report full_report();
// One card, exact figures, no card named, nothing to note.
[[nodiscard]] Report plain_report();
// An item is unknown: totals are lower bounds.
[[nodiscard]] Report unknown_report();

}  // namespace membill::test

#endif  // MEMBILL_TESTS_REPORT_SAMPLE_REPORT_H_
