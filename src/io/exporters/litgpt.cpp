// litgpt's YAML (litgpt finetune_lora --config job.yaml).
#include <algorithm>
#include <array>

#include "io/exporters/formats.h"
#include "io/importers/formats.h"

namespace membill::io {
namespace {

// The switch of each module that may get an adapter.
struct Switch {
  std::string_view key;
  std::string_view module;
};
constexpr std::array kSwitches{Switch{"lora_query", "q_proj"}, Switch{"lora_key", "k_proj"},
                               Switch{"lora_value", "v_proj"}, Switch{"lora_projection", "o_proj"},
                               Switch{"lora_mlp", "gate_proj"}};

void write_adapter(const TrainingPlan& plan, KeyWriter& writer) {
  write_lora(plan, {"lora_r", "lora_alpha", "lora_dropout", "", "", ""}, writer);
  const std::vector<std::string>& targets = plan.adapter.targets;
  const auto has = [&](std::string_view name) {
    return std::find(targets.begin(), targets.end(), name) != targets.end();
  };
  for (const Switch& each : kSwitches) {
    const bool usual = targets.empty() && (each.module == "q_proj" || each.module == "v_proj");
    writer.set(each.key, Value::of(usual || has("all-linear") || has(each.module)));
  }
}

void write_method(const ExportJob& job, KeyWriter& writer, Problems& problems) {
  if (job.plan.method == Method::full) return;
  if (job.plan.method == Method::lora) return write_adapter(job.plan, writer);
  problems.add(
      {"", "method", PlanText(job.plan).word("method") + " is none of litgpt's that are read", "lora or full"});
}

std::string precision_name(const TrainingPlan& plan, Problems& problems) {
  switch (plan.precision) {
    case Precision::fp32: return "32-true";
    case Precision::pure_bf16: return "bf16-true";
    case Precision::pure_fp16: return "16-true";
    case Precision::amp_bf16: return "bf16-mixed";
    case Precision::amp_fp16: return "16-mixed";
    default: break;
  }
  problems.add({"", "precision", PlanText(plan).word("precision") + " is none of litgpt's", "pure-bf16 or amp-bf16"});
  return "bf16-true";
}

void write_base(const ExportJob& job, KeyWriter& writer, Problems& problems) {
  writer.set("precision", Value::of(precision_name(job.plan, problems)));
  const std::string weights = PlanText(job.plan).word("weights");
  if (weights == "nf4" || weights == "fp4")
    writer.set("quantize", Value::of("bnb." + weights + (job.plan.double_quant ? "-dq" : "")));
  if (weights == "int8") writer.set("quantize", Value::of("bnb.int8-training"));
}

Value write(const ExportJob& job, Problems& problems) {
  const TrainingPlan& plan = job.plan;
  KeyWriter writer({litgpt_table()});
  require_engine(job, {Engine::torch, Engine::fsdp}, "litgpt", problems);
  if (plan.stage != Stage::sft)
    problems.add({"", "stage", PlanText(plan).word("stage") + " is none of litgpt's", "sft"});
  if (plan.optimizer != "adamw")
    problems.add({"", "optimizer", plan.optimizer + " is not written for litgpt", "adamw"});
  if (!job.model.empty()) writer.set("checkpoint_dir", Value::of("checkpoints/" + job.model));
  write_base(job, writer, problems);
  write_method(job, writer, problems);
  writer.set("devices", Value::of(job.count / std::max<std::int64_t>(1, job.nodes)));
  writer.set("num_nodes", Value::of(job.nodes));
  writer.set("train.micro_batch_size", Value::of(plan.batch));
  writer.set("train.global_batch_size", Value::of(checked_mul(checked_mul(plan.batch, plan.accumulate), job.count)));
  writer.set("train.max_seq_length", Value::of(plan.seq));
  if (plan.clip) writer.set("train.max_norm", Value::of(1.0, "1.0"));
  writer.set("optimizer", Value::of("AdamW"));
  return writer.take();
}

}  // namespace

Exporter litgpt_exporter() { return {"litgpt", "litgpt's YAML", Syntax::yaml, false, write}; }

}  // namespace membill::io
