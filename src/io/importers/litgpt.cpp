// litgpt's YAML and flags (litgpt finetune_lora, finetune_full, pretrain).
#include <algorithm>

#include "base/text.h"
#include "io/importers/formats.h"

namespace membill::io {
namespace {

constexpr KeyRow kRows[] = {
    {"checkpoint_dir", "", "model"},
    {"model_name", "", "model of a pre-training"},
    {"precision", "bf16-mixed", "weights, autocast"},
    {"quantize", "", "4-bit or 8-bit base"},
    {"devices", "1", "cards of a machine"},
    {"num_nodes", "1", "machines"},
    {"lora_r", "", "rank of the adapters"},
    {"lora_alpha", "16", "scale of the adapters"},
    {"lora_dropout", "0.05", "dropout before the adapters"},
    {"lora_query", "true", "the query weights get an adapter"},
    {"lora_key", "false", "the key weights get an adapter"},
    {"lora_value", "true", "the value weights get an adapter"},
    {"lora_projection", "false", "the output projection gets an adapter"},
    {"lora_mlp", "false", "the MLP's linears get an adapter"},
    {"lora_head", "false", "the head gets an adapter"},
    {"train.micro_batch_size", "1", "micro-batch"},
    {"train.global_batch_size", "16", "sequences of a step on all cards"},
    {"train.max_seq_length", "", "tokens of a sequence; absent: as long as the data"},
    {"train.max_norm", "", "gradients are clipped by norm"},
    {"eval.interval", "", "whether the job evaluates"},
    {"optimizer", "AdamW", "optimizer"},
    {"optimizer.class_path", "", "optimizer"},
};
constexpr std::string_view kHarmless =
    "out_dir data* train* eval* logger_name seed access_token resume initial_checkpoint_dir tokenizer_dir "
    "model_config* ops* "
    "optimizer.init_args* log log.*";
constexpr std::string_view kSource = "Lightning-AI/litgpt: litgpt/finetune/lora.py, full.py, litgpt/args.py";

bool is_lora(const JobSource& source, const KeyReader& reader) {
  for (const std::string& word : source.launch.program) {
    if (word.find("full") != std::string::npos || word.find("pretrain") != std::string::npos) return false;
    if (word.find("lora") != std::string::npos) return true;
  }
  return reader.map().find("lora_r") != nullptr;
}

struct Switches {
  bool query = false, key = false, value = false, projection = false, mlp = false;
};

// Modules by the names of the checkpoint's own type, some of which join query, key and value as litgpt does.
std::vector<std::string> targets_of(const Switches& on, Draft& draft) {
  struct Joined {
    std::string_view type;
    const char *attention, *projection, *up, *down;
  };
  static constexpr Joined kJoined[] = {{"gpt_neox", "query_key_value", "dense", "dense_h_to_4h", "dense_4h_to_h"},
                                       {"falcon", "query_key_value", "dense", "dense_h_to_4h", "dense_4h_to_h"},
                                       {"phi3", "qkv_proj", "o_proj", "gate_up_proj", "down_proj"}};
  std::vector<std::pair<bool, const char*>> names{
      {on.query, "q_proj"},  {on.key, "k_proj"},  {on.value, "v_proj"}, {on.projection, "o_proj"},
      {on.mlp, "gate_proj"}, {on.mlp, "up_proj"}, {on.mlp, "down_proj"}};
  for (const Joined& joined : kJoined) {
    if (joined.type != find_model(draft).model_type) continue;
    names = {{on.query || on.key || on.value, joined.attention},
             {on.projection, joined.projection},
             {on.mlp, joined.up},
             {on.mlp, joined.down}};
  }
  std::vector<std::string> targets;
  for (const auto& [is_on, name] : names) {
    if (is_on) targets.emplace_back(name);
  }
  return targets;
}

void read_lora(KeyReader& reader, Draft& draft) {
  LoraArguments lora;
  lora.rank = reader.count("lora_r", 1).value_or(8);
  lora.alpha = reader.count("lora_alpha");
  lora.dropout = reader.real("lora_dropout");
  const bool query = reader.flag("lora_query"), key = reader.flag("lora_key"), value = reader.flag("lora_value");
  const bool projection = reader.flag("lora_projection"), mlp = reader.flag("lora_mlp"),
             head = reader.flag("lora_head");
  if (query && key && value && projection && mlp) {
    lora.targets = {"all-linear"};
  } else if (!(query && value && !key && !projection &&
               !mlp)) {  // query and value alone are PEFT's default of most models
    lora.targets =
        targets_of({.query = query, .key = key, .value = value, .projection = projection, .mlp = mlp}, draft);
  }
  if (head) draft.warnings.push_back("the adapter of the head (lora_head) is not billed");
  set_lora(lora, draft);
  draft.assume("the joined adapter of query, key and value is billed as one for each");
  draft.set("adapter.dtype", Value::of(draft.load_dtype));
}

void read_precision(KeyReader& reader, Draft& draft) {
  const std::string precision = to_lower(reader.text("precision").value_or("bf16-mixed"));
  const bool mixed = precision.ends_with("-mixed");
  draft.own_precision = true;
  draft.load_dtype = mixed ? "fp32" : dtype_word(precision);
  if (draft.load_dtype.empty()) {
    reader.problem("precision", "has the unknown value " + quoted(precision),
                   "bf16-true, bf16-mixed, 16-true, 16-mixed or 32-true");
    draft.load_dtype = "bf16";
  }
  draft.set("weights", Value::of(draft.load_dtype));
  const std::string plain = draft.load_dtype == "fp32" ? "fp32" : "pure-" + draft.load_dtype;
  draft.set("precision", Value::of(!mixed ? plain : precision.starts_with("bf16") ? "amp-bf16" : "amp-fp16"));
  const std::string quantize = to_lower(reader.text("quantize").value_or(""));
  if (quantize.empty()) return;
  const std::string name = quantize.substr(quantize.find('.') == std::string::npos ? 0 : quantize.find('.') + 1);
  if (name.starts_with("nf4") || name.starts_with("fp4"))
    return set_bits(4, name.substr(0, 3), name.ends_with("dq"), false, draft);
  if (name.starts_with("int8")) return set_bits(8, "", false, false, draft);
  reader.problem("quantize", "has the unknown value " + quoted(quantize),
                 "bnb.nf4, bnb.nf4-dq, bnb.fp4, bnb.int8-training");
}

// pretrain.py has other defaults than the fine-tunings: 4 rows of 512, gradients clipped, a fused step.
bool is_pretraining(const JobSource& source) {
  const std::vector<std::string>& words = source.launch.program;
  return std::any_of(words.begin(), words.end(),
                     [](const std::string& word) { return word.find("pretrain") != std::string::npos; }) ||
         (source.keys.find("model_name") != nullptr && source.keys.find("checkpoint_dir") == nullptr);
}

void read_batch(KeyReader& reader, bool pretraining, Draft& draft) {
  const auto count = [&](const char* key, std::int64_t otherwise) {
    return reader.is_given(key) || !pretraining ? reader.count(key, 1).value_or(otherwise) : otherwise;
  };
  const std::int64_t micro = count("train.micro_batch_size", pretraining ? 4 : 1);
  const std::int64_t whole = count("train.global_batch_size", pretraining ? 512 : 16);
  const std::int64_t world = world_size(draft).value_or(1);
  draft.set("batch", std::optional(micro));
  draft.set("accumulate", std::optional(std::max<std::int64_t>(1, whole / std::max<std::int64_t>(1, world) / micro)));
  if (const auto length = reader.count("train.max_seq_length", 1)) {
    draft.set("seq", length);
  } else if (const std::int64_t positions = find_model(draft).max_positions; pretraining && positions > 0) {
    draft.set("seq", std::optional(positions));  // the model's block size
    draft.assume("train.max_seq_length is not given: the model's own " + std::to_string(positions) + " tokens");
  } else {
    draft.assume("train.max_seq_length does not cut: 2048 tokens taken, --seq says it");
  }
  draft.set("clip", Value::of(pretraining || reader.is_given("train.max_norm")));
}

void read_cards(KeyReader& reader, bool pretraining, Draft& draft) {
  const std::optional<std::string> devices = reader.text("devices");
  const std::int64_t nodes = reader.count("num_nodes", 1).value_or(1);
  draft.nodes = nodes;
  if (devices != "auto") {
    const std::int64_t count = reader.count("devices", 1).value_or(1);
    if (count < 1'000'000 && nodes < 1'000'000) draft.processes = count * nodes;
  }
  const bool many = world_size(draft).value_or(1) > 1;
  draft.set("engine", Value::of(many ? "fsdp" : "torch"));
  const bool checkpoints = many && !pretraining;  // the FSDP strategy's own policy
  draft.set("checkpointing", Value::of(checkpoints ? "full" : "none"));
  const bool hybrid = pretraining && nodes > 1;  // a copy on each machine
  if (many) draft.set("sharding.fsdp", Value::of(hybrid ? "hybrid_shard" : "full_shard"));
}

int claim(const JobSource& source) {
  if (!source.launch.program.empty() && source.launch.program.front() == "litgpt") return 100;
  const bool dir = source.keys.find("checkpoint_dir") != nullptr || source.keys.find("model_name") != nullptr;
  const Value* train = source.keys.find("train");
  return dir && train != nullptr && train->is_map() &&
                 count_keys(*train, "micro_batch_size global_batch_size lr_warmup_steps save_interval") > 0
             ? 100
             : 0;
}

void read(const JobSource& source, Draft& draft) {
  KeyReader reader(source.keys, source.file, {litgpt_table()}, draft.problems);
  draft.model = reader.text("checkpoint_dir");
  draft.model_key = "checkpoint_dir";
  if (!draft.model) draft.model = reader.text("model_name");
  draft.set("implementation", Value::of("litgpt"));
  draft.set("loop", Value::of("plain"));
  draft.set("lengths", Value::of("varied"));
  draft.set("keep_outputs", Value::of(true));  // the loop's `logits` live until the next forward
  read_precision(reader, draft);
  draft.set("method", Value::of("full"));
  if (is_lora(source, reader)) read_lora(reader, draft);
  const bool pretraining = is_pretraining(source);
  read_cards(reader, pretraining, draft);
  if (pretraining) draft.set("stage", Value::of("pretrain"));
  read_batch(reader, pretraining, draft);
  const Value* optimizer = reader.given("optimizer");
  std::string name = optimizer != nullptr && optimizer->is_map() ? reader.text("optimizer.class_path").value_or("AdamW")
                                                                 : reader.text("optimizer").value_or("AdamW");
  set_optimizer(name, draft);
  if (pretraining && plan_text(draft, "optimizer") == "adamw") draft.set("optimizer_impl", Value::of("fused"));
  reader.use("eval.interval");
  draft.add_records(reader);
}

}  // namespace

KeyTable litgpt_table() { return {kRows, kHarmless, kSource}; }

Importer litgpt_importer() { return {"litgpt", "litgpt's YAML and flags", kSource, claim, read}; }

}  // namespace membill::io
