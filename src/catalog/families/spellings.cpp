#include "catalog/families/spellings.h"

#include "membill/catalog.h"

namespace membill {

namespace census {

namespace {

// Source: `attribute_map` of the config classes of transformers 5.24.0; remote configuration files of qwen, chatglm, baichuan; keys of
// older falcon (n_head_kv) and bloom (n_embed) files.
constexpr Spelling kSpellings[] = {
    {"hidden_size", "n_embd"},
    {"hidden_size", "n_embed"},
    {"hidden_size", "d_model"},
    {"hidden_size", "dim"},
    {"num_hidden_layers", "n_layer"},
    {"num_hidden_layers", "n_layers"},
    {"num_hidden_layers", "num_layers"},
    {"num_attention_heads", "n_head"},
    {"num_attention_heads", "n_heads"},
    {"num_attention_heads", "num_heads"},
    {"num_key_value_heads", "num_kv_heads"},
    {"num_key_value_heads", "n_head_kv"},
    {"num_key_value_heads", "multi_query_group_num"},
    {"head_dim", "d_kv"},
    {"head_dim", "kv_channels"},
    {"intermediate_size", "n_inner"},
    {"intermediate_size", "ffn_dim"},
    {"intermediate_size", "ffn_hidden_size"},
    {"intermediate_size", "d_ff"},
    {"intermediate_size", "inner_hidden_size"},
    {"max_position_embeddings", "n_positions"},
    {"max_position_embeddings", "max_seq_len"},
    {"max_position_embeddings", "model_max_length"},
    {"max_position_embeddings", "max_sequence_length"},
    {"max_position_embeddings", "seq_length"},
    {"vocab_size", "padded_vocab_size"},
    {"hidden_act", "activation_function"},
    {"hidden_act", "hidden_activation"},
    {"hidden_act", "activation"},
    {"num_experts", "num_local_experts"},
    {"num_experts", "n_routed_experts"},
    {"num_experts", "moe_num_experts"},
    {"num_experts_per_tok", "moe_k"},
    {"num_experts_per_tok", "moe_top_k"},
    {"num_experts_per_tok", "top_k_experts"},
    {"partial_rotary_factor", "rotary_pct"},
    {"attention_dropout", "attn_pdrop"},
    {"attention_dropout", "attn_dropout_prob"},
    {"attention_dropout", "attention_probs_dropout_prob"},
    {"hidden_dropout", "resid_pdrop"},
    {"hidden_dropout", "residual_dropout"},
    {"hidden_dropout", "hidden_dropout_prob"},
    {"hidden_dropout", "emb_dropout_prob"},
    {"hidden_dropout", "dropout_rate"},
    {"hidden_dropout", "dropout"},
};

std::string_view common_key(std::string_view spelling) {
  for (const Spelling& row : kSpellings) {
    if (row.spelling == spelling) return row.key;
  }
  return spelling;
}

bool says(const Value& config, std::string_view key) {
  const std::string_view common = common_key(key);
  for (const Value::Entry& entry : config.entries()) {
    if (common_key(entry.first) == common) return true;
  }
  return false;
}

void add_missing(Value& config, const Value& defaults) {
  const Value given = config;
  for (const Value::Entry& entry : defaults.entries()) {
    const Value* inner = given.find(entry.first);
    if (inner != nullptr && inner->is_map() && entry.second.is_map()) {
      Value merged = *inner;
      add_missing(merged, entry.second);
      config.set(entry.first, merged);
    } else if (!says(given, entry.first)) {
      config.set(entry.first, entry.second);
    }
  }
}

}  // namespace

std::span<const Spelling> config_spellings() { return kSpellings; }

}  // namespace census

Value with_class_defaults(const Value& config, const Value& defaults) {
  Value result = config;
  if (const Value* rows = defaults.find("defaults")) census::add_missing(result, *rows);
  return result;
}

}  // namespace membill
