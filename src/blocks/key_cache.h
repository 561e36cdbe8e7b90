// A model's cache of keys and values as training meets it (transformers 5.24 cache_utils.py DynamicCache): one that begins with the
// keys and values of a prefix, or one that a model fills though no token will ever be generated.
#pragma once

#include <vector>

#include "blocks/causal_lm.h"

namespace membill {

struct AttentionCall;

// Held by the code that calls the model until the forward returns.
class KeyCache {
 public:
  explicit KeyCache(Forward& f) : f_(f) {}
  ~KeyCache();
  KeyCache(const KeyCache&) = delete;
  KeyCache& operator=(const KeyCache&) = delete;

  // PeftModel.get_prompt, DynamicCache(past_key_values): the encoder's output is cut and copied layer by layer.
  void begin_with_prefix(PromptEncoder& encoder, std::vector<UnitModules>& units);

  // DynamicLayer.update of the layer that runs: its keys and values behind what the cache has of it. They take the place of the
  // caller's.
  void extend(const AttentionCall& call, Tensor& keys, Tensor& values);

  // Holds a state of the layer that runs: a linear attention's.
  void hold(const Tensor& state);

 private:
  struct Entry {
    int unit;
    Tensor keys, values;
    std::vector<Tensor> states;
  };

  void split(const Tensor& past, std::vector<UnitModules>& units);
  Tensor copied(const Tensor& part, const char* label);

  Forward& f_;
  std::vector<Entry> layers_;  // of the layers that are simulated, in order
  std::size_t next_ = 0, prefixed_ = 0;
};

// Whether this forward fills a cache: Trainer and training scripts turn it off in the configuration of the model, which does not reach
// the text part of a class that has one of its own; checkpointing turns it off there, TRL's trainers by an argument of each call.
[[nodiscard]] bool fills_cache(const Forward& f);

// Whether gradients of keys and values of a layer of `kind` come as the cache holds them, heads before tokens: flash attention's.
[[nodiscard]] bool turns_keys(const Forward& f, const LayerKind& kind);

}  // namespace membill
