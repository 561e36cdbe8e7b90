// The list of model families: one line each.
#include "catalog/families/list.h"

namespace membill {

namespace {

using namespace census;

constexpr Family kFamilies[] = {
    {"llama", "LlamaForCausalLM", describe_llama},
    {"mistral", "MistralForCausalLM", describe_mistral},
    {"mixtral", "MixtralForCausalLM", describe_mixtral},
    {"qwen", "QWenLMHeadModel", describe_qwen},
    {"qwen2", "Qwen2ForCausalLM", describe_qwen2},
    {"qwen2_moe", "Qwen2MoeForCausalLM", describe_qwen2_moe},
    {"qwen3", "Qwen3ForCausalLM", describe_qwen3},
    {"qwen3_moe", "Qwen3MoeForCausalLM", describe_qwen3_moe},
    {"qwen3_next", "Qwen3NextForCausalLM", describe_qwen3_next},
    {"qwen3_5_text", "Qwen3_5ForCausalLM", describe_qwen3_5},
    {"qwen3_5_moe_text", "Qwen3_5MoeForCausalLM", describe_qwen3_5_moe},
    {"gemma", "GemmaForCausalLM", describe_gemma},
    {"gemma2", "Gemma2ForCausalLM", describe_gemma2},
    {"gemma3_text", "Gemma3ForCausalLM", describe_gemma3_text},
    {"gemma4_text", "Gemma4ForCausalLM", describe_gemma4_text},
    {"phi", "PhiForCausalLM", describe_phi},
    {"phi3", "Phi3ForCausalLM", describe_phi3},
    {"phimoe", "PhimoeForCausalLM", describe_phimoe},
    {"gpt2", "GPT2LMHeadModel", describe_gpt2},
    {"gpt_bigcode", "GPTBigCodeForCausalLM", describe_gpt_bigcode},
    {"gpt_neo", "GPTNeoForCausalLM", describe_gpt_neo},
    {"gpt_neox", "GPTNeoXForCausalLM", describe_gpt_neox},
    {"gptj", "GPTJForCausalLM", describe_gptj},
    {"codegen", "CodeGenForCausalLM", describe_codegen},
    {"opt", "OPTForCausalLM", describe_opt},
    {"bloom", "BloomForCausalLM", describe_bloom},
    {"falcon", "FalconForCausalLM", describe_falcon},
    {"falcon_h1", "FalconH1ForCausalLM", describe_falcon_h1},
    {"mpt", "MptForCausalLM", describe_mpt},
    {"stablelm", "StableLmForCausalLM", describe_stablelm},
    {"starcoder2", "Starcoder2ForCausalLM", describe_starcoder2},
    {"olmo", "OlmoForCausalLM", describe_olmo},
    {"olmo2", "Olmo2ForCausalLM", describe_olmo2},
    {"olmo3", "Olmo3ForCausalLM", describe_olmo3},
    {"olmoe", "OlmoeForCausalLM", describe_olmoe},
    {"granite", "GraniteForCausalLM", describe_granite},
    {"granitemoe", "GraniteMoeForCausalLM", describe_granitemoe},
    {"granitemoehybrid", "GraniteMoeHybridForCausalLM", describe_granitemoehybrid},
    {"cohere", "CohereForCausalLM", describe_cohere},
    {"cohere2", "Cohere2ForCausalLM", describe_cohere2},
    {"chatglm", "ChatGLMForConditionalGeneration", describe_chatglm},
    {"glm", "GlmForCausalLM", describe_glm},
    {"glm4", "Glm4ForCausalLM", describe_glm4},
    {"glm4_moe", "Glm4MoeForCausalLM", describe_glm4_moe},
    {"glm4_moe_lite", "Glm4MoeLiteForCausalLM", describe_glm4_moe_lite},
    {"glm_moe_dsa", "GlmMoeDsaForCausalLM", describe_glm_moe_dsa},
    {"internlm2", "InternLM2ForCausalLM", describe_internlm2},
    {"baichuan", "BaichuanForCausalLM", describe_baichuan},
    {"deepseek_v2", "DeepseekV2ForCausalLM", describe_deepseek_v2},
    {"deepseek_v3", "DeepseekV3ForCausalLM", describe_deepseek_v3},
    {"deepseek_v32", "DeepseekV32ForCausalLM", describe_deepseek_v32},
    {"kimi_k2", "DeepseekV3ForCausalLM", describe_deepseek_v3},
    {"dbrx", "DbrxForCausalLM", describe_dbrx},
    {"gpt_oss", "GptOssForCausalLM", describe_gpt_oss},
    {"smollm3", "SmolLM3ForCausalLM", describe_smollm3},
    {"seed_oss", "SeedOssForCausalLM", describe_seed_oss},
    {"minimax_m2", "MiniMaxM2ForCausalLM", describe_minimax_m2},
    {"nemotron", "NemotronForCausalLM", describe_nemotron},
    {"nemotron_h", "NemotronHForCausalLM", describe_nemotron_h},
    {"minicpm", "MiniCPMForCausalLM", describe_minicpm},
    {"exaone4", "Exaone4ForCausalLM", describe_exaone4},
    {"ernie4_5", "Ernie4_5ForCausalLM", describe_ernie4_5},
    {"ernie4_5_moe", "Ernie4_5_MoeForCausalLM", describe_ernie4_5_moe},
    {"llama4_text", "Llama4ForCausalLM", describe_llama4_text},
    {"ministral3", "Ministral3ForCausalLM", describe_ministral3},
    {"hunyuan_v1_dense", "HunYuanDenseV1ForCausalLM", describe_hunyuan_v1_dense},
    {"apertus", "ApertusForCausalLM", describe_apertus},
    {"lfm2", "Lfm2ForCausalLM", describe_lfm2},
    {"arcee", "ArceeForCausalLM", describe_arcee},
    {"mllama_text_model", "MllamaForConditionalGeneration", describe_mllama},
    {"qwen2_vl_text", "Qwen2VLForConditionalGeneration", describe_qwen2},
    {"qwen2_5_vl_text", "Qwen2_5_VLForConditionalGeneration", describe_qwen2},
    {"qwen3_vl_text", "Qwen3VLForConditionalGeneration", describe_qwen3},
    {"qwen3_vl_moe_text", "Qwen3VLMoeForConditionalGeneration", describe_qwen3_moe},
    {"bert", "BertModel", describe_bert},
    {"roberta", "RobertaModel", describe_roberta},
    {"xlm-roberta", "XLMRobertaModel", describe_xlm_roberta},
    {"camembert", "CamembertModel", describe_camembert},
    {"electra", "ElectraModel", describe_electra},
    {"distilbert", "DistilBertModel", describe_distilbert},
    {"deberta-v2", "DebertaV2Model", describe_deberta_v2},
    {"modernbert", "ModernBertModel", describe_modernbert},
    {"bart", "BartForConditionalGeneration", describe_bart},
    {"mbart", "MBartForConditionalGeneration", describe_mbart},
    {"t5", "T5ForConditionalGeneration", describe_t5},
    {"mt5", "MT5ForConditionalGeneration", describe_mt5},
    {"umt5", "UMT5ForConditionalGeneration", describe_umt5},
};

}  // namespace

std::span<const Family> families() { return kFamilies; }

const Family* find_family(std::string_view model_type) {
  for (const Family& family : kFamilies) {
    if (family.model_type == model_type) return &family;
  }
  return nullptr;
}

}  // namespace membill
