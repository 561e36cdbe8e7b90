#include "estimate/engines/flat_groups.h"

#include <algorithm>

#include "estimate/engines/placement.h"

namespace membill {

void FlatGroups::lay_out(Recorder& recorder, const std::vector<TrainedParameter>& trained) {
  std::vector<Parameter*> decayed, others;
  for (const TrainedParameter& each : trained) {
    const bool vector = each.parameter->value.width() == Size(1);
    parameters_.push_back(each.parameter);
    slices_[each.parameter].elements = recorder.symbols().evaluate(each.elements);
    (plan_.loop == Loop::trainer && vector ? others : decayed).push_back(each.parameter);
  }
  add_group(decayed);
  add_group(others);
}

void FlatGroups::add_group(const std::vector<Parameter*>& members) {
  if (members.empty()) return;
  std::int64_t total = 0;
  for (const Parameter* member : members) {
    Slice& slice = slices_.at(member);
    slice.group = groups_.size();
    slice.begin = total;
    total += slice.elements;
  }
  const std::int64_t part = round_up(total, 2 * ranks_) / ranks_;
  for (const Parameter* member : members) {
    Slice& slice = slices_.at(member);
    const std::int64_t end = slice.begin + slice.elements;
    slice.first_rank = slice.begin / part;
    slice.last_rank = (end - 1) / part;
    slice.own_begin = std::max(slice.begin, rank_ * part);
    slice.own_end = std::min(end, (rank_ + 1) * part);
    largest_tensor_ = std::max(largest_tensor_, slice.elements);
    if (!slice.is_mine()) continue;
    largest_own_slice_ = std::max(largest_own_slice_, slice.own());
    own_elements_ += slice.elements;
  }
  groups_.push_back({part});
}

const Slice* FlatGroups::find(const Parameter& parameter) const {
  const auto found = slices_.find(&parameter);
  return found == slices_.end() ? nullptr : &found->second;
}

std::set<const Parameter*> parameters_of_linears(const JobModules& job) {
  std::set<const Parameter*> found;
  const auto add = [&](const Modules& modules) {
    for (const auto& module : modules.all()) {
      if (module->adapter != nullptr) found.insert({&module->adapter->down, &module->adapter->up});
      if (module->kind != ModuleKind::linear) continue;
      found.insert(&module->weight);
      if (module->bias != nullptr) found.insert(module->bias.get());
    }
  };
  add(job.model.outer);
  for (const UnitModules& unit : job.model.units)
    for (const Modules& layer : unit.layers) add(layer);
  return found;
}

std::int64_t reduce_bucket_elements(const TrainingPlan& plan, std::int64_t hidden) {
  const auto found = plan.sharding.engine_keys.find("reduce_bucket_size");
  if (found != plan.sharding.engine_keys.end() && found->second == "auto") return hidden * hidden;
  constexpr double kDefault = 5e8;
  return static_cast<std::int64_t>(engine_number(plan, "reduce_bucket_size", kDefault));
}

}  // namespace membill
