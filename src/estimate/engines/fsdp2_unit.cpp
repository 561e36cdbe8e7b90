#include "estimate/engines/fsdp2_unit.h"

#include <algorithm>

#include "membill/catalog.h"

namespace membill {

void Fsdp2Builder::add(Fsdp2Unit& unit, Module& module) {
  const DType base = unquantized_dtype(plan_), adapter = adapter_dtype(plan_);
  if (module.quantized != nullptr)
    add_codes(unit, module);
  else if (module.weight.value.defined())
    add(unit, module.weight, base);
  if (module.bias != nullptr) add(unit, *module.bias, base);
  if (module.adapter != nullptr) {
    add(unit, module.adapter->down, adapter);
    add(unit, module.adapter->up, adapter);
    if (module.adapter->magnitude != nullptr) add(unit, *module.adapter->magnitude, adapter);
  }
  if (module.trained_rows != nullptr) add(unit, module.trained_rows->delta, adapter);
  if (module.original != nullptr) add(unit, *module.original, base);
  if (module.original_bias != nullptr) add(unit, *module.original_bias, base);
}

// bnb_4bit_quant_storage: packed codes seen as a column of a floating type are cut like any tensor.
void Fsdp2Builder::add_codes(Fsdp2Unit& unit, Module& module) {
  const DType type = code_storage(plan_);
  if (type == DType::uint8) return;
  Tensor& packed = module.quantized->codes();
  auto codes = std::make_unique<Parameter>();
  codes->leading = r_.symbols().ceil_div(packed.shape().elements(), Size(bytes_per_element(type)));
  codes->value = r_.placeholder({codes->leading, Size(1)}, type);
  codes->unit = module.weight.unit;
  codes->label = module.weight.label;
  codes->item = r_.writer().item("weights.base");
  packed.drop();
  Parameter& whole = *codes;
  add(unit, whole, type, std::move(codes));
}

// Every tensor is cut along its first axis, padded to the same rows on every rank; states and gradients follow the rank's own rows.
void Fsdp2Builder::add(Fsdp2Unit& unit, Parameter& whole, DType stored, std::unique_ptr<Parameter> codes) {
  ShardedTensor tensor;
  tensor.whole = &whole;
  tensor.codes = std::move(codes);
  const std::int64_t leading = r_.symbols().evaluate(whole.leading),
                     elements = r_.symbols().evaluate(whole.value.shape().elements());
  tensor.rows = r_.symbols().ceil_div(whole.leading, Size(shards_.ranks));
  tensor.row = whole.value.shape().rows == whole.leading ? whole.value.shape().width : Size(elements / leading);
  const std::int64_t rows = r_.symbols().evaluate(tensor.rows),
                     own = std::clamp<std::int64_t>(leading - shards_.rank * rows, 0, rows);
  tensor.shard = std::make_unique<Parameter>();
  Parameter& shard = *tensor.shard;
  const Shape padded{tensor.rows, tensor.row};
  const DType type = stored_dtype(plan_, stored, whole.trainable);
  const Tensor made = shards_.on_host ? r_.placeholder(padded, type) : r_.empty(padded, type, "shard", whole.item);
  shard.value = own == rows ? made : r_.view(made, {Size(own), tensor.row});
  shard.unit = whole.unit;
  shard.trainable = whole.trainable;
  shard.label = whole.label;
  unit.tensors.push_back(std::move(tensor));
}

}  // namespace membill
