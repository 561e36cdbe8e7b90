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
    case Method::loha: return "LOHA";
    case Method::lokr: return "LOKR";
    case Method::oft: return "OFT";
    case Method::prompt: return "PROMPT_TUNING";
    case Method::prefix: return "PREFIX_TUNING";
    case Method::ptuning: return "P_TUNING";
    case Method::full:
    case Method::freeze: break;
  }
  return nullptr;
}

void write_tokens(const AdapterPlan& adapter, KeyWriter& writer) {
  writer.set("num_virtual_tokens", Value::of(adapter.virtual_tokens));
  if (adapter.prefix_projection) writer.set("prefix_projection", Value::of(true));
  if (adapter.encoder_hidden) writer.set("encoder_hidden_size", Value::of(*adapter.encoder_hidden));
}

// Which modules have no adapter, or another one.
void write_exceptions(const AdapterPlan& adapter, KeyWriter& writer) {
  if (!adapter.exclude.empty()) writer.set("exclude_modules", text_list(adapter.exclude));
  std::vector<Value> layers;
  for (const std::int64_t layer : adapter.layers) layers.push_back(Value::of(layer));
  if (!layers.empty()) writer.set("layers_to_transform", Value::make_list(std::move(layers)));
  Value ranks = Value::make_map();
  for (const auto& [name, rank] : adapter.rank_pattern) ranks.set(name, Value::of(rank));
  if (!adapter.rank_pattern.empty()) writer.set("rank_pattern", std::move(ranks));
  if (adapter.lora_bias) writer.set("lora_bias", Value::of(true));
  if (adapter.init_rank) writer.set("init_r", Value::of(*adapter.init_rank));
}

// LoHa, LoKr, OFT; and the rows of the embedding that train beside LoRA, of which the plan knows the number only.
void write_shapes(const TrainingPlan& plan, KeyWriter& writer) {
  const AdapterPlan& adapter = plan.adapter;
  if (plan.method == Method::oft) {
    constexpr std::int64_t kDefaultBlock = 32;
    const std::int64_t block = adapter.block_size.value_or(kDefaultBlock);
    writer.set("r", Value::of(block == 0 ? adapter.rank : std::int64_t{0}));
    writer.set("oft_block_size", Value::of(block));
  }
  if (adapter.decompose_factor) writer.set("decompose_factor", Value::of(*adapter.decompose_factor));
  if (adapter.decompose_both) writer.set("decompose_both", Value::of(true));
  std::vector<Value> rows;
  for (std::int64_t row = 0; row < adapter.trainable_tokens; ++row) rows.push_back(Value::of(row));
  if (!rows.empty()) writer.set("trainable_token_indices", Value::make_list(std::move(rows)));
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
    write_tokens(plan.adapter, writer);
    return writer.take();
  }
  LoraKeys keys{"r", "lora_alpha", "lora_dropout", "target_modules", "modules_to_save", "use_dora"};
  if (plan.method == Method::vera) keys.dropout = "vera_dropout";
  if (plan.method == Method::oft) keys.rank = keys.alpha = keys.dropout = "";
  if (plan.method == Method::loha || plan.method == Method::lokr) keys.alpha = "alpha", keys.dropout = "rank_dropout";
  write_lora(plan, keys, writer);
  write_exceptions(plan.adapter, writer);
  write_shapes(plan, writer);
  return writer.take();
}

}  // namespace

Exporter peft_exporter() { return {"peft", "PEFT's adapter_config.json", Syntax::json, true, write}; }

}  // namespace membill::io
