// The keys of ms-swift's arguments, of releases 2 to 4, with their defaults and the file of swift/ that has them.
#pragma once

#include <string_view>

#include "io/importers/key_table.h"

namespace membill::io {

inline constexpr KeyRow kMsSwiftKeys[] = {
    {"model", "", "model", {}, "arguments/base_args/model_args.py"},
    {"model_id_or_path", "", "", "model"},
    {"model_type", "", "", "model"},
    {"tuner_type", "lora", "which parameters train", {}, "arguments/base_args/base_args.py"},
    {"train_type", "", "", "tuner_type"},
    {"sft_type", "", "", "tuner_type"},
    {"torch_dtype",
     "",
     "dtype in which the weights are loaded; absent: as the checkpoint says",
     {},
     "arguments/base_args/model_args.py"},
    {"dtype", "", "", "torch_dtype"},
    {"per_device_train_batch_size", "1", "micro-batch", {}, "trainers/arguments.py"},
    {"batch_size", "", "", "per_device_train_batch_size"},
    {"per_device_eval_batch_size", "1", "batch of the evaluation", {}, "trainers/arguments.py"},
    {"eval_batch_size", "", "", "per_device_eval_batch_size"},
    {"gradient_accumulation_steps",
     "",
     "micro-batches of a step; absent: about 16 samples in all",
     {},
     "trainers/arguments.py"},
    {"task_type", "causal_lm", "class of the model", {}, "arguments/base_args/model_args.py"},
    {"num_labels", "", "labels of task_type seq_cls", {}, "arguments/base_args/model_args.py"},
    {"gradient_checkpointing", "true", "layers run their forward again in backward", {}, "trainers/arguments.py"},
    {"max_length", "", "tokens of a sequence; absent: the model's maximum", {}, "arguments/base_args/template_args.py"},
    {"packing", "false", "several samples share a sequence", {}, "arguments/base_args/base_args.py"},
    {"packing_length", "", "tokens of a packed sequence; absent: max_length", {}, "arguments/base_args/base_args.py"},
    {"bnb_4bit_quant_storage", "", "dtype that holds the 4-bit weights", {}, "arguments/base_args/quant_args.py"},
    {"padding_free", "false", "samples are joined without padding", {}, "arguments/base_args/template_args.py"},
    {"attn_impl", "", "attention kernel", {}, "arguments/base_args/model_args.py"},
    {"use_flash_attn", "", "flash attention"},
    {"sequence_parallel_size", "1", "sequence parallel (Ulysses) degree", {}, "arguments/base_args/template_args.py"},
    {"target_modules", "all-linear", "modules that get an adapter", {}, "arguments/tuner_args.py"},
    {"lora_target_modules", "", "", "target_modules"},
    {"target_parameters", "", "parameters that get an adapter", {}, "arguments/tuner_args.py"},
    {"max_pixels", "", "pixels that larger images are scaled to", {}, "arguments/base_args/template_args.py"},
    {"freeze_vit", "true", "whether the vision tower trains", {}, "arguments/tuner_args.py"},
    {"freeze_aligner", "true", "whether the projector trains", {}, "arguments/tuner_args.py"},
    {"freeze_llm", "false", "whether the language model trains", {}, "arguments/tuner_args.py"},
    {"freeze_parameters_regex", "", "parameters that do not train", {}, "arguments/tuner_args.py"},
    {"trainable_parameters_regex", "", "parameters that train after all", {}, "arguments/tuner_args.py"},
    {"target_regex", "", "pattern of modules that get an adapter", {}, "arguments/tuner_args.py"},
    {"modules_to_save", "", "modules that train whole", {}, "arguments/tuner_args.py"},
    {"lora_modules_to_save", "", "", "modules_to_save"},
    {"lora_rank", "8", "rank of the adapters", {}, "arguments/tuner_args.py"},
    {"lora_alpha", "32", "scale of the adapters", {}, "arguments/tuner_args.py"},
    {"lora_dropout", "0.05", "dropout before the adapters", {}, "arguments/tuner_args.py"},
    {"lora_dropout_p", "", "", "lora_dropout"},
    {"lora_dtype", "", "dtype of the adapters; absent: PEFT's", {}, "arguments/tuner_args.py"},
    {"deepspeed_config_path", "", "", "deepspeed"},
    {"lora_target_regex", "", "", "target_regex"},
    {"train_backend", "transformers", "transformers or megatron (2.x)"},
    {"use_dora", "false", "DoRA", {}, "arguments/tuner_args.py"},
    {"quant_bits", "", "bits of the base's weights", {}, "arguments/base_args/quant_args.py"},
    {"quantization_bit", "", "", "quant_bits"},
    {"quant_method", "", "who stores them", {}, "arguments/base_args/quant_args.py"},
    {"bnb_4bit_quant_type", "nf4", "4-bit format", {}, "arguments/base_args/quant_args.py"},
    {"bnb_4bit_use_double_quant", "true", "the scales are quantised too", {}, "arguments/base_args/quant_args.py"},
    {"rlhf_type", "dpo", "which preference stage (swift rlhf)"},
    {"beta", "", "strength of the reference"},
    {"max_completion_length", "512", "tokens of the completion", {}, "arguments/rlhf_args.py"},
    {"response_length",
     "",
     "tokens of the completion (ppo), before max_completion_length",
     {},
     "arguments/rlhf_args.py"},
    {"num_mini_batches", "1", "updates of one generation (ppo)", {}, "arguments/rlhf_args.py"},
    {"local_rollout_forward_batch_size", "64", "rows that are generated at once (ppo)", {}, "arguments/rlhf_args.py"},
    {"num_generations", "8", "completions of one prompt", {}, "arguments/rlhf_args.py"},
    {"steps_per_generation", "", "micro-batches that one generation feeds", {}, "trainers/arguments.py"},
    {"generation_batch_size", "", "completions of one generation on all cards", {}, "trainers/arguments.py"},
    {"num_iterations", "1", "times that a generation is trained on", {}, "trainers/arguments.py"},
    {"use_vllm", "false", "vLLM generates", {}, "arguments/rlhf_args.py"},
    {"vllm_mode", "server", "on the same cards or elsewhere", {}, "arguments/rlhf_args.py"},
    {"vllm_gpu_memory_utilization", "0.9", "share of a card that vLLM takes", {}, "arguments/infer_args.py"},
    {"vllm_enable_sleep_mode", "false", "vLLM gives its memory back while the model trains"},
    {"sleep_level", "0", "1: vLLM gives its memory back while the model trains", {}, "arguments/rlhf_args.py"},
    {"eval_strategy", "", "whether the job evaluates", {}, "arguments/sft_args.py"},
    {"split_dataset_ratio",
     "0.0",
     "share of the data that the evaluation gets",
     {},
     "arguments/base_args/data_args.py"},
    {"dataset_test_ratio", "", "", "split_dataset_ratio"},
    {"val_dataset", "", "data of the evaluation", {}, "arguments/base_args/data_args.py"},
    {"use_galore", "false", "GaLore", {}, "trainers/arguments.py"},
    {"galore_rank", "128", "rank of GaLore", {}, "trainers/arguments.py"},
    {"galore_update_proj_gap", "50", "GaLore's update interval", {}, "trainers/arguments.py"},
    {"galore_quantization", "false", "Q-GaLore", {}, "trainers/arguments.py"},
    {"lisa_activated_layers", "0", "layers that LISA trains at a time", {}, "trainers/arguments.py"},
    {"optimizer", "", "optimizers of ms-swift's own", {}, "trainers/arguments.py"},
    {"vit_gradient_checkpointing", "", "checkpointing of the vision tower", {}, "trainers/arguments.py"},
    {"use_logits_to_keep", "", "only the positions with labels get logits", {}, "trainers/arguments.py"},
    {"new_special_tokens", "", "new tokens resize the vocabulary", {}, "arguments/base_args/model_args.py"},
    {"router_aux_loss_coef", "", "weight of the router's own loss", {}, "trainers/arguments.py"},
    {"enable_dft_loss", "", "the loss weighs each token", {}, "trainers/arguments.py"},
    {"enable_channel_loss", "", "the loss of each token is kept", {}, "trainers/arguments.py"},
    {"device_map", "", "the model is spread over cards", {}, "arguments/base_args/model_args.py"},
    {"max_memory", "", "the model is spread over cards", {}, "arguments/base_args/model_args.py"},
    {"experts_impl", "", "how experts run", {}, "arguments/base_args/model_args.py"},
    {"loss_type", "", "how the loss is computed"},
    {"cpo_alpha", "1.0", "weight of the chosen answers' own loss", {}, "arguments/rlhf_args.py"},
    {"rpo_alpha", "", "weight of the chosen answers' own loss", {}, "arguments/rlhf_args.py"},
    {"adalora_init_r", "12", "rank with which AdaLoRA begins", {}, "arguments/tuner_args.py"},
    {"vera_rank", "256", "rank of VeRA", {}, "arguments/tuner_args.py"},
    {"reward_model", "", "the reward model and the value model (ppo)", {}, "arguments/rlhf_args.py"},
    {"ref_model", "", "the reference model", {}, "arguments/rlhf_args.py"},
    {"llamapro_num_new_blocks", "", "new blocks train", {}, "arguments/tuner_args.py"},
    {"predict_with_generate", "", "the evaluation generates"},
    {"eval_use_evalscope", "", "the evaluation generates", {}, "trainers/arguments.py"},
    {"additional_trainable_parameters", "", "", "trainable_parameters"},
    {"neftune_alpha", "", "", "neftune_noise_alpha"},
    {"deepspeed_autotp_size", "", "tensor parallel degree", {}, "arguments/sft_args.py"},
    {"zero_hpz_partition_size", "", "cards of ZeRO++'s second copy", {}, "arguments/sft_args.py"},
    {"freeze_parameters", "", "parameters that do not train", {}, "arguments/tuner_args.py"},
    {"freeze_parameters_ratio",
     "0.0",
     "share of the first parameters that do not train",
     {},
     "arguments/tuner_args.py"},
    {"trainable_parameters", "", "parameters that train all the same", {}, "arguments/tuner_args.py"},
};

inline constexpr std::string_view kMsSwiftHarmless =
    "tuner_backend adapters external_plugins custom_register_path model_kwargs enable_npu_model_patch load_args "
    "load_data_args "
    "packing_num_proc packing_strategy lazy_tokenize use_hf ignore_args_error use_swift_lora model_revision "
    ""
    "problem_type rope_scaling max_model_len local_repo_path "
    "init_strategy hqq_axis "
    "bnb_4bit_compute_dtype bnb_4bit_comp_dtype template template_type system "
    "truncation_strategy "
    "agent_template norm_bbox use_chat_template padding_side loss_scale is_binary_loss_scale template_backend "
    "response_prefix "
    "enable_thinking preserve_thinking add_non_thinking_prefix disable_ignore_empty_think dataset cached_dataset "
    "cached_val_dataset dataset_* load_from_cache_file val_dataset_shuffle val_dataset_sample train_dataset_sample "
    "streaming "
    "interleave_prob stopping_strategy shuffle_buffer_size download_mode columns strict disable_auto_column_mapping "
    "model_name "
    "model_author custom_* "
    "lora_bias* lorap_lr_ratio lora_lr_ratio use_rslora lora_ga_* init_weights init_lora_weights fourier_* boft_* "
    "vera_projection_prng_key vera_dropout vera_d_initial vera_target_modules vera_modules_to_save adapter_* "
    "adalora_target_r adalora_t* adalora_deltaT adalora_beta* adalora_orth_reg_weight llamapro_num_groups reft_* "
    "swanlab_* add_version add_output_dir_suffix create_checkpoint_symlink max_new_tokens "
    "temperature "
    "top_p top_k repetition_penalty safe_serialization "
    "max_shard_size "
    "check_model acc_strategy train_dataloader_shuffle max_epochs aligner_lr vit_lr ds3_gather_for_generation "
    "resume_only_model "
    "mrl_dims neftune_backend device_map_config_path eval_metric callbacks early_stop_interval eval_dataset* "
    "eval_limit "
    "eval_generation_config "
    "extra_eval_args galore_* lisa_step_interval use_flash_ckpt check_dataset_strategy self_cognition_sample "
    "preprocess_num_proc "
    "only_save_model use_loss_scale ddp_backend_ gpu_ids rlhf_ ref_model_* ref_adapters reward_adapters reward_model_* "
    "reward_funcs reward_weights reward_template "
    "save_on_each_node "
    "logging_first_step lazy_* test_oom_error disable_tqdm infer_backend merge_lora sft_ data_seed acc_steps "
    "train_dataset_mix_* dataloader_* channels check_model_is_latest ckpt_dir "
    "device_max_memory do_sample fsdp_num gpu_memory_fraction hqq_dynamic_config_path ia3_* lora_modules "
    "loss_scale_config_path metric metric_warmup_step min_lr model_cache_dir model_layer_cls_name num_beams "
    "packing_cache "
    "vllm_* offload_model offload_optimizer log_completions async_generate num_infer_workers dynamic_sample "
    "overlong_filter max_resample_times soft_* cosine_* repetition_* move_model_batches gc_collect_after_offload "
    "multi_turn_scheduler max_turns epsilon* scale_rewards importance_sampling_level delta enable_cache "
    "pp push_hub_strategy rescale_image sequence_parallel streaming_* tools_prompt tp";

}  // namespace membill::io
