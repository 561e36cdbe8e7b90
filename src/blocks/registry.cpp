// Which program runs which model type: one line each.
#include <array>
#include <span>

#include "blocks/apertus.h"
#include "blocks/architecture.h"
#include "blocks/bart.h"
#include "blocks/bert.h"
#include "blocks/bloom.h"
#include "blocks/cohere.h"
#include "blocks/deberta.h"
#include "blocks/encoders.h"
#include "blocks/falcon.h"
#include "blocks/falcon_h1.h"
#include "blocks/fused_llama.h"
#include "blocks/gemma.h"
#include "blocks/gpt2.h"
#include "blocks/gpt_bigcode.h"
#include "blocks/gpt_neo.h"
#include "blocks/gpt_neox.h"
#include "blocks/gpt_oss.h"
#include "blocks/gptj.h"
#include "blocks/granite.h"
#include "blocks/granite_hybrid.h"
#include "blocks/latent_attention.h"
#include "blocks/lfm2.h"
#include "blocks/liger.h"
#include "blocks/litgpt.h"
#include "blocks/llama.h"
#include "blocks/llama4.h"
#include "blocks/llama_variants.h"
#include "blocks/megatron.h"
#include "blocks/moe.h"
#include "blocks/mpt.h"
#include "blocks/multi_axis_rotary.h"
#include "blocks/nemotron.h"
#include "blocks/nemotron_h.h"
#include "blocks/olmo.h"
#include "blocks/opt.h"
#include "blocks/phi.h"
#include "blocks/qwen_hybrid.h"
#include "blocks/t5.h"
#include "blocks/torchtitan.h"
#include "blocks/torchtune.h"

namespace membill {
namespace {

const LlamaArchitecture kLlama;
const GemmaArchitecture kGemma;
const Gemma2Architecture kGemma2;
const Gemma3Architecture kGemma3;
const Gemma4Architecture kGemma4;
const GraniteArchitecture kGranite;
const OlmoArchitecture kOlmo;
const Olmo2Architecture kOlmo2;
const CohereArchitecture kCohere;
const Cohere2Architecture kCohere2;
const Phi3Architecture kPhi3;
const GlmArchitecture kGlm;
const Glm4Architecture kGlm4;
const MixtralArchitecture kMixtral;
constexpr RouterShape kQwenRouter{.explicit_type = true, .normalise = false, .back = true};
const MixtralArchitecture kQwen3Moe(kQwenRouter);
const Qwen2MoeArchitecture kQwen2Moe(kQwenRouter);
const OlmoeArchitecture kOlmoe(kQwenRouter);
const QwenHybridArchitecture kQwen3Next(kQwenRouter);
constexpr RouterShape kNormalisingRouter{.explicit_type = true, .normalise = true, .back = true};
const MultiAxis<QwenHybridArchitecture, interleaved_tables> kQwen35(kNormalisingRouter);
const MultiAxis<Qwen2VlArchitecture, sectioned_tables, false> kQwen2Vl;
const MultiAxis<LlamaArchitecture, interleaved_tables> kQwen3Vl;
const MultiAxis<MixtralArchitecture, interleaved_tables> kQwen3VlMoe(kNormalisingRouter);
const GraniteMoeArchitecture kGraniteMoe;
const GraniteHybridArchitecture kGraniteHybrid;
const Olmo3Architecture kOlmo3;
const SeedOssArchitecture kSeedOss;
const Exaone4Architecture kExaone4;
const Ernie45Architecture kErnie45;
const HunyuanArchitecture kHunyuan;
const Ministral3Architecture kMinistral3;
const Gpt2Architecture kGpt2;
const GptNeoArchitecture kGptNeo;
const GptNeoxArchitecture kGptNeox;
const GptBigCodeArchitecture kGptBigCode;
const GptJArchitecture kGptJ;
const CodeGenArchitecture kCodeGen;
const MptArchitecture kMpt;
const DeepseekV2Architecture kDeepseekV2;
const DeepseekV3Architecture kDeepseekV3;
const Glm4MoeArchitecture kGlm4Moe;
const MinimaxM2Architecture kMinimaxM2;
const BartArchitecture kBart(false), kMbart(true);
const BertArchitecture kBert;
const BertArchitecture kRoberta({.stem = "roberta.", .counts_positions = true});
const DebertaArchitecture kDeberta;
const ElectraArchitecture kElectra;
const DistilBertArchitecture kDistilBert;
const ModernBertArchitecture kModernBert;
const ApertusArchitecture kApertus;
const ArceeArchitecture kArcee;
const Lfm2Architecture kLfm2;
const NemotronArchitecture kNemotron;
const NemotronHArchitecture kNemotronH;
const GptOssArchitecture kGptOss;
const Llama4Architecture kLlama4;
const PhimoeArchitecture kPhimoe;
const Ernie45MoeArchitecture kErnie45Moe;
const OptArchitecture kOpt;
const BloomArchitecture kBloom;
const FalconArchitecture kFalcon;
const FalconH1Architecture kFalconH1;
const PhiArchitecture kPhi;
const StableLmArchitecture kStableLm;
const Starcoder2Architecture kStarcoder2;
const T5Architecture kT5;

const Liger<LlamaArchitecture> kLigerLlama;
const Liger<GemmaArchitecture> kLigerGemma;
const Liger<Gemma2Architecture> kLigerGemma2({.norm_in_place = false});
const Liger<Gemma3Architecture> kLigerGemma3({.norm_in_place = false});
const Liger<GraniteArchitecture> kLigerGranite({.fused_loss = false});
const Liger<Olmo2Architecture> kLigerOlmo2({.norm_in_place = false, .head_norms_of_instances = false});
const Liger<Phi3Architecture> kLigerPhi3;
const Liger<Glm4Architecture> kLigerGlm4({.rotary = false, .norm_in_place = false});

const LitgptArchitecture kLitgpt;
const TorchtuneArchitecture kTunePairs(TuneRotary::pairs), kTuneHalves(TuneRotary::halves);

const TorchtitanArchitecture kTorchtitan;

const MegatronArchitecture kMegatron;

struct Row {
  std::string_view model_type;
  const Architecture* program;
};

const std::array kPrograms = {
    Row{"apertus", &kApertus},
    Row{"arcee", &kArcee},
    Row{"bart", &kBart},
    Row{"bert", &kBert},
    Row{"bloom", &kBloom},
    Row{"camembert", &kRoberta},
    Row{"cohere", &kCohere},
    Row{"cohere2", &kCohere2},
    Row{"deberta-v2", &kDeberta},
    Row{"deepseek_v2", &kDeepseekV2},
    Row{"deepseek_v3", &kDeepseekV3},
    Row{"distilbert", &kDistilBert},
    Row{"electra", &kElectra},
    Row{"ernie4_5", &kErnie45},
    Row{"ernie4_5_moe", &kErnie45Moe},
    Row{"exaone4", &kExaone4},
    Row{"falcon", &kFalcon},
    Row{"falcon_h1", &kFalconH1},
    Row{"gemma", &kGemma},
    Row{"gemma2", &kGemma2},
    Row{"gemma3_text", &kGemma3},
    Row{"gemma4_text", &kGemma4},
    Row{"generic", &kLlama},  // --params models have llama's shape
    Row{"glm", &kGlm},
    Row{"glm4", &kGlm4},
    Row{"glm4_moe", &kGlm4Moe},
    Row{"glm4_moe_lite", &kDeepseekV3},
    Row{"gpt2", &kGpt2},
    Row{"gpt_bigcode", &kGptBigCode},
    Row{"gpt_neo", &kGptNeo},
    Row{"gpt_neox", &kGptNeox},
    Row{"gpt_oss", &kGptOss},
    Row{"gptj", &kGptJ},
    Row{"codegen", &kCodeGen},
    Row{"granite", &kGranite},
    Row{"granitemoe", &kGraniteMoe},
    Row{"granitemoehybrid", &kGraniteHybrid},
    Row{"hunyuan_v1_dense", &kHunyuan},
    Row{"kimi_k2", &kDeepseekV3},
    Row{"lfm2", &kLfm2},
    Row{"llama", &kLlama},
    Row{"llama4_text", &kLlama4},
    Row{"minimax_m2", &kMinimaxM2},
    Row{"mbart", &kMbart},
    Row{"ministral3", &kMinistral3},
    Row{"mistral", &kLlama},
    Row{"mixtral", &kMixtral},
    Row{"mllama_text_model", &kLlama},
    Row{"modernbert", &kModernBert},
    Row{"mpt", &kMpt},
    Row{"nemotron", &kNemotron},
    Row{"nemotron_h", &kNemotronH},
    Row{"olmo", &kOlmo},
    Row{"olmo2", &kOlmo2},
    Row{"olmo3", &kOlmo3},
    Row{"olmoe", &kOlmoe},
    Row{"opt", &kOpt},
    Row{"phi", &kPhi},
    Row{"phi3", &kPhi3},
    Row{"phimoe", &kPhimoe},
    Row{"qwen2", &kLlama},
    Row{"qwen2_5_vl_text", &kQwen2Vl},
    Row{"qwen2_moe", &kQwen2Moe},
    Row{"qwen2_vl_text", &kQwen2Vl},
    Row{"qwen3", &kLlama},
    Row{"qwen3_5_moe_text", &kQwen35},
    Row{"qwen3_5_text", &kQwen35},
    Row{"qwen3_moe", &kQwen3Moe},
    Row{"qwen3_next", &kQwen3Next},
    Row{"qwen3_vl_moe_text", &kQwen3VlMoe},
    Row{"qwen3_vl_text", &kQwen3Vl},
    Row{"roberta", &kRoberta},
    Row{"seed_oss", &kSeedOss},
    Row{"smollm3", &kLlama},
    Row{"stablelm", &kStableLm},
    Row{"starcoder2", &kStarcoder2},
    Row{"t5", &kT5},
    Row{"mt5", &kT5},
    Row{"umt5", &kT5},
    Row{"xlm-roberta", &kRoberta},
};

const std::array kLigerPrograms = {
    Row{"gemma", &kLigerGemma},   Row{"gemma2", &kLigerGemma2}, Row{"gemma3_text", &kLigerGemma3},
    Row{"generic", &kLigerLlama}, Row{"glm4", &kLigerGlm4},     Row{"granite", &kLigerGranite},
    Row{"llama", &kLigerLlama},   Row{"mistral", &kLigerLlama}, Row{"olmo2", &kLigerOlmo2},
    Row{"phi3", &kLigerPhi3},     Row{"qwen2", &kLigerLlama},   Row{"qwen3", &kLigerLlama},
};

const std::array kTorchtunePrograms = {
    Row{"generic", &kTunePairs}, Row{"llama", &kTunePairs},  Row{"mistral", &kTunePairs},
    Row{"qwen2", &kTuneHalves},  Row{"qwen3", &kTuneHalves},
};

const std::array kLitgptPrograms = {Row{"generic", &kLitgpt}, Row{"llama", &kLitgpt}, Row{"mistral", &kLitgpt},
                                    Row{"qwen2", &kLitgpt}, Row{"qwen3", &kLitgpt}};

const std::array kTorchtitanPrograms = {Row{"generic", &kTorchtitan}, Row{"llama", &kTorchtitan}};

// Models that Megatron's GPT can be: its own sizes and options describe them.
const std::array kMegatronPrograms = {
    Row{"deepseek_v2", &kMegatron},   Row{"deepseek_v3", &kMegatron},
    Row{"generic", &kMegatron},       Row{"glm4_moe", &kMegatron},
    Row{"gpt2", &kMegatron},          Row{"llama", &kMegatron},
    Row{"mistral", &kMegatron},       Row{"mixtral", &kMegatron},
    Row{"qwen2", &kMegatron},         Row{"qwen2_moe", &kMegatron},
    Row{"qwen3", &kMegatron},         Row{"qwen3_moe", &kMegatron},
    Row{"qwen2_vl_text", &kMegatron}, Row{"qwen2_5_vl_text", &kMegatron},
    Row{"qwen3_vl_text", &kMegatron}, Row{"qwen3_vl_moe_text", &kMegatron},
};

const Architecture* find_in(std::span<const Row> programs, std::string_view model_type) {
  for (const Row& row : programs)
    if (row.model_type == model_type) return row.program;
  return nullptr;
}

}  // namespace

const Architecture* find_architecture(std::string_view model_type, Implementation implementation) {
  if (implementation == Implementation::hf) return find_in(kPrograms, model_type);
  if (implementation == Implementation::liger) return find_in(kLigerPrograms, model_type);
  if (implementation == Implementation::torchtune) return find_in(kTorchtunePrograms, model_type);
  if (implementation == Implementation::torchtitan) return find_in(kTorchtitanPrograms, model_type);
  if (implementation == Implementation::litgpt) return find_in(kLitgptPrograms, model_type);
  if (implementation == Implementation::megatron) return find_in(kMegatronPrograms, model_type);
  return nullptr;
}

bool writes_attention_out(std::string_view model_type, AttentionKernel asked) {
  if (model_type == "gpt_neo") return asked != AttentionKernel::flash;  // it has a class for flash attention's package
  return model_type == "mpt" || model_type == "gpt_oss" || model_type == "deberta-v2";
}

std::span<const std::string_view> modelled_types() {
  static const auto kNames = [] {
    std::array<std::string_view, kPrograms.size()> list;
    for (std::size_t i = 0; i < kPrograms.size(); ++i) list.at(i) = kPrograms.at(i).model_type;
    return list;
  }();
  return kNames;
}

}  // namespace membill
