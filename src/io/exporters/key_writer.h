// Writes a framework's keys, by the tables that its importer reads them with.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "io/exporters/exporter.h"
#include "io/importers/key_table.h"

namespace membill::io {

class KeyWriter {
 public:
  explicit KeyWriter(std::vector<KeyTable> tables) : tables_(std::move(tables)) {}

  // Sets a key; a dotted one inside its map. REQUIRES: a row of `key`, or a harmless one, in the tables (std::logic_error otherwise).
  void set(std::string_view key, Value value);
  [[nodiscard]] Value take() { return std::move(tree_); }

 private:
  std::vector<KeyTable> tables_;
  Value tree_ = Value::make_map();
};

// The resolved plan by its job-file keys.
class PlanText {
 public:
  explicit PlanText(const TrainingPlan& plan);
  // The value under a dotted key; nullptr when it is null, or not given.
  [[nodiscard]] const Value* find(std::string_view key) const;
  // The word under it; empty for null.
  [[nodiscard]] std::string word(std::string_view key) const;
  [[nodiscard]] const Value& all() const { return fields_; }

 private:
  Value fields_;
};

// "bf16", "fp16" or, of fp32, nothing: what the step computes in.
[[nodiscard]] std::string compute_word(const PlanText& plan);
// "cpu" or "nvme": where the plan puts what this section of DeepSpeed's configuration offloads.
[[nodiscard]] std::string offload_device(const PlanText& plan, const std::string& section);
// Whether adapters train.
[[nodiscard]] bool has_adapter(const TrainingPlan& plan);
// The targets of an adapter as a list, "all-linear" as `all`.
[[nodiscard]] Value target_list(const TrainingPlan& plan, const std::string& all);
[[nodiscard]] Value text_list(const std::vector<std::string>& texts);
// How a format names what PEFT's LoraConfig takes; an empty key: it has none, or the exporter writes it itself.
struct LoraKeys {
  std::string_view rank, alpha, dropout, targets, modules_to_save, dora;
  std::string_view all = "all-linear";  // the word for every linear
  bool joined = false;                  // lists are texts with commas
};
void write_lora(const TrainingPlan& plan, const LoraKeys& keys, KeyWriter& writer);
// use_liger_kernel, and which of its kernels where the plan runs not all.
void write_liger(const TrainingPlan& plan, KeyWriter& writer);
// The optimizer as Hugging Face's Trainer names it; a problem when it has none of that kind.
[[nodiscard]] std::string trainer_optimizer(const TrainingPlan& plan, Problems& problems);
// "rank=128, update_proj_gap=200"; empty for none.
[[nodiscard]] std::string optimizer_argument_text(const TrainingPlan& plan);
// Adds a problem when the plan's engine is none of `engines`.
void require_engine(const ExportJob& job, std::initializer_list<Engine> engines, const std::string& format,
                    Problems& problems);

}  // namespace membill::io
