#include "estimate/engines/fsdp1_saving.h"

#include <algorithm>

#include "membill/catalog.h"

namespace membill {
namespace {

class Fsdp1Saving {
 public:
  Fsdp1Saving(const TrainingPlan& plan, const FlatPlan& flat, const SymbolTable& symbols)
      : flat_(flat), symbols_(symbols), in_shards_(plan.save.state == "sharded") {
    const OptimizerRow* optimizer = find_optimizer(plan.optimizer);
    if (plan.save.optimizer && optimizer != nullptr) states_ = static_cast<std::int64_t>(optimizer->states.size());
  }

  SavingGathers of(const std::vector<Fsdp1Unit*>& units) const {
    SavingGathers gathers;
    for (const Fsdp1Unit* unit : units) gathers.push_back(parameters(*unit));
    if (states_ == 0) return gathers;
    for (const Fsdp1Unit* unit : units)
      if (unit->trains()) gathers.push_back(states(*unit));
    return gathers;
  }

 private:
  // torch/distributed/fsdp/_state_dict_utils.py unshards each flat parameter as it is stored. Before FULL_STATE_DICT goes on to the units
  // inside it has brought that to the host; SHARDED_STATE_DICT keeps it on the card, and clones this rank's rows of each tensor.
  [[nodiscard]] SavingGather parameters(const Fsdp1Unit& unit) const {
    SavingGather gather{unit.own.unit, {}};
    for (const Fsdp1Unit* open = &unit; open != nullptr; open = in_shards_ ? open->around : nullptr) {
      gather.bytes.push_back(whole(*open));
      if (flat_.on_host) gather.bytes.push_back(shard(*open));
    }
    std::int64_t largest = 0;
    for (const FlatMember& member : unit.members) largest = std::max(largest, rows_of_rank(member));
    if (in_shards_) gather.bytes.emplace_back(largest * bytes_per_element(unit.stored));
    return gather;
  }

  // _optim_utils.py: _allgather_orig_param_states joins the rank's part of a state in a copy of its own, pads that in another and
  // gathers it; _communicate_optim_state gathers all states of a flat parameter, _unflatten_communicated_optim_state then clones rows.
  [[nodiscard]] SavingGather states(const Fsdp1Unit& unit) const {
    SavingGather gather{unit.own.unit, {}};
    const auto add = [&gather](std::int64_t times, const Size& bytes) {
      gather.bytes.insert(gather.bytes.end(), static_cast<std::size_t>(times), bytes);
    };
    if (flat_.on_host) add(states_, shard(unit));
    add(flat_.aligned ? 1 : states_, whole(unit));
    if (flat_.aligned) add(2, shard(unit));
    if (flat_.aligned || !in_shards_) return gather;
    for (const FlatMember& member : unit.members)
      add(states_, Size(rows_of_rank(member) * bytes_per_element(unit.stored)));
    return gather;
  }

  [[nodiscard]] static Size shard(const Fsdp1Unit& unit) { return Size(unit.shard * bytes_per_element(unit.stored)); }
  [[nodiscard]] Size whole(const Fsdp1Unit& unit) const { return shard(unit) * Size(flat_.ranks); }

  // _shard_utils.py _create_chunk_sharded_tensor: elements of the rank's part of the first axis.
  [[nodiscard]] std::int64_t rows_of_rank(const FlatMember& member) const {
    const std::int64_t rows = symbols_.evaluate(member.whole->leading), chunk = ceil_div(rows, flat_.ranks);
    return member.elements / rows * std::clamp<std::int64_t>(rows - flat_.rank * chunk, 0, chunk);
  }

  const FlatPlan& flat_;
  const SymbolTable& symbols_;
  bool in_shards_;
  std::int64_t states_ = 0;
};

}  // namespace

SavingGathers gathers_of(const TrainingPlan& plan, const FlatPlan& flat, const std::vector<Fsdp1Unit*>& units,
                         const SymbolTable& symbols) {
  return Fsdp1Saving(plan, flat, symbols).of(units);
}

}  // namespace membill
