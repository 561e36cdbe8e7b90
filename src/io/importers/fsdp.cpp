#include "io/importers/fsdp.h"

#include <array>
#include <deque>

#include "base/text.h"
#include "io/importers/formats.h"
#include "io/json_reader.h"

namespace membill::io {
namespace {

constexpr KeyRow kRows[] = {
    {"version", "", "FSDP1 (flat units) or FSDP2 (each parameter)"},
    {"sharding_strategy", "", "what is sharded"},
    {"reshard_after_forward", "", "FSDP2: gathered weights are freed after the forward; FSDP1: the strategy"},
    {"offload_params", "false", "weights, gradients and states live on the host"},
    {"cpu_offload", "", "", "offload_params"},
    {"auto_wrap_policy", "", "which modules become units"},
    {"transformer_layer_cls_to_wrap", "", "the class of a unit"},
    {"min_num_params", "", "the least size of a unit"},
    {"backward_prefetch", "", "when the next unit is gathered in backward"},
    {"backward_prefetch_policy", "", "", "backward_prefetch"},
    {"forward_prefetch", "false", "the next unit is gathered early in forward"},
    {"limit_all_gathers", "true", "at most two units in flight"},
    {"use_orig_params", "", "parameters keep their own shapes"},
    {"activation_checkpointing", "false", "layers are checkpointed by the wrapper"},
    {"state_dict_type", "", "whether a checkpoint holds the whole state"},
    {"cpu_offload_pin_memory", "true", "offloaded shards are page-locked"},
    {"cpu_ram_efficient_loading", "false", "one rank of a node loads the weights"},
    {"mixed_precision_policy", "", "dtype of gathered weights and reduced gradients"},
};
// Of a file that holds the pair of arguments.
constexpr KeyRow kPair[] = {{"fsdp", "", "FSDP's strategy"},
                            {"fsdp_config", "", "FSDP's options"},
                            {"fsdp_min_num_params", "", "the least size of a unit"},
                            {"fsdp_transformer_layer_cls_to_wrap", "", "the class of a unit"}};
constexpr std::string_view kHarmless =
    "sync_module_states final_state_dict_type ignored_modules xla "
    "xla_fsdp_v2 "
    "xla_fsdp_settings xla_fsdp_grad_ckpt cpu_ram_efficient_loading_ transformer_auto_wrap_policy";
constexpr std::string_view kSource =
    "huggingface/accelerate utils/dataclasses.py, huggingface/transformers training_args.py";

// The rows and words again with "fsdp_" before each key.
struct BothSpellings {
  std::deque<std::string> names;
  std::vector<KeyRow> rows{std::begin(kRows), std::end(kRows)};
  std::string harmless{kHarmless};
  BothSpellings() {
    for (const KeyRow& row : kRows) {
      const std::string_view main = row.same_as.empty() ? row.key : row.same_as;
      names.push_back("fsdp_" + std::string(row.key));
      rows.push_back({names.back(), "", "", main});
    }
    for (const std::string& word : split(kHarmless, ' ')) harmless += " fsdp_" + word;
  }
};

constexpr std::array<std::string_view, 6> kNumbered{"",         "full_shard",   "shard_grad_op",
                                                    "no_shard", "hybrid_shard", "hybrid_shard"};

// The strategy as the plan spells it; empty with a problem when it is none.
std::string strategy_word(const std::string& text, KeyReader& reader, std::string_view key) {
  std::string word = to_lower(text);
  if (word.size() == 1 && word[0] >= '1' && word[0] <= '5')
    return std::string(kNumbered[static_cast<std::size_t>(word[0] - '0')]);
  for (const char* known : {"full_shard", "shard_grad_op", "no_shard", "hybrid_shard"}) {
    if (word == known) return word;
  }
  if (word == "hybrid_shard_zero2" || word == "_hybrid_shard_zero2") return "hybrid_shard";
  reader.problem(key, "has the unknown value " + quoted(text), "FULL_SHARD, SHARD_GRAD_OP, NO_SHARD or HYBRID_SHARD");
  return "full_shard";
}

std::string strategy_of(KeyReader& reader, const FsdpSurroundings& around, bool second) {
  if (const auto given = reader.text("sharding_strategy"); given && around.strategy.empty())
    return strategy_word(*given, reader, "sharding_strategy");
  const std::optional<std::string> reshard = reader.text("reshard_after_forward");
  if (reshard && (second || to_lower(*reshard) == "true" || to_lower(*reshard) == "false"))
    return to_lower(*reshard) == "false" ? "shard_grad_op" : around.strategy.empty() ? "full_shard" : around.strategy;
  if (reshard && around.strategy.empty()) return strategy_word(*reshard, reader, "reshard_after_forward");
  return around.strategy.empty() ? "full_shard" : around.strategy;
}

std::string wrap_of(KeyReader& reader, const FsdpSurroundings& around) {
  const std::string policy = to_lower(reader.text("auto_wrap_policy").value_or(""));
  const bool sized = reader.count("min_num_params").value_or(0) > 0;
  if (policy == "no_wrap") return "none";
  if (!policy.empty() || sized || reader.is_given("transformer_layer_cls_to_wrap")) return "block";
  return around.wrap ? "block" : "none";
}

void read_prefetch(KeyReader& reader, Draft& draft) {
  if (const auto prefetch = reader.text("backward_prefetch")) {
    const std::string word = to_lower(*prefetch);
    const bool known = word == "backward_pre" || word == "backward_post";
    draft.set("sharding.backward_prefetch", Value::of(known ? word : std::string("none")));
  }
  draft.set("sharding.forward_prefetch", Value::of(reader.flag("forward_prefetch")));
  draft.set("sharding.limit_all_gathers", Value::of(reader.flag("limit_all_gathers")));
  if (reader.flag("cpu_ram_efficient_loading")) draft.set("sharding.cpu_ram_efficient_loading", Value::of(true));
  if (const auto original = reader.maybe_flag("use_orig_params"))
    draft.set("sharding.use_orig_params", Value::of(*original));
}

// ms-swift ships files with both arguments of the Trainer in them.
bool holds_arguments(const Value& keys) {
  const Value* config = keys.find("fsdp_config");
  return keys.find("fsdp") != nullptr && config != nullptr && config->is_map() && keys.entries().size() <= 6;
}

int claim(const JobSource& source) {
  if (source.arguments) return 0;
  if (holds_arguments(source.keys)) return 60;
  const int keys = count_keys(source.keys,
                              "transformer_layer_cls_to_wrap fsdp_transformer_layer_cls_to_wrap fsdp_sharding_strategy "
                              "fsdp_auto_wrap_policy cpu_ram_efficient_loading fsdp_offload_params backward_prefetch "
                              "fsdp_backward_prefetch min_num_params fsdp_min_num_params use_orig_params");
  return keys > 0 && static_cast<std::size_t>(keys) * 3 >= source.keys.entries().size() ? 60 : 0;
}

void read(const JobSource& source, Draft& draft) {
  draft.bf16 = true;
  draft.fsdp_upcasts = true;
  draft.assume("an FSDP file alone: full shard with bf16 mixed precision");
  if (!holds_arguments(source.keys)) return read_fsdp_part(source.keys, source.file, {}, draft);
  KeyReader reader(source.keys, source.file, {{kPair, "_*", kSource}}, draft.problems);
  read_fsdp_arguments(reader, draft);
  draft.add_records(reader);
}

}  // namespace

void read_fsdp_part(const Value& options, const std::string& file, const FsdpSurroundings& around, Draft& draft) {
  if (!options.is_map()) return draft.problems.add({file, around.prefix, "FSDP's options are a map of keys", ""});
  KeyReader reader(options, file, {fsdp_table()}, draft.problems, around.prefix);
  const std::int64_t version = reader.count("version", 1).value_or(around.version);
  const bool second = version >= 2;
  draft.set("engine", Value::of(second ? "fsdp2" : "fsdp"));
  const std::string strategy = strategy_of(reader, around, second);
  draft.set("sharding.fsdp", Value::of(strategy));
  if (strategy == "hybrid_shard" && draft.nodes.value_or(1) > 1 && world_size(draft)) {
    draft.set("sharding.shard_group", std::optional(*world_size(draft) / *draft.nodes));
  }
  const bool offload = reader.flag("offload_params") || around.offload;
  draft.set("sharding.offload", Value::of(offload ? "optimizer+param" : "none"));
  if (offload) draft.set("sharding.pin_memory", Value::of(reader.flag("cpu_offload_pin_memory")));
  draft.set("sharding.wrap", Value::of(wrap_of(reader, around)));
  // accelerate utils/dataclasses.py set_state_dict_type
  const std::string saved = reader.text("state_dict_type").value_or(second ? "SHARDED_STATE_DICT" : "FULL_STATE_DICT");
  draft.saves_shards = to_lower(saved).find("shard") != std::string::npos;
  read_prefetch(reader, draft);
  if (reader.flag("activation_checkpointing")) {
    draft.set("checkpointing", Value::of("full"));
    draft.set("checkpointing.reentrant", Value::of(false));
  }
  if (const std::string policy = dtype_word(reader.text("mixed_precision_policy").value_or(""));
      policy == "bf16" || policy == "fp16") {
    (policy == "bf16" ? draft.bf16 : draft.fp16) = true;
  }
  for (const char* key : {"sharding.param_dtype", "sharding.reduce_dtype"}) {
    if (draft.bf16 || draft.fp16) draft.set(key, Value::of(draft.bf16 ? "bf16" : "fp16"));
  }
  draft.add_records(reader);
}

namespace {

// The words of --fsdp; false when they switch it off.
bool read_fsdp_words(const std::vector<std::string>& words, FsdpSurroundings& around) {
  bool on = false;
  for (const std::string& word : words) {
    const std::string name = to_lower(word);
    if (name == "false" || name == "no" || name == "none") continue;
    on = true;
    if (name == "auto_wrap") around.wrap = true;
    if (name == "offload") around.offload = true;
    if (name == "true") around.version = 2, around.wrap = true;
    if (name.find("shard") != std::string::npos) around.strategy = name.starts_with("hybrid") ? "hybrid_shard" : name;
  }
  return on;
}

// ms-swift's --fsdp takes a file that holds both arguments, or the name of one that it ships (swift/config/fsdp2.json).
std::optional<Value> pair_in_file(const Value* argument, Draft& draft) {
  if (argument == nullptr || !argument->is_string()) return std::nullopt;
  const std::string& text = argument->as_string();
  if (text == "fsdp2")
    return Value::make_map({{"fsdp", Value::of("full_shard auto_wrap")},
                            {"fsdp_config", Value::make_map({{"fsdp_version", Value::of(2)},
                                                             {"state_dict_type", Value::of("SHARDED_STATE_DICT")},
                                                             {"activation_checkpointing", Value::of(true)}})}});
  return text.ends_with(".json") ? read_part(text, draft, "fsdp") : std::nullopt;
}

// The map of options, wherever it stands.
Value options_of(const Value* config, FsdpSurroundings& around, Draft& draft) {
  if (config != nullptr && config->is_map()) {
    around.prefix = "fsdp_config.";
    return *config;
  }
  if (config == nullptr || !config->is_string()) return Value::make_map();
  const std::string& text = config->as_string();
  const std::optional<Value> part =
      text.starts_with("{") ? parse_json(text, draft.file) : read_part(text, draft, "fsdp_config");
  return part.value_or(Value::make_map());
}

bool is_on(const Value* argument, KeyReader& reader, FsdpSurroundings& around) {
  if (argument != nullptr && argument->is_bool()) return argument->as_bool() && read_fsdp_words({"true"}, around);
  return read_fsdp_words(reader.texts("fsdp"), around);
}

}  // namespace

void read_fsdp_arguments(KeyReader& reader, Draft& draft) {
  FsdpSurroundings around;
  around.wrap = false;
  const Value* given = reader.given("fsdp");
  const Value* config = reader.given("fsdp_config");
  const bool wraps =
      reader.is_given("fsdp_transformer_layer_cls_to_wrap") || reader.count("fsdp_min_num_params").value_or(0) > 0;
  const std::optional<Value> pair = pair_in_file(given, draft);
  if (pair && pair->is_map()) {
    const Value* words = pair->find("fsdp");
    around.version = 2;
    (void)read_fsdp_words(words != nullptr && words->is_string() ? split(words->as_string(), ' ')
                                                                 : std::vector<std::string>{"full_shard", "auto_wrap"},
                          around);
    config = pair->find("fsdp_config");
  } else if (!is_on(given, reader, around)) {
    return;
  }
  if (plan_text(draft, "software.transformers").starts_with("5.")) around.version = 2, around.wrap = true;
  around.wrap = around.wrap || wraps;
  draft.fsdp_upcasts = true;
  read_fsdp_part(options_of(config, around, draft), draft.file, around, draft);
}

KeyTable fsdp_table() {
  static const BothSpellings kBoth;
  return {kBoth.rows, kBoth.harmless, kSource};
}

Importer fsdp_importer() { return {"fsdp", "FSDP's JSON (fsdp_config)", kSource, claim, read}; }

}  // namespace membill::io
