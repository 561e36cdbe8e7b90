// The end of an import: what several parts decide together.
#include <filesystem>
#include <numeric>
#include <system_error>

#include "base/text.h"
#include "io/importers/parts.h"
#include "io/model_source.h"
#include "membill/catalog.h"

namespace membill::io {
namespace {

namespace fs = std::filesystem;

bool is_there(const std::string& path) {
  std::error_code error;
  return !path.empty() && fs::exists(path, error);
}

std::optional<LoadedModel> try_load(const std::string& argument, const DataDirs& dirs) {
  try {
    return load_model(argument, dirs);
  } catch (const InputError&) {
    return std::nullopt;
  }
}

std::int64_t config_count(const LoadedModel& model, const char* key) {
  const Value* value = model.config.find(key);
  return value != nullptr && value->is_int() && value->as_int() > 0 ? value->as_int() : 0;
}

bool is_bitsandbytes(const StoredWeights& stored) {
  const Packing packing = stored.format ? weight_format(*stored.format).packing : Packing::none;
  return packing == Packing::bitsandbytes || packing == Packing::llm_int8;
}

void set_stored_weights(const StoredWeights& stored, Draft& draft) {
  // The checkpoint's own configuration goes before the arguments that say bitsandbytes too (transformers quantizers/auto.py).
  if (is_bitsandbytes(stored) && stored.layout.skip) draft.set("quantization.skip", texts_value(*stored.layout.skip));
  if (draft.quantized || stored.method.empty()) return;
  if (!stored.format)
    return draft.warnings.push_back("the storage of the weights, " + stored.method + ", is not modelled");
  const WeightFormatRow& row = weight_format(*stored.format);
  if (is_bitsandbytes(stored)) return set_bits(row.bits, std::string(row.name), stored.double_quant, true, draft);
  draft.quantized = true;
  draft.stored = stored;
  draft.set("kbit_prepare", Value::of(false));  // PEFT skips it for these
}

std::string compute_dtype(const Draft& draft) { return draft.bf16 ? "bf16" : draft.fp16 ? "fp16" : ""; }

void settle_deepspeed(Draft& draft) {
  const std::string compute = compute_dtype(draft);
  if (!draft.quantized) draft.set("weights", Value::of(compute.empty() ? "fp32" : compute));
  draft.set("precision", Value::of(compute.empty() ? "fp32" : "master-" + compute));
}

void settle_precision(Draft& draft) {
  if (draft.own_precision) return;
  if (plan_text(draft, "engine") == "deepspeed") return settle_deepspeed(draft);
  std::string load = draft.load_dtype;
  if (draft.fsdp_upcasts && !trains_adapters(draft)) load = "fp32";
  const std::string compute = compute_dtype(draft);
  if (!draft.quantized) draft.set("weights", Value::of(load));
  const std::string plain = load == "fp32" ? "fp32" : "pure-" + load;
  draft.set("precision", Value::of(compute.empty() ? plain : "amp-" + compute));
}

void settle_load_dtype(const ModelFacts& model, Draft& draft) {
  set_stored_weights(model.stored, draft);
  if (draft.load_dtype != "auto") return;
  draft.load_dtype = model.stored_dtype;
  if (!draft.load_dtype.empty()) return;
  draft.load_dtype = "bf16";
  const bool upcast = draft.fsdp_upcasts && !trains_adapters(draft);
  if (!draft.own_precision && !draft.quantized && !upcast && plan_text(draft, "engine") != "deepspeed")
    draft.assume("the dtype of the checkpoint is not known: bf16 taken");
}

// Cards that the degrees of parallelism need at least; 1: none is said.
std::int64_t least_world(const Draft& draft) {
  std::int64_t cards = 1;
  for (const char* key : {"parallel.tp", "parallel.pp", "parallel.cp", "parallel.ulysses"}) {
    const Value* degree = draft.plan.find(key);
    if (degree == nullptr || !degree->is_int() || degree->as_int() < 1) continue;
    if (degree->as_int() > 1'000'000 || cards > 1'000'000) return 1;
    cards *= degree->as_int();
  }
  const Value* experts = draft.plan.find("parallel.ep");
  const bool more = experts != nullptr && experts->is_int() && experts->as_int() > 1 && experts->as_int() < 1'000'000;
  return more ? std::lcm(cards, experts->as_int()) : cards;
}

void settle_world(Draft& draft) {
  if (!world_size(draft) && least_world(draft) == 1 && draft.nodes.value_or(1) > 1) {
    draft.processes = draft.nodes;
    draft.assume(draft.file + " does not say how many cards a node has: 1 each taken, --gpus says how many in all");
  }
  const std::int64_t least = world_size(draft) ? 1 : least_world(draft);
  if (least == 1) return;
  draft.processes = least;
  draft.assume(draft.file + " does not say how many cards there are: " + std::to_string(least) +
               " taken, as many as its degrees of parallelism need; --gpus says it");
}

void settle_engine(Draft& draft) {
  settle_world(draft);
  const std::optional<std::int64_t> world = world_size(draft);
  const std::string engine = plan_text(draft, "engine");
  if (engine.empty()) {
    draft.set("engine", Value::of(world.value_or(1) > 1 ? "ddp" : "torch"));
  } else if (!world && engine != "torch") {
    draft.assume(draft.file + " does not say how many cards there are: 1 taken, --gpus says it");
  }
  if (plan_text(draft, "sharding.wrap") == "block" && trains_adapters(draft) && engine == "fsdp")
    draft.set("sharding.wrap", Value::of("peft"));
}

void settle_saving(Draft& draft) {
  const std::string engine = plan_text(draft, "engine");
  if (!draft.saves) return;
  const bool stage3 = engine == "deepspeed" && plan_text(draft, "sharding.zero") == "3";
  const bool in_shards =
      stage3 ? !draft.gathers_saved : (engine.starts_with("fsdp") || engine == "megatron") && draft.saves_shards;
  draft.set("save.state", Value::of(in_shards ? "sharded" : "full"));
}

ModelFacts facts_of(const std::string& name, const Draft& draft) {
  ModelFacts facts;
  facts.name = facts.argument = name;
  if (name.empty()) return facts;
  const std::string beside = (fs::path(draft.folder) / name).string();
  if (!is_there(name) && !draft.folder.empty() && is_there(beside)) facts.argument = beside;
  const std::optional<LoadedModel> loaded = try_load(facts.argument, draft.context.dirs);
  if (!loaded) return facts;
  if (loaded->related) facts.argument = loaded->alias.empty() ? loaded->name : loaded->alias;
  facts.known = true;
  facts.model_type = loaded->model_type;
  if (!loaded->alias.empty() || to_lower(facts.argument) != to_lower(name)) facts.shapes_of = loaded->name;
  facts.stored_dtype = dtype_word(loaded->stored_dtype);
  facts.stored = loaded->stored;
  if (facts.stored.method.empty() && !is_there(facts.argument)) facts.stored = storage_named(name);
  facts.max_positions = config_count(*loaded, "max_position_embeddings");
  if (facts.max_positions == 0) facts.max_positions = config_count(*loaded, "n_positions");
  facts.hidden = config_count(*loaded, "hidden_size");
  facts.layers = config_count(*loaded, "num_hidden_layers");
  const Value* tied = loaded->config.find("tie_word_embeddings");
  facts.untied = tied != nullptr && tied->is_bool() && !tied->as_bool();
  for (const char* key : {"num_experts", "n_routed_experts", "num_local_experts"})
    facts.experts = std::max(facts.experts, config_count(*loaded, key));
  return facts;
}

}  // namespace

const ModelFacts& find_model(Draft& draft) {
  const std::string name = draft.context.model ? *draft.context.model : draft.model.value_or("");
  if (draft.facts == nullptr || draft.facts->name != name)
    draft.facts = std::make_shared<const ModelFacts>(facts_of(name, draft));
  return *draft.facts;
}

std::optional<std::int64_t> longest_sequence(Draft& draft) {
  const std::int64_t longest = find_model(draft).max_positions;
  draft.assume(longest > 0 ? "max_length is not given: the model's own maximum, " + std::to_string(longest) + " tokens"
                           : "max_length is not given and the model's maximum not known: 2048 taken");
  return longest > 0 ? std::optional(longest) : std::nullopt;
}

bool lacks_default_targets(Draft& draft) {
  const ModelFacts& model = find_model(draft);
  return model.known && default_lora_targets(model.model_type).empty();
}

std::optional<std::int64_t> world_size(const Draft& draft) {
  return draft.context.gpus ? draft.context.gpus : draft.processes;
}

void count_local_cards(const Launch& launch, Draft& draft) {
  const std::int64_t local = launch.environment.count("NPROC_PER_NODE");
  if (!draft.processes && local > 0) draft.processes = local;
}

void take_data_parallel(KeyReader& reader, std::string_view replicas_key, std::string_view shards_key, Draft& draft) {
  constexpr std::int64_t kMost = 1'000'000;
  const std::int64_t replicas = reader.count(replicas_key, 1).value_or(1);
  const std::int64_t shards = reader.count(shards_key, 1).value_or(1);
  const std::int64_t others = least_world(draft);
  if (replicas > kMost || shards > kMost / replicas || others > kMost / (replicas * shards))
    return reader.problem(replicas > 1 ? replicas_key : shards_key, "makes more than a million cards");
  if (!world_size(draft) && replicas * shards > 1) draft.processes = replicas * shards * others;
  if (replicas == 1 || shards == 1 || plan_text(draft, "sharding.fsdp").empty()) return;
  const Value* sequence_ranks = draft.plan.find("parallel.cp");  // which divide parameters, too
  draft.set("sharding.fsdp", Value::of("hybrid_shard"));
  draft.set("sharding.shard_group",
            std::optional(sequence_ranks == nullptr ? shards : shards * sequence_ranks->as_int()));
}

JobFile finish_draft(Draft& draft) {
  const ModelFacts& model = find_model(draft);
  settle_load_dtype(model, draft);
  settle_engine(draft);
  settle_precision(draft);
  settle_saving(draft);
  if (plan_text(draft, "attention") == "flash")
    draft.set("attention_mask", Value::of(false));  // padding is taken out before it
  if (!model.shapes_of.empty() && !draft.context.model && draft.model && !is_there(model.argument)) {
    draft.assume("model " + membill::quoted(*draft.model) + " has the shapes of the preset " + model.shapes_of);
  }
  JobFile job;
  job.file = draft.file;
  if (draft.model) job.model = model.argument.empty() || draft.context.model ? *draft.model : model.argument;
  if (!draft.model) job.config = std::move(draft.config);
  job.hardware.count = draft.processes;
  job.hardware.nodes = draft.nodes;
  job.plan = std::move(draft.plan);
  job.records = std::move(draft.records);
  job.assumptions = std::move(draft.assumptions);
  job.warnings = std::move(draft.warnings);
  job.stored = std::move(draft.stored);
  return job;
}

}  // namespace membill::io
