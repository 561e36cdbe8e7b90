#include "report/picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/formats.h"
#include "report/rows.h"
#include "report/text.h"
#include "report/xml.h"

namespace membill::report {
namespace {

// All lengths are in pixels of a picture 960 wide.
constexpr double kPictureWidth = 960, kLeft = 84, kRight = 20, kPlotHeight = 320, kLine = 18;
constexpr double kPlotWidth = kPictureWidth - kLeft - kRight;
constexpr double kLetter = 7;       // of the moments' names, at most
constexpr double kHeadroom = 1.08;  // of the axis over the highest line: its label stands there
constexpr double kMostTensorAxis =
    4;  // a capacity beyond that many times the highest tensor is told, not drawn to scale
constexpr std::size_t kMostTicks = 8;
constexpr std::size_t kLegendColumns = 3, kLegendLabel = 32;
constexpr std::size_t kTitleColumns = 125, kHeadingColumns = 95;

std::string length(double value) {
  const auto tenths = std::llround(value * 10);
  return tenths % 10 == 0 ? fmt::format("{}", tenths / 10) : fmt::format("{}.{}", tenths / 10, tenths % 10);
}

std::string tick_text(std::int64_t bytes) {
  std::string text = size_text(bytes);
  if (const std::size_t zeros = text.find(".00"); zeros != std::string::npos) text.erase(zeros, 3);
  return text;
}

class Picture {
 public:
  Picture(const Report& report, const TimelineView& view, bool titled) : report_(report), view_(view), titled_(titled) {
    if (titled) place_title();
    top_ = (titled ? static_cast<double>(title_.size()) * kLine + 8 : 0) + 24;
    measure_axis();
    place_spans();
  }

  std::string draw() {
    const std::size_t rows = (view_.bands.size() + kLegendColumns - 1) / kLegendColumns;
    const double legend = top_ + kPlotHeight + 2.6 * kLine + 14;
    const double height = legend + static_cast<double>(rows) * kLine + 6;
    out_ = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 960 {0}\" width=\"960\" height=\"{0}\" role=\"img\" "
        "class=\"mb\">\n<title>{1}</title>\n",
        length(height), escaped_xml(model_line(report_)));
    if (titled_) {
      out_ += fmt::format("<style>\n{}</style>\n<rect class=\"mb-page\" width=\"960\" height=\"{}\"/>\n",
                          picture_style(), length(height));
      title();
    }
    grid();
    for (std::size_t band = view_.bands.size(); band-- > 0;) area(band);
    moments();
    lines();
    peak();
    for (std::size_t i = 0; i < view_.bands.size(); ++i) entry(i, legend);
    return std::move(out_) + "</svg>\n";
  }

 private:
  void measure_axis() {
    const std::int64_t high = view_.sums.empty() ? 0 : view_.sums[view_.peak];
    device_ = report_.totals.device.likely;
    capacity_ = report_.verdict.capacity;
    double most = std::max<double>({1, static_cast<double>(high), static_cast<double>(device_.value_or(0))});
    if (capacity_ && static_cast<double>(*capacity_) <= kMostTensorAxis * most)
      most = std::max(most, static_cast<double>(*capacity_));
    axis_ = most * kHeadroom;
  }

  // Every span is as wide as its name, if there is room, and the rest is shared by points.
  void place_spans() {
    double least = 0;
    std::int64_t points = 0;
    for (const Timeline::Span& span : view_.spans) {
      least += name_width(span);
      points += span.points;
    }
    const double squeeze = std::min(1.0, kPlotWidth / std::max(least, 1.0));
    const double each = (kPlotWidth - least * squeeze) / static_cast<double>(std::max<std::int64_t>(points, 1));
    edges_.push_back(kLeft);
    for (const Timeline::Span& span : view_.spans) {
      const auto count = static_cast<double>(span.points);
      const double width = name_width(span) * squeeze + each * count;
      const double start = edges_.back();
      for (std::int64_t i = 1; i <= span.points; ++i) edges_.push_back(start + width * static_cast<double>(i) / count);
    }
  }

  static double name_width(const Timeline::Span& span) {
    return kLetter * static_cast<double>(text_width(span.moment)) + 6;
  }

  [[nodiscard]] double y(double bytes) const { return top_ + kPlotHeight * (1 - bytes / axis_); }
  [[nodiscard]] double y(std::int64_t bytes) const { return y(static_cast<double>(bytes)); }

  void text(double x, double at, std::string_view classes, std::string_view words) {
    out_ += fmt::format("<text x=\"{}\" y=\"{}\" class=\"{}\">{}</text>\n", length(x), length(at), classes,
                        escaped_xml(words));
  }
  void stroke(double x1, double y1, double x2, double y2, std::string_view classes) {
    out_ += fmt::format("<path d=\"M{} {}L{} {}\" class=\"{}\"/>\n", length(x1), length(y1), length(x2), length(y2),
                        classes);
  }

  void place_title() {
    title_ = wrapped(model_line(report_), kHeadingColumns);
    headings_ = title_.size();
    for (const std::string& line : {plan_line(report_), hardware_line(report_)})
      for (std::string& part : wrapped(line, kTitleColumns)) title_.push_back(std::move(part));
  }

  void title() {
    for (std::size_t i = 0; i < title_.size(); ++i)
      text(kRight, kLine * static_cast<double>(i + 1) + 4, i < headings_ ? "mb-title" : "mb-text",
           shortened(title_[i], kTitleColumns));
  }

  // A line at each multiple of a power of two.
  void grid() {
    std::int64_t step = 1;
    while (axis_ / static_cast<double>(step) > kMostTicks) step *= 2;
    for (std::int64_t tick = 0; static_cast<double>(tick) < axis_; tick += step) {
      stroke(kLeft, y(tick), kPictureWidth - kRight, y(tick), "mb-grid");
      text(kLeft - 8, y(tick) + 4, "mb-text mb-end", tick_text(tick));
    }
  }

  void area(std::size_t band) {
    std::vector<std::int64_t> low(view_.sums.size(), 0);
    for (std::size_t below = 0; below < band; ++below)
      for (std::size_t i = 0; i < low.size(); ++i) low[i] += view_.bands[below].live[i];
    const std::vector<std::int64_t>& live = view_.bands[band].live;
    std::string path;
    for (std::size_t i = 0; i < live.size(); ++i)
      path += fmt::format("{}{} {}H{}", i == 0 ? "M" : "L", length(edges_[i]), length(y(low[i] + live[i])),
                          length(edges_[i + 1]));
    for (std::size_t i = live.size(); i-- > 0;)
      path += fmt::format("L{} {}H{}", length(edges_[i + 1]), length(y(low[i])), length(edges_[i]));
    out_ += fmt::format("<path d=\"{}Z\" class=\"mb-band {}\"><title>{}</title></path>\n", path,
                        band_class(view_, band), escaped_xml(band_text(band)));
  }

  [[nodiscard]] std::string band_text(std::size_t band) const {
    const std::vector<std::int64_t>& live = view_.bands[band].live;
    return fmt::format("{}: {} at the peak, {} at its highest", view_.bands[band].label, size_text(live[view_.peak]),
                       size_text(*std::max_element(live.begin(), live.end())));
  }

  void moments() {
    std::size_t point = 0;
    for (const Timeline::Span& span : view_.spans) {
      const double from = edges_[point], to = edges_[point + static_cast<std::size_t>(span.points)];
      point += static_cast<std::size_t>(span.points);
      stroke(to, top_, to, top_ + kPlotHeight + 6, "mb-grid");
      if (name_width(span) <= to - from + 6)
        text((from + to) / 2, top_ + kPlotHeight + kLine, "mb-text mb-middle", span.moment);
    }
    stroke(kLeft, top_ + kPlotHeight, kPictureWidth - kRight, top_ + kPlotHeight, "mb-axis");
    text(kLeft, top_ + kPlotHeight + 2 * kLine, "mb-note", time_note(report_) + ". Sizes below: at the peak");
  }

  void lines() {
    if (device_) {
      // Under its line where that of the capacity, a little higher, would strike it through.
      const bool is_under = capacity_ && *capacity_ >= *device_ && y(*device_) - y(*capacity_) < kLine;
      stroke(kLeft, y(*device_), kPictureWidth - kRight, y(*device_), "mb-device");
      text(kPictureWidth - kRight - 4, y(*device_) + (is_under ? kLine - 2 : -5), "mb-text mb-end mb-halo",
           fmt::format("whole process (nvidia-smi) {}", size_text(*device_)));
    }
    if (!capacity_) return;
    const bool drawn = static_cast<double>(*capacity_) <= axis_;
    const double at = drawn ? y(*capacity_) : top_;
    stroke(kLeft, at, kPictureWidth - kRight, at, "mb-capacity");
    text(kLeft + 4, drawn ? at - 5 : at + 14, "mb-strong mb-halo",
         fmt::format("capacity {}{}", size_text(*capacity_), drawn ? "" : ", above this picture"));
  }

  void peak() {
    if (view_.sums.empty()) return;
    const double x = (edges_[view_.peak] + edges_[view_.peak + 1]) / 2;
    const double at = y(view_.sums[view_.peak]);
    stroke(x, top_ - 6, x, top_ + kPlotHeight, "mb-peak");
    out_ += fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"4\" class=\"mb-dot\"/>\n", length(x), length(at));
    const char* anchor = x < kPictureWidth / 3 ? "" : x > 2 * kPictureWidth / 3 ? " mb-end" : " mb-middle";
    text(x, top_ - 10, std::string("mb-strong") + anchor,
         fmt::format("peak {}{} in {}", report_.at_least ? "at least " : "", size_text(view_.sums[view_.peak]),
                     report_.peak_moment));
  }

  // The legend: from the top of the stack, row by row.
  void entry(std::size_t place, double legend) {
    const std::size_t band = view_.bands.size() - 1 - place;
    const double column = (kPictureWidth - 2 * kRight) / static_cast<double>(kLegendColumns);
    const double x = kRight + column * static_cast<double>(place % kLegendColumns);
    const std::size_t line = place / kLegendColumns;
    const double at = legend + kLine * static_cast<double>(line);
    out_ += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"12\" height=\"12\" rx=\"2\" class=\"mb-band {}\"/>\n",
                        length(x), length(at - 10), band_class(view_, band));
    text(x + 18, at, "mb-text", shortened(view_.bands[band].label, kLegendLabel));
    const std::int64_t live = view_.bands[band].live[view_.peak];
    text(x + column - 14, at, "mb-text mb-end", live > 0 ? size_text(live) : "-");
  }

  const Report& report_;
  const TimelineView& view_;
  bool titled_;
  std::vector<std::string> title_;
  std::size_t headings_ = 0;  // lines of it that name the model
  double top_ = 0, axis_ = 1;
  std::optional<std::int64_t> device_, capacity_;
  std::vector<double> edges_;  // of the points, from left to right
  std::string out_;
};

}  // namespace

// Paul Tol's "muted" scheme on light ground and his "light" one on dark.
std::string_view picture_style() {
  return R"(.mb{--ink:#1a1a1a;--soft:#555;--grid:#e2e2e2;--page:#fff;--limit:#b30021;
--c0:#332288;--c1:#ddcc77;--c2:#cc6677;--c3:#88ccee;--c4:#117733;--c5:#999933;--c6:#882255;--c7:#44aa99;--c8:#bbb;
font-family:system-ui,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}
@media (prefers-color-scheme:dark){.mb{--ink:#eee;--soft:#aaa;--grid:#3a3a3a;--page:#1b1b1b;--limit:#ff8f8f;
--c0:#77aadd;--c1:#ee8866;--c2:#eedd88;--c3:#ffaabb;--c4:#44bb99;--c5:#bbcc33;--c6:#99ddff;--c7:#aaaa00;--c8:#777}}
.mb-page{fill:var(--page)}
.mb text{font-size:12px;fill:var(--ink)}
.mb .mb-title{font-size:15px;font-weight:600}
.mb .mb-strong{font-weight:600}
.mb .mb-note{fill:var(--soft)}
.mb-end{text-anchor:end}
.mb-middle{text-anchor:middle}
.mb .mb-halo{paint-order:stroke;stroke:var(--page);stroke-width:4px;stroke-linejoin:round}
.mb-grid{stroke:var(--grid);fill:none}
.mb-axis{stroke:var(--soft);fill:none}
.mb-band{stroke:var(--page);stroke-width:.6px}
.mb-device{stroke:var(--ink);stroke-dasharray:2 4;stroke-width:1.5px}
.mb-capacity{stroke:var(--limit);stroke-dasharray:9 4;stroke-width:2px}
.mb-peak{stroke:var(--ink);stroke-dasharray:1 3}
.mb-dot{fill:var(--ink);stroke:var(--page);stroke-width:1.5px}
.mb-0{fill:var(--c0)}.mb-1{fill:var(--c1)}.mb-2{fill:var(--c2)}.mb-3{fill:var(--c3)}.mb-4{fill:var(--c4)}
.mb-5{fill:var(--c5)}.mb-6{fill:var(--c6)}.mb-7{fill:var(--c7)}.mb-8{fill:var(--c8)}
)";
}

std::string band_class(const TimelineView& view, std::size_t band) {
  return fmt::format("mb-{}", view.bands[band].item.empty() ? kBands : band);
}

std::string timeline_svg(const Report& report, const TimelineView& view, bool titled) {
  return Picture(report, view, titled).draw();
}

std::string render_svg(const Report& report, const RenderOptions&) {
  return timeline_svg(report, view_timeline(report, kBands), true);
}

}  // namespace membill::report
