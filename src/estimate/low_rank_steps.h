// The loops of optimizers that project gradients or make them orthogonal: GaLore, APOLLO, Muon; and GrokAdamW's and Lion's.
#pragma once

#include "estimate/parameter_step.h"

namespace membill {

// galore-torch 1.0 adamw.py. A projection is made anew every 200 steps only; cuSOLVER's workspace of the first is not known.
class GaloreStep : public ParameterStep {
 public:
  using ParameterStep::ParameterStep;
  void update(const TrainedParameter& trained, bool has_states) override;
  [[nodiscard]] bool has_groups() const override { return true; }

 protected:
  // The projection matrix where there is none yet, and the projected gradient.
  void project(const TrainedParameter& trained, bool has_states);
  virtual void create_states(const TrainedParameter& trained);
  // AdamW's own part: states, root of the second moment, quotient.
  void adapt(const TrainedParameter& trained, bool has_states, const Shape& shape);

  Tensor gradient_, root_, update_;

 private:
  virtual void make_projection(const Shape& shape, DType type) const;
};

// galore-torch 1.0 adamw8bit.py.
class Galore8BitStep : public GaloreStep {
 public:
  using GaloreStep::GaloreStep;
  void update(const TrainedParameter& trained, bool has_states) override;
};

// apollo-torch 1.0.3 apollo.py, with a random projection.
class ApolloStep : public GaloreStep {
 public:
  using GaloreStep::GaloreStep;
  void update(const TrainedParameter& trained, bool has_states) override;

 private:
  void make_projection(const Shape& shape, DType type) const override;
  void create_states(const TrainedParameter& trained) override;
  // Elements of the factor that scales a gradient.
  [[nodiscard]] virtual Size factors(const Shape& shape) const;

  Tensor factor_, scaled_;
};

class ApolloMiniStep : public ApolloStep {
 public:
  using ApolloStep::ApolloStep;

 private:
  [[nodiscard]] Size factors(const Shape&) const override { return Size(1); }
};

// torch 2.15 torch/optim/_muon.py, and AdamW's own loop for what is no hidden matrix.
class MuonStep : public ParameterStep {
 public:
  using ParameterStep::ParameterStep;
  void update(const TrainedParameter& trained, bool has_states) override;
  [[nodiscard]] bool has_groups() const override { return true; }
  [[nodiscard]] bool makes_states_first() const override { return true; }
  void end_group() override { root_.drop(); }

 private:
  void adapt(const TrainedParameter& trained);
  [[nodiscard]] Tensor orthogonal(const Shape& shape) const;

  Tensor root_, update_;
};

// grokadamw 0.1.2: states come from the host for each parameter and go back.
class GrokStep : public ParameterStep {
 public:
  using ParameterStep::ParameterStep;
  void update(const TrainedParameter& trained, bool has_states) override;

 private:
  Tensor first_, second_, average_, gradient_;
};

// lion-pytorch 0.2.5 lion_pytorch.py.
class LionStep : public ParameterStep {
 public:
  using ParameterStep::ParameterStep;
  void update(const TrainedParameter& trained, bool has_states) override;
};

}  // namespace membill
