// One simulation for many batches and lengths says what a simulation of each says.
#include <array>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "estimate/rank_model.h"
#include "estimate/simulation.h"
#include "io/model_source.h"
#include "io/preset_files.h"
#include "membill/catalog.h"
#include "membill/estimate.h"
#include "support/catch.h"
#include "support/places.h"

namespace membill {
namespace {

struct Plan {
  const char* name;
  std::vector<PlanSetting> settings;
};

const std::vector<Plan>& plans() {
  static const std::vector<Plan> list{
      {"full", {}},
      {"checkpointed lora", {{"method", "lora"}, {"adapter.rank", "16"}, {"checkpointing", "full"}}},
      {"qlora", {{"method", "qlora"}, {"adapter.targets", "all-linear"}, {"optimizer", "adamw_8bit"}}},
      {"eager, accumulated", {{"attention", "eager"}, {"accumulate", "4"}, {"precision", "master-bf16"}}},
      {"masked", {{"attention_mask", "true"}, {"attention", "mem-efficient"}, {"loop", "plain"}}},
      {"math", {{"attention", "sdpa-math"}, {"checkpointing", "full"}, {"weights", "fp32"}}},
      {"liger", {{"implementation", "liger"}}},
      {"ddp", {{"engine", "ddp"}, {"method", "lora"}, {"adapter.targets", "all-linear"}}},
  };
  return list;
}

constexpr std::array<std::int64_t, 4> kBatches{1, 2, 3, 8};
constexpr std::array<std::int64_t, 7> kSeqs{1, 16, 100, 1024, 2048, 4096, 5000};

std::string figures_text(const CaseFigures& figures) {
  std::ostringstream out;
  out << figures.requested << ' ' << figures.peak_moment << ' ' << figures.at_least << ' '
      << figures.allocated.value_or(-1) << ' ' << figures.reserved.value_or(-1) << ' ' << figures.device.value_or(-1)
      << ' ' << figures.headroom.value_or(-1) << ' ' << static_cast<int>(figures.answer);
  return out.str();
}

CaseFigures figures_of(const Report& report) {
  CaseFigures figures;
  figures.requested = *report.totals.requested.likely;
  figures.peak_moment = report.peak_moment;
  figures.at_least = report.at_least;
  figures.allocated = report.totals.allocated.likely;
  figures.reserved = report.totals.reserved.likely;
  figures.device = report.totals.device.likely;
  figures.headroom = report.verdict.headroom;
  figures.answer = report.verdict.answer;
  return figures;
}

// One preset of each model type.
std::vector<std::string> one_of_each_type() {
  std::vector<std::string> names;
  std::set<std::string> types;
  for (const auto& entry : std::filesystem::directory_iterator(test::in_source("data/models"))) {
    const std::string name = entry.path().stem().string();
    const ModelSpec model = io::describe_model(io::load_model(name, {}, "MODEL"));
    if (types.insert(model.model_type).second) names.push_back(name);
  }
  return names;
}

// Every `stride`-th shape, each batch and each length among them; `turn` says which.
void check_family(const std::string& name, const Plan& sampled, bool replay, std::size_t stride, std::size_t turn) {
  const ModelSpec model = io::describe_model(io::load_model(name, {}, "MODEL"));
  TrainingPlan plan;
  Problems problems;
  read_plan_settings(sampled.settings, "test", plan, problems);
  if (model.model_type == "bloom") plan.attention = AttentionKernel::eager;  // the only one that it has
  Hardware hardware;
  hardware.gpu = GpuSpec();
  hardware.gpu->usable = 80_GiB;
  if (plan.engine == Engine::ddp) hardware.count = 4;
  if (!validate(model, plan, hardware).empty()) return;
  JobFamily family(model, plan, hardware);
  std::string wrong;
  for (std::size_t i = 0; i < kBatches.size(); ++i) {
    for (std::size_t j = 0; j < kSeqs.size(); ++j) {
      if ((i + j + turn) % stride != 0) continue;
      const std::int64_t batch = plan.batch = kBatches[i], seq = plan.seq = kSeqs[j];
      EstimateOptions options;
      options.replay = replay;
      const std::string single = figures_text(figures_of(estimate(model, plan, hardware, options)));
      const std::string shared = figures_text(replay ? family.replay(batch, seq) : family.fold(batch, seq));
      if (single == shared) continue;
      wrong += name + ", " + sampled.name + ", " + std::to_string(batch) + " x " + std::to_string(seq) + ": " + shared +
               ", not " + single + "\n";
    }
  }
  CHECK(wrong == "");
}

}  // namespace

TEST_CASE("shared folds equal single estimates for every model type") {
  std::size_t turn = 0;
  for (const std::string& name : one_of_each_type()) {
    ++turn;
    for (std::size_t i = 0; i < plans().size(); ++i) check_family(name, plans()[i], false, kBatches.size(), turn + i);
  }
}

TEST_CASE("shared replays equal single estimates") {
  for (const Plan& plan : plans()) check_family("llama-3.2-1b", plan, true, 1, 0);
}

// A decision on the value of a size binds the trace to one batch and length: a sweep would simulate every case again.
TEST_CASE("a checkpointed LoRA job's trace is not bound to one batch and length") {
  TrainingPlan plan;
  Problems problems;
  read_plan_settings({{"method", "lora"}, {"checkpointing", "full"}, {"batch", "3"}}, "test", plan, problems);
  const ModelSpec model = with_sections(io::describe_model(io::load_model("llama-2-7b", {}, "MODEL")));
  const Simulation job = simulate_shape(model, plan, Hardware());
  std::size_t bound = 0;
  for (const Decision& decision : job.symbols.decisions()) bound += decision.kind == Decision::Kind::value;
  CHECK(bound == 0);
}

// A size that is read from the plan itself is not among the decisions that tell which cases share a simulation.
TEST_CASE("traces ask the symbols for batch and seq") {
  std::string found;
  for (const char* folder : {"src/program", "src/blocks", "src/estimate/engines"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(test::in_source(folder))) {
      if (entry.path().filename() == "forward.cpp" || entry.is_directory()) continue;
      std::ifstream file(entry.path());
      for (std::string line; std::getline(file, line);)
        for (const char* read : {"plan.batch", "plan.seq", "plan_.batch", "plan_.seq"})
          if (line.find(read) != std::string::npos) found += entry.path().filename().string() + ": " + line + "\n";
    }
  }
  CHECK(found == "");
}

}  // namespace membill
