// Megatron-LM's flags: the model is described by them too.
#include <algorithm>
#include <vector>

#include "base/text.h"
#include "io/importers/formats.h"
#include "io/importers/megatron_deepspeed.h"
#include "io/importers/megatron_model.h"
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
    {"quick_geglu", "false", "gated MLP"},
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
    {"moe_layer_freq", "", "which layers have experts"},
    {"moe_router_enable_expert_bias", "false", "the router has a bias of each expert"},
    {"multi_latent_attention", "false", "latent attention"},
    {"q_lora_rank", "", "width of the query's latent"},
    {"kv_lora_rank", "32", "width of the latent of keys and values"},
    {"qk_head_dim", "128", "width of a head of query and key without positions"},
    {"qk_pos_emb_head_dim", "64", "width of its part with positions"},
    {"v_head_dim", "128", "width of a head of values"},
    {"is_hybrid_model", "false", "Mamba layers"},
    {"hybrid_layer_pattern", "", "Mamba layers"},
    {"hybrid_override_pattern", "", "Mamba layers"},
    {"mamba_num_heads", "", "Mamba layers"},
    {"encoder_num_layers", "", "layers of an encoder beside the decoder"},
    {"attention_dropout", "0.1", "dropout of the attention"},
    {"hidden_dropout", "0.1", "dropout of the residual stream"},
    {"tokenizer_type", "", "whose vocabulary"},
};

constexpr std::string_view kSource = "NVIDIA/Megatron-LM: megatron/training/arguments.py";

int claim(const JobSource& source) {
  const int own = count_keys(source.keys,
                             "num_layers hidden_size num_attention_heads micro_batch_size global_batch_size "
                             "tensor_model_parallel_size pipeline_model_parallel_size seq_length");
  return own >= 3 ? 85 : 0;
}

void read(const JobSource& source, Draft& draft) {
  const bool deepspeed = runs_on_deepspeed(source);
  std::vector<KeyTable> tables{{kRows, "", kSource}, megatron_step_table()};
  if (deepspeed) tables.push_back(megatron_deepspeed_table());
  KeyReader reader(source.keys, source.file, tables, draft.problems);
  if (!draft.context.model) read_megatron_model(reader, draft);
  if (draft.context.model) take_megatron_dropout(reader, draft);
  draft.set("stage", Value::of("pretrain"));
  draft.set("method", Value::of("full"));
  read_megatron_step(reader, draft);
  if (deepspeed) read_megatron_deepspeed(reader, draft);
  const auto pad = reader.count("make_vocab_size_divisible_by", 1).value_or(128);
  if (pad < 1'000'000 && !reader.is_given("padded_vocab_size")) {
    const Value* tp = draft.plan.find("parallel.tp");
    draft.set("vocab_pad_to", std::optional(pad * std::min<std::int64_t>(tp == nullptr ? 1 : tp->as_int(), 1'000'000)));
  }
  draft.add_records(reader);
}

}  // namespace

KeyTable megatron_table() { return {kRows, "", kSource}; }

Importer megatron_importer() { return {"megatron", "Megatron-LM's flags", kSource, claim, read}; }

}  // namespace membill::io
