#include "membill/diff.h"

#include <algorithm>
#include <cstdlib>

namespace membill {
namespace {

const LineItem* find_item(const Report& report, const std::string& id) {
  const auto found = std::find_if(report.items.begin(), report.items.end(),
                                  [&](const LineItem& item) { return item.id == id && item.where == Place::device; });
  return found == report.items.end() ? nullptr : &*found;
}

ItemDiff compare(const LineItem* a, const LineItem* b) {
  ItemDiff row;
  row.id = (a != nullptr ? a : b)->id;
  row.label = (a != nullptr ? a : b)->label;
  if (a != nullptr) row.a = a->at_peak;
  if (b != nullptr) row.b = b->at_peak;
  const std::int64_t before = row.a.value_or(0), after = row.b.value_or(0);
  row.change = after - before;
  if (row.change == 0)
    row.how = Change::same;
  else if (before == 0)
    row.how = Change::appeared;
  else if (after == 0)
    row.how = Change::gone;
  else
    row.how = row.change > 0 ? Change::grew : Change::shrank;
  return row;
}

std::vector<PlanField> fields_of(const Report& report) {
  std::vector<PlanField> fields{{"model", "\"" + report.model.name + "\""}};
  fields.insert(fields.end(), report.plan.begin(), report.plan.end());
  fields.push_back({"hardware.gpu", report.hardware.name ? "\"" + *report.hardware.name + "\"" : "null"});
  fields.push_back({"hardware.count", std::to_string(report.hardware.count)});
  fields.push_back({"hardware.nodes", std::to_string(report.hardware.nodes)});
  return fields;
}

std::string value_of(const std::vector<PlanField>& fields, const std::string& key) {
  const auto found =
      std::find_if(fields.begin(), fields.end(), [&](const PlanField& field) { return field.key == key; });
  return found == fields.end() ? std::string() : found->json;
}

}  // namespace

BillDiff diff(const Report& a, const Report& b) {
  BillDiff result;
  for (const LineItem& item : a.items)
    if (item.where == Place::device) result.items.push_back(compare(&item, find_item(b, item.id)));
  for (const LineItem& item : b.items)
    if (item.where == Place::device && find_item(a, item.id) == nullptr)
      result.items.push_back(compare(nullptr, &item));
  std::stable_sort(result.items.begin(), result.items.end(),
                   [](const ItemDiff& x, const ItemDiff& y) { return std::abs(x.change) > std::abs(y.change); });
  const std::vector<PlanField> before = fields_of(a), after = fields_of(b);
  for (const PlanField& field : before) {
    const std::string other = value_of(after, field.key);
    if (other != field.json) result.fields.push_back({field.key, field.json, other});
  }
  for (const PlanField& field : after)
    if (value_of(before, field.key).empty()) result.fields.push_back({field.key, "", field.json});
  return result;
}

const char* change_word(Change change) {
  switch (change) {
    case Change::grew: return "grew";
    case Change::shrank: return "shrank";
    case Change::appeared: return "appeared";
    case Change::gone: return "gone";
    case Change::same: break;
  }
  return "same";
}

}  // namespace membill
