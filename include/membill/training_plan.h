// TrainingPlan: how the model is trained. One field per key of the native job file (docs/job-file.md); each has the same default here,
// in a job file and on the command line. `null` in a job file is an empty optional.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "membill/units.h"
#include "membill/weight_format.h"

namespace membill {

// classification: AutoModelForSequenceClassification, a score of stage_args.num_labels rows for a head (2 by default).
// distill: the logits are compared with those of ModelSpec::teacher, which does not train.
enum class Stage : std::uint8_t {
  pretrain,
  sft,
  classification,
  reward,
  dpo,
  orpo,
  simpo,
  kto,
  grpo,
  ppo,
  distill,
  inference
};
enum class Method : std::uint8_t {
  full,
  freeze,
  lora,
  dora,
  adalora,
  vera,
  ia3,
  loha,
  lokr,
  oft,
  prompt,
  prefix,
  ptuning
};
// Precision regime (catalogue rows: `membill formats`, src/catalog/regimes).
enum class Precision : std::uint8_t { fp32, amp_bf16, amp_fp16, pure_bf16, pure_fp16, master_bf16, master_fp16, fp8 };
enum class OptimizerImpl : std::uint8_t { loop, foreach, fused };
enum class Checkpointing : std::uint8_t { none, full, selective };
enum class AttentionKernel : std::uint8_t { sdpa, flash, mem_efficient, sdpa_math, eager, fused_softmax };
enum class LossKind : std::uint8_t { native, upcast, chunked, fused };
enum class Loop : std::uint8_t { trainer, plain };
enum class Implementation : std::uint8_t { hf, liger, unsloth, megatron, torchtune, torchtitan, litgpt };
enum class Engine : std::uint8_t { torch, ddp, deepspeed, fsdp, fsdp2, megatron };
enum class AdapterDType : std::uint8_t { automatic, fp32, bf16, fp16 };

// Adapters (every method but full and freeze).
struct AdapterPlan {
  std::int64_t rank = 8;              // >= 1
  std::optional<std::int64_t> alpha;  // no effect on memory
  std::vector<std::string> targets;  // module names or patterns; "all-linear"; empty = PEFT's default of the model type
  std::vector<std::string> exclude;  // modules that get none although a target matches
  std::vector<std::int64_t> layers;  // layers that get adapters; empty = all (layers_to_transform)
  std::map<std::string, std::int64_t> rank_pattern;  // other ranks, by name or pattern
  bool lora_bias = false;                            // LoRA's second matrix has a bias
  double dropout = 0.0;                              // 0 <= p < 1
  AdapterDType dtype = AdapterDType::automatic;      // automatic: fp32 over 16-bit and quantised bases, as PEFT
  std::vector<std::string> modules_to_save;          // trained whole, as copies
  bool rslora = false;                               // no effect on memory
  std::optional<std::int64_t> init_rank;             // AdaLoRA's first rank; default 12
  std::int64_t virtual_tokens = 20;                  // prompt, prefix, p-tuning
  std::optional<std::int64_t> encoder_hidden;        // width of the encoder of prefix and p-tuning; none: the model's
  bool prefix_projection = false;                    // prefix: an MLP makes keys and values
  std::optional<std::int64_t> block_size;        // OFT: width of a block, default 32; 0: `rank` says how many blocks
  std::optional<std::int64_t> decompose_factor;  // LoKr: the smaller factor's length; none: near the square root
  bool decompose_both = false;                   // LoKr: the smaller factor may be low-rank too
  std::int64_t trainable_tokens = 0;             // rows of the embedding that train (trainable_token_indices)
};

// Which parameters train under method freeze.
struct FreezePlan {
  std::int64_t trainable_layers = 2;           // the last n layers of the stack
  std::vector<std::string> trainable_modules;  // further module name patterns that train
};

struct CheckpointPlan {
  Checkpointing mode = Checkpointing::none;
  bool reentrant = false;  // torch.utils.checkpoint's use_reentrant
  std::int64_t every = 1;  // checkpoint every n-th layer; >= 1
  bool offload = false;    // boundaries live on the host
  std::vector<std::string>
      selective;       // Megatron's names of modules that are recomputed; or "ops:aten.mm,...": operators whose
                       // results are kept (torch.utils.checkpoint.create_selective_checkpoint_contexts)
  std::string method;  // Megatron: uniform, block; empty = none said
  std::optional<std::int64_t> layers;  // Megatron: recompute_num_layers
};

struct ShardingPlan {
  std::int64_t zero = 0;                           // ZeRO stage 0-3; Megatron's distributed optimizer is 1
  std::string fsdp = "none";                       // none full_shard shard_grad_op hybrid_shard no_shard
  std::optional<std::int64_t> shard_group;         // cards of a hybrid group
  std::string offload = "none";                    // none optimizer param optimizer+param nvme
  std::map<std::string, std::string> engine_keys;  // the engine's own keys as written, "reduce_bucket_size" -> "auto"
};

struct ParallelPlan {
  std::int64_t tp = 1, pp = 1, virtual_pp = 1, cp = 1, ulysses = 1, ep = 1, expert_tp = 1;  // degrees, >= 1
  bool sp = false;  // sequence parallel (with tp)
};

struct AllocatorPlan {
  bool expandable_segments = false;
  std::optional<std::int64_t> max_split_size_mb;
  std::optional<double> garbage_collection_threshold;
  std::optional<std::string> roundup_power2_divisions;  // as PYTORCH_ALLOC_CONF spells it
};

// The evaluation between training steps, as Hugging Face's Trainer runs it.
struct EvaluationPlan {
  std::optional<std::int64_t> batch;    // sequences of an evaluation batch, >= 1; none: the job does not evaluate
  std::optional<std::int64_t> samples;  // sequences of one rank's share of the evaluation set; none: two batches
  bool keep_logits = false;             // metrics are computed from the logits of all samples
  std::optional<std::int64_t> accumulation_steps;  // batches after which kept logits go to the host; none: at the end
  bool gradients = false;                          // a hand-written loop without torch.no_grad()
};

// The checkpoint that is saved between training steps.
struct SavePlan {
  std::string state = "none";  // none: the job saves none; full: the whole state; sharded: each rank its part
  bool optimizer = true;       // with the optimizer's states
};

// Images of the batch, of a multimodal model. Their tokens are part of `seq`.
struct VisionPlan {
  std::int64_t images = 0;                              // of each sequence; 0: the batch is text
  std::int64_t width = 0, height = 0;                   // of an image, pixels; 0: not said
  std::optional<std::int64_t> min_pixels, max_pixels;   // that an image is scaled to; none: what the processor does
  bool freeze_tower = false, freeze_projector = false;  // of full training; adapters freeze both
};

// Stage inference: what serves the model.
struct InferencePlan {
  std::string engine = "transformers";  // transformers vllm sglang lmdeploy
  std::string kv_cache = "auto";  // storage of keys and values: auto (as the model computes), fp16, bf16, fp8, int8
  std::optional<double> memory_fraction;  // of the card, for the engine; 0 < x <= 1; none: the engine's default
  std::int64_t block = 16;                // tokens of a page of the cache, >= 1
};

// Which of Liger's kernels run, under implementation liger; of the loss, `loss` says which one.
struct LigerPlan {
  bool rope = true, rms_norm = true;
  bool swiglu = true;         // or GeGLU
  bool cross_entropy = true;  // over whole logits or fused with the head; false: Transformers' own loss
};

struct TrainingPlan {
  Stage stage = Stage::sft;
  Method method = Method::full;
  AdapterPlan adapter;
  FreezePlan freeze;
  WeightFormat weights = WeightFormat::bf16;
  bool double_quant = true;  // nf4, fp4: the scales are quantised too
  QuantizationPlan quantization;
  bool kbit_prepare = true;  // PEFT's prepare_model_for_kbit_training (quantised bases only)
  Precision precision = Precision::amp_bf16;
  std::optional<DType> gradient_dtype;  // none: what the regime says
  std::optional<DType> moment_dtype;    // none: what the regime and the optimizer say
  std::string optimizer = "adamw";      // a row of optimizers()
  OptimizerImpl optimizer_impl = OptimizerImpl::foreach;
  std::map<std::string, std::string> optimizer_args;  // rank, update_proj_gap ...
  bool optimizer_in_backward = false;
  std::int64_t batch = 1;       // micro-batch of one data-parallel rank, sequences
  std::int64_t seq = 2048;      // tokens of a sequence
  std::int64_t accumulate = 1;  // micro-batches per step
  bool varied_lengths = false;  // padded to the longest of each batch
  CheckpointPlan checkpointing;
  AttentionKernel attention = AttentionKernel::sdpa;
  bool attention_mask = false;   // a padding mask that cannot be dropped is passed
  std::optional<LossKind> loss;  // none: what the implementation does
  std::int64_t loss_chunk = 0;   // rows of a chunk, for chunked
  Loop loop = Loop::trainer;
  bool clip = true;           // gradient clipping by norm
  bool keep_outputs = false;  // the loop's variables hold the logits during backward
  Implementation implementation = Implementation::hf;
  LigerPlan liger;
  bool compile = false;
  Engine engine = Engine::torch;
  ShardingPlan sharding;
  ParallelPlan parallel;
  AllocatorPlan allocator;
  std::optional<double> dropout;  // overrides the config's dropouts
  EvaluationPlan evaluation;
  SavePlan save;
  InferencePlan inference;
  VisionPlan vision;
  std::optional<std::int64_t> vocab_pad_to;
  double imbalance = 1.0;  // tokens of the fullest expert over the mean
  bool packing = false;
  bool padding_free = false;
  std::map<std::string, std::string> software;  // torch, transformers, peft, trl, deepspeed, megatron-core -> version
  // Preference stages, and those that train on what they generate (grpo, ppo): there a row is prompt and completion, together `seq`.
  std::optional<std::int64_t>
      completion;  // tokens of `seq` that count; none: all (grpo, ppo: what the prompt leaves, or half)
  std::optional<std::int64_t> prompt;       // tokens of the prompt
  std::optional<std::int64_t> generations;  // completions of one prompt
  std::optional<std::string> reference;     // model none precompute; none said: what the stage does
  std::optional<double> beta;
  std::optional<std::string> teacher;             // stage distill: the name of ModelSpec::teacher
  std::map<std::string, std::string> stage_args;  // further keys, as TRL spells them
};

}  // namespace membill
