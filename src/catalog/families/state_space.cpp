#include "catalog/families/state_space.h"

#include <algorithm>

namespace membill::census {

StateSpaceShape read_mamba2(const ConfigReader& config, std::int64_t inner) {
  StateSpaceShape shape;
  shape.heads = config.listed("mamba_n_heads");
  const Value* width = config.find("mamba_d_head");
  const bool given = width != nullptr && !width->is_string();
  shape.head_dim = given ? config.size("mamba_d_head") : std::max<std::int64_t>(inner / shape.heads, 1);
  if (checked_mul(shape.heads, shape.head_dim) != inner)
    config.problem("mamba_n_heads", std::to_string(shape.heads) + " heads of width " + std::to_string(shape.head_dim) +
                                        " do not make an inner width of " + std::to_string(inner));
  shape.groups = config.size("mamba_n_groups");
  if (shape.heads % shape.groups != 0)
    config.problem("mamba_n_groups",
                   std::to_string(shape.groups) + " groups do not divide " + std::to_string(shape.heads) + " heads");
  shape.state = config.size("mamba_d_state");
  shape.kernel = config.size("mamba_d_conv");
  shape.chunk = config.size("mamba_chunk_size");
  return shape;
}

void mamba2_mixer(TensorList& list, std::string_view module, const StateSpaceShape& shape, std::int64_t hidden,
                  const Mamba2Options& options) {
  const std::string start = std::string(module) + ".";
  const std::int64_t inner = checked_mul(shape.heads, shape.head_dim);
  const std::int64_t channels = checked_add(inner, checked_mul(2, checked_mul(shape.groups, shape.state)));
  for (const char* name : {"dt_bias", "A_log", "D"}) list.parameter(start + name, {shape.heads}, TensorRole::other);
  list.parameter(start + "conv1d.weight", {channels, 1, shape.kernel}, TensorRole::other);
  if (options.convolution_bias) list.parameter(start + "conv1d.bias", {channels}, TensorRole::other);
  list.linear(start + "in_proj", hidden, checked_add(checked_add(inner, channels), shape.heads), options.input_bias,
              TensorRole::other, SplitAxis::none);
  if (options.norm) list.norm(start + "norm", inner);
  list.linear(start + "out_proj", inner, hidden, options.output_bias, TensorRole::other, SplitAxis::none);
}

std::vector<std::string> layer_words(const ConfigReader& config, std::int64_t layers) {
  const char* const key = config.holds("layers_block_type") ? "layers_block_type" : "layer_types";
  std::vector<std::string> words = config.words(key);
  if (!words.empty() && static_cast<std::int64_t>(words.size()) != layers)
    config.problem(key,
                   "names " + std::to_string(words.size()) + " layers, but the model has " + std::to_string(layers));
  words.resize(static_cast<std::size_t>(layers), "linear_attention");
  return words;
}

}  // namespace membill::census
