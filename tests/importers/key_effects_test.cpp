// Keys that move memory: each is read, or a warning says what is not billed of it.
#include <algorithm>
#include <string>

#include "io/importers/importer.h"
#include "membill/catalog.h"
#include "support/catch.h"

namespace membill::importers_test {
namespace {

struct Read {
  io::JobFile job;
  TrainingPlan plan;
  std::string problem;

  [[nodiscard]] bool warns_of(std::string_view word) const { return holds(job.warnings, word); }
  [[nodiscard]] bool assumes(std::string_view word) const { return holds(job.assumptions, word); }
  [[nodiscard]] std::string engine_key(const std::string& key) const {
    const auto found = plan.sharding.engine_keys.find(key);
    return found == plan.sharding.engine_keys.end() ? std::string() : found->second;
  }
  [[nodiscard]] std::string stage_arg(const std::string& key) const {
    const auto found = plan.stage_args.find(key);
    return found == plan.stage_args.end() ? std::string() : found->second;
  }
  [[nodiscard]] io::KeyState state_of(const std::string& key) const {
    const auto found = std::find_if(job.records.begin(), job.records.end(),
                                    [&](const io::KeyRecord& record) { return record.key == key; });
    REQUIRE(found != job.records.end());
    return found->state;
  }

 private:
  static bool holds(const std::vector<std::string>& lines, std::string_view word) {
    return std::any_of(lines.begin(), lines.end(),
                       [&](const std::string& line) { return line.find(word) != std::string::npos; });
  }
};

Read read(const std::string& text, const std::string& file = "job.yaml") {
  Read result;
  Problems problems;
  try {
    result.job = io::import_text(text, file, "", {}, problems);
    read_plan(result.job.plan, result.job.file, result.plan, problems);
  } catch (const InputError& error) {
    for (const Problem& problem : error.problems()) problems.add(problem);
  }
  if (!problems.empty()) result.problem = to_text(problems.list().front());
  return result;
}

Read run(const std::string& words) { return read("#!/bin/bash\n" + words + "\n", "run.sh"); }

const std::string kTrainer =
    "model_name_or_path: Qwen/Qwen3-0.6B\noutput_dir: x\nlearning_rate: 1e-4\nper_device_train_batch_size: 2\n"
    "max_seq_length: 512\nbf16: true\n";
const std::string kAxolotl =
    "base_model: Qwen/Qwen3-0.6B\nsequence_len: 512\nmicro_batch_size: 2\ndatasets: []\n"
    "gradient_accumulation_steps: 1\n";
const std::string kMegatron =
    "torchrun pretrain_gpt.py --num-layers 4 --hidden-size 512 --num-attention-heads 8 --seq-length 512 "
    "--max-position-embeddings 512 --micro-batch-size 2 --global-batch-size 2 ";

}  // namespace

TEST_CASE("the Trainer's arguments of Transformers 5") {
  CHECK(read(kTrainer + "torch_compile_backend: inductor\n").plan.compile);
  CHECK(read(kTrainer + "torch_compile_mode: max-autotune\n").plan.compile);
  const Read checkpointed =
      read(kTrainer + "activation_checkpointing: true\nactivation_checkpointing_kwargs: {every_n_layers: 2}\n");
  CHECK(checkpointed.plan.checkpointing.mode == Checkpointing::full);
  CHECK(checkpointed.plan.checkpointing.every == 2);
  CHECK(read(kTrainer + "gradient_checkpointing: true\ngradient_checkpointing_kwargs: {offload: true}\n")
            .plan.checkpointing.offload);
  CHECK(read(kTrainer + "optim_args: {rank: 64}\n").plan.optimizer_args.at("rank") == "64");
  CHECK(read(kTrainer + "optim_args: rank=64, update_proj_gap=9\n").plan.optimizer_args.at("update_proj_gap") == "9");
  CHECK(read(kTrainer + "neftune_noise_alpha: 5\n").warns_of("neftune_noise_alpha"));
  CHECK_FALSE(read(kTrainer + "resume_from_checkpoint: false\n").warns_of("resume_from_checkpoint"));
  CHECK(read(kTrainer + "fsdp: true\nfsdp_config: {cpu_offload: true}\n").plan.engine == Engine::fsdp2);
}

TEST_CASE("weights of a preference pair's own loss") {
  CHECK(run("python examples/scripts/cpo.py --model_name_or_path Qwen/Qwen3-0.6B --output_dir x")
            .stage_arg("cpo_alpha") == "1.0");
  CHECK(run("python examples/scripts/dpo.py --model_name_or_path Qwen/Qwen3-0.6B --output_dir x --rpo_alpha 0.5")
            .stage_arg("rpo_alpha") == "0.5");
  CHECK(read(kAxolotl + "rl: simpo\n").stage_arg("cpo_alpha") == "1.0");
  CHECK(read(kAxolotl + "rl: simpo\ncpo_alpha: 0\n").stage_arg("cpo_alpha").empty());
  CHECK(read(kAxolotl + "rl: dpo\ndpo_loss_type: [hinge]\ndpo_padding_free: true\n").stage_arg("loss_type") == "hinge");
  CHECK(run("swift rlhf --rlhf_type simpo --model Qwen/Qwen3-0.6B --max_length 512").stage_arg("cpo_alpha") == "1.0");
  CHECK(run("swift sft --model Qwen/Qwen3-0.6B --tuner_type vera --max_length 512").plan.adapter.rank == 256);
}

TEST_CASE("axolotl's keys are listed, not guessed") {
  CHECK(read(kAxolotl + "use_wandb: true\n").state_of("use_wandb") == io::KeyState::harmless);
  CHECK(read(kAxolotl + "use_something: true\n").state_of("use_something") == io::KeyState::unknown);
  CHECK(read(kAxolotl + "fused_attn_kernel: true\n").warns_of("fused_attn_kernel"));
  CHECK(read(kAxolotl + "optim_args: {bf16_stochastic_round: true}\n").problem.empty());
  const std::string mxfp4 = "model_quantization_config: Mxfp4Config\nmodel_quantization_config_kwargs:\n  dequantize: ";
  CHECK(read(kAxolotl + "adapter: lora\n" + mxfp4 + "false\n").job.plan.find("weights")->as_string() == "mxfp4");
  CHECK(read(kAxolotl + "adapter: lora\n" + mxfp4 + "true\n").job.plan.find("weights")->as_string() == "bf16");
}

TEST_CASE("Megatron's layers are read as they are asked for") {
  CHECK(run(kMegatron + "--bf16 --transformer-impl local").plan.attention == AttentionKernel::fused_softmax);
  CHECK(run(kMegatron + "--bf16 --transformer-impl local --no-masked-softmax-fusion").plan.attention ==
        AttentionKernel::eager);
  const Read wide = run(kMegatron);
  CHECK(wide.plan.attention == AttentionKernel::eager);
  CHECK(wide.assumes("no flash kernel takes fp32"));
  CHECK(run(kMegatron + "--bf16 --quick-geglu --position-embedding-type rope")
            .job.config->find("model_type")
            ->as_string() == "llama");
  CHECK(run(kMegatron + "--bf16 --swiglu").plan.dropout == 0.1);
  CHECK_FALSE(run(kMegatron + "--bf16 --swiglu --hidden-dropout 0 --attention-dropout 0").plan.dropout.has_value());
  for (const std::string flag : {"squared-relu", "no-bias-gelu-fusion", "reduce-scatter-with-fp32-accumulation",
                                 "freeze-LM", "fp8-param-gather", "tp-comm-overlap"}) {
    INFO(flag);
    std::string key = flag;
    std::replace(key.begin(), key.end(), '-', '_');
    CHECK(run(kMegatron + "--bf16 --" + flag).warns_of(key));
  }
  CHECK(run(kMegatron + "--bf16 --no-such-flag").state_of("no_such_flag") == io::KeyState::unknown);
  CHECK_FALSE(run(kMegatron + "--bf16 --moe-latent-size 64").problem.empty());
  CHECK_FALSE(run(kMegatron + "--bf16 --attention-output-gate").problem.empty());
  CHECK(run("megatron sft --model Qwen/Qwen3-0.6B --max_length 512 --gradient_accumulation_fusion false")
            .engine_key("gradient_accumulation_fusion") == "false");
}

TEST_CASE("Megatron's optimizer lies where it is asked to") {
  const std::string sharded = kMegatron + "--bf16 --use-distributed-optimizer ",
                    host = sharded + "--optimizer-cpu-offload ";
  CHECK(run(sharded + "--use-precision-aware-optimizer").engine_key("use_precision_aware_optimizer") == "true");
  CHECK(run(host).plan.sharding.offload == "optimizer");
  CHECK(run(host).engine_key("optimizer_offload_fraction").empty());
  CHECK(run(host + "--optimizer-offload-fraction 0.25").engine_key("optimizer_offload_fraction") == "0.25");
  CHECK(run(host + "--optimizer-offload-fraction 0").plan.sharding.offload == "none");
  CHECK(run(kMegatron + "--bf16 --mtp-num-layers 1").engine_key("mtp_num_layers") == "1");
}

TEST_CASE("DeepSpeed's checkpoint function is billed for code that calls it") {
  const std::string section =
      "\"activation_checkpointing\": {\"partition_activations\": true, \"cpu_checkpointing\": true}";
  const Read alone = read("{\"zero_optimization\": {\"stage\": 2}, " + section + "}", "ds.json");
  CHECK(alone.engine_key("partition_activations").empty());
  CHECK(alone.assumes("Hugging Face's gradient checkpointing does not"));
  const std::string deepspeed = kMegatron + "--fp16 --deepspeed --deepspeed_config none.json --zero-stage 2 ";
  const Read called = run(deepspeed +
                          "--checkpoint-activations --deepspeed-activation-checkpointing --partition-activations "
                          "--checkpoint-in-cpu --contigious-checkpointing");
  CHECK(called.plan.engine == Engine::deepspeed);
  CHECK(called.plan.sharding.zero == 2);
  CHECK(called.engine_key("partition_activations") == "true");
  CHECK(called.engine_key("cpu_checkpointing") == "true");
  CHECK(called.engine_key("number_checkpoints") == "4");
  CHECK(
      run(deepspeed + "--checkpoint-activations --partition-activations").engine_key("partition_activations").empty());
}

TEST_CASE("what of ZeRO is not billed is said") {
  const auto zero = [](const std::string& more) {
    return read("{\"zero_optimization\": {\"stage\": 3, " + more + "}, \"bf16\": {\"enabled\": true}}", "ds.json");
  };
  CHECK(zero("\"zero_quantized_weights\": true").warns_of("int8"));
  CHECK_FALSE(zero("\"zero_quantized_weights\": false").warns_of("int8"));
  CHECK(zero("\"memory_efficient_linear\": false").warns_of("memory_efficient_linear"));
  CHECK(zero("\"offload_optimizer\": {\"device\": \"cpu\", \"ratio\": 0.3}").warns_of("ratio"));
  CHECK_FALSE(zero("\"offload_optimizer\": {\"device\": \"cpu\"}").warns_of("ratio"));
}

TEST_CASE("ms-swift's file of both FSDP arguments") {
  const Read pair = read(
      "{\"_note\": \"x\", \"fsdp\": \"full_shard auto_wrap\", \"fsdp_config\": {\"fsdp_version\": 2, "
      "\"activation_checkpointing\": true}}",
      "fsdp2.json");
  CHECK(pair.job.format == "fsdp");
  CHECK(pair.plan.engine == Engine::fsdp2);
  CHECK(pair.plan.checkpointing.mode == Checkpointing::full);
  const Read named = run("NPROC_PER_NODE=2 swift sft --model Qwen/Qwen3-0.6B --max_length 512 --fsdp fsdp2");
  CHECK(named.plan.engine == Engine::fsdp2);
  CHECK_FALSE(named.plan.checkpointing.reentrant);
}

TEST_CASE("LLaVA's switches of what trains") {
  const std::string llava =
      "deepspeed llava/train/train_mem.py --model_name_or_path lmsys/vicuna-7b-v1.5 --bf16 True "
      "--per_device_train_batch_size 4 --model_max_length 2048 --vision_tower openai/clip-vit-large-patch14-336 ";
  CHECK(run(llava).plan.method == Method::full);
  CHECK(run(llava).warns_of("vision_tower"));
  const Read projector = run(llava + "--tune_mm_mlp_adapter True");
  CHECK(projector.plan.method == Method::lora);
  CHECK(projector.warns_of("the language model is frozen"));
  CHECK(run(llava + "--mm_tunable_parts mm_mlp_adapter,mm_language_model").plan.method == Method::full);
}

TEST_CASE("one block trains at a time") {
  const std::string factory =
      "model_name_or_path: Qwen/Qwen3-0.6B\nstage: sft\nfinetuning_type: full\ntemplate: qwen3\nuse_badam: true\n";
  const Read badam = read(factory + "bf16: true\n");
  CHECK(badam.problem.empty());
  CHECK(badam.plan.method == Method::freeze);
  CHECK(badam.job.plan.find("freeze.trainable_modules")->items().front().as_string() == "layers.0");
  CHECK(badam.job.plan.find("moment_dtype")->as_string() == "fp32");
  CHECK(badam.warns_of("use_badam"));
  CHECK(read(factory + "badam_mode: ratio\n").problem.find("use_badam") != std::string::npos);
  const Read lisa =
      run("swift sft --model Qwen/Qwen3-0.6B --tuner_type full --max_length 512 --lisa_activated_layers 2");
  CHECK(lisa.plan.method == Method::full);
  CHECK(lisa.warns_of("lisa_activated_layers"));
}

TEST_CASE("ms-swift's tasks that compare rows") {
  const std::string swift = "swift sft --model Qwen/Qwen3-0.6B --max_length 512 --per_device_train_batch_size 4 ";
  const Read pairs =
      run(swift + "--task_type embedding --loss_type infonce --padding_free true --attn_impl flash_attn");
  CHECK(pairs.plan.stage == Stage::classification);
  CHECK(pairs.stage_arg("num_labels") == "1");
  CHECK(pairs.plan.batch == 8);
  CHECK_FALSE(pairs.plan.padding_free);
  CHECK(pairs.assumes("anchor and positive"));
  CHECK(run(swift + "--task_type reranker").plan.batch == 32);
  const Read few = run("MAX_NEGATIVE_SAMPLES=1 " + swift + "--task_type generative_reranker --tuner_type full");
  CHECK(few.plan.batch == 8);
  CHECK(few.plan.accumulate == 4);
  CHECK(few.warns_of("the gradient of the head"));
  CHECK(run("swift sft --model Qwen/Qwen3-8B --max_length 512 --task_type embedding")
            .warns_of("the head of the language"));
  CHECK_FALSE(run(swift + "--task_type decision").problem.empty());
}

TEST_CASE("LLaMA-Factory's v1 trainer") {
  const std::string v1 = "model: Qwen/Qwen3-0.6B\nmodel_class: llm\ntemplate: qwen3\nmicro_batch_size: 2\n";
  const Read sharded = read(v1 + "dist_config:\n  name: fsdp2\n  offload_params: true\nkernel_config:\n  name: auto\n");
  CHECK(sharded.job.format == "llamafactory");
  CHECK(sharded.plan.engine == Engine::fsdp2);
  CHECK(sharded.plan.sharding.offload == "optimizer+param");
  CHECK(sharded.plan.loop == Loop::plain);
  CHECK(sharded.plan.seq == 2048);
  CHECK(sharded.engine_key("reduce_dtype") == "fp32");
  CHECK(sharded.warns_of("v1's loss"));
  const Read lora =
      read(v1 + "peft_config:\n  name: lora\n  r: 16\n  target_modules: all\nquant_config:\n  name: bnb\n");
  CHECK(lora.plan.method == Method::lora);
  CHECK(lora.plan.adapter.rank == 16);
  CHECK(lora.job.plan.find("weights")->as_string() == "nf4");
  const Read merge = read("model: Qwen/Qwen3-0.6B\npeft_config:\n  name: lora\n  export_dir: x\n");
  CHECK(merge.problem.find("trains nothing") != std::string::npos);
}

TEST_CASE("cards that a job does not count") {
  const Read nodes =
      run("torchrun --nnodes 4 --nproc_per_node $(gpus) train.py --model_name_or_path Qwen/Qwen3-0.6B "
          "--per_device_train_batch_size 1 --output_dir x");
  CHECK(nodes.job.hardware.count == 4);
  CHECK(nodes.assumes("how many cards a node has"));
  const Read recipe = read(
      "model: {_component_: torchtune.models.llama3_1.llama3_1_8b}\ntokenizer: {max_seq_len: 512}\nbatch_size: 1\n"
      "optimizer: {_component_: torch.optim.AdamW}\ncheckpointer: {}\nfsdp_cpu_offload: true\n");
  CHECK(recipe.assumes("several cards"));
}

}  // namespace membill::importers_test
