#include "io/job_file.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "io/field_reader.h"
#include "io/json_comments.h"
#include "io/json_reader.h"
#include "io/text_file.h"
#include "io/toml_reader.h"
#include "io/yaml_reader.h"

namespace membill::io {
namespace {

namespace fs = std::filesystem;

struct GenericField {
  std::string_view key;
  std::optional<std::int64_t> GenericModel::*member;
};
constexpr std::array<GenericField, 8> kGenericFields{{
    {"params", &GenericModel::params},
    {"hidden", &GenericModel::hidden},
    {"layers", &GenericModel::layers},
    {"heads", &GenericModel::heads},
    {"kv_heads", &GenericModel::kv_heads},
    {"head_dim", &GenericModel::head_dim},
    {"intermediate", &GenericModel::intermediate},
    {"vocab", &GenericModel::vocab},
}};

void read_generic(FieldReader& reader, JobFile& job) {
  GenericModel model;
  for (const GenericField& field : kGenericFields) {
    model.*field.member = field.key == "params" ? reader.parameters(field.key) : reader.count(field.key, 1);
  }
  job.generic = model;
}

// A path that is not where the user stands but beside the job file.
std::string beside(const std::string& name, const std::string& folder) {
  std::error_code error;
  if (folder.empty() || name == "-" || fs::exists(name, error)) return name;
  const fs::path path = fs::path(folder) / name;
  return fs::exists(path, error) ? path.string() : name;
}

void read_model(const Value& value, const std::string& folder, JobFile& job, Problems& problems) {
  if (value.is_string()) {
    if (value.as_string().empty()) problems.add(Problem{job.file, "model", "is empty", ""});
    job.model = beside(value.as_string(), folder);
    return;
  }
  if (!value.is_map()) {
    const std::string kind(Value::kind_name(value.kind()));
    return problems.add(Problem{job.file, "model", "needs a name, a path or a map, not " + kind, ""});
  }
  FieldReader reader(value, job.file, "model", problems);
  const Value* config = reader.value("config");
  if (config == nullptr) {
    read_generic(reader, job);
    if (value.entries().empty()) reader.problem("", "needs config, or params and sizes");
  } else if (config->is_map()) {
    job.config = *config;
  } else {
    reader.problem("config", "needs a map, not " + std::string(Value::kind_name(config->kind())));
  }
  reader.finish();
}

// A name is the plan's; beside a config, the plan's is the word "config".
void read_teacher(const Value& value, const std::string& folder, JobFile& job, Problems& problems) {
  if (value.is_string()) return job.plan.set("teacher", Value::of(beside(value.as_string(), folder)));
  if (!value.is_map()) return job.plan.set("teacher", value);
  FieldReader reader(value, job.file, "teacher", problems);
  const Value* config = reader.value("config");
  if (config == nullptr || !config->is_map()) {
    reader.problem("", "needs a name, a path or config");
  } else {
    job.teacher = *config;
    job.plan.set("teacher", Value::of(std::string("config")));
  }
  reader.finish();
}

void read_hardware(const Value& value, JobFile& job, Problems& problems) {
  FieldReader reader(value, job.file, "hardware", problems);
  HardwareRequest& hardware = job.hardware;
  hardware.gpu = reader.text("gpu");
  hardware.count = reader.count("count", 1);
  hardware.nodes = reader.count("nodes", 1);
  hardware.host_ram = reader.size("host_ram");
  hardware.others_use = reader.size("others_use");
  reader.finish();
}

// The word that a mistyped top-level key means: "model" or "hardware"; empty when it may be a key of the plan.
std::string_view mistyped(const std::string& key) {
  const std::string prefix = key + ".";
  for (const PlanFieldRow& row : plan_fields()) {
    if (row.key == key || row.key.starts_with(prefix)) return {};
  }
  return nearest_word(key, {"model", "hardware"});
}

}  // namespace

Value parse_tree(std::string_view text, const std::string& file) {
  const std::string_view checked = check_text(text, file);
  if (is_toml(checked, file)) return parse_toml(checked, file);
  const std::size_t first = checked.find_first_not_of(" \t\r\n");
  return checked[first] == '{' ? parse_json(checked, file) : parse_yaml(checked, file);
}

Value parse_tree(std::string_view text, const std::string& file, Problems& lenient) {
  const std::string_view checked = check_text(text, file);
  if (is_toml(checked, file)) return parse_toml(checked, file);
  if (!is_json_with_comments(checked)) return parse_yaml(checked, file, lenient);
  const std::string bare = without_json_comments(checked);
  if (bare == checked) return parse_json(checked, file);
  lenient.add({file, "", "holds comments or commas that JSON does not know", ""});
  return parse_json(bare, file);
}

JobFile split_job(const Value& tree, const std::string& file, const std::string& folder, Problems& problems) {
  JobFile job;
  job.file = file;
  if (!tree.is_map()) {
    const std::string kind(Value::kind_name(tree.kind()));
    problems.add(Problem{file, "", "a job file is a map of keys, not " + kind, ""});
    return job;
  }
  for (const auto& [key, value] : tree.entries()) {
    if (key == "model") {
      read_model(value, folder, job, problems);
    } else if (key == "teacher") {
      read_teacher(value, folder, job, problems);
    } else if (key == "hardware") {
      if (!value.is_null()) read_hardware(value, job, problems);
    } else if (const std::string_view meant = mistyped(key); !meant.empty()) {
      problems.add(Problem{file, key, "is no known key", std::string(meant)});
    } else {
      job.plan.entries().emplace_back(key, value);  // a tree holds each key once
    }
  }
  return job;
}

JobFile read_job_file(const std::string& path, Problems& problems) {
  const TextFile file = read_file(path);
  const std::string folder = path == "-" ? std::string() : fs::path(path).parent_path().string();
  return split_job(parse_tree(file.text, file.name), file.name, folder, problems);
}

bool set_generic(GenericModel& model, std::string_view key, std::string_view text, std::string& why) {
  std::int64_t number = 0;
  const bool good = key == "params" ? parse_parameters(text, number, why) : parse_count(text, number, why);
  if (!good) return false;
  if (number < 1) return why = "needs at least 1", false;
  for (const GenericField& field : kGenericFields) {
    if (field.key == key) model.*field.member = number;
  }
  return true;
}

}  // namespace membill::io
