"""What Apex, Transformer Engine and a busy card would bring to Megatron-core's local layers: parts that allocate the same.

Collectives run on PyTorch's fake process group. A router's choice is read back as zeros on the phantom card: here tokens are spread evenly."""
import torch


class FlashAttention(torch.nn.Module):
    """PyTorch's flash kernel in place of the attention core; key and value groups are not expanded."""

    def __init__(self, config, layer_number, attn_mask_type, attention_type, **rest):
        super().__init__()
        self.config = config

    def forward(self, query, key, value, attention_mask, **rest):
        heads_first = [x.permute(1, 2, 0, 3) for x in (query, key, value)]
        grouped = query.shape[2] != key.shape[2]
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.FLASH_ATTENTION):
            out = torch.nn.functional.scaled_dot_product_attention(*heads_first, is_causal=True, enable_gqa=grouped)
        return out.permute(2, 0, 1, 3).reshape(query.shape[0], query.shape[1], -1)


class UnevenFlash(torch.autograd.Function):
    """Flash attention whose values are narrower than its keys: keeps its inputs, its output and one fp32 per row and head."""

    @staticmethod
    def forward(ctx, query, key, value):
        out = torch.empty_like(value)
        statistics = torch.empty(query.shape[:-1], dtype=torch.float32, device=query.device)
        ctx.save_for_backward(query, key, value, out, statistics)
        return out

    @staticmethod
    def backward(ctx, gradient):
        query, key, value, _, _ = ctx.saved_tensors
        return torch.empty_like(query), torch.empty_like(key), torch.empty_like(value)


class LatentFlashAttention(torch.nn.Module):
    """The attention core of multi-head latent attention."""

    def __init__(self, config, layer_number, attn_mask_type, attention_type, **rest):
        super().__init__()
        self.config = config

    def forward(self, query, key, value, attention_mask, **rest):
        out = UnevenFlash.apply(query, key, value)
        return out.reshape(out.shape[0], out.shape[1], -1)


def norms_that_know_sequence_parallelism():
    """Local norms refuse sequence parallelism; those of Apex and Transformer Engine only mark their weights."""
    from megatron.core.transformer.torch_norm import WrappedTorchNorm
    make = WrappedTorchNorm.__new__

    def marked(cls, config, *args, **named):
        sequence_parallel, config.sequence_parallel = config.sequence_parallel, False
        norm = make(cls, config, *args, **named)
        config.sequence_parallel = sequence_parallel
        for parameter in norm.parameters():
            parameter.sequence_parallel = sequence_parallel
        return norm

    WrappedTorchNorm.__new__ = marked


def fused_adam():
    """FusedAdam and the multi-tensor scaling of gradients have no temporaries."""
    import megatron.core.optimizer as optimizer
    import megatron.core.optimizer.clip_grads as clipping

    def scale(_, __, lists, factor):
        for tensor in lists[1]:
            tensor.mul_(factor)

    clipping.multi_tensor_scale_impl = scale
    optimizer.USING_PYTORCH_OPTIMIZER = False
    optimizer.Adam = lambda params, adam_w_mode=True, **named: torch.optim.AdamW(params, fused=True, **named)


class WholeLinear(torch.nn.Linear):
    """In the place of TELinear with parallel_mode "duplicated": whole on every rank, over the rows that the rank holds."""

    def __init__(self, inputs, outputs, *, config, parallel_mode, **rest):
        super().__init__(inputs, outputs, bias=False, device="cuda", dtype=config.params_dtype)
        self.config = config
        self.weight.sequence_parallel = config.sequence_parallel

    def forward(self, rows):
        return super().forward(rows), None


def whole_down_projections(spec):
    """Latent attention's down-projections as Transformer Engine makes them."""
    from megatron.core.transformer import multi_latent_attention
    multi_latent_attention.TELinear = WholeLinear
    attention = spec.submodules.self_attention.submodules
    attention.linear_q_down_proj = attention.linear_kv_down_proj = WholeLinear


class GroupedProduct(torch.autograd.Function):
    """Transformer Engine's grouped product: one result for all experts; the input gradient comes first, then every weight's."""

    @staticmethod
    def forward(ctx, rows, *weights):
        ctx.trains, ctx.shape, ctx.kind = weights[0].requires_grad, rows.shape, {"dtype": rows.dtype, "device": rows.device}
        ctx.save_for_backward(rows if ctx.trains else None, *weights)
        return torch.empty((rows.shape[0], weights[0].shape[0]), dtype=rows.dtype, device=rows.device)

    @staticmethod
    def backward(ctx, gradient):
        _, *weights = ctx.saved_tensors
        return (torch.empty(ctx.shape, **ctx.kind), *[torch.empty_like(weight) if ctx.trains else None for weight in weights])


class GroupedLinear(torch.nn.Module):
    """In the place of TEColumnParallelGroupedLinear and TERowParallelGroupedLinear."""

    def __init__(self, experts, inputs, outputs, *, config, pg_collection, tp_comm_buffer_name, **rest):
        super().__init__()
        self.config, self.experts = config, experts
        split = pg_collection.expt_tp.size() if pg_collection else 1
        inputs, outputs = (inputs, outputs // split) if tp_comm_buffer_name == "fc1" else (inputs // split, outputs)
        for expert in range(experts):
            weight = torch.nn.Parameter(torch.empty(outputs, inputs, device="cuda", dtype=config.params_dtype))
            weight.allreduce = config.expert_model_parallel_size == 1
            self.register_parameter(f"weight{expert}", weight)

    def forward(self, rows, counts):
        return GroupedProduct.apply(rows, *self.parameters()), None


def grouped(like, inputs, outputs):
    """Another one for the experts of `like`."""
    return GroupedLinear(like.experts, inputs, outputs, config=like.config, pg_collection=None, tp_comm_buffer_name="fc1")


def grouped_experts(spec):
    """Makes a layer's experts TEGroupedMLP."""
    from megatron.core.transformer.mlp import MLPSubmodules
    from megatron.core.transformer.moe.experts import TEGroupedMLP
    from megatron.core.transformer.spec_utils import ModuleSpec
    spec.submodules.mlp.submodules.experts = ModuleSpec(
        module=TEGroupedMLP, submodules=MLPSubmodules(linear_fc1=GroupedLinear, linear_fc2=GroupedLinear))


class EvenRouter:
    """Every expert gets as many rows as every other: counts that are read from the card, and the sizes of masked selections."""

    def __init__(self, experts, chosen, full):
        self.experts, self.chosen, self.full = experts, chosen, full
        self.library = torch.library.Library("aten", "IMPL")
        self.library.impl("nonzero", self.nonzero, "CUDA")
        import megatron.core.transformer.moe.moe_utils as utils
        import megatron.core.transformer.moe.token_dispatcher as dispatch
        utils.te_general_gemm = None  # 0.16.1 forgets to define it without Transformer Engine
        self.patch(dispatch.MoEAlltoAllTokenDispatcher, dispatch.MoEAllGatherTokenDispatcher)

    def rows_of(self, tokens):
        """Rows that `tokens` tokens send to one expert."""
        return min(tokens, int(tokens * self.chosen * self.full) // self.experts)

    def nonzero(self, mask):
        """A mask of tokens by experts."""
        tokens = mask.shape[-1]
        count = mask.shape[0] * self.rows_of(tokens) if mask.dim() == 2 else mask.numel()
        return torch.empty((mask.dim(), count), dtype=torch.int64, device=mask.device).t()

    def patch(self, exchange, gather):
        router, synchronize, finish = self, exchange._maybe_dtoh_and_synchronize, gather.dispatch_postprocess

        def counted(self, point, tokens_per_expert=None):
            result = synchronize(self, point, tokens_per_expert)
            if self.drop_and_pad or point != self.cuda_dtoh_point:
                return result
            import numpy
            rows = router.rows_of(self.routing_map.shape[0])
            if self.input_splits is not None:
                one = rows * self.num_local_experts
                self.input_splits = numpy.full(self.ep_size, one)
                self.output_splits = numpy.full(self.ep_size, one)
                self.output_splits_tp = numpy.full(self.tp_size, one * self.ep_size)
            if not isinstance(self.num_out_tokens, int):
                self.num_out_tokens = rows * router.experts
            if self.num_local_experts > 1:
                shape = (self.tp_size * self.ep_size, self.num_local_experts)
                self.num_global_tokens_per_local_expert = torch.full(shape, rows)
            return torch.full((self.num_local_experts,), rows * self.tp_size * self.ep_size)

        def gathered(self, hidden_states, probs):
            rows, _, weights = finish(self, hidden_states, probs)
            return rows, torch.full((self.num_local_experts,), router.rows_of(hidden_states.shape[0])), weights

        exchange._maybe_dtoh_and_synchronize = counted
        gather.dispatch_postprocess = gathered


def no_fp8():
    """What 0.16.1's CheckpointWithoutOutput asks Transformer Engine for, fp8 or not."""
    import contextlib
    import types
    from megatron.core.tensor_parallel import random
    random.FP8GlobalStateManager = types.SimpleNamespace(is_fp8_enabled=lambda: False, get_fp8_recipe=lambda: None)
    random.activation_recompute_forward = random.fp8_autocast = lambda **named: contextlib.nullcontext()


def no_timing_of_kernels():
    """Inductor times its candidates; on the phantom all take no time, and it would repeat them for ever."""
    import torch._inductor.runtime.benchmarking as timing
    for kind in (timing.Benchmarker, timing.TritonBenchmarker, timing.InductorBenchmarker):
        for name in ("benchmark_gpu", "benchmark"):
            if name in vars(kind):
                setattr(kind, name, lambda self, *args, **named: 1.0)
