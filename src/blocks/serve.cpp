#include "blocks/serve.h"

#include <vector>

namespace membill {
namespace {

constexpr std::int64_t kPrefillChunk =
    8192;  // tokens of a prefill forward: vllm max_num_batched_tokens, sglang chunked_prefill_size
constexpr std::int64_t kScaleBytes = 4;  // lmdeploy int8: a scale and a zero point in fp16, for each head of a token

class Pages {
 public:
  Pages(Forward& f, const ModelModules& modules, const Size& rows, const Size& tokens)
      : f_(f), r_(f.r), modules_(modules), rows_(rows), tokens_(tokens), item_(r_.writer().item("kv_cache")) {}

  void allocate() {
    for (const UnitModules& unit : modules_.units) {
      r_.writer().visit(unit.unit, true);
      for (std::size_t layer = 0; layer < unit.layers.size(); ++layer) {
        const Size bytes = layer_bytes(unit, static_cast<std::size_t>(unit.kinds[layer]));
        if (!bytes.is_zero())
          pool_.push_back({unit.unit, r_.empty({bytes, Size(1)}, DType::uint8, "pages of a layer", item_)});
      }
    }
    r_.writer().visit(TraceWriter::kNoUnit, true);
  }

  void clear() {
    for (Entry& entry : pool_) {
      r_.writer().visit(entry.unit, true);
      entry.pages.drop();
    }
    r_.writer().visit(TraceWriter::kNoUnit, true);
  }

 private:
  struct Entry {
    int unit;
    Tensor pages;
  };

  [[nodiscard]] Size layer_bytes(const UnitModules& unit, std::size_t kind) const {
    const AttentionShape& attention = f_.model.sections[unit.section].kinds[kind].attention;
    if (attention.heads == 0) return {};
    const KindDims& dims = f_.dims.kinds[unit.section][kind];
    const Size slots = rows_ * pages_of(attention) * Size(f_.plan.inference.block);
    if (attention.latent) return slots * Size((attention.kv_lora_rank + attention.rope_head_dim) * width());
    const bool scaled = f_.plan.inference.engine == "lmdeploy" && f_.plan.inference.kv_cache == "int8";
    const Size scales = scaled ? Size(2 * kScaleBytes) : Size(0);
    return slots * dims.k * ((dims.d + dims.v) * Size(width()) + scales);
  }

  [[nodiscard]] Size pages_of(const AttentionShape& attention) const {
    const Size block(f_.plan.inference.block);
    const bool frees = f_.plan.inference.engine != "lmdeploy";
    const std::optional<std::int64_t>& window = attention.sliding_window;
    if (frees && window && r_.symbols().at_least(tokens_, *window + f_.plan.inference.block))
      return r_.symbols().ceil_div(Size(*window), block) + Size(1);
    return r_.symbols().ceil_div(tokens_, block);
  }

  [[nodiscard]] std::int64_t width() const {
    const std::string& word = f_.plan.inference.kv_cache;
    if (word == "fp8" || word == "int8") return 1;
    return word == "auto" ? bytes_per_element(f_.stream) : 2;
  }

  Forward& f_;
  Recorder& r_;
  const ModelModules& modules_;
  Size rows_, tokens_;
  ItemId item_;
  std::vector<Entry> pool_;
};

// One chunk of prompts as one row, then the logits of every row's next token.
void run_chunk(Forward& caller, const Architecture& architecture, ModelModules& modules, const Size& rows,
               const Size& tokens) {
  Recorder& r = caller.r;
  const Size all = rows * tokens;
  Dims dims = caller.dims;
  dims.b = dims.samples = Size(1);
  dims.s = dims.N = r.symbols().at_least(all, kPrefillChunk) ? Size(kPrefillChunk) : all;
  Forward f{r, caller.model, caller.plan, dims, caller.items, caller.stream};
  {
    const Tensor ids = r.empty({dims.N, Size(1)}, DType::int64, "token ids");
    const Tensor hidden = decoder_forward(f, architecture, modules, ids);
  }
  r.set_items(f.items.loss_logits);
  const Tensor logits =
      architecture.head(f, modules.outer, r.empty({rows, dims.h}, caller.stream, "final states of the last tokens"));
  const Tensor wide = r.empty(logits.shape(), DType::fp32, "logits of the next tokens, fp32");
  const Tensor probabilities = r.empty(logits.shape(), DType::fp32, "probabilities of the next tokens");
}

}  // namespace

bool has_paged_cache(const InferencePlan& plan) { return plan.engine != "transformers"; }

void serve_from_pages(Forward& f, const Architecture* architecture, ModelModules& modules, const Size& rows,
                      const Size& tokens) {
  const bool grad = f.r.grad_enabled();
  f.r.set_grad_enabled(false);
  Pages pages(f, modules, rows, tokens);
  pages.allocate();
  if (architecture != nullptr) run_chunk(f, *architecture, modules, rows, tokens);
  pages.clear();
  f.r.set_grad_enabled(grad);
}

}  // namespace membill
