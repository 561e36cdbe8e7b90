#include <algorithm>
#include <tuple>

#include "answers/on_all_cores.h"
#include "membill/remedies.h"

namespace membill {
namespace {

constexpr std::size_t kLongestExhaustive = 3;  // lists up to this length are all tried
constexpr std::size_t kMostLists = 5;
constexpr std::int64_t kMostCards = 1024;

bool suffices(const RemedyTrial& trial) { return trial.answer == Answer::fits || trial.answer == Answer::tight; }

bool is_better(const RemedyTrial& a, const RemedyTrial& b) {
  const auto key = [](const RemedyTrial& trial) {
    return std::tuple(!suffices(trial), trial.remedies.size(), trial.accuracy, trial.answer == Answer::tight,
                      trial.extra_compute, trial.communication + trial.host_transfer, trial.device);
  };
  return key(a) < key(b);
}

std::vector<PlanSetting> settings_of(const std::vector<Remedy>& list) {
  std::vector<PlanSetting> all;
  for (const Remedy& remedy : list) all.insert(all.end(), remedy.settings.begin(), remedy.settings.end());
  return all;
}

class RemedySearch {
 public:
  RemedySearch(const ModelSpec& model, const TrainingPlan& plan, const Hardware& hardware,
               const std::vector<GpuSpec>& cards)
      : model_(model), plan_(plan), hardware_(hardware), cards_(cards) {
    std::stable_sort(cards_.begin(), cards_.end(),
                     [](const GpuSpec& a, const GpuSpec& b) { return a.usable < b.usable; });
  }

  RemedyPlan run() {
    result_.now = estimate(model_, plan_, hardware_, {true, false, false});
    if (result_.now.at_least)
      throw InputError(Problem{"", "model", "has activations that are unknown: nothing can be proven", ""});
    if (result_.fits_now()) return std::move(result_);
    std::vector<RemedyList> lists;
    for (Remedy& remedy : remedies(model_, plan_, hardware_)) lists.push_back({std::move(remedy)});
    for (RemedyTrial& trial : attempt_all(lists, false))
      if (trial.saved > 0) result_.single.push_back(std::move(trial));
    std::stable_sort(result_.single.begin(), result_.single.end(), is_better);
    if (!one_suffices_on_the_card()) combine();
    result_.card_now = smallest_card(plan_);
    result_.cards = enough_cards();
    return std::move(result_);
  }

 private:
  using RemedyList = std::vector<Remedy>;

  // The plan with the remedies; none when the job is refused so.
  [[nodiscard]] std::optional<TrainingPlan> apply(const RemedyList& list) const {
    TrainingPlan plan = plan_;
    Problems problems;
    read_plan_settings(settings_of(list), "", plan, problems);
    if (!problems.empty() || !validate(model_, plan, hardware_).empty()) return std::nullopt;
    return plan;
  }

  // The trial of a list; none when it is refused, or when its tensors alone are more than the card holds and `only_fitting` is asked.
  [[nodiscard]] std::optional<RemedyTrial> attempt(const RemedyList& list, bool only_fitting = false) const {
    const std::optional<TrainingPlan> plan = apply(list);
    if (!plan) return std::nullopt;
    JobFamily family(model_, *plan, hardware_);
    if (only_fitting && family.fold(plan->batch, plan->seq).requested > hardware_.usable()->count())
      return std::nullopt;
    const CaseFigures figures = family.replay(plan->batch, plan->seq);
    if (figures.at_least) return std::nullopt;
    RemedyTrial trial;
    trial.remedies = list;
    trial.plan = *plan;
    trial.device = figures.device.value_or(0);
    trial.saved = *result_.now.totals.device.likely - trial.device;
    trial.headroom = figures.headroom;
    trial.answer = figures.answer;
    for (const Remedy& remedy : list) {
      trial.accuracy = std::max(trial.accuracy, remedy.accuracy);
      trial.extra_compute += remedy.extra_compute;
      trial.communication += remedy.communication;
      trial.host_transfer += remedy.host_transfer;
    }
    return trial;
  }

  // The trials of `lists` that attempt() makes, in their order.
  [[nodiscard]] std::vector<RemedyTrial> attempt_all(const std::vector<RemedyList>& lists, bool only_fitting) const {
    std::vector<std::optional<RemedyTrial>> trials(lists.size());
    on_all_cores(lists.size(), [&](std::size_t i) { trials[i] = attempt(lists[i], only_fitting); });
    std::vector<RemedyTrial> made;
    for (std::optional<RemedyTrial>& trial : trials)
      if (trial) made.push_back(*std::move(trial));
    return made;
  }

  [[nodiscard]] bool one_suffices_on_the_card() const {
    return std::ranges::any_of(result_.single,
                               [](const RemedyTrial& one) { return suffices(one) && one.host_transfer == 0; });
  }

  // What lists are made of: where a change over the host link is enough by itself, only the others.
  [[nodiscard]] std::vector<Remedy> parts() const {
    const bool any = result_.single.empty() || !suffices(result_.single.front());
    std::vector<Remedy> parts;
    for (const RemedyTrial& one : result_.single)
      if (any || one.host_transfer == 0) parts.push_back(one.remedies.front());
    return parts;
  }

  void combine() {
    const std::vector<Remedy> parts = this->parts();
    for (std::size_t length = 2; length <= kLongestExhaustive && result_.together.empty(); ++length) {
      RemedyList list;
      std::vector<RemedyList> lists;
      extend(parts, list, 0, length, lists);
      for (RemedyTrial& trial : attempt_all(lists, true))
        if (suffices(trial)) result_.together.push_back(std::move(trial));
    }
    if (result_.together.empty()) everything(parts);
    std::stable_sort(result_.together.begin(), result_.together.end(), is_better);
    if (result_.together.size() > kMostLists) result_.together.resize(kMostLists);
  }

  static bool has_group_of(const RemedyList& list, const Remedy& next) {
    return std::ranges::any_of(list, [&](const Remedy& other) { return other.group == next.group; });
  }

  // Adds to `lists` every list of `length` remedies that begins with `list`, no two of a group.
  static void extend(const std::vector<Remedy>& parts, RemedyList& list, std::size_t from, std::size_t length,
                     std::vector<RemedyList>& lists) {
    if (list.size() == length) return lists.push_back(list);
    for (std::size_t i = from; i < parts.size(); ++i) {
      if (has_group_of(list, parts[i])) continue;
      list.push_back(parts[i]);
      extend(parts, list, i + 1, length, lists);
      list.pop_back();
    }
  }

  // The strongest of every group while it still saves something; then without what turns out not to be needed.
  void everything(const std::vector<Remedy>& parts) {
    std::optional<RemedyTrial> best;
    for (bool improved = true; improved;) {
      improved = false;
      const RemedyList base = best ? best->remedies : RemedyList();
      for (const Remedy& next : parts) {
        if (has_group_of(base, next)) continue;
        RemedyList list = base;
        list.push_back(next);
        const std::optional<RemedyTrial> trial = attempt(list);
        if (!trial || (best && trial->device >= best->device)) continue;
        best = trial;
        improved = true;
      }
    }
    if (!best) return;
    if (!suffices(*best)) {
      if (parts.size() < result_.single.size()) return;
      result_.smallest = best;
      result_.card_then = smallest_card(best->plan);
      return;
    }
    for (std::size_t i = best->remedies.size(); i-- > 0;) {
      RemedyList list = best->remedies;
      list.erase(list.begin() + static_cast<std::ptrdiff_t>(i));
      const std::optional<RemedyTrial> trial = attempt(list, true);
      if (trial && suffices(*trial)) best = trial;
    }
    result_.together.push_back(*best);
  }

  // Device bytes of a job that is valid and fits; the allocator is replayed only where the tensors alone are within `capacity`.
  [[nodiscard]] std::optional<std::int64_t> device_if_it_fits(const TrainingPlan& plan, const Hardware& hardware,
                                                              std::int64_t capacity) const {
    if (!validate(model_, plan, hardware).empty()) return std::nullopt;
    JobFamily family(model_, plan, hardware);
    if (family.fold(plan.batch, plan.seq).requested > capacity) return std::nullopt;
    const CaseFigures figures = family.replay(plan.batch, plan.seq);
    if (figures.answer != Answer::fits) return std::nullopt;
    return figures.device.value_or(0);
  }

  // Tensors take the least where no card is named: a card's workspaces are as large or larger (matmul_workspace_bytes).
  [[nodiscard]] std::optional<CardFound> smallest_card(const TrainingPlan& plan) const {
    Hardware hardware = hardware_;
    hardware.gpu.reset();
    if (!validate(model_, plan, hardware).empty()) return std::nullopt;
    const std::int64_t least = JobFamily(model_, plan, hardware).fold(plan.batch, plan.seq).requested;
    for (const GpuSpec& card : cards_) {
      if (!card.usable || card.usable->count() < least) continue;
      hardware.gpu = card;
      if (const auto device = device_if_it_fits(plan, hardware, card.usable->count()))
        return CardFound{card.short_name, card.usable->count(), *device};
    }
    return std::nullopt;
  }

  [[nodiscard]] std::optional<CardsFound> enough_cards() const {
    TrainingPlan plan = plan_;
    Problems problems;
    const bool sharded = plan.sharding.zero == 3 || plan.sharding.fsdp == "full_shard";
    if (!sharded) read_plan_settings({{"engine", "deepspeed"}, {"sharding.zero", "3"}}, "", plan, problems);
    if (!problems.empty()) return std::nullopt;
    for (std::int64_t count = 2; count <= kMostCards; count *= 2) {
      if (count <= hardware_.count || count % hardware_.nodes != 0) continue;
      Hardware hardware = hardware_;
      hardware.count = count;
      if (const auto device = device_if_it_fits(plan, hardware, hardware.usable()->count()))
        return CardsFound{count, *device, !sharded};
    }
    return std::nullopt;
  }

  const ModelSpec& model_;
  const TrainingPlan& plan_;
  const Hardware& hardware_;
  std::vector<GpuSpec> cards_;
  RemedyPlan result_;
};

}  // namespace

std::vector<PlanSetting> RemedyTrial::settings() const { return settings_of(remedies); }

RemedyPlan find_remedies(const ModelSpec& model, const TrainingPlan& plan, const Hardware& hardware,
                         const std::vector<GpuSpec>& cards) {
  return RemedySearch(model, plan, hardware, cards).run();
}

}  // namespace membill
