// The bill as someone would give it at a whiteboard. Reads only the report, so a saved one is explained as well.
#ifndef MEMBILL_REPORT_EXPLAIN_H_
#define MEMBILL_REPORT_EXPLAIN_H_

#include <string>

#include "membill/report.h"
#include "report/messages.h"

namespace membill::report {

enum class Depth : std::uint8_t {
  brief,   // the largest items, the peak, the verdict
  normal,  // every item above a thousandth of the peak with its formula, numbers, and source
  full,    // every item, also those that are highest at another time; every rule of thumb
};

[[nodiscard]] std::string explain(const Report& report, Depth depth, Language language);

// Ten questions on the job, with their answers.
[[nodiscard]] std::string quiz(const Report& report, Language language);

}  // namespace membill::report

#endif  // MEMBILL_REPORT_EXPLAIN_H_
