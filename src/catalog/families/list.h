// Every family's describe function, for the registry. See Family::describe.
#pragma once

#include "membill/catalog.h"

namespace membill::census {

ModelSpec describe_llama(const Value& config, Problems& problems);
ModelSpec describe_mistral(const Value& config, Problems& problems);
ModelSpec describe_mixtral(const Value& config, Problems& problems);
ModelSpec describe_qwen(const Value& config, Problems& problems);
ModelSpec describe_qwen2(const Value& config, Problems& problems);
ModelSpec describe_qwen2_moe(const Value& config, Problems& problems);
ModelSpec describe_qwen3(const Value& config, Problems& problems);
ModelSpec describe_qwen3_moe(const Value& config, Problems& problems);
ModelSpec describe_qwen3_next(const Value& config, Problems& problems);
ModelSpec describe_qwen3_5(const Value& config, Problems& problems);
ModelSpec describe_qwen3_5_moe(const Value& config, Problems& problems);
ModelSpec describe_gemma(const Value& config, Problems& problems);
ModelSpec describe_gemma2(const Value& config, Problems& problems);
ModelSpec describe_gemma3_text(const Value& config, Problems& problems);
ModelSpec describe_gemma4_text(const Value& config, Problems& problems);
ModelSpec describe_phi(const Value& config, Problems& problems);
ModelSpec describe_phi3(const Value& config, Problems& problems);
ModelSpec describe_phimoe(const Value& config, Problems& problems);
ModelSpec describe_gpt2(const Value& config, Problems& problems);
ModelSpec describe_gpt_bigcode(const Value& config, Problems& problems);
ModelSpec describe_gpt_neo(const Value& config, Problems& problems);
ModelSpec describe_gpt_neox(const Value& config, Problems& problems);
ModelSpec describe_gptj(const Value& config, Problems& problems);
ModelSpec describe_codegen(const Value& config, Problems& problems);
ModelSpec describe_opt(const Value& config, Problems& problems);
ModelSpec describe_bloom(const Value& config, Problems& problems);
ModelSpec describe_falcon(const Value& config, Problems& problems);
ModelSpec describe_mpt(const Value& config, Problems& problems);
ModelSpec describe_stablelm(const Value& config, Problems& problems);
ModelSpec describe_starcoder2(const Value& config, Problems& problems);
ModelSpec describe_olmo(const Value& config, Problems& problems);
ModelSpec describe_olmo2(const Value& config, Problems& problems);
ModelSpec describe_olmo3(const Value& config, Problems& problems);
ModelSpec describe_olmoe(const Value& config, Problems& problems);
ModelSpec describe_granite(const Value& config, Problems& problems);
ModelSpec describe_granitemoe(const Value& config, Problems& problems);
ModelSpec describe_granitemoehybrid(const Value& config, Problems& problems);
ModelSpec describe_nemotron_h(const Value& config, Problems& problems);
ModelSpec describe_falcon_h1(const Value& config, Problems& problems);
ModelSpec describe_mllama(const Value& config, Problems& problems);
ModelSpec describe_cohere(const Value& config, Problems& problems);
ModelSpec describe_cohere2(const Value& config, Problems& problems);
ModelSpec describe_chatglm(const Value& config, Problems& problems);
ModelSpec describe_glm(const Value& config, Problems& problems);
ModelSpec describe_glm4(const Value& config, Problems& problems);
ModelSpec describe_glm4_moe(const Value& config, Problems& problems);
ModelSpec describe_glm4_moe_lite(const Value& config, Problems& problems);
ModelSpec describe_glm_moe_dsa(const Value& config, Problems& problems);
ModelSpec describe_internlm2(const Value& config, Problems& problems);
ModelSpec describe_baichuan(const Value& config, Problems& problems);
ModelSpec describe_deepseek_v2(const Value& config, Problems& problems);
ModelSpec describe_deepseek_v3(const Value& config, Problems& problems);
ModelSpec describe_deepseek_v32(const Value& config, Problems& problems);
ModelSpec describe_dbrx(const Value& config, Problems& problems);
ModelSpec describe_gpt_oss(const Value& config, Problems& problems);
ModelSpec describe_smollm3(const Value& config, Problems& problems);
ModelSpec describe_seed_oss(const Value& config, Problems& problems);
ModelSpec describe_minimax_m2(const Value& config, Problems& problems);
ModelSpec describe_nemotron(const Value& config, Problems& problems);
ModelSpec describe_minicpm(const Value& config, Problems& problems);
ModelSpec describe_exaone4(const Value& config, Problems& problems);
ModelSpec describe_ernie4_5(const Value& config, Problems& problems);
ModelSpec describe_ernie4_5_moe(const Value& config, Problems& problems);
ModelSpec describe_llama4_text(const Value& config, Problems& problems);
ModelSpec describe_ministral3(const Value& config, Problems& problems);
ModelSpec describe_hunyuan_v1_dense(const Value& config, Problems& problems);
ModelSpec describe_apertus(const Value& config, Problems& problems);
ModelSpec describe_lfm2(const Value& config, Problems& problems);
ModelSpec describe_deberta_v2(const Value& config, Problems& problems);
ModelSpec describe_arcee(const Value& config, Problems& problems);
ModelSpec describe_bert(const Value& config, Problems& problems);
ModelSpec describe_roberta(const Value& config, Problems& problems);
ModelSpec describe_xlm_roberta(const Value& config, Problems& problems);
ModelSpec describe_camembert(const Value& config, Problems& problems);
ModelSpec describe_electra(const Value& config, Problems& problems);
ModelSpec describe_distilbert(const Value& config, Problems& problems);
ModelSpec describe_modernbert(const Value& config, Problems& problems);
ModelSpec describe_bart(const Value& config, Problems& problems);
ModelSpec describe_mbart(const Value& config, Problems& problems);
ModelSpec describe_t5(const Value& config, Problems& problems);
ModelSpec describe_mt5(const Value& config, Problems& problems);
ModelSpec describe_umt5(const Value& config, Problems& problems);

}  // namespace membill::census
