// Figures of the articles that asked for this tool, beyond the bytes per parameter: adapters, quantised weights, activations.
// Where an article is wrong or rounds, the test holds what the arithmetic says and names the article's figure.
#include <string>

#include "membill/estimate.h"
#include "support/catch.h"
#include "support/preset.h"

namespace membill {
namespace {

using test::preset;

Report bill(const ModelSpec& model, const TrainingPlan& plan) {
  EstimateOptions options;
  options.replay = false;
  return estimate(model, plan, {}, options);
}

std::int64_t item(const Report& report, const std::string& id) {
  for (const LineItem& line : report.items)
    if (line.id == id) return line.bytes.value_or(-1);
  return 0;
}

TrainingPlan lora(std::int64_t rank, std::vector<std::string> targets) {
  TrainingPlan plan;
  plan.method = Method::lora;
  plan.adapter.rank = rank;
  plan.adapter.targets = std::move(targets);
  return plan;
}

// What QLoRA stores of a linear of n weights: codes, 8-bit scales per 64, an fp32 scale per 256 of those, and tables.
std::int64_t double_quantised(std::int64_t n) {
  return n / 2 + ceil_div(n, 64) + 4 * ceil_div(ceil_div(n, 64), 256) + 64 + 1024 + 4;
}

}  // namespace

TEST_CASE("llama 2 7b with rank 16 on all seven linears trains 39976960 parameters") {
  const Report report = bill(preset("llama-2-7b"), lora(16, {"all-linear"}));
  CHECK(report.model.trainable_parameters == 39976960);
  CHECK(item(report, "weights.adapter") == 39976960 * 4);
  CHECK(item(report, "gradients") == 39976960 * 4);  // the article: tens of MB; 160 MB in fp32
}

TEST_CASE("rank 8 on q and v of a 4096 wide 32 layer model trains 4194304 parameters") {
  CHECK(bill(preset("llama-2-7b"), lora(8, {"q_proj", "v_proj"})).model.trainable_parameters == 4194304);
}

TEST_CASE("qlora of llama 2 7b holds 3.6 GB of linears and 0.5 GB of tables in 16 bits") {
  TrainingPlan plan = lora(16, {"all-linear"});
  plan.weights = WeightFormat::nf4;
  plan.kbit_prepare = false;
  const Report report = bill(preset("llama-2-7b"), plan);
  const std::int64_t square = 4096LL * 4096, wide = 4096LL * 11008;
  const std::int64_t linears = 32 * (4 * double_quantised(square) + 3 * double_quantised(wide));
  const std::int64_t others = 2 * (2 * 32000LL * 4096 + 65 * 4096);
  const std::int64_t shared_table = 1024;
  CHECK(item(report, "weights.base") + item(report, "weights.quantization") == linears + others + shared_table);
  const std::int64_t weights = 32 * (4 * square + 3 * wide);
  // QLoRA, section 3: double quantisation costs 8/64 + 32/(64·256) = 0.127 bits a parameter instead of 0.5.
  const double bits = 8.0 * static_cast<double>(linears - 224 * 1092) / static_cast<double>(weights);
  CHECK(bits > 4.1269);
  CHECK(bits < 4.1271);
}

TEST_CASE("70b in 16 bits is 138 GB and in 4 bits about 36 GB, not 14 and 8") {
  const ModelSpec model = preset("llama-2-70b");
  TrainingPlan plan = lora(16, {"all-linear"});
  CHECK(item(bill(model, plan), "weights.base") == 2 * model.parameters());
  CHECK(model.parameters() == 68976648192);
  plan.weights = WeightFormat::nf4;
  plan.kbit_prepare = false;
  const Report report = bill(model, plan);
  const std::int64_t stored = item(report, "weights.base") + item(report, "weights.quantization");
  CHECK(stored > 35000000000);
  CHECK(stored < 37000000000);
}

TEST_CASE("activations of a 4096 wide 32 layer model at batch 4 and 2048 tokens") {
  // The article: 40 to 60 bytes per token and hidden unit, 42.9 to 64.4 GB. What a layer of Transformers keeps in bf16 with flash
  // attention is 16Nh + 8N + 4Nad + 4Nkd + 4Na + 8Nf + 24 bytes: 45.5 bytes per token and hidden unit.
  TrainingPlan plan;
  plan.batch = 4;
  plan.precision = Precision::pure_bf16;
  plan.loop = Loop::plain;
  const Report report = bill(preset("llama-2-7b"), plan);
  const std::int64_t N = 4 * 2048, h = 4096, f = 11008, a = 32;
  const std::int64_t layer = 16 * N * h + 8 * N + 8 * N * h + 4 * N * a + 8 * N * f + 24;
  std::int64_t kept = -1;
  for (const Moment& moment : report.moments)
    if (moment.name == "loss") kept = moment.end;
  const std::int64_t resident = 3 * 2 * 6738415616 + 512,
                     fixed = 8 * N * h + 4 * N + 4 * N * 32000 + 4 * 2048 * 128 + 16 * N + 8;
  CHECK(kept == resident + 32 * layer + fixed);
}

TEST_CASE("full checkpointing keeps 2bshL of boundaries, and four times the sequence keeps four times as much") {
  TrainingPlan plan;
  plan.batch = 4;
  plan.precision = Precision::pure_bf16;
  plan.checkpointing.mode = Checkpointing::full;
  const ModelSpec model = preset("llama-2-7b");
  const std::int64_t at_2k = item(bill(model, plan), "activations.boundaries");
  CHECK(at_2k == 2LL * 4 * 2048 * 4096 * 32);
  plan.seq = 8192;
  CHECK(item(bill(model, plan), "activations.boundaries") == 4 * at_2k);
}

TEST_CASE("micro batches divide the activations of a step") {
  TrainingPlan plan;
  plan.batch = 8;
  plan.precision = Precision::pure_bf16;
  const ModelSpec model = preset("llama-2-7b");
  const std::int64_t whole = item(bill(model, plan), "activations.block");
  plan.batch = 1;
  plan.accumulate = 8;
  const std::int64_t split = item(bill(model, plan), "activations.block");
  // 24 bytes of attention seeds a layer do not shrink.
  CHECK(8 * split - whole == 7 * 32 * 24);
}

}  // namespace membill
