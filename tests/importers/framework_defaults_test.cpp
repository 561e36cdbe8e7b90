// What --framework NAME takes for granted, against the front ends' own defaults.
#include <string>
#include <string_view>

#include "io/importers/importer.h"
#include "membill/catalog.h"
#include "support/catch.h"

namespace membill::importers_test {
namespace {

struct Fact {
  std::string_view front, method;
  WeightFormat weights;
  Precision precision;
  std::string_view optimizer;
  Checkpointing checkpointing;
  std::int64_t batch, accumulate, seq;
};

// Read in hiyouga/LLaMA-Factory ff6d4d1 hparams and model/adapter.py (trainable parameters in fp32, no autocast unless asked for),
// axolotl-ai-cloud/axolotl 0.19 utils/schemas, modelscope/ms-swift 4.6 arguments (the model's own length; 16 rows a step),
// trl 1.16 trainer/base_config.py and sft_config.py (bf16 where the card has it, fp32 weights by name), transformers 5.24
// training_args.py, litgpt 0.5.13 finetune/lora.py and utils.py get_default_supported_precision (bf16-mixed in training), unsloth 2026.10.9
// unsloth_cli/config.py and the studio's models/training.py, verl 0.9.1 trainer/config/sft_trainer_engine.yaml and its parts (8 samples of
// 1,024 tokens fill a micro-batch; 256 a step), torchtune 0.6.1 recipes/configs/llama3_1/8B_full.yaml and 8B_lora_single_device.yaml,
// torchtitan 0.2.2 config/job_config.py.
constexpr Fact kFacts[] = {
    {"llamafactory", "full", WeightFormat::fp32, Precision::fp32, "adamw", Checkpointing::full, 8, 1, 2048},
    {"llamafactory", "lora", WeightFormat::bf16, Precision::pure_bf16, "adamw", Checkpointing::full, 8, 1, 2048},
    {"axolotl", "full", WeightFormat::bf16, Precision::amp_bf16, "adamw", Checkpointing::none, 1, 1, 512},
    {"axolotl", "lora", WeightFormat::bf16, Precision::amp_bf16, "adamw", Checkpointing::none, 1, 1, 512},
    {"ms-swift", "full", WeightFormat::bf16, Precision::amp_bf16, "adamw", Checkpointing::full, 1, 16, 131072},
    {"ms-swift", "lora", WeightFormat::bf16, Precision::amp_bf16, "adamw", Checkpointing::full, 1, 16, 131072},
    {"trl", "full", WeightFormat::fp32, Precision::amp_bf16, "adamw", Checkpointing::full, 8, 1, 1024},
    {"trl", "lora", WeightFormat::fp32, Precision::amp_bf16, "adamw", Checkpointing::full, 8, 1, 1024},
    {"hf-trainer", "full", WeightFormat::fp32, Precision::fp32, "adamw", Checkpointing::none, 8, 1, 2048},
    {"litgpt", "full", WeightFormat::fp32, Precision::amp_bf16, "adamw", Checkpointing::none, 1, 16, 2048},
    {"litgpt", "lora", WeightFormat::fp32, Precision::amp_bf16, "adamw", Checkpointing::none, 1, 16, 2048},
    {"unsloth", "full", WeightFormat::bf16, Precision::amp_bf16, "adamw-8bit", Checkpointing::full, 2, 4, 2048},
    {"unsloth", "lora", WeightFormat::nf4, Precision::amp_bf16, "adamw-8bit", Checkpointing::full, 2, 4, 2048},
    {"verl", "full", WeightFormat::fp32, Precision::amp_bf16, "adamw", Checkpointing::full, 8, 32, 1024},
    {"verl", "lora", WeightFormat::fp32, Precision::amp_bf16, "adamw", Checkpointing::full, 8, 32, 1024},
    {"torchtune", "full", WeightFormat::bf16, Precision::pure_bf16, "adamw", Checkpointing::full, 2, 1, 2048},
    {"torchtune", "lora", WeightFormat::bf16, Precision::pure_bf16, "adamw", Checkpointing::full, 2, 8, 2048},
    {"torchtitan", "full", WeightFormat::fp32, Precision::amp_bf16, "adamw", Checkpointing::full, 8, 1, 2048},
};

bool steps_in_groups(std::string_view front) { return front == "litgpt" || front == "unsloth" || front == "verl"; }

TrainingPlan plan_of(const Fact& fact) {
  io::ImportContext context;
  context.model = "llama-3.1-8b";
  Problems problems;
  const io::JobFile job = io::import_defaults(std::string(fact.front), std::string(fact.method), context, problems);
  TrainingPlan plan;
  read_plan(job.plan, job.file, plan, problems);
  for (const Problem& problem : problems.list()) UNSCOPED_INFO(to_text(problem));
  CHECK(problems.empty());
  return plan;
}

}  // namespace

TEST_CASE("what a framework takes for granted is what its own code does") {
  for (const Fact& fact : kFacts) {
    INFO(fact.front << " " << fact.method);
    const TrainingPlan plan = plan_of(fact);
    CHECK(plan.weights == fact.weights);
    CHECK(plan.precision == fact.precision);
    CHECK(plan.optimizer == fact.optimizer);
    CHECK(plan.optimizer_impl == (steps_in_groups(fact.front) ? OptimizerImpl::foreach : OptimizerImpl::fused));
    CHECK(plan.checkpointing.mode == fact.checkpointing);
    CHECK(plan.batch == fact.batch);
    CHECK(plan.accumulate == fact.accumulate);
    CHECK(plan.seq == fact.seq);
  }
}

TEST_CASE("TRL's defaults are those of the release that runs the job") {
  const auto plan_of_release = [](const std::string& release, const std::string& stage) {
    io::ImportContext context;
    context.model = "qwen3-0.6b";
    context.given = {{"software.trl", release}, {"stage", stage}};
    Problems problems;
    const io::JobFile job = io::import_defaults("trl", "full", context, problems);
    TrainingPlan plan;
    read_plan(job.plan, job.file, plan, problems);
    CHECK(problems.empty());
    CHECK(plan.software.at("trl") == release);
    return plan;
  };
  const TrainingPlan before19 = plan_of_release("0.18.2", "grpo"), before22 = plan_of_release("0.21.0", "grpo"),
                     classic = plan_of_release("0.24", "grpo");
  CHECK(before19.precision == Precision::fp32);
  CHECK(before19.checkpointing.mode == Checkpointing::none);
  CHECK(before19.beta == 0.04);
  CHECK(before22.precision == Precision::amp_bf16);
  CHECK(before22.checkpointing.mode == Checkpointing::none);
  CHECK(before22.beta == 0);
  CHECK(classic.checkpointing.mode == Checkpointing::full);
  CHECK(plan_of_release("0.24", "dpo").stage == Stage::dpo);
}

TEST_CASE("only LLaMA-Factory and ms-swift checkpoint with re-entry") {
  for (const Fact& fact : kFacts) {
    INFO(fact.front << " " << fact.method);
    const bool reentrant = fact.front == "llamafactory" || fact.front == "ms-swift";
    CHECK(plan_of(fact).checkpointing.reentrant == reentrant);
  }
}

}  // namespace membill::importers_test
