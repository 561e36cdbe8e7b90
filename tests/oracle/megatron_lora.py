"""LoRA on Megatron-core's linears as mcore_bridge 1.6.3 (tuners/lora.py LoraParallelLinear) puts it there for Megatron-SWIFT.

Its Transformer Engine layers are replaced by the local ones: beside split columns A is whole and B split, beside split rows A is split and
B whole; experts that run together have adapters that do."""
import torch

import megatron_parts as parts

LINEARS = {"q_proj": "linear_qkv", "k_proj": "linear_qkv", "v_proj": "linear_qkv", "o_proj": "linear_proj", "gate_proj": "linear_fc1",
           "up_proj": "linear_fc1", "down_proj": "linear_fc2", "c_attn": "linear_qkv", "c_fc": "linear_fc1"}
LATENT = ("linear_q_proj", "linear_q_down_proj", "linear_q_up_proj", "linear_kv_down_proj", "linear_kv_up_proj")


def targets(names):
    return {*LINEARS.values(), *LATENT} if "all-linear" in names else {LINEARS[name] for name in names}


class Adapted(torch.nn.Module):
    """base(x) + B(A(dropout(x))) * scaling."""

    def __init__(self, base, rank, dropout):
        super().__init__()
        self.base = base
        self.dropout = torch.nn.Dropout(dropout) if dropout else torch.nn.Identity()
        self.a, self.b = adapters_of(base, rank)

    def forward(self, rows, *counts):
        result, bias = self.base(rows, *counts)
        added, _ = self.a(self.dropout(rows), *counts)
        added, _ = self.b(added, *counts)
        added = added * 2.0
        result = result + added
        return result, bias


def whole(inputs, outputs, base, replicated):
    linear = parts.WholeLinear(inputs, outputs, config=base.config, parallel_mode="duplicated")
    linear.weight.sequence_parallel = base.config.sequence_parallel and replicated
    if getattr(base, "is_expert", False):
        linear.weight.allreduce = base.config.expert_model_parallel_size == 1
    return linear


def adapters_of(base, rank):
    from megatron.core.tensor_parallel.layers import ColumnParallelLinear, RowParallelLinear
    if isinstance(base, parts.GroupedLinear):
        outputs, inputs = base.weight0.shape
        return parts.grouped(base, inputs, rank), parts.grouped(base, rank, outputs)
    if isinstance(base, parts.WholeLinear):
        return whole(base.in_features, rank, base, True), whole(rank, base.out_features, base, True)
    named = {"config": base.config, "init_method": base.config.init_method, "bias": False, "skip_bias_add": base.is_expert,
             "is_expert": base.is_expert}
    if isinstance(base, ColumnParallelLinear):
        return whole(base.input_size, rank, base, True), ColumnParallelLinear(rank, base.output_size, gather_output=False, **named)
    assert isinstance(base, RowParallelLinear)
    return (RowParallelLinear(base.input_size, rank, input_is_parallel=True, **named), whole(rank, base.output_size, base, True))


def adapt(chunks, job):
    """Freezes the chunks, gives each named linear an adapter, and lets the decoder's input need a gradient."""
    plan = job["adapter"]
    wanted = targets(plan["targets"] if isinstance(plan["targets"], list) else [plan["targets"]])
    for chunk in chunks:
        dtype = next(chunk.parameters()).dtype
        chunk.requires_grad_(False)
        for parent in list(chunk.modules()):
            for name, child in list(parent.named_children()):
                if name in wanted and not isinstance(parent, Adapted):
                    setattr(parent, name, Adapted(child, plan["rank"], plan.get("dropout", 0.0)).to("cuda", dtype))
        if chunk.pre_process:
            chunk.embedding.register_forward_hook(lambda module, inputs, out: out.requires_grad_(True))
    return chunks
