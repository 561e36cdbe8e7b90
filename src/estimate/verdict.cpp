#include "estimate/verdict.h"

#include <algorithm>

#include "base/gib_text.h"
#include "estimate/communicators.h"
#include "estimate/inference.h"
#include "estimate/runtime_lines.h"
#include "trace/blocks_apart.h"
#include "trace/replay.h"

namespace membill {
namespace {

AllocatorSettings allocator_settings(const AllocatorPlan& plan) {
  AllocatorSettings settings;
  settings.expandable_segments = plan.expandable_segments;
  if (plan.max_split_size_mb) settings.max_split_size_bytes = checked_mul(*plan.max_split_size_mb, (1_MiB).count());
  if (plan.garbage_collection_threshold) settings.garbage_collection_threshold = *plan.garbage_collection_threshold;
  if (plan.roundup_power2_divisions)
    settings.roundup_power2_divisions =
        read_allocator_settings("roundup_power2_divisions:" + *plan.roundup_power2_divisions)
            .settings.roundup_power2_divisions;
  return settings;
}

// What a process holds of its card outside of the caching allocator.
Range beside_allocator(const Hardware& hardware, const TrainingPlan& plan, bool tied) {
  const Range context = context_bytes(hardware, plan), communicator = communicator_bytes(plan, hardware, tied);
  return {checked_add(*context.low, *communicator.low), checked_add(*context.likely, *communicator.likely),
          checked_add(*context.high, *communicator.high)};
}

// Whether the sizes of a step's tensors are not those of the last: rows padded to the longest of a batch, or flash attention over the
// tokens that count alone.
bool lengths_vary(const TrainingPlan& plan) {
  return plan.varied_lengths || (plan.attention_mask && plan.attention == AttentionKernel::flash);
}

class Judgement {
 public:
  Judgement(Report& report, const Simulation& job, const Bill& bill, const TrainingPlan& plan, const Hardware& hardware)
      : report_(report),
        job_(job),
        bill_(bill),
        settings_(allocator_settings(plan.allocator)),
        engine_(plan.engine),
        lengths_vary_(lengths_vary(plan)),
        hardware_(shared_hardware(plan, hardware)),
        beside_(beside_allocator(hardware, plan, job.tied_embeddings)) {
    if (const auto usable = hardware_.usable()) capacity_ = usable->count();
  }

  void without_replay() {
    report_.totals.host = total(job_.host);
    report_.totals.requested = Range::exact(bill_.peak.highest);
    report_.totals.nvme = total(job_.nvme);
    report_.ranks.push_back({bill_.rank, report_.totals.requested, {}, {}, {}});
  }

  void with_replay(bool smallest_card) {
    unlimited_ = run(std::nullopt);
    ReplayResult shown = unlimited_;
    if (capacity_) {
      const ReplayResult on_card = run_beside(*beside_.likely);
      survives_ = on_card.survives;
      if (survives_) shown = on_card;
    }
    fill_totals(shown);
    if (smallest_card) report_.verdict.smallest_card = smallest_capacity(job_.trace, bill_.bytes, settings_);
    decide();
  }

 private:
  [[nodiscard]] ReplayResult run(std::optional<std::int64_t> capacity) const {
    return replay(job_.trace, bill_.bytes, settings_, capacity);
  }

  // On the named card beside a context of `taken` bytes. Where the job never takes more than is left, nothing
  // changes; where its tensors alone are more, it cannot run.
  [[nodiscard]] ReplayResult run_beside(std::int64_t taken) const {
    const std::int64_t left = *capacity_ - taken;
    if (unlimited_.reserved_ever() <= left) return unlimited_;
    if (bill_.peak.highest <= left) return run(left);
    ReplayResult none;
    none.survives = false;
    return none;
  }

  static Range total(const std::map<std::string, std::int64_t>& stored) {
    std::int64_t sum = 0;
    for (const auto& [item, bytes] : stored) sum = checked_add(sum, bytes);
    return Range::exact(sum);
  }

  void fill_totals(const ReplayResult& shown) {
    Totals& totals = report_.totals;
    totals.requested = Range::exact(bill_.peak.highest);
    totals.allocated = Range::exact(shown.allocated);
    most_ = std::max(shown.reserved_ever(), reserved_apart(job_.trace, bill_.bytes, settings_));
    totals.reserved = held_range({shown.allocated, shown.reserved, most_}, Range::exact(0), capacity_, engine_);
    const std::int64_t allocated = std::max(shown.allocated, shown.building_allocated);
    totals.device = held_range({allocated, shown.reserved_ever(), most_}, beside_, capacity_, engine_);
    building_decides_ = shown.building_reserved > shown.reserved;
    totals.host = total(job_.host);
    totals.nvme = total(job_.nvme);
    report_.ranks.push_back({bill_.rank, totals.requested, totals.allocated, totals.reserved, totals.device});
    for (Moment& moment : report_.moments) moment.allocated = allocated_in(moment.name, shown);
  }

  [[nodiscard]] std::optional<std::int64_t> allocated_in(const std::string& moment, const ReplayResult& shown) const {
    if (moment == job_.trace.moments.front()) return shown.building_allocated;
    for (const ReplayMoment& replayed : shown.moments)
      if (job_.trace.moments[static_cast<std::size_t>(replayed.moment)] == moment) return replayed.allocated;
    return std::nullopt;
  }

  void decide() {
    Verdict& verdict = report_.verdict;
    if (!capacity_) {
      verdict.because = "no card was named";
      return judge_host();
    }
    verdict.capacity = capacity_;
    verdict.headroom = checked_sub(*capacity_, *report_.totals.device.likely);
    if (!survives_)
      verdict.answer = Answer::does_not_fit;
    else if (report_.at_least)
      verdict.answer = Answer::unknown;
    else
      verdict.answer = run_beside(*beside_.high).survives ? Answer::fits : Answer::tight;
    verdict.because = reason(verdict);
    judge_lengths();
    judge_host();
  }

  // A replay repeats one step; where lengths vary, blocks of other lengths are left between those of the longest.
  void judge_lengths() {
    Verdict& verdict = report_.verdict;
    if (verdict.answer != Answer::fits || !lengths_vary_ || checked_add(most_, *beside_.high) <= *capacity_) return;
    verdict.answer = Answer::tight;
    verdict.because += "; what batches of other lengths leave in the cache may not fit";
  }

  // The ranks of a node share its memory.
  void judge_host() {
    if (!hardware_.host_ram || !report_.totals.host.likely) return;
    const std::int64_t needed = checked_mul(*report_.totals.host.likely, hardware_.count / hardware_.nodes);
    if (needed <= hardware_.host_ram->count()) return;
    report_.verdict.answer = Answer::does_not_fit;
    report_.verdict.because = "the ranks of a node need " + gib_text(needed) + " of host memory, which has " +
                              gib_text(hardware_.host_ram->count());
  }

  [[nodiscard]] std::string reason(const Verdict& verdict) const {
    std::string text = report_.at_least ? "at least " : "";
    text += gib_text(*report_.totals.device.likely) + " of " + gib_text(*capacity_) + " usable";
    if (building_decides_) text += ", reserved while the model is built";
    text += "; the highest moment is " + report_.peak_moment;
    const auto largest = std::find_if(report_.items.begin(), report_.items.end(),
                                      [](const LineItem& item) { return item.at_peak.value_or(0) > 0; });
    if (largest != report_.items.end())
      text += ", most of it " + largest->label + " (" + gib_text(*largest->at_peak) + ")";
    if (verdict.answer == Answer::tight) text += "; a larger CUDA context would not fit";
    if (verdict.answer == Answer::unknown) text += "; activations are unknown";
    return text;
  }

  Report& report_;
  const Simulation& job_;
  const Bill& bill_;
  AllocatorSettings settings_;
  Engine engine_;
  bool lengths_vary_;
  Hardware hardware_;
  Range beside_;
  std::optional<std::int64_t> capacity_;
  ReplayResult unlimited_;
  std::int64_t most_ = 0;  // that the cache holds, whatever the order of its requests
  bool survives_ = true;
  bool building_decides_ = false;  // more is reserved until the model is built than by any step
};

}  // namespace

void judge(Report& report, const Simulation& job, const Bill& bill, const TrainingPlan& plan, const Hardware& hardware,
           const EstimateOptions& options) {
  Judgement judgement(report, job, bill, plan, hardware);
  if (options.replay)
    judgement.with_replay(options.smallest_card);
  else
    judgement.without_replay();
}

}  // namespace membill
