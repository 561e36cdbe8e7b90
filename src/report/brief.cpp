// brief: the verdict on one line, for scripts and `membill check`.
#include <fmt/format.h>

#include "report/formats.h"
#include "report/text.h"

namespace membill::report {
namespace {

// What the job needs: the device total, or the requested one where that is unknown.
std::string need_text(const Report& report) {
  const bool device_known = report.totals.device.likely.has_value();
  const Range& need = device_known ? report.totals.device : report.totals.requested;
  std::string text = report.at_least ? "at least " : "";
  text += size_text(need.likely);
  if (device_known && need.low != need.high) text += fmt::format(" ({})", range_text(need));
  return device_known ? text : text + " requested";
}

std::string card_text(const Report& report) {
  const Verdict& verdict = report.verdict;
  std::string text;
  if (verdict.capacity) text += fmt::format(" of {}", size_text(*verdict.capacity));
  if (report.hardware.name) text += fmt::format(" on {}", clean_text(*report.hardware.name));
  if (verdict.headroom) text += fmt::format(", headroom {}", size_text(*verdict.headroom));
  return text;
}

}  // namespace

std::string render_brief(const Report& report, const RenderOptions&) {
  std::string line = fmt::format("{}: {}: {}{}", answer_word(report.verdict.answer), clean_text(report.model.name),
                                 need_text(report), card_text(report));
  if (!report.peak_moment.empty()) line += fmt::format("; peak in {}", clean_text(report.peak_moment));
  if (!report.peak_rank.empty() && report.ranks.size() > 1) line += fmt::format(" on {}", clean_text(report.peak_rank));
  const bool room_is_left = report.verdict.headroom.value_or(-1) >= 0;
  if (report.verdict.answer == Answer::does_not_fit && room_is_left) line += "; " + clean_text(report.verdict.because);
  return line + "\n";
}

}  // namespace membill::report
