#include "blocks/torchtune_distill.h"

#include "blocks/stage_args.h"
#include "blocks/torchtune.h"

namespace membill {
namespace {

class Distillation {
 public:
  explicit Distillation(Forward& f) : f_(f), r_(f.r) {}

  [[nodiscard]] std::vector<Tensor> logits_of(Forward& f, const Architecture& architecture, ModelModules& modules,
                                              const Tensor& ids) const {
    if (f.hooks != nullptr) f.hooks->before_model();
    Tensor hidden = decoder_forward(f, architecture, modules, ids);
    r_.set_saved_on_host(nullptr);  // the hook leaves the head out
    std::vector<Tensor> logits = torchtune_logits(f, architecture, modules.outer, std::move(hidden));
    if (f.hooks != nullptr) f.hooks->after_model();
    return logits;
  }

  [[nodiscard]] std::vector<Tensor> taught(const Teacher& teacher, const Tensor& ids) const {
    Forward f{r_, teacher.spec, teacher.plan, teacher.dims, f_.items, f_.stream};
    f.hooks = teacher.model.hooks;
    f.quiet = true;
    const bool grad = r_.grad_enabled();
    ParameterUse* const use = r_.parameter_use();
    r_.set_grad_enabled(false);
    r_.set_parameter_use(teacher.model.parameter_use);
    std::vector<Tensor> logits = logits_of(f, teacher.architecture, *teacher.model.modules, ids);
    r_.set_parameter_use(use);
    r_.set_grad_enabled(grad);
    return logits;
  }

  [[nodiscard]] Tensor loss(const std::vector<Tensor>& student, const std::vector<Tensor>& teacher,
                            Divergence way) const {
    r_.set_items(f_.items.loss_probabilities);
    Tensor sum;
    for (std::size_t i = 0; i < student.size(); ++i) {
      Tensor part = of_chunk(student[i], teacher[i], way);
      sum = sum.defined() ? r_.add(std::move(sum), std::move(part)) : std::move(part);
    }
    return sum;
  }

 private:
  [[nodiscard]] Tensor of_chunk(const Tensor& student, const Tensor& teacher, Divergence way) const {
    if (way == Divergence::forward) return forward(student, teacher);
    if (way == Divergence::reverse) return reverse(student, teacher);
    const Tensor first = r_.mul_scalar(forward(student, teacher));
    return r_.add(first, r_.mul_scalar(reverse(student, teacher)));
  }

  [[nodiscard]] Tensor forward(const Tensor& student, const Tensor& teacher) const {
    const Tensor taught = r_.softmax(teacher, DType::fp32);
    const Tensor infinite = is_infinite(student);
    const Tensor learnt = log_softmax(student);
    const Tensor products = masked_products(taught, learnt, infinite);
    return masked_sum(products);
  }

  [[nodiscard]] Tensor reverse(const Tensor& student, const Tensor& teacher) const {
    const Tensor likely = r_.softmax(student, DType::fp32);
    const Tensor learnt = log_softmax(student), taught = log_softmax(teacher);
    const Tensor infinite = either_infinite(student, teacher);
    Tensor products = masked_products(likely, taught, infinite);
    products = r_.sub_in_place(std::move(products), masked_products(likely, learnt, infinite));
    return masked_sum(products);
  }

  [[nodiscard]] Tensor log_softmax(const Tensor& logits) const { return r_.log_softmax(r_.cast(logits, DType::fp32)); }

  // torch.isinf: of the absolute values.
  [[nodiscard]] Tensor is_infinite(const Tensor& logits) const {
    const Tensor absolute = r_.empty(logits.shape(), logits.dtype(), "absolute values of the logits");
    return r_.empty(logits.shape(), DType::boolean, "which logits are infinite");
  }

  [[nodiscard]] Tensor either_infinite(const Tensor& student, const Tensor& teacher) const {
    const Tensor first = is_infinite(student), second = is_infinite(teacher);
    return r_.empty(student.shape(), DType::boolean, "which logits are infinite");
  }

  [[nodiscard]] Tensor masked_products(const Tensor& a, const Tensor& b, const Tensor& mask) const {
    return r_.masked_fill(r_.mul(a, b), mask, "products, masked");
  }

  // -(x.sum(-1) * mask).sum()
  [[nodiscard]] Tensor masked_sum(const Tensor& products) const {
    const Tensor rows = r_.sum_of_rows(products);
    const Tensor counts = r_.empty(rows.shape(), DType::int32, "positions that count");
    const Tensor weighed = r_.mul(rows, counts);
    Tensor sum = r_.empty({Size(1), Size(1)}, DType::fp32, "divergence");
    if (r_.needs_node({&weighed}))
      r_.record({&sum}, {r_.edge(weighed)}, [shape = weighed.shape(), type = weighed.dtype()](Recorder& r, Gradients&) {
        return Gradients{r.placeholder(shape, type)};
      });
    return r_.neg(std::move(sum));
  }

  Forward& f_;
  Recorder& r_;
};

}  // namespace

bool runs_torchtune_distillation(const TrainingPlan& plan) {
  return plan.implementation == Implementation::torchtune && plan.stage == Stage::distill;
}

std::optional<Divergence> divergence(const TrainingPlan& plan) {
  const std::string word = stage_word(plan, "kd_loss");
  if (word.empty() || word == "forward") return Divergence::forward;
  if (word == "reverse") return Divergence::reverse;
  if (word == "symmetric") return Divergence::symmetric;
  return std::nullopt;
}

Tensor torchtune_distillation(Forward& f, const Architecture& architecture, ModelModules& student,
                              const Teacher& teacher, const Tensor& ids) {
  const Distillation distillation(f);
  Recorder& r = f.r;
  const std::vector<Tensor> learnt = distillation.logits_of(f, architecture, student, ids);
  f.moment("teacher");
  const std::vector<Tensor> taught = distillation.taught(teacher, ids);
  f.moment("loss");
  const Tensor labels = r.empty({f.dims.N, Size(1)}, DType::int64, "shifted labels");
  const Tensor diverged = distillation.loss(learnt, taught, divergence(f.plan).value_or(Divergence::forward));
  const Tensor missed = torchtune_cross_entropy(f, learnt, labels);
  return r.add(r.mul_scalar(missed), r.mul_scalar(diverged), "loss");
}

}  // namespace membill
