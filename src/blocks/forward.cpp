#include "blocks/forward.h"

#include "base/first_rank.h"
#include "blocks/generations.h"

#include <algorithm>
#include <stdexcept>

namespace membill {
namespace {

Size dimension(SymbolTable& symbols, std::string_view name, std::string_view meaning, std::int64_t value) {
  return value == 0 ? Size() : symbols.define_next(name, meaning, value);
}

LinearDims linear_dims(SymbolTable& symbols, const LinearAttentionShape& shape) {
  LinearDims dims;
  dims.key_heads = dimension(symbols, "hk", "key heads of the linear attention", shape.key_heads);
  dims.value_heads = dimension(symbols, "hv", "value heads of the linear attention", shape.value_heads);
  dims.key_width = dimension(symbols, "dk", "width of its key heads", shape.key_head_dim);
  dims.value_width = dimension(symbols, "dvl", "width of its value heads", shape.value_head_dim);
  dims.kernel = dimension(symbols, "kc", "tokens that a convolution sees", shape.kernel);
  return dims;
}

StateSpaceDims space_dims(SymbolTable& symbols, const StateSpaceShape& shape) {
  StateSpaceDims dims;
  dims.heads = dimension(symbols, "hm", "heads of the state space", shape.heads);
  dims.width = dimension(symbols, "dm", "width of its heads", shape.head_dim);
  dims.groups = dimension(symbols, "g", "groups of its heads", shape.groups);
  dims.state = dimension(symbols, "n", "width of its state", shape.state);
  dims.kernel = dimension(symbols, "kc", "tokens that a convolution sees", shape.kernel);
  return dims;
}

KindDims kind_dims(SymbolTable& symbols, const LayerKind& kind) {
  const AttentionShape& attention = kind.attention;
  KindDims dims;
  dims.a = dimension(symbols, "a", "query heads", attention.heads);
  dims.k = dimension(symbols, "k", "key/value heads", attention.kv_heads);
  dims.d = dimension(symbols, "d", "head dimension", attention.head_dim);
  dims.v = attention.value_head_dim == attention.head_dim || attention.value_head_dim == 0
               ? dims.d
               : dimension(symbols, "dv", "head dimension of the values", attention.value_head_dim);
  dims.rotary = attention.rotary_dim == attention.head_dim
                    ? dims.d
                    : dimension(symbols, "dr", "rotated part of a head", attention.rotary_dim);
  dims.f = dimension(symbols, "f", "MLP width", kind.mlp.intermediate);
  if (kind.moe) {
    dims.experts = dimension(symbols, "E", "experts", kind.moe->experts);
    dims.top = dimension(symbols, "K", "experts a token", kind.moe->experts_per_token);
    dims.expert_width = dimension(symbols, "fe", "width of an expert", kind.moe->intermediate);
    dims.shared_width = dimension(symbols, "fs", "width of the shared experts", kind.moe->shared_intermediate);
  }
  if (kind.linear_attention) dims.linear = linear_dims(symbols, *kind.linear_attention);
  if (kind.state_space) dims.space = space_dims(symbols, *kind.state_space);
  return dims;
}

}  // namespace

Dims define_dims(SymbolTable& symbols, const ModelSpec& model, const TrainingPlan& plan) {
  Dims dims;
  const bool pairs = has_pairs(plan.stage);
  dims.samples = symbols.define("b", "micro-batch", plan.batch) * Size(pairs ? 2 : 1);
  const bool prompt = plan.method == Method::prompt || plan.method == Method::ptuning;
  const Size text = symbols.define("s", "sequence length", plan.seq);
  if (prompt) dims.t = symbols.define("t", "virtual tokens", plan.adapter.virtual_tokens);
  if (plan.method == Method::prefix) dims.past = symbols.define("t", "virtual tokens", plan.adapter.virtual_tokens);
  dims.s = text + dims.t;
  if (const std::int64_t ranks = plan.parallel.cp * plan.parallel.ulysses; ranks > 1)
    dims.s = symbols.ceil_div(dims.s, Size(ranks));
  dims.N = symbols.alias("N",
                         pairs    ? "tokens of a micro-batch, chosen and rejected, 2·b·s"
                         : prompt ? "tokens of a micro-batch, virtual ones too, b·(s + t)"
                                  : "tokens of a micro-batch, b·s",
                         dims.samples * dims.s);
  const bool joined = joins_rows(plan);
  dims.b = joined ? Size(1) : dims.samples;
  if (joined) dims.s = dims.N;
  dims.text = prompt ? dims.b * text : dims.N;
  dims.h = symbols.define_next("h", "hidden size", model.hidden);
  dims.V = symbols.define_next("V", "vocabulary", model.vocab);
  dims.L = symbols.define_next("L", "layers", model.layers);
  const bool ranked = plan.method == Method::lora || plan.method == Method::dora || plan.method == Method::adalora ||
                      plan.method == Method::vera || plan.method == Method::loha || plan.method == Method::lokr;
  if (ranked) dims.r = symbols.define("r", "adapter rank", first_rank(plan.adapter, plan.method));
  for (const Section& section : model.sections) {
    auto& kinds = dims.kinds.emplace_back();
    for (const LayerKind& kind : section.kinds) kinds.push_back(kind_dims(symbols, kind));
  }
  return dims;
}

bool Forward::unpads() const {
  return plan.attention == AttentionKernel::flash && plan.attention_mask &&
         r.autocast().value_or(stream) != DType::fp32;
}

bool Forward::joins_documents() const {
  if (!joins_rows(plan) || plan.attention == AttentionKernel::flash) return false;
  return plan.packing || r.symbols().at_least(dims.samples, 2);
}

namespace {

Tensor in_fp32(Recorder& r, const Tensor& state, const char* label) {
  return state.dtype() == DType::fp32 ? state : r.empty(state.shape(), DType::fp32, label);
}

}  // namespace

void HiddenStates::convert(Recorder& r, const Tensor& last) {
  TraceWriter& writer = r.writer();
  std::vector<State> copies;
  for (const State& entry : states_) {
    writer.visit(entry.unit, true);
    copies.push_back({entry.unit, in_fp32(r, entry.state, "hidden states in fp32")});
  }
  writer.visit(TraceWriter::kNoUnit, true);
  last_ = in_fp32(r, last, "final hidden states in fp32");
  release_states(r);
  states_ = std::move(copies);
}

void HiddenStates::release_states(Recorder& r) {
  for (State& entry : states_) {
    r.writer().visit(entry.unit, true);
    entry.state.drop();
  }
  r.writer().visit(TraceWriter::kNoUnit, true);
  states_.clear();
}

void HiddenStates::release(Recorder& r) {
  release_states(r);
  last_.drop();
}

Module& Modules::add(std::string name) {
  modules_.push_back(std::make_unique<Module>());
  Module& made = *modules_.back();
  made.name = std::move(name);
  by_name_.emplace(made.name, &made);
  return made;
}

Module* Modules::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second;
}

Module& Modules::at(std::string_view name) const {
  if (Module* module = find(name)) return *module;
  throw std::logic_error("the census has no module " + std::string(name));
}

Modules& Modules::make_part(const std::string& section) {
  if (Modules* part = find_part(section)) return *part;
  return *parts_.emplace_back(section, std::make_unique<Modules>()).second;
}

Modules* Modules::find_part(std::string_view section) const {
  for (const auto& [name, part] : parts_)
    if (name == section) return part.get();
  return nullptr;
}

Items define_items(TraceWriter& writer) {
  const ItemId backward = writer.item("activations.gradients"), loss_backward = writer.item("loss.gradient");
  Items items;
  items.embedding = {writer.item("activations.embedding"), backward};
  items.vision = {writer.item("activations.vision"), backward};
  items.block = {writer.item("activations.block"), backward};
  items.boundary = {writer.item("activations.boundaries"), backward};
  items.loss_logits = {writer.item("loss.logits"), loss_backward};
  items.loss_upcast = {writer.item("loss.upcast"), loss_backward};
  items.loss_probabilities = {writer.item("loss.probabilities"), loss_backward};
  items.head = {writer.item("activations.final"), backward};
  items.gradients = writer.item("gradients");
  return items;
}

}  // namespace membill
