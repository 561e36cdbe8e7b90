#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "io/json_reader.h"
#include "report/formats.h"
#include "report/read_report.h"
#include "report/sample_report.h"
#include "report/text.h"
#include "support/catch.h"

namespace {

using namespace membill;
using report::Format;
using report::RenderOptions;

std::vector<Report> samples() { return {test::plain_report(), test::full_report(), test::unknown_report()}; }

std::string render(const Report& sample, std::string_view format, const RenderOptions& options = {}) {
  return report::find_format(format)->render(sample, options);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::size_t start = 0;
  for (std::size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', start)) {
    lines.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  return lines;
}

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

Report reread(const std::string& json) {
  Problems problems;
  Report saved = report::read_report(io::parse_json(json, "saved.json"), "saved.json", problems);
  for (const Problem& problem : problems.list()) UNSCOPED_INFO(to_text(problem));
  CHECK(problems.empty());
  return saved;
}

TEST_CASE("every format ends its output with one newline and never has trailing blanks") {
  for (const Format& format : report::formats()) {
    for (const Report& sample : samples()) {
      const std::string text = format.render(sample, {});
      INFO(format.name);
      REQUIRE(text.size() > 1);
      CHECK(text.back() == '\n');
      CHECK(text[text.size() - 2] != '\n');
      if (format.name == "tsv") continue;
      for (const std::string& line : lines_of(text)) CHECK((line.empty() || line.back() != ' '));
    }
  }
}

TEST_CASE("a report read back from its JSON renders to the same bytes in every format") {
  for (const Report& sample : samples()) {
    for (const std::string_view saved_as : {"json", "jsonl"}) {
      const Report saved = reread(render(sample, saved_as));
      for (const Format& format : report::formats()) {
        for (const RenderOptions options : {RenderOptions{80, false}, RenderOptions{140, true}}) {
          INFO(format.name);
          CHECK(format.render(saved, options) == format.render(sample, options));
        }
      }
    }
  }
}

TEST_CASE("names with control characters and broken UTF-8 survive the round trip") {
  Report sample = test::full_report();
  sample.model.name = "evil\x1b]0;\x07\xFF\"\\name";
  sample.warnings = {"a\ttab, \"quotes\" and \xE6\xA8\xA1"};
  const Report saved = reread(render(sample, "json"));
  for (const Format& format : report::formats()) {
    INFO(format.name);
    CHECK(format.render(saved, {}) == format.render(sample, {}));
    CHECK_FALSE(has(format.render(sample, {}), "\x1b"));
  }
}

TEST_CASE("the version of the program that computed a report stays with it") {
  Report sample = test::plain_report();
  sample.membill_version = "0.0.7";
  CHECK(has(render(reread(render(sample, "json")), "json"), "\"membill_version\": \"0.0.7\""));
}

TEST_CASE("jsonl is one line") {
  for (const Report& sample : samples()) CHECK(lines_of(render(sample, "jsonl")).size() == 1);
}

TEST_CASE("table and chart fit the terminal they are told of, and 80 columns at least") {
  for (const Report& sample : samples()) {
    for (const std::size_t width : {std::size_t{20}, std::size_t{80}, std::size_t{120}, std::size_t{200}}) {
      for (const std::string_view format : {"table", "chart"}) {
        for (const std::string& line : lines_of(render(sample, format, {width, false}))) {
          INFO(line);
          CHECK(report::text_width(line) <= std::max<std::size_t>(width, 80));
        }
      }
    }
  }
}

TEST_CASE("the table colours only when told to") {
  for (const Report& sample : samples()) {
    CHECK_FALSE(has(render(sample, "table", {80, false}), "\x1b["));
    CHECK(has(render(sample, "table", {80, true}), "\x1b[1"));
  }
}

TEST_CASE("share bars appear from 100 columns on") {
  CHECK_FALSE(has(render(test::plain_report(), "table", {99, false}), "##"));
  CHECK(has(render(test::plain_report(), "table", {100, false}), "##"));
}

TEST_CASE("rows are sorted by their share of the peak and the verdict is last") {
  const std::string text = render(test::full_report(), "table");
  CHECK(text.find("base weights") < text.find("gradients"));
  CHECK(text.find("gradients") < text.find("logits"));
  CHECK(text.find("TOTAL") < text.find("CAPACITY"));
  CHECK(text.find("CAPACITY") < text.find("HEADROOM"));
  CHECK(text.find("HEADROOM") < text.find("VERDICT"));
  CHECK_THAT(lines_of(text).back(), Catch::Matchers::StartsWith("VERDICT   does-not-fit: "));
}

TEST_CASE("unknown is a word and makes the total a lower bound") {
  const std::string table = render(test::unknown_report(), "table");
  CHECK(has(table, "activations              unknown"));
  CHECK(has(table, "at least 3.29 GiB"));
  CHECK(has(render(test::unknown_report(), "brief"), "unknown: tiny-llama: at least "));
  CHECK(has(render(test::unknown_report(), "markdown"), "| activations | unknown |"));
  CHECK(has(render(test::unknown_report(), "json"), "\"at_peak\": null"));
}

TEST_CASE("brief is one line with the verdict first") {
  for (const Report& sample : samples()) CHECK(lines_of(render(sample, "brief")).size() == 1);
  CHECK_THAT(render(test::full_report(), "brief"), Catch::Matchers::StartsWith("does-not-fit: tiny-llama: 4.49 GiB"));
}

TEST_CASE("csv and tsv have a row for each item and each total, and no more columns than the header") {
  const Report sample = test::full_report();
  const std::vector<std::string> tsv = lines_of(render(sample, "tsv"));
  CHECK(tsv.size() == 1 + sample.items.size() + 6);
  const auto tabs = [](const std::string& line) { return std::count(line.begin(), line.end(), '\t'); };
  for (const std::string& line : tsv) CHECK(tabs(line) == tabs(tsv.front()));
  CHECK(lines_of(render(sample, "csv")).size() == tsv.size());
}

TEST_CASE("csv quotes commas and quotes") {
  Report sample = test::plain_report();
  sample.items[0].label = "a, \"b\"";
  CHECK(has(render(sample, "csv"), ",\"a, \"\"b\"\"\","));
}

TEST_CASE("markdown keeps text from ending a cell") {
  Report sample = test::plain_report();
  sample.items[0].label = "a|b_c";
  CHECK(has(render(sample, "markdown"), "| a\\|b\\_c |"));
}

}  // namespace
