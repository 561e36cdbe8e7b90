// What images add to a forward: the vision tower over their pixels, the projector, and the features among the embeddings.
#pragma once

#include "blocks/causal_lm.h"

namespace membill {

// How large an image is when the tower sees it: what a model's processor makes of its pixels.
struct ImageGrid {
  std::int64_t rows = 0, columns = 0;  // patches
  std::int64_t tokens = 0;             // of the language model's sequence
  [[nodiscard]] std::int64_t patches() const { return rows * columns; }
};

// One image of the plan. Where images come as they are and the plan says no size, a square of the largest size that its
// image_max_pixels allows. REQUIRES: has_image_size(vision, plan).
[[nodiscard]] ImageGrid image_grid(const VisionSpec& vision, const VisionPlan& plan);

// Whether the size of an image is known: said, bounded by the plan, or the tower's own.
[[nodiscard]] bool has_image_size(const VisionSpec& vision, const VisionPlan& plan);

// Lengths of the stretches of patches that see one another in a layer with windows, in the order of the program
// (transformers 5.24 vision_utils.py get_vision_window_index).
[[nodiscard]] std::vector<std::int64_t> window_lengths(const VisionSpec& vision, const ImageGrid& grid);

// Whether the batches of a plan have images that this model sees.
[[nodiscard]] bool sees_images(const ModelSpec& model, const TrainingPlan& plan);
// Whether the tower of this type has a program.
[[nodiscard]] bool has_tower_program(const VisionSpec& vision);

// Whether its tokens have positions of time, height and width, which the batch brings.
[[nodiscard]] bool counts_on_axes(const VisionSpec& vision);

// Whether the loss never reaches a module of the tower, so that what trains there has no gradient, nor states: what lies behind the
// layer that feeds the projector.
[[nodiscard]] bool is_behind_features(const VisionSpec& vision, std::string_view module);

// What a batch of so many sequences brings beside its tokens, in fp32.
[[nodiscard]] Shape pixel_shape(const ModelSpec& model, const TrainingPlan& plan, const Size& samples);

// One forward of a tower, which closures of its checkpoints refer to until the backward pass is over.
struct TowerForward {
  TowerForward(Forward& text, Modules& modules);

  Modules& modules;
  const VisionSpec& spec;
  ImageGrid grid;
  std::int64_t images;  // of the batch
  Size patches;         // of all of them
  Dims dims;
  LayerKind kind;
  KindDims heads;
  Forward f;

  [[nodiscard]] Module& at(const std::string& name) const { return modules.at(spec.tower + name); }
  // The patch embedding's output, made to need a gradient where the embedding's is.
  [[nodiscard]] Tensor begun(Tensor embedded, Forward& text) const;
  // One layer, checkpointed where the plan says so.
  [[nodiscard]] Tensor run_layer(const std::string& layer, Tensor hidden, const std::vector<Tensor>& arguments,
                                 const std::function<Tensor(Tensor)>& body);
  // Attention within stretches of patches, each by a call of its own. q, k, v: rows of heads.
  [[nodiscard]] Tensor attend(const std::vector<std::int64_t>& lengths, const Tensor& q, const Tensor& k,
                              const Tensor& v);

 private:
  // The same by a kernel that takes the stretches' lengths.
  [[nodiscard]] Tensor attend_at_once(std::int64_t stretches, const Tensor& q, const Tensor& k, const Tensor& v);
  [[nodiscard]] bool trains(const std::string& layer) const;
};

// What a tower returns, which the model's outputs hold.
struct ImageFeatures {
  std::vector<Tensor> states;  // beside the features
  std::vector<Tensor> pooled;  // of each image
};
// The Qwen-VL line. `pixels`: rows of patches.
// CLIP's tower with llava's projector. `pixels`: as many rows, whose order is no matter.
[[nodiscard]] ImageFeatures clip_tower(TowerForward& tower, Forward& text, Tensor pixels);
[[nodiscard]] ImageFeatures qwen_tower(TowerForward& tower, Forward& text, Tensor pixels);

// Embeddings of tokens with the features of the images in their places.
[[nodiscard]] Tensor with_images(Forward& f, ModelModules& modules, Tensor embedded);

// What the batches bring of their images, where the model sees any.
class ImageBatches {
 public:
  ImageBatches(Recorder& recorder, const ModelSpec& model, const TrainingPlan& plan, const Dims& dims)
      : r_(recorder), model_(model), plan_(plan), dims_(dims) {}

  // The pixels of all micro-batches of a step, as the Trainer has them; those of the last step go.
  void fetch();
  // Gives the forward of a micro-batch its pixels and, of models that count so, positions on three axes. What is returned lives as
  // long as the batch.
  [[nodiscard]] std::vector<Tensor> hand_over(Forward& forward);

 private:
  Recorder& r_;
  const ModelSpec& model_;
  const TrainingPlan& plan_;
  const Dims& dims_;
  Tensor step_;
};

}  // namespace membill
