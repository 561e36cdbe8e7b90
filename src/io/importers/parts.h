// Pieces that several importers share: adapters, attention names, quantised bases, and the end of every import.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/importers/importer.h"

namespace membill::io {

struct LoraArguments {
  std::optional<std::int64_t> rank, alpha;
  std::optional<double> dropout;
  std::vector<std::string> targets;  // empty: PEFT's default of the model type
  std::vector<std::string> modules_to_save;
  std::vector<std::string> exclude;  // modules that get none although a target matches
  Value layers, ranks;               // layers that get adapters, and ranks by name or pattern; null: all, and `rank`
  bool dora = false;
};
void set_lora(const LoraArguments& lora, Draft& draft);
// A module's name, or a pattern of names, inside the text part of a multimodal model.
[[nodiscard]] std::string in_text_part(std::string name);
// The same with the names that Transformers 5 gives Mixtral's modules.
[[nodiscard]] std::string in_new_names(std::string name);
[[nodiscard]] Value texts_value(const std::vector<std::string>& texts);
// The targets under `key`: a list, names parted by commas or blanks, or one regular expression.
[[nodiscard]] std::vector<std::string> read_targets(KeyReader& reader, std::string_view key);
// A map from names of modules to numbers; null when absent or, with a problem, anything else.
[[nodiscard]] Value read_pattern(KeyReader& reader, std::string_view key);

// The kernel behind a framework's name of it ("flash_attention_2", "fa2", "disabled"); an unknown name is a problem of `key`.
void set_attention(const std::string& name, const std::string& key, Draft& draft);

// The base is stored by bitsandbytes: 8 bits, or 4 bits of `type` (nf4, fp4).
void set_bits(std::int64_t bits, const std::string& type, bool double_quant, bool kbit_prepare, Draft& draft);

// The dtype that holds packed 4-bit weights; it matters to FSDP, which cuts floating tensors only. Call it when the engine is known.
void set_quant_storage(const std::string& dtype, Draft& draft);

// "bf16", "fp16", "fp32" of a dtype as frameworks spell it ("torch.bfloat16", "float16", "bf16-true"), "auto" of auto; empty: unknown.
[[nodiscard]] std::string dtype_word(std::string_view text);

// The optimizer, by the framework's name. A name that the catalogue does not know is left to read_plan, which refuses it.
void set_optimizer(const std::string& name, Draft& draft);
// Further arguments of it: "rank=128, update_proj_gap=200", or a map.
void set_optimizer_arguments(const Value& arguments, Draft& draft);

// Hooks update each parameter as soon as its gradient is there and free it: nothing is left to clip.
void set_layerwise(Draft& draft);

// Whether the plan trains adapters.
[[nodiscard]] bool trains_adapters(const Draft& draft);

// The text under a plan key; empty when it is not set.
[[nodiscard]] std::string plan_text(const Draft& draft, std::string_view key);

// Fields of the plan's `allocator` that a text of PYTORCH_ALLOC_CONF sets.
[[nodiscard]] Value allocator_fields(const std::string& text);
// PYTORCH_CUDA_ALLOC_CONF and PYTORCH_ALLOC_CONF.
void read_environment(const Launch& launch, Draft& draft);

// A key that moves memory in a way that is not billed, and what is said of it. `usual`: the value with which it moves nothing.
struct LeftOut {
  std::string_view key;
  std::string_view what;
  bool usual = false;
};
void warn_of_left_out(std::span<const LeftOut> keys, KeyReader& reader, Draft& draft);

// Numbers under `keys` (blanks between), but 0, become the stage's arguments of the same names.
void take_stage_numbers(std::string_view keys, KeyReader& reader, Draft& draft);

// Pinned releases of what runs the job, from requirements and lock files in the job's folder or up to three above it.
void read_software(Draft& draft);

// The same from what the job installs itself, NAME==RELEASE, one a line.
void take_installed(const std::string& requirements, Draft& draft);

// What the framework itself pins, where nothing beside the job does.
void take_release(const std::string& program, const std::string& version, Draft& draft);

// What the job's model says where it is known: a file, a folder or a preset.
struct ModelFacts {
  std::string name;       // as the job spells it
  std::string argument;   // for read_model
  std::string shapes_of;  // the preset whose shapes it has, where the name is another checkpoint's; empty: none
  bool known = false;
  std::string model_type;
  std::string stored_dtype;        // "bf16" ...; empty: not said
  StoredWeights stored;            // as its config says, or its name ("...-bnb-4bit", "...-AWQ")
  std::int64_t max_positions = 0;  // 0: unknown
  std::int64_t hidden = 0;
  std::int64_t layers = 0;
  std::int64_t experts = 0;  // 0: it has none
  bool untied = false;       // its config says that head and embedding are two tensors
};
// Looks the job's model up (context.model goes before it); a mirror's name of a published model finds its preset, and is said in the
// assumptions once finish_draft is run.
[[nodiscard]] const ModelFacts& find_model(Draft& draft);

// Whether the job's model is known, and PEFT has no default targets of LoRA for its type.
[[nodiscard]] bool lacks_default_targets(Draft& draft);

// What a sequence holds where the job does not say it and its framework takes the model's own maximum; nothing when that is unknown.
[[nodiscard]] std::optional<std::int64_t> longest_sequence(Draft& draft);

// Cards in all: --gpus, else what the launcher or the file says, else nothing.
[[nodiscard]] std::optional<std::int64_t> world_size(const Draft& draft);
// NPROC_PER_NODE, where no launcher says how many cards there are.
void count_local_cards(const Launch& launch, Draft& draft);

// Degrees of data parallelism under two keys: with the others they are the cards in all, where nothing else says them; both make FSDP
// hybrid.
void take_data_parallel(KeyReader& reader, std::string_view replicas_key, std::string_view shards_key, Draft& draft);

// Engine, precision, storage and hardware from what the parts have gathered.
[[nodiscard]] JobFile finish_draft(Draft& draft);

}  // namespace membill::io
