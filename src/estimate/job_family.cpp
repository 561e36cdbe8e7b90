#include <algorithm>
#include <stdexcept>

#include "estimate/distinct_ranks.h"
#include "estimate/rank_model.h"
#include "estimate/simulation.h"
#include "estimate/verdict.h"
#include "membill/estimate.h"
#include "trace/peak_formula.h"

namespace membill {
namespace {

// Jobs whose trace depends on every size (a loss in chunks of rows) would keep a shape for each case.
constexpr std::size_t kMostShapes = 16;

}  // namespace

// All cases that run the same program as the one it was simulated for.
class JobFamily::Shape {
 public:
  Shape(const ModelSpec& model, const TrainingPlan& plan, const Hardware& hardware)
      : job_(simulate_shape(model, plan, hardware)), formula_(PeakFormula::of(job_.trace, job_.symbols)) {}

  // Sets the case; says whether it runs this program.
  [[nodiscard]] bool set(std::int64_t batch, std::int64_t seq) {
    if (batch != batch_) job_.symbols.assign("b", batch);
    if (seq != seq_) job_.symbols.assign("s", seq);
    batch_ = batch;
    seq_ = seq;
    if (formula_) return formula_->holds(job_.symbols);
    return std::all_of(job_.symbols.decisions().begin(), job_.symbols.decisions().end(),
                       [this](const Decision& decision) { return job_.symbols.holds(decision); });
  }

  [[nodiscard]] CaseFigures fold() const {
    CaseFigures figures;
    PeakFormula::Peak peak;
    if (formula_) {
      peak = formula_->evaluate(job_.symbols);
    } else {
      const PeakFold walked = fold_peak(job_.trace, job_.trace.evaluate(job_.symbols));
      peak = {walked.highest, walked.moment};
    }
    figures.requested = peak.highest;
    figures.peak_moment = job_.trace.moments[static_cast<std::size_t>(peak.moment)];
    figures.at_least = !job_.activations_known;
    return figures;
  }

  [[nodiscard]] CaseFigures replay(const TrainingPlan& plan, const Hardware& hardware) const {
    CaseFigures figures = fold();
    Bill bill;
    bill.bytes = job_.trace.evaluate(job_.symbols);
    bill.peak.highest = figures.requested;
    Report report;
    report.peak_moment = figures.peak_moment;
    report.at_least = figures.at_least;
    judge(report, job_, bill, plan, hardware, {});
    figures.allocated = report.totals.allocated.likely;
    figures.reserved = report.totals.reserved.likely;
    figures.device = report.totals.device.likely;
    figures.headroom = report.verdict.headroom;
    figures.answer = report.verdict.answer;
    return figures;
  }

 private:
  Simulation job_;
  std::optional<PeakFormula> formula_;
  std::int64_t batch_ = 0, seq_ = 0;
};

// The cases of one kind of rank.
class JobFamily::Rank {
 public:
  Rank(const ModelSpec& model, TrainingPlan plan, Hardware hardware)
      : model_(model), plan_(std::move(plan)), hardware_(std::move(hardware)) {}

  [[nodiscard]] CaseFigures fold(std::int64_t batch, std::int64_t seq) { return shape_for(batch, seq).fold(); }
  [[nodiscard]] CaseFigures replay(std::int64_t batch, std::int64_t seq) {
    return shape_for(batch, seq).replay(plan_, hardware_);
  }

 private:
  Shape& shape_for(std::int64_t batch, std::int64_t seq);

  const ModelSpec& model_;
  TrainingPlan plan_;
  Hardware hardware_;
  std::vector<std::unique_ptr<Shape>> shapes_;  // the one used last at the end
};

JobFamily::Shape& JobFamily::Rank::shape_for(std::int64_t batch, std::int64_t seq) {
  const auto found =
      std::find_if(shapes_.rbegin(), shapes_.rend(), [&](const auto& shape) { return shape->set(batch, seq); });
  if (found != shapes_.rend()) {
    std::rotate(shapes_.begin() + (shapes_.rend() - found) - 1, shapes_.begin() + (shapes_.rend() - found),
                shapes_.end());
    return *shapes_.back();
  }
  if (shapes_.size() == kMostShapes) shapes_.erase(shapes_.begin());
  plan_.batch = batch;
  plan_.seq = seq;
  shapes_.push_back(std::make_unique<Shape>(model_, plan_, hardware_));
  if (!shapes_.back()->set(batch, seq)) throw std::logic_error("a trace does not hold for its own sizes");
  return *shapes_.back();
}

JobFamily::JobFamily(const ModelSpec& model, const TrainingPlan& plan, Hardware hardware)
    : model_(std::make_unique<const ModelSpec>(with_sections(model))) {
  for (const RankKind& kind : distinct_ranks(plan, hardware)) {
    hardware.rank = kind.rank;
    ranks_.push_back(std::make_unique<Rank>(*model_, plan, hardware));
  }
}
JobFamily::JobFamily(JobFamily&&) noexcept = default;
JobFamily& JobFamily::operator=(JobFamily&&) noexcept = default;
JobFamily::~JobFamily() = default;

JobFamily::Heaviest JobFamily::heaviest(std::int64_t batch, std::int64_t seq) {
  Heaviest found;
  for (const auto& rank : ranks_) {
    const CaseFigures figures = rank->fold(batch, seq);
    if (found.rank == nullptr || figures.requested > found.figures.requested) found = {rank.get(), figures};
  }
  return found;
}

CaseFigures JobFamily::fold(std::int64_t batch, std::int64_t seq) { return heaviest(batch, seq).figures; }

CaseFigures JobFamily::replay(std::int64_t batch, std::int64_t seq) {
  Rank& rank = ranks_.size() == 1 ? *ranks_.front() : *heaviest(batch, seq).rank;
  return rank.replay(batch, seq);
}

}  // namespace membill
