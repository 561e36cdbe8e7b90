// The resolved plan between its two shapes: a list of dotted keys in the Report, nested objects in JSON, as in a job file.
#ifndef MEMBILL_REPORT_PLAN_TREE_H_
#define MEMBILL_REPORT_PLAN_TREE_H_

#include <vector>

#include "membill/report.h"
#include "membill/value.h"
#include "report/json_writer.h"

namespace membill::report {

// Writes the fields as one object: "adapter.rank" and "adapter.dropout" share the object "adapter", which stands where the first of
// them does. A field that is an object itself is written like nested keys. REQUIRES: every field's text is JSON.
void write_plan(JsonWriter& out, const std::vector<PlanField>& plan);

// The fields of a plan object, one for each leaf; lists and empty objects are leaves. write_plan() of them gives the same text again.
[[nodiscard]] std::vector<PlanField> read_plan_fields(const Value& plan);

}  // namespace membill::report

#endif  // MEMBILL_REPORT_PLAN_TREE_H_
