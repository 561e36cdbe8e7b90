#include <algorithm>
#include <charconv>

#include "base/text.h"
#include "catalog/plan_fields/readers.h"
#include "membill/catalog.h"

namespace membill {
namespace {

constexpr int kMostGuesses = 100;  // unknown keys for which a near one is looked for

// A value for a row, and the key as the user wrote it.
struct Assignment {
  const PlanFieldRow* row = nullptr;
  std::string key;
  Value value;
};

bool is_group(std::string_view path) {
  const std::string prefix = std::string(path) + ".";
  const auto rows = plan_fields();
  return std::any_of(rows.begin(), rows.end(), [&](const PlanFieldRow& row) { return row.key.rfind(prefix, 0) == 0; });
}

// The row of a map of the user's own keys that `path` leads into; `rest` receives the key inside.
const PlanFieldRow* find_map_row(std::string_view path, std::string_view& rest) {
  const std::size_t dot = path.find('.');
  if (dot == std::string_view::npos || dot + 1 == path.size()) return nullptr;
  const PlanFieldRow* row = find_plan_field(path.substr(0, dot));
  if (row == nullptr || !row->free_map) return nullptr;
  rest = path.substr(dot + 1);
  return row;
}

// The valid key that `path` was probably meant to be: the same name in another group, or the nearest one.
std::string nearest_key(const std::string& path) {
  const std::string leaf = path.substr(path.rfind('.') + 1);
  std::vector<std::string_view> words;
  for (const PlanFieldRow& row : plan_fields()) {
    const std::size_t dot = row.key.find('.');
    if (dot != std::string::npos && std::string_view(row.key).substr(dot + 1) == leaf) return row.key;
    words.push_back(row.key);
    if (dot != std::string::npos) words.push_back(std::string_view(row.key).substr(0, dot));
  }
  return std::string(nearest_word(path, words));
}

class PlanReader {
 public:
  PlanReader(const std::string& file, Problems& problems) : file_(file), problems_(problems) {}

  void collect(const Value& map, const std::string& prefix) {
    for (const auto& [name, value] : map.entries()) {
      const std::string path = prefix + name;
      if (value.is_map() && is_group(path)) {
        collect(value, path + ".");
      } else {
        add(path, path, value);
      }
    }
  }

  void add(const std::string& path, const std::string& typed, const Value& value) {
    std::string_view rest;
    if (const PlanFieldRow* row = find_plan_field(path)) {
      note_twice(*row, typed);
      assignments_.push_back({row, typed, value});
    } else if (const PlanFieldRow* map_row = find_map_row(path, rest)) {
      assignments_.push_back({map_row, typed, Value::make_map({{std::string(rest), value}})});
    } else if (is_group(path)) {
      problem(typed, "needs a map, not " + describe(value), {});
    } else {
      problem(typed, "unknown key", ++unknown_ > kMostGuesses ? std::string() : nearest_key(path));
    }
  }

  void apply(TrainingPlan& plan) {
    std::stable_sort(assignments_.begin(), assignments_.end(),
                     [](const Assignment& a, const Assignment& b) { return a.row < b.row; });
    for (const Assignment& a : assignments_) {
      std::string hint;
      const std::string wrong = a.row->read(a.value, plan, hint);
      if (!wrong.empty()) problem(a.key, wrong, hint);
    }
    follow_precision(plan);
    follow_lengths(plan);
    check_qlora(plan);
    check_fused(plan);
  }

 private:
  void problem(const std::string& key, std::string message, std::string hint) {
    problems_.add({file_, key, std::move(message), std::move(hint)});
  }

  const Assignment* find(std::string_view key) const {
    for (const Assignment& a : assignments_) {
      if (a.row->key == key) return &a;
    }
    return nullptr;
  }

  void note_twice(const PlanFieldRow& row, const std::string& typed) {
    if (!row.free_map && find(row.key) != nullptr) problem(typed, "is given twice", {});
  }

  // A regime whose weights have one dtype says the storage too, unless the same source says it or the base is quantised.
  void follow_precision(TrainingPlan& plan) {
    if (find("precision") == nullptr || find("weights") != nullptr || weight_format(plan.weights).quantized) return;
    const RegimeRow& row = regime(plan.precision);
    if (row.storage) plan.weights = *row.storage;
  }

  // A prompt and its completion are a sequence, unless the same source says how long it is.
  void follow_lengths(TrainingPlan& plan) {
    if (find("prompt") == nullptr || find("completion") == nullptr || find("seq") != nullptr) return;
    if (plan.prompt && plan.completion) plan.seq = checked_add(*plan.prompt, *plan.completion);
  }

  void check_qlora(const TrainingPlan& plan) {
    const Assignment* method = find("method");
    const Assignment* weights = find("weights");
    if (method == nullptr || weights == nullptr || !method->value.is_string()) return;
    if (to_kebab(method->value.as_string()) != "qlora" || weight_format(plan.weights).quantized) return;
    problem(weights->key, describe(weights->value) + " contradicts method qlora, whose base is quantised",
            "nf4, or method lora");
  }

  void check_fused(const TrainingPlan& plan) {
    const Assignment* optimizer = find("optimizer");
    const Assignment* impl = find("optimizer_impl");
    if (optimizer == nullptr || impl == nullptr || !optimizer->value.is_string()) return;
    if (plan.optimizer_impl == OptimizerImpl::fused || !names_fused_optimizer(optimizer->value.as_string())) return;
    problem(impl->key, describe(impl->value) + " contradicts optimizer " + optimizer->value.as_string(),
            "fused, or optimizer adamw");
  }

  const std::string& file_;
  Problems& problems_;
  std::vector<Assignment> assignments_;
  int unknown_ = 0;
};

// A number as people write it: digits, no leading zero, a sign, a fraction or an exponent perhaps.
bool looks_like_number(std::string_view text) {
  if (!text.empty() && text.front() == '-') text.remove_prefix(1);
  if (text.empty() || !is_digit(text.front())) return false;
  return !(text.size() > 1 && text.front() == '0' && is_digit(text[1]));
}

}  // namespace

Value flag_value(std::string_view text) {
  if (text == "null") return {};
  if (text == "true" || text == "false") return Value::of(text == "true");
  if (looks_like_number(text)) {
    const char* const end = text.data() + text.size();
    std::int64_t whole = 0;
    if (const auto read = std::from_chars(text.data(), end, whole); read.ec == std::errc() && read.ptr == end) {
      return Value::of(whole);
    }
    double real = 0;
    if (const auto read = std::from_chars(text.data(), end, real); read.ec == std::errc() && read.ptr == end) {
      return Value::of(real, std::string(text));
    }
  }
  return Value::of(std::string(text));
}

void read_plan(const Value& tree, const std::string& file, TrainingPlan& plan, Problems& problems) {
  if (!tree.is_map()) return problems.add({file, "", "needs a map of plan fields, not " + describe(tree), ""});
  PlanReader reader(file, problems);
  reader.collect(tree, "");
  reader.apply(plan);
}

void read_plan_settings(const std::vector<PlanSetting>& settings, const std::string& file, TrainingPlan& plan,
                        Problems& problems) {
  PlanReader reader(file, problems);
  for (const PlanSetting& setting : settings) {
    const PlanFieldRow* row = find_plan_field(setting.key);
    reader.add(row != nullptr ? row->key : setting.key, setting.key, flag_value(setting.text));
  }
  reader.apply(plan);
}

}  // namespace membill
