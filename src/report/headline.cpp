// The lines above a bill: the model, the plan, the machine.
#include <fmt/format.h>

#include "report/text.h"

namespace membill::report {
namespace {

void append(std::string& line, std::string_view part) {
  if (part.empty()) return;
  if (!line.empty()) line += ", ";
  line += part;
}

// `name value`, left out where the field is missing or has the value that needs no mention.
void append_field(std::string& line, const Report& report, std::string_view name, std::string_view key,
                  std::string_view unsaid) {
  const std::string value = plan_text(report, key);
  if (value.empty() || value == unsaid) return;
  append(line, fmt::format("{} {}", name, value));
}

std::string method_text(const Report& report) {
  const std::string method = plan_text(report, "method");
  const bool has_rank = method == "lora" || method == "dora" || method == "adalora" || method == "vera";
  const std::string rank = has_rank ? plan_text(report, "adapter.rank") : std::string();
  return rank.empty() ? method : fmt::format("{} rank {}", method, rank);
}

std::string optimizer_text(const Report& report) {
  const std::string optimizer = plan_text(report, "optimizer");
  const std::string impl = plan_text(report, "optimizer_impl");
  return optimizer.empty() || impl.empty() ? optimizer : fmt::format("{} {}", optimizer, impl);
}

}  // namespace

std::string plan_text(const Report& report, std::string_view key) {
  for (const PlanField& field : report.plan) {
    if (field.key != key) continue;
    const std::string_view json = field.json;
    const bool quoted = json.size() >= 2 && json.front() == '"' && json.back() == '"';
    return clean_text(quoted ? json.substr(1, json.size() - 2) : json);
  }
  return {};
}

std::string model_line(const Report& report) {
  const ReportModel& model = report.model;
  std::string line = clean_text(model.name);
  if (!model.family.empty() && model.family != model.name) line += fmt::format(" ({})", clean_text(model.family));
  line += model.parameters ? fmt::format(": {} parameters", count_text(*model.parameters)) : ": parameters unknown";
  if (model.active_parameters && model.active_parameters != model.parameters) {
    append(line, count_text(*model.active_parameters) + " active");
  }
  if (model.trainable_parameters) {
    const bool all = model.trainable_parameters == model.parameters;
    append(line, all ? "all trainable" : fmt::format("{} trainable", count_text(*model.trainable_parameters)));
  }
  return line;
}

std::string plan_line(const Report& report) {
  std::string line;
  append(line, plan_text(report, "stage"));
  append(line, method_text(report));
  if (const std::string weights = plan_text(report, "weights"); !weights.empty()) append(line, weights + " weights");
  append(line, plan_text(report, "precision"));
  append(line, optimizer_text(report));
  append_field(line, report, "batch", "batch", "");
  append_field(line, report, "seq", "seq", "");
  append_field(line, report, "accumulate", "accumulate", "1");
  append_field(line, report, "checkpointing", "checkpointing", "");
  append_field(line, report, "checkpointing", "checkpointing.mode", "");
  append_field(line, report, "attention", "attention", "");
  append_field(line, report, "implementation", "implementation", "hf");
  append_field(line, report, "engine", "engine", "torch");
  append_field(line, report, "zero", "sharding.zero", "0");
  append_field(line, report, "fsdp", "sharding.fsdp", "none");
  append_field(line, report, "offload", "sharding.offload", "none");
  append_field(line, report, "tp", "parallel.tp", "1");
  append_field(line, report, "pp", "parallel.pp", "1");
  append_field(line, report, "cp", "parallel.cp", "1");
  append_field(line, report, "ep", "parallel.ep", "1");
  return line;
}

std::string hardware_line(const Report& report) {
  const ReportHardware& hardware = report.hardware;
  if (!hardware.name && hardware.count == 1 && hardware.nodes == 1) return {};
  std::string line = fmt::format("{} x {}", hardware.count, hardware.name ? clean_text(*hardware.name) : "card");
  if (hardware.usable_bytes) append(line, size_text(*hardware.usable_bytes) + " usable each");
  if (hardware.nodes != 1) append(line, fmt::format("{} nodes", hardware.nodes));
  if (hardware.host_bytes) append(line, fmt::format("host {}", size_text(*hardware.host_bytes)));
  return line;
}

}  // namespace membill::report
