// Which modules of a model a low-rank adapter is put on, by PEFT's rules, and how many parameters it adds.
//
// Source: peft 0.21.2, src/peft/tuners/tuners_utils.py (check_target_module_exists, _maybe_include_all_linear_layers) and
// src/peft/utils/transformers_weight_conversion.py, with transformers 5.24.0.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "membill/model_spec.h"
#include "membill/training_plan.h"

namespace membill {

// Whether the method puts adapters on modules.
[[nodiscard]] bool adapts_modules(Method method);

// A module, or a fused expert parameter, that gets an adapter: the same one in every layer of `layers`.
struct AdaptedModule {
  std::size_t section = 0;           // of ModelSpec::sections
  std::size_t kind = 0;              // of that section's kinds
  std::vector<std::int64_t> layers;  // layers of the section that have it, in order; {0} outside of stacks
  std::string name;                  // module ("model.layers.*.mlp.up_proj"), or parameter ("...mlp.experts.down_proj")
  ModuleKind module = ModuleKind::linear;  // linear, conv1d, embedding; parameter: fused experts or a router
  std::int64_t in = 0, out = 0;  // features; of an embedding: rows and width; of a parameter: its last two axes
  std::int64_t matrices = 1;     // experts of a fused parameter: each has its own pair of adapter matrices
  std::int64_t rank = 0;         // the plan's; twice it where both halves of gate_up_proj are named
  bool bias = false;             // LoRA's second matrix has one
  bool feed_forward = false;     // (IA)3 scales its input
  std::int64_t shaped = 0;       // parameters in one layer, of LoHa, LoKr and OFT
  bool tied_head = false;  // the head of a model whose head and embedding are one tensor (section: the embedding's)

  // Parameters of the adapter in one layer: A and B, with DoRA's magnitudes or AdaLoRA's singular values and rank; VeRA's two vectors,
  // (IA)3's one. Throws OverflowError.
  [[nodiscard]] std::int64_t parameters(Method method) const;
};

// A target that no module has.
struct UnmatchedTarget {
  std::string target;
  std::string nearest;  // the module name that was likely meant; empty: none is near
};

struct AdapterMatch {
  std::vector<AdaptedModule> modules;      // in census order
  std::vector<UnmatchedTarget> unmatched;  // PEFT ignores them as long as another target matches
  std::string failure;                     // why PEFT would refuse, one clause; empty: it would not

  // Layers of a section whose modules are adapted alike have the same ranks: of each module, 0 for none.
  [[nodiscard]] std::vector<std::int64_t> ranks_in(std::size_t section, std::int64_t layer) const;
  // Parameters of all adapters. Throws OverflowError.
  [[nodiscard]] std::int64_t parameters(Method method) const;
};

// Applies `plan.targets` (names match whole module names or their last parts; one entry with a character that no name has is a
// regular expression over whole names; "all-linear"; empty: PEFT's default of the model type) and `plan.rank`; `method` is one that puts adapters on modules.
[[nodiscard]] AdapterMatch match_adapter_targets(const ModelSpec& model, const AdapterPlan& plan, Method method);

// PEFT's default targets of a model type under a method that puts adapters on modules; empty: none.
[[nodiscard]] std::span<const std::string_view> default_adapter_targets(std::string_view model_type, Method method);

// The module of the model type's MLP whose input (IA)3 scales; empty: PEFT knows none.
[[nodiscard]] std::string_view ia3_feed_forward(std::string_view model_type);

}  // namespace membill
