#include "io/exporters/key_writer.h"

#include <algorithm>
#include <array>
#include <stdexcept>

#include "base/text.h"
#include "io/json_reader.h"

namespace membill::io {
namespace {

// transformers 5.24 training_args.py OptimizerNames, with '-' for '_'.
constexpr std::array<std::string_view, 41> kTrainerOptimizers{"adamw-anyprecision",
                                                              "adafactor",
                                                              "adamw-torch-4bit",
                                                              "adamw-torch-8bit",
                                                              "ademamix",
                                                              "sgd",
                                                              "adagrad",
                                                              "adamw-8bit",
                                                              "ademamix-8bit",
                                                              "lion-8bit",
                                                              "lion-32bit",
                                                              "paged-adamw-32bit",
                                                              "paged-adamw-8bit",
                                                              "paged-ademamix-32bit",
                                                              "paged-ademamix-8bit",
                                                              "paged-lion-32bit",
                                                              "paged-lion-8bit",
                                                              "rmsprop",
                                                              "rmsprop-bnb-8bit",
                                                              "rmsprop-bnb-32bit",
                                                              "galore-adamw",
                                                              "galore-adamw-8bit",
                                                              "galore-adafactor",
                                                              "galore-adamw-layerwise",
                                                              "galore-adamw-8bit-layerwise",
                                                              "galore-adafactor-layerwise",
                                                              "lomo",
                                                              "adalomo",
                                                              "grokadamw",
                                                              "schedule-free-radam",
                                                              "schedule-free-adamw",
                                                              "schedule-free-sgd",
                                                              "apollo-adamw",
                                                              "apollo-adamw-layerwise",
                                                              "stable-adamw",
                                                              "adamw",
                                                              "badam",
                                                              "lisa",
                                                              "adam-mini",
                                                              "muon",
                                                              "q-galore-adamw-8bit"};

void set_inside(Value& map, std::string_view key, Value value) {
  const std::size_t dot = key.find('.');
  if (dot == std::string_view::npos) return map.set(key, std::move(value));
  const Value* found = map.find(key.substr(0, dot));
  Value branch = found != nullptr && found->is_map() ? *found : Value::make_map();
  set_inside(branch, key.substr(dot + 1), std::move(value));
  map.set(key.substr(0, dot), std::move(branch));
}

bool holds_word(std::string_view words, std::string_view key) {
  const std::vector<std::string> all = split(words, ' ');
  return std::find(all.begin(), all.end(), key) != all.end();
}

}  // namespace

void KeyWriter::set(std::string_view key, Value value) {
  const bool known = std::any_of(tables_.begin(), tables_.end(), [&](const KeyTable& table) {
    return std::any_of(table.rows.begin(), table.rows.end(), [&](const KeyRow& row) { return row.key == key; }) ||
           holds_word(table.harmless, key);
  });
  if (!known) throw std::logic_error("no row for the exported key " + std::string(key));
  set_inside(tree_, key, std::move(value));
}

PlanText::PlanText(const TrainingPlan& plan) {
  std::string text;
  for (const PlanField& field : write_plan_fields(plan))
    text += (text.empty() ? "{\"" : ", \"") + field.key + "\": " + field.json;
  fields_ = parse_json(text + "}", "plan");
}

const Value* PlanText::find(std::string_view key) const {
  const Value* value = fields_.find(key);
  return value == nullptr || value->is_null() ? nullptr : value;
}

std::string PlanText::word(std::string_view key) const {
  const Value* value = find(key);
  return value == nullptr ? std::string() : value_text(*value);
}

std::string compute_word(const PlanText& plan) {
  const std::string precision = plan.word("precision");
  if (precision.ends_with("fp16")) return "fp16";
  return precision == "fp32" ? "" : "bf16";
}

std::string offload_device(const PlanText& plan, const std::string& section) {
  std::string given = plan.word("sharding." + section + "_device");
  if (!given.empty()) return given;
  return plan.word("sharding.offload") == "nvme" ? "nvme" : "cpu";
}

bool has_adapter(const TrainingPlan& plan) { return plan.method != Method::full && plan.method != Method::freeze; }

Value text_list(const std::vector<std::string>& texts) {
  std::vector<Value> items;
  items.reserve(texts.size());
  for (const std::string& text : texts) items.push_back(Value::of(text));
  return Value::make_list(std::move(items));
}

Value target_list(const TrainingPlan& plan, const std::string& all) {
  const std::vector<std::string>& targets = plan.adapter.targets;
  return targets.size() == 1 && targets[0] == "all-linear" ? Value::of(all) : text_list(targets);
}

void write_lora(const TrainingPlan& plan, const LoraKeys& keys, KeyWriter& writer) {
  const AdapterPlan& adapter = plan.adapter;
  const auto write_list = [&](std::string_view key, const Value& value, const std::vector<std::string>& names) {
    if (key.empty() || names.empty()) return;
    writer.set(key, keys.joined && value.is_list() ? Value::of(join(names, ",")) : value);
  };
  if (!keys.rank.empty()) writer.set(keys.rank, Value::of(adapter.rank));
  if (adapter.alpha && !keys.alpha.empty()) writer.set(keys.alpha, Value::of(*adapter.alpha));
  if (!keys.dropout.empty()) writer.set(keys.dropout, Value::of(adapter.dropout));
  write_list(keys.targets, target_list(plan, std::string(keys.all)), adapter.targets);
  write_list(keys.modules_to_save, text_list(adapter.modules_to_save), adapter.modules_to_save);
  if (plan.method == Method::dora && !keys.dora.empty()) writer.set(keys.dora, Value::of(true));
}

void write_liger(const TrainingPlan& plan, KeyWriter& writer) {
  if (plan.implementation != Implementation::liger) return;
  writer.set("use_liger_kernel", Value::of(true));
  const LigerPlan& liger = plan.liger;
  const bool whole = plan.loss == LossKind::native;
  if (liger.rope && liger.rms_norm && liger.swiglu && liger.cross_entropy && !whole) return;
  Value kernels = Value::make_map();
  kernels.set("rope", Value::of(liger.rope));
  kernels.set("rms_norm", Value::of(liger.rms_norm));
  for (const char* gated : {"swiglu", "geglu"}) kernels.set(gated, Value::of(liger.swiglu));
  kernels.set("cross_entropy", Value::of(liger.cross_entropy && whole));
  kernels.set("fused_linear_cross_entropy", Value::of(liger.cross_entropy && !whole));
  writer.set("liger_kernel_config", std::move(kernels));
}

std::string trainer_optimizer(const TrainingPlan& plan, Problems& problems) {
  if (plan.optimizer == "adamw")
    return plan.optimizer_impl == OptimizerImpl::fused ? "adamw_torch_fused" : "adamw_torch";
  std::string name = plan.optimizer;
  if (plan.optimizer_in_backward && (name.starts_with("galore") || name.starts_with("apollo"))) name += "-layerwise";
  if (std::find(kTrainerOptimizers.begin(), kTrainerOptimizers.end(), name) == kTrainerOptimizers.end())
    problems.add({"", "optimizer", quoted(plan.optimizer) + " is none of Hugging Face's Trainer", ""});
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

std::string optimizer_argument_text(const TrainingPlan& plan) {
  std::string text;
  for (const auto& [key, value] : plan.optimizer_args) text += (text.empty() ? "" : ", ") + key + "=" + value;
  return text;
}

void require_engine(const ExportJob& job, std::initializer_list<Engine> engines, const std::string& format,
                    Problems& problems) {
  if (std::find(engines.begin(), engines.end(), job.plan.engine) != engines.end()) return;
  problems.add({"", "engine", PlanText(job.plan).word("engine") + " cannot be said in a file of " + format, ""});
}

}  // namespace membill::io
