// Megatron-SWIFT's YAML (megatron sft job.yaml).
#include "io/exporters/formats.h"
#include "io/importers/formats.h"
#include "io/importers/megatron_step.h"

namespace membill::io {
namespace {

void write_stage(const ExportJob& job, KeyWriter& writer, Problems& problems) {
  const std::string stage = PlanText(job.plan).word("stage");
  const bool preference = stage == "dpo" || stage == "kto" || stage == "reward";
  if (preference) writer.set("rlhf_type", Value::of(stage == "reward" ? "rm" : stage));
  if (preference && job.plan.beta) writer.set("beta", Value::of(*job.plan.beta));
  if (!preference && stage != "sft" && stage != "pretrain")
    problems.add({"", "stage", stage + " has no file of Megatron-SWIFT's", "sft, pretrain, dpo, kto or reward"});
}

void write_method(const ExportJob& job, KeyWriter& writer, Problems& problems) {
  const bool lora = job.plan.method == Method::lora;
  if (!lora && job.plan.method != Method::full)
    problems.add({"", "method", PlanText(job.plan).word("method") + " is none of Megatron-SWIFT's", "lora or full"});
  writer.set("tuner_type", Value::of(lora ? "lora" : "full"));
  if (!lora) return;
  write_lora(job.plan, {"lora_rank", "lora_alpha", "lora_dropout", "target_modules", "modules_to_save", ""}, writer);
}

Value write(const ExportJob& job, Problems& problems) {
  KeyWriter writer({megatron_swift_table(), megatron_step_table()});
  if (!job.model.empty()) writer.set("model", Value::of(job.model));
  write_stage(job, writer, problems);
  write_method(job, writer, problems);
  const bool half = job.plan.precision == Precision::master_fp16;
  writer.set("torch_dtype", Value::of(half                                    ? "float16"
                                      : job.plan.precision == Precision::fp32 ? "float32"
                                                                              : "bfloat16"));
  writer.set("max_length", Value::of(job.plan.seq));
  writer.set("packing", Value::of(job.plan.packing));
  writer.set("padding_free", Value::of(job.plan.padding_free));
  if (job.plan.checkpointing.mode == Checkpointing::none) writer.set("recompute_granularity", Value::of("none"));
  write_megatron_step(job, false, writer, problems);
  return writer.take();
}

}  // namespace

Exporter megatron_swift_exporter() { return {"megatron-swift", "Megatron-SWIFT's YAML", Syntax::yaml, false, write}; }

}  // namespace membill::io
