// The catalogue: what membill knows, as rows. Command line help, suggestions, `membill optimizers` and tests walk these tables.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "membill/model_spec.h"
#include "membill/problem.h"
#include "membill/report.h"
#include "membill/source.h"
#include "membill/training_plan.h"
#include "membill/value.h"

namespace membill {

// Width of one element of an optimizer state.
enum class StateWidth : std::uint8_t {
  like_parameter,  // the parameter's own dtype (or the plan's moment_dtype)
  fp32,
  bf16,
  blockwise_8bit,  // 1 byte, and an fp32 scale per block
  blockwise_4bit,  // half a byte, and an fp32 scale per block
  fp8,             // 1 byte, and an fp32 scale per block
};

// How many elements a state has, from the parameter's shape.
enum class StateShape : std::uint8_t {
  full,                       // as many as the parameter
  twice,                      // two a parameter's element in one tensor
  factored_rows_and_columns,  // a matrix: rows + columns; a vector: full
  factored_of_matrices,       // a matrix: rows + columns; a vector: none
  one_per_tensor,
  low_rank,           // a projected matrix: rank x the larger side; any other tensor: full
  low_rank_factored,  // a projected matrix: rank + the larger side; any other matrix: rows + columns; a vector: full
  projector,          // a projected matrix: rank x the smaller side; any other tensor: none
  square_per_axis,    // n x n for each axis of n (up to largest_axis) of a tensor with two axes or more
  adam_mini,          // one a row of a matrix, one a norm, full for biases
};

struct OptimizerState {
  std::string_view id;       // item suffix: "m" -> optimizer.m
  std::string_view meaning;  // "first moment"
  StateWidth width = StateWidth::like_parameter;
  StateShape shape = StateShape::full;
};

// What the step makes beside the states, in the type of the states.
enum class StepTemporaries : std::uint8_t {
  none,
  one_list,  // foreach: a tensor for each parameter, all alive until the step's end
  two_lists,
  one_kept,      // loop: one tensor, alive until the next parameter's exists
  two_one_kept,  // loop: two tensors at once, the second alive until the next parameter's two exist
  two,           // loop: two tensors, gone before the next parameter's
  adafactor,     // fp32 copies, factors and updates of Transformers' Adafactor
  other,         // not modelled: billed as unknown
};

// Which gradients exist at once.
enum class GradientLife : std::uint8_t {
  whole_step,  // all, from their backward to the end of the step
  one_tensor,  // freed as soon as its parameter is updated inside the backward
  one_block,   // only one block of layers trains at a time
};

struct OptimizerRow {
  std::string_view name = {};                        // "adamw"
  std::string_view summary = {};                     // one line for people
  std::vector<std::string_view> aliases = {};        // Hugging Face's and others' names: "adamw_torch", "adamw_hf"
  std::vector<std::string_view> fused_aliases = {};  // names that also say optimizer_impl: fused
  std::vector<OptimizerState> states = {};
  StepTemporaries loop = StepTemporaries::none, foreach = StepTemporaries::none, fused = StepTemporaries::none;
  bool has_foreach = false,
       has_fused = false;             // which implementations exist; neither: its own code, optimizer_impl is ignored
                                      // and `loop` says what the step makes
  std::int64_t block = 0;             // elements per scale of block-wise states; 0 = none
  std::int64_t minimum_elements = 0;  // smaller tensors keep unquantised states of `small_width`
  StateWidth small_width = StateWidth::fp32;
  bool whole_blocks_only = false;    // so do tensors whose elements are no multiple of `block`
  bool embeddings_in_32bit = false;  // under the HF Trainer
  std::int64_t code_tables = 0;      // bytes of quantisation tables, once
  std::int64_t table_per_state = 0;  // bytes of a table beside every quantised state tensor
  bool scales_first = false;         // the scales of a tensor's states are made before their codes
  bool paged = false;                // states of tensors with paged_minimum elements or more are managed memory,
  std::int64_t paged_minimum = 0;    // outside of the allocator, and may leave the card
  bool at_construction = false;      // states exist before the first step
  bool matrices_only = false;        // 2-D hidden weights; the rest runs AdamW (Muon)
  bool fused_step_counter = false;   // 4 bytes a tensor on the card when fused
  bool on_host = false;              // CPU Adam: states and master weights on the host
  std::int64_t default_rank = 0;     // of low_rank states, where optimizer_args say none
  std::int64_t largest_axis = 0;     // of square_per_axis; longer axes have none; 0 = no limit
  GradientLife gradients = GradientLife::whole_step;
  Source source = {};
};

[[nodiscard]] std::span<const OptimizerRow> optimizers();
// By name or alias; case and '-'/'_' do not matter. nullptr: none.
[[nodiscard]] const OptimizerRow* find_optimizer(std::string_view name);
// Whether `name` is a name that also says optimizer_impl: fused ("adamw_torch_fused").
[[nodiscard]] bool names_fused_optimizer(std::string_view name);

// A storage format of base weights.
// How the weights of a matrix are packed.
enum class Packing : std::uint8_t {
  none,
  bitsandbytes,       // 4 bits, scales of blocks
  llm_int8,           // bitsandbytes' 8 bits
  gptq,               // codes in words, scales and zero points of groups of inputs, the group of each input
  awq,                // the same without the groups' list
  half_quadratic,     // HQQ
  fp8_blocks,         // a scale of each square
  rows,               // a byte a weight, a scale a row
  compressed_groups,  // compressed-tensors: codes in words, scales of groups
  micro_blocks        // mxfp4, nvfp4: 4-bit floats, one-byte scales
};

struct WeightFormatRow {
  WeightFormat format = WeightFormat::bf16;
  std::string_view name = {};  // "nf4", "gptq-int4"
  std::string_view summary = {};
  std::vector<std::string_view> aliases = {};
  int bits = 16;           // of one stored weight of a quantised linear
  bool quantized = false;  // only linears are stored so; the rest stays 16-bit
  bool trainable = true;   // full fine-tuning possible
  bool adapters = true;    // Transformers trains adapters over it
  Packing packing = Packing::none;
  std::int64_t group = 0;        // weights per scale; 0 = none, or one scale a row
  std::string_view scales = {};  // what is stored beside the bits, in words
  std::string_view whole = {};   // which modules are not stored so, in words
  std::string_view use = {};     // what one matrix expands to while it is used, in words
  Source source = {};
};
[[nodiscard]] std::span<const WeightFormatRow> weight_formats();
[[nodiscard]] const WeightFormatRow& weight_format(WeightFormat format);
// By name or alias; case and '-'/'_' do not matter. nullptr: none.
[[nodiscard]] const WeightFormatRow* find_weight_format(std::string_view name);

// A precision regime: which copies of a parameter exist (bytes per parameter).
struct RegimeRow {
  Precision precision = Precision::amp_bf16;
  std::string_view name = {};  // "amp-bf16"
  std::string_view summary = {};
  std::vector<std::string_view> aliases = {};  // "bf16-mixed" ...
  DType compute = DType::bf16;                 // of linears and matmuls
  std::optional<WeightFormat> storage = {};    // the one storage of unquantised weights under it; none: any
  bool autocast = false;                       // ops are cast one by one, weights keep their storage
  bool master = false;                         // an fp32 master copy beside 16-bit weights
  Source source = {};
};
[[nodiscard]] std::span<const RegimeRow> regimes();
[[nodiscard]] const RegimeRow& regime(Precision precision);
// By name or alias; case and '-'/'_' do not matter. nullptr: none ("bf16" is none: it may mean amp-bf16, pure-bf16 or master-bf16).
[[nodiscard]] const RegimeRow* find_regime(std::string_view name);

// A model family: turns a resolved Hugging Face config into a ModelSpec.
struct Family {
  std::string_view model_type;  // "llama"
  std::string_view class_name;  // "LlamaForCausalLM"
  // Fills the spec from `config`, every class default present. Adds a problem per missing or impossible key.
  ModelSpec (*describe)(const Value& config, Problems& problems);
};
// The config with the class defaults of the keys that it omits: `defaults` is a file of data/defaults, whose "defaults" map holds
// them. A key that the config holds under another spelling (n_embd for hidden_size) keeps it; an explicit null stays null.
[[nodiscard]] Value with_class_defaults(const Value& config, const Value& defaults);
// Labels of a sequence classifier, where `architectures` names one ("LlamaForSequenceClassification"); 0: another class.
[[nodiscard]] std::int64_t classifier_labels(const Value& config);
[[nodiscard]] std::span<const Family> families();
[[nodiscard]] const Family* find_family(std::string_view model_type);
// PEFT's default LoRA targets of a model type; empty: none.
[[nodiscard]] std::span<const std::string_view> default_lora_targets(std::string_view model_type);

// One field of the plan: the one list behind job files, flags, --set, sweeps, and the report's `plan`.
struct PlanFieldRow {
  std::string key = {};     // dotted job-file key: "adapter.rank"
  std::string flag = {};    // "--rank"; empty: by --set only
  std::string help = {};    // one line
  std::string values = {};  // what may stand there: words with blanks between ("fp32 bf16", "true false"); a range,
                            // which begins with a digit ("1 or more"); or "name", "names", "a map"
  // Reads `value` into the plan; returns an empty string or what is wrong ("needs a whole number of at least 1").
  std::string (*read)(const Value& value, TrainingPlan& plan, std::string& hint) = nullptr;
  // The field as JSON text.
  std::string (*write)(const TrainingPlan& plan) = nullptr;
  bool free_map = false;  // a map of the user's own keys: "software.torch" belongs to the row "software"
  bool part = false;      // its value is written with the row it is a part of ("checkpointing.every")
};
// In the order in which values are applied: `method: qlora` before `weights`, `optimizer` before `optimizer_impl`.
[[nodiscard]] std::span<const PlanFieldRow> plan_fields();
// By dotted key or by flag; nullptr: none.
[[nodiscard]] const PlanFieldRow* find_plan_field(std::string_view key_or_flag);

// A flag's value: null, true and false, whole numbers and reals as such, everything else as text.
[[nodiscard]] Value flag_value(std::string_view text);

// Applies a `plan` tree (the native job file without model and hardware) onto `plan`. Unknown keys and wrong values are problems
// that name `file`. The order of the keys does not matter. A precision without `weights` beside it sets the storage of an
// unquantised base where the regime allows one only (pure-bf16: bf16).
void read_plan(const Value& tree, const std::string& file, TrainingPlan& plan, Problems& problems);

// One setting of the command line: a flag ("--rank") or a dotted key (of --set), and its text.
struct PlanSetting {
  std::string key;
  std::string text;
};
// Applies settings onto `plan`, in whatever order they were typed; problems name `file` and the key as typed.
void read_plan_settings(const std::vector<PlanSetting>& settings, const std::string& file, TrainingPlan& plan,
                        Problems& problems);

// The resolved plan, a key and JSON text each, for a report. Keys of an engine that were not given are left out.
[[nodiscard]] std::vector<PlanField> write_plan_fields(const TrainingPlan& plan);

// A generic model of llama's shape (--params 7e9 --hidden 4096 --layers 32 ...). Missing sizes follow llama's proportions where a
// total is given; with only `params`, dimensions are unknown.
struct GenericModel {
  std::optional<std::int64_t> params, hidden, layers, heads, kv_heads, head_dim, intermediate, vocab;
};
[[nodiscard]] ModelSpec generic_model(const GenericModel& given, Problems& problems);

}  // namespace membill
