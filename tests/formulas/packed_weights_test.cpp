// Bytes of packed linears, counted in the buffers that the libraries themselves make: gptqmodel 7.7.0 (TorchLinear, AwqGEMMTritonLinear),
// hqq 0.2.8 (axis 1); compressed-tensors, fp8 and nvfp4 by their documented layouts. gpt-oss-20b: total_size of its published
// model.safetensors.index.json.
#include "blocks/packed_storage.h"
#include "membill/catalog.h"
#include "support/catch.h"

namespace membill {
namespace {

struct Row {
  const char* format;
  std::int64_t group_size, in, out, bytes;
};

std::int64_t bytes_of(const Row& row, bool zero_points = false) {
  TraceWriter writer;
  SymbolTable symbols;
  Recorder recorder(writer, symbols);
  Quantizer quantizer;
  quantizer.format = find_weight_format(row.format)->format;
  if (row.group_size != 0) quantizer.layout.group_size = row.group_size;
  quantizer.layout.zero_points = zero_points;
  const auto weight = store_quantized(recorder, quantizer, {Size(1), Size(row.out), Size(row.in)});
  std::int64_t sum = 0;
  for (const Tensor& part : weight->parts)
    sum += symbols.evaluate(part.shape().elements()) * bytes_per_element(part.dtype());
  return sum;
}

TEST_CASE("packed linears hold what their libraries allocate") {
  const Row row = GENERATE(values<Row>({
      {"gptq-int2", 32, 416, 352, 48568 + 64},
      {"gptq-int2", 128, 1024, 2048, 565248 + 64},
      {"gptq-int2", -1, 1408, 512, 187008 + 64},
      {"gptq-int3", 32, 416, 352, 67444 + 144},
      {"gptq-int3", 128, 512, 1408, 285760 + 144},
      {"gptq-int3", -1, 1024, 2048, 795392 + 144},
      {"gptq-int4", 32, 1408, 512, 422400 + 32},
      {"gptq-int4", 128, 1024, 2048, 1093632 + 32},
      {"gptq-int4", -1, 416, 352, 75760 + 32},
      {"gptq-int8", 32, 416, 352, 161824 + 16},
      {"gptq-int8", 128, 512, 1408, 739840 + 16},
      {"gptq-int8", -1, 1024, 2048, 2107392 + 16},
      {"awq-int4", 32, 416, 352, 84656},
      {"awq-int4", 128, 1024, 2048, 1089536},
      {"awq-int4", -1, 512, 1408, 363968},
      {"hqq-int2", 64, 448, 352, 49280},
      {"hqq-int2", 128, 512, 1408, 202752},
      {"hqq-int3", 64, 512, 1408, 333568},
      {"hqq-int3", 128, 448, 352, 68416},
      {"hqq-int4", 64, 512, 1408, 720896 / 2 + 4 * 11264},
      {"fp8", 0, 256, 256, 65536 + 16},
      {"fp8", 0, 200, 300, 60000 + 4 * 2 * 3},
      {"fp8", -1, 200, 300, 60000 + 4},
      {"fp8-rows", 0, 200, 300, 60000 + 4 * 300},
      {"int8-rows", 0, 200, 300, 60000 + 4 * 300},
      {"packed-int4", 0, 256, 300, 38400 + 2 * 600 + 16},
      {"nvfp4", 0, 256, 300, 38400 + 4800 + 8},
      {"mxfp4", 0, 256, 300, 38400 + 2400},
  }));
  INFO(row.format << " " << row.group_size << " " << row.in << " " << row.out);
  CHECK(bytes_of(row) == row.bytes);
}

TEST_CASE("zero points of compressed-tensors are packed along the rows of the weight") {
  CHECK(bytes_of({"packed-int4", 128, 256, 300, 0}, true) == 38400 + 2 * 600 + 16 + 4 * 38 * 2);
}

}  // namespace
}  // namespace membill
