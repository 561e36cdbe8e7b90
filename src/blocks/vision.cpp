#include "blocks/vision.h"

#include <algorithm>

#include "blocks/architecture.h"
#include "blocks/attention.h"
#include "blocks/layers.h"

namespace membill {
namespace {

// Python's round(): halves go to the even neighbour.
std::int64_t rounded(std::int64_t value, std::int64_t unit) {
  const std::int64_t below = value / unit, twice = 2 * (value % unit);
  return twice > unit || (twice == unit && below % 2 == 1) ? below + 1 : below;
}

std::int64_t square_root(std::int64_t value) {
  std::int64_t low = 0, high = 1;
  while (high <= value / high) high *= 2;
  while (low + 1 < high) {
    const std::int64_t middle = low + (high - low) / 2;
    (middle <= value / middle ? low : high) = middle;
  }
  return low;
}

// A side of so many pixels, scaled with the other so that both cover `pixels`; whole units of it.
std::int64_t scaled_side(std::int64_t side, std::int64_t other, std::int64_t pixels, std::int64_t unit) {
  return square_root(side * pixels / other) / unit;
}

struct Sides {
  std::int64_t rows, columns;
};

// transformers 5.24 models/qwen2_vl/image_processing_qwen2_vl.py smart_resize, in units of `unit` pixels.
Sides smart_resize(std::int64_t height, std::int64_t width, std::int64_t unit, std::int64_t least, std::int64_t most) {
  const Sides sides{rounded(height, unit), rounded(width, unit)};
  const std::int64_t pixels = sides.rows * sides.columns * unit * unit;
  if (pixels > most)
    return {std::max<std::int64_t>(1, scaled_side(height, width, most, unit)),
            std::max<std::int64_t>(1, scaled_side(width, height, most, unit))};
  if (pixels >= least) return sides;
  const auto up = [&](std::int64_t side, std::int64_t other) {
    const std::int64_t below = scaled_side(side, other, least, unit), length = below * unit;
    return length * length * other == side * least ? below : below + 1;
  };
  return {up(height, width), up(width, height)};
}

}  // namespace

bool has_image_size(const VisionSpec& vision, const VisionPlan& plan) {
  return vision.image_size > 0 || plan.width > 0 || plan.max_pixels;
}

ImageGrid image_grid(const VisionSpec& vision, const VisionPlan& plan) {
  if (vision.image_size > 0) {
    const std::int64_t side = vision.image_size / vision.patch;
    return {side, side, side * side};
  }
  const std::int64_t most = plan.max_pixels.value_or(vision.max_pixels);
  const std::int64_t square = plan.width > 0 ? 0 : square_root(most);
  const Sides sides = smart_resize(plan.width > 0 ? plan.height : square, plan.width > 0 ? plan.width : square,
                                   vision.patch * vision.merge, plan.min_pixels.value_or(vision.min_pixels), most);
  return {sides.rows * vision.merge, sides.columns * vision.merge, sides.rows * sides.columns};
}

std::vector<std::int64_t> window_lengths(const VisionSpec& vision, const ImageGrid& grid) {
  const std::int64_t side = vision.window / vision.merge / vision.patch, unit = vision.merge * vision.merge;
  const std::int64_t rows = grid.rows / vision.merge, columns = grid.columns / vision.merge;
  std::vector<std::int64_t> lengths;
  for (std::int64_t row = 0; row < rows; row += side)
    for (std::int64_t column = 0; column < columns; column += side)
      lengths.push_back(std::min(side, rows - row) * std::min(side, columns - column) * unit);
  return lengths;
}

namespace {

constexpr std::string_view kClip = "clip_vision_model";
constexpr std::string_view kQwenTowers[] = {"qwen2_vl_vision", "qwen2_5_vl_vision"};

bool is_qwen(const VisionSpec& vision) {
  return std::find(std::begin(kQwenTowers), std::end(kQwenTowers), vision.tower_type) != std::end(kQwenTowers);
}

// Sequences of the batch; programs that call attention image by image hold for that number only.
std::int64_t sequences(const Forward& f) {
  SymbolTable& symbols = f.r.symbols();
  const std::int64_t count = symbols.evaluate(f.dims.samples);
  static_cast<void>(symbols.equal(f.dims.samples, Size(count)));
  return count;
}

Dims dims_of(const Forward& text, const Size& patches) {
  Dims dims = text.dims;
  dims.b = dims.samples = Size(1);
  dims.s = dims.N = patches;
  dims.past = dims.t = Size();
  return dims;
}

LayerKind kind_of(const VisionSpec& spec) {
  LayerKind kind;
  kind.attention.heads = kind.attention.kv_heads = spec.heads;
  kind.attention.head_dim = kind.attention.value_head_dim = spec.width / spec.heads;
  return kind;
}

KindDims tower_heads(const VisionSpec& spec) {
  KindDims dims;
  dims.a = dims.k = Size(spec.heads);
  dims.d = dims.v = Size(spec.width / spec.heads);
  return dims;
}

// LLaMA-Factory checkpoints the layers that train, and makes their inputs need a gradient itself (llamafactory 0.9.5
// model/model_utils/checkpointing.py get_custom_gradient_checkpointing_func).
bool checkpoints_what_trains(const TrainingPlan& plan) { return plan.software.count("llamafactory") != 0; }

}  // namespace

bool sees_images(const ModelSpec& model, const TrainingPlan& plan) {
  return plan.vision.images > 0 && model.vision && has_tower_program(*model.vision);
}

bool has_tower_program(const VisionSpec& vision) {
  return is_qwen(vision) || (vision.tower_type == kClip && vision.wrapper_type == "llava" && vision.feature_layer >= 0);
}

bool counts_on_axes(const VisionSpec& vision) { return is_qwen(vision); }

bool is_behind_features(const VisionSpec& vision, std::string_view module) {
  if (vision.feature_layer < 0 || !module.starts_with(vision.tower)) return false;
  module.remove_prefix(vision.tower.size());
  constexpr std::string_view kLayers = "encoder.layers.";
  if (!module.starts_with(kLayers)) return module.starts_with("post_layernorm");
  module.remove_prefix(kLayers.size());
  std::int64_t number = 0;
  std::string why;
  return parse_count(module.substr(0, module.find('.')), number, why) && number >= vision.feature_layer;
}

Shape pixel_shape(const ModelSpec& model, const TrainingPlan& plan, const Size& samples) {
  const VisionSpec& vision = *model.vision;
  const Size images = samples * Size(plan.vision.images);
  // a fixed size need not be whole patches
  if (vision.image_size > 0) return {images * Size(vision.channels * vision.image_size), Size(vision.image_size)};
  return {images * Size(image_grid(vision, plan.vision).patches()),
          Size(vision.channels * vision.temporal_patch * vision.patch * vision.patch)};
}

TowerForward::TowerForward(Forward& text, Modules& outer)
    : modules(outer),
      spec(*text.model.vision),
      grid(image_grid(spec, text.plan.vision)),
      images(sequences(text) * text.plan.vision.images),
      patches(Size(images * grid.patches())),
      dims(dims_of(text, patches)),
      kind(kind_of(spec)),
      heads(tower_heads(spec)),
      f{text.r, text.model, text.plan, dims, text.items, text.stream} {
  f.adapters = text.adapters;
  f.multiprocessors = text.multiprocessors;
}

bool TowerForward::trains(const std::string& layer) const {
  const auto needs = [](const std::unique_ptr<Parameter>& p) { return p != nullptr && p->trainable; };
  const std::string start = spec.tower + layer;
  return std::any_of(modules.all().begin(), modules.all().end(), [&](const auto& module) {
    return module->name.starts_with(start) &&
           (module->weight.trainable || needs(module->bias) || module->adapter != nullptr);
  });
}

Tensor TowerForward::begun(Tensor embedded, Forward& text) const {
  const bool hooked = !checkpoints_what_trains(text.plan) || trains("");
  return hooked ? Architecture::made_to_need_gradient(text, std::move(embedded)) : embedded;
}

Tensor TowerForward::run_layer(const std::string& layer, Tensor hidden, const std::vector<Tensor>& arguments,
                               const std::function<Tensor(Tensor)>& body) {
  const CheckpointPlan& plan = f.plan.checkpointing;
  const bool again = plan.mode == Checkpointing::full && (!checkpoints_what_trains(f.plan) || trains(layer));
  if (!again) return body(std::move(hidden));
  Recorder::CheckpointKind how;
  how.reentrant = plan.reentrant;
  how.offload = plan.offload && f.r.saved_on_host() == nullptr;
  Tensor out = f.r.checkpoint(std::move(hidden), how, body);
  if (plan.reentrant && out.requires_grad())
    for (const Tensor& argument : arguments) f.r.hold_in_graph(argument);
  return out;
}

// flash-attn 2.8 flash_api.cpp mha_varlen_fwd, mha_varlen_bwd: 128 rows more of each stretch in the backward pass, whose sum the
// kernel's program rounds up to such rows.
Tensor TowerForward::attend_at_once(std::int64_t stretches, const Tensor& q, const Tensor& k, const Tensor& v) {
  constexpr std::int64_t kTile = 128;
  Dims all = dims;
  all.s = patches + Size(kTile * stretches);
  Forward whole{f.r, f.model, f.plan, all, f.items, f.stream};
  whole.multiprocessors = f.multiprocessors;
  const AttentionCall call{heads, kind.attention, choose_attention(whole, kind, false), {}};
  return run_whole_attention(whole, call, q, k, v);
}

Tensor TowerForward::attend(const std::vector<std::int64_t>& lengths, const Tensor& q, const Tensor& k,
                            const Tensor& v) {
  Recorder& r = f.r;
  if (f.plan.attention == AttentionKernel::flash && r.autocast().value_or(f.stream) != DType::fp32)
    return attend_at_once(static_cast<std::int64_t>(lengths.size()), q, k, v);
  std::vector<Shape> shapes;
  shapes.reserve(lengths.size());
  for (const std::int64_t length : lengths) shapes.push_back({Size(length) * heads.a, heads.d});
  const std::vector<Tensor> queries = r.split(q, shapes), keys = r.split(k, shapes), values = r.split(v, shapes);
  std::vector<Tensor> outputs;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const Dims stretch = dims_of(f, Size(lengths[i]));
    Forward part{r, f.model, f.plan, stretch, f.items, f.stream};
    part.multiprocessors = f.multiprocessors;
    const AttentionCall call{heads, kind.attention, choose_attention(part, kind, false), {}};
    outputs.push_back(run_whole_attention(part, call, queries[i], keys[i], values[i]));
  }
  return r.join(outputs, {patches, heads.a * heads.d});
}

namespace {

// masked_scatter: the mask in the shape of the embeddings and its running count (aten native/cuda/IndexKernel.cu
// launch_masked_scatter_kernel). Its backward picks the features' gradients by their places (masked_select, nonzero).
Tensor with_features_scattered(Forward& f, const Tensor& embedded, const Tensor& mask, const Tensor& features) {
  Recorder& r = f.r;
  const Shape shape = embedded.shape();
  const bool node = r.needs_node({&embedded, &features});
  const Tensor kept = node ? r.saved(mask) : Tensor();
  Tensor out = r.empty(shape, embedded.dtype(), "embeddings with image features");
  {
    const Tensor places = r.empty(shape, DType::int64, "running count of the mask");
    const Tensor full = r.empty(shape, DType::boolean, "mask of image tokens, expanded");
  }
  if (!node) return out;
  const bool to_text = embedded.requires_grad(), to_features = features.requires_grad();
  r.record(
      {&out}, {r.edge(embedded), r.edge(features)},
      [kept, to_text, to_features, shape, own = features.shape(), type = features.dtype()](Recorder& rec, Gradients&) {
        Gradients result(2);
        if (to_text) result[0] = rec.empty(shape, type, "gradient of text embeddings");
        if (!to_features) return result;
        Tensor full = rec.empty(shape, DType::boolean, "mask of image tokens, expanded");
        constexpr std::int64_t kAxes = 3;
        const Tensor places =
            rec.empty({own.elements(), Size(kAxes)}, DType::int64, "places of the features' elements");
        full.drop();
        result[1] = rec.empty(own, type, "gradient of image features");
        return result;
      });
  return out;
}

}  // namespace

Tensor with_images(Forward& f, ModelModules& modules, Tensor embedded) {
  Recorder& r = f.r;
  const ItemScope scope(r, f.items.vision);
  f.tower = std::make_shared<TowerForward>(f, modules.outer);
  const bool clip = f.tower->spec.tower_type == kClip;
  ImageFeatures features = clip ? clip_tower(*f.tower, f, f.pixels) : qwen_tower(*f.tower, f, f.pixels);
  const Size tokens = Size(f.tower->images * f.tower->grid.tokens);
  Tensor joined = r.join(features.pooled, {tokens, f.dims.h});
  joined = r.cast(std::move(joined), embedded.dtype());
  // masks of each kind of token that a class knows
  const std::size_t kinds = clip ? 1 : 2;
  std::vector<Tensor> masks;
  masks.reserve(kinds);
  for (std::size_t i = 0; i < kinds; ++i)
    masks.push_back(r.empty({f.dims.N, Size(1)}, DType::boolean, "mask of image tokens"));
  Tensor out = with_features_scattered(f, embedded, masks.front(), joined);
  f.locals.insert(f.locals.end(), {r.detach(out), joined});
  f.locals.insert(f.locals.end(), masks.begin(), masks.end());
  for (std::vector<Tensor>* outputs : {&features.states, &features.pooled})
    f.caller_locals.insert(f.caller_locals.end(), outputs->begin(), outputs->end());
  return out;
}

void ImageBatches::fetch() {
  if (!sees_images(model_, plan_)) return;
  const Shape pixels = pixel_shape(model_, plan_, dims_.samples * Size(plan_.accumulate));
  step_ = r_.empty(pixels, DType::fp32, "pixels of the step's images", r_.writer().item("activations.inputs"));
}

std::vector<Tensor> ImageBatches::hand_over(Forward& forward) {
  if (!sees_images(model_, plan_)) return {};
  const ItemId item = r_.writer().item("activations.inputs");
  const Shape pixels = pixel_shape(model_, plan_, dims_.samples);
  forward.pixels =
      step_.defined() ? r_.view(step_, pixels) : r_.empty(pixels, DType::fp32, "pixels of the images", item);
  if (counts_on_axes(*model_.vision))
    forward.position_ids = r_.empty({dims_.N * Size(3), Size(1)}, DType::int64, "positions on three axes", item);
  return {forward.pixels, forward.position_ids};
}

}  // namespace membill
