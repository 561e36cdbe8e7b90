// The keys of DeepSpeed's JSON, with their defaults and the file of deepspeed/runtime that has them.
#pragma once

#include <string_view>

#include "io/importers/key_table.h"

namespace membill::io {

inline constexpr KeyRow kDeepSpeedKeys[] = {
    {"zero_optimization.stage", "0", "ZeRO stage", {}, "zero/config.py"},
    {"zero_optimization.contiguous_gradients", "", "gradients are copied to the reduce bucket", {}, "zero/config.py"},
    {"zero_optimization.reduce_bucket_size", "500000000", "elements of the reduce bucket", {}, "zero/config.py"},
    {"zero_optimization.allgather_bucket_size",
     "500000000",
     "elements gathered at once after the step",
     {},
     "zero/config.py"},
    {"zero_optimization.overlap_comm", "", "a second reduce bucket; unset: stage 3 only", {}, "zero/config.py"},
    {"zero_optimization.reduce_scatter", "true", "gradients are reduced into shards", {}, "zero/config.py"},
    {"zero_optimization.sub_group_size", "1000000000", "elements that one step of ZeRO-3 takes", {}, "zero/config.py"},
    {"zero_optimization.stage3_prefetch_bucket_size", "50000000", "elements gathered ahead", {}, "zero/config.py"},
    {"zero_optimization.prefetch_bucket_size", "", "", "zero_optimization.stage3_prefetch_bucket_size"},
    {"zero_optimization.stage3_param_persistence_threshold",
     "100000",
     "smaller tensors stay whole",
     {},
     "zero/config.py"},
    {"zero_optimization.param_persistence_threshold", "", "", "zero_optimization.stage3_param_persistence_threshold"},
    {"zero_optimization.stage3_max_live_parameters",
     "1000000000",
     "gathered elements that may live at once",
     {},
     "zero/config.py"},
    {"zero_optimization.max_live_parameters", "", "", "zero_optimization.stage3_max_live_parameters"},
    {"zero_optimization.stage3_max_reuse_distance",
     "1000000000",
     "reused within so many elements: not freed",
     {},
     "zero/config.py"},
    {"zero_optimization.max_reuse_distance", "", "", "zero_optimization.stage3_max_reuse_distance"},
    {"zero_optimization.zero_hpz_partition_size",
     "1",
     "cards of ZeRO++'s second copy of the weights",
     {},
     "zero/config.py"},
    {"zero_optimization.mics_shard_size", "-1", "cards of a MiCS group", {}, "zero/config.py"},
    {"zero_optimization.offload_optimizer.device",
     "none",
     "where master weights and states live",
     {},
     "zero/offload_config.py"},
    {"zero_optimization.offload_optimizer.pin_memory", "true", "page-locked host memory", {}, "zero/offload_config.py"},
    {"zero_optimization.offload_param.device",
     "none",
     "where the weights' shards live (stage 3)",
     {},
     "zero/offload_config.py"},
    {"zero_optimization.offload_param.pin_memory", "true", "page-locked host memory", {}, "zero/offload_config.py"},
    {"zero_optimization.offload_optimizer.buffer_count",
     "4",
     "host buffers between the card and NVMe",
     {},
     "zero/offload_config.py"},
    {"zero_optimization.offload_param.buffer_count",
     "5",
     "host buffers between NVMe and the card",
     {},
     "zero/offload_config.py"},
    {"zero_optimization.offload_param.buffer_size",
     "100000000",
     "elements of such a buffer",
     {},
     "zero/offload_config.py"},
    {"zero_optimization.offload_param.max_in_cpu",
     "1000000000",
     "elements that stay in host memory",
     {},
     "zero/offload_config.py"},
    {"zero_optimization.cpu_offload", "", "old spelling of offload_optimizer.device cpu", {}, "zero/config.py"},
    {"zero_optimization.cpu_offload_params", "", "old spelling of offload_param.device cpu", {}, "zero/config.py"},
    {"zero_optimization.cpu_offload_use_pin_memory", "", "old spelling of pin_memory", {}, "zero/config.py"},
    {"zero_optimization.stage3_gather_16bit_weights_on_model_save",
     "false",
     "a checkpoint holds the whole weights",
     {},
     "zero/config.py"},
    {"zero_optimization.stage3_gather_fp16_weights_on_model_save", "", "",
     "zero_optimization.stage3_gather_16bit_weights_on_model_save"},
    {"zero_optimization.gather_16bit_weights_on_model_save", "", "",
     "zero_optimization.stage3_gather_16bit_weights_on_model_save"},
    {"zero_optimization.zero_quantized_weights", "", "weights are gathered in int8", {}, "zero/config.py"},
    {"zero_optimization.zero_quantized_gradients", "", "gradients are sent in int4", {}, "zero/config.py"},
    {"zero_optimization.zero_quantized_nontrainable_weights", "", "frozen weights are kept in int8"},
    {"zero_optimization.memory_efficient_linear",
     "",
     "linears of stage 3 gather their weights again",
     {},
     "zero/config.py"},
    {"zero_optimization.zenflow", "", "the optimizer's step runs beside the next ones", {}, "zero/config.py"},
    {"zero_optimization.offload_optimizer.ratio",
     "1.0",
     "share of the optimizer on the host",
     {},
     "zero/offload_config.py"},
    {"zero_optimization.offload_optimizer.super_offload", "", "SuperOffload"},
    {"bf16.enabled", "false", "bf16 weights with an fp32 master", {}, "precision_config.py"},
    {"bfloat16.enabled", "", "", "bf16.enabled"},
    {"bf16.bf16_master_weights_and_grads", "false", "the master weights are bf16", {}, "precision_config.py"},
    {"bf16.bf16_optimizer_states", "false", "the moments are bf16", {}, "precision_config.py"},
    {"fp16.enabled", "false", "fp16 weights with an fp32 master", {}, "precision_config.py"},
    {"fp16.fp16_master_weights_and_grads", "", "the master weights are fp16", {}, "precision_config.py"},
    {"torch_autocast.enabled", "false", "fp32 weights under autocast", {}, "precision_config.py"},
    {"torch_autocast.dtype", "bfloat16", "autocast's dtype", {}, "tensor_parallel/config.py"},
    {"torch_autocast.lower_precision_safe_modules",
     "",
     "whose gradients are sent in autocast's dtype",
     {},
     "config.py"},
    {"amp.enabled", "false", "Apex", {}, "precision_config.py"},
    {"data_types.grad_accum_dtype", "", "dtype in which gradients accumulate"},
    {"gradient_clipping", "", "gradients are clipped by norm"},
    {"train_micro_batch_size_per_gpu", "", "micro-batch"},
    {"gradient_accumulation_steps", "", "micro-batches of a step"},
    {"train_batch_size", "", "micro-batch x accumulation x cards"},
    {"optimizer.type", "", "optimizer, made by DeepSpeed"},
    {"expert_parallel.enabled", "false", "AutoEP", {}, "module_inject/auto_ep_config.py"},
    {"expert_parallel.autoep_size", "1", "expert parallel degree", {}, "module_inject/auto_ep_config.py"},
    {"tensor_parallel.autotp_size", "", "tensor parallel degree", {}, "tensor_parallel/config.py"},
    {"sequence_parallel_size", "", "Ulysses degree"},
    {"activation_checkpointing.partition_activations", "", "checkpoints are split over the tensor-parallel ranks"},
    {"activation_checkpointing.partitioned_activations", "", "", "activation_checkpointing.partition_activations"},
    {"activation_checkpointing.cpu_checkpointing", "", "checkpoints live on the host"},
    {"activation_checkpointing.contiguous_memory_optimization", "", "checkpoints of all layers share buffers"},
    {"activation_checkpointing.number_checkpoints", "", "how many such buffers"},
};

inline constexpr std::string_view kDeepSpeedHarmless =
    "optimizer.params* optimizer.legacy_fusion scheduler* fp16.loss_scale fp16.initial_scale_power "
    "fp16.loss_scale_window "
    "fp16.hysteresis fp16.min_loss_scale fp16.auto_cast fp16.consecutive_hysteresis fp16.opt_level "
    "bf16.immediate_grad_update "
    "bf16.check_grad_overflow bfloat16.immediate_grad_update bf16.loss_scale bf16.initial_scale_power "
    "bf16.loss_scale_window "
    "bf16.hysteresis bf16.min_loss_scale bf16.auto_cast amp.opt_level fp16.fp16_opt_level "
    "zero_optimization.allgather_partitions zero_optimization.round_robin_gradients "
    "zero_optimization.use_multi_rank_bucket_allreduce "
    "zero_optimization.stage3_allgather_sequential zero_optimization.stage3_module_granularity_threshold "
    "zero_optimization.stage3_model_persistence_threshold zero_optimization.model_persistence_threshold "
    "zero_optimization.stage3_use_all_reduce_for_fetch_params zero_optimization.ignore_unused_parameters "
    "zero_optimization.load_from_fp32_weights zero_optimization.elastic_checkpoint zero_optimization.legacy_stage1 "
    "zero_optimization.pipeline_loading_checkpoint zero_optimization.override_module_apply "
    "zero_optimization.enable_sanity_checks zero_optimization.save_muon_momentum_buffer_in_memory "
    "zero_optimization.mics_hierarchical_params_gather "
    "zero_optimization.offload_optimizer.fast_init "
    "zero_optimization.offload_optimizer.nvme_path zero_optimization.offload_optimizer.pipeline* "
    "zero_optimization.offload_optimizer.buffer_size zero_optimization.offload_optimizer.max_in_cpu "
    "zero_optimization.offload_optimizer.cpuadam_cores_perc "
    "zero_optimization.offload_param.nvme_path "
    "zero_optimization.log_trace_cache_warnings "
    "aio* wall_clock_breakdown steps_per_print prescale_gradients gradient_predivide_factor "
    "zero_allow_untested_optimizer "
    "zero_force_ds_cpu_optimizer communication_data_type seq_parallel_communication_data_type dump_state "
    "disable_allgather "
    "flops_profiler* tensorboard* wandb* csv_monitor* comms_logger* autotuning* elasticity* data_efficiency* "
    "dataloader_drop_last expert_parallel* graph_harvesting checkpoint* sparse_gradients memory_breakdown timers* "
    "train_steps comment* "
    "gradient_accumulation_dtype checkpoint_tag_validation load_universal_checkpoint use_data_before_expert_parallel_ "
    "progressive_layer_drop* comms_config* monitor_config* compile inference* memory_debug_breakdown "
    "activation_checkpointing.synchronize_checkpoint_boundary activation_checkpointing.profile "
    "data_types.params_dtype zero_allow_comm_data_type curriculum_learning* "
    "compression_training* sparse_attention*";

}  // namespace membill::io
