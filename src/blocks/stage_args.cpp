#include "blocks/stage_args.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <vector>

#include "base/text.h"

namespace membill {
namespace {

enum class Kind : std::uint8_t { text, number, count, flag };

struct Argument {
  std::string_view key;
  Kind kind;
};

// The ones that move memory, and those of their neighbours that jobs often name.
constexpr std::array kArguments{
    Argument{"loss_type", Kind::text},
    Argument{"num_labels", Kind::count},
    Argument{"kd_loss", Kind::text},
    Argument{"cpo_alpha", Kind::number},
    Argument{"simpo_gamma", Kind::number},
    Argument{"label_smoothing", Kind::number},
    Argument{"rpo_alpha", Kind::number},
    Argument{"temperature", Kind::number},
    Argument{"packing_strategy", Kind::text},
    Argument{"use_liger_loss", Kind::flag},
    Argument{"use_weighting", Kind::flag},
    Argument{"disable_dropout", Kind::flag},
    Argument{"use_logits_to_keep", Kind::flag},
    Argument{"steps_per_generation", Kind::count},
    Argument{"num_iterations", Kind::count},
    Argument{"num_mini_batches", Kind::count},
    Argument{"num_ppo_epochs", Kind::count},
    Argument{"local_rollout_forward_batch_size", Kind::count},
    Argument{"use_vllm", Kind::flag},
    Argument{"vllm_mode", Kind::text},
    Argument{"vllm_gpu_memory_utilization", Kind::number},
    Argument{"vllm_enable_sleep_mode", Kind::flag},
    Argument{"vllm_importance_sampling_correction", Kind::flag},
};

template <typename T>
std::optional<T> parsed(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

const std::string* find_text(const TrainingPlan& plan, std::string_view key) {
  const auto found = plan.stage_args.find(std::string(key));
  return found == plan.stage_args.end() ? nullptr : &found->second;
}

std::string_view unlike(const Argument& argument, const std::string& text) {
  switch (argument.kind) {
    case Kind::text: return "";
    case Kind::number: return parsed<double>(text) ? "" : "needs a number";
    case Kind::count: return parsed<std::int64_t>(text).value_or(0) >= 1 ? "" : "needs a whole number of at least 1";
    case Kind::flag: return text == "true" || text == "false" ? "" : "needs true or false";
  }
  return "";
}

}  // namespace

std::optional<double> stage_number(const TrainingPlan& plan, std::string_view key) {
  const std::string* text = find_text(plan, key);
  return text == nullptr ? std::nullopt : parsed<double>(*text);
}

std::optional<std::int64_t> stage_count(const TrainingPlan& plan, std::string_view key) {
  const std::string* text = find_text(plan, key);
  return text == nullptr ? std::nullopt : parsed<std::int64_t>(*text);
}

std::string stage_word(const TrainingPlan& plan, std::string_view key) {
  const std::string* text = find_text(plan, key);
  return text == nullptr ? std::string() : *text;
}

bool stage_flag(const TrainingPlan& plan, std::string_view key) {
  const std::string* text = find_text(plan, key);
  return text != nullptr && *text == "true";
}

bool is_supervised(const TrainingPlan& plan) { return plan.stage == Stage::sft || plan.stage == Stage::pretrain; }

bool is_trl_stage(Stage stage) {
  return stage != Stage::sft && stage != Stage::pretrain && stage != Stage::classification && stage != Stage::distill &&
         stage != Stage::inference;
}

bool smooths_labels(const TrainingPlan& plan) {
  return is_supervised(plan) && stage_number(plan, "label_smoothing").value_or(0) > 0;
}

void check_stage_args(const TrainingPlan& plan, Problems& problems) {
  for (const auto& argument_given : plan.stage_args) {
    const std::string &key = argument_given.first, &text = argument_given.second;
    const auto* known = std::find_if(kArguments.begin(), kArguments.end(),
                                     [&](const Argument& argument) { return argument.key == key; });
    if (known == kArguments.end()) {
      std::vector<std::string_view> keys;
      keys.reserve(std::size(kArguments));
      for (const Argument& argument : kArguments) keys.push_back(argument.key);
      problems.add({"", "stage_args." + key, "unknown key", std::string(nearest_word(key, keys))});
    } else if (const std::string_view wrong = unlike(*known, text); !wrong.empty()) {
      problems.add({"", "stage_args." + key, std::string(wrong) + ", not " + text, ""});
    }
  }
}

}  // namespace membill
