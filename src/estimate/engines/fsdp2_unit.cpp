#include "estimate/engines/fsdp2_unit.h"

#include <algorithm>

#include "blocks/torchtune_nf4.h"
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

// bnb_4bit_quant_storage: packed codes seen as a column of a floating type are cut like any tensor. Of torchao's NF4 codes, scales and
// scales of scales are, each in its type (dtypes/nf4tensor.py fsdp_pre_all_gather). hqq's codes are integers, a row a group.
void Fsdp2Builder::add_codes(Fsdp2Unit& unit, Module& module) {
  QuantizedWeight& weight = *module.quantized;
  if (weight.torchao) {
    for (std::size_t i = 0; i < kCutNf4Parts; ++i)
      add_part(unit, module, weight.parts[i], weight.parts[i].dtype(),
               i == weight.codes_at ? "weights.base" : "weights.quantization");
    return;
  }
  if (codes_are_integers(plan_)) {
    const std::int64_t group = plan_.quantization.group_size.value_or(weight_format(plan_.weights).group);
    return add_part(unit, module, weight.codes(), weight.codes().dtype(), "weights.base",
                    std::max<std::int64_t>(group, 1));
  }
  const DType type = code_storage(plan_);
  if (type != DType::uint8) add_part(unit, module, weight.codes(), type, "weights.base");
}

void Fsdp2Builder::add_part(Fsdp2Unit& unit, const Module& module, Tensor& packed, DType type, const char* item,
                            std::int64_t width) {
  auto part = std::make_unique<Parameter>();
  const Size bytes = packed.shape().elements() * Size(bytes_per_element(packed.dtype()));
  part->leading = r_.symbols().ceil_div(bytes, Size(bytes_per_element(type) * width));
  part->value = r_.placeholder({part->leading, Size(width)}, type);
  part->unit = module.weight.unit;
  part->label = module.weight.label;
  part->item = r_.writer().item(item);
  packed.drop();
  Parameter& whole = *part;
  add(unit, whole, type, std::move(part));
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
