// The lines above a bill: the model, the plan, the machine.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <nlohmann/json.hpp>

#include "report/text.h"

namespace membill::report {
namespace {

// What of a plan is told, in this order: left out where the field is missing or has the value that needs no mention.
struct ToldField {
  std::string_view message, key, unsaid;
};
constexpr std::array kTold{
    ToldField{"line.batch", "batch", ""},
    ToldField{"line.seq", "seq", ""},
    ToldField{"line.accumulate", "accumulate", "1"},
    ToldField{"line.checkpointing", "checkpointing", ""},
    ToldField{"line.attention", "attention", ""},
    ToldField{"line.implementation", "implementation", "hf"},
    ToldField{"line.engine", "engine", "torch"},
    ToldField{"line.zero", "sharding.zero", "0"},
    ToldField{"line.fsdp", "sharding.fsdp", "none"},
    ToldField{"line.offload", "sharding.offload", "none"},
    ToldField{"line.tp", "parallel.tp", "1"},
    ToldField{"line.pp", "parallel.pp", "1"},
    ToldField{"line.cp", "parallel.cp", "1"},
    ToldField{"line.ep", "parallel.ep", "1"},
};

// Parts of a line, joined as the language joins them.
class PartsOfLine {
 public:
  explicit PartsOfLine(Language language) : language_(language) {}

  void add(std::string_view part) {
    if (part.empty()) return;
    if (!line_.empty()) line_ += message("list.comma", language_);
    line_ += part;
  }
  template <typename... Args>
  void say(std::string_view key, const Args&... args) {
    add(report::say(language_, key, args...));
  }
  void follow(std::string_view text) { line_ += text; }
  [[nodiscard]] std::string text() && { return std::move(line_); }

 private:
  Language language_;
  std::string line_;
};

std::string method_text(const Report& report, Language language) {
  const std::string method = plan_text(report, "method");
  const bool has_rank = method == "lora" || method == "dora" || method == "adalora" || method == "vera" ||
                        method == "loha" || method == "lokr";
  const std::string rank = has_rank ? plan_text(report, "adapter.rank") : std::string();
  return rank.empty() ? method : say(language, "line.rank", method, rank);
}

std::string optimizer_text(const Report& report) {
  const std::string optimizer = plan_text(report, "optimizer");
  const std::string impl = plan_text(report, "optimizer_impl");
  return optimizer.empty() || impl.empty() ? optimizer : fmt::format("{} {}", optimizer, impl);
}

// "full", or with what differs from the default: "full (reentrant, every 2)".
std::string checkpointing_text(const std::string& value) {
  const auto map = nlohmann::ordered_json::parse(value, nullptr, false);
  if (!map.is_object() || !map.contains("mode") || !map["mode"].is_string()) return value;
  std::vector<std::string> parts;
  for (const auto& [key, part] : map.items()) {
    if (key == "mode" || part == false || (key == "every" && part == 1) || (part.is_array() && part.empty())) continue;
    if (!part.is_array()) {
      parts.push_back(
          part == true ? key : fmt::format("{} {}", key, part.is_string() ? part.get<std::string>() : part.dump()));
      continue;
    }
    for (const auto& name : part) parts.push_back(name.is_string() ? name.get<std::string>() : name.dump());
  }
  const auto mode = map["mode"].get<std::string>();
  return clean_text(parts.empty() || mode == "none" ? mode : fmt::format("{} ({})", mode, fmt::join(parts, ", ")));
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

std::string model_line(const Report& report, Language language) {
  const ReportModel& model = report.model;
  PartsOfLine line(language);
  line.add(clean_text(model.name));
  if (!model.family.empty() && model.family != model.name)
    line.follow(say(language, "line.family", clean_text(model.family)));
  line.follow(model.parameters ? say(language, "line.parameters", count_text(*model.parameters))
                               : std::string(message("line.unknown", language)));
  if (model.active_parameters && model.active_parameters != model.parameters)
    line.say("line.active", count_text(*model.active_parameters));
  if (!model.trainable_parameters) return std::move(line).text();
  if (model.trainable_parameters == model.parameters)
    line.say("line.all");
  else
    line.say("line.trainable", count_text(*model.trainable_parameters));
  return std::move(line).text();
}

std::string plan_line(const Report& report, Language language) {
  PartsOfLine line(language);
  line.add(plan_text(report, "stage"));
  line.add(method_text(report, language));
  if (const std::string weights = plan_text(report, "weights"); !weights.empty()) line.say("line.weights", weights);
  line.add(plan_text(report, "precision"));
  line.add(optimizer_text(report));
  for (const ToldField& field : kTold)
    if (const std::string value = plan_text(report, field.key); !value.empty() && value != field.unsaid)
      line.say(field.message, field.key == "checkpointing" ? checkpointing_text(value) : value);
  return std::move(line).text();
}

std::string hardware_line(const Report& report) {
  const ReportHardware& hardware = report.hardware;
  if (!hardware.name && hardware.count == 1 && hardware.nodes == 1) return {};
  PartsOfLine line(Language::en);
  line.add(fmt::format("{} x {}", hardware.count, hardware.name ? clean_text(*hardware.name) : "card"));
  if (hardware.usable_bytes) line.add(size_text(*hardware.usable_bytes) + " usable each");
  if (hardware.nodes != 1) line.add(fmt::format("{} nodes", hardware.nodes));
  if (hardware.host_bytes) line.add(fmt::format("host {}", size_text(*hardware.host_bytes)));
  return std::move(line).text();
}

}  // namespace membill::report
