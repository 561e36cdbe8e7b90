// Writes the census of one layer or one part of a model, module by module, in the order in which torch registers them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "membill/model_spec.h"

namespace membill::census {

class TensorList {
 public:
  // `prefix` goes before every module name: "model.layers.*.".
  explicit TensorList(std::string_view prefix = {}) : prefix_(prefix) {}

  // torch.nn.Linear: weight [out, in] and, when `bias`, bias [out].
  void linear(std::string_view module, std::int64_t in, std::int64_t out, bool bias, TensorRole role, SplitAxis split);
  // GPT-2's transposed linear: weight [in, out] and bias [out].
  void conv1d(std::string_view module, std::int64_t in, std::int64_t out, TensorRole role, SplitAxis split);
  // torch.nn.Embedding: weight [rows, width]. Word tables are split over the vocabulary, position tables not.
  void embedding(std::string_view module, std::int64_t rows, std::int64_t width,
                 TensorRole role = TensorRole::embedding);
  // The bias of an output head whose weight may be tied to the embedding.
  void head_bias(std::string_view module, std::int64_t vocab);
  // A norm: weight [width] and, when `bias`, bias [width].
  void norm(std::string_view module, std::int64_t width, bool bias = false);
  // A norm with a weight for each head: weight [heads, width].
  void norm_of_heads(std::string_view module, std::int64_t heads, std::int64_t width);
  // A list of norms, one per head: <modules>.0.weight [width] ...
  void separate_head_norms(std::string_view modules, std::int64_t heads, std::int64_t width);
  // A bare parameter; `own_dtype`: its class makes it in this type.
  void parameter(std::string_view name, std::vector<std::int64_t> shape, TensorRole role,
                 SplitAxis split = SplitAxis::none, std::optional<DType> own_dtype = {});
  // A bare parameter whose first axis counts experts.
  void experts(std::string_view name, std::vector<std::int64_t> shape, SplitAxis split);
  void buffer(std::string_view name, std::vector<std::int64_t> shape, std::optional<DType> type = DType::fp32);
  // The two tables of Hugging Face's rotary embedding, under `module`; names may carry a layer type's prefix.
  void rotary_buffers(std::string_view module, std::int64_t rotary_dim, std::string_view name_prefix = {});

  [[nodiscard]] std::vector<TensorSpec> take() { return std::move(tensors_); }
  [[nodiscard]] bool empty() const { return tensors_.empty(); }

 private:
  TensorSpec& add(std::string_view name, std::vector<std::int64_t> shape, TensorRole role, ModuleKind module,
                  SplitAxis split);
  void bias_of(std::string_view module, std::int64_t width, TensorRole role, ModuleKind kind, SplitAxis split);

  std::string prefix_;
  std::vector<TensorSpec> tensors_;
};

}  // namespace membill::census
