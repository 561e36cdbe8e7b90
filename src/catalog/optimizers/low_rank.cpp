#include "catalog/optimizers/groups.h"

namespace membill {
namespace {

constexpr const char* kGaloreSource =
    "Zhao et al. 2024 (GaLore), section 4; galore-torch 1.0 galore_torch/galore_projector.py, adamw.py, adamw8bit.py, "
    "measured but for cuSOLVER's workspace at a new projection; rank 128 as "
    "transformers src/transformers/trainer_optimizer.py";
constexpr const char* kApolloSource =
    "Zhu et al. 2024 (APOLLO), algorithm 1; apollo-torch 1.0.3 apollo_torch/apollo.py, measured; rank 128 as "
    "transformers src/transformers/trainer_optimizer.py";
constexpr OptimizerState kProjector{"projector", "projection matrix", StateWidth::like_parameter,
                                    StateShape::projector};

constexpr OptimizerState low_rank(OptimizerState state, StateWidth width = StateWidth::like_parameter) {
  state.width = width;
  state.shape = StateShape::low_rank;
  return state;
}

OptimizerRow projected_row(std::string_view name, std::string_view summary, std::vector<OptimizerState> states,
                           const char* source) {
  OptimizerRow row;
  row.name = name;
  row.summary = summary;
  row.states = std::move(states);
  row.loop = StepTemporaries::other;
  row.default_rank = 128;
  row.source = source;
  return row;
}

OptimizerRow in_8bit(OptimizerRow row) {
  row.block = 256;
  row.minimum_elements = 4096;
  row.code_tables = 2048;
  return row;
}

// The variant that updates and frees each gradient inside the backward.
OptimizerRow layerwise(OptimizerRow row, std::string_view name, std::string_view summary) {
  row.name = name;
  row.summary = summary;
  row.aliases.clear();
  row.gradients = GradientLife::one_tensor;
  return row;
}

}  // namespace

std::vector<OptimizerRow> low_rank_optimizers() {
  constexpr StateWidth k8bit = StateWidth::blockwise_8bit;
  OptimizerRow galore = projected_row("galore-adamw", "GaLore: AdamW's moments of a projected gradient",
                                      {low_rank(kFirstMoment), low_rank(kSecondMoment), kProjector}, kGaloreSource);
  galore.aliases = {"galore"};
  const OptimizerRow galore_8bit = in_8bit(
      projected_row("galore-adamw-8bit", "GaLore with 8-bit moments",
                    {low_rank(kFirstMoment, k8bit), low_rank(kSecondMoment, k8bit), kProjector}, kGaloreSource));
  const OptimizerRow galore_adafactor = projected_row(
      "galore-adafactor", "GaLore with Adafactor's factors of the projected gradient",
      {{"v", "factored second moment", StateWidth::fp32, StateShape::low_rank_factored}, kProjector}, kGaloreSource);
  OptimizerRow q_galore =
      in_8bit(projected_row("q-galore-adamw-8bit", "Q-GaLore: 8-bit moments and a 4-bit projection over INT8 weights",
                            {low_rank(kFirstMoment, k8bit),
                             low_rank(kSecondMoment, k8bit),
                             {"projector", "projection matrix", StateWidth::blockwise_4bit, StateShape::projector}},
                            "Zhang et al. 2024 (Q-GaLore), section 3; galore_projector.py: 4 bits in groups of 256"));
  q_galore.aliases = {"q_galore"};
  q_galore.gradients = GradientLife::one_tensor;
  OptimizerRow apollo =
      projected_row("apollo-adamw", "APOLLO: moments of a randomly projected gradient, channel scaling",
                    {low_rank(kFirstMoment), low_rank(kSecondMoment), kProjector}, kApolloSource);
  apollo.aliases = {"apollo"};
  OptimizerRow apollo_mini = apollo;
  apollo_mini.name = "apollo-mini";
  apollo_mini.summary = "APOLLO of rank 1, tensor scaling";
  apollo_mini.aliases.clear();
  apollo_mini.default_rank = 1;
  return {
      galore,
      layerwise(galore, "galore-adamw-layerwise", "GaLore that updates inside the backward"),
      galore_8bit,
      layerwise(galore_8bit, "galore-adamw-8bit-layerwise", "8-bit GaLore that updates inside the backward"),
      galore_adafactor,
      layerwise(galore_adafactor, "galore-adafactor-layerwise",
                "GaLore with Adafactor that updates inside the backward"),
      q_galore,
      apollo,
      layerwise(apollo, "apollo-adamw-layerwise", "APOLLO that updates inside the backward"),
      apollo_mini,
  };
}

}  // namespace membill
