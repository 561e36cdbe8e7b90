// The keys of a Megatron step, whoever reads them: Megatron-LM's flags, Megatron-SWIFT's arguments, LLaMA-Factory's on Megatron.
#pragma once

#include <string_view>

#include "io/importers/key_table.h"
#include "io/importers/parts.h"

namespace membill::io {

inline constexpr KeyRow kMegatronStepKeys[] = {
    {"micro_batch_size", "1", "micro-batch"},
    {"batch_size", "", "", "micro_batch_size"},
    {"global_batch_size", "", "sequences of a step on all cards"},
    {"seq_length", "", "tokens of a sequence"},
    {"encoder_seq_length", "", "", "seq_length"},
    {"tensor_model_parallel_size", "1", "tensor parallel degree"},
    {"model_parallel_size", "", "", "tensor_model_parallel_size"},
    {"pipeline_model_parallel_size", "1", "pipeline parallel degree"},
    {"context_parallel_size", "1", "context parallel degree"},
    {"expert_model_parallel_size", "1", "expert parallel degree"},
    {"expert_tensor_parallel_size", "", "tensor parallel degree of experts; absent: as outside of them"},
    {"num_layers_per_virtual_pipeline_stage", "", "layers of a virtual stage"},
    {"num_virtual_stages_per_pipeline_rank", "", "virtual stages of a card"},
    {"virtual_pipeline_model_parallel_size", "", "", "num_virtual_stages_per_pipeline_rank"},
    {"sequence_parallel", "false", "sequence parallelism"},
    {"use_distributed_optimizer", "false", "the optimizer is sharded"},
    {"recompute_granularity", "", "full or selective recompute"},
    {"recompute_activations", "false", "selective recompute"},
    {"checkpoint_activations", "false", "full recompute (old spelling)"},
    {"recompute_method", "", "uniform or block"},
    {"activations_checkpoint_method", "", "", "recompute_method"},
    {"recompute_num_layers", "", "layers of a unit (uniform), or that are recomputed (block)"},
    {"recompute_modules", "core_attn", "what selective recomputes"},
    {"bf16", "false", "bf16 weights with an fp32 master"},
    {"fp16", "false", "fp16 weights with an fp32 master"},
    {"grad_reduce_in_bf16", "false", "gradients accumulate in bf16"},
    {"main_grads_dtype", "fp32", "dtype in which gradients accumulate"},
    {"exp_avg_dtype", "fp32", "dtype of the first moment"},
    {"optimizer", "adam", "optimizer"},
    {"optimizer_cpu_offload", "false", "the optimizer lives on the host"},
    {"clip_grad", "1.0", "gradients are clipped by norm"},
    {"use_flash_attn", "false", "flash attention"},
    {"use_flash_attn_v1", "", "", "use_flash_attn"},
    {"use_flash_attn_v2", "", "", "use_flash_attn"},
    {"use_flash_attn_triton", "", "", "use_flash_attn"},
    {"use_flash_attn_builder", "", "", "use_flash_attn"},
    {"attention_backend", "", "attention kernel"},
    {"transformer_impl", "transformer_engine", "whose layers"},
    {"use_mcore_models", "false", "whose layers"},
    {"fp8_format", "", "fp8 linears"},
    {"use_megatron_fsdp", "false", "Megatron's FSDP"},
    {"use_torch_fsdp2", "false", "FSDP2"},
    {"cross_entropy_loss_fusion", "false", "fused loss"},
    {"cross_entropy_fusion_impl", "native", "whose kernels the fused loss takes"},
    {"mtp_num_layers", "", "next-token layers"},
    {"no_gradient_accumulation_fusion", "false", "weight gradients are tensors of their own"},
    {"overlap_grad_reduce", "false", "gradients are reduced in buckets"},
    {"distribute_saved_activations", "false", "what full recompute keeps is split over the tensor-parallel ranks"},
    {"moe_token_dispatcher_type", "allgather", "how rows reach their experts"},
    {"moe_grouped_gemm", "false", "a rank's experts run together"},
    {"moe_expert_capacity_factor", "", "most that an expert takes"},
    {"moe_pad_expert_input_to_capacity", "false", "each expert gets its capacity, padded"},
    {"moe_router_load_balancing_type", "aux_loss", "the router's auxiliary loss"},
    {"moe_aux_loss_coeff", "0", "its weight; 0: there is none"},
    {"moe_router_dtype", "", "dtype of the router"},
    {"moe_layer_recompute", "false", "layers of experts are recomputed"},
    {"save", "", "where checkpoints are saved"},
    {"no_save_optim", "false", "checkpoints leave out the optimizer's states"},
    {"dist_ckpt_optim_fully_reshardable", "false", "a checkpoint's optimizer states are gathered by bucket"},
    {"distrib_optim_fully_reshardable_mem_efficient", "false", "they are gathered on the host"},
    {"decoder_first_pipeline_num_layers", "", "layers of the first stage"},
    {"decoder_last_pipeline_num_layers", "", "layers of the last stage"},
    {"decoder_seq_length", "", "tokens of the language model's sequence beside an encoder"},
    {"exp_avg_sq_dtype", "fp32", "dtype of the second moment"},
    {"main_params_dtype", "fp32", "dtype of the master weights"},
    {"use_precision_aware_optimizer", "", "Transformer Engine's optimizer keeps states in narrower types"},
    {"optimizer_offload_fraction", "", "share of the optimizer on the host"},
    {"store_param_remainders", "true", "that optimizer keeps the lower halves of masters only"},
    {"pin_cpu_grads", "true", "gradients of an optimizer on the host are page-locked"},
    {"gradient_accumulation_fusion", "", "weight gradients are added where they are made"},
    {"no_masked_softmax_fusion", "false", "the softmax of whole scores is not one kernel"},
    {"masked_softmax_fusion", "", "the softmax of whole scores is one kernel"},
    {"no_bias_swiglu_fusion", "", "the gated activation is not one kernel"},
    {"bias_swiglu_fusion", "", "the gated activation is one kernel"},
    {"no_bias_gelu_fusion", "", "bias and activation are not one kernel"},
    {"bias_gelu_fusion", "", "bias and activation are one kernel"},
    {"bias_activation_fusion", "", "bias and activation are one kernel"},
    {"squared_relu", "", "activation of the MLP"},
    {"fp32_residual_connection", "", "the residual stream in fp32"},
    {"fp16_lm_cross_entropy", "", "the loss in 16 bits"},
    {"cpu_offloading", "", "activations live on the host"},
    {"cpu_offloading_num_layers", "", "layers whose activations live on the host"},
    {"fine_grained_activation_offloading", "", "activations of modules live on the host"},
    {"cuda_graph_impl", "", "captured graphs"},
    {"enable_cuda_graph", "", "captured graphs"},
    {"external_cuda_graph", "", "captured graphs"},
    {"fp8_param_gather", "", "weights are kept in fp8"},
    {"fp4_param_gather", "", "weights are kept in fp4"},
    {"fp4_format", "", "fp4 linears"},
    {"moe_latent_size", "", "experts work on narrower rows"},
    {"moe_permute_fusion", "", "rows reach their experts by one kernel"},
    {"moe_shared_expert_overlap", "", "shared experts run beside the dispatch"},
    {"moe_enable_deepep", "", "DeepEP dispatches"},
    {"moe_flex_dispatcher_backend", "", "who dispatches"},
    {"tp_comm_overlap", "", "userbuffers"},
    {"defer_embedding_wgrad_compute", "", "inputs of the head are kept for later"},
    {"delay_wgrad_compute", "", "inputs of linears are kept for later"},
    {"overlap_moe_expert_parallel_comm", "", "two micro-batches run side by side"},
    {"freeze_LM", "", "whether the language model trains"},
    {"freeze_ViT", "", "whether the vision tower trains"},
    {"freeze_all_layers", "", "whether the layers train"},
    {"vision_model_type", "", "the vision tower"},
    {"perform_rl_step", "", "reinforcement learning"},
    {"num_distributed_optimizer_instances", "", "copies of the sharded optimizer"},
    {"heterogeneous_layers_config_path", "", "layers of different shapes"},
    {"heterogeneous_layers_config_encoded_json", "", "layers of different shapes"},
    {"account_for_embedding_in_pipeline_split", "", "the embedding counts as a layer of the first stage"},
    {"account_for_loss_in_pipeline_split", "", "the loss counts as a layer of the last stage"},
    {"pipeline_model_parallel_layout", "", "which stage has which layers"},
    {"microbatch_group_size_per_vp_stage", "", "micro-batches of a virtual stage in turn"},
    {"linear_attention_freq", "", "layers of linear attention"},
    {"experimental_attention_variant", "", "attention of another kind"},
    {"attention_output_gate", "", "a gate of the attention's output"},
    {"reduce_scatter_with_fp32_accumulation", "", "gradients are reduced in fp32"},
    {"ddp_reduce_scatter_with_fp32_accumulation", "", "", "reduce_scatter_with_fp32_accumulation"},
    {"ddp_param_name_patterns_for_fp32_local_accumulation", "", "parameters whose gradients accumulate in fp32"},
    {"use_layer_wise_distributed_optimizer", "", "whole parameters are spread over the ranks"},
    {"moe_z_loss_coeff", "", "a loss of the router's logits"},
    {"spec", "", "layers of a specification of its own"},
};

// What of them moves memory and is not billed.
inline constexpr LeftOut kMegatronLeftOut[] = {
    {"no_bias_swiglu_fusion", "keeps one more tensor of the MLP's width: it is billed as fused"},
    {"bias_swiglu_fusion", "false keeps one more tensor of the MLP's width: it is billed as fused", true},
    {"no_bias_gelu_fusion", "keeps one more tensor of the MLP's width: it is billed as fused"},
    {"bias_gelu_fusion", "false keeps one more tensor of the MLP's width: it is billed as fused", true},
    {"bias_activation_fusion", "false keeps one more tensor of the MLP's width: it is billed as fused", true},
    {"squared_relu", "keeps one more tensor of the MLP's width: it is billed as GELU"},
    {"fp32_residual_connection", "is not billed: the residual stream is billed in the dtype of the weights"},
    {"fp16_lm_cross_entropy", "is not billed: the loss is billed in fp32"},
    {"cpu_offloading", "is not billed: activations are billed on the card"},
    {"fine_grained_activation_offloading", "is not billed: activations are billed on the card"},
    {"enable_cuda_graph", "is not billed: captured graphs keep memory pools of their own"},
    {"external_cuda_graph", "is not billed: captured graphs keep memory pools of their own"},
    {"fp8_param_gather", "is not billed: weights are billed in 16 bits"},
    {"fp4_param_gather", "is not billed: weights are billed in 16 bits"},
    {"fp4_format", "linears are billed as 16-bit ones"},
    {"moe_permute_fusion", "is not billed: rows are billed as moved by PyTorch"},
    {"moe_shared_expert_overlap", "is not billed: shared experts are billed after the others"},
    {"moe_enable_deepep", "DeepEP's buffers are not billed"},
    {"moe_flex_dispatcher_backend", "is not billed: its buffers are left out"},
    {"tp_comm_overlap", "is not billed: Transformer Engine's userbuffers are left out"},
    {"defer_embedding_wgrad_compute", "keeps inputs of the head for later, which is not billed"},
    {"delay_wgrad_compute", "keeps inputs of linears for later, which is not billed"},
    {"overlap_moe_expert_parallel_comm", "runs two micro-batches side by side: one is billed"},
    {"freeze_LM", "is not billed: the language model is billed as it trains"},
    {"freeze_all_layers", "is not billed: all layers are billed as they train"},
    {"vision_model_type", "the vision tower and its features are not billed"},
    {"account_for_embedding_in_pipeline_split", "is not billed: the layers are spread evenly"},
    {"account_for_loss_in_pipeline_split", "is not billed: the layers are spread evenly"},
    {"pipeline_model_parallel_layout", "is not billed: the layers are spread evenly"},
    {"microbatch_group_size_per_vp_stage", "is not billed: a virtual stage takes as many as there are stages"},
    {"reduce_scatter_with_fp32_accumulation", "is not billed: it receives each bucket in a tensor of its own"},
    {"ddp_param_name_patterns_for_fp32_local_accumulation", "is not billed: gradients are billed in one dtype"},
    {"use_layer_wise_distributed_optimizer", "is not billed: the states are billed as shares of one buffer"},
    {"moe_z_loss_coeff", "is not billed: it keeps the router's logits"},
    {"spec", "is not read: the layers are billed as Megatron's GPT"},
    {"perform_rl_step", "is not billed: pre-training is"}};

inline constexpr std::string_view kMegatronStepHarmless =
    "inprocess_* one_logger_* ft_* otel_* muon_* lion_* fim_* dino_* logits_save_* yarn_* soap_* adaptive_muon_* "
    "megatron_fsdp_* non_persistent_* fully_parallel_* replication* deprecated_use_mcore_models "
    "DDP_impl "
    "accumulate_allreduce_grads_in_fp32 activation_func_clamp_value adam_* add_position_embedding "
    "adlr_autoresume adlr_autoresume_interval algorithm align_grad_reduce align_param_gather "
    "allow_ambiguous_pad_tokens allow_missing_vision_projection_checkpoint answer_file app_tag_run_name "
    "app_tag_run_version apply_dsa_kernel_fusion apply_layernorm_1p apply_query_key_layer_scaling "
    "apply_residual_connection_post_layernorm apply_rope_fusion apply_wd_to_qk_layernorm async_* "
    "attention_softmax_in_fp32 auto_detect_ckpt_format average_in_collective "
    "barrier_with_L1_time batch_boundaries batch_p2p_comm bert_embedder_type bert_load bias_dropout_fusion "
    "biencoder_projection_dim biencoder_shared_query_context_model block_data_path calc_ft_timeouts "
    "calculate_per_token_loss chat_template check_for_large_grads check_for_nan_in_grad "
    "check_for_nan_in_loss_and_grad check_weight_hash_across_dp_replicas_interval checkpoint ckpt_* "
    "classes_fraction clone_scatter_output_in_embedding config_logger_dir container_* cp_comm_type "
    "create_all_gather_group create_attention_mask_in_dataloader cuda_graph_modules "
    "cuda_graph_retain_backward_graph cuda_graph_scope cuda_graph_scope_deprecated cuda_graph_use_single_mempool "
    "cuda_graph_warmup_steps data_args_path data_cache_path data_parallel_random_init "
    "data_parallel_sharding_strategy data_path data_per_class_fraction data_sharding dataloader_* dataset_* "
    "ddp_* ddp_average_in_collective ddp_backend ddp_bucket_size ddp_num_buckets "
    "ddp_pad_buckets_for_high_nccl_busbw "
    "ddp_timeout decode_only_cuda_graphs decoder_num_layers "
    "decoupled_lr decoupled_min_lr decoupled_weight_decay decrease_batch_size_if_needed "
    "delay_offload_until_cuda_graph deterministic_mode disable_bf16_reduced_precision_matmul "
    "disable_gloo_process_groups disable_msc_deprecated disable_parameter_transpose_cache "
    "disable_straggler_on_startup disable_symmetric_registration disable_vision_class_token dist_ckpt_* "
    "distributed_backend distributed_timeout_minutes drain_between_batches dump_param_to_param_group_map "
    "embedding_init_method_std embedding_path empty_unused_memory_level enable_autocast enable_channel_loss "
    "enable_chunked_prefill enable_dft_loss enable_experimental enable_ft_package enable_full_sharding_in_hsdp "
    "enable_gpt_oss enable_msc enable_one_logger enable_thinking end_weight_decay eod_mask_loss epochs "
    "eval_global_batch_size eval_interval eval_iters eval_micro_batch_size evidence_data_path exit_* export_* "
    "fake_process_group filter_warnings finetune finetune_hf_dataset first_last_layers_bf16 "
    "flash_attention_version fp8_amax_compute_algo fp8_amax_history_len fp8_dot_product_attention fp8_interval "
    "fp8_margin fp8_multi_head_attention fp8_output_proj fp8_param fp8_quantizer_factory fp8_recipe fp8_wgrad "
    "freeze_aligner freeze_llm freeze_parameters freeze_parameters_ratio freeze_parameters_regex freeze_vit "
    "fsdp_double_buffer fsdp_manual_registration full_validation glu_linear_offset gpu_sniff_test_interval "
    "grad_norm_skip_threshold grad_reduce_in_fp32 gradient_reduce_div_fusion grpo_* gt_path guess_file "
    "head_lr_mult help hf_* high_priority_a2a_comm_stream hypothesis hysteresis ict_head_size ict_load "
    "image_tag_type img_* incoming_requests_per_step inference_* init_method_std init_method_xavier_uniform "
    "init_model_with_meta_device initial_loss_scale input_image_path iter_per_epoch iterations_to_skip "
    "keep_fp8_transpose_cache kitchen_config_file kitchen_recipe_number langrl_* language_model_type "
    "layernorm_epsilon load load_data_args load_main_params_from_ckpt load_optim load_rng log_* logging_level "
    "loss_scale loss_scale_window lr lr_* manual_gc* mask_factor mask_prob mask_type master_addr master_port "
    "max_new_tokens max_num_tiles max_tokens_to_oom merge_file "
    "mid_level_dataset_surplus min_loss_scale min_lr mla_down_proj_fusion mmap_bin_files mock_data mode "
    "model_author model_kwargs model_name model_provider model_temperature model_type "
    "modules_to_filter moe_apply_probs_on_input moe_combine_bwd_dtype moe_deepep_num_sms moe_dispatch_fwd_dtype "
    "moe_enable_routing_replay moe_expert_rank_capacity_factor moe_flex_dispatcher_num_sms moe_grad_scale_func "
    "moe_hybridep_num_blocks_permute moe_hybridep_num_blocks_unpermute moe_hybridep_num_sms "
    "moe_hybridep_num_sms_preprocessing moe_hybridep_pad_uneven_dispatch_inputs moe_input_jitter_eps "
    "moe_mlp_glu_interleave_size moe_ncclep_zero_copy moe_pad_experts_for_cuda_graph_inference "
    ""
    "moe_per_layer_logging moe_permute_fusion_into_hybridep moe_router_bias_update_rate moe_router_force_biased "
    "moe_router_force_load_balancing moe_router_fusion moe_router_group_topk moe_router_num_groups "
    "moe_router_padding_for_fp8 moe_router_padding_for_quantization moe_router_pre_softmax "
    "moe_router_quantile_balancing_ema moe_router_score_function moe_router_topk_limited_devices "
    "moe_router_topk_scaling_factor moe_routing_trace_capture_hidden_states moe_routing_trace_capture_logits "
    "moe_routing_trace_dump_weights moe_routing_trace_max_training_iters moe_routing_trace_path "
    "moe_shared_expert_gate moe_shared_expert_glu_interleave_size moe_single_grouped_bias "
    "moe_single_grouped_weight moe_token_drop_policy moe_token_dropping moe_upcycling_granularity "
    "moe_use_grouped_tensor moe_use_upcycling most_recent_k mscale mscale_all_dim "
    "multiple_validation_sets nccl_all_reduce_for_prefill nnodes no_bias_dropout_fusion "
    "no_check_for_nan_in_loss_and_grad no_create_attention_mask_in_dataloader no_initialization no_load_optim "
    "no_load_rng no_log_learning_rate_to_tensorboard no_mmap_bin_files no_persist_layer_norm "
    "no_position_embedding no_rl_use_sequence_packing no_rope_freq no_rope_fusion no_save_rng no_sync_func "
    "no_use_tokenizer_model_from_checkpoint_args no_weight_decay_cond_type node_rank norm_epsilon nproc "
    "nproc_per_node null_tokenizer_eod_id null_tokenizer_pad_id num_channels num_classes "
    "num_dataset_builder_threads num_partitions num_prompt_examples num_samples num_speculative_tokens "
    "num_tokens_to_generate num_workers object_storage_cache_path offset_sampling_seed_by_dp_rank onnx_safe "
    "openai_gelu optimizer_cuda_graph original_max_position_embeddings out_seq_length outer_dp_sharding_strategy "
    "output output_* overlap_cpu_optimizer_d2h_h2d overlap_dispatch_backward_with_experts_wgrad overlap_p2p_comm "
    "overlap_p2p_comm_warmup_flush overlap_param_gather overlap_param_gather_with_optimizer_step "
    "override_ckpt_iteration override_opt_param_scheduler packing_seq_length pad_buckets_for_high_nccl_busbw "
    "pad_vocab_size partition_id patch_dim per_dataset_sequences_path per_split_data_args_path "
    "perform_initialization persist_layer_norm phase_transition_iterations pin_cpu_params "
    "pipeline_model_parallel_comm_backend pixel_shuffle pretrained_checkpoint "
    "pretrained_model_name pretrained_model_path profile* prompt_* qk_clip qk_clip_alpha qk_clip_threshold "
    "qk_l2_norm query_* rampup_batch_size references refit_method "
    "relative_attention_max_distance relative_attention_num_buckets rerun_mode reset_attention_mask "
    "reset_position_ids result_rejected_tracker_filename retriever_* return_log_probs rl_* rope_* rotary_* "
    "run_workload_inspector_server runtime_time_unit sample_input_file sample_output_file sample_rate save_* "
    "seed sft sft_tokenizer_prompt_format sgd_momentum short_seq_prob skip_train softmax_scale softmax_type "
    "special_tokens split start_eval_at_iter start_weight_decay step_batch_size_schedule steps "
    "straggler_* stream suggested_communication_unit_size swin_backbone_type "
    "symmetric_ar_type task te_precision_config_file te_rng_tracker temperature tensorboard_* termination_id "
    "test_data_path throughput_window_size tiktoken_* timing_* titles_data_path tokenizer_* top_k top_p "
    "torch_fsdp2_reshard_after_forward total_seq_length tp_comm_atomic_ag tp_comm_atomic_rs "
    "tp_comm_bootstrap_backend tp_comm_bulk_dgrad tp_comm_bulk_wgrad tp_comm_overlap_ag tp_comm_overlap_cfg "
    "tp_comm_overlap_disable_fc1 tp_comm_overlap_disable_qkv tp_comm_overlap_rs tp_comm_overlap_rs_dgrad "
    "tp_comm_split_ag tp_comm_split_rs train_data_path train_iters train_samples train_sync_interval "
    "trust_remote_code use_area_weighted_aspect_ratio use_checkpoint_args use_checkpoint_opt_param_scheduler "
    "use_coordinator use_cpu_initialization use_dist_ckpt_deprecated use_fused_mhc "
    "use_fused_weighted_squared_relu use_gigatoken use_grouped_gemm_for_shared_expert use_gym_env use_hf "
    "use_inference_optimized_layers use_kitchen use_kitchen_attention "
    "use_layer_wise_param_layout use_legacy_static_engine use_loss_scaling use_mamba_mem_eff_path "
    "use_mp_args_from_checkpoint_args use_mup use_one_sent_docs use_persistent_ckpt_worker use_ray "
    "use_ring_exchange_p2p use_rope_scaling use_rslora use_shared_expert_gate use_te use_te_activation_func "
    "use_te_rng_tracker use_thumbnail use_tile_tags use_tiling use_tokenizer_model_from_checkpoint_args "
    "use_torch_optimizer_for_cpu_offload use_transformer_engine_op_fuser use_vllm valid_data_path "
    "validation_set_names verbose verify_integrity vision_backbone_type vision_pretraining_type vocab_extra* "
    "vocab_file wandb_* warmup wd_incr_steps weight_decay weight_decay_* window_attn_skip_freq window_size "
    "wsd_decay_steps";

}  // namespace membill::io
