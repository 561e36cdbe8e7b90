#include "catalog/adapters.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <regex>
#include <set>

#include "base/first_rank.h"
#include "catalog/adapter_modules.h"
#include "catalog/adapter_shapes.h"
#include "catalog/module_names.h"
#include "membill/catalog.h"
#include "membill/problem.h"

namespace membill {

namespace {

bool is_all_linear(const std::vector<std::string>& targets) {
  constexpr std::string_view kShorthand = "all-linear";
  return targets.size() == 1 &&
         std::equal(targets[0].begin(), targets[0].end(), kShorthand.begin(), kShorthand.end(),
                    [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a - 'A' + 'a' : a) == b; });
}

bool has_shapes_of_its_own(Method method) {
  return method == Method::loha || method == Method::lokr || method == Method::oft;
}

class Matcher {
 public:
  Matcher(const ModelSpec& model, const AdapterPlan& plan, Method method)
      : model_(model), plan_(plan), method_(method), all_(peft::list_modules(model)) {}

  AdapterMatch run() {
    const peft::Rewrite* rewrite = peft::find_rewrite(model_.model_type);
    if (is_all_linear(plan_.targets)) {
      match_all_linear(rewrite);
    } else if (plan_.targets.size() == 1 && is_pattern(plan_.targets[0])) {
      match_pattern(plan_.targets[0]);
    } else {
      match_names(rewrite);
    }
    finish();
    return std::move(match_);
  }

 private:
  void match_all_linear(const peft::Rewrite* rewrite) {
    std::set<std::string_view> rewritten;
    if (rewrite != nullptr) {
      for (const peft::RewrittenName& name : rewrite->names) rewritten.insert(name.module);
    }
    for (const AdaptedModule& module : all_) {
      if (!peft::is_linear(module) || peft::is_head(model_, module)) continue;
      if (rewritten.count(last_part(module.name)) == 0) take(module, plan_.rank);
    }
    if (rewrite != nullptr) match_rewritten(*rewrite, rewritten);
  }

  // Nothing, and a failure, where `pattern` is none.
  std::optional<std::regex> compile(const std::string& pattern, const char* what) {
    std::optional<std::regex> expression = compile_pattern(pattern);
    if (!expression && match_.failure.empty()) {
      match_.failure = pattern.size() > kLongestPattern ? "the pattern of " + std::string(what) + " is longer than " +
                                                              std::to_string(kLongestPattern) + " characters"
                                                        : quoted(pattern) + " is no regular expression";
    }
    return expression;
  }

  void match_pattern(const std::string& pattern) {
    const std::optional<std::regex> expression = compile(pattern, "adapter targets");
    if (!expression) return;
    for (AdaptedModule module : all_) {
      if (module.module == ModuleKind::parameter) continue;
      std::vector<std::int64_t> layers;
      for (const std::int64_t layer : module.layers) {
        if (std::regex_match(with_layer(module.name, layer), *expression)) layers.push_back(layer);
      }
      if (layers.empty()) continue;
      module.layers = std::move(layers);
      take_named(module, pattern);
    }
    if (match_.modules.empty()) match_.unmatched.push_back({pattern, ""});
  }

  void match_names(const peft::Rewrite* rewrite) {
    std::vector<std::string> targets = plan_.targets;
    if (targets.empty() && rewrite == nullptr) {
      for (const std::string_view name : default_adapter_targets(model_.model_type, method_))
        targets.emplace_back(name);
      if (targets.size() == 1 && is_pattern(targets[0])) return match_pattern(targets[0]);
    }
    if (targets.empty()) {
      match_.failure = "PEFT has no default targets for model type '" + model_.model_type + "'";
      return;
    }
    if (rewrite != nullptr) take_rewritten_out(*rewrite, targets);
    for (const std::string& target : targets) match_name(target);
  }

  // Names of expert modules stand for fused parameters; no module of that name is a target any more.
  void take_rewritten_out(const peft::Rewrite& rewrite, std::vector<std::string>& targets) {
    std::set<std::string_view> named;
    for (const peft::RewrittenName& name : rewrite.names) {
      const auto found = std::find(targets.begin(), targets.end(), name.module);
      if (found == targets.end()) continue;
      named.insert(name.module);
      targets.erase(found);
    }
    match_rewritten(rewrite, named);
  }

  void match_rewritten(const peft::Rewrite& rewrite, const std::set<std::string_view>& named) {
    const bool first = named.count(rewrite.first_half) > 0, second = named.count(rewrite.second_half) > 0;
    if (first != second) {
      match_.failure = "'" + std::string(first ? rewrite.first_half : rewrite.second_half) +
                       "' is one half of gate_up_proj: name '" +
                       std::string(first ? rewrite.second_half : rewrite.first_half) + "' too";
      return;
    }
    std::set<std::string_view> parameters;
    for (const peft::RewrittenName& name : rewrite.names) {
      if (named.count(name.module) > 0) parameters.insert(name.parameter);
    }
    for (const AdaptedModule& module : all_) {
      if (module.module != ModuleKind::parameter) continue;
      for (const std::string_view parameter : parameters) {
        if (!ends_with_name(module.name, parameter)) continue;
        take(module, parameter == "gate_up_proj" ? checked_mul(2, plan_.rank) : plan_.rank);
      }
    }
  }

  // A dotted name may also be a bare parameter's ("experts.down_proj"), which PEFT lists apart as target_parameters.
  void match_name(const std::string& target) {
    bool found = false;
    for (const AdaptedModule& module : all_) {
      if (!ends_with_name(module.name, target)) continue;
      if (module.module == ModuleKind::parameter && target.find('.') == std::string::npos) continue;
      found = true;
      take_named(module, target);
    }
    if (!found) match_.unmatched.push_back({target, nearest(target)});
  }

  void take_named(const AdaptedModule& module, const std::string& target) {
    if (module.module == ModuleKind::norm) {
      if (match_.failure.empty()) match_.failure = "'" + target + "' is a norm, which can have no adapter";
      return;
    }
    take(module, plan_.rank);
  }

  void take(AdaptedModule module, std::int64_t rank) {
    const bool taken = std::any_of(match_.modules.begin(), match_.modules.end(), [&](const AdaptedModule& other) {
      return other.name == module.name && other.section == module.section && other.kind == module.kind;
    });
    if (taken) return;
    module.rank = rank;
    match_.modules.push_back(std::move(module));
  }

  [[nodiscard]] std::string nearest(const std::string& target) const {
    std::vector<std::string_view> words;
    for (const AdaptedModule& module : all_) {
      if (peft::can_have_adapter(module.module)) words.push_back(last_part(module.name));
    }
    return std::string(nearest_word(target, words));
  }

  // tuners_utils.py check_target_module_exists and get_pattern_key: what is left out, and who has a rank of his own.
  struct Narrowing {
    std::vector<std::regex> excluded;
    std::vector<std::pair<std::regex, std::int64_t>> ranks;
  };

  Narrowing compile_narrowing() {
    Narrowing narrowing;
    for (const std::string& name : plan_.exclude) {
      if (!is_pattern(name)) continue;
      if (auto expression = compile(name, "excluded modules")) narrowing.excluded.push_back(*std::move(expression));
    }
    for (const auto& [key, rank] : plan_.rank_pattern) {
      if (auto expression = compile("(.*\\.)?(" + key + ")", "ranks"))
        narrowing.ranks.emplace_back(*std::move(expression), rank);
    }
    return narrowing;
  }

  void narrow_layers() {
    const Narrowing narrowing = compile_narrowing();
    std::vector<AdaptedModule> narrowed;
    for (const AdaptedModule& module : match_.modules) {
      std::map<std::int64_t, std::vector<std::int64_t>> layers_of_rank;
      for (const std::int64_t layer : module.layers) {
        const std::string name = with_layer(module.name, layer);
        if (is_left_out(module, name, layer, narrowing.excluded)) continue;
        const auto other = std::find_if(narrowing.ranks.begin(), narrowing.ranks.end(),
                                        [&](const auto& rank) { return std::regex_match(name, rank.first); });
        layers_of_rank[other == narrowing.ranks.end() ? module.rank : other->second].push_back(layer);
      }
      for (auto& [rank, layers] : layers_of_rank) {
        narrowed.push_back(module);
        narrowed.back().rank = rank;
        narrowed.back().layers = std::move(layers);
      }
    }
    match_.modules = std::move(narrowed);
  }

  [[nodiscard]] bool is_left_out(const AdaptedModule& module, const std::string& name, std::int64_t layer,
                                 const std::vector<std::regex>& patterns) const {
    const bool in_stack = !model_.sections[module.section].layer_kinds.empty();
    if (!plan_.layers.empty() &&
        (!in_stack || std::find(plan_.layers.begin(), plan_.layers.end(), layer) == plan_.layers.end()))
      return true;
    const auto ends = [&](const std::string& excluded) {
      return !is_pattern(excluded) && ends_with_name(name, excluded);
    };
    const auto matches = [&](const std::regex& pattern) { return std::regex_match(name, pattern); };
    return std::any_of(plan_.exclude.begin(), plan_.exclude.end(), ends) ||
           std::any_of(patterns.begin(), patterns.end(), matches);
  }

  void finish() {
    const bool narrows = !plan_.exclude.empty() || !plan_.layers.empty() || !plan_.rank_pattern.empty();
    if (narrows) narrow_layers();
    for (AdaptedModule& module : match_.modules)
      module.bias = plan_.lora_bias && module.module != ModuleKind::parameter &&
                    (method_ == Method::lora || method_ == Method::dora);
    std::stable_sort(match_.modules.begin(), match_.modules.end(), [](const AdaptedModule& a, const AdaptedModule& b) {
      return a.section != b.section ? a.section < b.section : a.kind < b.kind;
    });
    if (!match_.failure.empty()) return;
    if (match_.modules.empty()) {
      match_.failure = "no module of the model is a target";
      return;
    }
    if (method_ != Method::lora && has_kind(ModuleKind::parameter)) {
      match_.failure = std::string(name_of_method()) + " does not work on fused expert parameters";
    } else if (method_ != Method::lora && method_ != Method::dora && has_kind(ModuleKind::embedding)) {
      match_.failure = std::string(name_of_method()) + " does not work on embeddings";
    } else if (has_shapes_of_its_own(method_) && has_kind(ModuleKind::conv1d)) {
      match_.failure = std::string(name_of_method()) + " works on linears, not on Conv1D modules";
    } else if (const AdaptedModule* output = find_mamba_output()) {
      match_.failure = "PEFT refuses adapters on " + std::string(last_part(output->name)) + " of model type '" +
                       model_.model_type + "'";
    }
    const std::string_view mlp = method_ == Method::ia3 ? ia3_feed_forward(model_.model_type) : std::string_view();
    for (AdaptedModule& module : match_.modules) {
      module.feed_forward = !mlp.empty() && ends_with_name(module.name, mlp);
      if (has_shapes_of_its_own(method_) && match_.failure.empty())
        module.shaped = shaped_parameters(method_, module.in, module.out, module.rank, plan_);
    }
  }

  [[nodiscard]] bool has_kind(ModuleKind kind) const {
    return std::any_of(match_.modules.begin(), match_.modules.end(),
                       [&](const AdaptedModule& module) { return module.module == kind; });
  }

  // peft 0.21.2 tuners/tuners_utils.py _check_lora_target_modules_mamba.
  [[nodiscard]] const AdaptedModule* find_mamba_output() const {
    constexpr std::array<std::string_view, 2> kTypes{"falcon_h1", "nemotron_h"};
    const bool refuses = method_ == Method::lora || method_ == Method::dora || method_ == Method::adalora;
    if (!refuses || std::find(kTypes.begin(), kTypes.end(), model_.model_type) == kTypes.end()) return nullptr;
    const auto found = std::find_if(match_.modules.begin(), match_.modules.end(),
                                    [](const AdaptedModule& module) { return last_part(module.name) == "out_proj"; });
    return found == match_.modules.end() ? nullptr : &*found;
  }

  [[nodiscard]] std::string_view name_of_method() const {
    switch (method_) {
      case Method::dora: return "DoRA";
      case Method::adalora: return "AdaLoRA";
      case Method::vera: return "VeRA";
      case Method::loha: return "LoHa";
      case Method::lokr: return "LoKr";
      case Method::oft: return "OFT";
      default: return "(IA)3";
    }
  }

  const ModelSpec& model_;
  const AdapterPlan& plan_;
  Method method_;
  std::vector<AdaptedModule> all_;
  AdapterMatch match_;
};

}  // namespace

bool adapts_modules(Method method) {
  return method != Method::full && method != Method::freeze && method != Method::prompt && method != Method::prefix &&
         method != Method::ptuning;
}

std::int64_t AdaptedModule::parameters(Method method) const {
  if (method == Method::ia3) return feed_forward ? in : out;
  if (has_shapes_of_its_own(method)) return shaped;
  if (method == Method::vera) return checked_add(rank, out);
  const std::int64_t pairs = checked_mul(matrices, checked_mul(rank, checked_add(in, out)));
  if (method == Method::adalora) return checked_add(pairs, checked_add(rank, 1));
  return checked_add(pairs, checked_add(method == Method::dora ? out : 0, bias ? out : 0));
}

std::vector<std::int64_t> AdapterMatch::ranks_in(std::size_t section, std::int64_t layer) const {
  std::vector<std::int64_t> ranks;
  for (const AdaptedModule& module : modules) {
    const bool has = module.section == section && std::binary_search(module.layers.begin(), module.layers.end(), layer);
    ranks.push_back(has ? module.rank : 0);
  }
  return ranks;
}

std::int64_t AdapterMatch::parameters(Method method) const {
  std::int64_t total = 0;
  for (const AdaptedModule& module : modules) {
    const auto layers = static_cast<std::int64_t>(module.layers.size());
    total = checked_add(total, checked_mul(layers, module.parameters(method)));
  }
  return total;
}

AdapterMatch match_adapter_targets(const ModelSpec& model, const AdapterPlan& plan, Method method) {
  AdapterPlan ranked = plan;
  ranked.rank = first_rank(plan, method);
  return Matcher(model, ranked, method).run();
}

}  // namespace membill
