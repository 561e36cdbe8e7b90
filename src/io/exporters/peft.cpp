// PEFT's adapter_config.json: the adapters alone.
#include "io/exporters/formats.h"
#include "io/importers/formats.h"

namespace membill::io {
namespace {

const char* peft_type(Method method) {
  switch (method) {
    case Method::lora:
    case Method::dora: return "LORA";
    case Method::adalora: return "ADALORA";
    case Method::vera: return "VERA";
    case Method::ia3: return "IA3";
    case Method::prompt: return "PROMPT_TUNING";
    case Method::prefix: return "PREFIX_TUNING";
    case Method::ptuning: return "P_TUNING";
    case Method::full:
    case Method::freeze: break;
  }
  return nullptr;
}

Value write(const ExportJob& job, Problems& problems) {
  const TrainingPlan& plan = job.plan;
  KeyWriter writer({peft_table()});
  const char* type = peft_type(plan.method);
  if (type == nullptr) {
    problems.add({"", "method", PlanText(plan).word("method") + " trains no adapter", "lora"});
    return writer.take();
  }
  if (!job.model.empty()) writer.set("base_model_name_or_path", Value::of(job.model));
  writer.set("peft_type", Value::of(type));
  writer.set("task_type", Value::of("CAUSAL_LM"));
  if (plan.method == Method::prompt || plan.method == Method::prefix || plan.method == Method::ptuning) {
    writer.set("num_virtual_tokens", Value::of(plan.adapter.virtual_tokens));
    return writer.take();
  }
  writer.set("r", Value::of(plan.adapter.rank));
  if (plan.adapter.alpha) writer.set("lora_alpha", Value::of(*plan.adapter.alpha));
  writer.set("lora_dropout", Value::of(plan.adapter.dropout));
  if (!plan.adapter.targets.empty()) writer.set("target_modules", target_list(plan, "all-linear"));
  if (!plan.adapter.modules_to_save.empty()) writer.set("modules_to_save", text_list(plan.adapter.modules_to_save));
  if (plan.method == Method::dora) writer.set("use_dora", Value::of(true));
  if (plan.adapter.init_rank) writer.set("init_r", Value::of(*plan.adapter.init_rank));
  return writer.take();
}

}  // namespace

Exporter peft_exporter() { return {"peft", "PEFT's adapter_config.json", Syntax::json, true, write}; }

}  // namespace membill::io
