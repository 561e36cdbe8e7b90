#include "report/timeline_view.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "report/text.h"

namespace membill::report {
namespace {

// Categories by how long their tensors live.
constexpr std::array<std::string_view, 9> kFromTheBottom{"weights",   "optimizer",   "gradients", "buffers", "gathered",
                                                         "workspace", "activations", "loss",      "step"};

std::size_t height_of(const LineItem& item) {
  const auto found = std::find(kFromTheBottom.begin(), kFromTheBottom.end(), item.category);
  return static_cast<std::size_t>(found - kFromTheBottom.begin());
}

const LineItem* find_item(const Report& report, std::string_view id) {
  const auto found = std::find_if(report.items.begin(), report.items.end(),
                                  [&](const LineItem& item) { return item.id == id && item.where == Place::device; });
  return found == report.items.end() ? nullptr : &*found;
}

std::int64_t highest(const Timeline::Line& line) {
  return line.live.empty() ? 0 : *std::max_element(line.live.begin(), line.live.end());
}

void add(std::vector<std::int64_t>& sums, const std::vector<std::int64_t>& live) {
  sums.resize(std::max(sums.size(), live.size()));
  for (std::size_t i = 0; i < live.size(); ++i) sums[i] = checked_add(sums[i], live[i]);
}

void stack_items(const Report& report, std::size_t most, TimelineView& view) {
  std::vector<const Timeline::Line*> lines;
  for (const Timeline::Line& line : report.timeline.lines)
    if (highest(line) > 0) lines.push_back(&line);
  std::stable_sort(lines.begin(), lines.end(), [](const auto* a, const auto* b) { return highest(*a) > highest(*b); });
  Band rest{"", "all others", {}};
  for (std::size_t i = most; i < lines.size(); ++i) add(rest.live, lines[i]->live);
  lines.resize(std::min(lines.size(), most));
  std::vector<std::pair<std::size_t, Band>> placed;
  for (const Timeline::Line* line : lines) {
    const LineItem* item = find_item(report, line->item);
    placed.emplace_back(item == nullptr ? kFromTheBottom.size() : height_of(*item),
                        Band{line->item, clean_text(item == nullptr ? line->item : item->label), line->live});
  }
  std::stable_sort(placed.begin(), placed.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (auto& [height, band] : placed) view.bands.push_back(std::move(band));
  if (!rest.live.empty()) view.bands.push_back(std::move(rest));
}

}  // namespace

TimelineView view_timeline(const Report& report, std::size_t most) {
  TimelineView view;
  view.spans = report.timeline.spans;
  stack_items(report, most, view);
  if (view.spans.empty() || view.bands.empty()) {
    view.spans.clear();
    view.bands = {{"", "all tensors", {}}};
    for (const Moment& moment : report.moments) {
      view.spans.push_back({moment.name, 1});
      view.bands.front().live.push_back(std::max<std::int64_t>(moment.requested, 0));
    }
  }
  for (const Band& band : view.bands) add(view.sums, band.live);
  view.peak = static_cast<std::size_t>(std::max_element(view.sums.begin(), view.sums.end()) - view.sums.begin());
  return view;
}

std::string time_note(const Report& report) {
  if (report.timeline.spans.empty()) return "the highest of each moment";
  std::string note = "from left to right: the order of allocations in one step, not seconds";
  const auto shown = std::count_if(report.timeline.spans.begin(), report.timeline.spans.end(),
                                   [](const Timeline::Span& span) { return span.moment == "backward"; });
  const std::string all = plan_text(report, "accumulate");
  if (shown > 1 && !all.empty() && all != std::to_string(shown))
    note += "; of " + all + " micro-batches, " + std::to_string(shown) + " are drawn";
  return note;
}

}  // namespace membill::report
