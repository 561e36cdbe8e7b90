// ModelSpec: what the network is. No run-time choice in it.
//
// A family (src/catalog/families) turns a Hugging Face config with every default resolved into a ModelSpec: the dimensions that
// block programs need, and the census, every parameter tensor by name and shape. Parameter totals are sums over the census and
// nothing else.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "membill/source.h"
#include "membill/units.h"
#include "membill/weight_format.h"

namespace membill {

// What a tensor is for. Decides storage formats, optimizer exceptions, LoRA's all-linear, and how the bill groups it.
enum class TensorRole : std::uint8_t {
  embedding,
  position,
  attention,
  mlp,
  expert,
  router,
  norm,
  head,
  adapter,
  other
};

// The module that owns the tensor. `linear`: torch.nn.Linear (quantisable, LoRA-targetable); `conv1d`: GPT-2's transposed linear
// (targetable, shape in x out); `embedding`: torch.nn.Embedding; `norm`; `parameter`: a bare parameter (fused experts, sinks).
enum class ModuleKind : std::uint8_t { linear, conv1d, embedding, norm, parameter };

// How tensor parallelism splits a tensor. `column`: output axis; `row`: input axis; `vocab`: vocabulary rows; `none`: every rank whole.
enum class SplitAxis : std::uint8_t { none, column, row, vocab };

// One parameter tensor, or the same tensor of every layer of a section.
struct TensorSpec {
  std::string name;  // as Hugging Face names it, '*' for the layer's index: "model.layers.*.mlp.up_proj.weight"
  std::vector<std::int64_t> shape;  // as torch stores it; every entry > 0
  TensorRole role = TensorRole::other;
  ModuleKind module = ModuleKind::parameter;
  SplitAxis split = SplitAxis::none;
  bool expert_parallel = false;  // split over experts by expert parallelism (first axis)
  bool buffer = false;  // a buffer: on the card, no gradient, not counted as a parameter (rotary inv_freq, masks)
  std::optional<DType> own_dtype;  // what its class makes in this type, whatever the plan's is

  // Product of the shape; 1 for an empty shape. Throws OverflowError.
  [[nodiscard]] std::int64_t elements() const;
  // The module's dotted name: `name` without its last part ("model.layers.*.mlp.up_proj").
  [[nodiscard]] std::string module_name() const;
};

enum class NormKind : std::uint8_t { rms, layer, none };
enum class PositionKind : std::uint8_t { rotary, learned, alibi, relative, none };

// Attention of one layer kind. Widths are counts of elements.
struct AttentionShape {
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;        // of q and k
  std::int64_t value_head_dim = 0;  // of v; equals head_dim but for MLA
  std::int64_t rotary_dim = 0;      // rotated part of head_dim; 0 = no rotary positions
  bool qkv_bias = false;
  bool output_bias = false;
  bool fused_qkv = false;                      // one matrix makes q, k and v
  bool qk_norm = false;                        // a norm on q and k
  bool qk_norm_full_width = false;             // over all heads together (olmo2) instead of per head
  std::optional<std::int64_t> sliding_window;  // tokens that a row may see; none = all
  std::optional<double> logit_softcap;         // gemma2's tanh on scores
  bool sinks = false;                          // gpt_oss: a learned sink per head
  bool shares_keys = false;                    // its keys and values stay in a dictionary for later layers (gemma4)
  bool clips_qkv = false;                      // q, k and v are clamped (mpt, dbrx)
  bool output_gate = false;                    // q_proj makes a gate of the output beside the queries (qwen3_next)
  bool tunes_temperature = false;              // llama4: queries of layers without positions are scaled by their place
  // Multi-head latent attention (deepseek): ranks of the compressed q and kv; q_lora_rank 0 = q is one matrix.
  bool latent = false;
  std::int64_t q_lora_rank = 0;
  std::int64_t kv_lora_rank = 0;
  std::int64_t rope_head_dim = 0;
  double dropout = 0;  // attention dropout of the config
};

// A layer that attends through a running state instead of a softmax: Gated DeltaNet (qwen3_next). Its memory does not grow with the
// square of the length, and what it keeps between steps of a generation does not grow with the length at all.
struct LinearAttentionShape {
  std::int64_t key_heads = 0, value_heads = 0;
  std::int64_t key_head_dim = 0, value_head_dim = 0;
  std::int64_t kernel = 0;  // tokens that its convolution sees
};

// A state space layer: mamba's second version, whose heads share a decay, or its first (`time_step_rank` > 0), whose channels each have
// their own. It stands in the place of the attention, or beside it where that has heads, too (falcon_h1).
struct StateSpaceShape {
  std::int64_t heads = 0, head_dim = 0;  // its inner width is their product; first version: channels of width 1
  std::int64_t groups = 1;               // of heads that share what goes into the state and what reads it
  std::int64_t state = 0;                // width of a head's state
  std::int64_t kernel = 0;               // tokens that its convolution sees
  std::int64_t chunk = 0;                // tokens that are worked on at once; 0: one after the other
  std::int64_t time_step_rank = 0;
  bool gate_after_norm = false;  // its norm comes before its gate (falcon_h1)
  [[nodiscard]] std::int64_t inner() const { return heads * head_dim; }
};

// Feed-forward part of one layer kind.
struct MlpShape {
  std::int64_t intermediate = 0;  // width of the dense MLP; 0 = none
  bool gated = true;
  bool fused_gate_up = false;
  bool bias = false;
  std::string activation = "silu";  // as the config spells it
};

// Mixture of experts of one layer kind.
struct MoeShape {
  std::int64_t experts = 0;
  std::int64_t experts_per_token = 0;
  std::int64_t intermediate = 0;         // width of one expert
  std::int64_t shared_intermediate = 0;  // total width of the shared experts; 0 = none
  bool normalised = false;               // the weights of a token's experts are divided by their sum (norm_topk_prob)
  std::int64_t groups = 1;               // groups of experts that the router chooses from first (deepseek)
  std::int64_t latent = 0;  // width that the experts work in, behind a projection; 0: the hidden size (nemotron_h)
};

// One kind of layer: its shapes and its tensors. Layers of a kind are identical.
struct LayerKind {
  AttentionShape attention;
  std::optional<LinearAttentionShape> linear_attention;  // in place of `attention`, whose numbers are then of no use
  std::optional<StateSpaceShape> state_space;
  MlpShape mlp;
  std::optional<MoeShape> moe;
  bool parallel_residual = false;   // attention and MLP read the same hidden states and are added together
  std::vector<TensorSpec> tensors;  // in module order (model.named_parameters())
};

// A part of the model in named_parameters() order: a stack of layers, or tensors outside of any stack.
struct Section {
  std::string name;              // "embedding", "layers", "encoder", "decoder", "final", "head"
  std::vector<LayerKind> kinds;  // one entry when the section is no stack
  std::vector<std::int32_t>
      layer_kinds;  // index into `kinds` of each layer, in order; empty = not a stack (kinds[0] once)
  [[nodiscard]] std::int64_t repeats() const {
    return layer_kinds.empty() ? 1 : static_cast<std::int64_t>(layer_kinds.size());
  }
};

// The vision part of a multimodal model, as far as its program needs it. Its tensors are the census's section "vision".
struct VisionSpec {
  std::string wrapper_type, tower_type;  // Hugging Face's model types: "llava", "clip_vision_model"
  std::string tower;                     // what the names of the tower's tensors begin with: "model.visual."
  std::int64_t width = 0, heads = 0, depth = 0;
  std::int64_t channels = 3;
  std::int64_t patch = 0;           // pixels of a patch's side
  std::int64_t temporal_patch = 1;  // pictures that a patch spans; a single one is repeated
  std::int64_t merge = 1;           // patches of a side that become one token
  std::int64_t image_size = 0;      // pixels of a side that every image is scaled to; 0: images come as they are
  std::int64_t window = 0;          // pixels of a side that a layer attends to; 0: the whole image
  std::vector<std::int64_t> whole_image_layers;  // which attend to all of an image, where others see windows
  std::int64_t feature_layer = -1;               // from 0, whose input the projector reads; -1: the last one's output
  std::vector<std::int64_t> deepstack_layers;    // whose outputs layers of the language model get, too
  std::int64_t positions = 0;                    // rows of a learned table of places
  std::string activation;
  std::int64_t min_pixels = 0, max_pixels = 0;  // that the processor scales an image to, unless the job says others
};

struct ModelSpec {
  std::string name;        // what the user called it: preset, path, or "generic"
  std::string model_type;  // Hugging Face's model_type ("llama"); "generic" for --params models
  std::string class_name;  // Hugging Face's class, when known
  Source source;           // config file, preset, command line

  std::int64_t vocab = 0;  // rows of the embedding
  std::int64_t hidden = 0;
  std::int64_t layers = 0;         // of the decoder (or the only) stack
  std::int64_t max_positions = 0;  // 0 = unknown
  bool tied_embeddings = false;    // head and embedding are one tensor; the census then has no head tensor
  bool scales_head_input = false;  // t5, umt5: the head multiplies states that were scaled by 1/sqrt(hidden)
  NormKind norm = NormKind::rms;
  PositionKind position = PositionKind::rotary;
  double hidden_dropout = 0;     // residual dropout of the config
  double embedding_dropout = 0;  // dropout of the embedding's output, where the model has one
  std::optional<double> final_logit_softcap;
  std::string stored_dtype;  // torch_dtype / dtype of the file as written; empty = not said
  StoredWeights stored;      // how the file's weights are quantised

  // Rows of the score that a sequence classifier of this decoder has for a head, as the file's `architectures` says; 0: it is a
  // language model. The census is the language model's; staged_model exchanges the head.
  std::int64_t labels = 0;
  std::vector<Section> sections;     // the census, in named_parameters() order
  std::optional<VisionSpec> vision;  // of a multimodal model whose tower is known
  // A published total that replaces an unknown census (generic models given by --params); then `sections` may be empty.
  std::optional<std::int64_t> stated_parameters;
  bool dimensions_known = true;          // false: only a total was given, activations are unknown
  std::vector<std::string> not_counted;  // parts of the file that the bill leaves out ("vision_config"), each a warning
  std::vector<std::string> warnings;     // disagreements found while reading (safetensors headers against the census)
  std::optional<std::int64_t> active_parameters_stated;
  std::shared_ptr<const ModelSpec> teacher;  // whose logits this model learns (stage distill); null: none

  // Sum of the census (tied tensors once), or `stated_parameters`. Throws OverflowError.
  [[nodiscard]] std::int64_t parameters() const;
  // Parameters that one token uses: experts count experts_per_token / experts of their elements. Equals parameters() for dense models.
  [[nodiscard]] std::int64_t active_parameters() const;
};

}  // namespace membill
