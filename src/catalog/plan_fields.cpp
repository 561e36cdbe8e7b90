#include "catalog/plan_fields/row.h"
#include "membill/catalog.h"

namespace membill {
namespace {

std::vector<PlanFieldRow> plan_field_rows() {
  std::vector<PlanFieldRow> rows;
  for (const auto& group :
       {method_fields(), optimizer_fields(), step_fields(), vision_fields(), sharding_fields(), runtime_fields()}) {
    rows.insert(rows.end(), group.begin(), group.end());
  }
  return rows;
}

}  // namespace

std::span<const PlanFieldRow> plan_fields() {
  static const std::vector<PlanFieldRow> kRows = plan_field_rows();
  return kRows;
}

const PlanFieldRow* find_plan_field(std::string_view key_or_flag) {
  if (key_or_flag.empty()) return nullptr;
  for (const PlanFieldRow& row : plan_fields()) {
    if (row.key == key_or_flag || row.flag == key_or_flag) return &row;
  }
  return nullptr;
}

std::vector<PlanField> write_plan_fields(const TrainingPlan& plan) {
  std::vector<PlanField> fields;
  for (const PlanFieldRow& row : plan_fields()) {
    if (row.part) continue;
    std::string json = row.write(plan);
    const bool engine_key = row.key.rfind("sharding.", 0) == 0 && row.flag.empty();
    if (engine_key && json == "null") continue;
    if (row.key.rfind("vision.", 0) == 0 && plan.vision.images == 0) continue;
    fields.push_back({row.key, std::move(json)});
  }
  return fields;
}

}  // namespace membill
