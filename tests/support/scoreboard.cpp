#include "support/scoreboard.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <sstream>

namespace membill::accuracy {
namespace {

std::vector<double> sorted_magnitudes(const std::vector<double>& values) {
  std::vector<double> result;
  for (const double value : values) result.push_back(std::fabs(value));
  std::sort(result.begin(), result.end());
  return result;
}

constexpr double kRounding = 2e-6;  // of a recorded figure with five decimals of a percent

}  // namespace

double relative_error(long long predicted, long long measured) {
  return measured == 0 ? 0 : static_cast<double>(predicted - measured) / static_cast<double>(measured);
}

double Errors::median() const { return percentile(0.5); }
double Errors::worst() const { return percentile(1.0); }

double Errors::percentile(double part) const {
  if (values.empty()) return 0;
  const std::vector<double> sorted = sorted_magnitudes(values);
  const auto last = static_cast<double>(sorted.size() - 1);
  return sorted[static_cast<std::size_t>(std::lround(part * last))];
}

const Errors& Scoreboard::errors(const std::string& group, const std::string& metric) const {
  static const Errors kNone;
  const auto found = scores_.find(group);
  if (found == scores_.end() || found->second.count(metric) == 0) return kNone;
  return found->second.at(metric);
}

Errors Scoreboard::all(const std::string& metric) const {
  Errors result;
  for (const auto& [group, metrics] : scores_)
    if (const auto found = metrics.find(metric); found != metrics.end())
      result.values.insert(result.values.end(), found->second.values.begin(), found->second.values.end());
  return result;
}

std::string Scoreboard::table() const {
  std::string text = fmt::format("{}\n{:<28} {:<16} {:>5} {:>10} {:>10} {:>10}\n", title_, "group", "figure", "rows",
                                 "median %", "95th %", "worst %");
  for (const auto& [group, metrics] : scores_)
    for (const auto& [metric, errors] : metrics)
      text += fmt::format("{:<28} {:<16} {:>5} {:>10.5f} {:>10.5f} {:>10.5f}\n", group, metric, errors.values.size(),
                          100 * errors.median(), 100 * errors.percentile(0.95), 100 * errors.worst());
  return text;
}

std::string Scoreboard::worse_than_recorded(const std::string& path) const {
  const char* rewrite = std::getenv("MEMBILL_REWRITE");
  if (rewrite != nullptr && std::string(rewrite) == "1") {
    std::ofstream(path) << table();
    return {};
  }
  std::ifstream file(path);
  std::string line, problems;
  std::getline(file, line);
  std::getline(file, line);
  for (const auto& [group, metrics] : scores_) {
    for (const auto& [metric, errors] : metrics) {
      if (!std::getline(file, line))
        return problems + "the recorded table is shorter; run with MEMBILL_REWRITE=1 when a group is new\n";
      const std::size_t named = line.find(" " + metric + " ", group.size());
      if (!line.starts_with(group) || named == std::string::npos)
        return problems + "the recorded table has other groups\n";
      std::istringstream numbers(line.substr(named + metric.size() + 1));
      double rows = 0, median = 0, high = 0, worst = 0;
      numbers >> rows >> median >> high >> worst;
      if (errors.median() > median / 100 + kRounding || errors.worst() > worst / 100 + kRounding)
        problems += fmt::format("{} {}: median {:.5f} % (recorded {:.5f}), worst {:.5f} % (recorded {:.5f})\n", group,
                                metric, 100 * errors.median(), median, 100 * errors.worst(), worst);
    }
  }
  return problems;
}

}  // namespace membill::accuracy
