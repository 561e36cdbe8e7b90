"""Linears over packed weights as their libraries make them, in place of a model's own: bitsandbytes, GPTQ and AWQ (gptqmodel), HQQ.

Which kernel of gptqmodel: what its "auto_trainable" picks on a machine that compiles nothing, TritonV2Linear and AwqGEMMTritonLinear."""
import torch

FOUR_BITS = ("nf4", "fp4")
BITS_AND_BYTES = (*FOUR_BITS, "int8")


def load_dtype(job):
    """Of what stays whole. Transformers casts a model with AWQ weights to fp16."""
    return torch.float16 if job["weights"] == "awq-int4" else torch.bfloat16


def bits(job):
    return int(job["weights"].rsplit("int", 1)[1])


def group_size(job, default):
    return job.get("quantization", {}).get("group_size") or default


def bitsandbytes_linear(linear, job):
    import bitsandbytes as bnb
    shape = (linear.in_features, linear.out_features, linear.bias is not None)
    if job["weights"] in FOUR_BITS:
        return bnb.nn.Linear4bit(*shape, compute_dtype=torch.bfloat16, quant_type=job["weights"],
                                 compress_statistics=job.get("double_quant", True), quant_storage=torch.uint8, device="meta")
    return bnb.nn.Linear8bitLt(*shape, has_fp16_weights=False, threshold=6.0, device="meta")


def bitsandbytes_weight(linear, shape, job):
    """From the host, as from_pretrained does: one 16-bit copy is on the card while bitsandbytes quantises it."""
    import bitsandbytes as bnb
    weight = torch.empty(shape, dtype=torch.bfloat16)
    if job["weights"] in FOUR_BITS:
        return bnb.nn.Params4bit(weight, requires_grad=False, quant_type=job["weights"], bnb_quantized=False, module=linear,
                                 compress_statistics=job.get("double_quant", True), quant_storage=torch.uint8).to("cuda")
    return bnb.nn.Int8Params(weight, requires_grad=False, has_fp16_weights=False).to("cuda")


def packed_linear(linear, job):
    """A kernel of gptqmodel with its buffers on the card."""
    from gptqmodel.nn_modules.qlinear.gemm_awq_triton import AwqGEMMTritonLinear
    from gptqmodel.nn_modules.qlinear.tritonv2 import TritonV2Linear
    kernel = AwqGEMMTritonLinear if job["weights"].startswith("awq") else TritonV2Linear
    new = kernel(bits=bits(job), group_size=group_size(job, 128), sym=True, desc_act=False, in_features=linear.in_features,
                 out_features=linear.out_features, bias=linear.bias is not None, register_buffers=True).to("cuda")
    new.post_init()
    return new


def half_quadratic_linear(linear, job):
    from hqq.core.quantize import BaseQuantizeConfig, HQQLinear
    whole = torch.nn.Linear(linear.in_features, linear.out_features, linear.bias is not None, dtype=torch.bfloat16, device="cuda")
    config = BaseQuantizeConfig(nbits=bits(job), group_size=group_size(job, 64), axis=1)
    return HQQLinear(whole, config, compute_dtype=torch.bfloat16, device="cuda")


def method(job):
    return next((name for name in ("gptq", "awq", "hqq") if job["weights"].startswith(name)), "bitsandbytes")


def replace_linears(model, job):
    """Every linear but the head. Returns those whose weight bitsandbytes is still to make."""
    make = {"bitsandbytes": bitsandbytes_linear, "gptq": packed_linear, "awq": packed_linear, "hqq": half_quadratic_linear}[method(job)]
    head, replaced = model.get_output_embeddings(), set()
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if isinstance(child, torch.nn.Linear) and child is not head:
                new = make(child, job)
                setattr(parent, name, new)
                if method(job) == "bitsandbytes":
                    replaced.add(new)
    return replaced


def build(model_class, config, job, how):
    with torch.device("meta"):
        model = model_class.from_config(config, dtype=load_dtype(job), **how)
    replaced = replace_linears(model, job)
    for module in model.modules():
        materialize(module, module in replaced, job)
    model.tie_weights()
    model.quantization_method = method(job)
    model.is_loaded_in_4bit = job["weights"] in FOUR_BITS
    model.is_loaded_in_8bit = job["weights"] == "int8"
    return model


def materialize(module, quantize, job):
    for name, parameter in list(module._parameters.items()):
        if parameter is None or parameter.device.type != "meta":
            continue
        if quantize and name == "weight":
            module._parameters[name] = bitsandbytes_weight(module, parameter.shape, job)
        else:
            dtype = load_dtype(job) if quantize else parameter.dtype  # some routers ask for fp32
            value = torch.empty(parameter.shape, dtype=dtype, device="cuda")
            module._parameters[name] = torch.nn.Parameter(value, requires_grad=False)
    for name, buffer in list(module._buffers.items()):
        if buffer is not None and buffer.device.type == "meta":
            module._buffers[name] = torch.zeros(buffer.shape, dtype=buffer.dtype, device="cuda")
