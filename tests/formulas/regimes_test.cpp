// Bytes per parameter by precision regime and by optimizer, on a model of which only the total is known.
#include <map>
#include <string>

#include "membill/catalog.h"
#include "membill/estimate.h"
#include "support/catch.h"

namespace membill {
namespace {

constexpr std::int64_t kBillion = 1'000'000'000;
constexpr std::int64_t kParameters = 7 * kBillion;

ModelSpec seven_billion() {
  ModelSpec model;
  model.name = model.model_type = "generic";
  model.stated_parameters = kParameters;
  model.dimensions_known = false;
  return model;
}

TrainingPlan plan_of(Precision precision, WeightFormat weights) {
  TrainingPlan plan;
  plan.precision = precision;
  plan.weights = weights;
  plan.optimizer_impl = OptimizerImpl::loop;
  return plan;
}

// Bytes of each item, the sum of weights, gradients and states under "total", host memory under "host".
std::map<std::string, std::int64_t> bytes_of(const TrainingPlan& plan) {
  EstimateOptions options;
  options.replay = false;
  const Report report = estimate(seven_billion(), plan, {}, options);
  std::map<std::string, std::int64_t> bytes;
  for (const LineItem& line : report.items) {
    if (line.where != Place::device) continue;
    bytes[line.id] = line.bytes.value_or(-1);
    if (line.category == "weights" || line.category == "gradients" || line.category == "optimizer")
      bytes["total"] += line.bytes.value_or(0);
  }
  bytes["host"] = report.totals.host.likely.value_or(-1);
  return bytes;
}

std::map<std::string, std::int64_t> with_optimizer(const std::string& name) {
  TrainingPlan plan = plan_of(Precision::pure_bf16, WeightFormat::bf16);
  plan.optimizer = name;
  return bytes_of(plan);
}

}  // namespace

TEST_CASE("the master regime: 14 GB weights, 14 GB gradients, 84 GB master and moments, 112 GB") {
  auto bytes = bytes_of(plan_of(Precision::master_bf16, WeightFormat::bf16));
  CHECK(bytes["weights.base"] == 14 * kBillion);
  CHECK(bytes["gradients"] == 14 * kBillion);
  CHECK(bytes["weights.master"] == 28 * kBillion);
  CHECK(bytes["weights.master"] + bytes["optimizer.m"] + bytes["optimizer.v"] == 84 * kBillion);
  CHECK(bytes["total"] == 112 * kBillion);
}

TEST_CASE("bytes per parameter of each regime with AdamW") {
  CHECK(bytes_of(plan_of(Precision::fp32, WeightFormat::fp32))["total"] == 16 * kParameters);
  CHECK(bytes_of(plan_of(Precision::amp_bf16, WeightFormat::fp32))["total"] == 16 * kParameters);
  CHECK(bytes_of(plan_of(Precision::amp_bf16, WeightFormat::bf16))["total"] == 8 * kParameters);
  CHECK(bytes_of(plan_of(Precision::pure_bf16, WeightFormat::bf16))["total"] == 8 * kParameters);
  CHECK(bytes_of(plan_of(Precision::pure_fp16, WeightFormat::fp16))["total"] == 8 * kParameters);
  CHECK(bytes_of(plan_of(Precision::master_fp16, WeightFormat::fp16))["total"] == 16 * kParameters);
  TrainingPlan main_gradient = plan_of(Precision::master_bf16, WeightFormat::bf16);
  main_gradient.gradient_dtype = DType::fp32;
  CHECK(bytes_of(main_gradient)["total"] == 18 * kParameters);
}

TEST_CASE("moments in another type than the regime's") {
  TrainingPlan plan = plan_of(Precision::pure_bf16, WeightFormat::bf16);
  plan.moment_dtype = DType::fp32;
  CHECK(bytes_of(plan)["total"] == 12 * kParameters);
  plan = plan_of(Precision::master_bf16, WeightFormat::bf16);
  plan.moment_dtype = DType::bf16;
  CHECK(bytes_of(plan)["total"] == 12 * kParameters);
}

TEST_CASE("8-bit AdamW holds 14.2 GB of states, 42.2 GB beside an fp32 master") {
  const std::int64_t scales = 2 * 4 * ceil_div(kParameters, 256), tables = 2048;
  auto bytes = with_optimizer("adamw-8bit");
  CHECK(bytes["optimizer.m"] + bytes["optimizer.v"] == 2 * kParameters + scales);
  CHECK(bytes["optimizer.tables"] == tables);
  CHECK(bytes["total"] == 6 * kParameters + scales + tables);
  TrainingPlan plan = plan_of(Precision::master_bf16, WeightFormat::bf16);
  plan.optimizer = "adamw-8bit";
  CHECK(bytes_of(plan)["total"] - 4 * kParameters == 6 * kParameters + scales + tables);
}

TEST_CASE("paged states are managed memory, outside of the allocator") {
  auto bytes = with_optimizer("paged-adamw-8bit");
  CHECK(bytes["host"] == 2 * kParameters);
  CHECK(bytes["optimizer.m"] == 4 * ceil_div(kParameters, 256));
  bytes = with_optimizer("paged-adamw-32bit");
  CHECK(bytes["host"] == 8 * kParameters);
  CHECK(bytes["total"] == 4 * kParameters);
}

TEST_CASE("Adam on the host holds master and moments there") {
  auto bytes = with_optimizer("cpu-adam");
  CHECK(bytes["host"] == 12 * kParameters);
  CHECK(bytes["total"] == 4 * kParameters);
}

TEST_CASE("bytes of states of further optimizers over bf16 weights") {
  const auto states = [](const std::string& name) { return with_optimizer(name)["total"] - 4 * kParameters; };
  CHECK(states("sgd") == 0);
  CHECK(states("sgd-momentum") == 2 * kParameters);
  CHECK(states("adagrad") == 2 * kParameters);
  CHECK(states("rmsprop") == 2 * kParameters);
  CHECK(states("lion") == 2 * kParameters);
  CHECK(states("lion-8bit") == kParameters + 4 * ceil_div(kParameters, 256) + 1024);
  CHECK(states("ademamix-8bit") == 3 * kParameters + 3 * 4 * ceil_div(kParameters, 256) + 2048);
  CHECK(states("adamw-bnb-32bit") == 8 * kParameters);
  CHECK(states("adamw-ao-4bit") == kParameters + 2 * (4 * (kParameters / 128) + 64));
  CHECK(states("adamw-ao-fp8") == 2 * kParameters + 2 * 4 * (kParameters / 256));
}

TEST_CASE("updates inside the backward keep no gradient") {
  TrainingPlan plan = plan_of(Precision::pure_bf16, WeightFormat::bf16);
  plan.optimizer = "lomo";
  plan.clip = false;
  EstimateOptions options;
  options.replay = false;
  for (const Moment& moment : estimate(seven_billion(), plan, {}, options).moments)
    if (moment.name == "step")
      CHECK(moment.end == 2 * kParameters + 2 * 8 * plan.seq);  // and the Trainer's ids and labels
}

}  // namespace membill
