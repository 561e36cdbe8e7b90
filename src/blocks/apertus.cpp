#include "blocks/apertus.h"

namespace membill {
namespace {

// torch.min(x, a number's tensor): minimum keeps x.
Tensor at_most(Recorder& r, const Tensor& x) {
  const bool node = r.needs_node({&x});
  const Tensor kept = node ? r.saved(x) : Tensor();
  Tensor out = r.empty(x.shape(), x.dtype(), "input, at most a number");
  if (!node) return out;
  r.record({&out}, {r.edge(x)}, [kept, shape = x.shape(), type = x.dtype()](Recorder& rec, Gradients&) {
    const Tensor equal = rec.empty(shape, DType::boolean, "equal to the bound");
    const Tensor half = rec.empty(shape, type, "half of the gradient");
    const Tensor above = rec.empty(shape, DType::boolean, "above the bound");
    return Gradients{rec.empty(shape, type, "gradient within the bound")};
  });
  return out;
}

// torch.expm1: keeps its result; its derivative adds one to it.
Tensor exp_minus_one(Recorder& r, Tensor x) {
  const Tensor in = r.autocast_fp32(std::move(x));
  Tensor out = r.empty(in.shape(), in.dtype(), "exponential less one");
  if (!r.needs_node({&in})) return out;
  const Tensor kept = r.detach(r.saved(out));
  r.record({&out}, {r.edge(in)}, [kept, shape = in.shape(), type = in.dtype()](Recorder& rec, Gradients&) {
    const Tensor plus_one = rec.empty(shape, type, "exponential");
    return Gradients{rec.empty(shape, type, "gradient of the exponential")};
  });
  return out;
}

// torch.where(condition, a, b).
Tensor choose(Recorder& r, const Tensor& condition, const Tensor& a, const Tensor& b) {
  const bool node = r.needs_node({&a, &b});
  const Tensor kept = node ? r.saved(condition) : Tensor();
  Tensor out = r.empty(a.shape(), a.dtype(), "chosen branch");
  if (!node) return out;
  r.record({&out}, {r.edge(a), r.edge(b)}, [kept, shape = a.shape(), type = a.dtype()](Recorder& rec, Gradients&) {
    Gradients result(2);
    result[0] = rec.empty(shape, type, "gradient where it was chosen");
    result[1] = rec.empty(shape, type, "gradient where it was not");
    return result;
  });
  return out;
}

// activations.py XIELUActivation._xielu_python.
Tensor xielu(Forward& f, const LayerContext& layer, const Tensor& x) {
  Recorder& r = f.r;
  const Tensor alpha_p = r.softplus(layer.modules.at("mlp.act_fn.alpha_p").weight.value);
  const Tensor alpha_n = r.add_scalar(r.softplus(layer.modules.at("mlp.act_fn.alpha_n").weight.value));
  const Tensor positive = r.empty(x.shape(), DType::boolean, "input above zero");
  const auto linear_part = [&] { return r.mul_scalar(x, "beta times the input"); };
  Tensor squares = r.mul(r.mul(alpha_p, x, "alpha times the input"), x, "alpha times the input's square");
  const Tensor above = r.add(std::move(squares), linear_part(), "branch above zero");
  Tensor curved = r.sub(exp_minus_one(r, at_most(r, x)), x, "exponential less the input");
  curved = r.mul(std::move(curved), alpha_n, "scaled exponential");
  const Tensor below = r.add(std::move(curved), linear_part(), "branch below zero");
  return choose(r, positive, above, below);
}

}  // namespace

ApertusArchitecture::NormNames ApertusArchitecture::norm_names() const {
  return {"attention_layernorm", nullptr, "feedforward_layernorm", nullptr};
}

Heads ApertusArchitecture::project(Forward& f, const LayerContext& layer, const Tensor& hidden) const {
  return project_then_norm(f, layer, hidden);
}

Tensor ApertusArchitecture::mlp(Forward& f, const LayerContext& layer, const Tensor& hidden) const {
  const std::string& name = layer.kind.mlp.activation;
  const auto activated = [&] {
    const Tensor up = apply_linear(f, layer.modules.at("mlp.up_proj"), hidden);
    return name == "xielu" ? xielu(f, layer, up) : activation(f, name, up);
  };
  return apply_linear(f, layer.modules.at("mlp.down_proj"), activated());
}

}  // namespace membill
