#include "membill/solve.h"

#include <algorithm>
#include <numeric>

namespace membill {
namespace {

constexpr EstimateOptions kWithoutTimeline{true, false, false};
constexpr std::int64_t kMostTokens = std::int64_t{1} << 24;  // of a search for batch or seq

struct Job {
  ModelSpec model;
  TrainingPlan plan;
  Hardware hardware;
};

// The model with `layers` layers like the ones that it has.
ModelSpec with_layers(ModelSpec model, std::int64_t layers) {
  for (Section& section : model.sections)
    if (section.repeats() == model.layers && !section.layer_kinds.empty())
      section.layer_kinds.assign(static_cast<std::size_t>(layers), 0);
  model.layers = layers;
  model.stated_parameters.reset();
  model.active_parameters_stated.reset();
  model.warnings.clear();
  return model;
}

bool has_alike_layers(const ModelSpec& model) {
  return std::any_of(model.sections.begin(), model.sections.end(), [&](const Section& section) {
    return section.repeats() == model.layers && section.kinds.size() == 1 && !section.layer_kinds.empty();
  });
}

class Search {
 public:
  Search(const ModelSpec& model, const TrainingPlan& plan, const Hardware& hardware, const SolveTargetRow& target,
         const SolveOptions& options)
      : job_{model, plan, hardware}, target_(target), options_(options) {
    if (target.target == SolveTarget::zero && (plan.engine == Engine::torch || plan.engine == Engine::ddp))
      job_.plan.engine = Engine::deepspeed;
    unit_ = unit();
    most_ = target.most;
    least_ = target.least;
    if (target.target == SolveTarget::seq && (plan.completion || plan.prompt))  // each part has a token
      least_ = std::max(least_, plan.completion.value_or(1) + plan.prompt.value_or(1));
    if (target.target == SolveTarget::batch) most_ = std::max<std::int64_t>(1, kMostTokens / plan.seq);
    if (target.target == SolveTarget::seq) most_ = std::max<std::int64_t>(1, kMostTokens / plan.batch);
  }

  Solution run() {
    refuse_what_cannot_be_solved();
    Solution solution = target_.maximum ? largest() : least();
    if (!solution.answer && !any_report_ && first_problem_) throw InputError(*first_problem_);  // whatever the value
    return solution;
  }

 private:
  void refuse_what_cannot_be_solved() const {
    if (target_.target == SolveTarget::rank && job_.plan.method != Method::lora && job_.plan.method != Method::dora)
      throw InputError(Problem{"", "method", "has no adapter whose rank could grow", "lora, qlora or dora"});
    if (target_.target == SolveTarget::layers && !has_alike_layers(job_.model))
      throw InputError(Problem{"", "model", "has layers of several kinds: their number alone says nothing", ""});
  }

  // Values that are no multiple of it cannot be run.
  [[nodiscard]] std::int64_t unit() const {
    const ParallelPlan& p = job_.plan.parallel;
    if (target_.target == SolveTarget::seq) return std::lcm(p.cp > 1 ? 2 * p.cp : 1, p.ulysses);
    if (target_.target != SolveTarget::gpus) return 1;
    const std::int64_t shared = p.tp * p.pp * p.cp * p.ulysses;
    return job_.hardware.nodes > 1 ? std::lcm(shared, job_.hardware.count / job_.hardware.nodes) : shared;
  }

  void set(Job& job, std::int64_t value) const {
    switch (target_.target) {
      case SolveTarget::batch: job.plan.batch = value; return;
      case SolveTarget::seq: job.plan.seq = value; return;
      case SolveTarget::rank: job.plan.adapter.rank = value; return;
      case SolveTarget::layers: job.model = with_layers(std::move(job.model), value); return;
      case SolveTarget::accumulate: job.plan.accumulate = value; return;
      case SolveTarget::zero: job.plan.sharding.zero = value; return;
      case SolveTarget::nodes:
        job.hardware.count = job.hardware.count / job.hardware.nodes * value;
        job.hardware.nodes = value;
        return;
      case SolveTarget::gpus:
        if (job.hardware.nodes > 1) job.hardware.nodes = value / (job.hardware.count / job.hardware.nodes);
        job.hardware.count = value;
        return;
    }
  }

  SolveTrial attempt(std::int64_t value) {
    SolveTrial trial;
    trial.value = value;
    Job job = job_;
    set(job, value);
    const std::vector<Problem> problems = validate(job.model, job.plan, job.hardware);
    if (!problems.empty()) {
      if (!first_problem_) first_problem_ = problems;
      trial.problem = to_text(problems.front());
      return trial;
    }
    trial.report = estimate(job.model, job.plan, job.hardware, kWithoutTimeline);
    any_report_ = true;
    const Answer answer = trial.report->verdict.answer;
    if (answer == Answer::unknown)
      throw InputError(Problem{"", "model", "has activations that are unknown: nothing can be proven", ""});
    trial.fits = answer == Answer::fits || (answer == Answer::tight && !options_.strict);
    return trial;
  }

  // Doubles while it fits, then halves the gap between what fits and what does not.
  Solution largest() {
    Solution solution;
    solution.target = target_;
    std::int64_t factor = std::max<std::int64_t>(1, ceil_div(least_, unit_));
    SolveTrial trial = attempt(factor * unit_);
    while (trial.fits) {
      solution.answer = std::move(trial);
      if (factor > most_ / unit_ / 2) return solution;
      factor *= 2;
      trial = attempt(factor * unit_);
    }
    solution.next = std::move(trial);
    if (!solution.answer) return solution;
    std::int64_t low = solution.answer->value / unit_, high = factor;
    while (high - low > 1) {
      const std::int64_t middle = low + (high - low) / 2;
      trial = attempt(middle * unit_);
      (trial.fits ? low : high) = middle;
      (trial.fits ? solution.answer : solution.next) = std::move(trial);
    }
    return solution;
  }

  // Upwards one by one: what one more card brings need not be even.
  Solution least() {
    Solution solution;
    solution.target = target_;
    for (std::int64_t value = ceil_div(std::max<std::int64_t>(least_, 0), unit_) * unit_; value <= most_;
         value += unit_) {
      SolveTrial trial = attempt(value);
      if (trial.fits) {
        solution.answer = std::move(trial);
        return solution;
      }
      if (trial.report || !solution.next) solution.next = std::move(trial);
    }
    return solution;
  }

  Job job_;
  SolveTargetRow target_;
  SolveOptions options_;
  std::int64_t unit_ = 1, most_ = 1, least_ = 1;
  bool any_report_ = false;
  std::optional<std::vector<Problem>> first_problem_;
};

}  // namespace

const std::vector<SolveTargetRow>& solve_targets() {
  static const std::vector<SolveTargetRow> kRows{
      {SolveTarget::batch, "batch", true, 1, 1},
      {SolveTarget::seq, "seq", true, 1, 1},
      {SolveTarget::rank, "rank", true, 1, 1 << 14},
      {SolveTarget::layers, "layers", true, 1, 1 << 14},
      {SolveTarget::accumulate, "accumulate", true, 1, 1 << 20},
      {SolveTarget::gpus, "gpus", false, 1, 1 << 8},
      {SolveTarget::nodes, "nodes", false, 1, 1 << 6},
      {SolveTarget::zero, "zero", false, 0, 3},
  };
  return kRows;
}

Solution solve(const ModelSpec& model, const TrainingPlan& plan, const Hardware& hardware, const SolveTargetRow& target,
               const SolveOptions& options) {
  return Search(model, plan, hardware, target, options).run();
}

}  // namespace membill
