// Scripts that many copy: their own defaults, their spellings, and how launchers start them.
#include "launch_text.h"

namespace membill::importers_test {

namespace {

bool is_assumed(const io::JobFile& job, std::string_view text) {
  return std::any_of(job.assumptions.begin(), job.assumptions.end(),
                     [&](const std::string& line) { return line.find(text) != std::string::npos; });
}

}  // namespace

TEST_CASE("alpaca-lora: an 8-bit base, and batch_size is the step's") {
  TrainingPlan plan;
  const io::JobFile job =
      run("torchrun --nproc_per_node=8 finetune.py --base_model huggyllama/llama-7b --data_path d --batch_size 256 "
          "--micro_batch_size 8 --lora_r 8\n",
          plan);
  CHECK(plan.batch == 8);
  CHECK(plan.accumulate == 4);
  CHECK(plan.seq == 256);
  CHECK(plan.weights == WeightFormat::int8);
  CHECK(plan.precision == Precision::amp_fp16);
  CHECK(plan.adapter.targets == std::vector<std::string>{"q_proj", "v_proj"});
  CHECK(is_assumed(job, "alpaca-lora"));
}

TEST_CASE("LLaVA's adapters, and train_mem.py's flash attention") {
  TrainingPlan plan;
  (void)run(
      "deepspeed --num_gpus 2 llava/train/train_mem.py --lora_enable True --deepspeed ./scripts/zero3.json "
      "--model_name_or_path lmsys/vicuna-7b-v1.5 --vision_tower openai/clip --bf16 True --output_dir o "
      "--per_device_train_batch_size 4\n",
      plan);
  CHECK(plan.adapter.rank == 64);
  CHECK(plan.adapter.targets == std::vector<std::string>{"all-linear"});
  CHECK(plan.attention == AttentionKernel::flash);
  CHECK(plan.seq == 512);
}

TEST_CASE("DeepSpeed-Chat's second step trains a reward model") {
  TrainingPlan plan;
  (void)run(
      "deepspeed --num_gpus 1 main.py --model_name_or_path facebook/opt-350m --num_padding_at_beginning 1 "
      "--gradient_accumulation_steps 2 --zero_stage 0 --deepspeed --output_dir o\n",
      plan);
  CHECK(plan.stage == Stage::reward);
  CHECK(plan.batch == 16);
  CHECK(plan.seq == 512);
}

TEST_CASE("a deepspeed_config beside the switch is the configuration") {
  CHECK(problem_of(
            "deepspeed finetune.py --model-path gpt2 --batch-size 8 --deepspeed --deepspeed_config no/ds.json\n") ==
        "run.sh: deepspeed: 'no/ds.json' is no file here (start membill where the job is started)");
}

TEST_CASE("run_clm.py cuts texts into blocks of the model's length, 1024 at most") {
  TrainingPlan plan;
  const std::string job =
      "python run_clm.py --do_train --output_dir o --per_device_train_batch_size 8 --model_name_or_path ";
  (void)run(job + "gpt2\n", plan);
  CHECK(plan.seq == 1024);
  CHECK(plan.packing);
  (void)run(job + "EleutherAI/pythia-14m --block_size 256\n", plan);
  CHECK(plan.seq == 256);
}

TEST_CASE("InternVL's script: adapters of the language model, a frozen tower") {
  TrainingPlan plan;
  (void)run(
      "torchrun --nproc_per_node=8 internvl/train/internvl_chat_finetune.py --model_name_or_path Qwen/Qwen2.5-7B "
      "--freeze_llm True --freeze_backbone True --use_llm_lora 16 --bf16 True --output_dir o --max_seq_length 4096 "
      "--per_device_train_batch_size 2\n",
      plan);
  CHECK(plan.adapter.rank == 16);
  CHECK(plan.checkpointing.mode == Checkpointing::full);
  CHECK(plan.attention == AttentionKernel::flash);
  CHECK(plan.seq == 4096);
}

TEST_CASE("answer.ai's script of FSDP and QLoRA") {
  TrainingPlan plan;
  const std::string start =
      "python train.py --model_name meta-llama/Llama-2-7b-hf --context_length 2048 --world_size 2 ";
  const io::JobFile job = run(start + "--train_type qlora --use_cpu_offload False\n", plan);
  CHECK(job.format == "fsdp-qlora");
  CHECK(job.hardware.count == 2);
  CHECK(plan.engine == Engine::fsdp);
  CHECK(plan.weights == WeightFormat::nf4);
  CHECK(plan.precision == Precision::pure_bf16);
  CHECK(plan.adapter.rank == 64);
  CHECK(plan.adapter.dtype == AdapterDType::bf16);
  CHECK(plan.sharding.offload == "none");
  CHECK_FALSE(plan.clip);
  (void)run(start + "--train_type full --gradient_accumulation_steps 4\n", plan);
  CHECK(plan.method == Method::full);
  CHECK(plan.sharding.offload == "optimizer+param");
  CHECK(problem_of(start + "--train_type bnb_llama_pro\n") ==
        "run.sh: train_type: 'bnb_llama_pro' trains added blocks, which is not billed (qlora)");
}

TEST_CASE("processes by mpirun, and torchrun's -m before its other options") {
  TrainingPlan plan;
  const std::string megatron =
      "python pretrain_gpt.py --num-layers 4 --hidden-size 64 --num-attention-heads 4 --seq-length 128 "
      "--micro-batch-size 1 --global-batch-size 64 --bf16\n";
  CHECK(run("mpirun -np 16 --npernode 8 -x PATH " + megatron, plan).hardware.count == 16);
  CHECK(plan.accumulate == 4);
  const io::JobFile job =
      run("torchrun -m --nnodes 1 --nproc_per_node=8 verl.trainer.fsdp_sft_trainer data.micro_batch_size_per_gpu=1 "
          "model.partial_pretrain=Qwen/Qwen2.5-0.5B data.train_batch_size=8\n",
          plan);
  CHECK(job.format == "verl");
  CHECK(job.hardware.count == 8);
}

TEST_CASE("older spellings of torchtitan's and Megatron's keys, and what Megatron's stages leave out") {
  TrainingPlan plan;
  Problems problems;
  const io::JobFile titan = io::import_text(
      "[model]\nname = \"llama2\"\nflavor = \"7B\"\n[training]\nbatch_size = 4\nseq_len = 512\n"
      "data_parallel_shard_degree = 4\ndata_parallel_replicate_degree = 2\n",
      "old.toml", "", {}, problems);
  CHECK(titan.model == "llama-2-7b");
  CHECK(titan.hardware.count == 8);
  const std::string start =
      "python pretrain_gpt2.py --num-layers 4 --hidden-size 64 --num-attention-heads 4 --seq-length 128 --bf16 ";
  (void)run(start + "--batch-size 8 --model-parallel-size 2\n", plan);
  CHECK(plan.batch == 8);
  CHECK(plan.parallel.tp == 2);
  const io::JobFile uneven = run(start + "--account-for-loss-in-pipeline-split\n", plan);
  CHECK(uneven.warnings.front() == "account_for_loss_in_pipeline_split is not billed: the layers are spread evenly");
}

TEST_CASE("verl's other engine is refused, ms-swift's vLLM sleeps") {
  CHECK(problem_of("torchrun --nproc_per_node 2 -m verl.trainer.sft_trainer engine=megatron "
                   "model.path=Qwen/Qwen2.5-0.5B data.train_files=x\n") ==
        "run.sh: engine: 'megatron' is not billed (fsdp)");
  TrainingPlan plan;
  (void)run(
      "swift rlhf --rlhf_type grpo --model Qwen/Qwen2.5-7B --use_vllm true --vllm_mode colocate --sleep_level 1\n",
      plan);
  CHECK(plan.stage_args.at("vllm_enable_sleep_mode") == "true");
}

TEST_CASE("litgpt's pre-training takes the model's own length") {
  TrainingPlan plan;
  (void)run("litgpt pretrain pythia-14m --data TextFiles --out_dir o\n", plan);
  CHECK(plan.stage == Stage::pretrain);
  CHECK(plan.seq == 512);
}

}  // namespace membill::importers_test
