#include "io/safetensors.h"

#include <string>

#include "errors.h"
#include "io/json_reader.h"
#include "io/model_source.h"
#include "support/catch.h"
#include "temporary_folder.h"

namespace membill::io_test {
namespace {

std::string with_length(const std::string& header, std::size_t data_bytes) {
  std::string result;
  for (int i = 0; i < 8; ++i) result += static_cast<char>((header.size() >> (8 * i)) & 0xFFU);
  return result + header + std::string(data_bytes, '\0');
}

std::string header_error(const std::string& header, std::size_t data_bytes) {
  const std::string file = with_length(header, data_bytes);
  return error_of([&] { return io::parse_safetensors(file, static_cast<std::int64_t>(file.size()), "m.safetensors"); });
}

constexpr const char* kConfig =
    R"({"model_type": "llama", "hidden_size": 8, "intermediate_size": 16, "num_hidden_layers": 2,
  "num_attention_heads": 2, "vocab_size": 10, "torch_dtype": "bfloat16", "tie_word_embeddings": false})";

ModelSpec tiny_llama() {
  return io::describe_model(io::load_config(io::parse_json(kConfig, "config.json"), "config.json", "tiny"));
}

std::string numbered(std::string name, std::size_t layer) {
  const std::size_t star = name.find('*');
  return star == std::string::npos ? name : name.replace(star, 1, std::to_string(layer));
}

// A checkpoint that holds just what the census says.
io::Checkpoint complete(const ModelSpec& spec) {
  io::Checkpoint checkpoint;
  checkpoint.file = "model.safetensors";
  for (const Section& section : spec.sections) {
    for (std::size_t layer = 0; layer < static_cast<std::size_t>(section.repeats()); ++layer) {
      const std::size_t kind = section.layer_kinds.empty() ? 0 : static_cast<std::size_t>(section.layer_kinds[layer]);
      for (const TensorSpec& tensor : section.kinds[kind].tensors) {
        if (!tensor.buffer) checkpoint.tensors.push_back({numbered(tensor.name, layer), "BF16", tensor.shape});
      }
    }
  }
  return checkpoint;
}

io::StoredTensor& tensor_named(io::Checkpoint& checkpoint, const std::string& name) {
  for (io::StoredTensor& tensor : checkpoint.tensors) {
    if (tensor.name == name) return tensor;
  }
  FAIL(name);
  return checkpoint.tensors.front();
}

}  // namespace

TEST_CASE("a safetensors header lists its tensors") {
  const std::string header =
      R"({"__metadata__": {"format": "pt"}, "a": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, "b": {"dtype": "BF16", "shape": [], "data_offsets": [24, 26]}})";
  const std::string file = with_length(header, 26);
  const auto tensors = io::parse_safetensors(file, static_cast<std::int64_t>(file.size()), "m.safetensors");
  REQUIRE(tensors.size() == 2);
  CHECK(tensors[0].name == "a");
  CHECK(tensors[0].dtype == "F32");
  CHECK(*tensors[0].shape == std::vector<std::int64_t>{2, 3});
  CHECK(tensors[1].shape->empty());
}

TEST_CASE("malformed safetensors files") {
  const auto tensor = [](const std::string& body) { return R"({"a": )" + body + "}"; };
  CHECK(header_error("[]", 0) == "m.safetensors: its header is no map of tensors");
  CHECK(header_error("{", 0) == "m.safetensors: line 1: the text ends where a key in double quotes is expected");
  CHECK(header_error(tensor("{}"), 0) == "m.safetensors: a: needs dtype, shape and data_offsets");
  CHECK(header_error(tensor("3"), 0) == "m.safetensors: a: needs dtype, shape and data_offsets");
  CHECK(header_error(tensor(R"({"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]})"), 4) ==
        "m.safetensors: a: needs dtype, shape and data_offsets");
  CHECK(header_error(tensor(R"({"dtype": "F32", "shape": [1], "data_offsets": [4, 0]})"), 4) ==
        "m.safetensors: a: data_offsets need a begin and an end");
  CHECK(header_error(tensor(R"({"dtype": "F32", "shape": [1], "data_offsets": [0, 8]})"), 4) ==
        "m.safetensors: a: its data leaves the file, which may be truncated");
  CHECK(header_error(tensor(R"({"dtype": "F32", "shape": [2], "data_offsets": [0, 4]})"), 4) ==
        "m.safetensors: a: its data is not as long as shape and dtype say");
  CHECK(header_error(tensor(R"({"dtype": "F32", "shape": [4611686018427387904, 4], "data_offsets": [0, 4]})"), 4) ==
        "m.safetensors: a: its shape exceeds 2^63 elements");
  CHECK(header_error(tensor(R"({"dtype": "NEW", "shape": [2], "data_offsets": [0, 4]})"), 4).empty());
  CHECK(error_of([] { return io::parse_safetensors("1234", 4, "m.safetensors"); }) ==
        "m.safetensors: is too short for a safetensors file");
  CHECK(error_of([] { return io::parse_safetensors(std::string("\x10\0\0\0\0\0\0\0{}", 10), 10, "m.safetensors"); }) ==
        "m.safetensors: is truncated: its header leaves the file");
  CHECK(error_of([] { return io::parse_safetensors("garbage garbage", 15, "m.safetensors"); }) ==
        "m.safetensors: is no safetensors file: its header would be larger than 64 MiB");
}

TEST_CASE("a checkpoint that agrees with the census gives no warning") {
  const ModelSpec spec = tiny_llama();
  CHECK(io::compare_with_census(complete(spec), spec).empty());
}

TEST_CASE("leading module names and stored buffers are tolerated") {
  const ModelSpec spec = tiny_llama();
  io::Checkpoint checkpoint = complete(spec);
  for (io::StoredTensor& tensor : checkpoint.tensors) tensor.name = "language_model." + tensor.name;
  checkpoint.tensors.push_back({"model.layers.0.self_attn.rotary_emb.inv_freq", "F32", std::vector<std::int64_t>{2}});
  CHECK(io::compare_with_census(checkpoint, spec).empty());
}

TEST_CASE("disagreements with the census are summarised") {
  const ModelSpec spec = tiny_llama();
  io::Checkpoint checkpoint = complete(spec);
  tensor_named(checkpoint, "lm_head.weight").shape = std::vector<std::int64_t>{11, 8};
  tensor_named(checkpoint, "model.layers.0.mlp.up_proj.weight").name = "model.layers.0.mlp.other.bias";
  tensor_named(checkpoint, "model.layers.0.mlp.other.bias").shape = std::vector<std::int64_t>{3};
  checkpoint.tensors.push_back({"model.layers.2.norm.weight", "BF16", std::vector<std::int64_t>{8}});
  checkpoint.warnings.emplace_back("model-00002-of-00002.safetensors is missing");
  const Lines expected{
      "model.safetensors: model-00002-of-00002.safetensors is missing",
      "model.safetensors: not in the checkpoint: 1 tensor of the census: layers.0.mlp.up_proj.weight",
      "model.safetensors: not in the census: 2 tensors of the checkpoint: model.layers.0.mlp.other.bias, "
      "model.layers.2.norm.weight",
      "model.safetensors: of another shape: 1 tensor: lm_head.weight is [11, 8], the census says [10, 8]"};
  CHECK(io::compare_with_census(checkpoint, spec) == expected);
}

TEST_CASE("a layer whose tensors are fused otherwise and add up is the same") {
  const ModelSpec spec = tiny_llama();
  io::Checkpoint checkpoint = complete(spec);
  for (const char* layer : {"model.layers.0.", "model.layers.1."}) {
    tensor_named(checkpoint, std::string(layer) + "mlp.up_proj.weight") = {
        std::string(layer) + "mlp.gate_up_proj.weight", "BF16", std::vector<std::int64_t>{32, 8}};
    std::erase_if(checkpoint.tensors, [&](const io::StoredTensor& tensor) {
      return tensor.name == std::string(layer) + "mlp.gate_proj.weight";
    });
  }
  CHECK(io::compare_with_census(checkpoint, spec).empty());
}

TEST_CASE("quantised storage of a weight stands for it") {
  ModelSpec spec = tiny_llama();
  spec.stored.method = "gptq";
  io::Checkpoint checkpoint = complete(spec);
  for (io::StoredTensor& tensor : checkpoint.tensors) {
    if (tensor.name.find("_proj.weight") == std::string::npos) continue;
    const std::string module = tensor.name.substr(0, tensor.name.size() - 7);
    tensor = {module + ".qweight", "I32", std::vector<std::int64_t>{1, 8}};
  }
  checkpoint.tensors.push_back({"model.layers.0.mlp.up_proj.scales", "F16", std::vector<std::int64_t>{1, 8}});
  checkpoint.tensors.push_back({"model.layers.0.mlp.up_proj.g_idx", "I32", std::vector<std::int64_t>{8}});
  CHECK(io::compare_with_census(checkpoint, spec).empty());
}

TEST_CASE("a tied head may be stored, another may not") {
  ModelSpec spec = tiny_llama();
  io::Checkpoint checkpoint = complete(spec);
  spec.sections.pop_back();
  CHECK(io::compare_with_census(checkpoint, spec).size() == 1);
  spec.tied_embeddings = true;
  CHECK(io::compare_with_census(checkpoint, spec).empty());
}

TEST_CASE("an index alone gives names and a total") {
  const TemporaryFolder folder;
  const ModelSpec spec = tiny_llama();
  std::string map;
  for (const io::StoredTensor& tensor : complete(spec).tensors)
    map += (map.empty() ? "\"" : ", \"") + tensor.name + R"(": "model-00001-of-00001.safetensors")";
  const std::string total = std::to_string(spec.parameters() * 2);
  folder.write("config.json", kConfig);
  folder.write("model.safetensors.index.json",
               R"({"metadata": {"total_size": )" + total + R"(}, "weight_map": {)" + map + "}}");
  CHECK(io::describe_model(io::load_model(folder.path(), {})).warnings.empty());
  folder.write("model.safetensors.index.json", R"({"metadata": {"total_size": 4000}, "weight_map": {)" + map + "}}");
  CHECK(io::describe_model(io::load_model(folder.path(), {})).warnings ==
        Lines{"model.safetensors.index.json: total_size means 2000 parameters of bfloat16, the census has " +
              std::to_string(spec.parameters())});
}

TEST_CASE("headers of the files beside a config are read") {
  const TemporaryFolder folder;
  folder.write("config.json", kConfig);
  folder.write("model.safetensors",
               with_length(R"({"model.norm.weight": {"dtype": "BF16", "shape": [8], "data_offsets": [0, 16]}})", 16));
  const Lines warnings = io::describe_model(io::load_model(folder.path(), {})).warnings;
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0].starts_with("model.safetensors: not in the checkpoint: 20 tensors of the census: "));
  CHECK(warnings[0].ends_with(", ..."));
  folder.write("model.safetensors", "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n");
  CHECK(io::describe_model(io::load_model(folder.path(), {})).warnings.front() ==
        "model.safetensors: model.safetensors is a Git LFS pointer, not the weights");
  folder.write("model.safetensors", "broken");
  CHECK(error_of([&] { return io::describe_model(io::load_model(folder.path(), {})); }) ==
        "model.safetensors: is too short for a safetensors file");
}

TEST_CASE("malformed indexes") {
  const TemporaryFolder folder;
  const auto index_error = [&](const std::string& text) {
    folder.write("model.safetensors.index.json", text);
    return error_of([&] { return io::read_checkpoint(folder.path()); });
  };
  const std::string name = "model.safetensors.index.json: ";
  CHECK(index_error("[]") == name + "weight_map: needs a map of tensors to files");
  CHECK(index_error("{}") == name + "weight_map: needs a map of tensors to files");
  CHECK(index_error(R"({"weight_map": {"a": 1}})") ==
        name + "weight_map.a: needs the name of a file in the same folder");
  CHECK(index_error(R"({"weight_map": {"a": "../x.safetensors"}})") ==
        name + "weight_map.a: needs the name of a file in the same folder");
  CHECK_FALSE(io::read_checkpoint(folder.path("none")).has_value());
}

}  // namespace membill::io_test
