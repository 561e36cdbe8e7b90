// chart: the bill as bars and the step as a skyline, drawn in the terminal.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "report/formats.h"
#include "report/rows.h"
#include "report/text.h"
#include "report/timeline_view.h"

namespace membill::report {
namespace {

constexpr std::size_t kSize = 13;  // "1023.99 MiB" and two blanks
constexpr std::size_t kShare = 7;
constexpr std::size_t kLongestLabel = 36;
constexpr std::size_t kLegend = 11;  // left of the skyline: "1023.99 GiB"
constexpr std::size_t kRows = 14;    // of the skyline
constexpr double kMostAxis = 3;      // a capacity beyond that many times the peak is told, not drawn
constexpr std::string_view kFull = "█";
constexpr std::array<std::string_view, 8> kEighths{"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};

// What a category is in the skyline, by how long it lives.
enum class Layer : std::uint8_t { stays, gradients, passes };
constexpr std::array<std::string_view, 3> kFill{"█", "▓", "░"};
constexpr std::array<std::string_view, 3> kMeaning{"weights, optimizer", "gradients, buffers",
                                                   "activations, loss, temporaries"};

Layer layer_of(std::string_view category) {
  if (category == "weights" || category == "optimizer") return Layer::stays;
  if (category == "gradients" || category == "buffers" || category == "gathered") return Layer::gradients;
  return Layer::passes;
}

std::string repeated(std::string_view text, std::size_t times) {
  std::string result;
  for (std::size_t i = 0; i < times; ++i) result += text;
  return result;
}

class Chart {
 public:
  Chart(const Report& report, const RenderOptions& options)
      : report_(report),
        rows_(bill_rows(report)),
        width_(std::max(options.width, kMinimumWidth)),
        color_(options.color) {}

  std::string text() && {
    for (const std::string& text : {model_line(report_), plan_line(report_), hardware_line(report_)})
      for (const std::string& part : wrapped(text, width_)) line(shortened(part, width_));
    line("");
    bars();
    skyline();
    for (const std::string& part : wrapped("VERDICT " + verdict(), width_)) line(part);
    return std::move(out_);
  }

 private:
  void line(std::string_view text) {
    out_ += text;
    while (!out_.empty() && out_.back() == ' ') out_.pop_back();
    out_ += '\n';
  }
  [[nodiscard]] std::string bold(std::string_view text) const {
    return color_ ? fmt::format("\x1b[1m{}\x1b[0m", text) : std::string(text);
  }

  // `part` of `whole` over `columns`, to an eighth of a column; what is there at all shows.
  static std::string bar(std::int64_t part, std::int64_t whole, std::size_t columns) {
    if (part <= 0 || whole <= 0) return {};
    const double share = static_cast<double>(part) / static_cast<double>(whole);
    const auto eighths = static_cast<std::size_t>(std::clamp<std::int64_t>(
        std::llround(share * static_cast<double>(columns * 8)), 1, static_cast<std::int64_t>(columns * 8)));
    return repeated(kFull, eighths / 8) + std::string(kEighths[eighths % 8]);
  }

  void bars() {
    std::size_t label = 5;
    for (const LineItem* item : rows_.peak) label = std::max(label, text_width(item->label));
    label = std::min(label, kLongestLabel);
    const std::size_t columns = width_ - label - kSize - kShare - 2;
    const std::int64_t total = report_.totals.requested.likely.value_or(0);
    std::int64_t longest = 0;
    for (const LineItem* item : rows_.peak) longest = std::max(longest, item->at_peak.value_or(0));
    for (const LineItem* item : rows_.peak) {
      const std::int64_t share = item->at_peak.value_or(0);
      if (item->bytes && share <= 0) continue;
      line(left_aligned(shortened(item->label, label), label) +
           right_aligned(item->bytes ? size_text(share) : "unknown", kSize) +
           right_aligned(item->bytes ? share_text(share, total) : "", kShare) + "  " + bar(share, longest, columns));
    }
    const std::string sum = (report_.at_least ? "at least " : "") + size_text(report_.totals.requested.likely);
    line(bold(left_aligned("TOTAL", label + kSize - text_width(sum)) + sum +
              right_aligned(share_text(total, total), kShare)));
    line("");
  }

  // Bytes of each layer at each point.
  [[nodiscard]] std::array<std::vector<std::int64_t>, 3> layers(const TimelineView& all) const {
    std::array<std::vector<std::int64_t>, 3> sums;
    for (std::vector<std::int64_t>& sum : sums) sum.resize(all.sums.size());
    for (const Band& band : all.bands) {
      Layer layer = Layer::passes;
      for (const LineItem& item : report_.items)
        if (item.id == band.item && item.where == Place::device) layer = layer_of(item.category);
      std::vector<std::int64_t>& sum = sums[static_cast<std::size_t>(layer)];
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = checked_add(sum[i], band.live[i]);
    }
    return sums;
  }

  // The points that the columns stand for: every span is as wide as its name, if there is room, and the rest is shared by points.
  [[nodiscard]] std::vector<std::size_t> points_of(const TimelineView& view, std::size_t columns) const {
    std::size_t named = 0;
    for (const Timeline::Span& span : view.spans) named += text_width(span.moment) + 1;
    const std::size_t shared = columns > named ? columns - named : columns;
    std::vector<std::size_t> points;
    std::size_t before = 0, last = 0;
    for (const Timeline::Span& span : view.spans) {
      const auto count = static_cast<std::size_t>(span.points);
      const std::size_t from = shared * before / view.sums.size(), to = shared * (before + count) / view.sums.size();
      const std::size_t width = to - from + (columns > named ? text_width(span.moment) + 1 : 0);
      for (std::size_t i = 0; i < width; ++i) points.push_back(last + i * count / width);
      before += count;
      last += count;
    }
    return points;
  }

  void skyline() {
    const TimelineView view = view_timeline(report_, report_.timeline.lines.size());
    if (view.sums.empty() || view.sums[view.peak] == 0) return;
    const std::int64_t peak = view.sums[view.peak];
    const std::optional<std::int64_t> capacity = report_.verdict.capacity;
    const bool drawn = capacity && static_cast<double>(*capacity) <= kMostAxis * static_cast<double>(peak);
    axis_ = static_cast<double>(drawn ? std::max(peak, *capacity) : peak);
    const std::vector<std::size_t> points = points_of(view, width_ - kLegend - 2);
    const std::array<std::vector<std::int64_t>, 3> sums = layers(view);
    const std::size_t limit = drawn ? row_of(*capacity) : 0, top = row_of(peak);
    line(skyline_heading(peak, capacity, drawn));
    for (std::size_t row = kRows; row >= 1; --row) {
      const std::string name = row == limit ? size_text(*capacity) : row == top ? size_text(peak) : "";
      std::string text = right_aligned(name, kLegend) + (row == limit ? " ┼" : " │");
      for (const std::size_t point : points) text += cell(sums, point, row, row == limit ? "-" : " ");
      line(text);
    }
    line(right_aligned("0", kLegend) + " └" + repeated("─", points.size()));
    line(std::string(kLegend + 2, ' ') + span_names(view, points));
    for (const std::string& part : wrapped(legend(), width_)) line(part);
    for (const std::string& part : wrapped(time_note(report_), width_)) line(part);
    line("");
  }

  [[nodiscard]] std::size_t row_of(std::int64_t bytes) const {
    return static_cast<std::size_t>(std::lround(static_cast<double>(bytes) / axis_ * kRows));
  }

  // What stands in a row at a point: the lowest layer that reaches it.
  [[nodiscard]] std::string_view cell(const std::array<std::vector<std::int64_t>, 3>& sums, std::size_t point,
                                      std::size_t row, std::string_view none) const {
    std::int64_t sum = 0;
    for (std::size_t layer = 0; layer < sums.size(); ++layer) {
      sum += sums[layer][point];
      if (row_of(sum) >= row) return kFill[layer];
    }
    return none;
  }

  [[nodiscard]] std::string skyline_heading(std::int64_t peak, std::optional<std::int64_t> capacity, bool drawn) const {
    std::string text = fmt::format("The peak is {} in {}", size_text(peak), clean_text(report_.peak_moment));
    if (capacity) text += fmt::format("; capacity {}{}", size_text(*capacity), drawn ? "" : ", far above");
    return bold(text);
  }

  // The moments under their first columns, as far as there is room.
  static std::string span_names(const TimelineView& view, const std::vector<std::size_t>& points) {
    std::string text;
    std::size_t point = 0;
    for (const Timeline::Span& span : view.spans) {
      const auto from =
          static_cast<std::size_t>(std::lower_bound(points.begin(), points.end(), point) - points.begin());
      point += static_cast<std::size_t>(span.points);
      const auto to = static_cast<std::size_t>(std::lower_bound(points.begin(), points.end(), point) - points.begin());
      const std::string name = clean_text(span.moment);
      if (text_width(text) > from || from + text_width(name) > to) continue;
      text = left_aligned(text, from) + name;
    }
    return text;
  }

  static std::string legend() {
    std::string text;
    for (std::size_t i = 0; i < kFill.size(); ++i)
      text += fmt::format("{}{} {}", i == 0 ? "" : "  ", kFill[i], kMeaning[i]);
    return text;
  }

  [[nodiscard]] std::string verdict() const {
    const std::string because = because_text(report_);
    return fmt::format("{}{}{}", answer_word(report_.verdict.answer), because.empty() ? "" : ": ", because);
  }

  const Report& report_;
  Rows rows_;
  std::size_t width_;
  bool color_;
  double axis_ = 1;  // bytes of the skyline's highest row
  std::string out_;
};

}  // namespace

std::string render_chart(const Report& report, const RenderOptions& options) { return Chart(report, options).text(); }

}  // namespace membill::report
