#include "estimate/optimizer_states.h"

#include <algorithm>
#include <charconv>
#include <stdexcept>

namespace membill {
namespace {

constexpr std::int64_t kCodeTableBytes = 1024;  // one table of bitsandbytes: 256 fp32 codes

bool is_matrix(const Shape& shape) { return !(shape.width == Size(1)); }

const std::vector<OptimizerState>& adam_states() {
  static const std::vector<OptimizerState> kStates{{"m", "first moment"}, {"v", "second moment"}};
  return kStates;
}

bool is_blockwise(StateWidth width) {
  return width == StateWidth::blockwise_8bit || width == StateWidth::blockwise_4bit || width == StateWidth::fp8;
}

}  // namespace

bool is_hidden_matrix(const TrainedParameter& trained) {
  const bool hidden = trained.role == TensorRole::attention || trained.role == TensorRole::mlp ||
                      trained.role == TensorRole::expert || trained.role == TensorRole::adapter;
  return hidden && is_matrix(trained.parameter->value.shape());
}

DType OptimizerStates::own_type(const TrainedParameter& trained) const {
  if (plan_.moment_dtype) return *plan_.moment_dtype;
  return trained.master.defined() || trained.master_on_host ? DType::fp32 : trained.parameter->value.dtype();
}

void OptimizerStates::create(const TrainedParameter& trained, std::optional<StateShape> but) {
  if (row_.fused_step_counter && row_.has_fused && plan_.optimizer_impl == OptimizerImpl::fused)
    add("optimizer.step", Size(1), DType::fp32, trained);
  const bool by_adam = row_.matrices_only && !is_hidden_matrix(trained);
  std::vector<Scale> scales;
  if (row_.scales_first)
    for (const OptimizerState& state : row_.states) create_scales(state, trained);
  for (const OptimizerState& state : by_adam ? adam_states() : row_.states)
    if (state.shape != but) create_state(state, trained, scales);
  for (const Scale& scale : scales) add(scale.item, scale.blocks, DType::fp32, trained);
}

// A state that holds two elements for each of a parameter is quantised where one that holds one is.
bool OptimizerStates::is_quantized(const OptimizerState& state, const Size& elements,
                                   const TrainedParameter& trained) const {
  const Size& counted = state.shape == StateShape::twice ? trained.elements : elements;
  return is_blockwise(state.width) && !stays_unquantized(counted, trained);
}

void OptimizerStates::create_scales(const OptimizerState& state, const TrainedParameter& trained) {
  for (const Size& elements : elements_of(state, trained)) {
    if (!is_quantized(state, elements, trained)) continue;
    create_tables();
    const Size blocks = r_.symbols().ceil_div(trained.elements, Size(row_.block));
    add("optimizer." + std::string(state.id), state.shape == StateShape::twice ? Size(2) * blocks : blocks, DType::fp32,
        trained);
  }
}

void OptimizerStates::create_state(const OptimizerState& state, const TrainedParameter& trained,
                                   std::vector<Scale>& scales) {
  for (const Size& elements : elements_of(state, trained)) {
    if (elements.is_zero()) continue;
    if (is_quantized(state, elements, trained)) {
      add_quantized(state, elements, trained, scales);
      continue;
    }
    const StateWidth width = is_blockwise(state.width) ? row_.small_width : state.width;
    const DType type = width == StateWidth::fp32   ? DType::fp32
                       : width == StateWidth::bf16 ? DType::bf16
                                                   : own_type(trained);
    add_state("optimizer." + std::string(state.id), elements, type, trained);
  }
}

// bitsandbytes makes the codes of all states, then their scales; torchao codes, scales and table of one state after the other.
void OptimizerStates::add_quantized(const OptimizerState& state, const Size& elements, const TrainedParameter& trained,
                                    std::vector<Scale>& scales) {
  create_tables();
  const std::string item = "optimizer." + std::string(state.id);
  add_state(item, state.width == StateWidth::blockwise_4bit ? r_.symbols().ceil_div(elements, Size(2)) : elements,
            DType::uint8, trained);
  if (row_.scales_first) return;
  const Size blocks = r_.symbols().ceil_div(elements, Size(row_.block));
  if (!row_.whole_blocks_only) {
    scales.push_back({item, blocks});
    return;
  }
  add(item, blocks, DType::fp32, trained);
  if (row_.table_per_state > 0) add("optimizer.tables", Size(row_.table_per_state), DType::uint8, trained);
}

void OptimizerStates::adopt(const std::string& item, Tensor made) {
  made.body().storage->set_item(r_.writer().item(item));
  kept_.push_back(std::move(made));
}

void OptimizerStates::create_tables() {
  if (tables_made_) return;
  tables_made_ = true;
  const ItemId item = r_.writer().item("optimizer.tables");
  for (std::int64_t left = row_.code_tables; left > 0; left -= kCodeTableBytes)
    kept_.push_back(
        r_.empty({Size(std::min(left, kCodeTableBytes)), Size(1)}, DType::uint8, "quantisation table", item));
}

void OptimizerStates::add(const std::string& item, const Size& elements, DType type, const TrainedParameter& trained) {
  if (row_.on_host || trained.on_host) return add_on_host(item, elements, type, trained);
  kept_.push_back(r_.empty({elements, Size(1)}, type, "optimizer state", r_.writer().item(item)));
}

void OptimizerStates::add_on_host(const std::string& item, const Size& elements, DType type,
                                  const TrainedParameter& trained) {
  (trained.on_nvme ? on_nvme_ : on_host_)[item] +=
      elements * Size(bytes_per_element(type)) * r_.writer().turns(trained.parameter->unit);
}

// get_state_buffer: managed memory for tensors that are large enough.
void OptimizerStates::add_state(const std::string& item, const Size& elements, DType type,
                                const TrainedParameter& trained) {
  const bool paged = row_.paged && r_.symbols().evaluate(trained.elements) >= row_.paged_minimum;
  return paged ? add_on_host(item, elements, type, trained) : add(item, elements, type, trained);
}

bool OptimizerStates::stays_unquantized(const Size& elements, const TrainedParameter& trained) const {
  const std::int64_t count = r_.symbols().evaluate(elements);
  if (count < argument("min_8bit_size", row_.minimum_elements)) return true;
  if (row_.whole_blocks_only && count % row_.block != 0) return true;
  return row_.embeddings_in_32bit && plan_.loop == Loop::trainer && trained.role == TensorRole::embedding;
}

// A whole number among the optimizer's arguments; `usual` where there is none.
std::int64_t OptimizerStates::argument(const char* name, std::int64_t usual) const {
  std::int64_t value = usual;
  if (const auto given = plan_.optimizer_args.find(name); given != plan_.optimizer_args.end())
    std::from_chars(given->second.data(), given->second.data() + given->second.size(), value);
  return value;
}

Size OptimizerStates::rank(const Shape& shape) const {
  const std::int64_t rank = argument("rank", row_.default_rank);
  const std::int64_t smaller = std::min(r_.symbols().evaluate(shape.rows), r_.symbols().evaluate(shape.width));
  return smaller < rank ? Size(smaller) : r_.symbols().define("ρ", "rank of the projected gradient", rank);
}

Shape OptimizerStates::projected(const Shape& shape) const {
  const bool tall = r_.symbols().evaluate(shape.rows) >= r_.symbols().evaluate(shape.width);
  return tall ? Shape{shape.rows, rank(shape)} : Shape{shape.width, rank(shape)};
}

Size OptimizerStates::low_rank(const TrainedParameter& trained, bool factored) const {
  if (!is_hidden_matrix(trained)) {
    const Shape& matrix = trained.matrix();
    return factored && is_matrix(matrix) ? trained.stacked * (matrix.rows + matrix.width) : trained.elements;
  }
  const Shape shape = projected(trained.parameter->value.shape());
  return factored ? shape.width + shape.rows : shape.elements();
}

Size OptimizerStates::projector(const TrainedParameter& trained) const {
  if (!is_hidden_matrix(trained)) return {};
  const Shape& shape = trained.parameter->value.shape();
  const bool wide = r_.symbols().evaluate(shape.rows) < r_.symbols().evaluate(shape.width);
  return rank(shape) * (wide ? shape.rows : shape.width);
}

Size OptimizerStates::squares(const Shape& shape) const {
  Size sum;
  if (!is_matrix(shape)) return sum;
  for (const Size& axis : {shape.rows, shape.width})
    if (row_.largest_axis == 0 || r_.symbols().evaluate(axis) <= row_.largest_axis) sum += axis * axis;
  return sum;
}

// One entry a tensor.
std::vector<Size> OptimizerStates::elements_of(const OptimizerState& state, const TrainedParameter& trained) const {
  const Shape& shape = trained.parameter->value.shape();
  switch (state.shape) {
    case StateShape::full: return {trained.elements};
    case StateShape::twice: return {Size(2) * trained.elements};
    case StateShape::one_per_tensor: return {Size(1)};
    case StateShape::factored_rows_and_columns:
    case StateShape::factored_of_matrices: {
      const Shape& matrix = trained.matrix();
      if (is_matrix(matrix)) return {trained.stacked * matrix.rows, trained.stacked * matrix.width};
      if (state.shape == StateShape::factored_of_matrices) return {};
      return {trained.elements};
    }
    case StateShape::low_rank: return {low_rank(trained, false)};
    case StateShape::low_rank_factored: return {low_rank(trained, true)};
    case StateShape::projector: return {projector(trained)};
    case StateShape::square_per_axis: return {squares(shape)};
    case StateShape::adam_mini:  // of query and key one a head: so few that they are counted as rows
      if (is_matrix(shape)) return {shape.rows};
      return {trained.role == TensorRole::norm ? Size(1) : trained.elements};
  }
  throw std::logic_error("no such shape of a state");
}

}  // namespace membill
