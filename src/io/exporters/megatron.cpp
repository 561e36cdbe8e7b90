// Megatron-LM's flags in a launch script; the model is described by them too.
#include <algorithm>
#include <array>
#include <optional>

#include "base/text.h"
#include "io/exporters/formats.h"
#include "io/importers/formats.h"
#include "io/importers/megatron_step.h"
#include "io/model_source.h"

namespace membill::io {
namespace {

std::int64_t number(const Value& config, const char* key, std::int64_t otherwise) {
  const Value* value = config.find(key);
  return value != nullptr && value->is_int() ? value->as_int() : otherwise;
}

bool is_on(const Value& config, const char* key) {
  const Value* value = config.find(key);
  return value != nullptr && value->is_bool() && value->as_bool();
}

// The model's shapes, by the key of its config; a key that the config does not have is left out.
struct Shape {
  const char* flag;
  const char* key;
};

void write_shapes(const Value& config, std::initializer_list<Shape> shapes, KeyWriter& writer) {
  for (const Shape& shape : shapes)
    if (const std::int64_t size = number(config, shape.key, 0); size > 0) writer.set(shape.flag, Value::of(size));
}

void write_vocabulary(const TrainingPlan& plan, const Value& config, KeyWriter& writer) {
  const std::int64_t rows = number(config, "vocab_size", 1);
  if (!plan.vocab_pad_to) return writer.set("padded_vocab_size", Value::of(rows));
  writer.set("vocab_size", Value::of(rows));
  writer.set("make_vocab_size_divisible_by",
             Value::of(std::max<std::int64_t>(1, *plan.vocab_pad_to / std::max<std::int64_t>(1, plan.parallel.tp))));
}

void write_gpt(const Value& config, KeyWriter& writer) {
  write_shapes(config,
               {{"num_layers", "n_layer"},
                {"hidden_size", "n_embd"},
                {"num_attention_heads", "n_head"},
                {"ffn_hidden_size", "n_inner"},
                {"max_position_embeddings", "n_positions"}},
               writer);
  const std::pair<const char*, const char*> drops[] = {{"attention_dropout", "attn_pdrop"},
                                                       {"hidden_dropout", "resid_pdrop"}};
  for (const auto& [flag, key] : drops) {
    const Value* rate = config.find(key);
    if (rate != nullptr) writer.set(flag, *rate);
  }
}

// "([0]*3+[1]*58)": the first layers are without experts.
void write_first_dense(std::int64_t dense, std::int64_t layers, KeyWriter& writer) {
  if (dense > 0 && dense < layers)
    writer.set("moe_layer_freq",
               Value::of("([0]*" + std::to_string(dense) + "+[1]*" + std::to_string(layers - dense) + ")"));
}

void write_latent(const Value& config, KeyWriter& writer) {
  writer.set("multi_latent_attention", Value::of(true));
  write_shapes(config,
               {{"q_lora_rank", "q_lora_rank"},
                {"kv_lora_rank", "kv_lora_rank"},
                {"qk_head_dim", "qk_nope_head_dim"},
                {"qk_pos_emb_head_dim", "qk_rope_head_dim"},
                {"v_head_dim", "v_head_dim"},
                {"num_experts", "n_routed_experts"},
                {"moe_router_topk", "num_experts_per_tok"},
                {"moe_ffn_hidden_size", "moe_intermediate_size"}},
               writer);
  const std::int64_t shared = number(config, "n_shared_experts", 0) * number(config, "moe_intermediate_size", 0);
  if (shared > 0) writer.set("moe_shared_expert_intermediate_size", Value::of(shared));
  write_first_dense(number(config, "first_k_dense_replace", 0), number(config, "num_hidden_layers", 0), writer);
}

void write_experts(const std::string& type, const Value& config, KeyWriter& writer) {
  const bool mixtral = type == "mixtral";
  write_shapes(config,
               {{"num_experts", mixtral ? "num_local_experts" : "num_experts"},
                {"moe_router_topk", "num_experts_per_tok"},
                {"moe_ffn_hidden_size", mixtral ? "intermediate_size" : "moe_intermediate_size"},
                {"moe_shared_expert_intermediate_size", "shared_expert_intermediate_size"}},
               writer);
}

void write_gated(const std::string& type, const Value& config, KeyWriter& writer) {
  for (const char* flag : {"swiglu", "disable_bias_linear"}) writer.set(flag, Value::of(true));
  writer.set("normalization", Value::of("RMSNorm"));
  writer.set("position_embedding_type", Value::of("rope"));
  write_shapes(config,
               {{"num_layers", "num_hidden_layers"},
                {"hidden_size", "hidden_size"},
                {"num_attention_heads", "num_attention_heads"},
                {"ffn_hidden_size", "intermediate_size"},
                {"max_position_embeddings", "max_position_embeddings"}},
               writer);
  if (!is_on(config, "tie_word_embeddings")) writer.set("untie_embeddings_and_output_weights", Value::of(true));
  if (type.starts_with("deepseek")) {
    if (type == "deepseek_v3") writer.set("moe_router_enable_expert_bias", Value::of(true));
    return write_latent(config, writer);
  }
  const std::int64_t heads = number(config, "num_attention_heads", 1);
  if (const std::int64_t groups = number(config, "num_key_value_heads", heads); groups != heads) {
    writer.set("group_query_attention", Value::of(true));
    writer.set("num_query_groups", Value::of(groups));
  }
  write_shapes(config, {{"kv_channels", "head_dim"}}, writer);
  if (type.starts_with("qwen2")) writer.set("add_qkv_bias", Value::of(true));
  if (type.starts_with("qwen3")) writer.set("qk_layernorm", Value::of(true));
  if (type == "mixtral" || type.ends_with("_moe")) write_experts(type, config, writer);
}

std::optional<LoadedModel> load(const ExportJob& job) {
  try {
    if (job.config) return load_config(*job.config, "", "model");
    return load_model(job.preset.empty() ? job.model : job.preset, {});
  } catch (const InputError&) {
    return std::nullopt;
  }
}

// Whether the model has experts.
bool write_model(const ExportJob& job, KeyWriter& writer, Problems& problems) {
  static constexpr std::array<std::string_view, 10> kTypes{
      "gpt2", "llama", "mistral", "qwen2", "qwen3", "qwen2_moe", "qwen3_moe", "mixtral", "deepseek_v2", "deepseek_v3"};
  const std::optional<LoadedModel> model = load(job);
  const bool known = model && std::find(kTypes.begin(), kTypes.end(), model->model_type) != kTypes.end();
  if (!known || !model->part.empty()) {
    problems.add({"", "model", "has no flags of Megatron-LM's here", "a llama, mistral, qwen, gpt2 or deepseek"});
    return false;
  }
  if (model->model_type == "gpt2") {
    write_gpt(model->config, writer);
  } else {
    write_gated(model->model_type, model->config, writer);
    const double rate = job.plan.dropout.value_or(0.0);
    for (const char* flag : {"attention_dropout", "hidden_dropout"}) writer.set(flag, Value::of(rate));
  }
  write_vocabulary(job.plan, model->config, writer);
  return number(model->config, "num_experts", 0) > 0 || number(model->config, "num_local_experts", 0) > 0 ||
         number(model->config, "n_routed_experts", 0) > 0;
}

Value write(const ExportJob& job, Problems& problems) {
  KeyWriter writer({megatron_table(), megatron_step_table()});
  if (job.plan.stage != Stage::pretrain && job.plan.stage != Stage::sft)
    problems.add({"", "stage", PlanText(job.plan).word("stage") + " has no flags of Megatron-LM's", "pretrain"});
  if (job.plan.method != Method::full)
    problems.add({"", "method", PlanText(job.plan).word("method") + " is none of Megatron-LM's", "full"});
  const bool experts = write_model(job, writer, problems);
  writer.set("seq_length", Value::of(job.plan.seq));
  write_megatron_step(job, experts, writer, problems);
  return writer.take();
}

}  // namespace

Exporter megatron_exporter() { return {"megatron", "a script of Megatron-LM's flags", Syntax::script, false, write}; }

}  // namespace membill::io
