#include "io/exporters/changes.h"

#include <algorithm>
#include <utility>

#include "io/exporters/key_writer.h"
#include "io/value_writer.h"

namespace membill::io {
namespace {

constexpr std::string_view kAllocator = "allocator.";
constexpr std::string_view kTrainersKeys =
    "trl";  // TrainingArguments, and the names that most give to model, length and adapters

constexpr std::string_view kFilledIn = "auto";  // by the framework that starts DeepSpeed

using Flat = std::vector<std::pair<std::string, std::string>>;

void flatten(const Value& tree, const std::string& path, Flat& flat) {
  for (const auto& [key, value] : tree.entries()) {
    const std::string dotted = path.empty() ? key : path + "." + key;
    if (value.is_map())
      flatten(value, dotted, flat);
    else
      flat.emplace_back(dotted, value_text(value));
  }
}

const std::string* find(const Flat& flat, std::string_view key) {
  const auto found = std::find_if(flat.begin(), flat.end(), [&](const auto& entry) { return entry.first == key; });
  return found == flat.end() ? nullptr : &found->second;
}

ReadBack understood(std::string_view format, const ExportJob& job, const Value& tree, const DataDirs& dirs) {
  Problems problems;
  try {
    return read_back(format, job, write_json(tree), dirs, problems);
  } catch (const InputError&) {
    return {};  // what is not understood says nothing: the caller finds every setting unsaid
  }
}

bool is_known(const JobFile& job, const std::string& key) {
  return std::none_of(job.records.begin(), job.records.end(), [&](const KeyRecord& record) {
    const bool named = key == record.key || key.starts_with(record.key + ".");
    return named && (record.state == KeyState::unknown || record.state == KeyState::harmless);
  });
}

std::string allocator_variable(const std::string& key, const std::string& value) {
  return "PYTORCH_ALLOC_CONF=" + key.substr(kAllocator.size()) + ":" + (value == "true" ? "True" : value);
}

std::string text_of(const PlanText& plan, const std::string& key) {
  const Value* value = plan.find(key);
  return value == nullptr ? "null" : write_json_line(*value);
}

// Keys of the plan that a setting changes: itself, and what comes with it (the method "qlora" sets weights).
std::vector<std::string> changed_fields(const PlanText& before, const PlanText& after, const PlanSetting& setting,
                                        const std::vector<PlanSetting>& settings) {
  std::vector<std::string> fields{setting.key};
  if (setting.key != "method") return fields;
  for (const Value::Entry& entry : after.all().entries()) {
    const std::string& key = entry.first;
    const bool own =
        std::any_of(settings.begin(), settings.end(), [&](const PlanSetting& one) { return one.key == key; });
    if (!own && text_of(before, key) != write_json_line(entry.second)) fields.push_back(key);
  }
  return fields;
}

}  // namespace

FormatChanges changes_in_format(std::string_view format, const ExportJob& before, const ExportJob& after,
                                const std::vector<PlanSetting>& settings, const DataDirs& dirs) {
  const Exporter* exporter = find_exporter(format);
  if (exporter == nullptr) exporter = find_exporter(kTrainersKeys);
  FormatChanges changes;
  Problems problems;
  const Value old_tree = exporter->write(before, problems), new_tree = exporter->write(after, problems);
  const ReadBack read = problems.empty() ? understood(format, after, new_tree, dirs) : ReadBack();
  const PlanText was(before.plan), wanted(after.plan), said(read.plan);
  for (const PlanSetting& setting : settings) {
    if (setting.key.starts_with(kAllocator)) {
      changes.environment.push_back(allocator_variable(setting.key, setting.text));
      continue;
    }
    const std::vector<std::string> fields = changed_fields(was, wanted, setting, settings);
    const bool comes_to_it = std::all_of(fields.begin(), fields.end(), [&](const std::string& key) {
      return text_of(said, key) == text_of(wanted, key);
    });
    if (!problems.empty() || !comes_to_it) changes.unsaid.push_back(setting);
  }
  if (!problems.empty()) return changes;
  Flat old_keys, new_keys;
  flatten(old_tree, "", old_keys);
  flatten(new_tree, "", new_keys);
  for (const auto& [key, value] : new_keys) {
    const std::string* old_value = find(old_keys, key);
    if (old_value == nullptr && value == kFilledIn) continue;
    if ((old_value == nullptr || *old_value != value) && is_known(read.job, key))
      changes.keys.push_back(key + ": " + value);
  }
  for (const auto& [key, value] : old_keys)
    if (find(new_keys, key) == nullptr) changes.keys.push_back(key + " (take it out)");
  return changes;
}

}  // namespace membill::io
