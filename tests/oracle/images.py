"""Images of a job (`vision` of its plan) for models with a vision tower: what a batch brings, and what stands for code that the phantom
card cannot run.

The patch embedding of the Qwen-VL families is a convolution whose kernel is as large as its stride: the equal linear takes its place.
Shapes that follow from image sizes are computed on the host, as everything that is read back from the card is zero there.
masked_scatter's backward selects by a mask: it is written out here with the tensors that aten's masked_select and nonzero make."""
import importlib
import math
import sys

import torch
from torch import nn

QWEN = ("qwen2_vl", "qwen2_5_vl", "qwen3_vl", "qwen3_vl_moe", "qwen3_5", "qwen3_5_moe")


def count(job):
    return job.get("vision", {}).get("images", 0)


def smart_resize(height, width, factor, low, high):
    """transformers models/qwen2_vl/image_processing_qwen2_vl.py"""
    tall, wide = round(height / factor) * factor, round(width / factor) * factor
    if tall * wide > high:
        beta = math.sqrt((height * width) / high)
        return max(factor, math.floor(height / beta / factor) * factor), max(factor, math.floor(width / beta / factor) * factor)
    if tall * wide < low:
        beta = math.sqrt(low / (height * width))
        return math.ceil(height * beta / factor) * factor, math.ceil(width * beta / factor) * factor
    return tall, wide


class LinearPatches(nn.Module):
    """A convolution without overlap."""

    def __init__(self, convolution):
        super().__init__()
        self.weight = nn.Parameter(convolution.weight.detach().flatten(1))
        self.bias = convolution.bias
        self.kernel_size, self.stride, self.padding = convolution.kernel_size, convolution.stride, convolution.padding

    def forward(self, x):
        out = nn.functional.linear(x.view(-1, self.weight.shape[1]), self.weight, self.bias)
        if x.dim() == 5:
            return out
        high, wide = (side // kernel for side, kernel in zip(x.shape[2:], self.kernel_size))
        return out.view(x.shape[0], -1, high, wide)  # channels first, as a convolution's result


class Scatter(torch.autograd.Function):
    """masked_scatter; its backward by hand."""

    @staticmethod
    def forward(ctx, whole, mask, source):
        ctx.save_for_backward(mask)
        ctx.shape = source.shape
        return torch.ops.aten.masked_scatter.default(whole, mask, source)

    @staticmethod
    def backward(ctx, grad):
        (mask,) = ctx.saved_tensors
        whole = grad.masked_fill(mask, 0) if ctx.needs_input_grad[0] else None
        if not ctx.needs_input_grad[2]:
            return whole, None, None
        full = mask.expand(grad.shape).contiguous()
        places = torch.empty((grad.dim(), ctx.shape.numel()), dtype=torch.int64, device=grad.device)
        del full
        source = torch.empty(ctx.shape, dtype=grad.dtype, device=grad.device)
        del places
        return whole, None, source


def replace(model, job):
    """To be called on the model before its adapters."""
    if count(job) == 0:
        return model
    torch.Tensor.masked_scatter = lambda self, mask, source: Scatter.apply(self, mask, source)
    for module in list(model.modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, (nn.Conv2d, nn.Conv3d)):
                setattr(module, name, LinearPatches(child))
    modeling = sys.modules[type(model).__module__]
    for name in ("get_vision_position_ids", "get_vision_interpolated_indices_and_weights"):
        if hasattr(modeling, name):
            original = getattr(modeling, name)
            setattr(modeling, name, on_card(original))
    freeze(model, job)
    return model


def on_card(function):
    def run(*arguments, **named):
        result = function(*arguments, **named)
        return tuple(part.cuda() for part in result) if isinstance(result, tuple) else result.cuda()
    return run


def freeze(model, job):
    vision = job.get("vision", {})
    towers, projectors = ("visual", "vision_tower", "vision_model"), ("multi_modal_projector", "merger", "connector")
    for name, parameter in model.named_parameters():
        parts = name.split(".")
        projector = any(part in projectors or part.startswith("deepstack_merger") for part in parts)
        tower = any(part in towers for part in parts)
        if (projector and vision.get("freeze_projector")) or (tower and not projector and vision.get("freeze_tower")):
            parameter.requires_grad_(False)


def grid_of(config, job):
    vision, tower = job["vision"], config.vision_config
    wide, high = (int(side) for side in vision["image_size"].split("x"))
    factor = tower.patch_size * tower.spatial_merge_size
    tall, wide = smart_resize(high, wide, factor, vision.get("image_min_pixels", 56 * 56), vision.get("image_max_pixels", 28 * 28 * 16384))
    return tall // tower.patch_size, wide // tower.patch_size


def inputs(model, job, ids):
    """Keyword arguments of the forward beside text."""
    if count(job) == 0:
        return {}
    config = model.config
    images = count(job) * ids.shape[0]
    tower = config.vision_config
    if config.model_type in QWEN:
        tall, wide = grid_of(config, job)
        width = tower.in_channels * tower.temporal_patch_size * tower.patch_size ** 2
        return {"pixel_values": torch.zeros(images * tall * wide, width, device="cuda"),
                "image_grid_thw": torch.tensor([[1, tall, wide]] * images),
                "position_ids": torch.zeros(3, *ids.shape, dtype=torch.int64, device="cuda")}
    return {"pixel_values": torch.zeros(images, tower.num_channels, tower.image_size, tower.image_size, device="cuda")}
