// The list of model families: one line each.
#include "catalog/families/list.h"

namespace membill {

namespace {

using namespace census;

constexpr Family kFamilies[] = {
    {"llama", "LlamaForCausalLM", true, describe_llama},
    {"mistral", "MistralForCausalLM", true, describe_mistral},
    {"mixtral", "MixtralForCausalLM", false, describe_mixtral},
    {"qwen", "QWenLMHeadModel", false, describe_qwen},
    {"qwen2", "Qwen2ForCausalLM", true, describe_qwen2},
    {"qwen2_moe", "Qwen2MoeForCausalLM", false, describe_qwen2_moe},
    {"qwen3", "Qwen3ForCausalLM", true, describe_qwen3},
    {"qwen3_moe", "Qwen3MoeForCausalLM", false, describe_qwen3_moe},
    {"qwen3_next", "Qwen3NextForCausalLM", false, describe_qwen3_next},
    {"qwen3_5_text", "Qwen3_5ForCausalLM", false, describe_qwen3_5},
    {"qwen3_5_moe_text", "Qwen3_5MoeForCausalLM", false, describe_qwen3_5_moe},
    {"gemma", "GemmaForCausalLM", false, describe_gemma},
    {"gemma2", "Gemma2ForCausalLM", false, describe_gemma2},
    {"gemma3_text", "Gemma3ForCausalLM", false, describe_gemma3_text},
    {"gemma4_text", "Gemma4ForCausalLM", false, describe_gemma4_text},
    {"phi", "PhiForCausalLM", false, describe_phi},
    {"phi3", "Phi3ForCausalLM", false, describe_phi3},
    {"phimoe", "PhimoeForCausalLM", false, describe_phimoe},
    {"gpt2", "GPT2LMHeadModel", false, describe_gpt2},
    {"gpt_bigcode", "GPTBigCodeForCausalLM", false, describe_gpt_bigcode},
    {"gpt_neox", "GPTNeoXForCausalLM", false, describe_gpt_neox},
    {"gptj", "GPTJForCausalLM", false, describe_gptj},
    {"codegen", "CodeGenForCausalLM", false, describe_codegen},
    {"opt", "OPTForCausalLM", false, describe_opt},
    {"bloom", "BloomForCausalLM", false, describe_bloom},
    {"falcon", "FalconForCausalLM", false, describe_falcon},
    {"mpt", "MptForCausalLM", false, describe_mpt},
    {"stablelm", "StableLmForCausalLM", false, describe_stablelm},
    {"starcoder2", "Starcoder2ForCausalLM", false, describe_starcoder2},
    {"olmo", "OlmoForCausalLM", false, describe_olmo},
    {"olmo2", "Olmo2ForCausalLM", false, describe_olmo2},
    {"olmo3", "Olmo3ForCausalLM", false, describe_olmo3},
    {"olmoe", "OlmoeForCausalLM", false, describe_olmoe},
    {"granite", "GraniteForCausalLM", false, describe_granite},
    {"granitemoe", "GraniteMoeForCausalLM", false, describe_granitemoe},
    {"cohere", "CohereForCausalLM", false, describe_cohere},
    {"cohere2", "Cohere2ForCausalLM", false, describe_cohere2},
    {"chatglm", "ChatGLMForConditionalGeneration", false, describe_chatglm},
    {"glm", "GlmForCausalLM", false, describe_glm},
    {"glm4", "Glm4ForCausalLM", false, describe_glm4},
    {"glm4_moe", "Glm4MoeForCausalLM", false, describe_glm4_moe},
    {"glm4_moe_lite", "Glm4MoeLiteForCausalLM", false, describe_glm4_moe_lite},
    {"glm_moe_dsa", "GlmMoeDsaForCausalLM", false, describe_glm_moe_dsa},
    {"internlm2", "InternLM2ForCausalLM", false, describe_internlm2},
    {"baichuan", "BaichuanForCausalLM", false, describe_baichuan},
    {"deepseek_v2", "DeepseekV2ForCausalLM", false, describe_deepseek_v2},
    {"deepseek_v3", "DeepseekV3ForCausalLM", false, describe_deepseek_v3},
    {"deepseek_v32", "DeepseekV32ForCausalLM", false, describe_deepseek_v32},
    {"kimi_k2", "DeepseekV3ForCausalLM", false, describe_deepseek_v3},
    {"dbrx", "DbrxForCausalLM", false, describe_dbrx},
    {"gpt_oss", "GptOssForCausalLM", false, describe_gpt_oss},
    {"smollm3", "SmolLM3ForCausalLM", false, describe_smollm3},
    {"seed_oss", "SeedOssForCausalLM", false, describe_seed_oss},
    {"minimax_m2", "MiniMaxM2ForCausalLM", false, describe_minimax_m2},
    {"nemotron", "NemotronForCausalLM", false, describe_nemotron},
    {"minicpm", "MiniCPMForCausalLM", false, describe_minicpm},
    {"exaone4", "Exaone4ForCausalLM", false, describe_exaone4},
    {"ernie4_5", "Ernie4_5ForCausalLM", false, describe_ernie4_5},
    {"ernie4_5_moe", "Ernie4_5_MoeForCausalLM", false, describe_ernie4_5_moe},
    {"llama4_text", "Llama4ForCausalLM", false, describe_llama4_text},
    {"ministral3", "Ministral3ForCausalLM", false, describe_ministral3},
    {"hunyuan_v1_dense", "HunYuanDenseV1ForCausalLM", false, describe_hunyuan_v1_dense},
    {"arcee", "ArceeForCausalLM", false, describe_arcee},
    {"qwen2_vl_text", "Qwen2VLForConditionalGeneration", false, describe_qwen2},
    {"qwen2_5_vl_text", "Qwen2_5_VLForConditionalGeneration", false, describe_qwen2},
    {"qwen3_vl_text", "Qwen3VLForConditionalGeneration", false, describe_qwen3},
    {"qwen3_vl_moe_text", "Qwen3VLMoeForConditionalGeneration", false, describe_qwen3_moe},
    {"bert", "BertModel", false, describe_bert},
    {"roberta", "RobertaModel", false, describe_roberta},
    {"xlm-roberta", "XLMRobertaModel", false, describe_xlm_roberta},
    {"camembert", "CamembertModel", false, describe_camembert},
    {"electra", "ElectraModel", false, describe_electra},
    {"distilbert", "DistilBertModel", false, describe_distilbert},
    {"modernbert", "ModernBertModel", false, describe_modernbert},
    {"bart", "BartForConditionalGeneration", false, describe_bart},
    {"mbart", "MBartForConditionalGeneration", false, describe_mbart},
    {"t5", "T5ForConditionalGeneration", false, describe_t5},
    {"mt5", "MT5ForConditionalGeneration", false, describe_mt5},
    {"umt5", "UMT5ForConditionalGeneration", false, describe_umt5},
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
