#include "blocks/generate.h"

#include <vector>

namespace membill {
namespace {

// Keys and values of the layers, as a dynamic cache holds them: each layer joins its new ones to the old, first the keys.
class CacheHooks : public ForwardHooks {
 public:
  CacheHooks(Recorder& recorder, const ModelSpec& model, const ModelModules& modules)
      : r_(recorder), model_(model), modules_(modules), item_(recorder.writer().item("kv_cache")) {}

  // The next forward leaves `tokens` tokens of each row in the cache.
  void expect(Forward& f, const Size& tokens) {
    inner_ = f.hooks;
    f.hooks = this;
    forward_ = &f;
    tokens_ = tokens;
    next_ = 0;
  }

  void before_model() override {
    if (inner_ != nullptr) inner_->before_model();
  }
  // A layer's attention joins them; its MLP runs beside the joined ones.
  void before_layer(int unit, int layer) override {
    if (inner_ != nullptr) inner_->before_layer(unit, layer);
    if (next_ == entries_.size()) entries_.push_back({unit, {}, {}});
    Entry& entry = entries_[next_++];
    const Shapes shapes = shapes_of(unit_modules(unit), static_cast<std::size_t>(layer));
    const DType type = r_.autocast().value_or(forward_->stream);
    entry.keys = r_.empty(shapes.keys, shapes.turned ? forward_->stream : type, "keys of the cache", item_);
    entry.values = r_.empty(shapes.values, type, "values of the cache", item_);
  }
  void after_layer(int unit, int layer) override {
    if (inner_ != nullptr) inner_->after_layer(unit, layer);
  }
  void after_model() override {
    if (inner_ != nullptr) inner_->after_model();
  }

  void clear() {
    for (Entry& entry : entries_) {
      r_.writer().visit(entry.unit, true);
      entry.keys.drop();
      entry.values.drop();
    }
    r_.writer().visit(TraceWriter::kNoUnit, true);
    entries_.clear();
  }

 private:
  struct Entry {
    int unit;
    Tensor keys, values;
  };
  struct Shapes {
    Shape keys, values;
    bool turned;  // keys have gone through rotary tables in the stream's type, which autocast leaves as they are
  };

  [[nodiscard]] const UnitModules& unit_modules(int unit) const {
    for (const UnitModules& candidate : modules_.units)
      if (candidate.unit == unit) return candidate;
    return modules_.units.front();
  }

  [[nodiscard]] Shapes shapes_of(const UnitModules& unit, std::size_t layer) const {
    const auto kind = static_cast<std::size_t>(unit.kinds[layer]);
    const KindDims& dims = forward_->dims.kinds[unit.section][kind];
    const std::optional<std::int64_t> window = model_.sections[unit.section].kinds[kind].attention.sliding_window;
    const bool slides = window && r_.symbols().at_least(tokens_, *window);
    const Size rows = forward_->dims.b * (slides ? Size(*window - 1) : tokens_) * dims.k;
    return {{rows, dims.d}, {rows, dims.v}, !dims.rotary.is_zero()};
  }

  Recorder& r_;
  const ModelSpec& model_;
  const ModelModules& modules_;
  ItemId item_;
  const Forward* forward_ = nullptr;
  ForwardHooks* inner_ = nullptr;  // of the engine
  Size tokens_;
  std::size_t next_ = 0;
  std::vector<Entry> entries_;
};

class Generation {
 public:
  Generation(Forward& caller, const Architecture& architecture, ModelModules& modules, std::optional<DType> autocast)
      : caller_(caller),
        r_(caller.r),
        architecture_(architecture),
        modules_(modules),
        autocast_(autocast),
        plan_(caller.plan),
        cache_(caller.r, caller.model, modules) {
    plan_.checkpointing.mode = Checkpointing::none;
  }

  // The forward of `tokens` tokens of each row, after which `cached` are in the cache; one token of each row is sampled.
  void step(const Size& rows, const Size& tokens, const Size& cached) {
    Dims dims = caller_.dims;
    dims.b = dims.samples = rows, dims.s = tokens, dims.N = rows * tokens;
    Forward f{r_, caller_.model, plan_, dims, caller_.items, caller_.stream};
    f.hooks = caller_.hooks;
    cache_.expect(f, cached);
    const Tensor ids = r_.empty({dims.N, Size(1)}, DType::int64, "token ids");
    if (autocast_) r_.begin_autocast(*autocast_);
    cache_.before_model();
    Tensor logits = [&] {
      const Tensor hidden = decoder_forward(f, architecture_, modules_, ids);
      r_.set_items(f.items.loss_logits);
      return architecture_.head(f, modules_.outer, r_.view(hidden, {rows, dims.h}));
    }();
    cache_.after_model();
    if (autocast_) r_.end_autocast();
    sample(std::move(logits));
  }

  void finish() { cache_.clear(); }

 private:
  // The last position's logits, their fp32 copies, what processors make of them, probabilities.
  void sample(Tensor logits) {
    if (autocast_) logits = r_.cast(std::move(logits), DType::fp32);
    const Tensor copy = r_.empty(logits.shape(), DType::fp32, "logits of the next token, fp32");
    const Tensor scores = r_.empty(logits.shape(), DType::fp32, "scores of the next token");
    const Tensor probabilities = r_.empty(logits.shape(), DType::fp32, "probabilities of the next token");
  }

  Forward& caller_;
  Recorder& r_;
  const Architecture& architecture_;
  ModelModules& modules_;
  std::optional<DType> autocast_;
  TrainingPlan plan_;
  CacheHooks cache_;
};

}  // namespace

Tensor generate_completions(Forward& f, const Architecture& architecture, ModelModules& modules,
                            const CompletionSizes& sizes, std::optional<DType> autocast) {
  const bool grad = f.r.grad_enabled();
  f.r.set_grad_enabled(false);
  Generation generation(f, architecture, modules, autocast);
  generation.step(sizes.rows, sizes.prompt, sizes.prompt);
  Tensor scores;
  if (sizes.keep_scores)
    scores = f.r.empty({sizes.rows * sizes.completion, f.dims.V}, DType::fp32, "scores of every token",
                       f.items.loss_logits.forward);
  generation.step(sizes.rows, Size(1), sizes.prompt + sizes.completion);
  generation.finish();
  f.r.set_grad_enabled(grad);
  return scores;
}

}  // namespace membill
