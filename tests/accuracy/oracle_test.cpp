// membill against the oracle's rows, by family, method and phase. Fails when a figure is worse than recorded.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "support/catch.h"
#include "support/oracle_rows.h"
#include "support/places.h"
#include "support/readme_row.h"
#include "support/scoreboard.h"

namespace membill::accuracy {
namespace {

bool is_on(const char* variable) { return std::getenv(variable) != nullptr; }

std::string rows_path() {
  const char* path = std::getenv("MEMBILL_ROWS");
  return path != nullptr ? std::string(path) : test::in_source("data/measurements/oracle.jsonl");
}

// With MEMBILL_ROW=<part of an id>: every figure of the rows that match, measured and predicted.
void show_row(const OracleRow& row, const Predicted& predicted) {
  fmt::print("{}\n", row.id);
  const auto show = [](const char* kind, const auto& measured, const auto& figures) {
    for (const auto& [key, bytes] : measured)
      if (figures.count(key) != 0)
        fmt::print("  {} {:<16} {:>16} {:>16} {:>10.5f} %\n", kind, key, bytes, figures.at(key),
                   100 * relative_error(figures.at(key), bytes));
  };
  show("requested", row.requested, predicted.requested);
  show("allocated", row.allocated, predicted.allocated);
}

void score(Scoreboard& board, const OracleRow& row, const Predicted& predicted) {
  const std::string group = row.model.model_type + " " + row.method;
  for (const auto& [key, measured] : row.requested)
    if (predicted.requested.count(key) != 0)
      board.add(group, key, relative_error(predicted.requested.at(key), measured));
  for (const auto& [key, measured] : row.allocated)
    if (predicted.allocated.count(key) != 0 && key.find("peak") == 0)
      board.add("allocated, " + row.method, key, relative_error(predicted.allocated.at(key), measured));
  board.add("allocator, " + row.method, "reserved", relative_error(predicted.reserved, row.allocated.at("reserved")));
}

double worst_phase(const OracleRow& row, const Predicted& predicted) {
  double worst = 0;
  for (const auto& [key, measured] : row.requested)
    if (predicted.requested.count(key) != 0)
      worst = std::max(worst, std::fabs(relative_error(predicted.requested.at(key), measured)));
  return worst;
}

// README's rows; `kind` is told by the row.
void add_headlines(std::map<std::string, Errors>& headlines, const std::string& kind, const OracleRow& row,
                   const Predicted& predicted) {
  const auto add = [&](const std::string& label, double error) {
    headlines[label + ", " + kind].values.push_back(error);
  };
  add("requested bytes, worst phase of a job", worst_phase(row, predicted));
  add("`max_memory_allocated`", relative_error(predicted.allocated.at("peak"), row.allocated.at("peak")));
  add("`max_memory_reserved`", relative_error(predicted.reserved, row.allocated.at("reserved")));
}

// Quantised bases apart from the others.
std::string bases_of(const OracleRow& row) { return row.method == "qlora" ? "quantised bases" : "whole bases"; }
std::string further_methods(const OracleRow&) { return "further checkpointing and adapters"; }
std::string with_images(const OracleRow&) { return "with images"; }
std::string small_models(const OracleRow&) { return "small models of further families"; }

// Compares the rows of `rows` with membill and, unless MEMBILL_ROWS names others, with what `recorded` and README say.
void compare(const std::string& title, const std::string& rows, const char* recorded,
             std::string (*kind_of)(const OracleRow& row)) {
  const char* only = std::getenv("MEMBILL_ROW");
  Scoreboard board(title);
  std::map<std::string, Errors> headlines;
  std::size_t unknown = 0;
  for (const OracleRow& row : read_oracle_rows(rows)) {
    if (only != nullptr && row.id.find(only) == std::string::npos) continue;
    const Predicted predicted = predict(row, true);
    if (!predicted.activations_known) {
      ++unknown;
      continue;
    }
    if (only != nullptr) {
      show_row(row, predicted);
    } else {
      score(board, row, predicted);
      add_headlines(headlines, kind_of(row), row, predicted);
    }
    const double worst = worst_phase(row, predicted);
    if (only == nullptr && worst > 0.001) fmt::print("{:<52} worst phase {:>9.4f} %\n", row.id, 100 * worst);
  }
  if (only != nullptr) return;
  fmt::print("{}rows without a block program: {}\n", board.table(), unknown);
  if (is_on("MEMBILL_ROWS")) return;
  const std::string worse = board.worse_than_recorded(test::in_source("tests/accuracy/") + recorded);
  INFO(worse);
  CHECK(worse.empty());
  for (const auto& [label, errors] : headlines) CHECK(stale_readme_row(label, errors).empty());
}

}  // namespace

TEST_CASE("oracle rows are not further off than recorded") {
  compare("oracle rows: requested bytes by family, method and phase; allocated and reserved by method", rows_path(),
          "oracle.recorded.txt", bases_of);
}

TEST_CASE("oracle rows of small models of further families are not further off than recorded") {
  if (is_on("MEMBILL_ROWS")) return;
  compare("families: requested bytes by family, method and phase; allocated and reserved by method",
          test::in_source("data/measurements/oracle-families.jsonl"), "families.recorded.txt", small_models);
}

TEST_CASE("oracle rows of further ways to checkpoint and to adapt are not further off than recorded") {
  if (is_on("MEMBILL_ROWS")) return;
  compare("methods: requested bytes by family, method and phase; allocated and reserved by method",
          test::in_source("data/measurements/oracle-methods.jsonl"), "methods.recorded.txt", further_methods);
}

TEST_CASE("oracle rows with images are not further off than recorded") {
  if (is_on("MEMBILL_ROWS")) return;
  compare("images: requested bytes by family, method and phase; allocated and reserved by method",
          test::in_source("data/measurements/oracle-vision.jsonl"), "vision.recorded.txt", with_images);
}

// Rows that no program was written with in sight.
TEST_CASE("oracle rows of another seed are met") {
  Scoreboard board("oracle rows of another seed");
  for (const OracleRow& row : read_oracle_rows(test::in_source("data/measurements/oracle-seed2.jsonl"))) {
    const Predicted predicted = predict(row, true);
    board.add(row.method, "requested, worst phase", worst_phase(row, predicted));
    board.add(row.method, "allocated", relative_error(predicted.allocated.at("peak"), row.allocated.at("peak")));
    board.add(row.method, "reserved", relative_error(predicted.reserved, row.allocated.at("reserved")));
  }
  fmt::print("{}", board.table());
  CHECK(board.all("requested, worst phase").worst() < 0.01);
  CHECK(board.all("allocated").worst() < 0.015);
  CHECK(board.all("reserved").median() < 0.01);
  CHECK(board.all("reserved").percentile(0.95) < 0.04);
}

}  // namespace membill::accuracy
