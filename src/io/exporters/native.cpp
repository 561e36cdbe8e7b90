// membill's own job file: every field that differs from the defaults.
#include <string_view>

#include "io/exporters/formats.h"
#include "io/value_writer.h"

namespace membill::io {
namespace {

// Fields that are written all the same, so that the file says what the job is.
constexpr std::string_view kAlways[] = {"stage",          "method", "weights",    "precision", "optimizer",
                                        "optimizer_impl", "batch",  "accumulate", "seq",       "engine"};

bool is_always(std::string_view key) {
  for (const std::string_view always : kAlways) {
    if (key == always) return true;
  }
  return false;
}

void set_inside(Value& map, std::string_view key, const Value& value) {
  const std::size_t dot = key.find('.');
  if (dot == std::string_view::npos) return map.set(key, value);
  const Value* found = map.find(key.substr(0, dot));
  Value branch = found == nullptr ? Value::make_map() : *found;
  set_inside(branch, key.substr(dot + 1), value);
  map.set(key.substr(0, dot), std::move(branch));
}

bool same(const Value* a, const Value* b) {
  const auto text = [](const Value* value) { return value == nullptr ? std::string("null") : write_json_line(*value); };
  return text(a) == text(b);
}

Value write(const ExportJob& job, Problems&) {
  Value tree = Value::make_map();
  if (const std::string& model = job.preset.empty() ? job.model : job.preset; !model.empty())
    tree.set("model", Value::of(model));
  set_inside(tree, "hardware.count", Value::of(job.count));
  set_inside(tree, "hardware.nodes", Value::of(job.nodes));
  const PlanText plan(job.plan), usual(TrainingPlan{});
  for (const auto& [key, value] : plan.all().entries()) {
    const bool is_default = same(plan.find(key), usual.find(key));
    if (is_always(key) || !is_default) set_inside(tree, key, value);
  }
  return tree;
}

}  // namespace

Exporter native_exporter() { return {"membill", "membill's own job file", Syntax::yaml, false, write}; }

}  // namespace membill::io
