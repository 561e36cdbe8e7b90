// Commands inside of a launch script whose answer follows from it.
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "io/importers/importer.h"
#include "io/importers/shell_words.h"
#include "launch_text.h"
#include "membill/catalog.h"
#include "support/catch.h"

namespace membill::importers_test {

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

TEST_CASE("positions of a script, and what shift and set leave of them") {
  CHECK(last_words("set -- a b 'c d'\nrun $1 \"$3\" $#") == Words{"run", "a", "c d", "3"});
  CHECK(last_words("set -- a b c\nshift\nrun $1 $2 $3 ${@}") == Words{"run", "b", "c", "$3", "b", "c"});
  CHECK(last_words("f() { local x=$1; shift; run $x $1 $#; }\nf p q r\n") == Words{"run", "p", "q", "2"});
  CHECK(last_words("set -- a\nshift 9\nrun $1") == Words{"run", "$1"});
  CHECK(last_words("T=4\nrun $(( ($T > 1) ? 8 : 9 )) $((T<=3)) $((T == 4)) $((1 ? 2))") ==
        Words{"run", "8", "0", "1", "$((1 ? 2))"});
}

TEST_CASE("a script that a command starts gets its words") {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / "membill_called_script";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "tune.sh") << "shift\nswift sft --model $1 --max_length ${2:-512} --tuner_type full\n";
  std::ofstream(folder / "outer.sh") << "bash tune.sh x Qwen/Qwen2.5-0.5B 2048\n";
  Problems problems;
  const io::JobFile job =
      io::import_command({"bash", (folder / "tune.sh").string(), "x", "Qwen/Qwen3-0.6B", "1024"}, {}, problems);
  CHECK(job.model == "Qwen/Qwen3-0.6B");
  CHECK(job.plan.find("seq")->as_int() == 1024);
  const io::JobFile outer = io::import_job((folder / "outer.sh").string(), {}, problems);
  CHECK(outer.model == "Qwen/Qwen2.5-0.5B");
  CHECK(problems.empty());
  std::filesystem::remove_all(folder);
}

TEST_CASE("a script that lacks its words is told how to get them") {
  CHECK(problem_of("swift sft --model Qwen/Qwen3-0.6B --max_length $3\n").find("membill check -- bash run.sh") !=
        std::string::npos);
  CHECK(problem_of("torchrun train.py --model_name_or_path gpt2 --per_device_train_batch_size 1 --output_dir o "
                   "--deepspeed $1\n")
            .find("membill check -- bash run.sh") != std::string::npos);
  CHECK(problem_of("swift sft --model Qwen/Qwen3-0.6B --max_length $LENGTH\n").find("set the variable") !=
        std::string::npos);
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
