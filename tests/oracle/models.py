"""Models as a training script has them before its first step: built from a config, patched, quantised, with adapters.

A job is a row of data/measurements/oracle.jsonl: "config" is a Hugging Face config, "job" the plan in the words of membill's job file."""
import re

import torch

import adapters
import checkpoint

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
FOUR_BITS = ("nf4", "fp4")
NOT_OF_THE_MODEL = ("torch_dtype", "dtype", "auto_map", "quantization_config")


def checkpointing(job):
    """(on, reentrant)"""
    value = checkpoint_plan(job)
    return value.get("mode", "none") != "none", value.get("reentrant", False)


def checkpoint_plan(job):
    value = job.get("checkpointing", "none")
    return value if isinstance(value, dict) else {"mode": value}


def is_quantized(job):
    return job.get("weights", "bf16") not in DTYPES


def read_config(config):
    import transformers
    fields = {key: value for key, value in config.items() if key not in NOT_OF_THE_MODEL}
    result = transformers.AutoConfig.for_model(fields.pop("model_type"), **fields)
    result.use_cache = False
    return result


def patch_kernels(config, job):
    if job.get("implementation", "hf") != "liger":
        return
    import liger_kernel.transformers as liger
    patch = getattr(liger, "apply_liger_kernel_to_" + config.model_type, None)
    if patch is None:
        raise ValueError("Liger has no kernels for " + config.model_type)
    patch()


def build(config, job):
    """The model on the card, without adapters."""
    import transformers
    config = read_config(config)
    patch_kernels(config, job)
    how = {"attn_implementation": "eager" if job.get("attention") == "eager" else "sdpa"}
    if is_quantized(job):
        return build_quantized(config, job, how)
    with torch.device("cuda"):
        return class_for(config).from_config(config, dtype=DTYPES[job.get("weights", "bf16")], **how)


def class_for(config):
    """The class of the model's head: what `architectures` says, else the next token."""
    import transformers
    named = (config.architectures or [""])[0]
    if named.endswith("ForSequenceClassification"):
        return transformers.AutoModelForSequenceClassification
    if named.endswith("ForMaskedLM"):
        return transformers.AutoModelForMaskedLM
    if config.is_encoder_decoder:
        return transformers.AutoModelForSeq2SeqLM
    return transformers.AutoModelForImageTextToText if hasattr(config, "vision_config") else transformers.AutoModelForCausalLM


def quantized_linear(linear, job):
    import bitsandbytes as bnb
    shape = (linear.in_features, linear.out_features, linear.bias is not None)
    if job["weights"] in FOUR_BITS:
        return bnb.nn.Linear4bit(*shape, compute_dtype=torch.bfloat16, quant_type=job["weights"],
                                 compress_statistics=job.get("double_quant", True), quant_storage=torch.uint8, device="meta")
    return bnb.nn.Linear8bitLt(*shape, has_fp16_weights=False, threshold=6.0, device="meta")


def quantized_weight(linear, shape, job):
    """From the host, as from_pretrained does: one 16-bit copy is on the card while bitsandbytes quantises it."""
    import bitsandbytes as bnb
    weight = torch.empty(shape, dtype=torch.bfloat16)
    if job["weights"] in FOUR_BITS:
        return bnb.nn.Params4bit(weight, requires_grad=False, quant_type=job["weights"], bnb_quantized=False, module=linear,
                                 compress_statistics=job.get("double_quant", True), quant_storage=torch.uint8).to("cuda")
    return bnb.nn.Int8Params(weight, requires_grad=False, has_fp16_weights=False).to("cuda")


def build_quantized(config, job, how):
    import transformers
    with torch.device("meta"):
        model = class_for(config).from_config(config, dtype=torch.bfloat16, **how)
    head = model.get_output_embeddings()
    replaced = set()
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if isinstance(child, torch.nn.Linear) and child is not head:
                new = quantized_linear(child, job)
                setattr(parent, name, new)
                replaced.add(new)
    for module in model.modules():
        materialize(module, module in replaced, job)
    model.tie_weights()
    model.is_loaded_in_4bit = job["weights"] in FOUR_BITS
    model.is_loaded_in_8bit = not model.is_loaded_in_4bit
    return model


def materialize(module, quantize, job):
    for name, parameter in list(module._parameters.items()):
        if parameter is None:
            continue
        if quantize and name == "weight":
            module._parameters[name] = quantized_weight(module, parameter.shape, job)
        else:
            value = torch.empty(parameter.shape, dtype=torch.bfloat16, device="cuda")
            module._parameters[name] = torch.nn.Parameter(value, requires_grad=False)
    for name, buffer in list(module._buffers.items()):
        if buffer is not None and buffer.device.type == "meta":
            module._buffers[name] = torch.zeros(buffer.shape, dtype=buffer.dtype, device="cuda")


def freeze(model, job):
    last = job.get("freeze", {}).get("trainable_layers", 2)
    model.requires_grad_(False)
    for layer in list(model.get_decoder().layers)[len(model.get_decoder().layers) - last:]:
        layer.requires_grad_(True)
    for word in job.get("freeze", {}).get("trainable_modules", []):
        for name, parameter in model.named_parameters():
            if f".{word}." in f".{name}." or (set(word) & set("*+?[]()|^$") and re.match(word, name)):
                parameter.requires_grad_(True)
    return model


def add_adapters(model, job):
    import peft
    on, _ = checkpointing(job)
    if is_quantized(job) and job.get("kbit_prepare", True):
        model = peft.prepare_model_for_kbit_training(model, use_gradient_checkpointing=on,
                                                     gradient_checkpointing_kwargs=checkpoint.arguments(checkpoint_plan(job)))
    automatic = job.get("adapter", {}).get("dtype", "auto") == "auto"
    return peft.get_peft_model(model, adapters.config(job), autocast_adapter_dtype=automatic)


def prepare(model, job):
    """Checkpointing, adapters, frozen layers, in the order of training scripts."""
    model.train()
    method = job.get("method", "full")
    on, _ = checkpointing(job)
    if on:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs=checkpoint.arguments(checkpoint_plan(job)))
        if method not in ("full", "freeze"):
            model.enable_input_require_grads()
    if method == "freeze":
        model = freeze(model, job)
    elif method != "full":
        model = add_adapters(model, job)
    checkpoint.choose_layers(model, checkpoint_plan(job))
    return model.train()


def optimizer(parameters, job):
    parameters = [p for p in parameters if p.requires_grad]
    name, impl = job.get("optimizer", "adamw").replace("-", "_"), job.get("optimizer_impl", "foreach")
    how = {"fused": True} if impl == "fused" else {"foreach": impl == "foreach"}
    plain = torch.optim
    if name == "adamw":
        return plain.AdamW(parameters, lr=1e-4, **how)
    if name == "sgd":
        return plain.SGD(parameters, lr=1e-4, **how)
    if name == "sgd_momentum":
        return plain.SGD(parameters, lr=1e-4, momentum=0.9, **how)
    if name == "adagrad":
        return plain.Adagrad(parameters, lr=1e-4, foreach=impl == "foreach")
    if name == "rmsprop":
        return plain.RMSprop(parameters, lr=1e-4, foreach=impl == "foreach")
    if name == "adafactor":
        from transformers.optimization import Adafactor
        return Adafactor(parameters, lr=1e-4, relative_step=False, scale_parameter=False)
    import bitsandbytes as bnb
    kinds = {"adamw_8bit": bnb.optim.AdamW8bit, "paged_adamw_8bit": bnb.optim.PagedAdamW8bit,
             "paged_adamw_32bit": bnb.optim.PagedAdamW32bit, "lion_8bit": bnb.optim.Lion8bit, "ademamix_8bit": bnb.optim.AdEMAMix8bit}
    if name not in kinds:
        raise ValueError("no optimizer " + name)
    return kinds[name](parameters, lr=1e-4)
