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

TEST_CASE("qlora.py: a 4-bit base, paged states and checkpointing unless the flags say otherwise") {
  TrainingPlan plan;
  const io::JobFile job = run("python qlora.py --model_name_or_path huggyllama/llama-7b --bf16 True\n", plan);
  CHECK(plan.weights == WeightFormat::nf4);
  CHECK(plan.double_quant);
  CHECK(plan.optimizer == "paged-adamw-32bit");
  CHECK(plan.checkpointing.mode == Checkpointing::full);
  CHECK(plan.batch == 1);
  CHECK(plan.accumulate == 16);
  CHECK(plan.seq == 1280);
  CHECK(plan.adapter.rank == 64);
  CHECK(plan.adapter.targets == std::vector<std::string>{"all-linear"});
  CHECK(is_assumed(job, "QLoRA paper"));
}

TEST_CASE("Stanford Alpaca's train.py cuts at 512 tokens") {
  TrainingPlan plan;
  (void)run(
      "torchrun --nproc_per_node=4 train.py --model_name_or_path facebook/opt-6.7b --data_path d.json --bf16 True "
      "--output_dir o --per_device_train_batch_size 4 --fsdp 'full_shard auto_wrap'\n",
      plan);
  CHECK(plan.seq == 512);
  CHECK(plan.engine == Engine::fsdp);
}

TEST_CASE("transformers' examples are the Trainer's, not TRL's") {
  TrainingPlan plan;
  (void)run("python run_clm.py --model_name_or_path gpt2 --dataset_name wikitext --do_train --output_dir o\n", plan);
  CHECK(plan.precision == Precision::fp32);
  CHECK(plan.checkpointing.mode == Checkpointing::none);
  CHECK(plan.batch == 8);
  CHECK(plan.seq == 1024);
  TrainingPlan own;
  (void)run(
      "accelerate launch run_clm_no_trainer.py --model_name_or_path gpt2 --dataset_name wikitext --block_size 512 "
      "--per_device_train_batch_size 4 --output_dir o\n",
      own);
  CHECK(own.optimizer_impl == OptimizerImpl::foreach);
  CHECK(own.loop == Loop::plain);
  CHECK_FALSE(own.clip);
  TrainingPlan adapted;
  (void)run(
      "torchrun --nproc_per_node 1 run_clm_sft_with_peft.py --model_name_or_path meta-llama/Llama-2-7b-hf --do_train "
      "--per_device_train_batch_size 1 --max_seq_length 512 --lora_rank 64 --trainable q_proj,v_proj,o_proj "
      "--modules_to_save embed_tokens,lm_head --load_in_kbits 16 --output_dir o\n",
      adapted);
  CHECK(adapted.seq == 512);
  CHECK(adapted.adapter.targets == std::vector<std::string>{"q_proj", "v_proj", "o_proj"});
}

TEST_CASE("a script's name says the stage where its arguments do not") {
  TrainingPlan plan;
  (void)run(
      "python dpo_training.py --model_name_or_path Qwen/Qwen2.5-0.5B --use_peft True --max_source_length 1024 "
      "--max_target_length 512 --per_device_train_batch_size 4 --output_dir o --learning_rate 1e-4\n",
      plan);
  CHECK(plan.stage == Stage::dpo);
  CHECK(plan.seq == 1536);
  CHECK(problem_of("python ppo_training.py --model_name_or_path Qwen/Qwen2.5-0.5B --max_source_length 256 "
                   "--per_device_train_batch_size 4 --output_dir o --learning_rate 1e-4\n") ==
        "run.sh: ppo_training.py trains on what it generates, which is not billed (--as trl, where it takes TRL's "
        "arguments)");
}

TEST_CASE("adapters that StarCoder's scripts and Qwen2-VL-Finetune make by themselves") {
  TrainingPlan plan;
  (void)run(
      "python finetune/finetune.py --model_path=bigcode/starcoder --dataset_name d --size_valid_set 100 --seq_length "
      "2048 --batch_size 1 --gradient_accumulation_steps 16 --learning_rate 1e-4 --output_dir o\n",
      plan);
  CHECK(plan.weights == WeightFormat::int8);
  CHECK(plan.adapter.rank == 16);
  TrainingPlan second;
  (void)run(
      "accelerate launch finetune.py --model_id bigcode/starcoder2-15b --dataset_text_field content --max_seq_length "
      "1024 --micro_batch_size 1 --gradient_accumulation_steps 8 --learning_rate 2e-5\n",
      second);
  CHECK(second.weights == WeightFormat::nf4);
  CHECK(second.adapter.rank == 8);
  TrainingPlan vision;
  (void)run(
      "deepspeed --num_gpus 2 src/train/train_sft.py --lora_enable True --lora_rank 32 --lora_alpha 64 --deepspeed "
      "scripts/zero3.json --model_id Qwen/Qwen2-VL-2B-Instruct --data_path d.json --freeze_llm True --bf16 True "
      "--disable_flash_attn2 False --output_dir o --per_device_train_batch_size 4\n",
      vision);
  CHECK(vision.adapter.rank == 32);
  CHECK(vision.adapter.targets == std::vector<std::string>{"all-linear"});
  CHECK(vision.attention == AttentionKernel::flash);
}

TEST_CASE("first releases have defaults of their own") {
  TrainingPlan swift;
  (void)run("swift sft --model_type qwen1half-7b-chat --sft_type lora --dataset d --output_dir o\n", swift);
  CHECK(swift.seq == 2048);
  CHECK(swift.adapter.targets == std::vector<std::string>{"q_proj", "k_proj", "v_proj"});
  TrainingPlan trl;
  (void)run(
      "python examples/scripts/sft.py --model_name meta-llama/Llama-2-7b-hf --load_in_4bit --use_peft --batch_size 4 "
      "--gradient_accumulation_steps 2\n",
      trl);
  CHECK(trl.batch == 4);
  CHECK(trl.seq == 512);
  CHECK(trl.adapter.rank == 64);
  CHECK(trl.weights == WeightFormat::fp4);
  TrainingPlan factory;
  (void)run(
      "python src/train_bash.py --stage sft --model_name_or_path meta-llama/Llama-2-7b-hf --finetuning_type lora "
      "--lora_target q_proj,v_proj --output_dir o --fp16\n",
      factory);
  CHECK(factory.seq == 1024);
}

TEST_CASE("Megatron runs its own softmax where Transformer Engine is not there yet") {
  const std::string model =
      "--num-layers 4 --hidden-size 1024 --num-attention-heads 16 --seq-length 2048 --max-position-embeddings 2048 "
      "--micro-batch-size 1 --global-batch-size 8 --vocab-size 32000 --fp16 ";
  TrainingPlan own, flash, newest;
  (void)run("torchrun --nproc_per_node 8 pretrain_gpt.py " + model + "--data-impl mmap\n", own);
  (void)run("deepspeed --num_gpus 8 pretrain_gpt.py " + model + "--use-flash-attn-v2 --deepspeed --zero-stage 1\n",
            flash);
  (void)run("torchrun --nproc_per_node 8 pretrain_gpt.py " + model + "\n", newest);
  CHECK(own.attention == AttentionKernel::fused_softmax);
  CHECK(flash.attention == AttentionKernel::flash);
  CHECK(newest.attention == AttentionKernel::flash);
}

TEST_CASE("llama-recipes: a loop and an FSDP of its own") {
  TrainingPlan plan;
  (void)run(
      "torchrun --nnodes 1 --nproc_per_node 8 recipes/finetuning.py --enable_fsdp --use_peft --peft_method lora "
      "--model_name meta-llama/Llama-2-7b-hf --fsdp_config.pure_bf16 --batch_size_training 2 --output_dir o\n",
      plan);
  CHECK(plan.engine == Engine::fsdp);
  CHECK(plan.batch == 2);
  CHECK(plan.seq == 4096);
  CHECK(plan.packing);
  CHECK(plan.precision == Precision::pure_bf16);
  CHECK(plan.checkpointing.mode == Checkpointing::full);
  CHECK(plan.adapter.rank == 8);
  CHECK(plan.loop == Loop::plain);
  TrainingPlan alone;
  (void)run("python -m llama_recipes.finetuning --use_peft --quantization 4bit --model_name meta-llama/Llama-2-7b-hf\n",
            alone);
  CHECK(alone.weights == WeightFormat::nf4);
  CHECK(alone.checkpointing.mode == Checkpointing::none);
}

TEST_CASE("OpenRLHF's scripts hold their command in a document") {
  TrainingPlan plan;
  (void)run(
      "read -r -d '' commands <<EOF\nopenrlhf.cli.train_sft \\\n   --max_len 2048 \\\n   --train_batch_size 256 \\\n"
      "   --micro_train_batch_size 2 \\\n   --pretrain meta-llama/Meta-Llama-3-8B \\\n   --bf16 \\\n"
      "   --flash_attn \\\n   --packing_samples \\\n   --gradient_checkpointing\nEOF\n"
      "if [[ ${1} != \"slurm\" ]]; then\n    deepspeed --num_gpus 8 --module $commands\nfi\n",
      plan);
  CHECK(plan.engine == Engine::deepspeed);
  CHECK(plan.sharding.zero == 2);
  CHECK(plan.batch == 2);
  CHECK(plan.accumulate == 16);
  CHECK(plan.seq == 2048);
  CHECK(plan.padding_free);
  CHECK(plan.precision == Precision::master_bf16);
  CHECK(plan.attention == AttentionKernel::flash);
  TrainingPlan pairs;
  (void)run(
      "deepspeed --num_gpus 4 --module openrlhf.cli.train_dpo --data.input_template $'User: {}\\nAssistant: ' "
      "--model.model_name_or_path meta-llama/Meta-Llama-3-8B --train.micro_batch_size 1 --ds.zero_stage 3 "
      "--ds.adam_offload --ds.lora.rank 16\n",
      pairs);
  CHECK(pairs.stage == Stage::dpo);
  CHECK(pairs.accumulate == 32);
  CHECK(pairs.seq == 512);
  CHECK(pairs.sharding.zero == 3);
  CHECK(pairs.adapter.rank == 16);
  CHECK(pairs.optimizer == "cpu-adam");
  CHECK(problem_of("ray job submit -- python3 -m openrlhf.cli.train_ppo_ray --pretrain meta-llama/Meta-Llama-3-8B\n") ==
        "run.sh: openrlhf.cli.train_ppo_ray trains on what it generates, which is not billed (train_sft, train_dpo or "
        "train_rm)");
}

}  // namespace membill::importers_test
