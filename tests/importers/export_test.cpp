// What is exported reads back as the same plan: real job files through their own formats and through membill's.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "io/exporters/exporter.h"
#include "io/importers/importer.h"
#include "io/model_source.h"
#include "membill/catalog.h"
#include "support/catch.h"
#include "support/places.h"

namespace membill::importers_test {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> files_in(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string extension = entry.path().extension().string();
    const bool job = extension == ".yaml" || extension == ".yml" || extension == ".json" || extension == ".sh";
    if (job && entry.path().parent_path().filename() != "hf-config.json") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

// The job in a file; false when it is refused.
bool read(const fs::path& file, std::string& format, io::ExportJob& job) {
  Problems problems;
  try {
    const io::JobFile read = io::import_job(file.string(), {}, problems);
    read_plan(read.plan, read.file, job.plan, problems);
    format = read.format;
    job.model = read.model.value_or("");
    job.preset = job.model;
    job.config = read.config;
    job.count = read.hardware.count.value_or(1);
    job.nodes = read.hardware.nodes.value_or(1);
  } catch (const InputError&) {
    return false;
  }
  return problems.empty();
}

std::vector<std::string> lost(const io::Exporter& exporter, const io::ExportJob& job) {
  Problems problems;
  const std::string text = io::export_text(exporter, job, problems);
  std::vector<std::string> lines;
  for (const Problem& problem : problems.list()) lines.push_back(to_text(problem));
  if (problems.empty()) lines = io::left_out(exporter, job, text, {});
  return lines;
}

// What Megatron-SWIFT's scripts say in variables of the environment.
bool is_environments(const io::Exporter& exporter, const std::string& line) {
  return exporter.name == "megatron-swift" && line.starts_with("allocator.");
}

// Exports every job of a folder in its own format and in membill's; the lines of what was lost.
std::vector<std::string> round_trips(const fs::path& folder, int& done) {
  std::vector<std::string> lines;
  for (const fs::path& file : files_in(folder)) {
    std::string format;
    io::ExportJob job;
    if (!read(file, format, job)) continue;
    for (const io::Exporter& exporter : io::exporters()) {
      if (exporter.name != "membill" && exporter.name != format) continue;
      ++done;
      for (const std::string& line : lost(exporter, job))
        if (!is_environments(exporter, line))
          lines.push_back(file.filename().string() + " as " + std::string(exporter.name) + ": " + line);
    }
  }
  return lines;
}

}  // namespace

TEST_CASE("exporters are importers with texts, and their names differ") {
  std::vector<std::string_view> names;
  for (const io::Exporter& exporter : io::exporters()) {
    INFO(std::string(exporter.name));
    CHECK((exporter.name == "membill" || io::find_importer(exporter.name) != nullptr));
    CHECK_FALSE(exporter.summary.empty());
    CHECK(exporter.write != nullptr);
    names.push_back(exporter.name);
  }
  std::sort(names.begin(), names.end());
  CHECK(std::adjacent_find(names.begin(), names.end()) == names.end());
}

TEST_CASE("real job files come back from their own format and from membill's as the same plan") {
  int done = 0;
  const std::vector<std::string> lines = round_trips(test::in_source("tests/data/importers"), done);
  CHECK(done >= 40);
  for (const std::string& line : lines) {
    INFO(line);
    CHECK(false);
  }
}

TEST_CASE("public job files come back from their own format as the same plan") {
  const char* folder = std::getenv("MEMBILL_REAL_FILES");
  if (folder == nullptr) return;
  int done = 0;
  const std::vector<std::string> lines = round_trips(folder, done);
  std::printf("%d exports, %zu fields lost\n", done, lines.size());
  for (const std::string& line : lines) std::printf("lost: %s\n", line.c_str());
}

namespace {

// Plans of a Megatron step, from the simplest on.
std::vector<TrainingPlan> megatron_plans() {
  TrainingPlan plain;
  plain.stage = Stage::pretrain;
  plain.engine = Engine::megatron;
  plain.implementation = Implementation::megatron;
  plain.loop = Loop::plain;
  plain.precision = Precision::master_bf16;
  plain.optimizer_impl = OptimizerImpl::fused;
  plain.attention = AttentionKernel::flash;
  plain.attention_mask = false;
  plain.seq = 4096;
  std::vector<TrainingPlan> plans(5, plain);
  plans[1].sharding.zero = 1;
  plans[1].parallel.tp = 2;
  plans[1].parallel.sp = true;
  plans[1].checkpointing.mode = Checkpointing::selective;
  plans[1].checkpointing.selective = {"core_attn"};
  plans[2].parallel.pp = 2;
  plans[2].accumulate = 8;
  plans[2].checkpointing.mode = Checkpointing::full;
  plans[2].checkpointing.method = "uniform";
  plans[2].checkpointing.layers = 1;
  plans[2].save.state = "sharded";
  plans[3].parallel.cp = 2;
  plans[3].clip = false;
  plans[3].sharding.engine_keys = {{"gradient_accumulation_fusion", "true"}, {"overlap_grad_reduce", "true"}};
  plans[4].weights = WeightFormat::fp16;
  plans[4].precision = Precision::master_fp16;
  plans[4].batch = 2;
  plans[4].vocab_pad_to = 128;
  return plans;
}

io::ExportJob exported(const TrainingPlan& plan, const std::string& preset, bool named) {
  io::ExportJob job;
  job.plan = plan;
  job.preset = preset;
  if (named) job.model = preset;
  job.count = 8;
  return job;
}

}  // namespace

TEST_CASE("Megatron's flags describe the model and the step: the same plan and the same parameters come back") {
  const io::Exporter* exporter = io::find_exporter("megatron");
  REQUIRE(exporter != nullptr);
  for (const char* preset : {"llama-3.1-8b", "qwen2.5-7b", "qwen3-8b", "mistral-7b-v0.1", "gpt2-large",
                             "mixtral-8x7b-v0.1", "qwen3-30b-a3b", "deepseek-v2-lite", "deepseek-v3", "qwen2.5-0.5b"}) {
    for (const TrainingPlan& plan : megatron_plans()) {
      const io::ExportJob job = exported(plan, preset, false);
      INFO(preset);
      for (const std::string& line : lost(*exporter, job)) {
        INFO(line);
        CHECK(line.empty());
      }
      Problems problems;
      const std::string text = io::export_text(*exporter, job, problems);
      io::ImportContext context;
      context.reads_pins = false;
      const io::JobFile read = io::import_text(text, "run.sh", "", context, problems);
      REQUIRE(read.config);
      CHECK(read.hardware.count == 8);
      const ModelSpec described = io::describe_model(io::load_config(*read.config, "run.sh", "model"));
      CHECK(described.parameters() == io::describe_model(io::load_model(preset, {})).parameters());
      CHECK(problems.empty());
    }
  }
}

TEST_CASE("Megatron-SWIFT's YAML comes back as the same plan") {
  const io::Exporter* exporter = io::find_exporter("megatron-swift");
  REQUIRE(exporter != nullptr);
  for (TrainingPlan plan : megatron_plans()) {
    plan.stage = Stage::sft;
    plan.vocab_pad_to = plan.parallel.tp * 128;
    for (const std::string& line : lost(*exporter, exported(plan, "qwen2.5-7b", true))) {
      INFO(line);
      CHECK(line.empty());
    }
    plan.method = Method::lora;
    plan.adapter.targets = {"all-linear"};
    CHECK(lost(*exporter, exported(plan, "qwen2.5-7b", true)).empty());
    plan.parallel.ep = 2;
    CHECK(lost(*exporter, exported(plan, "qwen3-30b-a3b", true)).empty());
  }
}

TEST_CASE("torchtitan's TOML comes back as the same plan") {
  const io::Exporter* exporter = io::find_exporter("torchtitan");
  REQUIRE(exporter != nullptr);
  TrainingPlan plan;
  plan.stage = Stage::pretrain;
  plan.implementation = Implementation::torchtitan;
  plan.loop = Loop::plain;
  plan.weights = WeightFormat::fp32;
  plan.optimizer_impl = OptimizerImpl::fused;
  plan.engine = Engine::fsdp2;
  plan.sharding.fsdp = "full_shard";
  plan.sharding.engine_keys = {
      {"wrap", "block+embedding"}, {"no_sync", "false"}, {"param_dtype", "bf16"}, {"reduce_dtype", "fp32"}};
  const auto lines = [&](const TrainingPlan& each) { return lost(*exporter, exported(each, "llama-3.1-8b", false)); };
  CHECK(lines(plan).empty());
  plan.accumulate = 4;
  plan.compile = true;
  plan.checkpointing.mode = Checkpointing::full;
  CHECK(lines(plan).empty());
  plan.checkpointing.every = 2;
  plan.sharding.fsdp = "hybrid_shard";
  plan.sharding.shard_group = 4;
  plan.save.state = "sharded";
  CHECK(lines(plan).empty());
  plan.sharding.offload = "optimizer+param";
  plan.optimizer_impl = OptimizerImpl::foreach;
  CHECK(lines(plan).empty());
  CHECK(lines(TrainingPlan()).size() >= 2);
}

TEST_CASE("verl's and Unsloth's YAML come back as the same plan") {
  TrainingPlan plan;
  plan.loop = Loop::plain;
  plan.attention = AttentionKernel::flash;
  plan.attention_mask = false;
  plan.weights = WeightFormat::fp32;
  plan.engine = Engine::fsdp2;
  plan.sharding.fsdp = "full_shard";
  plan.sharding.engine_keys = {{"wrap", "block"}, {"param_dtype", "bf16"}, {"reduce_dtype", "fp32"}};
  plan.checkpointing.mode = Checkpointing::full;
  const io::Exporter* verl = io::find_exporter("verl");
  REQUIRE(verl != nullptr);
  for (const std::string& line : lost(*verl, exported(plan, "qwen2.5-0.5b", true))) {
    INFO(line);
    CHECK(line.empty());
  }
  plan.method = Method::lora;
  plan.adapter.targets = {"all-linear"};
  plan.padding_free = true;
  plan.accumulate = 2;
  CHECK(lost(*verl, exported(plan, "qwen2.5-0.5b", true)).empty());
  TrainingPlan unsloth;
  unsloth.implementation = Implementation::unsloth;
  unsloth.method = Method::lora;
  unsloth.weights = WeightFormat::nf4;
  unsloth.kbit_prepare = false;
  unsloth.varied_lengths = true;
  unsloth.adapter.targets = {"q_proj", "v_proj"};
  unsloth.optimizer = "adamw-8bit";
  const io::Exporter* exporter = io::find_exporter("unsloth");
  REQUIRE(exporter != nullptr);
  io::ExportJob job = exported(unsloth, "llama-3.1-8b", true);
  job.count = 1;
  for (const std::string& line : lost(*exporter, job)) {
    INFO(line);
    CHECK(line.empty());
  }
}

TEST_CASE("every exporter writes what its importer reads, or says what it cannot") {
  for (const fs::path& file : files_in(test::in_source("tests/data/importers"))) {
    std::string format;
    io::ExportJob job;
    if (!read(file, format, job)) continue;
    for (const io::Exporter& exporter : io::exporters()) {
      INFO(file.filename().string() + " as " + std::string(exporter.name));
      CHECK_NOTHROW(lost(exporter, job));
    }
  }
}

}  // namespace membill::importers_test
