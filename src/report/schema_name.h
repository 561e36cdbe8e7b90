// The name and version of the report's JSON: what scripts check first.
#ifndef MEMBILL_REPORT_SCHEMA_NAME_H_
#define MEMBILL_REPORT_SCHEMA_NAME_H_

#include <string_view>

namespace membill::report {

// Value of the key `schema`. The number grows when a key is removed or changes its meaning; new keys do not change it.
inline constexpr std::string_view kReportSchema = "membill/report/1";

}  // namespace membill::report

#endif  // MEMBILL_REPORT_SCHEMA_NAME_H_
