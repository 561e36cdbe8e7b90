#include "blocks/packed_storage.h"

#include "blocks/quantized.h"
#include "blocks/torchtune_nf4.h"
#include "membill/catalog.h"

namespace membill {
namespace {

constexpr std::int64_t kNestedBlock = 256;  // scales a second-level scale
constexpr std::int64_t kWord = 32;          // bits of an int32

Shape flat_shape(const Size& elements) { return {elements, Size(1)}; }

// Adds the parts of one storage to its items.
class Parts {
 public:
  Parts(Recorder& r, const Quantizer& quantizer, const PackedShape& shape, QuantizedWeight& weight)
      : r_(r), row_(weight_format(quantizer.format)), layout_(quantizer.layout), shape_(shape), weight_(weight) {}

  // GPTQ and AWQ: codes and zero points in words along inputs or outputs, scales and zero points of groups of inputs.
  void grouped(bool group_index) {
    const std::int64_t bits = row_.bits, in_a_word = kWord / bits;
    const Size &in = shape_.in, &out = shape_.out, groups = groups_of(in);
    const auto words = [&](const Size& codes) {
      return kWord % bits == 0 ? up(codes, in_a_word) : up(codes, kWord) * Size(bits);
    };
    codes(shape_.count * (group_index ? words(in) * out : in * words(out)), DType::int32);
    scales(shape_.count * groups * words(out), DType::int32, "zero points");
    scales(shape_.count * groups * out, DType::fp16, "scales");
    if (!group_index) return;
    scales(shape_.count * in, DType::int32, "group of each input");
    constexpr std::int64_t kUneven = 36;  // three rows of twelve
    scales(Size(kWord % bits == 0 ? in_a_word : kUneven), DType::int32, "shifts of the codes in a word");
  }

  // hqq core/bitpack.py: whole bytes, or ten codes of three bits in an int32.
  void half_quadratic(DType type) {
    constexpr std::int64_t kThreeBits = 3, kInAWord = 10;
    const Size group = width_of_group(), groups = up(shape_.elements(), group);
    if (row_.bits == kThreeBits)
      codes(up(groups, kInAWord) * group, DType::int32);
    else
      codes(up(shape_.elements() * Size(row_.bits), 8), DType::uint8);
    scales(groups, type, "scales");
    scales(groups, type, "zero points");
  }

  void fp8_blocks() {
    codes(shape_.elements(), DType::fp8);
    const std::int64_t side = layout_.group_size.value_or(row_.group);
    const Size blocks = side < 1 ? Size(1) : up(shape_.out, side) * up(shape_.in, side);
    scales(shape_.count * blocks, DType::fp32, "scales");
  }

  void rows() {
    codes(shape_.elements(), row_.format == WeightFormat::fp8_rows ? DType::fp8 : DType::int8);
    scales(shape_.count * shape_.out, DType::fp32, "row scales");
  }

  // compressed_tensors compressors/pack_quantized: rows of codes padded to words; the shape as two int64.
  void compressed_groups(DType type) {
    const std::int64_t in_a_word = kWord / row_.bits;
    const Size groups = groups_of(shape_.in);
    codes(shape_.count * shape_.out * up(shape_.in, in_a_word), DType::int32);
    scales(shape_.count * shape_.out * groups, type, "scales");
    if (layout_.zero_points.value_or(false))
      scales(shape_.count * up(shape_.out, in_a_word) * groups, DType::int32, "zero points");
    scales(shape_.count * Size(2), DType::int64, "shape of the weight");
  }

  void micro_blocks() {
    codes(shape_.count * shape_.out * up(shape_.in, 2), DType::uint8);
    scales(shape_.count * shape_.out * groups_of(shape_.in), DType::uint8, "scales");
    if (row_.format == WeightFormat::nvfp4) scales(shape_.count * Size(2), DType::fp32, "scales of the matrix");
  }

  // functional.py quantize_4bit, with what it makes for a moment: the codes, the values of the codes, and the scales.
  void bitsandbytes(Quantizer& quantizer) {
    const ItemId other = scales_item();
    const Size blocks = up(shape_.elements(), row_.group);
    const Tensor weight = r_.empty(matrices(), quantizer.from, "weight before it is quantised", other);
    Tensor own_scales;
    if (quantizer.double_quant)
      own_scales = r_.empty(flat_shape(blocks), DType::fp32, "scales", other);
    else
      scales(blocks, DType::fp32, "scales");
    codes(up(shape_.elements(), 2), DType::uint8);
    scales(Size(16), DType::fp32, "table of 16 values");
    {
      Tensor absolute = r_.empty(flat_shape(Size(16)), DType::fp32, "absolute values of the table", other);
      const Tensor largest = r_.empty(flat_shape(Size(1)), DType::fp32, "largest value of the table", other);
      absolute.drop();
    }
    if (quantizer.double_quant) quantize_scales(quantizer, blocks);
  }

  // nn/modules.py Int8Params._quantize.
  void llm_int8() {
    const Tensor weight = r_.empty(matrices(), DType::fp16, "weight before it is quantised", scales_item());
    scales(shape_.count * shape_.out, DType::fp32, "row scales");
    codes(shape_.elements(), DType::int8);
  }

  void torchao(DType from) {
    store_torchao_nf4(r_, matrices(), from, [this](const Size& count, DType type, const char* label, ItemId item) {
      add(count, type, label, item);
    });
  }

 private:
  void quantize_scales(Quantizer& quantizer, const Size& blocks) {
    scales(Size(1), DType::fp32, "offset");
    const Tensor shifted = r_.empty(flat_shape(blocks), DType::fp32, "scales less their mean", scales_item());
    if (!quantizer.scale_values.defined())
      quantizer.scale_values = r_.empty(flat_shape(Size(256)), DType::fp32, "table of 256 values", scales_item());
    scales(up(blocks, kNestedBlock), DType::fp32, "scales of scales");
    scales(blocks, DType::uint8, "quantised scales");
    scales(Size(256), DType::fp32, "table of 256 values");
  }

  [[nodiscard]] Shape matrices() const { return {shape_.count * shape_.out, shape_.in}; }
  [[nodiscard]] Size up(const Size& count, const Size& divisor) { return r_.symbols().ceil_div(count, divisor); }
  [[nodiscard]] Size width_of_group() const {
    const std::int64_t size = layout_.group_size.value_or(row_.group);
    return size < 1 ? shape_.in : Size(size);
  }
  [[nodiscard]] Size groups_of(const Size& in) { return up(in, width_of_group()); }
  [[nodiscard]] ItemId scales_item() { return r_.writer().item("weights.quantization"); }

  void codes(const Size& count, DType type) { add(count, type, "codes of a weight", r_.writer().item("weights.base")); }
  void scales(const Size& count, DType type, const char* label) { add(count, type, label, scales_item()); }
  void add(const Size& count, DType type, const char* label, ItemId item) {
    if (item == r_.writer().item("weights.base")) weight_.codes_at = weight_.parts.size();
    weight_.parts.push_back(r_.empty(flat_shape(count), type, label, item));
  }

  Recorder& r_;
  const WeightFormatRow& row_;
  const QuantizationPlan& layout_;
  const PackedShape& shape_;
  QuantizedWeight& weight_;
};

}  // namespace

std::unique_ptr<QuantizedWeight> store_quantized(Recorder& r, Quantizer& quantizer, const PackedShape& shape) {
  auto weight = std::make_unique<QuantizedWeight>();
  weight->format = quantizer.format;
  if (!is_4bit(quantizer.format)) weight->compute = quantizer.from;
  Parts parts(r, quantizer, shape, *weight);
  switch (weight_format(quantizer.format).packing) {
    case Packing::none: break;
    case Packing::bitsandbytes:
      weight->double_quant = quantizer.double_quant;
      weight->torchao = quantizer.torchao;
      quantizer.torchao ? parts.torchao(quantizer.from) : parts.bitsandbytes(quantizer);
      break;
    case Packing::llm_int8: parts.llm_int8(); break;
    case Packing::gptq: parts.grouped(true); break;
    case Packing::awq: parts.grouped(false); break;
    case Packing::half_quadratic: parts.half_quadratic(quantizer.from); break;
    case Packing::fp8_blocks: parts.fp8_blocks(); break;
    case Packing::rows: parts.rows(); break;
    case Packing::compressed_groups: parts.compressed_groups(quantizer.from); break;
    case Packing::micro_blocks: parts.micro_blocks(); break;
  }
  return weight;
}

}  // namespace membill
