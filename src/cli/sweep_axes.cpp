#include "cli/sweep_axes.h"

#include <algorithm>

#include "base/text.h"
#include "io/importers/key_table.h"
#include "io/job_file.h"
#include "io/text_file.h"
#include "membill/catalog.h"

namespace membill::cli {
namespace {

class AxesFile {
 public:
  AxesFile(Arguments& arguments, std::string file, Problems& problems)
      : arguments_(arguments), file_(std::move(file)), problems_(problems) {}

  void add(const Value& map, const std::string& path) {
    for (const auto& [key, value] : map.entries()) {
      const std::string dotted = path.empty() ? key : path + "." + key;
      if (value.is_map())
        add(value, dotted);
      else
        add_axis(dotted, text_of(dotted, value));
    }
  }

 private:
  std::string text_of(const std::string& key, const Value& value) {
    if (!value.is_list()) return io::value_text(value);
    std::vector<std::string> parts;
    for (const Value& item : value.items()) {
      if (item.is_list() || item.is_map())
        problems_.add({file_, key, "needs a value, a list of values, or a range", ""});
      parts.push_back(io::value_text(item));
    }
    return join(parts, ",");
  }

  void add_axis(const std::string& key, const std::string& text) {
    const auto machine = std::find_if(kMachineAxes.begin(), kMachineAxes.end(),
                                      [&](const MachineAxis& axis) { return key == axis.column; });
    const PlanFieldRow* row = find_plan_field(key);
    if (machine != kMachineAxes.end())
      add_option(machine->option, text);
    else if (row == nullptr)
      problems_.add({file_, key, "is no key of a plan or a machine", std::string(nearest_word(key, known_keys()))});
    else if (row->flag.empty() || row->values == "true false")
      add_setting(row->key, text);
    else
      add_option(row->flag, text);
  }

  void add_option(const std::string& option, const std::string& text) {
    if (!arguments_.has(option)) arguments_.add(option, text);
  }

  void add_setting(const std::string& key, const std::string& text) {
    for (const std::string& typed : arguments_.values("--set"))
      if (typed.starts_with(key + "=")) return;
    arguments_.add("--set", key + "=" + text);
  }

  static std::vector<std::string_view> known_keys() {
    std::vector<std::string_view> keys;
    keys.reserve(std::size(kMachineAxes) + plan_fields().size());
    for (const MachineAxis& axis : kMachineAxes) keys.emplace_back(axis.column);
    for (const PlanFieldRow& row : plan_fields()) keys.emplace_back(row.key);
    return keys;
  }

  Arguments& arguments_;
  std::string file_;
  Problems& problems_;
};

}  // namespace

void add_axes_of_file(Arguments& arguments, Problems& problems) {
  const std::string* path = arguments.value("--axes");
  if (path == nullptr) return;
  try {
    const io::TextFile file = io::read_file(*path);
    const Value tree = io::parse_tree(file.text, file.name);
    if (!tree.is_map())
      return problems.add({file.name, "", "needs a map of keys and their values", "batch: [1, 2, 4]"});
    AxesFile(arguments, file.name, problems).add(tree, "");
  } catch (const InputError& error) {
    for (const Problem& problem : error.problems()) problems.add(problem);
  }
}

}  // namespace membill::cli
