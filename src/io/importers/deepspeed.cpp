#include "io/importers/deepspeed.h"

#include <array>

#include "base/text.h"
#include "io/importers/deepspeed_keys.h"
#include "io/importers/formats.h"
#include "io/importers/shipped_deepspeed.h"
#include "io/json_reader.h"

namespace membill::io {
namespace {

// Sizes that the plan keeps under DeepSpeed's own names.
constexpr std::array<std::string_view, 10> kCopied{"reduce_bucket_size",
                                                   "allgather_bucket_size",
                                                   "overlap_comm",
                                                   "contiguous_gradients",
                                                   "reduce_scatter",
                                                   "sub_group_size",
                                                   "stage3_prefetch_bucket_size",
                                                   "stage3_param_persistence_threshold",
                                                   "stage3_max_live_parameters",
                                                   "stage3_max_reuse_distance"};
// Those of them that Hugging Face fills; any other auto is dropped by DeepSpeed itself.
constexpr std::string_view kFilled =
    "reduce_bucket_size stage3_prefetch_bucket_size stage3_param_persistence_threshold";

bool is_auto(const Value* value) { return value != nullptr && value->is_string() && value->as_string() == "auto"; }

// What a flag that may be "auto" comes to.
bool flag_or(KeyReader& reader, std::string_view key, bool filled) {
  return is_auto(reader.given(key)) ? filled : reader.flag(key);
}

std::optional<std::int64_t> count_unless_auto(KeyReader& reader, std::string_view key) {
  return is_auto(reader.given(key)) ? std::nullopt : reader.count(key, 1);
}

void copy_sizes(KeyReader& reader, std::int64_t stage, Draft& draft) {
  for (const std::string_view name : kCopied) {
    if (stage < 3 && (name.starts_with("stage3") || name == "sub_group_size")) continue;
    const std::string key = "zero_optimization." + std::string(name);
    const Value* value = reader.given(key);
    if (is_auto(value) && kFilled.find(name) == std::string_view::npos) continue;
    const std::string plan_key = "sharding." + std::string(name);
    if (is_auto(value)) {
      draft.set(plan_key, Value::of("auto"));
    } else if (value != nullptr &&
               (name == "overlap_comm" || name.starts_with("contiguous") || name == "reduce_scatter")) {
      draft.set(plan_key, Value::of(reader.flag(key)));
    } else if (value != nullptr) {
      draft.set(plan_key, reader.count(key));
    } else if (!name.starts_with("overlap") && !name.starts_with("contiguous")) {
      (void)reader.text(key);  // DeepSpeed's default, which is the engine's too: kept in the records
    }
  }
}

// A section whose device is nvme, with the sizes of its buffers.
void read_swapping(KeyReader& reader, const std::string& section, std::initializer_list<const char*> sizes,
                   Draft& draft) {
  draft.set("sharding." + section + "_device", Value::of("nvme"));
  for (const std::string size : sizes) {
    const std::string key = "zero_optimization." + section + "." + size;
    if (!reader.is_given(key)) continue;
    draft.set("sharding." + (size == "max_in_cpu" ? size : section + "_" + size), reader.count(key));
  }
}

void read_offload(KeyReader& reader, std::int64_t stage, Draft& draft) {
  const std::string old = "zero_optimization.cpu_offload";
  std::string states = reader.text("zero_optimization.offload_optimizer.device").value_or("none");
  std::string weights = reader.text("zero_optimization.offload_param.device").value_or("none");
  if (reader.flag(old)) states = "cpu";
  if (reader.flag(old + "_params")) weights = "cpu";
  if (stage < 3) weights = "none";
  if (stage < 1) states = "none";
  std::string offload = states != "none" ? "optimizer" : "none";
  if (weights != "none") offload = states != "none" ? "optimizer+param" : "param";
  draft.set("sharding.offload", Value::of(offload));
  if (offload == "none") return;
  if (stage == 3 && states == "nvme") read_swapping(reader, "offload_optimizer", {"buffer_count"}, draft);
  if (weights == "nvme") read_swapping(reader, "offload_param", {"buffer_count", "buffer_size", "max_in_cpu"}, draft);
  const char* part = states != "none" ? "offload_optimizer" : "offload_param";
  draft.set("sharding.pin_memory",
            Value::of(flag_or(reader, "zero_optimization." + std::string(part) + ".pin_memory", true)));
}

void read_batch(KeyReader& reader, Draft& draft) {
  const std::optional<std::int64_t> micro = count_unless_auto(reader, "train_micro_batch_size_per_gpu");
  const std::optional<std::int64_t> steps = count_unless_auto(reader, "gradient_accumulation_steps");
  const std::optional<std::int64_t> whole = count_unless_auto(reader, "train_batch_size");
  const std::int64_t world = draft.context.gpus.value_or(draft.processes.value_or(1));
  if (micro) draft.set("batch", micro);
  if (steps) draft.set("accumulate", steps);
  if (whole && micro && !steps && *whole >= world && *micro <= *whole / world)
    draft.set("accumulate", std::optional(*whole / world / *micro));
  if (whole && !micro && *whole >= world) {
    const std::int64_t count = steps.value_or(1);
    if (count <= *whole / world) draft.set("batch", std::optional(*whole / world / count));
  }
}

// Only torch.nn.Linear counts among what a transformer has; a list without it sends every gradient in fp32.
void read_safe_modules(KeyReader& reader) {
  const Value* modules = reader.given("torch_autocast.lower_precision_safe_modules");
  if (modules == nullptr || !modules->is_list()) return;
  for (const Value& module : modules->items())
    if (module.is_string() &&
        (module.as_string() == "torch.nn.Linear" || module.as_string() == "torch.nn.modules.linear.Linear"))
      return;
  reader.problem("torch_autocast.lower_precision_safe_modules", "a list without torch.nn.Linear is not read");
}

void read_precision(KeyReader& reader, const DeepSpeedFill& fill, Draft& draft) {
  draft.bf16 = flag_or(reader, "bf16.enabled", fill.bf16);
  draft.fp16 = !draft.bf16 && flag_or(reader, "fp16.enabled", fill.fp16);
  if (reader.flag("torch_autocast.enabled")) {
    const std::string dtype = reader.text("torch_autocast.dtype").value_or("bfloat16");
    draft.own_precision = true;
    if (draft.bf16 || draft.fp16)
      reader.problem("torch_autocast.enabled",
                     "beside a 16-bit section it is not read; without one the weights are fp32");
    read_safe_modules(reader);
    if (!draft.quantized) draft.set("weights", Value::of("fp32"));
    draft.set("sharding.torch_autocast", Value::of(true));
    draft.set("precision", Value::of(dtype.find("bf") != std::string::npos ? "amp-bf16" : "amp-fp16"));
  } else if (draft.bf16 && reader.flag("bf16.bf16_master_weights_and_grads")) {
    draft.own_precision = true;
    if (!draft.quantized) draft.set("weights", Value::of("bf16"));
    draft.set("precision", Value::of("pure-bf16"));
    if (!reader.flag("bf16.bf16_optimizer_states")) draft.set("moment_dtype", Value::of("fp32"));
  }
  const Value* accumulate = reader.given("data_types.grad_accum_dtype");
  if (accumulate != nullptr && !is_auto(accumulate)) draft.set("sharding.grad_accum_dtype", *accumulate);
}

constexpr LeftOut kLeftOut[] = {
    {"zero_optimization.zero_quantized_weights", "gathers weights in int8, whose buffers are not billed"},
    {"zero_optimization.zero_quantized_gradients", "sends gradients in int4, whose buffers are not billed"},
    {"zero_optimization.zero_quantized_nontrainable_weights", "is not billed: frozen weights are billed in 16 bits"},
    {"zero_optimization.memory_efficient_linear", "false keeps gathered weights for the backward, which is not billed",
     true},
    {"zero_optimization.zenflow", "is not billed: the step is billed without it"},
    {"zero_optimization.offload_optimizer.super_offload", "is billed as offloading to the host without it"},
    {"fp16.fp16_master_weights_and_grads", "is not billed: fp32 master weights are"}};

// Keys that move memory and are not billed.
void state_what_is_left_out(KeyReader& reader, Draft& draft) {
  warn_of_left_out(kLeftOut, reader, draft);
  if (reader.map().find("zero_optimization") == nullptr || plan_text(draft, "sharding.offload").find("opt") != 0)
    return;
  if (reader.real("zero_optimization.offload_optimizer.ratio").value_or(1) < 1)
    draft.warnings.push_back("offload_optimizer.ratio is not billed: the whole optimizer is billed on the host");
}

// The section counts only where the training code hands it to DeepSpeed's own checkpoint function (deepspeed.checkpointing.configure).
void read_checkpointing(KeyReader& reader, bool calls, Draft& draft) {
  const std::string section = "activation_checkpointing.";
  const bool asks = reader.map().find("activation_checkpointing") != nullptr &&
                    (reader.flag(section + "partition_activations") || reader.flag(section + "cpu_checkpointing"));
  if (!asks) return;
  if (!calls)
    return draft.assume(
        "activation_checkpointing changes nothing here: it is for code that calls deepspeed.checkpointing, which "
        "Hugging Face's gradient checkpointing does not; --set sharding.partition_activations=true or "
        "sharding.cpu_checkpointing=true bills it");
  for (const char* key : {"partition_activations", "cpu_checkpointing", "contiguous_memory_optimization"})
    if (reader.flag(section + key)) draft.set(std::string("sharding.") + key, Value::of(true));
  if (reader.flag(section + "contiguous_memory_optimization"))
    draft.set("sharding.number_checkpoints", reader.count(section + "number_checkpoints", 1));
}

int claim(const JobSource& source) {
  if (source.arguments) return 0;
  if (source.keys.find("zero_optimization") != nullptr) return 100;
  if (source.keys.find("architectures") != nullptr) return 0;  // a model's config may say bf16 and fp16 too
  int own = count_keys(source.keys,
                       "train_micro_batch_size_per_gpu train_batch_size zero_allow_untested_optimizer autotuning "
                       "wall_clock_breakdown steps_per_print");
  for (const char* section : {"bf16", "fp16", "activation_checkpointing"}) {  // switches in other frameworks' files
    const Value* value = source.keys.find(section);
    own += value != nullptr && value->is_map() ? 1 : 0;
  }
  return own >= 2 ? 70 : 0;
}

void read(const JobSource& source, Draft& draft) {
  draft.load_dtype = "fp32";
  const bool only_fp16 = source.keys.find("fp16") != nullptr && count_keys(source.keys, "bf16 bfloat16") == 0;
  read_deepspeed_part(source.keys, source.file, {.bf16 = !only_fp16, .fp16 = only_fp16}, draft);
  draft.assume("a DeepSpeed file alone: values that are auto are filled as Hugging Face's Trainer does, with " +
               std::string(only_fp16 ? "fp16" : "bf16"));
}

}  // namespace

void read_deepspeed_part(const Value& config, const std::string& file, const DeepSpeedFill& fill, Draft& draft) {
  if (!config.is_map()) return draft.problems.add({file, "", "a DeepSpeed configuration is a map of keys", ""});
  KeyReader reader(config, file, {deepspeed_table()}, draft.problems);
  draft.set("engine", Value::of("deepspeed"));
  std::int64_t stage = reader.count("zero_optimization.stage").value_or(0);
  if (stage > 3) reader.problem("zero_optimization.stage", "needs 0 to 3");
  draft.set("sharding.zero", std::optional(stage));
  copy_sizes(reader, stage, draft);
  if (stage == 3) {
    const std::optional<std::int64_t> hpz = reader.count("zero_optimization.zero_hpz_partition_size");
    if (hpz.value_or(1) > 1) draft.set("sharding.zero_hpz_partition_size", hpz);
    const std::optional<double> mics = reader.real("zero_optimization.mics_shard_size");
    if (mics.value_or(-1) > 0) draft.set("sharding.mics_shard_size", reader.count("zero_optimization.mics_shard_size"));
  }
  draft.gathers_saved = flag_or(reader, "zero_optimization.stage3_gather_16bit_weights_on_model_save", false);
  read_offload(reader, stage, draft);
  read_batch(reader, draft);
  read_precision(reader, fill, draft);
  if (reader.is_given("gradient_clipping") && !is_auto(reader.given("gradient_clipping")))
    draft.set("clip", Value::of(reader.real("gradient_clipping").value_or(0) > 0));
  if (const auto type = reader.text("optimizer.type"); type && *type != "auto") set_optimizer(*type, draft);
  read_checkpointing(reader, fill.calls_checkpoint, draft);
  state_what_is_left_out(reader, draft);
  if (const auto tp = reader.count("tensor_parallel.autotp_size"); tp.value_or(1) > 1) draft.set("parallel.tp", tp);
  if (const auto ep = reader.count("expert_parallel.autoep_size");
      reader.flag("expert_parallel.enabled") && ep.value_or(1) > 1)
    draft.set("parallel.ep", ep);
  if (const auto sp = reader.count("sequence_parallel_size"); sp.value_or(1) > 1) draft.set("parallel.ulysses", sp);
  draft.add_records(reader);
}

void read_deepspeed_argument(const Value& argument, const std::string& key, const DeepSpeedFill& fill, Draft& draft) {
  if (argument.is_map()) return read_deepspeed_part(argument, draft.file, fill, draft);
  if (!argument.is_string())
    return draft.problems.add({draft.file, key, "needs a path or a map, not " + value_text(argument), ""});
  const std::string& text = argument.as_string();
  if (text.starts_with("{")) return read_deepspeed_part(parse_json(text, draft.file), draft.file, fill, draft);
  if (const std::optional<ShippedDeepSpeed> shipped = shipped_deepspeed(text, draft.folder, draft.files.get())) {
    draft.assume("deepspeed " + text + " is not here: the file of that name that " + shipped->owner +
                 " ships is taken");
    return read_deepspeed_part(shipped->config, last_name(text), fill, draft);
  }
  const std::optional<Value> part = read_part(text, draft, key);
  if (part) read_deepspeed_part(*part, last_name(text), fill, draft);
}

KeyTable deepspeed_table() {
  return {kDeepSpeedKeys, kDeepSpeedHarmless, "DeepSpeed 0.19.6: deepspeed/runtime/constants.py"};
}

Importer deepspeed_importer() { return {"deepspeed", "DeepSpeed's JSON", "deepspeedai/DeepSpeed 0.19.6", claim, read}; }

}  // namespace membill::io
