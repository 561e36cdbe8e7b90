"""One rank's model, buffers and optimizer as Megatron-core builds them, from a row of data/measurements/oracle-megatron.jsonl."""
import torch

import megatron_parts as parts

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


def sharding(job, key, default=None):
    return job.get("sharding", {}).get(key, default)


def degree(job, key):
    return job.get("parallel", {}).get(key, 1)


def stream(job):
    return DTYPES["fp16" if job["precision"] == "master-fp16" else "bf16"]


def sizes(config):
    """What TransformerConfig takes of a Hugging Face config."""
    if config["model_type"] == "gpt2":
        width = config["n_embd"]
        return {"num_layers": config["n_layer"], "hidden_size": width, "num_attention_heads": config["n_head"],
                "ffn_hidden_size": config.get("n_inner") or 4 * width, "add_bias_linear": True, "normalization": "LayerNorm",
                "activation_func": torch.nn.functional.gelu}
    found = {"num_layers": config["num_hidden_layers"], "hidden_size": config["hidden_size"],
             "num_attention_heads": config["num_attention_heads"], "num_query_groups": config.get("num_key_value_heads"),
             "ffn_hidden_size": config["intermediate_size"], "add_bias_linear": False, "normalization": "RMSNorm",
             "gated_linear_unit": True, "activation_func": torch.nn.functional.silu}
    if config.get("head_dim"):
        found["kv_channels"] = config["head_dim"]
    found["add_qkv_bias"] = config["model_type"].startswith("qwen2") or config.get("attention_bias", False)
    found["qk_layernorm"] = config["model_type"].startswith("qwen3") or is_latent(config) or config.get("use_qk_norm", False)
    return found


def is_latent(config):
    return "kv_lora_rank" in config


def latent_settings(config):
    if not is_latent(config):
        return {}
    return {"multi_latent_attention": True, "q_lora_rank": config.get("q_lora_rank"), "kv_lora_rank": config["kv_lora_rank"],
            "qk_head_dim": config["qk_nope_head_dim"], "qk_pos_emb_head_dim": config["qk_rope_head_dim"],
            "v_head_dim": config["v_head_dim"], "rope_type": "rope", "apply_rope_fusion": False}


def experts(config):
    return config.get("num_local_experts") or config.get("num_experts") or config.get("n_routed_experts")


def scores_by_sigmoid(config):
    return config["model_type"] in ("deepseek_v3", "glm4_moe")


def group_settings(config):
    """Routers that score by sigmoid: a bias steers the choice, among groups first."""
    if not scores_by_sigmoid(config):
        return {}
    return {"moe_router_score_function": "sigmoid", "moe_router_enable_expert_bias": True,
            "moe_router_num_groups": config.get("n_group"), "moe_router_group_topk": config.get("topk_group"),
            "moe_router_topk_scaling_factor": config.get("routed_scaling_factor")}


def expert_settings(config, job):
    if not experts(config):
        return {}
    balancing = sharding(job, "moe_router_load_balancing_type", "none")
    shared = config.get("shared_expert_intermediate_size") or config.get("n_shared_experts", 0) * config.get("moe_intermediate_size", 0)
    frequency = [int(layer >= config.get("first_k_dense_replace", 0)) for layer in range(config["num_hidden_layers"])]
    return {**group_settings(config), "num_moe_experts": experts(config), "moe_layer_freq": frequency, "moe_router_topk": config["num_experts_per_tok"],
            "moe_router_pre_softmax": config["num_experts_per_tok"] == 1,  # which one expert needs
            "moe_ffn_hidden_size": config.get("moe_intermediate_size") or config["intermediate_size"],
            "moe_shared_expert_intermediate_size": shared or None,
            "moe_shared_expert_gate": bool(config.get("shared_expert_intermediate_size")),
            "moe_token_dispatcher_type": sharding(job, "moe_token_dispatcher_type", "alltoall"),
            "moe_grouped_gemm": sharding(job, "moe_grouped_gemm", False),
            "moe_expert_capacity_factor": sharding(job, "moe_expert_capacity_factor"),
            "moe_pad_expert_input_to_capacity": sharding(job, "moe_pad_expert_input_to_capacity", False),
            "moe_router_load_balancing_type": balancing, "moe_aux_loss_coeff": 0.0 if balancing == "none" else 0.01,
            "moe_router_dtype": sharding(job, "moe_router_dtype"),
            "expert_model_parallel_size": degree(job, "ep"), "expert_tensor_parallel_size": degree(job, "expert_tp")}


def recompute_settings(job):
    plan = job.get("checkpointing", "none")
    plan = plan if isinstance(plan, dict) else {"mode": plan}
    mode, _, modules = plan["mode"].partition(":")
    if mode == "full":
        return {"recompute_granularity": "full", "recompute_method": plan.get("method", "uniform"),
                "recompute_num_layers": plan.get("layers", 1),
                "distribute_saved_activations": bool(sharding(job, "distribute_saved_activations"))}
    if mode == "selective":
        return {"recompute_granularity": "selective", "recompute_modules": modules.split(",") if modules else ["core_attn"]}
    return {}


def transformer_config(config, job):
    from megatron.core.transformer import transformer_config as kinds
    kind = kinds.MLATransformerConfig if is_latent(config) else kinds.TransformerConfig
    dropout = job.get("dropout", 0.0)
    dtype = stream(job)
    chunks = degree(job, "virtual_pp")
    ends = {key: sharding(job, long) for key, long in
            (("num_layers_in_first_pipeline_stage", "decoder_first_pipeline_num_layers"),
             ("num_layers_in_last_pipeline_stage", "decoder_last_pipeline_num_layers")) if sharding(job, long)}
    return kind(
        **sizes(config), **latent_settings(config), **expert_settings(config, job), **recompute_settings(job), **ends,
        tensor_model_parallel_size=degree(job, "tp"), pipeline_model_parallel_size=degree(job, "pp"),
        virtual_pipeline_model_parallel_size=chunks if chunks > 1 else None, context_parallel_size=degree(job, "cp"),
        sequence_parallel=job.get("parallel", {}).get("sp", False), params_dtype=dtype, pipeline_dtype=dtype, autocast_dtype=dtype,
        bf16=dtype == torch.bfloat16, fp16=dtype == torch.float16, attention_dropout=dropout, hidden_dropout=dropout,
        bias_activation_fusion=True, bias_dropout_fusion=True, gradient_accumulation_fusion=False, masked_softmax_fusion=False,
        attention_softmax_in_fp32=True, cross_entropy_loss_fusion=bool(sharding(job, "cross_entropy_loss_fusion")),
        persist_layer_norm=False, batch_p2p_comm=False, overlap_p2p_comm=False,
        deallocate_pipeline_outputs=sharding(job, "pipeline_deallocate", True), mtp_num_layers=sharding(job, "mtp_num_layers"))


def layer_spec(config, job, settings):
    """One layer's modules, or each layer's where the first ones are dense."""
    dense = config.get("first_k_dense_replace", 0)
    if not dense:
        return spec_of_layer(config, job, settings, experts(config))
    from megatron.core.transformer.transformer_block import TransformerBlockSubmodules, get_num_layers_to_build
    from megatron.core.transformer.transformer_layer import get_transformer_layer_offset
    first, count = get_transformer_layer_offset(settings), get_num_layers_to_build(settings)
    specs = [spec_of_layer(config, job, settings, experts(config) if first + i >= dense else None) for i in range(count)]
    from megatron.core.transformer.torch_norm import WrappedTorchNorm
    return TransformerBlockSubmodules(layer_specs=specs, layer_norm=WrappedTorchNorm)


def spec_of_layer(config, job, settings, count):
    from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
    spec = get_gpt_layer_local_spec(num_experts=count, moe_grouped_gemm=False, qk_layernorm=settings.qk_layernorm,
                                    multi_latent_attention=is_latent(config), normalization=settings.normalization)
    if settings.moe_grouped_gemm and count:
        parts.grouped_experts(spec)
    if is_latent(config) and degree(job, "tp") > 1:
        parts.whole_down_projections(spec)
    if job["attention"] == "flash":
        core = parts.LatentFlashAttention if is_latent(config) else parts.FlashAttention
        spec.submodules.self_attention.submodules.core_attention = core
    return spec


def next_token_spec(settings, spec, **place):
    from megatron.core.models.gpt.gpt_layer_specs import get_gpt_mtp_block_spec
    return get_gpt_mtp_block_spec(settings, spec, use_transformer_engine=False, **place) if settings.mtp_num_layers else None


def padded_vocabulary(config, job):
    unit = job.get("vocab_pad_to") or 1
    return -(-config["vocab_size"] // unit) * unit


def chunks_of_stage(config, job, settings, stage):
    from megatron.core import parallel_state
    from megatron.core.models.gpt import GPTModel
    count = degree(job, "virtual_pp")
    chunks = []
    for chunk in range(count):
        place = {"vp_stage": chunk} if count > 1 else {}
        if count > 1:
            first = parallel_state.is_pipeline_first_stage(ignore_virtual=False, **place)
            last = parallel_state.is_pipeline_last_stage(ignore_virtual=False, **place)
        else:
            first, last = stage == 0, stage == degree(job, "pp") - 1
        learned = config["model_type"] == "gpt2"
        spec = layer_spec(config, job, settings)
        model = GPTModel(config=settings, transformer_layer_spec=spec, mtp_block_spec=next_token_spec(settings, spec, **place),
                         vocab_size=padded_vocabulary(config, job),
                         max_sequence_length=config["n_positions"] if learned else job["seq"], pre_process=first, post_process=last,
                         parallel_output=True, share_embeddings_and_output_weights=tied(config),
                         position_embedding_type="learned_absolute" if learned else "rope",
                         rotary_percent=config.get("partial_rotary_factor", 1.0), **place)
        chunks.append(model.cuda().to(stream(job)))
    return chunks


def tied(config):
    return config.get("tie_word_embeddings", config["model_type"] == "gpt2")


def start_groups(job, rank):
    from megatron.core import parallel_state
    from megatron.core.tensor_parallel.random import model_parallel_cuda_manual_seed
    from torch.testing._internal.distributed.fake_pg import FakeStore
    torch.distributed.init_process_group("fake", rank=rank, world_size=job["hardware"]["count"], store=FakeStore())
    chunks = degree(job, "virtual_pp")
    parallel_state.initialize_model_parallel(
        tensor_model_parallel_size=degree(job, "tp"), pipeline_model_parallel_size=degree(job, "pp"),
        context_parallel_size=degree(job, "cp"), virtual_pipeline_model_parallel_size=chunks if chunks > 1 else None,
        expert_model_parallel_size=degree(job, "ep"), expert_tensor_parallel_size=degree(job, "expert_tp"),
        create_gloo_process_groups=False)
    model_parallel_cuda_manual_seed(1)


def wrap(settings, chunks, job):
    """The chunks in their gradient buffers, and the optimizer."""
    from megatron.core.distributed import DistributedDataParallel, DistributedDataParallelConfig
    from megatron.core.optimizer import OptimizerConfig, get_megatron_optimizer
    sharded, overlap = sharding(job, "zero", 0) == 1, bool(sharding(job, "overlap_grad_reduce"))
    main = job.get("gradient_dtype") or sharding(job, "grad_accum_dtype") or "fp32"
    buffers = DistributedDataParallelConfig(grad_reduce_in_fp32=main == "fp32", use_distributed_optimizer=sharded,
                                            overlap_grad_reduce=overlap, overlap_param_gather=overlap and sharded,
                                            check_for_nan_in_grad=False)
    chunks = [DistributedDataParallel(settings, buffers, chunk) for chunk in chunks]
    dtype = stream(job)
    scaler = {"loss_scale": 1.0} if dtype == torch.float16 else {}
    plan = OptimizerConfig(optimizer="adam", lr=1e-4, bf16=dtype == torch.bfloat16, fp16=dtype == torch.float16, params_dtype=dtype,
                           clip_grad=1.0, use_distributed_optimizer=sharded, overlap_param_gather=overlap and sharded, **scaler)
    if sharding(job, "offload", "none") == "optimizer":
        plan.optimizer_cpu_offload, plan.optimizer_offload_fraction = True, sharding(job, "optimizer_offload_fraction", 1.0)
        # which training/arguments.py asks for, and Transformer Engine would bring
        plan.use_precision_aware_optimizer = plan.use_precision_aware_optimizer_no_fp8_or_ds_fp8 = True
    return chunks, get_megatron_optimizer(plan, chunks, use_gloo_process_groups=False)
