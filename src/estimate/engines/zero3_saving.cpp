#include "estimate/engines/zero3_saving.h"

namespace membill {
namespace {

class Gathers {
 public:
  Gathers(const std::map<const Parameter*, Partitioned>& partitioned, std::int64_t ranks)
      : partitioned_(partitioned), ranks_(ranks) {}

  void add_modules(const Modules& modules) {
    last_experts_.clear();
    for (const auto& module : modules.all()) {
      if (!joins_experts(*module)) found_.emplace_back();
      add(&module->weight);
      add(module->bias.get());
      if (module->adapter == nullptr) continue;
      for (const Parameter* part : {&module->adapter->down, &module->adapter->up, module->adapter->magnitude.get()}) {
        found_.emplace_back();
        add(part);
      }
    }
  }

  std::vector<SavingGather> take() && { return std::move(found_); }

 private:
  // All matrices of the experts are parameters of one module.
  bool joins_experts(const Module& module) {
    const std::string parent =
        module.role == TensorRole::expert ? module.name.substr(0, module.name.rfind('.')) : std::string();
    const bool joins = !parent.empty() && parent == last_experts_;
    last_experts_ = parent;
    return joins;
  }

  void add(const Parameter* parameter) {
    const auto found = partitioned_.find(parameter);
    if (found == partitioned_.end()) return;
    const Partitioned& p = found->second;
    found_.back().bytes.emplace_back(p.part * ranks_ * bytes_per_element(p.type));
    if (p.on_host) found_.back().bytes.emplace_back(p.part * bytes_per_element(p.type));
  }

  const std::map<const Parameter*, Partitioned>& partitioned_;
  std::int64_t ranks_;
  std::string last_experts_;
  std::vector<SavingGather> found_;
};

}  // namespace

SavingGathers gathers_of(const TrainingPlan& plan, const JobModules& job,
                         const std::map<const Parameter*, Partitioned>& partitioned, std::int64_t ranks) {
  if (plan.save.state == "sharded" && !has_adapters(plan)) return {};
  Gathers gathers(partitioned, ranks);
  gathers.add_modules(job.model.outer);
  for (const UnitModules& unit : job.model.units)
    for (const Modules& layer : unit.layers) gathers.add_modules(layer);
  return std::move(gathers).take();
}

}  // namespace membill
