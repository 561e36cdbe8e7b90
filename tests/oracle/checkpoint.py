"""Checkpointing beyond Transformers' own switch: every n-th layer, operators that are kept, inputs that wait on the host."""
import torch
from torch.utils import checkpoint


class OnHost(torch.autograd.Function):
    """The checkpoint of LLaMA-Factory (use_unsloth_gc), axolotl (offload) and Unsloth: a layer's input waits on the host."""

    @staticmethod
    @torch.amp.custom_fwd(device_type="cuda")
    def forward(ctx, function, hidden, *arguments):
        saved = hidden.to("cpu", non_blocking=True)
        with torch.no_grad():
            outputs = function(hidden, *arguments)
        ctx.save_for_backward(saved)
        ctx.function, ctx.arguments = function, arguments
        return outputs

    @staticmethod
    @torch.amp.custom_bwd(device_type="cuda")
    def backward(ctx, gradient):
        (hidden,) = ctx.saved_tensors
        hidden = hidden.to("cuda", non_blocking=True).detach()
        hidden.requires_grad_(True)
        with torch.enable_grad():
            outputs = ctx.function(hidden, *ctx.arguments)
            output = outputs[0] if isinstance(outputs, tuple) else outputs
        torch.autograd.backward(output, gradient)
        return (None, hidden.grad) + (None,) * len(ctx.arguments)


def on_host(function, *arguments):
    """torch.utils.checkpoint that is not reentrant, whose input is saved on the host."""
    with torch.autograd.graph.save_on_cpu(pin_memory=True):
        return checkpoint.checkpoint(function, *arguments, use_reentrant=False)


def kept_operators(plan):
    """["ops:aten.mm", "aten.addmm"] -> the operators whose results are kept."""
    names = [name.removeprefix("ops:") for name in plan["selective"]]
    found = []
    for name in names:
        packet = getattr(torch.ops.aten, name.removeprefix("aten."))
        found += [getattr(packet, overload) for overload in packet.overloads()]
    return found


def arguments(plan):
    result = {"use_reentrant": plan.get("reentrant", False)}
    if plan.get("mode") == "selective":
        operators = kept_operators(plan)
        result["context_fn"] = lambda: checkpoint.create_selective_checkpoint_contexts(operators)
    return result


def choose_layers(model, plan):
    """Every n-th layer, as torchtitan counts; where the inputs wait."""
    layers = [module for module in model.modules() if hasattr(module, "gradient_checkpointing") and hasattr(module, "_gradient_checkpointing_func")]
    layers = [module for module in layers if type(module).__name__.endswith(("Layer", "Block"))]
    for number, layer in enumerate(layers):
        if (number + 1) % plan.get("every", 1) != 0:
            layer.gradient_checkpointing = False
        if plan.get("offload"):
            layer._gradient_checkpointing_func = OnHost.apply if plan.get("reentrant") else on_host
