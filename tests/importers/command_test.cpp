// Launch scripts and command lines.
#include <string>
#include <vector>

#include "io/importers/importer.h"
#include "io/importers/shell_words.h"
#include "launch_text.h"
#include "membill/catalog.h"
#include "support/catch.h"

namespace membill::importers_test {

TEST_CASE("words are split as a shell splits them") {
  CHECK(last_words("a 'b c' \"d e\" f\\ g # no") == Words{"a", "b c", "d e", "f g"});
  CHECK(last_words("a \\\n  b \\\n  c") == Words{"a", "b", "c"});
  CHECK(last_words("X=1\nY=\"$X 2\"\nrun $X \"$Y\" $Y '$X'") == Words{"run", "1", "1 2", "1", "2", "$X"});
  CHECK(last_words("run ${A:-7} ${B:=x} ${C-'q r'} $D ${E}") == Words{"run", "7", "x", "q r", "$D", "${E}"});
  CHECK(last_words("N=8\nrun $((N * 2 / 4)) $((1+)) $(nproc)") == Words{"run", "4", "$((1+))", "$(nproc)"});
  CHECK(last_words("A=(\n --x 1 # one\n --y '2 3'\n)\nA+=(z)\nrun \"${A[@]}\" end") ==
        Words{"run", "--x", "1", "--y", "2 3", "z", "end"});
  CHECK(last_words("cat <<EOF > f\nrun --not\nEOF\nrun now > log 2>&1") == Words{"run", "now"});
}

TEST_CASE("items of arrays by number, variable, expression and key") {
  CHECK(last_words("A=(x y z)\ni=1\nrun ${A[0]} ${A[$i]} ${A[i]} ${A[$((i + 1))]} ${A[i + 1]} ${A[7]}e") ==
        Words{"run", "x", "y", "y", "z", "z", "e"});
  CHECK(last_words("declare -A B=([small]=1b [\"large\"]=8b)\nsize=large\nrun ${B[small]} ${B[$size]}") ==
        Words{"run", "1b", "8b"});
}

TEST_CASE("items of an array are split where no quotes hold them together") {
  CHECK(last_words("A=(\"--x 1\" -y)\nrun ${A[@]}") == Words{"run", "--x", "1", "-y"});
  CHECK(last_words("A=(\"--x 1\" -y)\nB=(${A[@]} z)\nrun \"${A[@]}\" ${#B[@]}") == Words{"run", "--x 1", "-y", "4"});
}

TEST_CASE("what a script is started with is not known") {
  CHECK(last_words("if [ \"$1\" = big ]; then B=1; else B=2; fi\nrun $B") == Words{"run", "2"});
  CHECK(last_words("M=$1\nif [ \"$M\" = a ]; then cat > c << EOF\nx\nEOF\nfi\nrun") == Words{"run"});
  CHECK(last_words("B=3\nif [ -n \"$1\" ]; then B=$1; fi\nrun $B") == Words{"run", "3"});
  CHECK(last_words("case $1 in 7b) B=7 ;; 13b) B=13 ;; esac\nrun $B") == Words{"run", "13"});
  CHECK(last_words("[ $# -eq 0 ] && x\nif [ $# -gt 0 ]; then B=$1; else B=4; fi\nrun $B") == Words{"run", "4"});
}

TEST_CASE("loops over a script's arguments take no turn") {
  const std::string body = "; do case $1 in -m) shift; M=$1 ;; *) echo no ;; esac; shift; done\nrun $M";
  for (const char* condition :
       {"[[ \"$1\" != \"\" ]]", "[ $# -gt 0 ]", "[[ $# -ge 1 ]]", "[ -n \"$1\" ]", "(( $# ))"}) {
    INFO(condition);
    CHECK(last_words("M=a\nwhile " + std::string(condition) + body) == Words{"run", "a"});
  }
  CHECK(last_words("for i in 1 2; do while true; do A=$i; done; done\nwhile false; do A=9; done\nrun $A") ==
        Words{"run", "2"});
  CHECK(last_words("A=\"--x $(a b | c -n 1) --y\"\nrun $A") == Words{"run", "--x", "$(a b | c -n 1)", "--y"});
}

TEST_CASE("of a Slurm array the first task is taken") {
  const std::string script =
      "#!/bin/bash\n#SBATCH --array=2,4-6%2\nB=(1 2 4 8)\n"
      "python train.py --model_name_or_path gpt2 --output_dir o --learning_rate 1 "
      "--per_device_train_batch_size ${B[$SLURM_ARRAY_TASK_ID]} --bf16\n";
  TrainingPlan plan;
  const io::JobFile job = run(script, plan);
  CHECK(plan.batch == 4);
  CHECK(job.assumptions.back() == "the first task of the Slurm array, 2, is taken");
}

TEST_CASE("a script of many variables and commands is no burden") {
  std::string script;
  for (int i = 0; i < 20'000; ++i)
    script += "V" + std::to_string(i) + "=" + std::to_string(i) + "\necho $V" + std::to_string(i / 2) + "\n";
  const std::vector<io::ShellCommand> commands = io::split_script(script);
  REQUIRE(commands.size() == io::kMostCommands);
  CHECK(commands[10].words == Words{"echo", "5"});
  CHECK(commands[10].variables.find("V11") == nullptr);
  CHECK(*commands[11].variables.find("V11") == "11");
}

TEST_CASE("unfinished shell text ends quietly") {
  for (const char* text : {"'", "\"", "${", "$((", "$(", "a=(", "\\", "<<", "$", "${a:-${b:-", "a=(\"", "\"${"}) {
    INFO(text);
    CHECK_NOTHROW(io::split_script(text));
  }
}

TEST_CASE("the last command that trains is read") {
  TrainingPlan plan;
  const io::JobFile job =
      run("#!/bin/bash\nBATCH=${BATCH:-2}\npip install x\n"
          "CUDA_VISIBLE_DEVICES=0,1 torchrun --nproc_per_node 2 --nnodes=2 train.py \\\n"
          "  --model_name_or_path meta-llama/Llama-2-7b-hf --per_device_train_batch_size $BATCH \\\n"
          "  --bf16 True --gradient_checkpointing --model_max_length 1024 --learning_rate 2e-5\n"
          "python -m http.server\n",
          plan);
  CHECK(job.format == "hf-trainer");
  CHECK(job.model == "meta-llama/Llama-2-7b-hf");
  CHECK(job.hardware.count == 4);
  CHECK(job.hardware.nodes == 2);
  CHECK(plan.batch == 2);
  CHECK(plan.seq == 1024);
  CHECK(plan.engine == Engine::ddp);
  CHECK(plan.checkpointing.mode == Checkpointing::full);
}

TEST_CASE("a variable that the script does not set is named") {
  const std::string problem = problem_of(
      "#!/bin/sh\npython train.py --model_name_or_path llama-2-7b --per_device_train_batch_size $B --bf16 True "
      "--num_train_epochs 1 --learning_rate 1\n");
  CHECK(problem.find("per_device_train_batch_size") != std::string::npos);
  CHECK(problem.find("'$B' is not set") != std::string::npos);
  CHECK(problem_of("#!/bin/sh\necho hello\n").find("no command in it trains") != std::string::npos);
}

TEST_CASE("accelerate's and DeepSpeed's launchers") {
  TrainingPlan zero, fsdp;
  const io::JobFile job =
      run("#!/bin/sh\ndeepspeed --num_gpus=4 train.py --deepspeed zero2 --model_name_or_path llama-2-7b --bf16 True "
          "--per_device_train_batch_size 1 --num_train_epochs 1 --max_seq_length 512 --output_dir x\n",
          zero);
  CHECK(job.hardware.count == 4);
  CHECK(zero.engine == Engine::deepspeed);
  CHECK(zero.sharding.zero == 2);
  CHECK(zero.precision == Precision::master_bf16);
  CHECK(zero.sharding.engine_keys["reduce_bucket_size"] == "200000000");
  run("#!/bin/sh\naccelerate launch --num_processes 8 --use_fsdp --fsdp_sharding_strategy FULL_SHARD "
      "--fsdp_auto_wrap_policy "
      "TRANSFORMER_BASED_WRAP --mixed_precision bf16 train.py --model_name_or_path llama-2-7b "
      "--per_device_train_batch_size 1 "
      "--num_train_epochs 1 --max_seq_length 512 --output_dir x\n",
      fsdp);
  CHECK(fsdp.engine == Engine::fsdp);
  CHECK(fsdp.sharding.fsdp == "full_shard");
  CHECK(fsdp.weights == WeightFormat::fp32);
  CHECK(fsdp.sharding.engine_keys["param_dtype"] == "bf16");
}

TEST_CASE("the words after -- are a command") {
  Problems problems;
  const io::JobFile job = io::import_command(
      {"swift", "sft", "--model", "Qwen/Qwen2.5-7B-Instruct", "--tuner_type", "lora", "--max_length", "1024"}, {},
      problems);
  CHECK(problems.empty());
  CHECK(job.format == "ms-swift");
  CHECK(job.model == "Qwen/Qwen2.5-7B-Instruct");
  CHECK(job.assumptions ==
        std::vector<std::string>{"model 'Qwen/Qwen2.5-7B-Instruct' has the shapes of the preset qwen2.5-7b"});
  CHECK_THROWS_AS(io::import_command({"ls", "-l"}, {}, problems), InputError);
}

TEST_CASE("shells, runners and branches that a script goes through") {
  CHECK(last_words("srun --nodes 2 bash -c \"torchrun train.py\"") == Words{"torchrun", "train.py"});
  CHECK(last_words("ARGS='--bf16'; docker run -it image sh -lc 'cd /w && python train.py $ARGS'") ==
        Words{"python", "train.py", "--bf16"});
  CHECK(last_words("if true; then M=a; else M=b; fi; echo $M") == Words{"echo", "a"});
  CHECK(last_words("for i in 1 2; do torchrun a.py; done") == Words{"torchrun", "a.py"});
  CHECK(last_words("N=2 G=8; N=2; G=8; echo $((64 / (G * N))) $((2 + 3 * 4)) $(expr 16 / $N) $((1/0))") ==
        Words{"echo", "4", "14", "8", "$((1/0))"});
  CHECK(last_words("bash -c 'bash -c \"echo a\"'") == Words{"echo", "a"});
  TrainingPlan plan;
  const io::JobFile job =
      run("srun --jobid 7 --export ALL torchrun --nproc_per_node 4 train.py --model_name_or_path gpt2 "
          "--per_device_train_batch_size 3 --max_length 512 --learning_rate 1e-4 --output_dir o",
          plan);
  CHECK(job.model == "gpt2");
  CHECK(job.hardware.count == 4);
  CHECK(plan.batch == 3);
}

TEST_CASE("branches run as the text decides") {
  const std::string choose = "if [ \"$A\" = x ]; then M=1; elif [[ $N -gt 4 ]]; then M=2; else M=3; fi; run $M";
  CHECK(last_words("A=x\n" + choose) == Words{"run", "1"});
  CHECK(last_words("A=y; N=8\n" + choose) == Words{"run", "2"});
  CHECK(last_words("A=y; N=4\n" + choose) == Words{"run", "3"});
  CHECK(last_words("if [ -z \"$1\" ]; then M=none; else M=some; fi; run $M") == Words{"run", "none"});
  CHECK(last_words("if ! [ -n \"\" ]; then M=a; fi; if [ -f x ]; then M=b; fi; run $M") == Words{"run", "b"});
  CHECK(last_words("if false; then run no; if true; then run inner; fi; fi") == Words{});
  CHECK(last_words("S=7b\ncase $S in\n  1b|3b) B=16 ;;\n  7*) B=4 ;;\n  *) B=1 ;;\nesac\nrun $B") == Words{"run", "4"});
  CHECK(last_words("case $S in (a) B=1;; *) B=2;; esac; run $B") == Words{"run", "2"});
  CHECK(last_words("for b in 1 2 8; do run --b $b; done; run $b") == Words{"run", "8"});
}

TEST_CASE("functions are read where they are called") {
  CHECK(last_words("go() {\n  local n=$1; run $n \"$@\" ${3:-x}\n}\ngo 4 a\n") == Words{"run", "4", "4", "a", "x"});
  CHECK(last_words("function go { run $1; }\ngo 2; go 3") == Words{"run", "3"});
  CHECK(last_words("main () { run main; }\nrun last") == Words{"run", "last"});
  CHECK(last_words("main() { run only; }") == Words{"run", "only"});
  CHECK(last_words("f() { f; f; run x; }\nf") == Words{"run", "x"});
}

TEST_CASE("what ${...} makes of a value") {
  CHECK(last_words("P=/a/b.c.yaml\nrun ${P%.*} ${P%%.*} ${P##*/} ${P#/} ${P/b/X} ${#P}") ==
        Words{"run", "/a/b.c", "/a/b", "b.c.yaml", "a/b.c.yaml", "/a/X.c.yaml", "11"});
  CHECK(last_words("A=Llama; E=\nrun ${A,,} ${A^^} ${A:0:2} ${A:+y} ${E:+n} ${E:-d} ${E-d} ${A:?no}") ==
        Words{"run", "llama", "LLAMA", "Ll", "y", "d", "Llama"});
  CHECK(last_words("G=(0 1 2 3)\nrun ${#G[@]} ${G[1]} ${G[9]} $(( ${#G[@]} * 2 )) x${G[@]:1}") ==
        Words{"run", "4", "1", "8", "x${G[@]:1}"});
  CHECK(last_words("eval \"run --a 1\"") == Words{"run", "--a", "1"});
  CHECK(last_words("X=1 \\\r\n  run a \\\r\n  b\r\n") == Words{"run", "a", "b"});
}

TEST_CASE("files that the script writes are read from it") {
  TrainingPlan plan;
  const io::JobFile job =
      run("STAGE=2\ncat > ds.json <<EOF\n{\"zero_optimization\": {\"stage\": $STAGE}, \"bf16\": {\"enabled\": "
          "\"auto\"}}\nEOF\n"
          "cat <<'EOF' > train.yaml\nmodel_name_or_path: gpt2\nfinetuning_type: full\nbf16: true\ndeepspeed: ds.json\n"
          "per_device_train_batch_size: 2\nEOF\nNPROC_PER_NODE=4 llamafactory-cli train train.yaml cutoff_len=512\n",
          plan);
  CHECK(job.format == "llamafactory");
  CHECK(plan.engine == Engine::deepspeed);
  CHECK(plan.sharding.zero == 2);
  CHECK(plan.batch == 2);
  CHECK(plan.seq == 512);
}

TEST_CASE("the files that torchtune ships are known by name") {
  TrainingPlan plan;
  const io::JobFile job =
      run("tune run --nproc_per_node 2 lora_finetune_distributed --config llama3_1/8B_lora batch_size=4 "
          "tokenizer.max_seq_len=1024 model.lora_rank=32",
          plan);
  CHECK(job.format == "torchtune");
  CHECK(job.model == "llama-3.1-8b");
  CHECK(job.hardware.count == 2);
  CHECK(plan.batch == 4);
  CHECK(plan.seq == 1024);
  CHECK(plan.adapter.rank == 32);
  CHECK(plan.engine == Engine::fsdp2);
}

TEST_CASE("torchtune's recipes of pairs") {
  TrainingPlan plan;
  run("tune run lora_dpo_single_device --config llama3_1/8B_lora_dpo_single_device clip_grad_norm=1.0 "
      "enable_activation_offloading=true",
      plan);
  CHECK(plan.stage == Stage::dpo);
  CHECK(plan.seq == 1024);
  CHECK_FALSE(plan.clip);
  CHECK(plan.checkpointing.offload);
  plan = {};
  run("tune run --nproc_per_node 8 full_dpo_distributed --config llama3_1/8B_full_dpo clip_grad_norm=1.0", plan);
  CHECK(plan.method == Method::full);
  CHECK(plan.clip);
  CHECK(plan.engine == Engine::fsdp2);
}

TEST_CASE("torchtune offloads beside checkpoints only") {
  CHECK(problem_of("tune run lora_finetune_single_device --config llama3_1/8B_lora_single_device "
                   "enable_activation_checkpointing=false enable_activation_offloading=true")
            .find("enable_activation_offloading: stops the recipe without checkpoints") != std::string::npos);
}

TEST_CASE("references of OmegaConf are followed") {
  TrainingPlan plan;
  Problems problems;
  const io::JobFile job = io::import_text(
      "rank: 12\nsizes: {len: 768}\nmodel:\n  _component_: torchtune.models.llama2.lora_llama2_7b\n  lora_rank: "
      "${rank}\n"
      "  lora_attn_modules: [q_proj]\ntokenizer: {max_seq_len: '${sizes.len}'}\nbatch_size: ${oc.env:BATCH,3}\ndtype: "
      "bf16\n"
      "output_dir: ${a}\na: ${output_dir}/x\n",
      "job.yaml", "", {}, problems);
  read_plan(job.plan, job.file, plan, problems);
  CHECK(problems.empty());
  CHECK(plan.adapter.rank == 12);
  CHECK(plan.seq == 768);
  CHECK(plan.batch == 3);
}

TEST_CASE("what Slurm is told counts") {
  TrainingPlan plan;
  const std::string job =
      "train.py --model_name_or_path gpt2 --per_device_train_batch_size 1 --max_length 512 "
      "--learning_rate 1e-4 --output_dir o";
  CHECK(run("#!/bin/bash\n#SBATCH --nodes=2 --ntasks-per-node=4\n#SBATCH --gres=gpu:a100:4\nsrun python " + job, plan)
            .hardware.count == 8);
  CHECK(run("#!/bin/bash\n#SBATCH -N 3\n#SBATCH --gpus-per-node 2\ntorchrun --nnodes $SLURM_NNODES "
            "--nproc_per_node $SLURM_GPUS_ON_NODE " +
                job,
            plan)
            .hardware.count == 6);
  CHECK(run("#!/bin/bash\nsrun -N2 --ntasks-per-node 2 --nodes 2 python " + job, plan).hardware.count == 4);
}

TEST_CASE("Megatron's latent attention, layers without experts and Mamba layers") {
  const std::string start =
      "torchrun --nproc_per_node 8 pretrain_gpt.py --hidden-size 2048 --num-attention-heads 16 --swiglu --seq-length "
      "4096 "
      "--vocab-size 102400 --micro-batch-size 1 --global-batch-size 8 --bf16 --num-experts 64 --moe-ffn-hidden-size "
      "1408 "
      "--ffn-hidden-size 10944 --moe-router-topk 6 --num-layers ";
  const std::string shared = " --moe-shared-expert-intermediate-size 2816";
  const auto value = [](const io::JobFile& job, const char* key) { return io::value_text(*job.config->find(key)); };
  TrainingPlan plan;
  const io::JobFile lite =
      run(start + "27 --multi-latent-attention --kv-lora-rank 512 --moe-layer-freq '([0]+[1]*26)'" + shared, plan);
  CHECK(value(lite, "model_type") == "deepseek_v2");
  CHECK(value(lite, "first_k_dense_replace") == "1");
  CHECK(value(lite, "n_shared_experts") == "2");
  CHECK(value(lite, "q_lora_rank") == "null");
  const io::JobFile turns = run(start + "4 --moe-layer-freq [0,1]*2" + shared, plan);
  CHECK(value(turns, "model_type") == "qwen2_moe");
  CHECK(value(turns, "mlp_only_layers") == "[0, 2]");
  CHECK(value(run(start + "4 --qk-layernorm --moe-layer-freq 3", plan), "mlp_only_layers") == "[1, 2]");
  CHECK(problem_of(start + "4 --qk-layernorm --moe-layer-freq [1]*3") ==
        "run.sh: moe_layer_freq: '[1]*3' is no pattern of 4 layers (a number, or [0]*1+[1]*26)");
  CHECK(problem_of(start + "4 --is-hybrid-model") ==
        "run.sh: is_hybrid_model: Mamba layers are not billed under Megatron");
}

TEST_CASE("a command that converts or evaluates is not the one that trains") {
  TrainingPlan plan;
  const std::string flags =
      " --model_name_or_path gpt2 --output_dir o --learning_rate 1 --bf16 --per_device_eval_batch_size ";
  CHECK(run("python train.py" + flags + "1 --per_device_train_batch_size 7\npython eval_model.py" + flags +
                "1 --per_device_train_batch_size 9\n",
            plan)
            .format == "hf-trainer");
  CHECK(plan.batch == 7);
}

TEST_CASE("launchers' other spellings") {
  TrainingPlan plan;
  const std::string job =
      " train.py --model_name_or_path gpt2 --per_device_train_batch_size 1 --max_length 512 "
      "--learning_rate 1e-4 --output_dir o";
  CHECK(run("deepspeed --include=a:0,1@b:0,1" + job, plan).hardware.count == 4);
  CHECK(run("deepspeed --include localhost:3" + job, plan).hardware.count == 1);
  CHECK(run("accelerate-launch --num_processes 3" + job, plan).hardware.count == 3);
  CHECK(run("accelerate launch --config_file nowhere/zero3.yaml --num_processes 4" + job, plan).hardware.count == 4);
  CHECK(plan.sharding.zero == 3);
  CHECK(run("python -m accelerate.commands.launch --num_processes 2" + job + " --no_gradient_checkpointing", plan)
            .format == "hf-trainer");
  Problems problems;
  CHECK(io::import_command({"bash", "-c", "torchrun --nproc_per_node 2" + job}, {}, problems).hardware.count == 2);
  const io::JobFile tuned = io::import_command(
      {"tune", "run", "lora_finetune_single_device", "--config", "llama3_2/1B_lora_single_device", "~optimizer.fused"},
      {}, problems);
  CHECK(tuned.plan.find("optimizer_impl") == nullptr);
  CHECK(io::import_command(
            {"axolotl", "train", "--base-model", "gpt2", "--sequence-len", "64", "--", "--nproc_per_node=2"}, {},
            problems)
            .hardware.count == 2);
  CHECK(problems.empty());
}

TEST_CASE("variables of the environment in a file take their defaults") {
  Problems problems;
  const io::JobFile job = io::import_text(
      "base_model: gpt2\nsequence_len: ${SEQ:-512}\nmicro_batch_size: 1\nadapter: lora\nlora_r: 8\nlora_target_linear: "
      "true\n",
      "job.yml", "", {}, problems);
  CHECK(problems.empty());
  CHECK(job.plan.find("seq")->as_int() == 512);
  CHECK(job.assumptions.front() == "SEQ is not set: its default 512 is taken");
}

TEST_CASE("a switch that makes DeepSpeed's configuration") {
  TrainingPlan plan;
  (void)run(
      "deepspeed --num_gpus 8 main.py --model_name_or_path gpt2 --per_device_train_batch_size 4 --max_seq_len 512 "
      "--gradient_accumulation_steps 2 --zero_stage 3 --deepspeed --offload --output_dir o",
      plan);
  CHECK(plan.engine == Engine::deepspeed);
  CHECK(plan.sharding.zero == 3);
  CHECK(plan.sharding.offload == "optimizer+param");
  CHECK(plan.optimizer == "cpu-adam");
  CHECK(plan.precision == Precision::master_fp16);
  CHECK(plan.seq == 512);
}

TEST_CASE("command lines of litgpt, torchtune and verl") {
  TrainingPlan plan;
  CHECK(run("litgpt finetune_lora gpt2 --lora_r 4 --train.micro_batch_size 2", plan).model == "gpt2");
  CHECK(plan.batch == 2);
  CHECK(problem_of("tune run lora_finetune_single_device --config llama3_1/no_such batch_size=4") ==
        "run.sh: --config: 'llama3_1/no_such' is no file that torchtune 0.6.1 ships (tune cp llama3_1/no_such job.yaml "
        "writes it here)");
  TrainingPlan sft;
  const io::JobFile job =
      run("torchrun --standalone --nproc_per_node=8 -m verl.trainer.fsdp_sft_trainer data.micro_batch_size_per_gpu=8 "
          "data.max_length=2048 model.partial_pretrain=gpt2 model.lora_rank=32 +trainer.note=x trainer.logger=console",
          sft);
  CHECK(job.format == "verl");
  CHECK(sft.batch == 8);
  CHECK(sft.seq == 2048);
  CHECK(sft.adapter.rank == 32);
  CHECK(sft.engine == Engine::fsdp2);
  CHECK(sft.accumulate == 4);
}

TEST_CASE("Megatron-SWIFT: what an expert takes, adapters on joined linears, a tower that trains") {
  const std::string job =
      "#!/bin/sh\nmegatron sft --model Qwen/Qwen3-30B-A3B --expert_model_parallel_size 8 --max_length 512 ";
  TrainingPlan plan;
  run(job + "--moe_expert_capacity_factor 2\n", plan);
  CHECK(plan.sharding.engine_keys.at("moe_expert_capacity_factor") == "2");
  run(job + "--moe_expert_capacity_factor 1.25 --tuner_type lora --target_modules linear_qkv\n", plan);
  CHECK(plan.sharding.engine_keys.at("moe_expert_capacity_factor") == "1.25");
  CHECK(plan.method == Method::lora);
  CHECK(problem_of(job + "--tuner_type lora_llm\n").find("lora_llm") != std::string::npos);
}

}  // namespace membill::importers_test
