#include <algorithm>

#include "base/text.h"
#include "catalog/adapter_modules.h"
#include "catalog/adapters.h"
#include "catalog/module_names.h"
#include "estimate/checks.h"
#include "estimate/megatron_adapters.h"
#include "estimate/trained_tensors.h"
#include "membill/catalog.h"

namespace membill {
namespace {

struct NamedModule {
  std::string name;
  ModuleKind kind;
};

// The modules that own a parameter, a stack's layers once.
std::vector<NamedModule> modules_of(const ModelSpec& model) {
  std::vector<NamedModule> modules;
  for (const Section& section : model.sections) {
    for (const LayerKind& kind : section.kinds) {
      for (const TensorSpec& tensor : kind.tensors) {
        const bool bare = tensor.module == ModuleKind::parameter;
        if (!tensor.buffer) modules.push_back({bare ? tensor.name : tensor.module_name(), tensor.module});
      }
    }
  }
  // A tied head owns no parameter, but it is a module that may get an adapter.
  if (model.tied_embeddings && !model.class_name.ends_with("Model")) modules.push_back({"lm_head", ModuleKind::linear});
  return modules;
}

std::string nearest_module(const std::vector<NamedModule>& modules, std::string_view name, bool adapters_only) {
  std::vector<std::string_view> words;
  for (const NamedModule& module : modules) {
    const std::string_view word = last_part(module.name);
    if (adapters_only && !peft::can_have_adapter(module.kind)) continue;
    if (std::find(words.begin(), words.end(), word) == words.end()) words.push_back(word);
  }
  const std::string_view nearest = nearest_word(name, words);
  if (!nearest.empty()) return std::string(nearest);
  return "one of " + join({words.begin(), words.end()}, ", ");
}

// Whether the name of a former module of experts stands for a fused parameter of the model type.
bool is_rewritten(const ModelSpec& model, const std::string& target) {
  const peft::Rewrite* rewrite = peft::find_rewrite(model.model_type);
  return rewrite != nullptr && std::any_of(rewrite->names.begin(), rewrite->names.end(),
                                           [&](const peft::RewrittenName& name) { return name.module == target; });
}

void check_target(const ModelSpec& model, const std::vector<NamedModule>& modules, const std::string& target,
                  Problems& problems) {
  if (target == "all-linear" || is_pattern(target) || is_rewritten(model, target)) return;
  bool found = false;
  for (const NamedModule& module : modules) {
    if (!ends_with_name(module.name, target)) continue;
    // A bare parameter goes by a dotted name, as PEFT's target_parameters has it.
    const bool named = module.kind == ModuleKind::parameter && target.find('.') != std::string::npos;
    if (named || peft::can_have_adapter(module.kind)) return;
    found = true;
  }
  problems.add({"", "adapter.targets",
                quoted(target) + (found ? " is no module that can have an adapter" : " is no module of the model"),
                nearest_module(modules, target, true)});
}

// What PEFT itself would refuse: no target matches, halves of a fused weight, DoRA on expert parameters.
void check_targets(const ModelSpec& model, const std::vector<NamedModule>& modules, const TrainingPlan& plan,
                   Problems& problems) {
  Problems found;
  for (const std::string& target : plan.adapter.targets) check_target(model, modules, target, found);
  if (plan.adapter.targets.empty() && default_adapter_targets(model.model_type, plan.method).empty()) {
    found.add({"", "adapter.targets", "PEFT has no default targets for model type " + quoted(model.model_type),
               "all-linear"});
  }
  if (found.empty()) {
    const AdapterMatch match = match_adapter_targets(model, plan.adapter, plan.method);
    if (!match.failure.empty()) found.add({"", "adapter.targets", match.failure, ""});
  }
  for (const Problem& problem : found.list()) problems.add(problem);
}

// Every part between dots of a module's name may be meant ("lm_head", "mlp").
void check_names(const std::vector<NamedModule>& modules, const std::vector<std::string>& names, const char* key,
                 Problems& problems) {
  for (const std::string& name : names) {
    if (is_pattern(name)) continue;
    const bool found = std::any_of(modules.begin(), modules.end(), [&](const NamedModule& module) {
      return ("." + module.name + ".").find("." + name + ".") != std::string::npos;
    });
    if (!found)
      problems.add({"", key, quoted(name) + " is no module of the model", nearest_module(modules, name, false)});
  }
}

void check_trained(const ModelSpec& model, const std::vector<NamedModule>& modules, const TrainingPlan& plan,
                   Problems& problems) {
  constexpr const char* kKey = "freeze.trainable_modules";
  const std::vector<std::string>& names = plan.freeze.trainable_modules;
  try {
    const TrainedTensors trained(model, plan);
    for (std::size_t i = 0; i < names.size(); ++i)
      if (!trained.matches_any(i))
        problems.add(
            {"", kKey, quoted(names[i]) + " is no module of the model", nearest_module(modules, names[i], false)});
  } catch (const BadPattern& pattern) {
    const bool long_one = pattern.name.size() > kLongestPattern;
    problems.add(
        {"", kKey,
         quoted(pattern.name) + (long_one ? " is longer than " + std::to_string(kLongestPattern) + " characters"
                                          : std::string(" is no regular expression")),
         ""});
  }
}

}  // namespace

void check_modules(const ModelSpec& model, const TrainingPlan& plan, Problems& problems) {
  if (model.sections.empty()) return;
  const std::vector<NamedModule> modules = modules_of(model);
  if (plan.method == Method::freeze) check_trained(model, modules, plan, problems);
  if (!adapts_modules(plan.method)) return;
  if (plan.engine == Engine::megatron) return check_megatron_targets(plan, problems);
  check_targets(model, modules, plan, problems);
  std::vector<NamedModule> savable = modules;
  if (model.tied_embeddings) savable.push_back({"lm_head", ModuleKind::linear});
  check_names(savable, plan.adapter.modules_to_save, "adapter.modules_to_save", problems);
}

}  // namespace membill
