// Prefix tuning: keys and values of virtual tokens before those of the text (peft 0.21.2, transformers 5.24).
#pragma once

#include <vector>

#include "blocks/causal_lm.h"

namespace membill {

// A dynamic cache that begins with the prefix: the code that calls the model holds it until the forward returns.
class PrefixCache {
 public:
  // PeftModel.get_prompt, DynamicCache(past_key_values): the encoder's output is cut and copied layer by layer.
  PrefixCache(Forward& f, PromptEncoder& encoder, std::vector<UnitModules>& units);
  ~PrefixCache();
  PrefixCache(const PrefixCache&) = delete;
  PrefixCache& operator=(const PrefixCache&) = delete;

  // DynamicLayer.update: the layer's keys and values, and before them the prefix's.
  void extend(const KindDims& dims, Tensor& keys, Tensor& values);

 private:
  struct Entry {
    int unit;
    Tensor keys, values;
  };

  void split(const Tensor& past, std::vector<UnitModules>& units);

  Forward& f_;
  std::vector<Entry> layers_;  // of the layers that are simulated, in order
  std::size_t next_ = 0;
};

}  // namespace membill
