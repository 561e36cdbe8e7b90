#include "report/rows.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include "report/text.h"

namespace membill::report {
namespace {

constexpr std::int64_t kFirst = std::numeric_limits<std::int64_t>::max();

bool is_zero(const LineItem& item) {
  return item.bytes == 0 && item.at_peak.value_or(0) == 0 && item.high.value_or(0) == 0;
}

void sort_by_size(std::vector<const LineItem*>& rows) {
  std::stable_sort(rows.begin(), rows.end(), [](const LineItem* a, const LineItem* b) {
    const auto key = [](const LineItem* item) {
      const std::int64_t highest = item->bytes.value_or(kFirst);
      return std::tuple(item->bytes ? item->at_peak.value_or(0) : kFirst, highest);
    };
    return key(a) > key(b);
  });
}

}  // namespace

Rows bill_rows(const Report& report) {
  Rows rows;
  for (const LineItem& item : report.items) {
    if (is_zero(item)) continue;
    const bool runtime = item.category == "runtime" && item.at_peak.value_or(0) == 0;
    if (item.where != Place::device) {
      rows.host.push_back(&item);
    } else if (runtime || (item.bytes && !item.at_peak)) {
      rows.beside.push_back(&item);
    } else {
      rows.peak.push_back(&item);
    }
  }
  sort_by_size(rows.peak);
  sort_by_size(rows.beside);
  sort_by_size(rows.host);
  return rows;
}

std::vector<TotalRow> total_rows(const Report& report) {
  const Totals& totals = report.totals;
  std::vector<TotalRow> rows{{"requested", "the rows above", &totals.requested},
                             {"allocated", "max_memory_allocated", &totals.allocated},
                             {"reserved", "max_memory_reserved", &totals.reserved},
                             {"device", "nvidia-smi", &totals.device}};
  if (totals.host.likely.value_or(0) > 0) rows.push_back({"host", "RAM for each rank", &totals.host});
  if (totals.nvme.likely.value_or(0) > 0) rows.push_back({"nvme", "disk for each rank", &totals.nvme});
  return rows;
}

bool needs_highest(const std::vector<const LineItem*>& rows) {
  return std::any_of(rows.begin(), rows.end(), [](const LineItem* item) { return !highest_text(*item).empty(); });
}

std::string highest_text(const LineItem& item) {
  if (!item.bytes) return {};
  if (item.low && item.high && *item.low != *item.high) return range_text({item.low, item.bytes, item.high});
  return item.bytes == item.at_peak ? std::string() : size_text(*item.bytes);
}

std::optional<std::int64_t> headroom_of(const Report& report, const RankBill& rank) {
  if (!report.verdict.capacity || !rank.device.likely) return std::nullopt;
  return *report.verdict.capacity - *rank.device.likely;
}

std::string peak_text(const Report& report) {
  std::string text = clean_text(report.peak_moment);
  if (!report.peak_rank.empty()) text += " on " + clean_text(report.peak_rank);
  return text;
}

std::string because_text(const Report& report) {
  const Verdict& verdict = report.verdict;
  if (!verdict.because.empty()) return clean_text(verdict.because);
  return verdict.answer == Answer::none ? "no card was named; --gpu NAME or --gpu 24GiB asks for a verdict" : "";
}

}  // namespace membill::report
