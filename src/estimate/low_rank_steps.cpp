#include "estimate/low_rank_steps.h"

namespace membill {
namespace {

constexpr int kNewtonSchulzSteps = 5;

// The side that a projection leaves as it is, and the one that it makes smaller.
struct Sides {
  Size larger, smaller;
};

Sides sides_of(const SymbolTable& symbols, const Shape& shape) {
  const bool tall = symbols.evaluate(shape.rows) >= symbols.evaluate(shape.width);
  return tall ? Sides{shape.rows, shape.width} : Sides{shape.width, shape.rows};
}

}  // namespace

// get_orthogonal_matrix: a singular value decomposition in fp32, and the product that nobody asks for. The projection of an fp32
// gradient is a view of the decomposition, all of whose vectors stay.
void GaloreStep::make_projection(const Shape& shape, DType type) const {
  const Sides sides = sides_of(r_.symbols(), shape);
  const Size rank = states_.rank(shape);
  const Tensor matrix = type == DType::fp32 ? Tensor() : make(shape, DType::fp32);
  const Tensor left = make({shape.rows, sides.smaller}, DType::fp32);
  const Tensor values = make({sides.smaller, Size(1)}, DType::fp32);
  const Tensor right = make({sides.smaller, shape.width}, DType::fp32);
  const Tensor diagonal = make({rank, rank}, DType::fp32);
  const Tensor product = make({sides.larger, rank}, DType::fp32);
  r_.use_matmul_workspace();
  const bool tall = sides.larger == shape.rows;
  if (type == DType::fp32) states_.adopt("optimizer.projector", tall ? right : left);
}

void GaloreStep::project(const TrainedParameter& trained, bool has_states) {
  const Shape& shape = trained.parameter->value.shape();
  const DType type = trained.parameter->gradient.dtype();
  if (!has_states) make_projection(shape, type);
  gradient_ = make(states_.projected(shape), type);
  r_.use_matmul_workspace();
}

void GaloreStep::create_states(const TrainedParameter& trained) {
  const bool has_projector = is_hidden_matrix(trained) && trained.parameter->gradient.dtype() == DType::fp32;
  states_.create(trained, has_projector ? std::optional(StateShape::projector) : std::nullopt);
}

void GaloreStep::adapt(const TrainedParameter& trained, bool has_states, const Shape& shape) {
  if (!has_states) create_states(trained);
  const DType type = states_.own_type(trained);
  root_ = make(shape, type);
  update_ = make(shape, type);
}

void GaloreStep::update(const TrainedParameter& trained, bool has_states) {
  const Shape& shape = trained.parameter->value.shape();
  gradient_.drop();
  if (!is_hidden_matrix(trained)) return adapt(trained, has_states, shape);
  project(trained, has_states);
  adapt(trained, has_states, states_.projected(shape));
  const Tensor back = make(shape, states_.own_type(trained));
  r_.use_matmul_workspace();
  Tensor scaled = make(shape, states_.own_type(trained));
  update_ = std::move(scaled);
}

// get_orthogonal_matrix: random numbers over the square root of the rank, in fp32.
void ApolloStep::make_projection(const Shape& shape, DType type) const {
  const Shape projection{states_.rank(shape), sides_of(r_.symbols(), shape).smaller};
  const Tensor matrix = type == DType::fp32 ? Tensor() : make(shape, DType::fp32);
  const Tensor random = make(projection, DType::fp32);
  if (type != DType::fp32) static_cast<void>(make(projection, DType::fp32));
}

void ApolloStep::create_states(const TrainedParameter& trained) {
  states_.create(trained);
  if (is_hidden_matrix(trained)) states_.add("optimizer.norm", Size(1), states_.own_type(trained), trained);
}

Size ApolloStep::factors(const Shape& shape) const { return sides_of(r_.symbols(), shape).larger; }

void ApolloStep::update(const TrainedParameter& trained, bool has_states) {
  const Shape& shape = trained.parameter->value.shape();
  gradient_.drop();
  if (!is_hidden_matrix(trained)) return adapt(trained, has_states, shape);
  project(trained, has_states);
  adapt(trained, has_states, states_.projected(shape));
  const DType type = states_.own_type(trained);
  const Shape line{factors(shape), Size(1)};
  {
    const Tensor of_update = make(line, type);
    Tensor of_gradient = make(line, type);
    const Tensor safe = make(line, type);
    of_gradient.drop();
    factor_ = make(line, type);
  }
  scaled_ = make(shape, type);
  if (has_states) scaled_ = make(shape, type);
  update_ = scaled_;
}

// adamw8bit.py: the projected gradient takes the place of the parameter's data while bitsandbytes updates; then a copy of them comes
// back, and is the parameter from there on.
void Galore8BitStep::update(const TrainedParameter& trained, bool has_states) {
  const Shape& shape = trained.parameter->value.shape();
  const DType type = trained.parameter->value.dtype();
  if (!is_hidden_matrix(trained)) {
    if (!has_states) create_states(trained);
    return;
  }
  project(trained, has_states);
  std::shared_ptr<Storage>& data = trained.parameter->value.body().storage;
  const Tensor copy = r_.empty(shape, type, trained.parameter->label, data->item());
  const Tensor place = make(states_.projected(shape), type);
  data = copy.body().storage;
  trained.parameter->gradient = gradient_;
  if (!has_states) create_states(trained);
  const Tensor back = make(shape, type);
  r_.use_matmul_workspace();
  static_cast<void>(make(shape, type));
}

void MuonStep::adapt(const TrainedParameter& trained) {
  const Shape& shape = trained.parameter->value.shape();
  Tensor root = make(shape, states_.own_type(trained));
  Tensor quotient = make(shape, states_.own_type(trained));
  root.drop();
  root_ = std::move(quotient);
}

// _zeropower_via_newtonschulz: products of the smaller side in bf16; the locals of a turn live until the next assigns them. Its sums
// with a product (addmm) take no workspace, but where the one added is transposed.
Tensor MuonStep::orthogonal(const Shape& shape) const {
  const Size& side = sides_of(r_.symbols(), shape).smaller;
  const bool turned = r_.symbols().evaluate(shape.rows) > r_.symbols().evaluate(shape.width);
  Tensor result = make(shape, DType::bf16), gram, polynomial;
  { const Tensor norm = scalar(DType::bf16), clamped = scalar(DType::bf16); }
  for (int i = 0; i < kNewtonSchulzSteps; ++i) {
    Tensor square = make({side, side}, DType::bf16);
    r_.use_matmul_workspace();
    gram = std::move(square);
    polynomial = make({side, side}, DType::bf16);
    Tensor next = make(shape, DType::bf16);
    if (turned && i == 0) r_.use_matmul_workspace();
    result = std::move(next);
  }
  return result;
}

void MuonStep::update(const TrainedParameter& trained, bool has_states) {
  if (!has_states) states_.create(trained);
  if (!is_hidden_matrix(trained)) return adapt(trained);
  update_ = make(trained.parameter->value.shape(), trained.parameter->gradient.dtype());
  update_ = orthogonal(trained.parameter->value.shape());
}

void GrokStep::update(const TrainedParameter& trained, bool has_states) {
  if (!has_states) states_.create(trained);
  const Shape& shape = trained.parameter->value.shape();
  const DType type = states_.own_type(trained);
  Tensor first = make(shape, type);
  second_ = make(shape, type);
  first_ = std::move(first);
  average_ = make(shape, type);
  Tensor product = make(shape, type);
  gradient_ = make(shape, type);
  product.drop();
  static_cast<void>(make(shape, type));
}

void LionStep::update(const TrainedParameter& trained, bool has_states) {
  if (!has_states) states_.create(trained);
  const Shape& shape = trained.parameter->value.shape();
  Tensor copy = make(shape, states_.own_type(trained));
  const Tensor change = make(shape, states_.own_type(trained));
  copy.drop();
}

}  // namespace membill
