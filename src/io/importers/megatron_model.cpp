#include "io/importers/megatron_model.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/text.h"
#include "io/importers/parts.h"
#include "membill/catalog.h"

namespace membill::io {
namespace {

constexpr std::size_t kMostLayers = 10'000;

std::int64_t rows_of_vocabulary(KeyReader& reader, Draft& draft) {
  if (const auto padded = reader.count("padded_vocab_size", 1)) return *padded;
  if (const auto rows = reader.count("vocab_size", 1)) return *rows;
  const std::string tokenizer = reader.text("tokenizer_type").value_or("");
  const bool llama = tokenizer.find("Llama") != std::string::npos || reader.flag("swiglu");
  const std::int64_t rows = llama ? 32000 : 50257;
  draft.assume("the size of the vocabulary is not among the flags: " + std::to_string(rows) + ", " +
               (llama ? "llama's" : "GPT-2's"));
  return rows;
}

// "[0,1]*24" and "([0]*3+[1]*58)": which layers have experts, as arguments.py's moe_freq_type reads Python. Nothing: it is none.
std::optional<std::vector<bool>> read_layer_list(std::string text) {
  std::erase_if(text, [](char c) { return c == ' ' || c == '(' || c == ')'; });
  std::vector<bool> layers;
  for (const std::string& term : split(text, '+')) {
    const std::size_t close = term.find(']');
    if (!term.starts_with('[') || close == std::string::npos) return std::nullopt;
    std::vector<bool> turn;
    for (const std::string& item : split(std::string_view(term).substr(1, close - 1), ',')) {
      if (item != "0" && item != "1") return std::nullopt;
      turn.push_back(item == "1");
    }
    const std::string_view rest = std::string_view(term).substr(close + 1);
    const Value count = rest.starts_with('*') ? flag_value(rest.substr(1)) : Value::of(std::int64_t{1});
    if (!count.is_int() || count.as_int() < 1 || (!rest.empty() && !rest.starts_with('*'))) return std::nullopt;
    for (std::int64_t i = 0; i < count.as_int() && layers.size() <= kMostLayers; ++i)
      layers.insert(layers.end(), turn.begin(), turn.end());
  }
  return layers;
}

// The layers without experts.
std::vector<Value> dense_layers(KeyReader& reader, std::int64_t count) {
  std::vector<Value> dense;
  const auto given = reader.text("moe_layer_freq");
  if (!given || count > static_cast<std::int64_t>(kMostLayers)) return dense;
  const Value every = flag_value(*given);
  const std::optional<std::vector<bool>> list = every.is_int() ? std::nullopt : read_layer_list(*given);
  if (every.is_int() ? every.as_int() < 1 : !list || static_cast<std::int64_t>(list->size()) != count) {
    reader.problem("moe_layer_freq", quoted(*given) + " is no pattern of " + std::to_string(count) + " layers",
                   "a number, or [0]*1+[1]*26");
    return dense;
  }
  for (std::int64_t i = 0; i < count; ++i) {
    const bool sparse = every.is_int() ? i % every.as_int() == 0 : (*list)[static_cast<std::size_t>(i)];
    if (!sparse) dense.push_back(Value::of(i));
  }
  return dense;
}

// A GPT as Hugging Face's GPT-2 describes it: biases, LayerNorm, learned positions, embedding and head tied.
Value gpt_config(KeyReader& reader, std::int64_t hidden, std::int64_t width, std::int64_t rows) {
  const std::int64_t positions = reader.count("max_position_embeddings", 1).value_or(2048);
  Value config = Value::make_map({{"model_type", Value::of("gpt2")},
                                  {"n_embd", Value::of(hidden)},
                                  {"n_layer", Value::of(reader.count("num_layers", 1).value_or(1))},
                                  {"n_head", Value::of(reader.count("num_attention_heads", 1).value_or(1))},
                                  {"n_inner", Value::of(width)},
                                  {"n_positions", Value::of(positions)},
                                  {"vocab_size", Value::of(rows)}});
  config.set("attn_pdrop", Value::of(reader.real("attention_dropout").value_or(0.1)));
  config.set("resid_pdrop", Value::of(reader.real("hidden_dropout").value_or(0.1)));
  config.set("embd_pdrop", Value::of(reader.real("hidden_dropout").value_or(0.1)));
  return config;
}

// What every gated model says.
Value gated_config(KeyReader& reader, const char* type, std::int64_t hidden, std::int64_t width, std::int64_t rows) {
  Value config =
      Value::make_map({{"model_type", Value::of(type)},
                       {"hidden_size", Value::of(hidden)},
                       {"num_hidden_layers", Value::of(reader.count("num_layers", 1).value_or(1))},
                       {"num_attention_heads", Value::of(reader.count("num_attention_heads", 1).value_or(1))},
                       {"intermediate_size", Value::of(width)},
                       {"vocab_size", Value::of(rows)}});
  config.set("tie_word_embeddings", Value::of(!reader.flag("untie_embeddings_and_output_weights")));
  if (const auto positions = reader.count("max_position_embeddings", 1))
    config.set("max_position_embeddings", Value::of(*positions));
  return config;
}

void add_experts(KeyReader& reader, const char* type, std::int64_t width, Value& config, Draft& draft) {
  const std::int64_t experts = reader.count("num_experts", 1).value_or(1);
  const std::int64_t expert = reader.count("moe_ffn_hidden_size", 1).value_or(width);
  const bool mixtral = std::string_view(type) == "mixtral", shared = std::string_view(type) == "qwen2_moe";
  config.set(mixtral ? "num_local_experts" : "num_experts", Value::of(experts));
  config.set("num_experts_per_tok", Value::of(reader.count("moe_router_topk", 1).value_or(2)));
  config.set(mixtral ? "intermediate_size" : "moe_intermediate_size", Value::of(expert));
  if (shared) {
    config.set("shared_expert_intermediate_size",
               Value::of(reader.count("moe_shared_expert_intermediate_size", 1).value_or(0)));
    config.set("qkv_bias", Value::of(reader.flag("add_qkv_bias")));
  }
  draft.assume("the experts are billed as " +
               std::string(shared    ? "Qwen2's"
                           : mixtral ? "Mixtral's"
                                     : "Qwen3's") +
               " are built");
  std::vector<Value> dense = dense_layers(reader, reader.count("num_layers", 1).value_or(1));
  if (dense.empty()) return;
  if (mixtral) {
    return reader.problem("moe_layer_freq",
                          "layers without experts are billed beside shared experts or norms of query and key only");
  }
  config.set("mlp_only_layers", Value::make_list(std::move(dense)));
}

Value llama_config(KeyReader& reader, std::int64_t hidden, std::int64_t width, std::int64_t rows, Draft& draft) {
  const std::int64_t heads = reader.count("num_attention_heads", 1).value_or(1);
  const bool biased = reader.flag("add_qkv_bias"), normed = reader.flag("qk_layernorm");
  const bool shared = reader.is_given("moe_shared_expert_intermediate_size"), sparse = reader.is_given("num_experts");
  const char* type = normed ? "qwen3" : biased ? "qwen2" : "llama";
  if (sparse) type = shared ? "qwen2_moe" : normed ? "qwen3_moe" : "mixtral";
  Value config = gated_config(reader, type, hidden, width, rows);
  const bool grouped = reader.flag("group_query_attention");
  config.set("num_key_value_heads", Value::of(grouped ? reader.count("num_query_groups", 1).value_or(1) : heads));
  if (const auto head = reader.count("kv_channels", 1)) config.set("head_dim", Value::of(*head));
  if (sparse) add_experts(reader, type, width, config, draft);
  return config;
}

// Latent attention, with experts behind the first layers where there are any.
Value latent_config(KeyReader& reader, std::int64_t hidden, std::int64_t width, std::int64_t rows, Draft& draft) {
  const bool biased = reader.flag("moe_router_enable_expert_bias");
  Value config = gated_config(reader, biased ? "deepseek_v3" : "deepseek_v2", hidden, width, rows);
  const auto query = reader.count("q_lora_rank", 1);
  config.set("q_lora_rank", query ? Value::of(*query) : Value());
  for (const auto& [flag, key] :
       {std::pair("kv_lora_rank", "kv_lora_rank"), std::pair("qk_head_dim", "qk_nope_head_dim"),
        std::pair("qk_pos_emb_head_dim", "qk_rope_head_dim"), std::pair("v_head_dim", "v_head_dim")})
    config.set(key, Value::of(reader.count(flag, 1).value_or(1)));
  const std::int64_t layers = reader.count("num_layers", 1).value_or(1);
  const std::int64_t expert = reader.count("moe_ffn_hidden_size", 1).value_or(width);
  const std::int64_t shared = reader.count("moe_shared_expert_intermediate_size", 1).value_or(0);
  config.set("moe_intermediate_size", Value::of(expert));
  config.set("n_routed_experts", Value::of(reader.count("num_experts", 1).value_or(1)));
  config.set("num_experts_per_tok", Value::of(reader.count("moe_router_topk", 1).value_or(2)));
  config.set("n_shared_experts", Value::of(shared / std::max<std::int64_t>(1, expert)));
  const std::vector<Value> dense = dense_layers(reader, layers);
  const bool leading = dense.empty() || dense.back().as_int() + 1 == static_cast<std::int64_t>(dense.size());
  if (!leading)
    reader.problem("moe_layer_freq", "of latent attention's models only the first layers are without experts");
  const bool sparse = reader.is_given("num_experts");
  config.set("first_k_dense_replace", Value::of(sparse ? static_cast<std::int64_t>(dense.size()) : layers));
  draft.assume(std::string("latent attention is billed as DeepSeek-") + (biased ? "V3" : "V2") + " is built");
  return config;
}

// What is given that no model here has.
bool is_refused(KeyReader& reader) {
  for (const char* key : {"is_hybrid_model", "hybrid_layer_pattern", "hybrid_override_pattern", "mamba_num_heads"}) {
    if (!reader.is_given(key)) continue;
    reader.problem(key, "Mamba layers are not billed under Megatron");
    return true;
  }
  if (reader.is_given("encoder_num_layers") && !reader.is_given("num_layers")) {
    reader.problem("encoder_num_layers", "an encoder beside the decoder is not billed under Megatron");
    return true;
  }
  for (const char* key : {"num_layers", "hidden_size", "num_attention_heads"}) {
    if (reader.is_given(key)) continue;
    reader.problem(key, "is missing", "membill needs the model's sizes, or MODEL beside the job");
    return true;
  }
  return false;
}

}  // namespace

// Megatron's own defaults drop a tenth everywhere; a model of another type than GPT-2's says no dropout in its config.
void take_megatron_dropout(KeyReader& reader, Draft& draft) {
  const double hidden = reader.real("hidden_dropout").value_or(0.1);
  (void)reader.real("attention_dropout");
  const Value* type = draft.config ? draft.config->find("model_type") : nullptr;
  const std::string name = type != nullptr ? type->as_string() : find_model(draft).model_type;
  if (hidden > 0 && !name.empty() && name != "gpt2") draft.set("dropout", Value::of(hidden));
}

void read_megatron_model(KeyReader& reader, Draft& draft) {
  if (is_refused(reader)) return;
  const std::int64_t hidden = reader.count("hidden_size", 1).value_or(1);
  const bool quick = reader.flag("quick_geglu"), gated = reader.flag("swiglu") || quick;
  if (hidden > (1LL << 40)) return reader.problem("hidden_size", "is too large");
  const std::int64_t usual = gated ? (hidden * 8 / 3 + 63) / 64 * 64 : hidden * 4;
  const std::int64_t width = reader.count("ffn_hidden_size", 1).value_or(usual);
  const std::int64_t rows = rows_of_vocabulary(reader, draft);
  const bool rms = reader.text("normalization") == "RMSNorm";
  const bool rotary = reader.flag("use_rotary_position_embeddings") || reader.text("position_embedding_type") == "rope";
  if (reader.flag("multi_latent_attention")) {
    draft.config = latent_config(reader, hidden, width, rows, draft);
  } else if (gated || (rms && rotary) || reader.is_given("num_experts")) {
    draft.config = llama_config(reader, hidden, width, rows, draft);
  } else {
    draft.config = gpt_config(reader, hidden, width, rows);
  }
  take_megatron_dropout(reader, draft);
  reader.use("disable_bias_linear");
}

}  // namespace membill::io
