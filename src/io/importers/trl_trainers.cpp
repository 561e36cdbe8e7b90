#include "io/importers/trl_trainers.h"

#include <utility>

#include "base/text.h"

namespace membill::io {
namespace {

// Trainers that hold or generate what is not billed, by the names of their scripts.
struct UnbilledTrainer {
  std::string_view script, what;
};
constexpr UnbilledTrainer kUnbilled[] = {{"gkd", "GKD, which runs a teacher,"},
                                         {"gold", "GOLD, which runs a teacher,"},
                                         {"minillm", "MiniLLM, which runs a teacher,"},
                                         {"sdft", "self-distillation, which runs a teacher,"},
                                         {"distillation", "distillation, which runs a teacher,"},
                                         {"online_dpo", "online DPO, which trains on pairs that it generates,"},
                                         {"dpo_online", "online DPO, which trains on pairs that it generates,"},
                                         {"nash_md", "Nash-MD, which trains on pairs that it generates,"},
                                         {"xpo", "XPO, which trains on pairs that it generates,"},
                                         {"bco", "BCO, which runs a classifier of prompts,"},
                                         {"prm", "PRM, which scores tokens,"}};

// --stage and the trainer that it means, where TRL has one.
constexpr std::pair<std::string_view, std::string_view> kStageTrainers[] = {
    {"pretrain", "sft"}, {"sft", "sft"}, {"dpo", "dpo"},   {"orpo", "orpo"},    {"simpo", "cpo"},
    {"kto", "kto"},      {"ppo", "ppo"}, {"grpo", "grpo"}, {"reward", "reward"}};

// The program's own name, without its folder and ending.
std::string script_of(const JobSource& source) {
  if (source.launch.program.empty()) return {};
  const std::string& last = source.launch.program.back();
  const std::string name = to_lower(last.substr(last.rfind('/') + 1));
  return name.ends_with(".py") ? name.substr(0, name.size() - 3) : name;
}

}  // namespace

bool mentions(const JobSource& source, std::string_view word) {
  for (const std::string& part : source.launch.program) {
    if (to_lower(part).find(word) != std::string::npos) return true;
  }
  return false;
}

void refuse_unbilled(const JobSource& source, Draft& draft) {
  const std::string script = script_of(source);
  for (const UnbilledTrainer& trainer : kUnbilled)
    if (script == trainer.script)
      draft.problems.add({draft.file, script, std::string(trainer.what) + " is not billed",
                          "sft, dpo, orpo, kto, cpo, ppo, grpo, rloo or reward"});
}

std::string trainer_of(const JobSource& source, Draft& draft) {
  if (draft.is_given("stage")) {
    const std::string stage = to_lower(draft.context.given.at("stage"));
    for (const auto& [name, trainer] : kStageTrainers)
      if (name == stage) return std::string(trainer);
  }
  for (const char* name : {"grpo", "dpo", "orpo", "kto", "cpo", "reward", "rloo", "ppo", "sft"}) {
    if (mentions(source, name)) return name;
  }
  std::string guess = "sft";
  if (source.keys.find("reward_funcs") != nullptr || source.keys.find("num_generations") != nullptr) {
    guess = "grpo";
  } else if (source.keys.find("beta") != nullptr) {
    guess = "dpo";
  }
  if (guess != "grpo") draft.assume(draft.file + " does not name its trainer: " + guess + " by its keys");
  return guess;
}

}  // namespace membill::io
