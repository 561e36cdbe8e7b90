// PEFT's adapter_config.json: the adapter of a job, not its batch or precision.
#include "base/text.h"
#include "io/importers/formats.h"

namespace membill::io {
namespace {

constexpr KeyRow kRows[] = {
    {"base_model_name_or_path", "", "model"},
    {"peft_type", "LORA", "which adapters"},
    {"r", "8", "rank of the adapters"},
    {"lora_alpha", "8", "scale of the adapters"},
    {"lora_dropout", "0.0", "dropout before the adapters"},
    {"vera_dropout", "0.0", "dropout before the adapters", {}, "src/peft/tuners/vera/config.py"},
    {"target_modules", "", "modules that get an adapter"},
    {"target_parameters", "", "parameters that get an adapter"},
    {"exclude_modules", "", "modules that get none although a target matches"},
    {"layers_to_transform", "", "layers that get adapters"},
    {"rank_pattern", "", "ranks of modules that have others"},
    {"alpha_pattern", "", "scales of modules that have others"},
    {"modules_to_save", "", "modules that train whole"},
    {"task_type", "CAUSAL_LM", "class of the model"},
    {"bias", "none", "biases that train"},
    {"lora_bias", "false", "LoRA's second matrix has a bias"},
    {"use_dora", "false", "DoRA"},
    {"trainable_token_indices", "", "rows of the embedding that train"},
    {"layer_replication", "", "layers that are run again as others"},
    {"use_qalora", "false", "QA-LoRA"},
    {"init_r", "12", "AdaLoRA's first rank"},
    {"num_virtual_tokens", "", "tokens of prompt, prefix and p-tuning"},
    {"prefix_projection", "false", "an MLP makes the prefix"},
    {"encoder_hidden_size", "", "width of the encoder of virtual tokens"},
    {"encoder_reparameterization_type", "MLP", "encoder of p-tuning"},
    {"alpha", "8", "scale of LoHa and LoKr", {}, "src/peft/tuners/loha/config.py"},
    {"rank_dropout", "0.0", "rows of the adapter's matrix are dropped", {}, "src/peft/tuners/loha/config.py"},
    {"decompose_both", "false", "LoKr: both factors may be low-rank", {}, "src/peft/tuners/lokr/config.py"},
    {"decompose_factor", "-1", "LoKr: length of the smaller factor", {}, "src/peft/tuners/lokr/config.py"},
    {"oft_block_size", "32", "width of OFT's blocks", {}, "src/peft/tuners/oft/config.py"},
    {"coft", "false", "OFT whose angles are kept small", {}, "src/peft/tuners/oft/config.py"},
    {"block_share", "false", "OFT: one block for all", {}, "src/peft/tuners/oft/config.py"},
    {"use_cayley_neumann", "true", "OFT: blocks by a series", {}, "src/peft/tuners/oft/config.py"},
    {"num_cayley_neumann_terms", "5", "terms of that series", {}, "src/peft/tuners/oft/config.py"},
    {"init_lora_weights", "true", "how the adapters begin"},
};
constexpr std::string_view kHarmless =
    "inference_mode fan_in_fan_out layers_pattern "
    "megatron_* loftq_config* eva_config* corda_config* use_rslora revision auto_mapping* "
    "runtime_config* qalora_group_size peft_version ensure_weight_tying "
    "feedforward_modules token_dim num_layers num_attention_heads num_transformer_submodules prompt_tuning_* "
    "tokenizer_* encoder_dropout encoder_num_layers target_r tinit "
    "tfinal deltaT beta1 beta2 init_weights init_ia3_weights "
    "orth_reg_weight total_step d_initial projection_prng_key save_projection alora_* arrow_config "
    "module_dropout rank_dropout_scale use_effective_conv2d eps velora_config use_bdlora kasa_config monteclora_config "
    "lora_ga_config";
constexpr std::string_view kSource = "huggingface/peft 5d602fd: src/peft/tuners/lora/config.py";

struct Type {
  std::string_view name, method;
};
constexpr Type kTypes[] = {{"lora", "lora"},
                           {"adalora", "adalora"},
                           {"vera", "vera"},
                           {"ia3", "ia3"},
                           {"loha", "loha"},
                           {"lokr", "lokr"},
                           {"oft", "oft"},
                           {"prompt-tuning", "prompt"},
                           {"prefix-tuning", "prefix"},
                           {"p-tuning", "ptuning"}};

int claim(const JobSource& source) { return !source.arguments && source.keys.find("peft_type") != nullptr ? 100 : 0; }

// What changes the adapters and is not billed.
void refuse_others(KeyReader& reader) {
  if (const std::string bias = reader.text("bias").value_or("none"); bias != "none")
    reader.problem("bias", quoted(bias) + " is not billed: biases of the base that train", "none");
  const Value* replicated = reader.given("layer_replication");
  if (replicated != nullptr && !(replicated->is_list() && replicated->items().empty()))
    reader.problem("layer_replication", "is not billed", "null");
  if (reader.flag("use_qalora")) reader.problem("use_qalora", "QA-LoRA is not billed", "false");
  if (reader.real("rank_dropout").value_or(0) > 0) reader.problem("rank_dropout", "is not billed", "0.0");
}

void read_rotation(KeyReader& reader, Draft& draft) {
  for (const char* key : {"coft", "block_share"})
    if (reader.flag(key)) reader.problem(key, "is not billed", "false");
  const bool series = reader.maybe_flag("use_cayley_neumann").value_or(true);
  if (!series) reader.problem("use_cayley_neumann", "blocks by a linear solve are not billed", "true");
  if (series && reader.count("num_cayley_neumann_terms", 0).value_or(5) != 5)
    reader.problem("num_cayley_neumann_terms", "other than five terms are not billed", "5");
  draft.set("adapter.block_size", reader.count("oft_block_size", 0));
}

void read_kronecker(KeyReader& reader, Draft& draft) {
  const std::optional<double> factor = reader.real("decompose_factor");
  if (factor && *factor >= 1) draft.set("adapter.decompose_factor", Value::of(static_cast<std::int64_t>(*factor)));
  if (reader.flag("decompose_both")) draft.set("adapter.decompose_both", Value::of(true));
}

// A list of token ids of the embedding, or a map that names it.
void read_trained_rows(KeyReader& reader, Draft& draft) {
  const Value* given = reader.given("trainable_token_indices");
  if (given == nullptr) return;
  if (given->is_map() && given->entries().size() == 1) given = &given->entries().front().second;
  if (!given->is_list())
    return reader.problem("trainable_token_indices", "of several modules is not billed", "a list of token ids");
  draft.set("adapter.trainable_tokens", Value::of(static_cast<std::int64_t>(given->items().size())));
}

// Those that look at weights or data run before the first step; what is left is LoRA.
void read_beginning(KeyReader& reader, Draft& draft) {
  const std::string beginning = to_lower(reader.text("init_lora_weights").value_or("true"));
  const auto tell = [&](const std::string& what) {
    draft.assume("init_lora_weights " + beginning + ": the steps are LoRA's; " + what + ", which is not billed");
  };
  if (beginning.starts_with("pissa"))
    tell("before them each target's weight is decomposed in fp32 (SVD), one at a time");
  if (beginning == "olora") tell("before them each target's weight is decomposed in fp32 (QR), one at a time");
  if (beginning == "loftq") tell("before them each target's weight is quantised and decomposed, one at a time");
  if (beginning == "corda" || beginning == "eva" || beginning == "lora_ga")
    tell("before them the model runs over samples of the data");
}

// A list of names, or one regular expression.
std::vector<std::string> names_or_pattern(KeyReader& reader, std::string_view key) {
  const Value* given = reader.given(key);
  if (given != nullptr && given->is_string()) return {given->as_string()};
  return reader.texts(key);
}

void read_modules(KeyReader& reader, const std::string& method, Draft& draft) {
  LoraArguments lora;
  constexpr std::int64_t kVera = 256;  // tuners/vera/config.py
  const bool vera = method == "vera";
  lora.rank = vera && !reader.is_given("r") ? kVera : reader.count("r", method == "oft" ? 0 : 1);
  if (lora.rank == 0) lora.rank.reset();  // OFT: the blocks' size says their number
  const bool scaled = method == "loha" || method == "lokr";
  if (method != "oft") lora.alpha = reader.count(scaled ? "alpha" : "lora_alpha");
  lora.dropout = reader.real(vera ? "vera_dropout" : "lora_dropout");
  lora.targets = names_or_pattern(reader, "target_modules");
  for (const std::string& parameter : reader.texts("target_parameters")) lora.targets.push_back(parameter);
  lora.modules_to_save = reader.texts("modules_to_save");
  lora.dora = reader.flag("use_dora");
  lora.exclude = names_or_pattern(reader, "exclude_modules");
  if (const Value* layers = reader.given("layers_to_transform")) lora.layers = *layers;
  if (method != "adalora") lora.ranks = read_pattern(reader, "rank_pattern");
  (void)read_pattern(reader, "alpha_pattern");
  set_lora(lora, draft);
  if (reader.flag("lora_bias")) draft.set("adapter.lora_bias", Value::of(true));
  if (method == "oft") read_rotation(reader, draft);
  if (method == "lokr") read_kronecker(reader, draft);
  if (method == "lora") read_trained_rows(reader, draft), read_beginning(reader, draft);
  if (method == "adalora") draft.set("adapter.init_rank", reader.count("init_r", 1));
}

void read_tokens(KeyReader& reader, const std::string& method, Draft& draft) {
  draft.set("adapter.virtual_tokens", reader.count("num_virtual_tokens", 1));
  const bool encoded = method == "ptuning" || reader.flag("prefix_projection");
  if (encoded && method != "prompt") draft.set("adapter.encoder_hidden", reader.count("encoder_hidden_size", 1));
  if (method == "prefix") draft.set("adapter.prefix_projection", Value::of(encoded));
  if (method == "ptuning" && reader.text("encoder_reparameterization_type").value_or("MLP") != "MLP")
    reader.problem("encoder_reparameterization_type", "an LSTM is not billed", "MLP");
}

void read(const JobSource& source, Draft& draft) {
  KeyReader reader(source.keys, source.file, {peft_table()}, draft.problems);
  draft.model = reader.text("base_model_name_or_path");
  draft.model_key = "base_model_name_or_path";
  draft.bf16 = true;
  draft.load_dtype = "bf16";
  const std::string type = to_kebab(reader.text("peft_type").value_or("LORA"));
  std::string method;
  for (const Type& known : kTypes) {
    if (known.name == type) method = known.method;
  }
  if (method.empty())
    reader.problem("peft_type", quoted(type) + " is not billed",
                   "LORA, ADALORA, VERA, IA3, LOHA, LOKR, OFT, PROMPT_TUNING, PREFIX_TUNING, P_TUNING");
  const std::string task = to_lower(reader.text("task_type").value_or("causal_lm"));
  if (task == "seq_cls") draft.set("stage", Value::of("classification"));
  refuse_others(reader);
  method.starts_with("p") ? read_tokens(reader, method, draft) : read_modules(reader, method, draft);
  if (!method.empty() && method != "lora") draft.set("method", Value::of(method));
  draft.assume(
      "an adapter's file says neither batch nor length nor precision nor optimizer: membill's defaults are taken");
  draft.add_records(reader);
}

}  // namespace

KeyTable peft_table() { return {kRows, kHarmless, kSource}; }

Importer peft_importer() { return {"peft", "PEFT's adapter_config.json", kSource, claim, read}; }

}  // namespace membill::io
