// Vision towers and projectors of multimodal classes, tensor by tensor (transformers 5.24).
#include "membill/vision_part.h"

#include <functional>
#include <string>

#include "catalog/families/decoder.h"

namespace membill {
namespace {

using namespace census;

constexpr auto kNone = SplitAxis::none;
constexpr std::string_view kSection = "vision";

// One tower: where its tensors go, its config, and the width of the language model that it feeds.
struct Tower {
  TensorList& list;
  const ConfigReader& vision;
  const ConfigReader& wrapper;
  std::int64_t text = 0;
};

struct Linear {
  std::string name;
  std::int64_t in = 0, out = 0;
  bool bias = true;
};

void linears(TensorList& list, std::initializer_list<Linear> all) {
  for (const Linear& linear : all)
    list.linear(linear.name, linear.in, linear.out, linear.bias, TensorRole::other, kNone);
}

void weight(TensorList& list, const std::string& name, std::vector<std::int64_t> shape) {
  list.parameter(name, std::move(shape), TensorRole::other);
}

std::int64_t squared(std::int64_t side) { return checked_mul(side, side); }

// Tokens of a picture.
std::int64_t patches(const ConfigReader& vision) {
  const std::int64_t patch = vision.size("patch_size");
  return squared(vision.size("image_size") / patch);
}

void repeat(const std::string& stem, std::int64_t layers, const std::function<void(const std::string&)>& layer) {
  for (std::int64_t i = 0; i < layers; ++i) layer(stem + std::to_string(i) + ".");
}

// The towers of the Qwen-VL line: blocks with one qkv matrix, and a merger of neighbouring patches.
struct QwenTower {
  std::int64_t width, depth, mlp, out, merged;
};

void qwen_patches(const Tower& t, std::int64_t width, bool bias) {
  t.list.rotary_buffers("rotary_pos_emb", width / t.vision.size("num_heads") / 2);
  const std::int64_t patch = t.vision.size("patch_size");
  weight(t.list, "patch_embed.proj.weight",
         {width, t.vision.size("in_channels"), t.vision.size("temporal_patch_size"), patch, patch});
  if (bias) weight(t.list, "patch_embed.proj.bias", {width});
}

void qwen_block(const Tower& t, const std::string& start, const QwenTower& q, bool norm_bias) {
  t.list.norm(start + "norm1", q.width, norm_bias);
  t.list.norm(start + "norm2", q.width, norm_bias);
  linears(t.list, {{start + "attn.qkv", q.width, checked_mul(3, q.width)}, {start + "attn.proj", q.width, q.width}});
}

std::int64_t merged_width(const Tower& t, std::int64_t width) {
  return checked_mul(width, squared(t.vision.size("spatial_merge_size")));
}

void qwen2_vl(const Tower& t) {
  const std::int64_t width = t.vision.size("embed_dim"), merged = merged_width(t, width);
  const QwenTower q{width, t.vision.listed("depth"), checked_mul(width, t.vision.size("mlp_ratio")),
                    t.vision.size("hidden_size"), merged};
  qwen_patches(t, width, false);
  repeat("blocks.", q.depth, [&](const std::string& start) {
    qwen_block(t, start, q, true);
    linears(t.list, {{start + "mlp.fc1", width, q.mlp}, {start + "mlp.fc2", q.mlp, width}});
  });
  t.list.norm("merger.ln_q", width, true);
  linears(t.list, {{"merger.mlp.0", merged, merged}, {"merger.mlp.2", merged, q.out}});
}

void qwen2_5_vl(const Tower& t) {
  const std::int64_t width = t.vision.size("hidden_size"), merged = merged_width(t, width);
  const QwenTower q{width, t.vision.listed("depth"), t.vision.size("intermediate_size"),
                    t.vision.size("out_hidden_size"), merged};
  qwen_patches(t, width, false);
  repeat("blocks.", q.depth, [&](const std::string& start) {
    qwen_block(t, start, q, false);
    linears(t.list, {{start + "mlp.gate_proj", width, q.mlp},
                     {start + "mlp.up_proj", width, q.mlp},
                     {start + "mlp.down_proj", q.mlp, width}});
  });
  t.list.norm("merger.ln_q", width);
  linears(t.list, {{"merger.mlp.0", merged, merged}, {"merger.mlp.2", merged, q.out}});
}

void qwen3_merger(const Tower& t, const std::string& start, const QwenTower& q, std::int64_t normed) {
  t.list.norm(start + "norm", normed, true);
  linears(t.list, {{start + "linear_fc1", q.merged, q.merged}, {start + "linear_fc2", q.merged, q.out}});
}

// qwen3_vl feeds some of its layers' outputs to the language model, too; qwen3_5 does not.
void qwen3_vl(const Tower& t) {
  const std::int64_t width = t.vision.size("hidden_size");
  const QwenTower q{width, t.vision.listed("depth"), t.vision.size("intermediate_size"),
                    t.vision.size("out_hidden_size"), merged_width(t, width)};
  qwen_patches(t, width, true);
  t.list.embedding("pos_embed", t.vision.size("num_position_embeddings"), width, TensorRole::position);
  repeat("blocks.", q.depth, [&](const std::string& start) {
    qwen_block(t, start, q, true);
    linears(t.list, {{start + "mlp.linear_fc1", width, q.mlp}, {start + "mlp.linear_fc2", q.mlp, width}});
  });
  qwen3_merger(t, "merger.", q, width);
  repeat("deepstack_merger_list.", static_cast<std::int64_t>(t.vision.counts("deepstack_visual_indexes").size()),
         [&](const std::string& start) { qwen3_merger(t, start, q, q.merged); });
}

// A layer of CLIP and SigLIP.
void clip_layers(const Tower& t, std::int64_t width) {
  const std::int64_t mlp = t.vision.size("intermediate_size");
  repeat("encoder.layers.", t.vision.listed("num_hidden_layers"), [&](const std::string& start) {
    for (const char* name : {"k_proj", "v_proj", "q_proj", "out_proj"})
      linears(t.list, {{start + "self_attn." + name, width, width}});
    t.list.norm(start + "layer_norm1", width, true);
    linears(t.list, {{start + "mlp.fc1", width, mlp}, {start + "mlp.fc2", mlp, width}});
    t.list.norm(start + "layer_norm2", width, true);
  });
}

void patch_embedding(const Tower& t, const std::string& name, std::int64_t width, bool bias) {
  const std::int64_t patch = t.vision.size("patch_size");
  weight(t.list, name + ".weight", {width, t.vision.size("num_channels"), patch, patch});
  if (bias) weight(t.list, name + ".bias", {width});
}

void clip(const Tower& t) {
  const std::int64_t width = t.vision.size("hidden_size");
  weight(t.list, "embeddings.class_embedding", {width});
  patch_embedding(t, "embeddings.patch_embedding", width, false);
  t.list.embedding("embeddings.position_embedding", checked_add(patches(t.vision), 1), width, TensorRole::position);
  t.list.buffer("embeddings.position_ids", {1, checked_add(patches(t.vision), 1)}, DType::int64);
  t.list.norm("pre_layrnorm", width, true);
  clip_layers(t, width);
  t.list.norm("post_layernorm", width, true);
}

// Attention from one learned query, which pools the tokens.
void siglip_head(const Tower& t, std::int64_t width) {
  const std::int64_t mlp = t.vision.size("intermediate_size");
  weight(t.list, "head.probe", {1, 1, width});
  weight(t.list, "head.attention.in_proj_weight", {checked_mul(3, width), width});
  weight(t.list, "head.attention.in_proj_bias", {checked_mul(3, width)});
  linears(t.list,
          {{"head.attention.out_proj", width, width}, {"head.mlp.fc1", width, mlp}, {"head.mlp.fc2", mlp, width}});
  t.list.norm("head.layernorm", width, true);
}

void siglip(const Tower& t) {
  const std::int64_t width = t.vision.size("hidden_size");
  patch_embedding(t, "embeddings.patch_embedding", width, true);
  t.list.embedding("embeddings.position_embedding", patches(t.vision), width, TensorRole::position);
  t.list.buffer("embeddings.position_ids", {1, patches(t.vision)}, DType::int64);
  clip_layers(t, width);
  t.list.norm("post_layernorm", width, true);
  if (t.vision.flag("vision_use_head", true)) siglip_head(t, width);
}

void pixtral(const Tower& t) {
  const std::int64_t width = t.vision.size("hidden_size"), mlp = t.vision.size("intermediate_size");
  patch_embedding(t, "patch_conv", width, false);
  t.list.norm("ln_pre", width);
  t.list.rotary_buffers("patch_positional_embedding", width / t.vision.size("num_attention_heads"));
  repeat("transformer.layers.", t.vision.listed("num_hidden_layers"), [&](const std::string& start) {
    t.list.norm(start + "attention_norm", width);
    for (const char* name : {"gate_proj", "up_proj"})
      linears(t.list, {{start + "feed_forward." + name, width, mlp, false}});
    linears(t.list, {{start + "feed_forward.down_proj", mlp, width, false}});
    for (const char* name : {"k_proj", "v_proj", "q_proj", "o_proj"})
      linears(t.list, {{start + "attention." + name, width, width, false}});
    t.list.norm(start + "ffn_norm", width);
  });
}

void llama4(const Tower& t) {
  const std::int64_t width = t.vision.size("hidden_size"), mlp = t.vision.size("intermediate_size"),
                     patch = t.vision.size("patch_size"), out = t.vision.size("projector_output_dim");
  weight(t.list, "class_embedding", {width});
  weight(t.list, "positional_embedding_vlm", {checked_add(patches(t.vision), 1), width});
  linears(t.list,
          {{"patch_embedding.linear", checked_mul(t.vision.size("num_channels"), squared(patch)), width, false}});
  // complex64 of every place and half of a head's pairs
  t.list.buffer("rotary_embedding.freqs_ci",
                {checked_add(patches(t.vision), 1), width / t.vision.size("num_attention_heads")});
  t.list.norm("layernorm_pre", width, true);
  t.list.norm("layernorm_post", width, true);
  repeat("model.layers.", t.vision.listed("num_hidden_layers"), [&](const std::string& start) {
    for (const char* name : {"q_proj", "k_proj", "v_proj", "o_proj"})
      linears(t.list, {{start + "self_attn." + name, width, width}});
    linears(t.list, {{start + "mlp.fc1", width, mlp}, {start + "mlp.fc2", mlp, width}});
    t.list.norm(start + "input_layernorm", width, true);
    t.list.norm(start + "post_attention_layernorm", width, true);
  });
  linears(t.list, {{"vision_adapter.mlp.fc1", mlp, t.vision.size("projector_input_dim"), false},
                   {"vision_adapter.mlp.fc2", out, out, false}});
}

// Layers whose outputs the projector reads: one, or as many as a list names.
std::int64_t feature_layers(const Tower& t) {
  const Value* layers = t.wrapper.find("vision_feature_layer");
  return layers != nullptr && layers->is_list() ? static_cast<std::int64_t>(layers->items().size()) : 1;
}

void llava_projector(const Tower& t) {
  const bool bias = t.wrapper.flag("multimodal_projector_bias", true);
  const std::int64_t features = checked_mul(t.vision.size("hidden_size"), feature_layers(t));
  linears(t.list, {{"multi_modal_projector.linear_1", features, t.text, bias},
                   {"multi_modal_projector.linear_2", t.text, t.text, bias}});
}

void llava_next_projector(const Tower& t) {
  weight(t.list, "image_newline", {t.text});
  llava_projector(t);
}

void gemma3_projector(const Tower& t) {
  const std::int64_t width = t.vision.size("hidden_size");
  weight(t.list, "multi_modal_projector.mm_input_projection_weight", {width, t.text});
  t.list.norm("multi_modal_projector.mm_soft_emb_norm", width);
}

void mistral3_projector(const Tower& t) {
  const bool bias = t.wrapper.flag("multimodal_projector_bias", false);
  const std::int64_t width = t.vision.size("hidden_size");
  t.list.norm("multi_modal_projector.norm", width);
  linears(t.list, {{"multi_modal_projector.patch_merger.merging_layer",
                    checked_mul(width, squared(t.wrapper.size_or("spatial_merge_size", 2))), width, false},
                   {"multi_modal_projector.linear_1", checked_mul(width, feature_layers(t)), t.text, bias},
                   {"multi_modal_projector.linear_2", t.text, t.text, bias}});
}

void llama4_projector(const Tower& t) {
  linears(t.list, {{"multi_modal_projector.linear_1", t.vision.size("vision_output_dim"), t.text, false}});
}

void no_projector(const Tower&) {}

struct TowerRow {
  std::string_view type;
  void (*describe)(const Tower& tower);
};
// A wrapper: its class, and where that keeps the tower and the projector.
struct WrapperRow {
  std::string_view type, class_name, tower, around;
  void (*describe)(const Tower& tower);
};
constexpr TowerRow kTowers[] = {
    {"qwen2_vl_vision", qwen2_vl},     {"qwen2_5_vl_vision", qwen2_5_vl}, {"qwen3_vl_vision", qwen3_vl},
    {"qwen3_vl_moe_vision", qwen3_vl}, {"qwen3_5_vision", qwen3_vl},      {"qwen3_5_moe_vision", qwen3_vl},
    {"clip_vision_model", clip},       {"siglip_vision_model", siglip},   {"pixtral", pixtral},
    {"llama4_vision_model", llama4},
};
constexpr WrapperRow kWrappers[] = {
    {"qwen2_vl", "Qwen2VLForConditionalGeneration", "model.visual.", "", no_projector},
    {"qwen2_5_vl", "Qwen2_5_VLForConditionalGeneration", "model.visual.", "", no_projector},
    {"qwen3_vl", "Qwen3VLForConditionalGeneration", "model.visual.", "", no_projector},
    {"qwen3_vl_moe", "Qwen3VLMoeForConditionalGeneration", "model.visual.", "", no_projector},
    {"qwen3_5", "Qwen3_5ForConditionalGeneration", "model.visual.", "", no_projector},
    {"qwen3_5_moe", "Qwen3_5MoeForConditionalGeneration", "model.visual.", "", no_projector},
    {"llava", "LlavaForConditionalGeneration", "model.vision_tower.", "model.", llava_projector},
    {"llava_next", "LlavaNextForConditionalGeneration", "model.vision_tower.", "model.", llava_next_projector},
    {"gemma3", "Gemma3ForConditionalGeneration", "model.vision_tower.", "model.", gemma3_projector},
    {"mistral3", "Mistral3ForConditionalGeneration", "model.vision_tower.", "model.", mistral3_projector},
    {"llama4", "Llama4ForConditionalGeneration", "vision_model.", "", llama4_projector},
};

template <typename Row, std::size_t n>
const Row* find_row(const Row (&rows)[n], std::string_view type) {
  for (const Row& row : rows)
    if (row.type == type) return &row;
  return nullptr;
}

void add_tensors(ModelSpec& spec, TensorList list) {
  for (TensorSpec& tensor : list.take()) spec.sections.back().kinds.back().tensors.push_back(std::move(tensor));
}

// As the towers of the Qwen-VL line have them; limits of pixels as their releases' preprocessor_config.json says.
void describe_qwen(const ConfigReader& vision, VisionSpec& spec) {
  const bool second = spec.tower_type == "qwen2_vl_vision";
  spec.width = vision.size(second ? "embed_dim" : "hidden_size");
  spec.heads = vision.size("num_heads");
  spec.depth = vision.listed("depth");
  spec.channels = vision.size("in_channels");
  spec.temporal_patch = vision.size("temporal_patch_size");
  spec.merge = vision.size("spatial_merge_size");
  spec.activation = vision.word("hidden_act", second ? "quick_gelu" : "silu");
  spec.min_pixels = std::int64_t{56} * 56;
  spec.max_pixels = std::int64_t{16384} * 28 * 28;
  if (spec.tower_type != "qwen2_5_vl_vision") return;
  spec.window = vision.size("window_size");
  spec.whole_image_layers = vision.counts("fullatt_block_indexes");
}

// A layer of the tower feeds the projector: counted from the end, as the states before each layer and after the last.
void describe_clip(const ConfigReader& vision, const ConfigReader& wrapper, VisionSpec& spec) {
  spec.width = vision.size("hidden_size");
  spec.heads = vision.size("num_attention_heads");
  spec.depth = vision.listed("num_hidden_layers");
  spec.channels = vision.size("num_channels");
  spec.image_size = vision.size("image_size");
  spec.activation = vision.word("hidden_act", "quick_gelu");
  const Value* layer = wrapper.find("vision_feature_layer");
  const std::int64_t number = layer == nullptr ? -2 : layer->is_int() ? layer->as_int() : 0;
  const bool crops = wrapper.word("vision_feature_select_strategy", "default") == "default";
  if (crops && number < -1 && -number <= spec.depth) spec.feature_layer = spec.depth + 1 + number;
}

// What programs know of the tower beside its tensors; of towers without a program, its names alone.
VisionSpec describe_tower(const VisionPart& part, const WrapperRow& wrapper, const ConfigReader& vision,
                          Problems& problems) {
  VisionSpec spec;
  spec.wrapper_type = part.wrapper_type;
  spec.tower_type = part.vision_type;
  spec.tower = wrapper.tower;
  spec.patch = vision.size("patch_size");
  if (part.vision_type == "clip_vision_model") describe_clip(vision, ConfigReader(part.wrapper, problems), spec);
  if (part.vision_type == "qwen2_vl_vision" || part.vision_type == "qwen2_5_vl_vision") describe_qwen(vision, spec);
  return spec;
}

}  // namespace

bool is_vision_part(const Section& section) { return section.name == kSection; }

std::string_view wrapper_class(std::string_view wrapper_type) {
  const WrapperRow* wrapper = find_row(kWrappers, wrapper_type);
  return wrapper == nullptr ? std::string_view() : wrapper->class_name;
}

bool add_vision_part(ModelSpec& spec, const VisionPart& part, Problems& problems) {
  const TowerRow* tower = find_row(kTowers, part.vision_type);
  const WrapperRow* wrapper = find_row(kWrappers, part.wrapper_type);
  if (tower == nullptr || wrapper == nullptr) return false;
  const ConfigReader vision(part.vision, problems), around(part.wrapper, problems);
  TensorList inside(wrapper->tower), outside(wrapper->around);
  tower->describe({inside, vision, around, spec.hidden});
  wrapper->describe({outside, vision, around, spec.hidden});
  spec.sections.push_back(single(std::string(kSection), {}));
  add_tensors(spec, std::move(inside));
  add_tensors(spec, std::move(outside));
  spec.vision = describe_tower(part, *wrapper, vision, problems);
  return true;
}

}  // namespace membill
