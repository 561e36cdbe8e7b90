#include <algorithm>
#include <set>
#include <string>

#include "base/text.h"
#include "membill/catalog.h"
#include "support/catch.h"

using namespace membill;

namespace {

std::string row_of(std::string_view name) {
  const OptimizerRow* row = find_optimizer(name);
  return row == nullptr ? "" : std::string(row->name);
}

}  // namespace

TEST_CASE("every optimizer row has a summary, a source and names of its own", "[catalogue]") {
  std::set<std::string> names;
  for (const OptimizerRow& row : optimizers()) {
    INFO(row.name);
    CHECK_FALSE(row.summary.empty());
    CHECK_FALSE(row.source.empty());
    CHECK(row.name == to_kebab(row.name));
    CHECK(find_optimizer(row.name) == &row);
    CHECK(names.insert(std::string(row.name)).second);
    for (const auto& list : {row.aliases, row.fused_aliases}) {
      for (const std::string_view alias : list) {
        INFO(alias);
        CHECK(find_optimizer(alias) == &row);
        CHECK(names.insert(to_kebab(alias)).second);
      }
    }
    std::set<std::string_view> states;
    for (const OptimizerState& state : row.states) {
      CHECK_FALSE(state.meaning.empty());
      CHECK(states.insert(state.id).second);
      const bool blockwise = state.width == StateWidth::blockwise_8bit || state.width == StateWidth::blockwise_4bit ||
                             state.width == StateWidth::fp8;
      CHECK((!blockwise || row.block > 0));
      CHECK((state.shape != StateShape::low_rank || row.default_rank > 0));
    }
    CHECK((!row.paged || row.paged_minimum > 0));
  }
}

// transformers 5.x src/transformers/training_args.py, OptimizerNames.
TEST_CASE("all of Hugging Face's optim names are known", "[catalogue]") {
  const std::string_view names[] = {"adamw_torch",
                                    "adamw_torch_fused",
                                    "adamw_torch_xla",
                                    "adamw_torch_npu_fused",
                                    "adamw_apex_fused",
                                    "adafactor",
                                    "adamw_anyprecision",
                                    "adamw_torch_4bit",
                                    "adamw_torch_8bit",
                                    "ademamix",
                                    "sgd",
                                    "adagrad",
                                    "adamw_bnb_8bit",
                                    "adamw_8bit",
                                    "ademamix_8bit",
                                    "lion_8bit",
                                    "lion_32bit",
                                    "paged_adamw_32bit",
                                    "paged_adamw_8bit",
                                    "paged_ademamix_32bit",
                                    "paged_ademamix_8bit",
                                    "paged_lion_32bit",
                                    "paged_lion_8bit",
                                    "rmsprop",
                                    "rmsprop_bnb",
                                    "rmsprop_bnb_8bit",
                                    "rmsprop_bnb_32bit",
                                    "galore_adamw",
                                    "galore_adamw_8bit",
                                    "galore_adafactor",
                                    "galore_adamw_layerwise",
                                    "galore_adamw_8bit_layerwise",
                                    "galore_adafactor_layerwise",
                                    "lomo",
                                    "adalomo",
                                    "grokadamw",
                                    "schedule_free_radam",
                                    "schedule_free_adamw",
                                    "schedule_free_sgd",
                                    "apollo_adamw",
                                    "apollo_adamw_layerwise",
                                    "stable_adamw",
                                    "adamw_hf"};
  for (const std::string_view name : names) {
    INFO(name);
    CHECK(find_optimizer(name) != nullptr);
  }
}

TEST_CASE("optimizers are found by alias, whatever the case and the dashes", "[catalogue]") {
  CHECK(row_of("AdamW") == "adamw");
  CHECK(row_of("adamw_torch_fused") == "adamw");
  CHECK(row_of("paged-adamw_8BIT") == "paged-adamw-8bit");
  CHECK(row_of("paged_adamw") == "paged-adamw-32bit");
  CHECK(row_of("adamw_bnb_8bit") == "adamw-8bit");
  CHECK(row_of("galore") == "galore-adamw");
  CHECK(row_of("adamw8") == "");
  CHECK(row_of("") == "");
  CHECK(names_fused_optimizer("adamw_torch_fused"));
  CHECK(names_fused_optimizer("ADAMW-TORCH-FUSED"));
  CHECK_FALSE(names_fused_optimizer("adamw_torch"));
  CHECK_FALSE(names_fused_optimizer("nothing"));
}

TEST_CASE("what the step of an optimizer needs is in its row", "[catalogue]") {
  const OptimizerRow& adamw = *find_optimizer("adamw");
  CHECK(adamw.states.size() == 2);
  CHECK(adamw.loop == StepTemporaries::two_one_kept);
  CHECK(adamw.foreach == StepTemporaries::one_list);
  CHECK(adamw.fused == StepTemporaries::none);
  CHECK(adamw.fused_step_counter);
  const OptimizerRow& bnb = *find_optimizer("adamw_8bit");
  CHECK(bnb.block == 256);
  CHECK(bnb.minimum_elements == 4096);
  CHECK(bnb.small_width == StateWidth::fp32);
  CHECK(bnb.code_tables == 2048);
  CHECK(bnb.embeddings_in_32bit);
  CHECK(find_optimizer("lion_8bit")->code_tables == 1024);
  CHECK(find_optimizer("paged_adamw_8bit")->paged_minimum == 100'000);
  CHECK(find_optimizer("adagrad")->at_construction);
  CHECK(find_optimizer("adamw_torch_8bit")->small_width == StateWidth::like_parameter);
  CHECK(find_optimizer("galore_adamw_layerwise")->gradients == GradientLife::one_tensor);
}

TEST_CASE("every weight format has a row", "[catalogue]") {
  std::set<std::string> names;
  for (const WeightFormatRow& row : weight_formats()) {
    INFO(row.name);
    CHECK_FALSE(row.summary.empty());
    CHECK_FALSE(row.source.empty());
    CHECK(&weight_format(row.format) == &row);
    CHECK(find_weight_format(row.name) == &row);
    CHECK(names.insert(std::string(row.name)).second);
    for (const std::string_view alias : row.aliases) {
      CHECK(find_weight_format(alias) == &row);
      CHECK(names.insert(to_kebab(alias)).second);
    }
    CHECK(row.quantized == !row.trainable);
    CHECK((!row.quantized || !row.scales.empty()));
    CHECK(row.quantized == (row.packing != Packing::none));
    CHECK((row.adapters || row.quantized));
  }
  CHECK(weight_formats().size() == static_cast<std::size_t>(WeightFormat::nvfp4) + 1);
  CHECK(find_weight_format("4bit") == nullptr);
  CHECK(find_weight_format("GPTQ_INT4")->format == WeightFormat::gptq_int4);
}

TEST_CASE("every precision regime has a row", "[catalogue]") {
  std::set<std::string> names;
  for (const RegimeRow& row : regimes()) {
    INFO(row.name);
    CHECK_FALSE(row.summary.empty());
    CHECK_FALSE(row.source.empty());
    CHECK(&regime(row.precision) == &row);
    CHECK(find_regime(row.name) == &row);
    CHECK(names.insert(std::string(row.name)).second);
    for (const std::string_view alias : row.aliases) {
      CHECK(find_regime(alias) == &row);
      CHECK(names.insert(to_kebab(alias)).second);
    }
  }
  CHECK(regimes().size() == static_cast<std::size_t>(Precision::fp8) + 1);
  CHECK(find_regime("bf16") == nullptr);
  CHECK(find_regime("bf16_mixed")->precision == Precision::amp_bf16);
}
