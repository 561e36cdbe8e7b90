// Sweeps: axes as written, order, parts, threads, filters.
#include <set>

#include "answers/axis.h"
#include "base/text.h"
#include "membill/catalog.h"
#include "membill/sweep.h"
#include "support/catch.h"

namespace membill {
namespace {

std::string axis_text(std::string_view text) {
  std::string why;
  const std::vector<std::string> values = axis_values(text, why);
  return why.empty() ? join(values, " ") : why;
}

ModelSpec small_model() {
  Problems problems;
  GenericModel given;
  given.hidden = 128;
  given.layers = 6;
  given.heads = 4;
  given.kv_heads = 4;
  given.intermediate = 256;
  given.vocab = 1000;
  return generic_model(given, problems);
}

Sweep small_sweep(const ModelSpec& model) {
  Sweep sweep;
  sweep.model = &model;
  sweep.bases = 3;
  sweep.base = [](std::size_t number) {
    SweepBase base;
    base.plan.accumulate = static_cast<std::int64_t>(number) + 1;
    base.plan.engine = number == 2 ? Engine::deepspeed : Engine::torch;
    if (number == 2) base.problems.push_back({"", "engine", "is none", ""});
    return base;
  };
  sweep.batches = {1, 2, 4};
  sweep.seqs = {64, 128};
  return sweep;
}

std::vector<std::string> rows_of(const Sweep& sweep) {
  std::vector<std::string> rows;
  run_sweep(sweep, [&](std::span<const SweepCase> cases) {
    for (const SweepCase& one : cases)
      rows.push_back(std::to_string(one.number) + " " + std::to_string(one.base) + " " + std::to_string(one.batch) +
                     " " + std::to_string(one.seq) + " " + std::to_string(one.tokens) + " " +
                     std::to_string(one.figures ? one.figures->requested : -1) + " " + one.problem);
    return true;
  });
  return rows;
}

}  // namespace

TEST_CASE("axes are lists, ranges and words") {
  CHECK(axis_text("4") == "4");
  CHECK(axis_text("1, 2,4") == "1 2 4");
  CHECK(axis_text("0..3") == "0 1 2 3");
  CHECK(axis_text("1024:8192:*2") == "1024 2048 4096 8192");
  CHECK(axis_text("1000:5000:*2") == "1000 2000 4000");
  CHECK(axis_text("8:32:8") == "8 16 24 32");
  CHECK(axis_text("1,8:16:4,64") == "1 8 12 16 64");
  CHECK(axis_text("5..5") == "5");
  CHECK(axis_text("9223372036854775806..9223372036854775807") == "9223372036854775806 9223372036854775807");
  CHECK(axis_text("lora,qlora") == "lora qlora");
  CHECK(axis_text("chunked:4096") == "chunked:4096");
}

TEST_CASE("axes that make no sense are refused") {
  CHECK(axis_text("4..1") == "'4..1' runs backwards");
  CHECK(axis_text("1:8:*1") == "'1:8:*1' never ends");
  CHECK(axis_text("0:8:*2") == "'0:8:*2' never ends");
  CHECK(axis_text("1:8:0") == "'1:8:0' never ends");
  CHECK(axis_text("1,,2") == "has an empty value in '1,,2'");
  CHECK(axis_text("1..2000000") == "has more than 1000000 values");
}

TEST_CASE("sweeps keep their order on any number of threads") {
  const ModelSpec model = small_model();
  Sweep sweep = small_sweep(model);
  const std::vector<std::string> rows = rows_of(sweep);
  REQUIRE(rows.size() == 18);
  CHECK(rows[0].substr(0, 12) == "0 0 1 64 64 ");
  CHECK(rows[11].substr(0, 18) == "11 1 4 128 1024 36");
  CHECK(rows[12] == "12 2 1 64 192 -1 engine: is none");
  sweep.threads = 5;
  CHECK(rows_of(sweep) == rows);
}

TEST_CASE("parts of a sweep share its cases") {
  const ModelSpec model = small_model();
  Sweep sweep = small_sweep(model);
  std::set<std::string> together;
  sweep.parts = 4;
  for (sweep.part = 0; sweep.part < sweep.parts; ++sweep.part)
    for (const std::string& row : rows_of(sweep)) CHECK(together.insert(row).second);
  CHECK(together.size() == 18);
  sweep.part = 1;
  sweep.first = 6;
  REQUIRE(rows_of(sweep).size() == 3);
  CHECK(rows_of(sweep)[0].substr(0, 2) == "9 ");
}

TEST_CASE("a sweep stops when nobody reads on") {
  const ModelSpec model = small_model();
  Sweep sweep = small_sweep(model);
  for (int batch = 1; batch <= 5000; ++batch) sweep.batches.push_back(batch);
  std::size_t blocks = 0;
  run_sweep(sweep, [&](std::span<const SweepCase>) { return ++blocks < 2; });
  CHECK(blocks == 2);
}

TEST_CASE("filters keep what they say") {
  const auto make = [](std::size_t number, std::int64_t tokens, std::int64_t memory, Answer answer) {
    SweepCase one;
    one.number = number;
    one.tokens = tokens;
    one.figures.emplace();
    one.figures->requested = memory;
    one.figures->answer = answer;
    return one;
  };
  const std::vector<SweepCase> cases{make(0, 8, 50, Answer::fits), make(1, 8, 40, Answer::fits),
                                     make(2, 16, 90, Answer::does_not_fit), make(3, 4, 60, Answer::tight)};
  const auto numbers = [&](const SweepFilter& filter) {
    SweepSieve sieve(filter, [](ParetoKey, const SweepCase& one) { return one.tokens; });
    std::string text;
    for (const SweepCase& one : cases)
      if (sieve.take(one)) text += std::to_string(one.number) + " ";
    for (const SweepCase& one : sieve.finish()) text += std::to_string(one.number) + " ";
    return text;
  };
  CHECK(numbers({}) == "0 1 2 3 ");
  CHECK(numbers({true, 0, {}}) == "0 1 3 ");
  CHECK(numbers({false, 2, {}}) == "2 1 ");
  CHECK(numbers({true, 2, {}}) == "1 0 ");
  CHECK(numbers({false, 0, {ParetoKey::memory, ParetoKey::tokens}}) == "1 2 ");
}

}  // namespace membill
