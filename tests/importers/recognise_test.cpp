// How a job finds its importer, and what becomes of its keys.
#include <algorithm>
#include <string>

#include "io/importers/formats.h"
#include "io/importers/importer.h"
#include "io/importers/training_arguments.h"
#include "membill/catalog.h"
#include "support/catch.h"

namespace membill::importers_test {
namespace {

std::string format_of(const std::string& text, const std::string& file = "job.yaml") {
  Problems problems;
  return io::import_text(text, file, "", {}, problems).format;
}

std::string refusal_of(const std::string& text, const std::string& format = {}) {
  Problems problems;
  io::ImportContext context;
  if (!format.empty()) context.format = format;
  try {
    (void)io::import_text(text, "job.yaml", "", context, problems);
  } catch (const InputError& error) {
    for (const Problem& problem : error.problems()) problems.add(problem);
  }
  return problems.empty() ? std::string() : to_text(problems.list().front());
}

io::KeyRecord record_of(const io::JobFile& job, const std::string& key) {
  const auto found = std::find_if(job.records.begin(), job.records.end(),
                                  [&](const io::KeyRecord& record) { return record.key == key; });
  REQUIRE(found != job.records.end());
  return *found;
}

io::JobFile read(const std::string& text, TrainingPlan& plan, const io::ImportContext& context = {}) {
  Problems problems;
  io::JobFile job = io::import_text(text, "job.yaml", "", context, problems);
  read_plan(job.plan, job.file, plan, problems);
  for (const Problem& problem : problems.list()) UNSCOPED_INFO(to_text(problem));
  CHECK(problems.empty());
  return job;
}

}  // namespace

TEST_CASE("every key of a table has a meaning, one row and a source") {
  for (const io::KeyTable& table :
       {io::llamafactory_table(), io::axolotl_table(), io::torchtune_table(), io::trl_table(), io::deepspeed_table(),
        io::accelerate_table(), io::fsdp_table(), io::peft_table(), io::training_arguments_table()}) {
    INFO(std::string(table.source));
    CHECK_FALSE(table.source.empty());
    std::vector<std::string_view> keys;
    for (const io::KeyRow& row : table.rows) {
      INFO(std::string(row.key));
      keys.push_back(row.key);
      CHECK(row.meaning.empty() != row.same_as.empty());
    }
    std::sort(keys.begin(), keys.end());
    CHECK(std::adjacent_find(keys.begin(), keys.end()) == keys.end());
  }
}

TEST_CASE("the registry's entries are complete and their names differ") {
  std::vector<std::string_view> names;
  for (const io::Importer& importer : io::importers()) {
    INFO(std::string(importer.name));
    CHECK_FALSE(importer.name.empty());
    CHECK_FALSE(importer.summary.empty());
    CHECK_FALSE(importer.source.empty());
    CHECK(importer.claim != nullptr);
    CHECK(importer.read != nullptr);
    names.push_back(importer.name);
  }
  std::sort(names.begin(), names.end());
  CHECK(std::adjacent_find(names.begin(), names.end()) == names.end());
}

TEST_CASE("the format is recognised from the content") {
  CHECK(format_of("model_name_or_path: a/b\nfinetuning_type: lora\ncutoff_len: 512\n") == "llamafactory");
  CHECK(format_of("base_model: a/b\nsequence_len: 512\nmicro_batch_size: 1\n") == "axolotl");
  CHECK(format_of("{\"zero_optimization\": {\"stage\": 2}}") == "deepspeed");
  CHECK(format_of("model: llama-2-7b\nmethod: lora\n").empty());
}

TEST_CASE("two formats that claim a job alike are both named; --as decides") {
  const std::string both = "model: a/b\nfinetuning_type: lora\nsft_type: lora\nmax_length: 512\n";
  CHECK(refusal_of(both) == "job.yaml: could be llamafactory or ms-swift (--as llamafactory or --as ms-swift)");
  CHECK(refusal_of(both, "ms-swift").empty());
  CHECK(refusal_of(both, "ms-swft") == "--as: 'ms-swft' is no known format (ms-swift)");
}

TEST_CASE("what is no job says so") {
  CHECK(refusal_of("{\"model_type\": \"llama\", \"hidden_size\": 8, \"vocab_size\": 9}").find("no job") !=
        std::string::npos);
  CHECK(refusal_of("colour: red\nshape: round\n").find("is of no known format") != std::string::npos);
}

TEST_CASE("each key is read, defaulted, harmless, idle or unknown") {
  TrainingPlan plan;
  const io::JobFile job = read(
      "model_name_or_path: llama-2-7b\nstage: sft\nfinetuning_type: full\nlora_rank: 4\ncutoff_len: 1024\n"
      "output_dir: x\nper_device_train_batchsize: 2\n",
      plan);
  CHECK(record_of(job, "cutoff_len").state == io::KeyState::read);
  CHECK(record_of(job, "output_dir").state == io::KeyState::harmless);
  CHECK(record_of(job, "lora_rank").state == io::KeyState::idle);
  CHECK(record_of(job, "per_device_train_batchsize").state == io::KeyState::unknown);
  CHECK(record_of(job, "per_device_train_batchsize").note == "per_device_train_batch_size");
  CHECK(record_of(job, "per_device_train_batch_size").state == io::KeyState::defaulted);
  CHECK(record_of(job, "per_device_train_batch_size").value == "8");
  CHECK(plan.batch == 8);
  CHECK(plan.seq == 1024);
}

TEST_CASE("frameworks' regimes: full fine-tuning with bf16") {
  TrainingPlan factory, axolotl, swift, tune;
  read("model_name_or_path: llama-2-7b\nfinetuning_type: full\nbf16: true\n", factory);
  CHECK(factory.weights == WeightFormat::fp32);
  CHECK(factory.precision == Precision::amp_bf16);
  CHECK(factory.checkpointing.mode == Checkpointing::full);
  CHECK(factory.checkpointing.reentrant);
  read("base_model: llama-2-7b\nsequence_len: 512\nmicro_batch_size: 1\nbf16: true\n", axolotl);
  CHECK(axolotl.weights == WeightFormat::bf16);
  CHECK(axolotl.checkpointing.mode == Checkpointing::none);
  read("model: llama-2-7b\ntuner_type: full\ntorch_dtype: bfloat16\nmax_length: 512\n", swift);
  CHECK(swift.weights == WeightFormat::bf16);
  CHECK(swift.precision == Precision::amp_bf16);
  CHECK(swift.accumulate == 16);
  read("model:\n  _component_: torchtune.models.llama2.llama2_7b\nbatch_size: 2\ndtype: bf16\n", tune);
  CHECK(tune.precision == Precision::pure_bf16);
  CHECK(tune.implementation == Implementation::torchtune);
}

TEST_CASE("some of Liger's kernels") {
  TrainingPlan axolotl, factory;
  read(
      "base_model: llama-2-7b\nsequence_len: 512\nmicro_batch_size: 1\nplugins: "
      "[axolotl.integrations.liger.LigerPlugin]\n"
      "liger_rms_norm: true\nliger_cross_entropy: true\n",
      axolotl);
  CHECK(axolotl.implementation == Implementation::liger);
  CHECK(axolotl.liger.rms_norm);
  CHECK_FALSE(axolotl.liger.rope);
  CHECK_FALSE(axolotl.liger.swiglu);
  CHECK(axolotl.liger.cross_entropy);
  CHECK(axolotl.loss == LossKind::native);
  read(
      "model_name_or_path: llama-2-7b\nfinetuning_type: lora\nuse_liger_kernel: true\n"
      "liger_kernel_config: {rope: false, fused_linear_cross_entropy: false}\n",
      factory);
  CHECK(factory.implementation == Implementation::liger);
  CHECK_FALSE(factory.liger.rope);
  CHECK(factory.liger.swiglu);
  CHECK_FALSE(factory.liger.cross_entropy);
}

TEST_CASE("a mirror's name finds the published model's preset") {
  TrainingPlan plan;
  const io::JobFile job =
      read("base_model: NousResearch/Meta-Llama-3-8B\nsequence_len: 512\nmicro_batch_size: 1\n", plan);
  CHECK(job.model == "llama-3-8b");
  CHECK_FALSE(job.assumptions.empty());
}

TEST_CASE("cards of the command line decide accumulation and engine") {
  TrainingPlan plan;
  io::ImportContext context;
  context.gpus = 8;
  read("model: llama-2-7b\ntuner_type: lora\nmax_length: 512\n", plan, context);
  CHECK(plan.accumulate == 2);
  CHECK(plan.engine == Engine::ddp);
  CHECK_FALSE(plan.checkpointing.reentrant);
}

}  // namespace membill::importers_test
