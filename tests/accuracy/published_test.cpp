// membill against memory that others measured on real cards: by source, family, method and kind of figure.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "support/catch.h"
#include "support/places.h"
#include "support/published_rows.h"
#include "support/readme_row.h"
#include "support/scoreboard.h"

namespace membill::accuracy {
namespace {

constexpr double kLargeMiss = 0.08;

std::string published_path() {
  const char* path = std::getenv("MEMBILL_PUBLISHED");
  return path != nullptr ? std::string(path) : test::in_source("data/measurements/published.jsonl");
}

struct DeviceRanges {
  int inside = 0, all = 0, too_wide = 0;
  void add(const PublishedEstimate& predicted, std::int64_t measured) {
    ++all;
    inside += predicted.low <= measured && measured <= predicted.high;
    too_wide += static_cast<double>(predicted.high - predicted.low) > 0.35 * static_cast<double>(predicted.bytes);
  }
  [[nodiscard]] std::string text() const { return fmt::format("{} of {}", inside, all); }
};

class Comparison {
 public:
  void add(const PublishedRow& row) {
    if (!row.not_a_job.empty()) return not_compared(row, row.not_a_job);
    if (!row.job.not_billed.empty()) return not_compared(row, row.job.not_billed);
    const PublishedRun run(row);
    if (run.report().at_least) return not_compared(row, "no block program for " + row.job.model.model_type);
    for (const Figure& figure : row.figures) compare(row, figure, run.figure(figure));
  }

  [[nodiscard]] std::string table() const {
    std::string text = board_.table();
    text += fmt::format("device totals inside the range: {} of {}; ranges wider than 35 %: {}\n", device_.inside,
                        device_.all, device_.too_wide);
    text += "not compared:\n";
    for (const auto& [why, count] : skipped_) text += fmt::format("  {:>4} figures: {}\n", count, why);
    return text + "misses above 8 %:\n" + misses_;
  }

  [[nodiscard]] const Scoreboard& board() const { return board_; }
  [[nodiscard]] const DeviceRanges& device() const { return device_; }
  [[nodiscard]] int unexplained() const { return unexplained_; }

 private:
  void not_compared(const PublishedRow& row, const std::string& why) {
    skipped_[row.repository + ", " + why] += static_cast<int>(row.figures.size());
  }

  void compare(const PublishedRow& row, const Figure& figure, const std::optional<PublishedEstimate>& predicted) {
    if (!predicted)
      return not_compared({row.id, row.repository, "", "", "", {}, {figure}},
                          "no such figure: " + figure.kind + " " + figure.phase);
    const double error = relative_error(predicted->bytes, figure.bytes);
    if (std::getenv("MEMBILL_ROW") != nullptr)
      fmt::print("{} {} {}: {} {} [{} to {}] {:+.3f} %\n", row.id, figure.kind, figure.phase, figure.bytes,
                 predicted->bytes, predicted->low, predicted->high, 100 * error);
    board_.add("every source", figure.kind == "allocated" && figure.phase != "peak" ? "allocated, phases" : figure.kind,
               error);
    if (row.cause.empty() && figure.phase == "peak") board_.add("every source, no cause known", figure.kind, error);
    board_.add(row.repository + ", " + row.job.model.model_type + " " + row.method, figure.kind + " " + figure.phase,
               error);
    if (figure.kind == "device" || figure.kind == "unknown") device_.add(*predicted, figure.bytes);
    if (std::fabs(error) <= kLargeMiss || figure.kind != "allocated") return;
    const std::string& cause = figure.cause.empty() ? row.cause : figure.cause;
    unexplained_ += cause.empty();
    misses_ += fmt::format("  {} {} {}: {:+.1f} %: {}\n", row.id, figure.kind, figure.phase, 100 * error,
                           cause.empty() ? "not explained" : cause);
  }

  Scoreboard board_{"published measurements, predicted against printed"};
  DeviceRanges device_;
  std::map<std::string, int> skipped_;
  std::string misses_;
  int unexplained_ = 0;
};

}  // namespace

TEST_CASE("published measurements are met") {
  const char* only = std::getenv("MEMBILL_ROW");
  Comparison comparison;
  for (const PublishedRow& row : read_published_rows(published_path()))
    if (only == nullptr || row.id.find(only) != std::string::npos) comparison.add(row);
  fmt::print("{}", comparison.table());
  if (only != nullptr || std::getenv("MEMBILL_PUBLISHED") != nullptr) return;
  const Errors& peaks = comparison.board().errors("every source, no cause known", "allocated");
  CHECK(peaks.median() < 0.03);
  CHECK(peaks.percentile(0.9) < 0.08);
  CHECK(comparison.unexplained() == 0);
  CHECK(10 * comparison.device().inside >= 9 * comparison.device().all);
  CHECK(comparison.device().too_wide == 0);
  CHECK(stale_readme_row("published allocated peaks", comparison.board().errors("every source", "allocated")).empty());
  CHECK(stale_readme_row("published allocated peaks without a known cause", peaks).empty());
  CHECK(stale_readme_row("`nvidia-smi` totals inside the printed range", {comparison.device().text(), "", "", ""})
            .empty());
}

}  // namespace membill::accuracy
