// Errors of predictions by group, printed as a table and compared with what was recorded.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace membill::accuracy {

// Relative errors of one metric of one group: "llama lora" x "peak_backward".
struct Errors {
  std::vector<double> values;                          // (predicted - measured) / measured
  [[nodiscard]] double median() const;                 // of absolute values; 0 when empty
  [[nodiscard]] double percentile(double part) const;  // of absolute values: 0.95
  [[nodiscard]] double worst() const;                  // of absolute values
};

class Scoreboard {
 public:
  explicit Scoreboard(std::string title) : title_(std::move(title)) {}

  void add(const std::string& group, const std::string& metric, double error) {
    scores_[group][metric].values.push_back(error);
  }
  [[nodiscard]] const Errors& errors(const std::string& group, const std::string& metric) const;
  // All groups together.
  [[nodiscard]] Errors all(const std::string& metric) const;

  // A line a group and metric: count, median, 95th percentile, worst, in percent.
  [[nodiscard]] std::string table() const;
  // Metrics that are worse than in `path` (median or worst, by more than a rounding), one line each; empty when none is. With
  // MEMBILL_REWRITE=1 in the environment the file is written anew instead.
  [[nodiscard]] std::string worse_than_recorded(const std::string& path) const;

 private:
  std::string title_;
  std::map<std::string, std::map<std::string, Errors>> scores_;
};

// (predicted - measured) / measured; 0 when nothing was measured.
[[nodiscard]] double relative_error(long long predicted, long long measured);

}  // namespace membill::accuracy
