// Commands inside of a launch script whose answer follows from it.
#include <string>
#include <vector>

#include "io/importers/importer.h"
#include "io/importers/shell_words.h"
#include "membill/catalog.h"
#include "support/catch.h"

namespace membill::importers_test {
namespace {

using Words = std::vector<std::string>;

Words last_words(const std::string& script) {
  const std::vector<io::ShellCommand> commands = io::split_script(script);
  return commands.empty() ? Words() : commands.back().words;
}

io::JobFile run(const std::string& script, TrainingPlan& plan) {
  Problems problems;
  io::JobFile job = io::import_text(script, "run.sh", "", {}, problems);
  read_plan(job.plan, job.file, plan, problems);
  for (const Problem& problem : problems.list()) UNSCOPED_INFO(to_text(problem));
  CHECK(problems.empty());
  return job;
}

}  // namespace

TEST_CASE("what a few commands print follows from the script") {
  CHECK(last_words("run `pwd`/a \"$(pwd)/b\" $(dirname \"$0\")/c") == Words{"run", "./a", "./b", "./c"});
  CHECK(last_words("D=\"$(cd \"$(dirname \"${BASH_SOURCE[0]}\")/..\" && pwd)\"\nrun $D/x") == Words{"run", "./../x"});
  CHECK(last_words("CUDA_VISIBLE_DEVICES=0,1,2\nN=$(echo $CUDA_VISIBLE_DEVICES | tr ',' '\\n' | wc -l)\nrun $N") ==
        Words{"run", "3"});
  CHECK(last_words("CUDA_VISIBLE_DEVICES=0,1\nrun $(echo $CUDA_VISIBLE_DEVICES | awk -F',' '{print NF}')") ==
        Words{"run", "2"});
  CHECK(last_words("#SBATCH --gres=gpu:4\nrun $(nvidia-smi -L | wc -l)") == Words{"run", "4"});
  CHECK(last_words("run $(nvidia-smi -L | wc -l) `date` `expr 2 \\* 3`") ==
        Words{"run", "$(nvidia-smi -L | wc -l)", "`date`", "6"});
}

TEST_CASE("DeepSpeed-Chat's own adapters, and cards that accelerate is not told") {
  TrainingPlan chat, counted;
  (void)run(
      "deepspeed main.py --model_name_or_path facebook/opt-1.3b --per_device_train_batch_size 8 --max_seq_len 512 "
      "--deepspeed --zero_stage 2 --lora_dim 128 --only_optimize_lora\n",
      chat);
  CHECK(chat.method == Method::lora);
  CHECK(chat.adapter.rank == 128);
  const io::JobFile job =
      run("accelerate launch --num_processes $((N * M)) examples/scripts/sft.py --model_name Qwen/Qwen2.5-0.5B "
          "--output_dir o --max_length 128\n",
          counted);
  CHECK(job.model == "Qwen/Qwen2.5-0.5B");
  CHECK(job.assumptions.front().find("--gpus says it") != std::string::npos);
}

}  // namespace membill::importers_test
