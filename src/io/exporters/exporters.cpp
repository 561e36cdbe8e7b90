#include <algorithm>
#include <array>

#include "base/text.h"
#include "io/exporters/formats.h"
#include "io/importers/importer.h"
#include "io/model_source.h"
#include "io/value_writer.h"

namespace membill::io {
namespace {

std::vector<Exporter> all_exporters() {
  return {native_exporter(),    llamafactory_exporter(),   axolotl_exporter(),    trl_exporter(),
          torchtune_exporter(), deepspeed_exporter(),      accelerate_exporter(), fsdp_exporter(),
          peft_exporter(),      ms_swift_exporter(),       hf_trainer_exporter(), litgpt_exporter(),
          megatron_exporter(),  megatron_swift_exporter(), unsloth_exporter(),    verl_exporter(),
          torchtitan_exporter()};
}

// How a script of flags starts its program.
std::string launch_line(const ExportJob& job) {
  const std::int64_t nodes = std::max<std::int64_t>(1, job.nodes);
  std::string line = "#!/bin/bash\ntorchrun --nproc_per_node " + std::to_string(job.count / nodes);
  if (nodes > 1) line += " --nnodes " + std::to_string(nodes);
  return line + " pretrain_gpt.py";
}

struct Difference {
  std::string key, meant, said;
};

// What the plan leaves to the engine, or has no effect on memory, is no loss.
bool is_no_loss(const std::string& key, const std::string& meant) {
  if (key == "software") return meant == "{}";
  return meant == "null" && (key.starts_with("sharding.") || key == "adapter.alpha");
}

std::vector<Difference> compare(const PlanText& meant, const PlanText& said) {
  std::vector<Difference> differences;
  const auto text = [](const Value* value) { return value == nullptr ? std::string("null") : write_json_line(*value); };
  for (const auto& [key, value] : meant.all().entries()) {
    const std::string want = text(&value), got = text(said.find(key));
    if (want != got && !is_no_loss(key, want)) differences.push_back({key, want, got});
  }
  for (const auto& [key, value] : said.all().entries()) {
    if (meant.all().find(key) == nullptr && !is_no_loss(key, "null"))
      differences.push_back({key, "null", text(&value)});
  }
  return differences;
}

}  // namespace

std::span<const Exporter> exporters() {
  static const std::vector<Exporter> kAll = all_exporters();
  return kAll;
}

const Exporter* find_exporter(std::string_view name) {
  for (const Exporter& exporter : exporters()) {
    if (exporter.name == to_kebab(name)) return &exporter;
  }
  return nullptr;
}

std::string export_text(const Exporter& exporter, const ExportJob& job, Problems& problems) {
  const Value tree = exporter.write(job, problems);
  switch (exporter.syntax) {
    case Syntax::json: return write_json(tree);
    case Syntax::toml: return write_toml(tree);
    case Syntax::script: return launch_line(job) + write_options(tree);
    case Syntax::yaml: break;
  }
  return write_yaml(tree);
}

ReadBack read_back(std::string_view format, const ExportJob& job, const std::string& text, const DataDirs& dirs,
                   Problems& problems) {
  ImportContext context;
  context.reads_pins = false;
  context.dirs = dirs;
  context.format = std::string(format);
  context.gpus = job.count;
  if (!job.model.empty()) context.model = job.model;
  ReadBack result;
  result.job = import_text(text, "export", "", context, problems);
  read_plan(result.job.plan, result.job.file, result.plan, problems);
  return result;
}

void name_default_targets(const std::string& preset, const DataDirs& dirs, TrainingPlan& plan) {
  if (!has_adapter(plan) || !plan.adapter.targets.empty() || preset.empty()) return;
  for (const std::string_view target : default_lora_targets(load_model(preset, dirs).model_type)) {
    if (target.find_first_of("*+?[](){}|^$\\") == std::string_view::npos) plan.adapter.targets.emplace_back(target);
  }
}

std::vector<std::string> left_out(const Exporter& exporter, const ExportJob& job, const std::string& text,
                                  const DataDirs& dirs) {
  Problems problems;
  ReadBack read = read_back(exporter.name, job, text, dirs, problems);
  TrainingPlan meant = job.plan;
  for (TrainingPlan* plan : {&meant, &read.plan}) name_default_targets(job.preset, dirs, *plan);
  std::vector<std::string> result;
  for (const Problem& problem : problems.list()) result.push_back(to_text(problem));
  const std::vector<Difference> differences = compare(PlanText(meant), PlanText(read.plan));
  if (exporter.part && !differences.empty()) {
    std::string keys;
    for (const Difference& difference : differences) keys += (keys.empty() ? "" : ", ") + difference.key;
    result.push_back("a file of " + std::string(exporter.name) + " is a part of a job, to be said elsewhere: " + keys);
    return result;
  }
  for (const Difference& difference : differences) {
    result.push_back(difference.key + ": " + difference.meant + " cannot be said in a file of " +
                     std::string(exporter.name) + ", where it comes to " + difference.said);
  }
  return result;
}

}  // namespace membill::io
