"""Stands for the flash-attn package, whose kernels cannot be built here: its functions with the allocations of flash-attn 2.8
(flash_attn_interface.py, csrc/flash_attn/flash_api.cpp mha_varlen_fwd and mha_varlen_bwd, bert_padding.py).

install() makes Transformers take it for the package. On the phantom card every mask reads as full and no element as non-zero, so a mask
is handed on as if it had a padding token, and all tokens count: the most that rows without their padding can need."""
import importlib.machinery
import sys
import types

import torch

TILE = 128


def rounded(width):
    return -(-width // 32) * 32 if width <= 192 else 256


class Varlen(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, starts):
        tokens, heads, _ = q.shape
        out = torch.empty_like(q)
        statistic = torch.empty((heads, tokens), dtype=torch.float32, device=q.device)
        seeds = torch.empty(2, dtype=torch.int64, device=q.device)
        ctx.save_for_backward(q, k, v, out, statistic, starts, starts, seeds)
        return out

    @staticmethod
    def backward(ctx, gradient):
        q, k, v, _, _, starts, _, _ = ctx.saved_tensors
        tokens, heads, width = q.shape
        rows = tokens + TILE * (starts.numel() - 1)
        dq, dk, dv = torch.empty_like(q), torch.empty_like(k), torch.empty_like(v)
        delta = torch.empty((heads, rows), dtype=torch.float32, device=q.device)
        sums = torch.empty((rows, heads, rounded(width)), dtype=torch.float32, device=q.device)
        if k.shape[1] != heads:
            all_keys, all_values = (torch.empty((tokens, heads, width), dtype=k.dtype, device=q.device) for _ in range(2))
        return dq, dk, dv, None


class Put(torch.autograd.Function):
    """bert_padding.py IndexPutFirstAxis."""

    @staticmethod
    def forward(ctx, values, indices, rows):
        ctx.save_for_backward(indices)
        output = torch.zeros(rows, *values.shape[1:], device=values.device, dtype=values.dtype)
        output[indices] = values
        return output

    @staticmethod
    def backward(ctx, gradient):
        indices, = ctx.saved_tensors
        return gradient[indices], None, None


def flash_attn_varlen_func(q, k, v, cu_seqlens_q=None, cu_seqlens_k=None, max_seqlen_q=None, max_seqlen_k=None, dropout_p=0.0,
                           softmax_scale=None, causal=False, window_size=(-1, -1), softcap=0.0, deterministic=False):
    return Varlen.apply(q, k, v, cu_seqlens_q)


def varlen_forward(q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, dropout_p=0.0, softmax_scale=None, causal=False,
                   window_size_left=-1, window_size_right=-1, softcap=0.0, alibi_slopes=None, return_softmax=False):
    tokens, heads, _ = q.shape
    statistic = torch.empty((heads, tokens), dtype=torch.float32, device=q.device)
    return torch.empty_like(q), statistic, None, torch.empty(2, dtype=torch.int64, device=q.device)


def varlen_backward(dout, q, k, v, out, softmax_lse, dq, dk, dv, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, dropout_p=0.0,
                    softmax_scale=None, causal=False, window_size_left=-1, window_size_right=-1, softcap=0.0, alibi_slopes=None,
                    deterministic=False, rng_state=None):
    """csrc/flash_attn/flash_api.cpp mha_varlen_bwd, which wants a gradient whose last axis is contiguous."""
    tokens, heads, width = q.shape
    rows = tokens + TILE * (cu_seqlens_q.numel() - 1)
    delta = torch.empty((heads, rows), dtype=torch.float32, device=q.device)
    sums = torch.empty((rows, heads, rounded(width)), dtype=torch.float32, device=q.device)
    if k.shape[1] != heads:
        all_keys, all_values = (torch.empty((k.shape[0], heads, width), dtype=k.dtype, device=q.device) for _ in range(2))
    return delta


def flash_attn_func(*arguments, **named):
    raise NotImplementedError("rows without a mask run torch's own flash kernel here")


def pad_input(hidden_states, indices, batch, seqlen):
    output = Put.apply(hidden_states, indices, batch * seqlen)
    return output.view(batch, seqlen, *output.shape[1:])


def all_tokens(mask):
    lengths = mask.sum(dim=-1, dtype=torch.int32)
    indices = torch.arange(mask.numel(), device=mask.device)
    return indices, torch.nn.functional.pad(torch.cumsum(lengths, dim=0, dtype=torch.int32), (1, 0)), mask.shape[-1]


def module(name, **members):
    result = types.ModuleType(name)
    result.__dict__.update(members)
    result.__spec__ = importlib.machinery.ModuleSpec(name, None)
    sys.modules[name] = result


def install():
    import transformers.masking_utils as masks
    import transformers.modeling_flash_attention_utils as flash
    import transformers.modeling_utils as models
    module("flash_attn", flash_attn_func=flash_attn_func, flash_attn_varlen_func=flash_attn_varlen_func, flash_attn_with_kvcache=None)
    module("flash_attn.bert_padding", pad_input=pad_input, unpad_input=None)
    flash.is_flash_attn_2_available = lambda: True
    flash._get_unpad_data = all_tokens
    models.PreTrainedModel._flash_attn_can_dispatch = lambda self, *a, **k: True
    handed_on = lambda *arguments, attention_mask=None, **named: attention_mask
    masks.ALL_MASK_ATTENTION_FUNCTIONS._global_mapping["flash_attention_2"] = handed_on


def install_kernels():
    """The package's functions below its autograd, as ring-flash-attn calls them."""
    module("flash_attn.flash_attn_interface", _flash_attn_varlen_forward=varlen_forward, _flash_attn_varlen_backward=varlen_backward,
           _flash_attn_forward=None, _flash_attn_backward=None)
