#include <string>

#include "estimate/plan_warnings.h"
#include "membill/catalog.h"
#include "membill/estimate.h"
#include "support/catch.h"

using namespace membill;

namespace {

TensorSpec weight(const char* name, TensorRole role, ModuleKind module) {
  TensorSpec tensor;
  tensor.name = name;
  tensor.shape = {64, 64};
  tensor.role = role;
  tensor.module = module;
  return tensor;
}

// Two layers of 8 query and 4 key heads, learned positions for 128 tokens.
ModelSpec small_model() {
  ModelSpec model;
  model.name = "small";
  model.model_type = "llama";
  model.vocab = 100;
  model.hidden = 64;
  model.layers = 4;
  model.max_positions = 128;
  LayerKind layer;
  layer.attention.heads = 8;
  layer.attention.kv_heads = 4;
  layer.attention.head_dim = 8;
  layer.mlp.intermediate = 192;
  layer.tensors = {weight("model.layers.*.self_attn.q_proj.weight", TensorRole::attention, ModuleKind::linear),
                   weight("model.layers.*.self_attn.v_proj.weight", TensorRole::attention, ModuleKind::linear),
                   weight("model.layers.*.input_layernorm.weight", TensorRole::norm, ModuleKind::norm)};
  LayerKind ends;
  ends.tensors = {weight("model.embed_tokens.weight", TensorRole::embedding, ModuleKind::embedding)};
  Section embedding;
  embedding.name = "embedding";
  embedding.kinds = {ends};
  Section layers;
  layers.name = "layers";
  layers.kinds = {layer};
  layers.layer_kinds = {0, 0, 0, 0};
  model.sections = {embedding, layers};
  return model;
}

struct Case {
  ModelSpec model = small_model();
  TrainingPlan plan;
  Hardware hardware;
  [[nodiscard]] std::string text() const {
    std::string all;
    for (const Problem& problem : validate(model, plan, hardware)) all += to_text(problem) + "\n";
    return all;
  }
};

template <typename Change>
std::string found(Change change) {
  Case c;
  change(c);
  return c.text();
}

}  // namespace

TEST_CASE("the defaults are a valid job", "[validate]") { CHECK(Case().text() == ""); }

TEST_CASE("what this version does not bill is one line each", "[validate]") {
  CHECK(found([](Case& c) {
          c.plan.engine = Engine::deepspeed;
          c.plan.precision = Precision::pure_bf16;
        }) ==
        "precision: pure-bf16 under DeepSpeed is not billed yet (amp-bf16, amp-fp16, master-bf16, master-fp16, fp32 "
        "over fp32 weights)\n");
  CHECK(found([](Case& c) {
          c.plan.method = Method::prefix;
          c.plan.checkpointing.mode = Checkpointing::full;
        }) == "checkpointing: PEFT's prefix tuning does not work with gradient checkpointing (none)\n");
  CHECK(found([](Case& c) {
          c.plan.implementation = Implementation::unsloth;
          c.plan.compile = true;
        }) ==
        "compile: true with implementation unsloth is not billed yet (true with implementation hf, liger or "
        "torchtitan, false)\n");
  CHECK(found([](Case& c) {
          c.plan.implementation = Implementation::torchtitan;
          c.plan.method = Method::lora;
        }) ==
        "implementation: lora with torchtitan is not billed yet (full training of fp32 or bf16 weights with engine "
        "torch, ddp or fsdp2)\n");
  CHECK(found([](Case& c) {
          c.plan.implementation = Implementation::torchtitan;
          c.plan.stage = Stage::dpo;
        }).starts_with("stage: dpo with torchtitan is not billed yet"));
  CHECK(found([](Case& c) {
          c.plan.method = Method::lora;
          c.plan.weights = WeightFormat::mxfp4;
        }) ==
        "weights: mxfp4 in training is not billed yet (fp32, bf16, fp16, int8, nf4, fp4; fp8, gptq, awq and hqq with "
        "adapters on one card, ddp or ZeRO below stage 3; gptq, awq and hqq with FSDP2 and ZeRO-3, too)\n");
  CHECK(found([](Case& c) {
          c.plan.checkpointing.mode = Checkpointing::selective;
          c.plan.checkpointing.selective = {"mlp"};
        }) ==
        "checkpointing: selective mlp is not billed yet (none, full, selective:ops: with aten.mm, addmm, bmm, "
        "_grouped_mm, "
        "_softmax, silu, gelu, _scaled_dot_product_flash_attention, _scaled_dot_product_efficient_attention; with "
        "engine megatron "
        "selective:core_attn,mlp,moe,layernorm,moe_act,mla_up_proj,shared_experts)\n");
}

TEST_CASE("preference stages want a causal language model", "[validate]") {
  CHECK(found([](Case& c) {
          c.model.model_type = "bert";
          c.plan.stage = Stage::dpo;
        }) == "stage: dpo is for causal language models, not bert (sft)\n");
}

TEST_CASE("ranges of a plan that no reader has seen", "[validate]") {
  CHECK(found([](Case& c) { c.plan.batch = 0; }) == "batch: must be at least 1, not 0\n");
  CHECK(found([](Case& c) { c.plan.seq = -3; }) == "seq: must be at least 1, not -3\n");
  CHECK(found([](Case& c) { c.plan.accumulate = 0; }) == "accumulate: must be at least 1, not 0\n");
  CHECK(found([](Case& c) { c.plan.adapter.rank = 0; }) == "adapter.rank: must be at least 1, not 0\n");
  CHECK(found([](Case& c) { c.plan.adapter.dropout = 1.0; }) == "adapter.dropout: must be at least 0 and below 1\n");
  CHECK(found([](Case& c) { c.plan.dropout = -0.5; }) == "dropout: must be at least 0 and below 1\n");
  CHECK(found([](Case& c) { c.plan.imbalance = 0.5; }) == "imbalance: must be at least 1\n");
  CHECK(found([](Case& c) { c.plan.batch = c.plan.seq = 1'000'000'000; }) ==
        "batch: batch times seq is too large (2^40 tokens at most)\n");
  CHECK(found([](Case& c) { c.plan.completion = 4096; }) == "completion: exceeds seq, 2048\n");
  CHECK(found([](Case& c) { c.plan.checkpointing.mode = Checkpointing::selective; }) ==
        "checkpointing: selective needs names of what to recompute (selective:core_attn)\n");
}

TEST_CASE("storage, precision and method must agree", "[validate]") {
  CHECK(found([](Case& c) { c.plan.weights = WeightFormat::nf4; }) ==
        "weights: nf4 weights cannot be trained by method full (method lora, or weights bf16)\n");
  CHECK(found([](Case& c) { c.plan.precision = Precision::fp32; }) ==
        "weights: bf16 contradicts precision fp32, which stores fp32 (weights fp32)\n");
  CHECK(found([](Case& c) {
          c.plan.precision = Precision::pure_bf16;
          c.plan.weights = WeightFormat::fp32;
        }) == "weights: fp32 contradicts precision pure-bf16, which stores bf16 (weights bf16)\n");
  CHECK(found([](Case& c) {
          c.plan.method = Method::freeze;
          c.plan.freeze.trainable_layers = 5;
        }) == "freeze.trainable_layers: 5 exceeds the model's 4 layers\n");
  const auto reentrant_freeze = [](const char* transformers) {
    return found([transformers](Case& c) {
      c.plan.method = Method::freeze;
      c.plan.freeze.trainable_layers = 1;
      c.plan.checkpointing.mode = Checkpointing::full;
      c.plan.checkpointing.reentrant = true;
      c.plan.software["transformers"] = transformers;
    });
  };
  CHECK(reentrant_freeze("4.57.6") ==
        "checkpointing.reentrant: a reentrant checkpoint of layers whose input needs no gradient makes none: frozen "
        "layers end the "
        "chain (reentrant false)\n");
  CHECK(reentrant_freeze("5.0.0").empty());
  CHECK(found([](Case& c) {
          c.plan.method = Method::lora;
          c.plan.weights = WeightFormat::nf4;
          c.plan.precision = Precision::pure_bf16;
        }) == "");
  CHECK(found([](Case& c) { c.plan.kbit_prepare = true; }) == "");
}

TEST_CASE("a model of which only the size is known", "[validate]") {
  const auto unknown = [](Case& c) {
    c.model = ModelSpec();
    c.model.dimensions_known = false;
    c.model.stated_parameters = 7'000'000'000;
  };
  CHECK(found(unknown) == "");
  CHECK(found([&](Case& c) {
          unknown(c);
          c.plan.method = Method::lora;
        }) == "method: lora needs a model whose modules are known (a config.json, or --hidden and --layers)\n");
  CHECK(found([](Case& c) { c.model = ModelSpec(); }) == "model: has no layers\n");
}

TEST_CASE("optimizers that cannot do what is asked", "[validate]") {
  CHECK(found([](Case& c) { c.plan.optimizer = "adamx"; }) ==
        "optimizer: has the unknown value 'adamx' (see membill optimizers)\n");
  CHECK(found([](Case& c) {
          c.plan.optimizer = "adagrad";
          c.plan.optimizer_impl = OptimizerImpl::fused;
        }) == "optimizer_impl: adagrad has no fused implementation (foreach or loop)\n");
  CHECK(found([](Case& c) {
          c.plan.optimizer = "adafactor";
          c.plan.optimizer_impl = OptimizerImpl::fused;
        }) == "");
  CHECK(found([](Case& c) {
          c.plan.optimizer = "galore-adamw";
          c.plan.optimizer_args["rank"] = "-1";
        }) == "optimizer_args.rank: needs a whole number, 1 or more, not '-1'\n");
  CHECK(found([](Case& c) {
          c.plan.optimizer_in_backward = true;
          c.plan.accumulate = 2;
        }) ==
        "accumulate: optimizer_in_backward updates after every micro-batch, nothing can accumulate (accumulate 1)\n"
        "clip: needs all gradients at once, optimizer_in_backward frees each (clip false)\n");
}

TEST_CASE("kernels that do not exist", "[validate]") {
  CHECK(found([](Case& c) {
          c.plan.attention = AttentionKernel::flash;
          c.plan.precision = Precision::fp32;
          c.plan.weights = WeightFormat::fp32;
        }) == "attention: flash has no fp32 kernel (sdpa, or precision amp-bf16)\n");
  CHECK(found([](Case& c) {
          c.plan.attention = AttentionKernel::mem_efficient;
          c.model.sections[1].kinds[0].attention.head_dim = 52;
        }) == "attention: mem-efficient in 16-bit needs a head size that is a multiple of 8, not 52 (flash or sdpa)\n");
  CHECK(
      found([](Case& c) {
        c.plan.precision = Precision::fp8;
        c.hardware.gpu.emplace();
        c.hardware.gpu->name = "NVIDIA A100 80GB";
        c.hardware.gpu->fp8 = false;
      }) ==
      "precision: fp8 needs a card with fp8 units, NVIDIA A100 80GB has none (amp-bf16)\n"
      "precision: fp8 is not billed yet (fp32, amp-bf16, amp-fp16, pure-bf16, pure-fp16, master-bf16, master-fp16)\n");
}

TEST_CASE("modules that the model does not have", "[validate]") {
  const auto lora = [](std::vector<std::string> targets) {
    return found([&](Case& c) {
      c.plan.method = Method::lora;
      c.plan.adapter.targets = std::move(targets);
    });
  };
  CHECK(lora({}) == "");
  CHECK(lora({"all-linear"}) == "");
  CHECK(lora({"q_proj", "self_attn.v_proj", "embed_tokens"}) == "");
  CHECK(lora({"q_porj"}) == "adapter.targets: 'q_porj' is no module of the model (q_proj)\n");
  CHECK(lora({"proj"}) == "adapter.targets: 'proj' is no module of the model (one of embed_tokens, q_proj, v_proj)\n");
  CHECK(lora({"c_attn_x_y_z"}) ==
        "adapter.targets: 'c_attn_x_y_z' is no module of the model (one of embed_tokens, q_proj, v_proj)\n");
  CHECK(lora({"input_layernorm"}) ==
        "adapter.targets: 'input_layernorm' is no module that can have an adapter (one of embed_tokens, q_proj, "
        "v_proj)\n");
  CHECK(found([](Case& c) {
          c.plan.method = Method::lora;
          c.model.model_type = "unheard_of";
        }) == "adapter.targets: PEFT has no default targets for model type 'unheard_of' (all-linear)\n");
  CHECK(found([](Case& c) {
          c.plan.method = Method::lora;
          c.plan.adapter.modules_to_save = {"embed_tokens", "lm_haed"};
        }) ==
        "adapter.modules_to_save: 'lm_haed' is no module of the model (one of embed_tokens, q_proj, v_proj, "
        "input_layernorm)\n");
  CHECK(found([](Case& c) {
          c.plan.method = Method::freeze;
          c.plan.freeze.trainable_modules = {"self_attn", "embed_tokns"};
        }) == "freeze.trainable_modules: 'embed_tokns' is no module of the model (embed_tokens)\n");

  // std::regex recurses over a pattern: this one would overflow the stack.
  const std::string problem = found([](Case& c) {
    c.plan.method = Method::freeze;
    c.plan.freeze.trainable_modules = {std::string(200000, '(')};
  });
  CHECK(problem.starts_with("freeze.trainable_modules: '(((("));
  CHECK(problem.ends_with("' is longer than 1000 characters\n"));
}

TEST_CASE("an engine must be able to shard as asked", "[validate]") {
  CHECK(found([](Case& c) { c.plan.sharding.zero = 2; }) ==
        "sharding.zero: ZeRO needs another engine than torch (engine deepspeed)\n");
  CHECK(found([](Case& c) { c.plan.sharding.fsdp = "full_shard"; }) ==
        "sharding.fsdp: full_shard needs another engine than torch (engine fsdp)\n");
  CHECK(found([](Case& c) { c.plan.sharding.offload = "optimizer"; }) ==
        "sharding.offload: offloading optimizer needs another engine than torch (engine deepspeed)\n");
  CHECK(found([](Case& c) { c.plan.sharding.shard_group = 4; }) ==
        "sharding.shard_group: is for fsdp hybrid_shard only (sharding.fsdp hybrid_shard)\n"
        "sharding.shard_group: 4 does not divide the 1 data-parallel cards\n");
  CHECK(found([](Case& c) {
          c.plan.engine = Engine::deepspeed;
          c.plan.sharding.zero = 2;
          c.plan.sharding.offload = "optimizer+param";
        }) == "sharding.offload: parameters can be offloaded by ZeRO-3 only (sharding.zero 3)\n");
  CHECK(found([](Case& c) {
          c.plan.engine = Engine::megatron;
          c.plan.sharding.zero = 3;
        }) == "sharding.zero: Megatron shards the optimizer only (sharding.zero 1)\n");
  CHECK(found([](Case& c) { c.plan.implementation = Implementation::megatron; }) ==
        "implementation: megatron needs engine megatron or deepspeed (engine megatron)\n");
  CHECK(found([](Case& c) {
          c.plan.engine = Engine::megatron;
          c.plan.implementation = Implementation::liger;
        }) == "implementation: liger does not run under Megatron (megatron)\n");
  CHECK(found([](Case& c) {
          c.plan.engine = Engine::megatron;
          c.model.model_type = "bloom";
        }) == "engine: Megatron's GPT is not modelled for model type bloom (engine fsdp2)\n");
  CHECK(found([](Case& c) {
          c.plan.engine = Engine::deepspeed;
          c.plan.precision = Precision::master_bf16;
          c.plan.sharding.zero = 3;
          c.plan.sharding.engine_keys["zero_hpz_partition_size"] = "3";
          c.hardware.count = 4;
        }) == "sharding.zero_hpz_partition_size: 3 does not divide the 4 cards\n");
}

TEST_CASE("degrees must divide", "[validate]") {
  const auto parallel = [](ParallelPlan p, std::int64_t count) {
    return found([&](Case& c) {
      c.plan.engine = Engine::megatron;
      c.plan.parallel = p;
      c.hardware.count = count;
    });
  };
  ParallelPlan p;
  p.tp = 4;
  CHECK(parallel(p, 8).empty());
  CHECK(parallel(p, 6) == "hardware.count: 6 cards are no multiple of tp x pp x cp x ulysses, 4\n");
  p.tp = 8;
  CHECK(parallel(p, 8) ==
        "parallel.tp: 8 does not divide the 4 key and value heads\n"
        "parallel.tp: 8 does not divide the 100 rows of the vocabulary (vocab_pad_to 1024)\n");
  p = ParallelPlan();
  p.pp = 3;
  CHECK(parallel(p, 3) ==
        "parallel.pp: 3 does not divide the 4 layers (sharding.decoder_first_pipeline_num_layers, "
        "sharding.decoder_last_pipeline_num_layers)\n");
  p.pp = 2;
  p.virtual_pp = 3;
  CHECK(parallel(p, 2) == "parallel.virtual_pp: 3 does not divide the 2 layers of a stage\n");
  p.virtual_pp = 2;
  CHECK(
      parallel(p, 2) ==
      "accumulate: an interleaved pipeline needs as many micro-batches as stages, 2, not 1 (parallel.virtual_pp 1)\n");
  p = ParallelPlan();
  p.virtual_pp = 2;
  CHECK(parallel(p, 1) == "parallel.virtual_pp: needs a pipeline of two stages or more (parallel.pp 2)\n");
  p = ParallelPlan();
  p.sp = true;
  CHECK(parallel(p, 1) == "parallel.sp: sequence parallelism needs tensor parallelism (parallel.tp 2)\n");
  p = ParallelPlan();
  p.cp = 3;
  CHECK(parallel(p, 3) == "parallel.cp: needs a seq that is a multiple of 2 x cp, 6\n");
  p = ParallelPlan();
  p.ep = 2;
  CHECK(parallel(p, 2) == "parallel.ep: the model has no experts (parallel.ep 1)\n");
  p = ParallelPlan();
  p.tp = p.pp = p.cp = 1'000'000'000;
  CHECK(parallel(p, 1).find("hardware.count: 1 card is no multiple of tp x pp x cp x ulysses\n") != std::string::npos);
}

TEST_CASE("the vocabulary and the ends of a pipeline", "[validate]") {
  CHECK(found([](Case& c) {
          c.plan.engine = Engine::megatron;
          c.plan.parallel.tp = 2;
          c.hardware.count = 2;
          c.model.vocab = 1001;
        }) == "parallel.tp: 2 does not divide the 1001 rows of the vocabulary (vocab_pad_to 256)\n");
  const auto ends = [](const char* first, std::int64_t stages) {
    return found([&](Case& c) {
      c.plan.engine = Engine::megatron;
      c.plan.parallel.pp = stages;
      c.hardware.count = stages;
      c.plan.sharding.engine_keys["decoder_first_pipeline_num_layers"] = first;
    });
  };
  CHECK(ends("2", 3).empty());
  CHECK(ends("1", 3) ==
        "parallel.pp: the layers between the first and the last stage do not come out even: 4 layers, 3 stages\n");
}

TEST_CASE("cards and nodes", "[validate]") {
  CHECK(found([](Case& c) { c.hardware.count = 8; }) ==
        "hardware.count: engine torch runs on one card, not 8 (engine ddp)\n");
  CHECK(found([](Case& c) { c.hardware.count = 0; }) == "hardware.count: must be at least 1, not 0\n");
  CHECK(found([](Case& c) { c.hardware.nodes = 0; }) == "hardware.nodes: must be at least 1, not 0\n");
  CHECK(found([](Case& c) { c.hardware.nodes = 2; }) == "hardware.nodes: 2 does not divide the 1 card\n");
  CHECK(found([](Case& c) {
          c.plan.engine = Engine::ddp;
          c.hardware.count = 8;
          c.hardware.nodes = 3;
        }) == "hardware.nodes: 3 does not divide the 8 cards\n");
  CHECK(found([](Case& c) { c.hardware.others_use = Bytes(-1); }) == "hardware.others_use: must not be negative\n");
}

TEST_CASE("what is odd but valid is a warning", "[validate]") {
  TrainingPlan plan;
  ModelSpec model = small_model();
  plan.seq = 128;
  CHECK(plan_warnings(model, plan).empty());
  plan.seq = 200;
  CHECK(plan_warnings(model, plan) ==
        std::vector<std::string>{
            "seq 200 exceeds the model's 128 positions: the memory is right, the model was not trained for it"});
  model.position = PositionKind::learned;
  CHECK(plan_warnings(model, plan) ==
        std::vector<std::string>{
            "seq 200 exceeds the model's 128 positions: its position table has no row for them, a real run "
            "stops with an index error"});
  plan.seq = 1;
  plan.precision = Precision::amp_fp16;
  plan.weights = WeightFormat::fp16;
  CHECK(plan_warnings(model, plan) ==
        std::vector<std::string>{
            "PyTorch's gradient scaler refuses fp16 gradients: amp-fp16 needs fp32 weights to train whole"});
}
