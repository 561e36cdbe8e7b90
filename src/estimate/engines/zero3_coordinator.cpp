#include "estimate/engines/zero3_coordinator.h"

#include <algorithm>
#include <iterator>

#include "estimate/engines/placement.h"

namespace membill {
namespace {

constexpr double kPrefetch = 5e7, kLive = 1e9, kReuse = 1e9;

}  // namespace

std::int64_t zero3_limit(const TrainingPlan& plan, const char* key, double fallback, std::int64_t automatic) {
  const auto found = plan.sharding.engine_keys.find(key);
  if (found != plan.sharding.engine_keys.end() && found->second == "auto") return automatic;
  return static_cast<std::int64_t>(engine_number(plan, key, fallback));
}

GatherLimits gather_limits(const TrainingPlan& plan, std::int64_t ranks, std::int64_t hidden) {
  const auto live = static_cast<std::int64_t>(kLive), reuse = static_cast<std::int64_t>(kReuse);
  constexpr std::int64_t kNineTenths = 9;
  return {ranks, zero3_limit(plan, "stage3_prefetch_bucket_size", kPrefetch, hidden * hidden * kNineTenths / 10),
          zero3_limit(plan, "stage3_max_live_parameters", kLive, live),
          zero3_limit(plan, "stage3_max_reuse_distance", kReuse, reuse), !runs_mics(plan)};
}

// Types that are sent are gathered one after the other.
void Zero3Coordinator::gather(const Group& parameters) {
  const auto is_cast = [](const Partitioned* p) { return p->sent != p->type; };
  Group cast, plain;
  std::copy_if(parameters.begin(), parameters.end(), std::back_inserter(cast), is_cast);
  std::remove_copy_if(parameters.begin(), parameters.end(), std::back_inserter(plain), is_cast);
  gather_as(cast);
  gather_as(plain);
}

// all_gather_coalesced: one parameter is gathered in place, several into a flat tensor from which each is copied when it is needed, as
// is one that is sent in another type.
void Zero3Coordinator::gather_as(const Group& parameters) {
  if (parameters.empty()) return;
  const StreamScope scope(r_.writer(), kGatherStream);
  auto gather = std::make_shared<Gather>();
  gather->members = parameters;
  gather->cast = parameters.front()->sent != parameters.front()->type;
  std::vector<Tensor> inputs;
  Size bytes;
  for (Partitioned* p : parameters) {
    available_ += p->elements;
    bytes += Size(p->part * limits_.ranks * bytes_per_element(p->sent));
    if (p->on_host)
      inputs.push_back(r_.empty({Size(p->part), Size(1)}, p->type, "partition from the host", flat_item_));
    if (gather->cast)
      inputs.push_back(r_.empty({Size(p->part), Size(1)}, p->sent, "partition as it is sent", flat_item_));
    in_flight_[p] = gather;
  }
  if ((parameters.size() == 1 && !gather->cast) || !limits_.joined) {
    for (Partitioned* p : parameters)
      p->whole = r_.empty({Size(p->part * limits_.ranks), Size(1)}, p->type, "gathered parameter", p->item);
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
    for (Partitioned* member : gather.members) {
      const Shape shape{Size(member->elements), Size(1)};
      Tensor joined;
      if (gather.cast && gather.members.size() > 1)
        joined = r_.empty(shape, member->sent, "gathered parameter as it was sent", flat_item_);
      member->whole = r_.empty(shape, member->type, "gathered parameter", member->item);
    }
  gather.done = true;
  in_flight_.erase(found);
}

void Zero3Coordinator::fetch(const Group& module) {
  const auto at = static_cast<std::size_t>(step_);
  if (trace_ == Trace::complete && (at >= order_.size() || order_[at] != module)) invalidate();
  if (trace_ == Trace::record) order_.push_back(module);
  Group absent;
  std::copy_if(module.begin(), module.end(), std::back_inserter(absent), [&](Partitioned* p) { return is_absent(*p); });
  gather(absent);
  for (Partitioned* parameter : module) wait(*parameter);
  if (trace_ == Trace::complete) prefetch(module);
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

// __params_to_release: what was decided for a module at a step is decided for good (functools.lru_cache), whatever has changed since.
const Zero3Coordinator::Group& Zero3Coordinator::kept_after(const Group& module) {
  const auto [found, is_new] = kept_.try_emplace({module, step_});
  if (is_new)
    std::copy_if(module.begin(), module.end(), std::back_inserter(found->second),
                 [&](const Partitioned* p) { return p->persists || last_fetched_for(*p) > step_ || is_used_soon(*p); });
  return found->second;
}

// Something else runs with it, or will, or it is on its way.
bool Zero3Coordinator::stays_whole(const Partitioned& parameter) const {
  const auto is_it = [&](const auto& attributed) { return attributed.second == &parameter; };
  return std::find(held_.begin(), held_.end(), &parameter) != held_.end() || !parameter.whole.defined() ||
         std::any_of(attributed_.begin(), attributed_.end(), is_it) ||
         std::any_of(in_flight_.begin(), in_flight_.end(),
                     [&](const auto& waiting) { return waiting.first == &parameter; });
}

void Zero3Coordinator::release(const Group& module) {
  const Group kept = trace_ == Trace::complete ? kept_after(module) : Group();
  for (Partitioned* p : module) {
    if (std::find(kept.begin(), kept.end(), p) != kept.end() || stays_whole(*p)) continue;
    partition(*p);
    available_ -= p->elements;
  }
}

void Zero3Coordinator::attribute(const Group& parameters, Owner owner) {
  for (Partitioned* p : parameters) attributed_.emplace_back(owner, p);
}

Zero3Coordinator::Group Zero3Coordinator::take_attributed(Owner owner) {
  Group taken;
  std::erase_if(attributed_, [&](const auto& attributed) {
    if (attributed.first == owner) taken.push_back(attributed.second);
    return attributed.first == owner;
  });
  return taken;
}

void Zero3Coordinator::release_attributed(Partitioned& parameter) {
  if (parameter.persists || stays_whole(parameter)) return;
  partition(parameter);
  available_ -= parameter.elements;
}

void Zero3Coordinator::partition(Partitioned& parameter) {
  if (parameter.second_part > 0 && !parameter.second.defined())
    parameter.second =
        r_.empty({Size(parameter.second_part), Size(1)}, parameter.type, "part of the secondary copy", parameter.item);
  parameter.whole.drop();
}

bool Zero3Coordinator::gather_apart(Partitioned& parameter) {
  if (!is_absent(parameter)) return false;
  gather({&parameter});
  wait(parameter);
  available_ -= parameter.elements;
  return true;
}

// What was gathered ahead and not used.
void Zero3Coordinator::release_in_flight() {
  Group waiting;
  for (const auto& [parameter, gather] : in_flight_) waiting.push_back(parameter);
  std::sort(waiting.begin(), waiting.end(), [](const auto* a, const auto* b) { return a->number < b->number; });
  for (Partitioned* parameter : waiting) {
    wait(*parameter);
    partition(*parameter);
  }
}

void Zero3Coordinator::invalidate() {
  trace_ = Trace::invalid;
  order_.clear();
  queue_.clear();
  fetched_for_.clear();
  release_in_flight();
}

void Zero3Coordinator::begin_pass(const Group& first) {
  release_in_flight();
  if (trace_ != Trace::complete) trace_ = trace_ == Trace::record ? Trace::complete : Trace::record;
  step_ = 0;
  available_ = 0;
  fetched_for_.clear();
  queue_.clear();
  if (trace_ != Trace::complete) return;
  if (!order_.empty()) order_.front() = first;
  for (std::size_t step = 0; step < order_.size(); ++step)
    for (Partitioned* parameter : order_[step]) queue_.push_back({parameter, static_cast<std::int64_t>(step)});
}

}  // namespace membill
