#include "base/text.h"
#include "catalog/plan_fields/row.h"

namespace membill {
namespace {

using Plan = TrainingPlan;

constexpr RealRange kThreshold{0.0, 1.0, true, true};
constexpr RealRange kBeta{0.0, 1e300};
constexpr std::array<std::string_view, 3> kReferenceWords{"model", "none", "precompute"};
constexpr std::array<std::string_view, 4> kServers{"transformers", "vllm", "sglang", "lmdeploy"};
constexpr std::array<std::string_view, 5> kCacheWords{"auto", "fp16", "bf16", "fp8", "int8"};
constexpr std::array<std::string_view, 3> kSavedStates{"none", "full", "sharded"};
constexpr RealRange kFraction{0.0, 1.0, false, true};
constexpr std::int64_t kLeastSplitMb = 21;  // PyTorch wants more than its 20 MiB buffers

// The programs whose releases change the bill.
const std::vector<std::string_view>& software_names() {
  static const std::vector<std::string_view> kNames{
      "torch",        "transformers", "peft",    "trl",       "accelerate", "deepspeed",    "megatron-core",
      "bitsandbytes", "liger-kernel", "unsloth", "torchtune", "torchao",    "llamafactory", "torchtitan"};
  return kNames;
}

// "256", or a list such as [256:1,512:2]: kept as PYTORCH_ALLOC_CONF spells it.
std::string read_roundup(const Value& value, Plan& plan, std::string&) {
  auto& field = plan.allocator.roundup_power2_divisions;
  if (value.is_null()) return field.reset(), std::string();
  std::string text;
  std::string wrong = read_text(value, text);
  if (wrong.empty()) field = text;
  return wrong;
}

std::vector<PlanFieldRow> allocator_fields() {
  constexpr auto kAllocator = &Plan::allocator;
  return {
      bool_row<kAllocator, &AllocatorPlan::expandable_segments>(
          {"allocator.expandable_segments", "--expandable-segments", "as in PYTORCH_ALLOC_CONF"}),
      count_row<kLeastSplitMb, kLargestCount, kAllocator, &AllocatorPlan::max_split_size_mb>(
          {"allocator.max_split_size_mb", "--max-split-size-mb", "as in PYTORCH_ALLOC_CONF"}),
      real_row<kThreshold, kAllocator, &AllocatorPlan::garbage_collection_threshold>(
          {"allocator.garbage_collection_threshold", "--garbage-collection-threshold", "as in PYTORCH_ALLOC_CONF"}),
      make_row({"allocator.roundup_power2_divisions", "--roundup-power2-divisions", "as in PYTORCH_ALLOC_CONF"},
               "1 or more, or [256:1,512:2,>:4]", read_roundup,
               write_field<kAllocator, &AllocatorPlan::roundup_power2_divisions>),
  };
}

std::vector<PlanFieldRow> evaluation_fields() {
  constexpr auto kEvaluation = &Plan::evaluation;
  return {
      count_row<1, kLargestCount, kEvaluation, &EvaluationPlan::batch>(
          {"evaluation.batch", "--evaluation-batch", "sequences of an evaluation batch; null: no evaluation"}),
      count_row<1, kLargestCount, kEvaluation, &EvaluationPlan::samples>(
          {"evaluation.samples", "--evaluation-samples", "sequences of the evaluation set; null: two batches"}),
      bool_row<kEvaluation, &EvaluationPlan::keep_logits>(
          {"evaluation.keep_logits", "--evaluation-keep-logits", "metrics need the logits of all samples"}),
      count_row<1, kLargestCount, kEvaluation, &EvaluationPlan::accumulation_steps>(
          {"evaluation.accumulation_steps", "--evaluation-accumulation-steps",
           "batches after which kept logits go to the host; null: at the end"}),
      bool_row<kEvaluation, &EvaluationPlan::gradients>(
          {"evaluation.gradients", "--evaluation-gradients", "the loop forgets torch.no_grad()"}),
  };
}

std::vector<PlanFieldRow> save_fields() {
  constexpr auto kSave = &Plan::save;
  return {
      text_word_row<kSavedStates, kSave, &SavePlan::state>(
          {"save.state", "--save-state", "what a checkpoint holds; none: the job saves none"}),
      bool_row<kSave, &SavePlan::optimizer>(
          {"save.optimizer", "--save-optimizer", "the optimizer's states are saved, too"}),
  };
}

std::vector<PlanFieldRow> inference_fields() {
  constexpr auto kInference = &Plan::inference;
  return {
      text_word_row<kServers, kInference, &InferencePlan::engine>(
          {"inference.engine", "--inference-engine", "what serves the model (stage inference)"}),
      text_word_row<kCacheWords, kInference, &InferencePlan::kv_cache>(
          {"inference.kv_cache", "--kv-cache", "storage of keys and values; auto: as the model computes"}),
      real_row<kFraction, kInference, &InferencePlan::memory_fraction>(
          {"inference.memory_fraction", "--memory-fraction",
           "share of the card that the engine takes; null: its default"}),
      count_row<1, kLargestCount, kInference, &InferencePlan::block>(
          {"inference.block", "--block", "tokens of a page of the cache"}),
  };
}

std::string read_teacher(const Value& value, Plan& plan) {
  if (value.is_null()) return plan.teacher.reset(), std::string();
  std::string name;
  std::string wrong = read_text(value, name);
  if (!wrong.empty()) return wrong;
  if (name.empty()) return "is empty";
  plan.teacher = std::move(name);
  return {};
}

std::vector<PlanFieldRow> preference_fields() {
  return {
      count_row<1, kLargestCount, &Plan::completion>({"completion", "--completion", "tokens of seq that count"}),
      count_row<1, kLargestCount, &Plan::prompt>({"prompt", "--prompt", "tokens of the prompt"}),
      count_row<1, kLargestCount, &Plan::generations>({"generations", "--generations", "completions of one prompt"}),
      text_word_row<kReferenceWords, &Plan::reference>(
          {"reference", "--reference", "where a preference stage takes its reference from"}),
      real_row<kBeta, &Plan::beta>({"beta", "--beta", "strength of the reference (0 may leave it out)"}),
      make_row(
          {"teacher", "--teacher", "the model that stage distill learns from"}, "a preset, a config.json, a folder",
          [](const Value& value, Plan& plan, std::string&) { return read_teacher(value, plan); },
          write_field<&Plan::teacher>),
  };
}

PlanFieldRow map_row(PlanFieldRow row) {
  row.free_map = true;
  return row;
}

std::string read_versions(const Value& value, Plan& plan, std::string& hint) {
  std::map<std::string, std::string> versions = plan.software;
  if (std::string wrong = read_text_map(value, software_names(), versions, hint); !wrong.empty()) return wrong;
  for (const auto& [name, version] : versions)
    if (version.empty() || !is_digit(version.front()))
      return quoted(name) + " needs a version such as 0.24, not " + quoted(version);
  plan.software = std::move(versions);
  return {};
}

}  // namespace

std::vector<PlanFieldRow> runtime_fields() {
  std::vector<PlanFieldRow> rows = allocator_fields();
  for (PlanFieldRow& row : evaluation_fields()) rows.push_back(std::move(row));
  for (PlanFieldRow& row : save_fields()) rows.push_back(std::move(row));
  for (PlanFieldRow& row : inference_fields()) rows.push_back(std::move(row));
  rows.push_back(map_row(make_row(
      {"software", "", "versions of what runs the job: torch, transformers, ..."}, "a map",
      [](const Value& value, Plan& plan, std::string& hint) { return read_versions(value, plan, hint); },
      write_field<&Plan::software>)));
  for (PlanFieldRow& row : preference_fields()) rows.push_back(std::move(row));
  rows.push_back(map_row(make_row(
      {"stage_args", "", "further arguments of the stage, as TRL spells them"}, "a map",
      [](const Value& value, Plan& plan, std::string& hint) { return read_text_map(value, {}, plan.stage_args, hint); },
      write_field<&Plan::stage_args>)));
  return rows;
}

}  // namespace membill
