#include "estimate/inference.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "blocks/serve.h"
#include "blocks/stage_args.h"
#include "estimate/rollout.h"
#include "estimate/runtime_lines.h"
#include "membill/catalog.h"

namespace membill {
namespace {

// What an engine's fraction is a fraction of.
enum class Share : std::uint8_t { card, card_without_activations, left_beside_weights, all };

struct EngineRow {
  std::string_view name;
  Share share;
  std::int64_t thousandths;  // the default
  std::string_view note;
};

constexpr std::int64_t kComputed = 0;

// vllm 0.29 config/cache.py gpu_memory_utilization (0.9 until 0.11); sglang 0.5 server_args.py mem_fraction_static; lmdeploy 0.10
// messages.py cache_max_entry_count.
constexpr std::array kEngines{
    EngineRow{"transformers", Share::all, 1000, ""},
    EngineRow{"vllm", Share::card, 920, "gpu_memory_utilization"},
    EngineRow{"sglang", Share::card_without_activations, kComputed, "mem_fraction_static"},
    EngineRow{"lmdeploy", Share::left_beside_weights, 800, "cache_max_entry_count, of what the weights leave"},
};

constexpr std::int64_t kThousand = 1000;

// sglang 0.5 server_args.py _handle_gpu_memory_settings: what cards below a size take at once, and how many sequences a CUDA graph
// holds at most; one card a model.
struct SglangCard {
  std::int64_t below_gib, chunk, graph;
};
constexpr std::array kSglangCards{SglangCard{20, 2048, 8}, SglangCard{35, 2048, 24}, SglangCard{60, 4096, 32},
                                  SglangCard{160, 8192, 256}, SglangCard{1 << 20, 16384, 512}};

// The card less 512 MiB, 1.5 MiB a token of a chunk, 2 MiB a sequence of a graph and 128 MiB, of large cards 10 GiB at least.
std::int64_t sglang_thousandths(std::int64_t card) {
  constexpr std::int64_t kMib = 1 << 20, kFixed = 512 + 128, kLarge = 60 << 10, kLeastOfLarge = 10 << 10;
  const std::int64_t mib = std::max<std::int64_t>(card / kMib, 1);
  const auto* row = std::find_if(kSglangCards.begin(), kSglangCards.end(),
                                 [&](const SglangCard& entry) { return mib < entry.below_gib << 10; });
  const SglangCard& of_card = row == kSglangCards.end() ? kSglangCards.back() : *row;
  std::int64_t kept = kFixed + of_card.chunk * 3 / 2 + 2 * of_card.graph;
  if (mib > kLarge) kept = std::max(kept, kLeastOfLarge);
  return std::max<std::int64_t>(0, ((mib - kept) * kThousand + mib / 2) / mib);
}

const EngineRow& engine_row(const TrainingPlan& plan) {
  const auto* found = std::find_if(kEngines.begin(), kEngines.end(),
                                   [&](const EngineRow& row) { return row.name == plan.inference.engine; });
  return found == kEngines.end() ? kEngines.front() : *found;
}

std::int64_t thousandths(const TrainingPlan& plan, std::int64_t card) {
  if (plan.inference.memory_fraction) return std::llround(*plan.inference.memory_fraction * kThousand);
  const std::int64_t usual = engine_row(plan).thousandths;
  return usual == kComputed ? sglang_thousandths(card) : usual;
}

std::int64_t share_of(std::int64_t bytes, std::int64_t thousandths) {
  return bytes / kThousand * thousandths + bytes % kThousand * thousandths / kThousand;
}

// 850 -> "0.850".
std::string decimal(std::int64_t thousandths) {
  const std::string rest = std::to_string(thousandths % kThousand);
  return std::to_string(thousandths / kThousand) + "." + std::string(3 - rest.size(), '0') + rest;
}

// GRPO with vLLM: trl 1.16 trainer/grpo_config.py.
bool colocated(const TrainingPlan& plan) {
  const auto mode = plan.stage_args.find("vllm_mode");
  return mode == plan.stage_args.end() || mode->second == "colocate";
}

bool runs_beside_vllm(const TrainingPlan& plan) {
  return generates(plan.stage) && stage_flag(plan, "use_vllm") && colocated(plan);
}

bool shares_with_vllm(const TrainingPlan& plan) {
  return runs_beside_vllm(plan) && !stage_flag(plan, "vllm_enable_sleep_mode");
}

double vllm_share(const TrainingPlan& plan) {
  constexpr double kDefault = 0.3;
  return std::clamp(stage_number(plan, "vllm_gpu_memory_utilization").value_or(kDefault), 0.0, 1.0);
}

std::string in_gib(std::int64_t bytes) {
  const std::int64_t tenths = (bytes * 10 + (std::int64_t{1} << 29)) >> 30;
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " GiB";
}

std::int64_t item_bytes(const Report& report, std::string_view prefix) {
  std::int64_t sum = 0;
  for (const LineItem& item : report.items)
    if (item.where == Place::device && item.id.rfind(prefix, 0) == 0) sum = checked_add(sum, item.bytes.value_or(0));
  return sum;
}

// Bytes that the engine gives to its cache on a card of `usable`; `context` lies beside the allocator.
std::int64_t cache_budget(const Report& report, const TrainingPlan& plan, std::int64_t usable, std::int64_t context) {
  const std::int64_t weights = item_bytes(report, "weights."), cache = item_bytes(report, "kv_cache"),
                     rest = *report.totals.requested.likely - cache, share = thousandths(plan, usable);
  switch (engine_row(plan).share) {
    case Share::card: return share_of(usable, share) - context - rest;
    case Share::card_without_activations: return share_of(usable - context, share) - weights;
    case Share::left_beside_weights: return share_of(usable - context - weights, share);
    case Share::all: break;
  }
  return usable - context - rest;
}

}  // namespace

TrainingPlan served_plan(const TrainingPlan& plan) {
  TrainingPlan served = plan;
  served.precision = plan.weights == WeightFormat::fp32   ? Precision::fp32
                     : plan.weights == WeightFormat::fp16 ? Precision::pure_fp16
                                                          : Precision::pure_bf16;
  served.kbit_prepare = false;
  served.checkpointing = {};
  served.dropout = 0;
  served.loop = Loop::plain;
  return served;
}

Hardware shared_hardware(const TrainingPlan& plan, const Hardware& hardware) {
  const auto usable = hardware.usable();
  if (!usable) return hardware;
  const Share share = engine_row(plan).share;
  const bool serves =
      plan.stage == Stage::inference && (share == Share::card || share == Share::card_without_activations);
  std::int64_t left = kThousand;
  if (serves) left = thousandths(plan, usable->count());
  if (shares_with_vllm(plan)) left = kThousand - std::llround(vllm_share(plan) * kThousand);
  Hardware shared = hardware;
  const std::int64_t others = checked_sub(usable->count(), share_of(usable->count(), left));
  shared.others_use = Bytes(checked_add(hardware.others_use.count(), others));
  return shared;
}

std::int64_t woken_bytes(const TrainingPlan& plan, const Hardware& hardware) {
  const auto usable = hardware.usable();
  if (!usable || !runs_beside_vllm(plan) || shares_with_vllm(plan)) return 0;
  return share_of(usable->count(), std::llround(vllm_share(plan) * kThousand));
}

std::string colocation_note(const TrainingPlan& plan) {
  if (!generates(plan.stage) || !stage_flag(plan, "use_vllm")) return {};
  if (!colocated(plan)) return "vLLM generates on other cards";
  const std::string share = "vLLM takes " + decimal(std::llround(vllm_share(plan) * kThousand)) + " of the card";
  if (!shares_with_vllm(plan)) return share + " while it generates, and none while the model trains (sleep mode)";
  return share + " and generates there; the rest is the training's";
}

std::vector<std::string> inference_notes(const Report& report, const TrainingPlan& plan, const Hardware& hardware) {
  const auto usable = hardware.usable();
  const std::int64_t cache = item_bytes(report, "kv_cache");
  if (!usable || cache == 0) return {};
  const std::int64_t context = *context_bytes(hardware, plan).likely,
                     budget = std::max<std::int64_t>(0, cache_budget(report, plan, usable->count(), context)),
                     sequence = (cache - 1) / plan.batch + 1;
  std::vector<std::string> notes;
  const EngineRow& row = engine_row(plan);
  if (row.share != Share::all) {
    notes.push_back("inference: " + std::string(row.name) + " takes " + decimal(thousandths(plan, usable->count())) +
                    " (" + std::string(row.note) + ")");
  }
  notes.push_back("inference: " + in_gib(budget) +
                  " are left for keys and values: " + std::to_string(budget / sequence) + " sequences of " +
                  std::to_string(plan.seq) + " tokens, " + std::to_string(sequence / plan.seq) + " bytes a token");
  return notes;
}

void check_inference(const TrainingPlan& plan, Problems& problems) {
  if (plan.stage != Stage::inference) return;
  const InferencePlan& inference = plan.inference;
  if (has_paged_cache(inference)) return;
  if (inference.kv_cache != "auto")
    problems.add({"", "inference.kv_cache",
                  inference.kv_cache + ": transformers keeps keys and values as it computes them",
                  "auto, or engine vllm, sglang or lmdeploy"});
  if (inference.memory_fraction)
    problems.add({"", "inference.memory_fraction", "transformers takes no share of the card",
                  "engine vllm, sglang or lmdeploy"});
}

}  // namespace membill
