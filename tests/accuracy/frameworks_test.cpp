// membill against frameworks with trainers or models of their own: what the allocator counted, by group and phase. Fails when a
// figure is worse than recorded.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "estimate/generation_range.h"
#include "membill/estimate.h"
#include "support/catch.h"
#include "support/oracle_rows.h"
#include "support/places.h"
#include "support/readme_row.h"
#include "support/scoreboard.h"

namespace membill::accuracy {
namespace {

// The first `parts` parts of a row's name, which are joined by dashes: "trl-1.16-dpo".
std::string group_of(const std::string& id, int parts) {
  std::size_t end = 0;
  for (int i = 0; i < parts && end != std::string::npos; ++i) end = id.find('-', end + 1);
  return id.substr(0, end);
}

void compare(const std::string& name, const std::string& file, int parts_of_group, std::size_t least_rows = 16) {
  Scoreboard board(name + ": allocated bytes by group and phase");
  Errors peaks, requested;
  int refused = 0;
  for (const OracleRow& row : read_oracle_rows(test::in_source("data/measurements/oracle-") + file + ".jsonl")) {
    if (!validate(row.model, row.plan, row.hardware).empty()) {
      ++refused;
      continue;
    }
    INFO(row.id);
    const Predicted predicted = predict(row, true);
    for (const auto& [key, measured] : row.allocated)
      if (predicted.allocated.count(key) != 0)
        board.add(group_of(row.id, parts_of_group), key, relative_error(predicted.allocated.at(key), measured));
    if (const auto peak = row.requested.find("peak"); peak != row.requested.end())
      requested.values.push_back(relative_error(predicted.requested.at("peak"), peak->second));
    const double error = relative_error(predicted.allocated.at("peak"), row.allocated.at("peak"));
    peaks.values.push_back(error);
    if (std::fabs(error) > 0.005) fmt::print("{:<80} peak {:>9.4f} %\n", row.id, 100 * error);
  }
  fmt::print("{}rows that are refused: {}\n", board.table(), refused);
  CHECK(peaks.values.size() >= least_rows);
  CHECK(peaks.median() < 0.005);
  CHECK(peaks.worst() < 0.02);
  CHECK((requested.values.empty() || requested.median() < 0.003));
  CHECK((requested.values.empty() || requested.worst() < 0.02));
  const std::string worse = board.worse_than_recorded(test::in_source("tests/accuracy/") + file + ".recorded.txt");
  INFO(worse);
  CHECK(worse.empty());
  CHECK(stale_readme_row("`max_memory_allocated`, " + name, peaks).empty());
}

}  // namespace

TEST_CASE("TRL's trainers") { compare("TRL's trainers", "trl", 3); }

TEST_CASE("stages on many cards, LLaMA-Factory's trainers, further jobs of TRL") {
  compare("stages on many cards, LLaMA-Factory's", "stages", 2, 100);
}

TEST_CASE("the evaluation of Hugging Face's Trainer") { compare("the Trainer's evaluation", "evaluation", 2, 26); }

TEST_CASE("an earlier Transformers") { compare("transformers 4.45, 4.48, 4.55", "earlier", 2, 12); }

TEST_CASE("what torch.compile really takes lies in the range that is printed") {
  for (const OracleRow& row : read_oracle_rows(test::in_source("data/measurements/oracle-compile.jsonl"))) {
    INFO(row.id);
    const Report report = estimate(row.model, row.plan, row.hardware, {});
    const std::int64_t measured = row.requested.at("peak");
    CHECK(*report.totals.requested.low < measured);
    CHECK(measured < *report.totals.requested.high);
    CHECK(*report.totals.requested.low < *report.totals.requested.likely);
  }
}

TEST_CASE("the longest contexts that Unsloth documents fill their cards") {
  constexpr double kLeast = 0.84, kMost = 0.97;  // of the card: its context and what the allocator holds come on top
  for (const OracleRow& row : read_oracle_rows(test::in_source("data/measurements/contexts.jsonl"))) {
    const Report report = estimate(row.model, row.plan, row.hardware, {});
    const double part =
        static_cast<double>(*report.totals.requested.likely) / static_cast<double>(row.requested.at("peak"));
    INFO(row.id << ": " << part);
    CHECK(part > kLeast);
    CHECK(part < kMost);
  }
}

TEST_CASE("what GRPO's generation really takes lies in the range that is printed") {
  int rows = 0;
  for (const OracleRow& row : read_oracle_rows(test::in_source("data/measurements/oracle-trl.jsonl"))) {
    const auto measured = row.requested.find("peak_generate");
    if (measured == row.requested.end()) continue;
    INFO(row.id);
    const Report report = estimate(row.model, row.plan, row.hardware, {});
    const std::optional<GenerationRange> range = generation_range(report, row.model, row.plan);
    REQUIRE(range);
    CHECK(range->low <= measured->second);
    CHECK(measured->second <= range->high);
    ++rows;
  }
  CHECK(rows == 5);
}

TEST_CASE("what handing a policy's weights to vLLM really takes") {
  constexpr double kMost = 0.0002;
  int rows = 0;
  for (const OracleRow& row : read_oracle_rows(test::in_source("data/measurements/oracle-rollout.jsonl"))) {
    const Report report = estimate(row.model, row.plan, row.hardware, {});
    const auto generates = [](const Moment& moment) { return moment.name == "generate"; };
    const auto moment = std::find_if(report.moments.begin(), report.moments.end(), generates);
    REQUIRE(moment != report.moments.end());
    const auto measured = static_cast<double>(row.requested.at("peak_generate"));
    const double off = static_cast<double>(moment->requested) / measured - 1;
    INFO(row.id << ": " << off);
    CHECK(std::abs(off) < kMost);
    ++rows;
  }
  CHECK(rows == 5);
}

TEST_CASE("torchtune's and litgpt's models and recipes") { compare("torchtune and litgpt", "torchtune", 3); }

TEST_CASE("torchtitan's model, FSDP2 and checkpointing") { compare("torchtitan", "torchtitan", 2); }

TEST_CASE("Megatron's layers, pipeline and optimizer") { compare("Megatron", "megatron", 2); }

}  // namespace membill::accuracy
