"""Models as a training script has them before its first step: built from a config, patched, quantised, with adapters.

A job is a row of data/measurements/oracle.jsonl: "config" is a Hugging Face config, "job" the plan in the words of membill's job file."""
import re

import torch

import adapters
import checkpoint
import flash_package
import quantized

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
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


def keep_masks():
    """On the phantom card every mask reads as one without padding, which SDPA would not get: here each has some."""
    from transformers import masking_utils
    for name in ("_ignore_causal_mask_sdpa", "_ignore_bidirectional_mask_sdpa"):
        setattr(masking_utils, name, lambda *_, **__: False)


def leave_truncated_weights():
    """On the phantom card no value that was drawn is ever within its bounds, and drawing would go on forever."""
    from transformers import initialization
    initialization.TORCH_INIT_FUNCTIONS["trunc_normal_"] = lambda tensor, *_, **__: tensor


def attention(job):
    """torch's own flash kernel takes no mask: flash with one is the package's."""
    if job.get("attention_mask"):
        keep_masks()
    if job.get("attention") == "flash" and job.get("attention_mask"):
        flash_package.install()
        return "flash_attention_2"
    return "eager" if job.get("attention") == "eager" else "sdpa"


def build(config, job):
    """The model on the card, without adapters."""
    import transformers
    config = read_config(config)
    leave_truncated_weights()
    patch_kernels(config, job)
    how = {"attn_implementation": attention(job)}
    if is_quantized(job):
        return quantized.build(class_for(config, job), config, job, how)
    with torch.device("cuda"):
        return class_for(config, job).from_config(config, dtype=DTYPES[job.get("weights", "bf16")], **how)


def class_for(config, job):
    """The class of the model's head: what the stage or `architectures` says, else the next token."""
    import transformers
    named = (config.architectures or [""])[0]
    if job.get("stage") == "classification":
        config.num_labels = int(job.get("stage_args", {}).get("num_labels", 2))
        return transformers.AutoModelForSequenceClassification
    if named.endswith("ForSequenceClassification"):
        return transformers.AutoModelForSequenceClassification
    if named.endswith("ForMaskedLM"):
        return transformers.AutoModelForMaskedLM
    if config.is_encoder_decoder:
        return transformers.AutoModelForSeq2SeqLM
    return transformers.AutoModelForImageTextToText if hasattr(config, "vision_config") else transformers.AutoModelForCausalLM


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
    return peft.get_peft_model(model, adapters.config(job, model.config), autocast_adapter_dtype=automatic)


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
