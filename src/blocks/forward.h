// What a block program sees while one forward runs: the recorder, the three inputs, the symbols of the formulas and the modules.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "membill/model_spec.h"
#include "membill/training_plan.h"
#include "program/recorder.h"

namespace membill {

// Of a linear attention.
struct LinearDims {
  Size key_heads, value_heads, key_width, value_width, kernel;
};

// Of a state space layer.
struct StateSpaceDims {
  Size heads, width, groups, state, kernel;
};

// Symbols of one layer kind, as the formulas print them.
struct KindDims {
  Size a, k, d;                                   // query heads, key/value heads, head dimension
  Size v;                                         // head dimension of the values
  Size rotary;                                    // rotated part of d
  Size f;                                         // MLP width
  Size experts, top, expert_width, shared_width;  // MoE
  LinearDims linear;
  StateSpaceDims space;
};

// Symbols of the whole model and plan.
struct Dims {
  Size b, s, N;  // rows of a micro-batch, tokens of a row, tokens of a micro-batch (b·s)
  Size samples;  // sequences of a micro-batch: its rows, unless they are joined to one
  Size h, V, L;
  Size r;                                    // adapter rank
  Size t;                                    // virtual tokens before the text, part of s
  Size past;                                 // tokens of a prefix, which have keys and values only
  Size text;                                 // tokens of the text in a micro-batch
  std::vector<std::vector<KindDims>> kinds;  // by section, by kind
};

// Defines the symbols of `model` and `plan` in `symbols`.
[[nodiscard]] Dims define_dims(SymbolTable& symbols, const ModelSpec& model, const TrainingPlan& plan);

// A low-rank adapter on a linear module.
struct LoraAdapter {
  Parameter down, up;                    // lora_A (r x in), lora_B (out x r)
  std::unique_ptr<Parameter> bias;       // of `up`
  std::unique_ptr<Parameter> magnitude;  // DoRA
  std::unique_ptr<Parameter> values,
      rank;  // AdaLoRA: singular values (r x 1), and the rank itself, which PEFT lets train
  double dropout = 0;
  std::optional<DType> seen;  // type that a call sees before an engine gathers the matrices; none: theirs
  std::int64_t matrices = 1;  // of a parameter of experts: each has its own rows of `down` and columns of `up`
};

// An adapter of vectors on a linear module.
struct VectorAdapter {
  Parameter scale;            // (IA)3's l, VeRA's lambda_b: of the output, or of (IA)3's feed-forward input
  bool feed_forward = false;  // (IA)3: the input is scaled
  std::unique_ptr<Parameter> inner_scale;  // VeRA's lambda_d (r)
  std::unique_ptr<Parameter> down, up;     // VeRA: parts of the two frozen matrices that all modules share
  double dropout = 0;
};

// An adapter that adds a whole matrix to a linear's: LoHa's product of two low-rank matrices, LoKr's Kronecker product.
struct MatrixAdapter {
  std::unique_ptr<Parameter> first, second;                         // LoKr: factors that are whole
  std::unique_ptr<Parameter> first_a, first_b, second_a, second_b;  // low-rank pairs: (n x r), (r x m)
  bool hadamard = false;                                            // LoHa: all four
};

// OFT: blocks that turn a linear's input.
struct RotationAdapter {
  Parameter angles;      // a row a block: the upper triangle of a skew-symmetric matrix
  Tensor rows, columns;  // where that triangle's entries lie
  Size blocks, width;    // of the input
};

// Rows of an embedding that train: PEFT's TrainableTokensLayer.
struct TrainedRows {
  Parameter delta;
  Tensor originals;
};

// Prompt tuning and p-tuning: what makes the embeddings of the virtual tokens.
struct PromptEncoder {
  struct Linear {
    Parameter weight, bias;
  };
  Parameter embedding;                           // virtual tokens x hidden
  std::vector<std::unique_ptr<Linear>> linears;  // p-tuning's three
};

// Storage of a quantised weight: what a use makes of it.
struct QuantizedWeight {
  WeightFormat format = WeightFormat::nf4;
  DType compute = DType::bf16;  // type of the dequantised matrix
  bool double_quant = false;
  bool torchao = false;
  std::vector<Tensor> parts;  // codes, scales, tables
  std::size_t codes_at = 0;   // which of them holds the codes
  [[nodiscard]] Tensor& codes() { return parts[codes_at]; }
};

// One module of the model with its parameters.
struct Module {
  std::string name;  // within its layer ("self_attn.q_proj"), or whole outside of layers ("model.norm")
  ModuleKind kind = ModuleKind::parameter;
  TensorRole role = TensorRole::other;
  Parameter weight;
  std::unique_ptr<Parameter> bias;
  std::unique_ptr<LoraAdapter> adapter;
  std::unique_ptr<VectorAdapter> vectors;
  std::unique_ptr<MatrixAdapter> matrix;
  std::unique_ptr<RotationAdapter> rotation;
  std::unique_ptr<TrainedRows> trained_rows;
  std::unique_ptr<QuantizedWeight> quantized;
  std::unique_ptr<Parameter> original,
      original_bias;            // modules_to_save: what stays frozen; `weight` and `bias` are the trained copies
  std::vector<Tensor> remains;  // what lives because an attribute of the module holds a graph: until the next forward
};

// The modules of one layer, or of a section that is no stack.
class Modules {
 public:
  Module& add(std::string name);
  // The module called `name`. Throws std::logic_error when there is none (a program that does not fit its census).
  [[nodiscard]] Module& at(std::string_view name) const;
  [[nodiscard]] Module* find(std::string_view name) const;
  [[nodiscard]] const std::vector<std::unique_ptr<Module>>& all() const { return modules_; }
  // Modules of a layer outside of the stacks, by the name of its section: made at the first call. nullptr when there are none.
  [[nodiscard]] Modules& make_part(const std::string& section);
  [[nodiscard]] Modules* find_part(std::string_view section) const;

 private:
  std::vector<std::unique_ptr<Module>> modules_;
  std::unordered_map<std::string_view, Module*> by_name_;  // keys lie in the modules
  std::vector<std::pair<std::string, std::unique_ptr<Modules>>> parts_;
};

// Items that programs allocate to.
struct Items {
  ItemPair embedding, vision, block, boundary, loss_logits, loss_upcast, loss_probabilities, head;
  ItemId gradients = 0;
};
[[nodiscard]] Items define_items(TraceWriter& writer);

// Which attention kernel really runs for one layer kind, after the framework's own choice.
struct AttentionChoice {
  AttentionKernel kernel = AttentionKernel::flash;
  bool mask = false;    // an additive mask tensor is passed
  bool unpads = false;  // the kernel gets the tokens that count, of all rows in one, instead of a mask
};

// What an engine does around the layers' forward (FSDP gathers and frees parameters).
class ForwardHooks {
 public:
  virtual ~ForwardHooks() = default;
  virtual void before_model() = 0;
  virtual void before_embedding() {}
  // What the module returns, with the engine's node behind it.
  virtual Tensor after_embedding(Tensor embedded) { return embedded; }
  virtual void before_layer(int unit, int layer) = 0;
  virtual void after_layer(int unit, int layer) = 0;
  // The type to which the engine casts what a layer gets beside hidden states; none: as the model made it.
  [[nodiscard]] virtual std::optional<DType> argument_type() const { return {}; }
  // The last layer's output on its way to the final norm; the logits.
  virtual Tensor before_head(Tensor hidden) { return hidden; }
  virtual Tensor after_head(Tensor logits) { return logits; }
  // Around one call of the head by a model that calls it chunk by chunk; `first` and `last` of them.
  virtual Tensor before_output(Tensor chunk) { return chunk; }
  virtual Tensor after_output(Tensor logits, bool first, bool last) {
    static_cast<void>(first), static_cast<void>(last);
    return logits;
  }
  // The model has returned its logits: its loss is computed outside of it.
  virtual void after_logits() {}
  virtual void after_model() = 0;  // the model's forward with its loss is over
};

class KeyCache;
struct TowerForward;

// output_hidden_states=True: what each layer of a model gets.
class HiddenStates {
 public:
  void keep(Recorder& r, const Tensor& hidden) { states_.push_back({r.writer().unit(), hidden}); }
  // Accelerate's fp32 copies of all, and of `last`, take their place.
  void convert(Recorder& r, const Tensor& last);
  // Lets go of everything.
  void release(Recorder& r);

 private:
  struct State {
    int unit;
    Tensor state;
  };
  void release_states(Recorder& r);

  std::vector<State> states_;
  Tensor last_;
};

struct Forward {
  Recorder& r;
  const ModelSpec& model;
  const TrainingPlan& plan;
  const Dims& dims;
  const Items& items;
  DType stream = DType::bf16;  // type of the embedding's output
  double attention_dropout = 0, hidden_dropout = 0;
  ForwardHooks* hooks = nullptr;
  InputKeeper* checkpoint_inputs = nullptr;
  HiddenStates* hidden_states = nullptr;  // where the model keeps them for its outputs
  bool adapters = true;                   // false: PEFT's disable_adapter(), the base model alone
  Parameter* input_leaf = nullptr;  // enable_input_require_grads: the embedding's output is made to need a gradient
  double embedding_dropout = 0;
  std::vector<Tensor> locals{};                   // local variables of the model's forward, which live until it returns
  std::int64_t multiprocessors = 108;             // of the card: kernels that make partial results make one each
  std::vector<Tensor>* loop_variables = nullptr;  // what the loop holds of the model's outputs until the next forward
  Tensor position_ids{}, batch_mask{};            // where the batch brings them
  bool quiet = false;                             // the moment is the caller's: the forward begins none of its own
  Tensor position_bias{}, cross_bias{};           // t5: what a stack's first layer makes for all of its layers
  Tensor encoder_states{};                        // what the encoder returned: the model's forward holds it to its end
  std::vector<std::unique_ptr<Parameter>> leaves{};  // tensors that the forward makes and that need a gradient
  PromptEncoder* prompt = nullptr;                   // of the virtual tokens before the text
  KeyCache* cache = nullptr;                         // of keys and values, where the model has one
  Tensor labels{};                                   // of text and virtual tokens, where the latter exist
  std::vector<Tensor> caller_locals{};               // local variables of the code that calls the model
  Tensor layer_inputs{}, layer_input{};  // gemma4: what all layers get beside hidden states; the part of the next one
  std::array<Tensor, 4>
      shared_keys{};  // gemma4: keys and values of full layers, then of sliding ones, for later layers
  Tensor pixels{};    // of the batch's images
  std::shared_ptr<TowerForward> tower{};  // that sees them
  Tensor
      second_output{};  // attention weights in the tuple of the last layer: the loops of bloom, falcon, gpt_neo hold it

  // Whether a row holds documents that must not see each other: the model then makes their mask, unless its kernel takes their
  // boundaries (flash attention's variable lengths).
  [[nodiscard]] bool joins_documents() const;
  // Whether a padding mask means that padding is taken out before the kernel and put back after it: flash attention's package, which
  // runs in 16 bits (torch's own flash kernel takes no mask, so a plan that forces flash and has one means the package).
  [[nodiscard]] bool unpads() const;
  void moment(std::string_view name) const {
    if (!quiet) r.writer().moment(name);
  }
  // Tokens of a row that are attended to.
  [[nodiscard]] Size keys() const { return dims.s + dims.past; }
  // Whether the batch has one row: heads of a transposed view then lie as a matrix product wants them.
  [[nodiscard]] bool one_row() const { return r.symbols().equal(dims.b, Size(1)); }
};

// The keyword arguments that the model passes to every layer; checkpointed layers hold them until their backward.
struct LayerInputs {
  Tensor mask, local_mask;  // attention masks, when the kernel needs one
  Tensor cos, sin, local_cos, local_sin;
  Tensor position_ids;
  Tensor extra;  // alibi, position bias
};

// One layer as its program sees it.
struct LayerContext {
  Modules& modules;
  const LayerKind& kind;
  const KindDims& dims;
};

}  // namespace membill
