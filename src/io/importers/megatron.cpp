// Megatron-LM's flags: the model is described by them too.
#include <algorithm>

#include "base/text.h"
#include "io/importers/formats.h"
#include "io/importers/megatron_step.h"

namespace membill::io {
namespace {

constexpr KeyRow kRows[] = {
    {"num_layers", "", "layers"},
    {"hidden_size", "", "hidden size"},
    {"ffn_hidden_size", "", "width of the MLP; absent: 4 x hidden, 8/3 x hidden with swiglu"},
    {"num_attention_heads", "", "attention heads"},
    {"kv_channels", "", "width of a head"},
    {"group_query_attention", "false", "key and value heads are fewer"},
    {"num_query_groups", "1", "key and value heads"},
    {"swiglu", "false", "gated MLP"},
    {"disable_bias_linear", "false", "linears have no biases"},
    {"add_qkv_bias", "false", "query, key and value have biases"},
    {"qk_layernorm", "false", "norms of query and key"},
    {"normalization", "LayerNorm", "norms"},
    {"untie_embeddings_and_output_weights", "false", "head and embedding are two tensors"},
    {"vocab_size", "", "rows of the embedding before padding"},
    {"padded_vocab_size", "", "rows of the embedding"},
    {"make_vocab_size_divisible_by", "128", "the vocabulary is padded to a multiple of this times tp"},
    {"max_position_embeddings", "", "learned positions"},
    {"position_embedding_type", "learned_absolute", "how positions enter"},
    {"use_rotary_position_embeddings", "false", "rotary positions"},
    {"num_experts", "", "experts of a layer"},
    {"moe_router_topk", "2", "experts of a token"},
    {"moe_ffn_hidden_size", "", "width of an expert"},
    {"moe_shared_expert_intermediate_size", "", "width of the shared experts"},
    {"attention_dropout", "0.1", "dropout of the attention"},
    {"hidden_dropout", "0.1", "dropout of the residual stream"},
    {"tokenizer_type", "", "whose vocabulary"},
};

constexpr std::string_view kSource = "NVIDIA/Megatron-LM: megatron/training/arguments.py";

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

Value llama_config(KeyReader& reader, std::int64_t hidden, std::int64_t width, std::int64_t rows, Draft& draft) {
  const std::int64_t heads = reader.count("num_attention_heads", 1).value_or(1);
  const bool grouped = reader.flag("group_query_attention");
  const std::optional<std::int64_t> experts = reader.count("num_experts", 1);
  const bool biased = reader.flag("add_qkv_bias"), normed = reader.flag("qk_layernorm");
  const std::optional<std::int64_t> shared = reader.count("moe_shared_expert_intermediate_size", 1);
  const char* sparse = shared ? "qwen2_moe" : normed ? "qwen3_moe" : "mixtral";
  const char* type = experts ? sparse : normed ? "qwen3" : biased ? "qwen2" : "llama";
  Value config = Value::make_map(
      {{"model_type", Value::of(type)},
       {"hidden_size", Value::of(hidden)},
       {"num_hidden_layers", Value::of(reader.count("num_layers", 1).value_or(1))},
       {"num_attention_heads", Value::of(heads)},
       {"num_key_value_heads", Value::of(grouped ? reader.count("num_query_groups", 1).value_or(1) : heads)},
       {"intermediate_size", Value::of(width)},
       {"vocab_size", Value::of(rows)}});
  config.set("tie_word_embeddings", Value::of(!reader.flag("untie_embeddings_and_output_weights")));
  if (const auto head = reader.count("kv_channels", 1)) config.set("head_dim", Value::of(*head));
  if (const auto positions = reader.count("max_position_embeddings", 1))
    config.set("max_position_embeddings", Value::of(*positions));
  if (!experts) return config;
  const std::int64_t expert = reader.count("moe_ffn_hidden_size", 1).value_or(width);
  const bool own_width = normed || shared;
  config.set(own_width ? "num_experts" : "num_local_experts", Value::of(*experts));
  if (shared) config.set("shared_expert_intermediate_size", Value::of(*shared));
  if (shared) config.set("qkv_bias", Value::of(biased));
  config.set("num_experts_per_tok", Value::of(reader.count("moe_router_topk", 1).value_or(2)));
  config.set(own_width ? "moe_intermediate_size" : "intermediate_size", Value::of(expert));
  draft.assume("the experts are billed as " +
               std::string(shared   ? "Qwen2's"
                           : normed ? "Qwen3's"
                                    : "Mixtral's") +
               " are built");
  return config;
}

void read_model(KeyReader& reader, Draft& draft) {
  for (const char* key : {"num_layers", "hidden_size", "num_attention_heads"}) {
    if (!reader.is_given(key))
      return reader.problem(key, "is missing", "membill needs the model's sizes, or MODEL beside the job");
  }
  const std::int64_t hidden = reader.count("hidden_size", 1).value_or(1);
  const bool gated = reader.flag("swiglu");
  if (hidden > (1LL << 40)) return reader.problem("hidden_size", "is too large");
  const std::int64_t usual = gated ? (hidden * 8 / 3 + 63) / 64 * 64 : hidden * 4;
  const std::int64_t width = reader.count("ffn_hidden_size", 1).value_or(usual);
  const std::int64_t rows = rows_of_vocabulary(reader, draft);
  const bool rms = reader.text("normalization") == "RMSNorm";
  const bool rotary = reader.flag("use_rotary_position_embeddings") || reader.text("position_embedding_type") == "rope";
  draft.config = gated || (rms && rotary) || reader.is_given("num_experts")
                     ? llama_config(reader, hidden, width, rows, draft)
                     : gpt_config(reader, hidden, width, rows);
  reader.use("disable_bias_linear");
}

int claim(const JobSource& source) {
  const int own = count_keys(source.keys,
                             "num_layers hidden_size num_attention_heads micro_batch_size global_batch_size "
                             "tensor_model_parallel_size pipeline_model_parallel_size seq_length");
  return own >= 3 ? 85 : 0;
}

void read(const JobSource& source, Draft& draft) {
  KeyReader reader(source.keys, source.file, {{kRows, "", kSource}, megatron_step_table()}, draft.problems);
  if (!draft.context.model) read_model(reader, draft);
  draft.set("stage", Value::of("pretrain"));
  draft.set("method", Value::of("full"));
  read_megatron_step(reader, draft);
  const auto pad = reader.count("make_vocab_size_divisible_by", 1).value_or(128);
  if (pad < 1'000'000 && !reader.is_given("padded_vocab_size")) {
    const Value* tp = draft.plan.find("parallel.tp");
    draft.set("vocab_pad_to", std::optional(pad * std::min<std::int64_t>(tp == nullptr ? 1 : tp->as_int(), 1'000'000)));
  }
  draft.add_records(reader);
}

}  // namespace

Importer megatron_importer() { return {"megatron", "Megatron-LM's flags", kSource, claim, read}; }

}  // namespace membill::io
