#include "cli/plan_options.h"

#include "base/text.h"
#include "membill/catalog.h"

namespace membill::cli {
namespace {

constexpr const char* kSet = "--set";
constexpr const char* kTrl = "--trl";
constexpr const char* kTrlKey = "software.trl";
constexpr const char* kGroup = "Plan (--no-NAME turns a switch off)";

bool lists_words(const PlanFieldRow& row) {
  const bool several = row.values.find(' ') != std::string::npos;
  return several && row.values != "a map" && !is_digit(row.values.front());
}

// What help calls the value of a field.
std::string value_name(const PlanFieldRow& row) {
  if (lists_words(row)) return "WORD";
  if (row.values == "names") return "NAMES";
  return !row.values.empty() && is_digit(row.values.front()) ? "N" : "VALUE";
}

OptionSpec option_of(const PlanFieldRow& row) {
  OptionSpec option{row.flag, Takes::value, value_name(row), row.help, kGroup, {}};
  if (row.values == "true false") {
    option.takes = Takes::boolean;
    option.value_name.clear();
    return option;
  }
  if (lists_words(row)) option.words = split(row.values, ' ');
  if (!row.values.empty() && row.values != "names") option.help += " [" + row.values + "]";
  return option;
}

}  // namespace

std::vector<OptionSpec> plan_options() {
  std::vector<OptionSpec> options;
  for (const PlanFieldRow& row : plan_fields()) {
    if (!row.flag.empty()) options.push_back(option_of(row));
  }
  options.push_back({kTrl, Takes::value, "VERSION", "release of TRL that trains, such as 0.24 or 1.16", kGroup, {}});
  options.push_back(
      {kSet, Takes::values, "KEY=VALUE", "any key of a job file, such as sharding.reduce_bucket_size=2e8", "Plan", {}});
  return options;
}

std::map<std::string, std::string> given_plan_keys(const Arguments& arguments) {
  std::map<std::string, std::string> given;
  for (const std::string& text : arguments.values(kSet)) {
    const std::size_t equals = text.find('=');
    if (equals != std::string::npos)
      given[std::string(trim(std::string_view(text).substr(0, equals)))] = text.substr(equals + 1);
  }
  if (const std::string* release = arguments.value(kTrl)) given[kTrlKey] = *release;
  for (const PlanFieldRow& row : plan_fields())
    if (const std::string* text = row.flag.empty() ? nullptr : arguments.value(row.flag)) given[row.key] = *text;
  return given;
}

void apply_plan_options(const Arguments& arguments, TrainingPlan& plan, Problems& problems) {
  std::vector<PlanSetting> settings;
  for (const std::string& text : arguments.values(kSet)) {
    const std::size_t equals = text.find('=');
    std::string key(trim(std::string_view(text).substr(0, equals)));
    if (equals == std::string::npos || key.empty() || equals + 1 == text.size()) {
      problems.add({kCommandLine, kSet, "needs KEY=VALUE, not " + quoted(text), ""});
    } else if (key.front() == '-') {
      problems.add({kCommandLine, kSet, "needs a key of a job file, not the option " + quoted(key), ""});
    } else {
      settings.push_back({std::move(key), text.substr(equals + 1)});
    }
  }
  if (const std::string* release = arguments.value(kTrl)) {
    if (!release->empty() && is_digit(release->front())) {
      settings.push_back({kTrlKey, *release});
    } else {
      problems.add({kCommandLine, kTrl, "needs a version such as 0.24, not " + quoted(*release), ""});
    }
  }
  for (const PlanFieldRow& row : plan_fields()) {
    const std::string* text = row.flag.empty() ? nullptr : arguments.value(row.flag);
    if (text != nullptr) settings.push_back({row.flag, *text});
  }
  read_plan_settings(settings, kCommandLine, plan, problems);
}

}  // namespace membill::cli
