// Encoders as Transformers 5.24 runs them: bert, roberta, xlm-roberta (models/<type>/modeling_<type>.py), with the head that the census
// has: masked words, a classifier, or the pooler.
#pragma once

#include <string>

#include "blocks/architecture.h"

namespace membill {

class BertArchitecture : public Architecture {
 public:
  // What roberta does otherwise: names, and position ids that are counted from the token ids.
  struct Names {
    std::string stem = "bert.";
    bool counts_positions = false;
  };
  BertArchitecture() = default;
  explicit BertArchitecture(Names names) : names_(std::move(names)) {}

  [[nodiscard]] Tensor embed(Forward& f, const Modules& outer, const Tensor& ids) const override;
  [[nodiscard]] LayerInputs prepare(Forward& f, const Modules& outer, const Tensor& hidden) const override;
  [[nodiscard]] Tensor layer(Forward& f, const LayerContext& layer, Tensor hidden,
                             const LayerInputs& inputs) const override;
  [[nodiscard]] Tensor finish(Forward& f, const Modules& outer, Tensor hidden) const override;
  [[nodiscard]] bool causal() const override { return false; }
  [[nodiscard]] Tensor loss(Forward& f, const Modules& outer, Tensor hidden, const Tensor& labels,
                            Tensor* outputs) const override;

 protected:
  // The module called `name` of the base model, under its name inside of a class with a head or alone.
  [[nodiscard]] Module* base(const Modules& outer, const std::string& name) const;
  // Whether the class has a head that predicts masked words.
  [[nodiscard]] virtual bool predicts_words(const Modules& outer) const;
  [[nodiscard]] virtual Tensor words(Forward& f, const Modules& outer, const Tensor& hidden) const;
  [[nodiscard]] virtual Tensor classify(Forward& f, const Modules& outer, const Tensor& hidden) const;
  // What ends a block: a dense layer, dropout, and the norm of its sum with the residual stream.
  [[nodiscard]] static Tensor end_block(Forward& f, const Modules& modules, const std::string& name, const Tensor& x,
                                        const Tensor& residual);
  // The first token of each row.
  [[nodiscard]] static Tensor first_tokens(Forward& f, const Tensor& hidden);
  // What a classifier is trained on.
  [[nodiscard]] static Tensor labels_of_rows(Forward& f);

 private:
  Names names_;
};

}  // namespace membill
