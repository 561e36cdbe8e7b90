// The keys of axolotl's YAML that matter to memory, with their defaults and the file of axolotl/utils/schemas that has them.
#pragma once

#include "io/importers/formats.h"

namespace membill::io {

inline constexpr KeyRow kAxolotlKeys[] = {
    {"base_model", "", "model", {}, "model.py"},
    {"adapter", "", "which adapters train; absent: all weights", {}, "peft.py"},
    {"load_in_8bit", "false", "8-bit base", {}, "peft.py"},
    {"load_in_4bit", "false", "4-bit base", {}, "peft.py"},
    {"bnb_config_kwargs.bnb_4bit_quant_type", "nf4", "4-bit format", {}, "peft.py"},
    {"bnb_config_kwargs.bnb_4bit_use_double_quant", "true", "the scales are quantised too", {}, "peft.py"},
    {"bnb_config_kwargs.bnb_4bit_quant_storage", "bfloat16", "dtype that holds the packed weights", {}, "peft.py"},
    {"bnb_config_kwargs.llm_int8_skip_modules", "", "modules that stay whole", {}, "peft.py"},
    {"lora_r", "", "rank of the adapters", {}, "peft.py"},
    {"lora_alpha", "", "scale of the adapters", {}, "peft.py"},
    {"lora_dropout", "0.0", "dropout before the adapters", {}, "peft.py"},
    {"lora_target_modules", "", "modules that get an adapter", {}, "peft.py"},
    {"lora_target_linear", "", "every linear gets an adapter", {}, "peft.py"},
    {"lora_modules_to_save", "", "modules that train whole", {}, "peft.py"},
    {"lora_exclude_modules", "", "modules that get no adapter although a target matches", {}, "peft.py"},
    {"lora_rank_pattern", "", "ranks of modules that have others", {}, "peft.py"},
    {"lora_alpha_pattern", "", "scales of modules that have others", {}, "peft.py"},
    {"peft_use_dora", "false", "DoRA", {}, "peft.py"},
    {"peft_autocast_adapter_dtype", "true", "adapters are fp32 over 16-bit bases", {}, "peft.py"},
    {"peft_trainable_token_indices", "", "rows of the embedding that train", {}, "peft.py"},
    {"peft_layer_replication", "", "layers that are run again as others", {}, "peft.py"},
    {"unfrozen_parameters", "", "only these train"},
    {"micro_batch_size", "1", "micro-batch", {}, "training.py"},
    {"gradient_accumulation_steps", "1", "micro-batches of a step", {}, "training.py"},
    {"batch_size", "", "micro-batch x accumulation (old spelling)", {}, "training.py"},
    {"eval_batch_size", "", "batch of the evaluation; absent: the micro-batch", {}, "training.py"},
    {"val_set_size", "0.0", "whether the job evaluates"},
    {"test_datasets", "", "whether the job evaluates"},
    {"eval_strategy", "", "whether the job evaluates"},
    {"save_strategy", "", "whether checkpoints are saved"},
    {"save_steps", "", "whether checkpoints are saved"},
    {"saves_per_epoch", "", "whether checkpoints are saved"},
    {"save_only_model", "false", "checkpoints leave out the optimizer's states"},
    {"sequence_len", "512", "tokens of a sequence"},
    {"sample_packing", "false", "several samples share a sequence"},
    {"multipack_real_batches", "", "a packed batch keeps its rows; absent: unless the kernel takes documents"},
    {"max_packed_sequence_len", "", "tokens of a packed sequence (old spelling of packing)", {}, "deprecated.py"},
    {"pad_to_sequence_len", "", "every row has sequence_len tokens; on with packing"},
    {"batch_flattening", "", "samples are joined without padding"},
    {"bf16", "auto", "bf16 weights under autocast; auto: where the card can"},
    {"fp16", "", "fp16 autocast"},
    {"bfloat16", "", "bf16 weights without autocast"},
    {"float16", "", "fp16 weights without autocast"},
    {"fp8", "", "fp8 linears"},
    {"gradient_checkpointing", "false", "layers run their forward again in backward"},
    {"gradient_checkpointing_kwargs.use_reentrant", "false", "reentrant checkpointing"},
    {"activation_offloading", "false", "checkpoints live on the host"},
    {"optimizer", "adamw_torch_fused", "optimizer", {}, "training.py"},
    {"optim_args", "", "arguments of the optimizer", {}, "training.py"},
    {"optim_target_modules", "", "linears that get low-rank states", {}, "training.py"},
    {"max_grad_norm", "1.0", "gradients are clipped by norm", {}, "training.py"},
    {"flash_attention", "", "flash attention"},
    {"sdp_attention", "", "PyTorch's attention"},
    {"xformers_attention", "", "xformers' attention"},
    {"flex_attention", "", "flex attention"},
    {"sage_attention", "", "sage attention"},
    {"eager_attention", "", "attention with whole scores"},
    {"attn_implementation", "", "attention kernel"},
    {"plugins", "", "Liger, cut cross entropy"},
    {"liger_fused_linear_cross_entropy", "", "logits are never whole"},
    {"liger_rope", "", "Liger's rotary embedding"},
    {"liger_cross_entropy", "", "Liger's loss over whole logits"},
    {"liger_rms_norm", "", "Liger's norms"},
    {"liger_glu_activation", "", "Liger's MLP"},
    {"liger_swiglu", "", "", "liger_glu_activation"},
    {"cut_cross_entropy", "", "logits are never whole"},
    {"chunked_cross_entropy", "", "the loss takes the logits in chunks"},
    {"chunked_cross_entropy_num_chunks", "8", "chunks of it"},
    {"deepspeed", "", "DeepSpeed's configuration"},
    {"fsdp", "", "FSDP's strategy"},
    {"fsdp_config", "", "FSDP's options"},
    {"fsdp_version", "", "FSDP1 or FSDP2"},
    {"tensor_parallel_size", "1", "tensor parallel degree"},
    {"expert_parallel_size", "1", "expert parallel degree"},
    {"context_parallel_size", "1", "context parallel degree"},
    {"sequence_parallel_degree", "", "", "context_parallel_size"},
    {"context_parallel.size", "", "", "context_parallel_size"},
    {"dp_replicate_size", "1", "replicas"},
    {"dp_shard_size", "", "cards of a shard group"},
    {"torch_compile", "false", "torch.compile"},
    {"rl", "", "which preference stage"},
    {"trl.max_completion_length", "", "tokens of the completion", {}, "trl.py"},
    {"trl.num_generations", "", "completions of one prompt", {}, "trl.py"},
    {"trl.beta", "", "strength of the reference", {}, "trl.py"},
    {"trl.steps_per_generation", "", "micro-batches that one generation feeds", {}, "trl.py"},
    {"trl.generation_batch_size", "", "completions of one generation on all cards", {}, "trl.py"},
    {"trl.num_iterations", "", "times that a generation is trained on", {}, "trl.py"},
    {"trl.use_vllm", "false", "vLLM generates", {}, "trl.py"},
    {"trl.vllm_mode", "", "on the same cards or elsewhere", {}, "trl.py"},
    {"trl.vllm_gpu_memory_utilization", "", "share of a card that vLLM takes", {}, "trl.py"},
    {"trl.vllm_enable_sleep_mode", "false", "vLLM gives its memory back while the model trains", {}, "trl.py"},
    {"rl_beta", "", "strength of the reference"},
    {"dpo_beta", "", "", "rl_beta"},
    {"reward_model", "false", "a reward model trains"},
    {"process_reward_model", "false", "a process reward model trains"},
    {"pretraining_dataset", "", "the job pre-trains"},
    {"precompute_ref_log_probs", "false", "the reference runs before training"},
    {"ddp_bucket_cap_mb", "", "MB of a reducer bucket"},
    {"ddp_find_unused_parameters", "", "DDP looks for parameters without gradient"},
    {"gptq", "false", "the base is stored by GPTQ", {}, "peft.py"},
    {"world_size", "", "cards in all"},
    {"quantize_moe_experts", "false", "experts are stored in 4 or 8 bits too"},
    {"lora_mlp_kernel", "false", "fused adapters of the MLP"},
    {"lora_qkv_kernel", "false", "fused adapters of queries, keys and values"},
    {"lora_o_kernel", "false", "fused adapter of the output projection"},
    {"lora_embedding_kernel", "false", "fused adapter of the embedding"},
    {"ple_cpu_offload", "false", "per-layer embeddings live on the host"},
    {"flash_attn_rms_norm", "false", "flash attention's norm"},
    {"flash_attn_fuse_mlp", "false", "flash attention's MLP"},
    {"flash_optimum", "false", "BetterTransformer"},
    {"use_kernels", "false", "kernels from the Hub"},
    {"use_scattermoe", "false", "ScatterMoE's experts"},
    {"use_sonicmoe", "false", "SonicMoE's experts"},
    {"model_config", "", "fields that replace the model's"},
    {"overrides_of_model_config", "", "fields that replace the model's"},
    {"diffusion", "", "masked diffusion"},
    {"lisa_n_layers", "", "LISA: so many layers train at a time"},
    {"relora", "false", "ReLoRA"},
    {"s2_attention", "false", "shifted sparse attention"},
    {"fp32_norms", "false", "norms in fp32"},
    {"neftune_noise_alpha", "", "noise on the embedding's output"},
    {"use_onebitllms", "false", "1.58-bit linears"},
    {"use_eaft", "false", "a loss that copies the logits"},
    {"deepcompile", "false", "DeepSpeed's compiled graph"},
    {"tiled_mlp", "false", "the MLP runs on parts of a sequence"},
    {"tiled_mlp_num_shards", "", "parts of it"},
    {"qat", "", "quantisation-aware training"},
    {"auto_find_batch_size", "false", "the batch is halved after an out of memory error"},
    {"lora_target_parameters", "", "3-D parameters that get an adapter", {}, "peft.py"},
    {"peft_layers_to_transform", "", "layers that get an adapter", {}, "peft.py"},
    {"lora_layers_to_transform", "", "", "peft_layers_to_transform"},
    {"selective_checkpointing", "", "which operators are not run again"},
    {"layer_offloading", "false", "frozen layers live on the host"},
    {"resume_from_checkpoint", "", "the states are read beside the live ones while loading"},
    {"embeddings_skip_upcast", "", "embedding and head stay in 16 bits", {}, "model.py"},
    {"dpo_loss_type", "", "how the loss is computed", {}, "rl.py"},
    {"dpo_padding_free", "", "samples are joined without padding", {}, "rl.py"},
    {"dpo_use_liger_kernel", "", "Liger's loss of preference pairs", {}, "rl.py"},
    {"dpo_use_weighting", "", "each token is weighed", {}, "rl.py"},
    {"dpo_generate_during_eval", "", "the evaluation generates", {}, "rl.py"},
    {"cpo_alpha", "1.0", "weight of the chosen answers' own loss", {}, "rl.py"},
    {"orpo_alpha", "", "strength of the odds ratio", {}, "rl.py"},
    {"rpo_alpha", "", "weight of the chosen answers' own loss", {}, "rl.py"},
    {"noisy_embedding_alpha", "", "", "neftune_noise_alpha"},
    {"flash_attn_cross_entropy", "", "flash attention's loss"},
    {"fused_attn_kernel", "", "one kernel for norms and rotary embedding of query and key"},
    {"experts_implementation", "", "how experts run", {}, "model.py"},
    {"scaling_softmax", "", "attention scores are scaled by length"},
    {"gemma4_hybrid_attn_impl", "", "attention kernels of two kinds of layers"},
    {"large_head_attention", "", "attention kernels of two kinds of layers"},
    {"flash_attn_d512", "", "flash attention for wide heads"},
    {"llama4_linearized_experts", "", "experts as linears, which can be quantised"},
    {"freeze_mm_modules", "", "the towers of a multimodal model do not train", {}, "multimodal.py"},
    {"max_memory", "", "the model is spread over cards", {}, "training.py"},
    {"gpu_memory_limit", "", "the model is spread over cards", {}, "training.py"},
    {"do_causal_lm_eval", "", "the evaluation generates"},
    {"do_bench_eval", "", "the evaluation runs benchmarks"},
    {"eval_table_size", "", "the evaluation generates"},
    {"eval_sequence_len", "", "tokens of the evaluation's rows"},
    {"lm_eval_post_train", "", "benchmarks after the training", {}, "lm_eval/args.py"},
    {"qgalore_rank", "256", "rank of Q-GaLore", {}, "training.py"},
    {"qgalore_update_proj_gap", "", "Q-GaLore's update interval", {}, "training.py"},
    {"use_dsv4_kernels", "", "kernels for DeepSeek V4"},
    {"use_glm_dsa_kernels", "", "kernels for GLM's sparse attention"},
    {"dense_mixer", "", "every expert runs for every token"},
    {"kd_trainer", "", "distillation of a teacher's logits"},
    {"gkd_trainer", "", "distillation on what the student generates"},
    {"nonexpert_quantization", "", "how what is no expert is stored", {}, "kernels/args.py"},
    {"model_quantization_config", "", "how the checkpoint's weights are loaded", {}, "model.py"},
    {"model_quantization_config_kwargs.dequantize", "", "packed weights are unpacked", {}, "model.py"},
    {"use_mora", "", "MoRA"},
    {"mora", "", "MoRA"},
};

inline constexpr std::string_view kAxolotlHarmless =
    "strict auto_resume_from_checkpoints resize_token_embeddings_to_32x "
    "mean_resizing_embeddings "
    "shrink_embeddings reinit_weights trainer_cls trl* vllm* ebft* quantization* "
    "dynamic_checkpoint* "
    "center_rewards_coefficient num_labels dpo_label_smoothing dpo_norm_loss dpo_use_logits_to_keep dpo_loss_weights "
    "datasets* shuffle_* dataset_* skip_prepare_dataset "
    "num_dataset_shards_to_save "
    "dataloader_* accelerator_config* remove_unused_columns push_dataset_to_hub hf_use_auth_token device device_map "
    "local_rank ddp "
    "seed ddp_timeout ddp_broadcast_buffers eval_steps eval_causal_lm_metrics eval_sample_packing eval_max_new_tokens "
    "bench_* metric_for_best_model "
    "greater_is_better "
    "loss_watchdog_* gc_steps torch_empty_cache_steps gc_collect_steps tf32 float32 "
    "excess_length_strategy "
    "min_sample_len max_prompt_len sample_packing_* pad_to_multiple_of curriculum_sampling "
    "use_pose pose_* "
    "pretrain_multipack_* pretraining_sample_concatenation streaming* flex_attn_compile_kwargs* "
    "sdpa_varlen "
    "scaling_softmax_* "
    "eaft_* fp32_norm_classes "
    "fsdp_final_state_dict_type "
    "heads_k_stride ring_attn_func special_tokens* tokens* added_tokens_overrides* torch_compile_* max_steps "
    "warmup_steps warmup_ratio "
    "evals_per_epoch save_total_limit save_safetensors save_first_step logging_steps early_stopping_patience "
    "load_best_model_at_end "
    "use_tensorboard profiler_* "
    "include_tokens_per_second include_tkps simpo_gamma kto_* "
    "low_cpu_mem_usage chat_template* eot_tokens default_system_message fix_untrained_tokens is_* preprocess_iterable "
    "total_num_tokens "
    "total_supervised_tokens axolotl_config_path generate_samples num_generation_samples generation_* capabilities "
    "env_capabilities "
    "base_model_config cls_model_config tokenizer_* processor_* trust_remote_code experimental_skip_move_to_device "
    "model_quantization_config_kwargs* output_dir hub_* bos_token eos_token pad_token unk_token "
    "additional_special_tokens "
    "loftq_* lora_model_dir lora_fan_in_fan_out "
    "lora_on_cpu "
    "peft_layers_pattern peft* qlora_sharded_model_loading bnb_config_kwargs* loraplus_* "
    "merge_* relora_* "
    "train_on_inputs group_by_length learning_rate embedding_lr* weight_decay torchdistx_path "
    "lr_* "
    "cosine_* adam_* dion_* qgalore_scale qgalore_proj_* qgalore_cos_threshold qgalore_gamma_proj qgalore_queue_size "
    "num_epochs jagged_restart_* rope_scaling "
    "evaluation_strategy "
    "model_config.* model_kwargs* model_type model_revision overrides_of_model_config.* wandb_* "
    "mlflow_* comet_* "
    "lisa_step_interval lisa_layers_attr push_to_hub* liger_layer_norm liger_use_token_scaling "
    "use_whitening use_pose use_tensorboard use_orig_params use_ray use_wandb use_comet use_mlflow use_trackio "
    "use_swanlab "
    "use_otel_metrics val_file val_data* dsv4_* grokfast_* kd_* gkd_* context_parallel.* spectrum_* nemo_gym* "
    "lm_eval_* hatchery* mora.* "
    "expert_parallel_* liger_kernel_impl expert_backend moe_dequant_chunk_size moe_grouped_backend moe_bnb_fast "
    "image_* skip_* diffusion.* report_to gradient_checkpointing_kwargs.determinism_check otel_* trackio_* swanlab_* "
    "debug gptq_groupsize gptq_model_v1 gptq_disable_exllama eta_min revision_of_model llmcompressor* ray_* "
    "expert_parallel_backend base_model_ignore_patterns liger_rms_norm_gated "
    "fp8_enable_fsdp_float8_all_gather nvfp4_merge_aware test_value torch_dtype final_state_dict_type "
    "launcher launcher_args num_processes tiled_mlp_use_original_mlp gradient_checkpointing_kwargs* save_strategy lr";

}  // namespace membill::io
