// torchtitan's TOML (torchrun -m torchtitan.train --job.config_file FILE) and flags, as its releases to 0.2.2 read them.
#include <algorithm>

#include "base/text.h"
#include "io/importers/formats.h"

namespace membill::io {
namespace {

constexpr KeyRow kRows[] = {
    {"job.config_file", "", "the file of the other keys"},
    {"model.name", "llama3", "family of the model"},
    {"model.flavor", "debugmodel", "size of the model"},
    {"model.converters", "", "fp8 linears"},
    {"optimizer.name", "AdamW", "optimizer"},
    {"optimizer.implementation", "fused", "how its step runs"},
    {"optimizer.fused", "", "", "optimizer.implementation"},
    {"optimizer.early_step_in_backward", "false", "each parameter is updated as soon as its gradient is there"},
    {"training.local_batch_size", "8", "micro-batch"},
    {"training.batch_size", "", "", "training.local_batch_size"},
    {"training.global_batch_size", "-1", "sequences of a step on all cards"},
    {"training.seq_len", "2048", "tokens of a sequence"},
    {"training.enable_cpu_offload", "false", "shards live on the host"},
    {"training.dtype", "float32", "weights, gradients and states"},
    {"training.mixed_precision_param", "bfloat16", "gathered parameters, or autocast on one card and with replicas"},
    {"training.mixed_precision_reduce", "float32", "gradients on their way"},
    {"training.compile", "", "", "compile.enable"},
    {"training.data_parallel_replicate_degree", "", "", "parallelism.data_parallel_replicate_degree"},
    {"training.data_parallel_shard_degree", "", "", "parallelism.data_parallel_shard_degree"},
    {"training.data_parallel_degree", "", "", "parallelism.data_parallel_shard_degree"},
    {"training.tensor_parallel_degree", "", "", "parallelism.tensor_parallel_degree"},
    {"experimental.pipeline_parallel_degree", "", "", "parallelism.pipeline_parallel_degree"},
    {"experimental.context_parallel_degree", "", "", "parallelism.context_parallel_degree"},
    {"parallelism.data_parallel_replicate_degree", "1", "replicas"},
    {"parallelism.data_parallel_shard_degree", "-1", "cards that share the parameters"},
    {"parallelism.fsdp_reshard_after_forward", "default", "gathered weights are freed after the forward"},
    {"parallelism.tensor_parallel_degree", "1", "tensor parallel degree"},
    {"parallelism.pipeline_parallel_degree", "1", "pipeline parallel degree"},
    {"parallelism.context_parallel_degree", "1", "context parallel degree"},
    {"parallelism.expert_parallel_degree", "1", "expert parallel degree"},
    {"activation_checkpoint.mode", "selective", "which layers or operators are computed again"},
    {"activation_checkpoint.selective_ac_option", "2", "every n-th layer, or op"},
    {"activation_checkpoint.memory_budget", "0.5", "how much of it Inductor keeps"},
    {"activation_checkpoint.early_stop", "false", "the recomputation ends early"},
    {"compile.enable", "false", "torch.compile"},
    {"compile.components", "", "what of it: model, loss"},
    {"checkpoint.enable", "false", "checkpoints between steps"},
    {"checkpoint.enable_checkpoint", "", "", "checkpoint.enable"},
    {"checkpoint.load_only", "false", "none are written"},
    {"checkpoint.async_mode", "disabled", "a copy of the state waits on the host"},
    {"validation.enable", "false", "whether the job evaluates"},
    {"validation.enabled", "", "", "validation.enable"},
    {"fault_tolerance.enable", "false", "replicas by torchft"},
};
constexpr std::string_view kHarmless =
    "job.* profiling.* metrics.* model.hf_assets_path model.tokenizer_path model.print_after_conversion "
    "model.norm_type "
    "model.tokenizer_flavor optimizer.lr optimizer.beta1 optimizer.beta2 optimizer.eps optimizer.weight_decay "
    "optimizer.moe_router_bias_update lr_scheduler.* training.dataset training.dataset_path training.max_norm "
    "training.steps training.gc_freq training.gc_debug training.dataloader* training.deterministic training.seed "
    "training.warmup_steps training.enable_async_* training.enable_loss_parallel checkpoint.* activation_checkpoint.* "
    "compile.* float8.* mx.* "
    "quantize.* comm.* memory_estimation.* fault_tolerance.* experimental.* validation.* debug.* parallelism.*";
constexpr std::string_view kSource =
    "torchtitan 0.2.2: torchtitan/config/job_config.py, train.py, models/*/__init__.py";

// Sizes of the models that torchtitan names: model.name, model.flavor, and the preset of the same shapes.
struct Flavor {
  std::string_view name, flavor, preset;
};
constexpr Flavor kFlavors[] = {{"llama2", "7B", "llama-2-7b"},        {"llama2", "13B", "llama-2-13b"},
                               {"llama2", "70B", "llama-2-70b"},      {"llama3", "8B", "llama-3.1-8b"},
                               {"llama3", "70B", "llama-3.1-70b"},    {"llama3", "405B", "llama-3.1-405b"},
                               {"qwen3", "0.6B", "qwen3-0.6b"},       {"qwen3", "1.7B", "qwen3-1.7b"},
                               {"qwen3", "4B", "qwen3-4b"},           {"qwen3", "8B", "qwen3-8b"},
                               {"qwen3", "14B", "qwen3-14b"},         {"qwen3", "32B", "qwen3-32b"},
                               {"qwen3", "30B-A3B", "qwen3-30b-a3b"}, {"qwen3", "235B-A22B", "qwen3-235b-a22b"},
                               {"deepseek_v3", "671B", "deepseek-v3"}};

// models/llama3/__init__.py: the model of its tests.
Value debug_model() {
  Value config = Value::make_map();
  config.set("model_type", Value::of("llama"));
  for (const auto& [key, number] :
       {std::pair("hidden_size", 256), std::pair("intermediate_size", 768), std::pair("num_hidden_layers", 6),
        std::pair("num_attention_heads", 16), std::pair("num_key_value_heads", 16), std::pair("vocab_size", 2048),
        std::pair("max_position_embeddings", 131072)})
    config.set(key, Value::of(number));
  config.set("tie_word_embeddings", Value::of(false));
  return config;
}

// Flavours whose names end so differ in their attention only.
constexpr std::string_view kKernels[] = {"_flex_attn", "_varlen_attn", "_flex", "_varlen"};

void read_model(KeyReader& reader, Draft& draft) {
  const std::string name = reader.text("model.name").value_or("llama3");
  std::string flavor = reader.text("model.flavor").value_or("debugmodel");
  for (const std::string_view ending : kKernels) {
    if (!flavor.ends_with(ending)) continue;
    flavor.resize(flavor.size() - ending.size());
    draft.assume("attention of " + name + " " + flavor + std::string(ending) +
                 " is billed as the flash kernel's; masks of documents are not counted");
    break;
  }
  if (draft.context.model) return;
  if (name.starts_with("llama3") && flavor == "debugmodel") {
    draft.config = debug_model();
    return;
  }
  std::string known;
  for (const Flavor& row : kFlavors) {
    if (row.name != name) continue;
    if (row.flavor == flavor) {
      draft.model = row.preset;
      draft.model_key = "model.flavor";
      return;
    }
    known += (known.empty() ? "" : ", ") + std::string(row.flavor);
  }
  reader.problem("model.flavor", membill::quoted(flavor) + " of " + name + " is no size that is known",
                 known.empty() ? "llama3: debugmodel, 8B, 70B, 405B; or MODEL beside the file" : known);
}

// distributed/activation_checkpoint.py. Of selective operators the products are kept in turn: the first, not the second.
void read_checkpointing(KeyReader& reader, Draft& draft) {
  const std::string mode = to_lower(reader.text("activation_checkpoint.mode").value_or("selective"));
  if (mode == "none" || mode == "full") return draft.set("checkpointing", Value::of(mode));
  if (mode == "memory_budget") {
    reader.use("activation_checkpoint.memory_budget");
    draft.set("checkpointing", Value::of("none"));
    return draft.assume("what Inductor keeps under activation_checkpoint.memory_budget is billed as if it kept all");
  }
  if (mode != "selective")
    return reader.problem("activation_checkpoint.mode", "has the unknown value " + membill::quoted(mode),
                          "none, full, selective or memory_budget");
  const std::string option = reader.text("activation_checkpoint.selective_ac_option").value_or("2");
  const Value every = flag_value(option);
  if (option == "op") {
    draft.set("checkpointing", Value::of("selective"));
    draft.set("checkpointing.selective", texts_value({"ops:aten.mm/2", "ops:aten._scaled_dot_product_flash_attention",
                                                      "ops:aten._scaled_dot_product_efficient_attention"}));
  } else if (every.is_int() && every.as_int() >= 0) {
    draft.set("checkpointing", Value::of("full"));
    if (every.as_int() > 1) draft.set("checkpointing.every", every);
  } else {
    reader.problem("activation_checkpoint.selective_ac_option", "has the unknown value " + membill::quoted(option),
                   "a number of layers, or op");
  }
}

// Degrees of 1, but of data parallelism.
std::int64_t read_degrees(KeyReader& reader, Draft& draft) {
  std::int64_t cards = 1;
  for (const auto& [key, plan] : {std::pair("parallelism.tensor_parallel_degree", "parallel.tp"),
                                  std::pair("parallelism.pipeline_parallel_degree", "parallel.pp"),
                                  std::pair("parallelism.context_parallel_degree", "parallel.cp"),
                                  std::pair("parallelism.expert_parallel_degree", "parallel.ep")}) {
    const std::int64_t degree = std::min<std::int64_t>(reader.count(key, 1).value_or(1), 1'000'000);
    if (degree == 1) continue;
    draft.set(plan, std::optional(degree));
    if (std::string_view(plan) != "parallel.ep") cards = std::min<std::int64_t>(cards * degree, 1'000'000);
  }
  return cards;
}

// FSDP divides weights over the ranks that share a sequence, too (distributed/parallel_dims.py).
struct DataParallel {
  std::int64_t replicas = 1, shards = 1, spread = 1;
  [[nodiscard]] std::int64_t sharding_cards() const { return shards * spread; }
};

// Cards in all: by the launcher, or the degrees where none is "the rest" (-1).
DataParallel read_data_parallel(KeyReader& reader, Draft& draft) {
  constexpr std::int64_t kMost = 1'000'000;
  const std::int64_t others = read_degrees(reader, draft);
  DataParallel result;
  result.spread = std::min(reader.count("parallelism.context_parallel_degree", 1).value_or(1), kMost);
  result.replicas = std::min(reader.count("parallelism.data_parallel_replicate_degree", 1).value_or(1), kMost);
  const Value* given = reader.given("parallelism.data_parallel_shard_degree");
  const std::int64_t shards = given != nullptr && given->is_int() ? given->as_int() : -1;
  if (shards == 0 || shards < -1)
    reader.problem("parallelism.data_parallel_shard_degree", "needs a number of cards, or -1 for the rest");
  if (shards > 0) {
    result.shards = std::min(shards, kMost);
    if (!world_size(draft) && result.shards <= kMost / result.replicas / others)
      draft.processes = result.replicas * result.shards * others;
    return result;
  }
  const std::int64_t world = world_size(draft).value_or(1);
  if (!world_size(draft))
    draft.assume(draft.file + " leaves the number of cards to the launcher: 1 taken, --gpus says it");
  result.shards = std::max<std::int64_t>(1, world / std::max<std::int64_t>(1, result.replicas * others));
  return result;
}

void read_engine(KeyReader& reader, const DataParallel& degrees, Draft& draft) {
  const std::string reshards = to_lower(reader.text("parallelism.fsdp_reshard_after_forward").value_or("default"));
  const bool offloads = reader.flag("training.enable_cpu_offload");
  if (degrees.sharding_cards() == 1) {
    draft.set("engine", Value::of(degrees.replicas > 1 ? "ddp" : "torch"));
    if (degrees.replicas > 1) draft.set("sharding.bucket_cap_mb", Value::of(100));
    return;
  }
  draft.set("engine", Value::of("fsdp2"));
  draft.set("sharding.fsdp", Value::of(reshards == "never" ? "shard_grad_op" : "full_shard"));
  if (reshards == "always")
    draft.assume("fsdp_reshard_after_forward always: the final norm and the head stay gathered, as by default");
  draft.set("sharding.wrap", Value::of("block+embedding"));
  draft.set("sharding.no_sync", Value::of(false));
  draft.set("sharding.offload", Value::of(offloads ? "optimizer+param" : "none"));
  if (degrees.replicas == 1) return;
  draft.set("sharding.fsdp", Value::of("hybrid_shard"));
  draft.set("sharding.shard_group", std::optional(degrees.sharding_cards()));
}

// Mixed precision is FSDP's own, or autocast's on one card and with replicas.
void read_precision(KeyReader& reader, const DataParallel& degrees, Draft& draft) {
  draft.own_precision = true;
  draft.load_dtype = dtype_word(reader.text("training.dtype").value_or("float32"));
  const std::string compute = dtype_word(reader.text("training.mixed_precision_param").value_or("bfloat16"));
  const std::string reduced = dtype_word(reader.text("training.mixed_precision_reduce").value_or("float32"));
  if (draft.load_dtype != "fp32" && draft.load_dtype != "bf16") {
    reader.problem("training.dtype", "has an unknown value", "float32 or bfloat16");
    draft.load_dtype = "fp32";
  }
  draft.set("weights", Value::of(draft.load_dtype));
  const bool bf16 = compute == "bf16";
  draft.set("precision", Value::of(bf16 ? "amp-bf16" : draft.load_dtype == "fp32" ? "fp32" : "pure-bf16"));
  if (degrees.sharding_cards() == 1) return;
  draft.set("sharding.param_dtype", Value::of(bf16 ? "bf16" : "fp32"));
  draft.set("sharding.reduce_dtype", Value::of(reduced.empty() ? "fp32" : reduced));
}

void read_compile(KeyReader& reader, Draft& draft) {
  const std::vector<std::string> given = reader.texts("compile.components");
  const auto is_compiled = [&](const char* part) {
    return given.empty() || std::find(given.begin(), given.end(), part) != given.end();
  };
  if (!reader.flag("compile.enable")) return;
  if (is_compiled("model")) return draft.set("compile", Value::of(true));
  if (is_compiled("loss")) draft.set("loss", Value::of("native"));
}

void read_step(KeyReader& reader, const DataParallel& degrees, Draft& draft) {
  const std::int64_t batch = reader.count("training.local_batch_size", 1).value_or(8);
  const Value* whole = reader.given("training.global_batch_size");
  const std::int64_t all = whole != nullptr && whole->is_int() ? whole->as_int() : -1;
  draft.set("batch", std::optional(batch));
  draft.set("seq", reader.count("training.seq_len", 1));
  const std::int64_t one = std::max<std::int64_t>(1, degrees.replicas * degrees.shards);
  draft.set("accumulate", std::optional(all > 0 ? std::max<std::int64_t>(1, all / one / batch) : 1));
  set_optimizer(reader.text("optimizer.name").value_or("AdamW"), draft);
  const std::string implementation = to_lower(reader.text("optimizer.implementation").value_or("fused"));
  const bool is_fused = implementation == "fused" || implementation == "true";
  draft.set("optimizer_impl", Value::of(is_fused ? "fused" : implementation == "for-loop" ? "loop" : "foreach"));
  if (reader.flag("optimizer.early_step_in_backward")) set_layerwise(draft);
  read_compile(reader, draft);
}

// torchao 0.18 float8/float8_linear.py: a linear saves its input and weight as they are, and casts both again in backward. Without
// Inductor the casts make copies in fp32.
void read_converters(KeyReader& reader, Draft& draft) {
  if (reader.texts("model.converters").empty()) return;
  if (reader.flag("compile.enable"))
    draft.warnings.push_back(
        "model.converters: linears in fp8 or MX are billed as 16-bit ones, whose inputs they save; the copies in 8 "
        "bits "
        "that last for one product are not");
  else
    reader.problem("model.converters", "linears in fp8 or MX are not billed without compile", "compile.enable true");
}

void read_rest(KeyReader& reader, Draft& draft) {
  read_converters(reader, draft);
  draft.saves = reader.flag("checkpoint.enable") && !reader.flag("checkpoint.load_only");
  draft.saves_shards = true;
  if (draft.saves && reader.text("checkpoint.async_mode").value_or("disabled") != "disabled")
    draft.warnings.push_back("checkpoint.async_mode: the copy of the state on the host is not billed");
  if (reader.flag("validation.enable"))
    draft.warnings.push_back("validation between the steps is not billed: its batch is validation.local_batch_size, 8");
  if (reader.flag("fault_tolerance.enable"))
    draft.warnings.push_back("what torchft keeps under fault_tolerance is not billed");
  if (reader.flag("activation_checkpoint.early_stop"))
    draft.assume("activation_checkpoint.early_stop: billed as recomputing to the end of a layer");
}

int claim(const JobSource& source) {
  for (const std::string& word : source.launch.program) {
    if (word.find("torchtitan") != std::string::npos) return 100;
  }
  const Value* model = source.keys.find("model");
  const Value* training = source.keys.find("training");
  const bool named = model != nullptr && model->is_map() && model->find("flavor") != nullptr;
  if (named) return 100;
  return training != nullptr && training->is_map() &&
                 count_keys(*training, "local_batch_size seq_len mixed_precision_param steps") >= 2 &&
                 count_keys(source.keys, "job parallelism activation_checkpoint lr_scheduler") >= 2
             ? 100
             : 0;
}

void read(const JobSource& source, Draft& draft) {
  KeyReader reader(source.keys, source.file, {{kRows, kHarmless, kSource}}, draft.problems);
  draft.set("implementation", Value::of("torchtitan"));
  draft.set("stage", Value::of("pretrain"));
  draft.set("method", Value::of("full"));
  draft.set("loop", Value::of("plain"));
  reader.use("job.config_file");
  read_model(reader, draft);
  const DataParallel degrees = read_data_parallel(reader, draft);
  read_engine(reader, degrees, draft);
  read_precision(reader, degrees, draft);
  read_step(reader, degrees, draft);
  read_checkpointing(reader, draft);
  read_rest(reader, draft);
  draft.assume(
      "as torchtitan 0.2.2 runs it, with the flash kernel for attention: cuDNN's, which it prefers, takes a "
      "workspace that is not known");
  draft.add_records(reader);
}

}  // namespace

KeyTable torchtitan_table() { return {kRows, kHarmless, kSource}; }

std::pair<std::string, std::string> torchtitan_flavor(const std::string& preset) {
  for (const Flavor& row : kFlavors)
    if (row.preset == preset) return {std::string(row.name), std::string(row.flavor)};
  return {};
}

Importer torchtitan_importer() { return {"torchtitan", "torchtitan's TOML and flags", kSource, claim, read}; }

}  // namespace membill::io
