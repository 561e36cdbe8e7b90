// The picture's numbers, and that a page needs nothing from elsewhere.
#include <algorithm>
#include <string>

#include "report/formats.h"
#include "report/sample_report.h"
#include "report/timeline_view.h"
#include "support/catch.h"

namespace {

using namespace membill;
using report::render_html;
using report::render_svg;
using report::TimelineView;
using report::view_timeline;

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

std::size_t count_of(const std::string& text, std::string_view part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST_CASE("bands are stacked from the longest-lived up and sum to the timeline") {
  const TimelineView view = view_timeline(test::full_report(), 8);
  REQUIRE(view.bands.size() == 3);
  CHECK(view.bands[0].item == "weights.base");
  CHECK(view.bands[1].item == "gradients");
  CHECK(view.bands[2].item == "loss.logits");
  CHECK(view.peak == 4);
  CHECK(view.sums == std::vector<std::int64_t>{2048 * kMiB, 2173 * kMiB, 2108 * kMiB, 2548 * kMiB, 3372 * kMiB});
}

TEST_CASE("items beyond the bands are drawn together and lose nothing") {
  const TimelineView all = view_timeline(test::full_report(), 8), few = view_timeline(test::full_report(), 1);
  REQUIRE(few.bands.size() == 2);
  CHECK(few.bands[1].item.empty());
  CHECK(few.sums == all.sums);
}

TEST_CASE("a report without a timeline shows its moments") {
  const TimelineView view = view_timeline(test::plain_report(), 8);
  REQUIRE(view.bands.size() == 1);
  CHECK(view.sums == std::vector<std::int64_t>{3072 * kMiB, 3372 * kMiB});
}

TEST_CASE("a page and a picture ask for nothing from elsewhere and run nothing") {
  for (const Report& sample : {test::plain_report(), test::full_report(), test::unknown_report()}) {
    for (const std::string& text : {render_html(sample, {}), render_svg(sample, {})}) {
      for (const char* part : {"src=", "href=", "url(", "@import", "<script", "<link", "javascript:"}) {
        INFO(part);
        CHECK(text.find(part) == std::string::npos);
      }
      CHECK(count_of(text, "http") == 1);  // the name of SVG's vocabulary
    }
  }
}

TEST_CASE("every band has a place in the legend and the page's tables are closed") {
  const std::string svg = render_svg(test::full_report(), {}), html = render_html(test::full_report(), {});
  CHECK(count_of(svg, "<path d=\"M") >= 3);
  CHECK(count_of(svg, "rx=\"2\"") == 3);
  for (const char* name : {"table", "tr", "td", "th", "div", "p", "span", "h2", "svg", "text", "ul", "li"}) {
    INFO(name);
    const std::string open = "<" + std::string(name);
    CHECK(count_of(html, open + " ") + count_of(html, open + ">") == count_of(html, "</" + std::string(name) + ">"));
  }
}

TEST_CASE("names cannot start markup") {
  Report sample = test::full_report();
  sample.model.name = "<b>\"x\" & 'y'</b>";
  sample.items[0].label = "<script>";
  for (const std::string& text : {render_html(sample, {}), render_svg(sample, {})}) {
    CHECK(text.find("<b>") == std::string::npos);
    CHECK(text.find("<script") == std::string::npos);
  }
}

}  // namespace
