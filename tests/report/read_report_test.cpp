#include "report/read_report.h"

#include <string>
#include <vector>

#include "io/json_reader.h"
#include "report/formats.h"
#include "report/sample_report.h"
#include "support/catch.h"

namespace {

using namespace membill;

std::string sample_json() { return report::render_json(test::full_report(), {}); }

// The JSON of a report with the first `from` replaced.
std::string altered(const std::string& from, const std::string& to) {
  std::string text = sample_json();
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

std::vector<std::string> problems_of(const std::string& json) {
  Problems problems;
  (void)report::read_report(io::parse_json(json, "saved.json"), "saved.json", problems);
  std::vector<std::string> texts;
  for (const Problem& problem : problems.list()) texts.push_back(to_text(problem));
  return texts;
}

using Texts = std::vector<std::string>;

TEST_CASE("a file that is no report is refused with one problem") {
  const Texts refused{"saved.json: schema: is not a saved report of membill (needs \"schema\": \"membill/report/1\")"};
  CHECK(problems_of("{}") == refused);
  CHECK(problems_of("[]") == refused);
  CHECK(problems_of("7") == refused);
  CHECK(problems_of(altered("membill/report/1", "membill/report/2")) == refused);
}

TEST_CASE("a missing key is named by its path") {
  CHECK(problems_of(altered("    \"family\": \"llama\",\n", "")) == Texts{"saved.json: model.family: is missing"});
}

TEST_CASE("an unknown key is named with the nearest known one") {
  CHECK(problems_of(altered("\"usable_bytes\"", "\"usable_byte\"")) ==
        Texts{"saved.json: hardware.usable_bytes: is missing",
              "saved.json: hardware.usable_byte: is not a key of a report (usable_bytes)"});
}

TEST_CASE("a wrong kind of value is named with the one that is needed") {
  CHECK(problems_of(altered("\"at_least\": false", "\"at_least\": 0")).size() == 1);
  CHECK(problems_of(altered("\"parameters\": 1100048384", "\"parameters\": \"many\"")) ==
        Texts{"saved.json: model.parameters: needs a whole number or null"});
  CHECK(problems_of(altered("\"parameters\": 1100048384", "\"parameters\": 1.5")) ==
        Texts{"saved.json: model.parameters: needs a whole number or null"});
  CHECK(problems_of(altered("\"name\": \"NVIDIA GeForce RTX 4090\"", "\"name\": 4090")) ==
        Texts{"saved.json: hardware.name: needs text or null"});
}

TEST_CASE("an unknown word is named with the words there are") {
  CHECK(problems_of(altered("\"answer\": \"does-not-fit\"", "\"answer\": \"perhaps\"")) ==
        Texts{"saved.json: verdict.answer: has the unknown word \"perhaps\" (one of fits, tight, does-not-fit, "
              "unknown, none)"});
}

TEST_CASE("all independent problems are found at once") {
  std::string text = altered("\"layers\": 22", "\"layers\": true");
  text.replace(text.find("\"moment\": \"backward\""), 20, "\"moment\": null      ");
  CHECK(problems_of(text).size() == 2);
}

TEST_CASE("a key of the plan that would be another path is refused") {
  CHECK(problems_of(altered("\"gradient_dtype\": null", "\"adapter.rank\": null")) ==
        Texts{"saved.json: plan: has the key 'adapter.rank', which no plan has"});
  CHECK(problems_of(altered("\"dropout\": 0.05", "\"\": 0.05")) ==
        Texts{"saved.json: plan.adapter: has the key '', which no plan has"});
}

TEST_CASE("items that do not sum to the total are refused") {
  const Texts problems = problems_of(altered("\"at_peak\": 2147483648", "\"at_peak\": 2147483647"));
  REQUIRE(problems.size() == 1);
  CHECK(problems[0] == "saved.json: totals.requested: is 3,535,798,272 but the items at the peak sum to 3,535,798,271");
}

TEST_CASE("a timeline may be missing but must have a figure for each point") {
  const std::string whole = sample_json();
  const std::size_t from = whole.find("  \"timeline\""), to = whole.find("  \"items\"");
  CHECK(problems_of(whole.substr(0, from) + whole.substr(to)).empty());
  CHECK(problems_of(altered("\"points\": 3", "\"points\": 4")) ==
        Texts{"saved.json: timeline.lines: 'weights.base' has 5 figures, the spans have 6 points"});
  CHECK(problems_of(altered("\"points\": 3", "\"points\": 0")).size() == 2);
  CHECK(problems_of(altered("[0, 131072000", "[-1, 131072000")) ==
        Texts{"saved.json: timeline.lines: 'loss.logits' has a figure below 0"});
}

}  // namespace
