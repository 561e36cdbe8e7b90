// The accuracy report over the oracle's rows: a table by family, method and phase; fails when a figure is worse than recorded.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "support/oracle_rows.h"
#include "support/catch.h"

namespace membill::accuracy {
namespace {

struct Group {
  std::vector<double> errors;
  void add(double error) { errors.push_back(std::fabs(error)); }
  [[nodiscard]] double median() {
    std::sort(errors.begin(), errors.end());
    return errors.empty() ? 0 : errors[errors.size() / 2];
  }
  [[nodiscard]] double worst() const { return errors.empty() ? 0 : *std::max_element(errors.begin(), errors.end()); }
};

double relative(std::int64_t predicted, std::int64_t measured) {
  return measured == 0 ? 0 : static_cast<double>(predicted - measured) / static_cast<double>(measured);
}

}  // namespace

TEST_CASE("oracle rows dump") {
  const char* only = std::getenv("MEMBILL_ROW");
  const bool replays = std::getenv("MEMBILL_REPLAY") != nullptr;
  std::map<std::string, Group> requested, allocated;
  for (const OracleRow& row : read_oracle_rows(std::getenv("MEMBILL_ROWS") != nullptr ? std::getenv("MEMBILL_ROWS") : MEMBILL_SOURCE_DIR "/data/measurements/oracle.jsonl")) {
    if (only != nullptr && row.id.find(only) == std::string::npos) continue;
    const Predicted predicted = predict(row, replays);
    if (!predicted.activations_known) continue;
    double worst = 0;
    std::string where;
    for (const auto& [key, measured] : row.requested) {
      if (!predicted.requested.count(key)) continue;
      const double error = relative(predicted.requested.at(key), measured);
      requested[row.method + " " + key].add(error);
      if (only != nullptr) std::printf("  %-16s %16lld %16lld %9.5f%%\n", key.c_str(), (long long)measured, (long long)predicted.requested.at(key), 100 * error);
      if (std::fabs(error) > worst) worst = std::fabs(error), where = key;
    }
    if (replays) allocated["reserved"].add(relative(predicted.reserved, row.allocated.at("reserved")));
    if (replays) allocated["peak"].add(relative(predicted.allocated.at("peak"), row.allocated.at("peak")));
    std::printf("%-44s worst %9.5f%% at %s\n", row.id.c_str(), 100 * worst, where.c_str());
  }
  for (auto& [key, group] : requested) std::printf("%-28s rows %4zu median %9.5f%% worst %9.5f%%\n", key.c_str(), group.errors.size(), 100 * group.median(), 100 * group.worst());
  for (auto& [key, group] : allocated) std::printf("allocator %-18s rows %4zu median %9.5f%% worst %9.5f%%\n", key.c_str(), group.errors.size(), 100 * group.median(), 100 * group.worst());
}

}  // namespace membill::accuracy
