#include "estimate/engines/zero3_coordinator.h"

#include <algorithm>

namespace membill {

// all_gather_coalesced: one parameter is gathered in place, several into a flat tensor from which each is copied when it is needed.
void Zero3Coordinator::gather(const Group& parameters) {
  if (parameters.empty()) return;
  const StreamScope scope(r_.writer(), kGatherStream);
  auto gather = std::make_shared<Gather>();
  gather->members = parameters;
  std::vector<Tensor> inputs;
  Size bytes;
  for (Partitioned* p : parameters) {
    available_ += p->elements;
    bytes += Size(p->part * limits_.ranks * bytes_per_element(p->type));
    if (p->on_host)
      inputs.push_back(r_.empty({Size(p->part), Size(1)}, p->type, "partition from the host", flat_item_));
    in_flight_[p] = gather;
  }
  if (parameters.size() == 1) {
    Partitioned& only = *parameters.front();
    only.whole = r_.empty({Size(only.part * limits_.ranks), Size(1)}, only.type, "gathered parameter", only.item);
    gather->done = true;
  } else {
    gather->flat = r_.empty({bytes, Size(1)}, DType::uint8, "all-gather output", flat_item_);
  }
}

void Zero3Coordinator::wait(Partitioned& parameter) {
  const auto found = in_flight_.find(&parameter);
  if (found == in_flight_.end()) return;
  const StreamScope scope(r_.writer(), kGatherStream);
  Gather& gather = *found->second;
  if (!gather.done)
    for (Partitioned* member : gather.members)
      member->whole = r_.empty({Size(member->elements), Size(1)}, member->type, "gathered parameter", member->item);
  gather.done = true;
  in_flight_.erase(found);
}

void Zero3Coordinator::fetch(const Group& module) {
  if (!complete_) order_.push_back(module);
  Group absent;
  std::copy_if(module.begin(), module.end(), std::back_inserter(absent), [&](Partitioned* p) { return is_absent(*p); });
  gather(absent);
  for (Partitioned* parameter : module) wait(*parameter);
  if (complete_) prefetch(module);
  ++step_;
}

std::int64_t Zero3Coordinator::last_fetched_for(const Partitioned& parameter) const {
  const auto found = fetched_for_.find(&parameter);
  return found == fetched_for_.end() ? -1 : found->second;
}

void Zero3Coordinator::prefetch(const Group& fetched) {
  std::set<Partitioned*> discarded;
  const auto own = static_cast<std::size_t>(std::count_if(
      fetched.begin(), fetched.end(), [&](const Partitioned* p) { return last_fetched_for(*p) < step_; }));
  while (!queue_.empty() && discarded.size() < own) {
    fetched_for_[queue_.front().parameter] = queue_.front().step;
    discarded.insert(queue_.front().parameter);
    queue_.pop_front();
  }
  const std::int64_t most = std::min(limits_.live - available_, limits_.prefetch);
  Group ahead;
  for (std::int64_t elements = 0; !queue_.empty() && elements < most; queue_.pop_front()) {
    const Use next = queue_.front();
    std::int64_t& last = fetched_for_.try_emplace(next.parameter, -1).first->second;
    last = std::max(last, next.step);
    if (!is_absent(*next.parameter) || std::find(ahead.begin(), ahead.end(), next.parameter) != ahead.end()) continue;
    ahead.push_back(next.parameter);
    elements += next.parameter->elements;
  }
  std::sort(ahead.begin(), ahead.end(), [](const auto* a, const auto* b) { return a->number < b->number; });
  gather(ahead);
}

// Whether one of the modules that follow within the reuse distance uses it.
bool Zero3Coordinator::is_used_soon(const Partitioned& parameter) const {
  std::int64_t traversed = 0;
  for (auto at = static_cast<std::size_t>(step_); at < order_.size() && traversed < limits_.reuse; ++at)
    for (const Partitioned* other : order_[at]) {
      if (other == &parameter) return true;
      traversed += other->elements;
    }
  return false;
}

void Zero3Coordinator::release(const Group& module) {
  for (Partitioned* p : module) {
    const bool kept = complete_ && (p->persists || last_fetched_for(*p) > step_ || is_used_soon(*p));
    if (kept || !p->whole.defined() || in_flight_.count(p) > 0) continue;
    partition(*p);
    available_ -= p->elements;
  }
}

void Zero3Coordinator::partition(Partitioned& parameter) {
  if (parameter.second_part > 0 && !parameter.second.defined())
    parameter.second =
        r_.empty({Size(parameter.second_part), Size(1)}, parameter.type, "part of the secondary copy", parameter.item);
  parameter.whole.drop();
}

void Zero3Coordinator::end_pass() {
  complete_ = true;
  step_ = 0;
  fetched_for_.clear();
  queue_.clear();
  for (std::size_t step = 0; step < order_.size(); ++step)
    for (Partitioned* parameter : order_[step]) queue_.push_back({parameter, static_cast<std::int64_t>(step)});
}

}  // namespace membill
