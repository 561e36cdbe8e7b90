// Megatron's router and the order in which its dispatchers lay rows (megatron-core 0.16 transformer/moe/router.py, moe_utils.py).
#pragma once

#include <memory>
#include <vector>

#include "blocks/causal_lm.h"
#include "blocks/forward.h"

namespace membill {

// Whether its router scores experts by a sigmoid and steers the choice by a bias of each expert (moe_router_score_function,
// moe_router_enable_expert_bias); else by a softmax over those that were chosen.
[[nodiscard]] bool scores_by_sigmoid(const ModelSpec& model);

// How a plan's experts run: plan.sharding.engine_keys, in Megatron's words.
struct ExpertPlan {
  bool gathers = false;       // moe_token_dispatcher_type allgather; else alltoall
  bool grouped = false;       // moe_grouped_gemm: the local experts' products are one each
  bool pads = false;          // moe_pad_expert_input_to_capacity
  bool balances = false;      // an auxiliary loss
  bool wide = false;          // moe_router_dtype fp32
  std::int64_t capacity = 0;  // moe_expert_capacity_factor in thousandths; 0: no limit
};
[[nodiscard]] ExpertPlan expert_plan(const TrainingPlan& plan);

// Sizes of one layer's exchange.
struct ExpertRows {
  Size tokens;    // of this rank
  Size sent;      // rows that they become, one for each choice
  Size received;  // rows that come from the expert-parallel ranks
  Size worked;    // rows that this rank's experts work on
  Size seen;      // tokens whose choices this rank sees: its own, or those that an all-gather brings
};
[[nodiscard]] ExpertRows expert_rows(const Forward& f, const Size& top, std::int64_t experts);

// Each token's weights for all experts, and who was chosen.
struct MegatronRouting {
  Tensor weights, map;
};
[[nodiscard]] MegatronRouting megatron_route(Forward& f, const LayerContext& layer, const Tensor& hidden);

// Rows of x in another place or order: a new tensor, and so is its gradient. `index`: what says where each goes.
[[nodiscard]] Tensor moved(Recorder& r, const Tensor& x, const Shape& shape, const char* label,
                           const Tensor& index = {});

// Tokens in the order of their experts, one row for each choice, and the weight of each.
struct Permuted {
  Tensor rows, weights, order;
};
// `routing` of this rank's tokens for all experts, or of all tokens for this rank's.
[[nodiscard]] Permuted permute(Forward& f, const MegatronRouting& routing, const Tensor& hidden, const Size& rows);

// A dispatcher's attribute holds the routing weights with the graph behind them. Where a recomputation made it, the graph ends in the
// checkpoint's input, which stays with its gradient until the layer's next forward. This gives them to the routers.
[[nodiscard]] CheckpointEnd held_by_routers(const std::vector<Modules*>& layers);
// The leaf where the graph of adapters ends, once its backward is over. The weights that a dispatcher keeps for itself hold their graph,
// and so the leaf, until its next forward; the schedule holds the last output's graph until the next micro-batch has returned
// (pipeline_parallel/schedules.py): `left`, but for the step's last.
void leave_leaf(const Forward& f, ModelModules& modules, bool last, std::unique_ptr<Parameter>& leaf,
                std::unique_ptr<Parameter>& left);

// What a layer's dispatcher keeps of the last micro-batch as its attributes.
[[nodiscard]] std::vector<Tensor> dispatcher_attributes(Forward& f);

}  // namespace membill
