#include "cli/sweep_grid.h"

#include <algorithm>

#include "answers/axis.h"
#include "base/text.h"
#include "cli/machine.h"
#include "cli/plan_options.h"
#include "cli/sweep_axes.h"
#include "membill/catalog.h"

namespace membill::cli {
namespace {

constexpr std::size_t kMostCases = std::size_t{1} << 40U;

// Fields whose value is a list already, or free.
bool takes_axis(const PlanFieldRow& row) {
  return row.values != "names" && row.values != "a map" && row.values != "true false";
}

std::vector<std::int64_t> numbers(const std::optional<SweepAxis>& axis, std::int64_t otherwise) {
  if (!axis) return {otherwise};
  std::vector<std::int64_t> result;
  for (const std::string& text : axis->values) {
    std::int64_t value = 0;
    std::string why;
    if (parse_count(text, value, why)) result.push_back(value);
  }
  return result;
}

}  // namespace

std::vector<OptionSpec> sweep_input_options() {
  std::vector<OptionSpec> options = input_options();
  for (OptionSpec& option : options) {
    const PlanFieldRow* row = find_plan_field(option.name);
    const bool machine = std::any_of(kMachineAxes.begin(), kMachineAxes.end(),
                                     [&](const MachineAxis& axis) { return option.name == axis.option; });
    if (machine || (row != nullptr && takes_axis(*row))) option.value_name = option.value_name + ",...";
  }
  return options;
}

SweepGrid::SweepGrid(const Arguments& arguments, const std::string* model, const std::string* job)
    : arguments_(arguments) {
  Problems problems;
  add_axes_of_file(arguments_, problems);
  for (const MachineAxis& axis : kMachineAxes) read_option_axis(axis.option, axis.column, problems);
  machine_axes_ = axes_.size();
  for (const PlanFieldRow& row : plan_fields())
    if (!row.flag.empty() && takes_axis(row)) read_option_axis(row.flag, row.key, problems);
  read_set_axes(problems);
  try {
    inputs_ = read_inputs(arguments_, model, job, Check::each_alone);
  } catch (const InputError& error) {
    for (const Problem& problem : error.problems()) problems.add(problem);
  }
  check_values(problems);
  problems.throw_if_any();
  strides_.resize(axes_.size());
  for (std::size_t i = axes_.size(); i-- > 0;) {
    strides_[i] = bases_;
    bases_ *= axes_[i].values.size();
    if (bases_ > kMostCases) problems.add({kCommandLine, axes_[i].option, "makes too many cases", "2^40 at most"});
    problems.throw_if_any();
    if (i == machine_axes_) machine_stride_ = bases_;
  }
  read_machines(problems);
  batches_ = numbers(batch_, inputs_.plan.batch);
  seqs_ = numbers(seq_, inputs_.plan.seq);
  if (bases_ > kMostCases / (batches_.size() * seqs_.size()))
    problems.add({kCommandLine, "", "the sweep has too many cases", "2^40 at most"});
  problems.throw_if_any();
}

void SweepGrid::read_option_axis(const std::string& option, const std::string& column, Problems& problems) {
  const std::string* text = arguments_.value(option);
  if (text == nullptr) return;
  SweepAxis axis{column, option, 0, {}};
  std::string why;
  axis.values = axis_values(*text, why);
  if (!why.empty()) problems.add({kCommandLine, option, why, "1,2,4 or 0..3 or 1024:8192:*2"});
  if (axis.values.empty()) return arguments_.remove(option);
  arguments_.replace(option, {axis.values.front()});
  if (column == "batch") {
    batch_ = std::move(axis);
  } else if (column == "seq") {
    seq_ = std::move(axis);
  } else if (axis.values.size() > 1) {
    axes_.push_back(std::move(axis));
  }
}

void SweepGrid::read_set_axes(Problems& problems) {
  std::vector<std::string> settings(arguments_.values("--set").begin(), arguments_.values("--set").end());
  for (std::size_t i = 0; i < settings.size(); ++i) {
    const std::size_t equals = settings[i].find('=');
    const std::string key(trim(std::string_view(settings[i]).substr(0, equals)));
    const PlanFieldRow* row = find_plan_field(key);
    if (equals == std::string::npos || row == nullptr || row->values == "names" || row->values == "a map") continue;
    SweepAxis axis{row->key, "--set", i, {}};
    std::string why;
    axis.values = axis_values(settings[i].substr(equals + 1), why);
    if (!why.empty()) problems.add({kCommandLine, "--set", key + " " + why, "1,2,4 or 0..3 or 1024:8192:*2"});
    if (axis.values.empty()) continue;
    settings[i] = key + "=" + axis.values.front();
    if (axis.values.size() > 1) axes_.push_back(std::move(axis));
  }
  if (!settings.empty()) arguments_.replace("--set", std::move(settings));
}

// Every value of a field by itself; what excludes one another is a matter of each case.
void SweepGrid::check_values(Problems& problems) const {
  std::vector<SweepAxis> all(axes_.begin() + static_cast<std::ptrdiff_t>(machine_axes_), axes_.end());
  for (const auto& axis : {batch_, seq_})
    if (axis) all.push_back(*axis);
  for (const SweepAxis& axis : all) {
    for (std::size_t i = 1; i < axis.values.size(); ++i) {
      TrainingPlan scratch;
      read_plan_settings({{axis.option == "--set" ? axis.column : axis.option, axis.values[i]}}, kCommandLine, scratch,
                         problems);
    }
  }
}

void SweepGrid::read_machines(Problems& problems) {
  for (std::size_t base = 0; base < bases_; base += machine_stride_) {
    try {
      machines_.push_back(read_machine(arguments_of(base), inputs_.job, inputs_.plan, inputs_.dirs, problems));
    } catch (const InputError& error) {
      for (const Problem& problem : error.problems()) problems.add(problem);
    }
  }
}

std::size_t SweepGrid::digit(std::size_t axis, std::size_t base) const {
  return base / strides_[axis] % axes_[axis].values.size();
}

const std::string& SweepGrid::value(std::size_t axis, std::size_t base) const {
  return axes_[axis].values[digit(axis, base)];
}

Arguments SweepGrid::arguments_of(std::size_t base) const {
  Arguments result = arguments_;
  std::vector<std::string> settings(arguments_.values("--set").begin(), arguments_.values("--set").end());
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    if (axes_[i].option == "--set")
      settings[axes_[i].set_index] = axes_[i].column + "=" + value(i, base);
    else
      result.replace(axes_[i].option, {value(i, base)});
  }
  if (!settings.empty()) result.replace("--set", std::move(settings));
  return result;
}

SweepBase SweepGrid::base(std::size_t number) const {
  SweepBase base;
  base.plan = inputs_.job_plan;
  Problems problems;
  const Arguments arguments = arguments_of(number);
  apply_plan_options(arguments, base.plan, problems);
  base.problems = problems.list();
  base.hardware = machines_[number / machine_stride_];
  settle_weights(arguments, inputs_, base.hardware, base.plan);
  settle_sharding(arguments, inputs_, base.plan);
  return base;
}

}  // namespace membill::cli
