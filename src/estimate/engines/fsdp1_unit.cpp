#include "estimate/engines/fsdp1_unit.h"

#include <algorithm>

#include "membill/catalog.h"

namespace membill {

bool Fsdp1Unit::trains() const {
  return std::any_of(members.begin(), members.end(), [](const FlatMember& member) { return member.whole->trainable; });
}

void Fsdp1Builder::add(Fsdp1Unit& unit, Parameter& parameter, DType stored) {
  FlatMember member;
  member.whole = &parameter;
  place(unit, std::move(member), stored_dtype(plan_, stored, parameter.trainable));
}

// bnb_4bit_quant_storage: packed codes seen as a column of a floating type are flattened like any tensor.
void Fsdp1Builder::add_codes(Fsdp1Unit& unit, Module& module) {
  const DType type = code_storage(plan_);
  Tensor& packed = module.quantized->codes();
  FlatMember member;
  member.codes = std::make_unique<Parameter>();
  member.codes->leading = r_.symbols().ceil_div(packed.shape().elements(), Size(bytes_per_element(type)));
  member.codes->value = r_.placeholder({member.codes->leading, Size(1)}, type);
  member.codes->unit = module.weight.unit;
  member.codes->item = r_.writer().item("weights.base");
  member.whole = member.codes.get();
  packed.drop();
  place(unit, std::move(member), type);
}

void Fsdp1Builder::place(Fsdp1Unit& unit, FlatMember member, DType stored) {
  constexpr std::int64_t kAlignment = 16;
  if (unit.is_empty() || member.whole->trainable) {
    unit.stored = stored;
    unit.gathered = gathered_dtype(plan_).value_or(stored);
    unit.item = member.whole->item;
  }
  if (flat_.aligned) unit.elements = round_up(unit.elements, kAlignment / bytes_per_element(unit.gathered));
  member.begin = unit.elements;
  member.elements = r_.symbols().evaluate(member.whole->value.shape().elements());
  unit.elements += member.elements;
  unit.members.push_back(std::move(member));
}

// With original parameters the optimizer sees the parts of them in the shard, else the shard.
std::int64_t Fsdp1Builder::own_trained_elements(const Fsdp1Unit& unit) const {
  if (!flat_.aligned) return unit.shard;
  std::int64_t own = 0;
  for (const FlatMember& member : unit.members) {
    if (!member.whole->trainable) continue;
    const std::int64_t begin = std::max(member.begin, flat_.rank * unit.shard),
                       end = std::min(member.begin + member.elements, (flat_.rank + 1) * unit.shard);
    own += std::max<std::int64_t>(0, end - begin);
  }
  return own;
}

namespace {

// Tensors are views of the flat parameter: where one of them trains, autograd makes gradients for all.
void let_all_need_gradients(Fsdp1Unit& unit) {
  for (FlatMember& member : unit.members) {
    if (member.codes != nullptr) continue;
    member.whole->value.body().requires_grad = true;
    member.whole->value.body().leaf = member.whole;
  }
}

}  // namespace

void Fsdp1Builder::close(Fsdp1Unit& unit) {
  if (unit.trains()) let_all_need_gradients(unit);
  unit.shard = ceil_div(unit.elements, flat_.ranks);
  if (flat_.aligned) unit.elements = unit.shard * flat_.ranks;
  const Shape shape{Size(unit.shard), Size(1)};
  unit.kept =
      flat_.on_host ? r_.placeholder(shape, unit.stored) : r_.empty(shape, unit.stored, "flat shard", unit.item);
  unit.own.unit = unit.members.front().whole->unit;
  unit.own.trainable = unit.trains();
  unit.own.value = r_.placeholder({Size(own_trained_elements(unit)), Size(1)}, unit.stored);
}

}  // namespace membill
