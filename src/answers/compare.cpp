#include "membill/compare.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "base/text.h"
#include "membill/units.h"

namespace membill {
namespace {

// "8192 KiB", "14.2GiB", "1234567": bytes. memory_summary of old releases wrote KB for KiB.
std::optional<std::int64_t> read_size(std::string_view text, bool binary) {
  text = trim(text);
  const std::size_t end = std::min(text.find_first_not_of("0123456789."), text.size());
  if (end == 0) return std::nullopt;
  const std::string_view rest = trim(text.substr(end));
  std::string unit(rest.substr(0, rest.find_first_not_of("BKMGTi")));
  if (unit.empty()) unit = "B";
  if (binary && unit.size() == 2) unit.insert(1, "i");
  Bytes bytes;
  std::string why;
  return parse_bytes(std::string(text.substr(0, end)) + " " + unit, bytes, why) ? std::optional(bytes.count())
                                                                                : std::nullopt;
}

// The peak of a line of memory_summary: "| Allocated memory | 6144 KiB | 8192 KiB | ...".
std::optional<std::int64_t> summary_peak(std::string_view text, std::string_view metric) {
  const std::size_t at = text.find(metric);
  if (at == std::string_view::npos) return std::nullopt;
  const std::vector<std::string> cells = split(text.substr(at, text.find('\n', at) - at), '|');
  return cells.size() > 2 ? read_size(cells[2], true) : std::nullopt;
}

// The size behind the first of `words`, over ':', '=', quotes and blanks.
std::optional<std::int64_t> size_behind(std::string_view text, std::initializer_list<std::string_view> words) {
  for (const std::string_view word : words) {
    const std::size_t at = text.find(word);
    if (at == std::string_view::npos) continue;
    const std::size_t begin = text.find_first_not_of(" :=\"'\t", at + word.size());
    if (begin == std::string_view::npos) continue;
    if (const auto bytes = read_size(text.substr(begin), false)) return bytes;
  }
  return std::nullopt;
}

void add_figure(Comparison& result, const char* name, std::optional<std::int64_t> measured, const Range& predicted) {
  if (!measured || !predicted.likely) return;
  result.figures.push_back({name, *measured, *predicted.likely, checked_sub(*measured, *predicted.likely)});
}

bool is_near(std::int64_t bytes, std::int64_t size) { return bytes > 0 && std::abs(bytes - size) <= size / 50; }

}  // namespace

Measured read_measured_text(std::string_view text) {
  Measured measured;
  if (text.find("memory summary") != std::string_view::npos) {
    measured.requested = summary_peak(text, "Requested memory");
    measured.allocated = summary_peak(text, "Allocated memory");
    measured.reserved = summary_peak(text, "GPU reserved memory");
    return measured;
  }
  measured.requested = size_behind(text, {"requested"});
  measured.allocated = size_behind(text, {"max_memory_allocated", "allocated", "peak"});
  measured.reserved = size_behind(text, {"max_memory_reserved", "reserved"});
  measured.device = size_behind(text, {"nvidia-smi", "device"});
  return measured;
}

Comparison compare(const Measured& measured, const Report& report) {
  Comparison result;
  add_figure(result, "requested", measured.requested, report.totals.requested);
  add_figure(result, "allocated", measured.allocated, report.totals.allocated);
  add_figure(result, "reserved", measured.reserved, report.totals.reserved);
  add_figure(result, "device", measured.device, report.totals.device);
  const auto off = std::find_if(result.figures.begin(), result.figures.end(), [](const ComparedFigure& figure) {
    return std::abs(figure.difference) > figure.predicted / 100;
  });
  if (off == result.figures.end()) return result;
  const std::int64_t size = std::abs(off->difference);
  for (const LineItem& item : report.items) {
    if (item.where != Place::device) continue;
    if (is_near(item.at_peak.value_or(0), size))
      result.suspects.push_back({item.id, item.label, *item.at_peak, true});
    else if (is_near(item.bytes.value_or(0), size))
      result.suspects.push_back({item.id, item.label, *item.bytes, false});
  }
  return result;
}

}  // namespace membill
