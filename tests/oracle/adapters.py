"""PEFT's configurations of a job's adapters."""
import peft


def config(job, model_config):
    method, plan = job["method"], job.get("adapter", {})
    kinds = {"adalora": adalora, "vera": vera, "ia3": ia3, "loha": loha, "lokr": lokr, "oft": oft, "prompt": prompt, "prefix": prefix,
             "ptuning": ptuning}
    result = kinds.get(method, lora)(plan, job)
    head = (model_config.architectures or [""])[0]
    if job.get("stage") == "classification" or head.endswith("ForSequenceClassification"):
        result.task_type = "SEQ_CLS"
    elif head.endswith("ForMaskedLM"):
        result.task_type = None
    return result


def low_rank(plan):
    return {"target_modules": plan.get("targets"), "modules_to_save": plan.get("modules_to_save"), "task_type": "CAUSAL_LM"}


def lora(plan, job):
    rows = plan.get("trainable_tokens", 0)
    return peft.LoraConfig(r=plan.get("rank", 8), lora_dropout=plan.get("dropout", 0.0), bias="none", use_dora=job["method"] == "dora",
                           trainable_token_indices=list(range(rows)) if rows else None,
                           exclude_modules=plan.get("exclude"), layers_to_transform=plan.get("layers"),
                           rank_pattern=plan.get("rank_pattern", {}), lora_bias=plan.get("lora_bias", False), **low_rank(plan))


def adalora(plan, _):
    return peft.AdaLoraConfig(init_r=plan.get("init_rank", 12), target_r=plan.get("rank", 8), lora_dropout=plan.get("dropout", 0.0),
                              total_step=1000, **low_rank(plan))


def vera(plan, _):
    return peft.VeraConfig(r=plan.get("rank", 8), vera_dropout=plan.get("dropout", 0.0), **low_rank(plan))


def loha(plan, _):
    return peft.LoHaConfig(r=plan.get("rank", 8), rank_dropout=plan.get("dropout", 0.0), **low_rank(plan))


def lokr(plan, _):
    return peft.LoKrConfig(r=plan.get("rank", 8), rank_dropout=plan.get("dropout", 0.0), decompose_both=plan.get("decompose_both", False),
                           decompose_factor=plan.get("decompose_factor", -1), **low_rank(plan))


def oft(plan, _):
    blocks = plan.get("rank", 8) if plan.get("block_size") == 0 else 0
    return peft.OFTConfig(r=blocks, oft_block_size=plan.get("block_size", 32), module_dropout=plan.get("dropout", 0.0), **low_rank(plan))


def ia3(plan, _):
    named = {"feedforward_modules": [name for name in plan["targets"] if name in FEED_FORWARD]} if plan.get("targets") else {}
    return peft.IA3Config(**low_rank(plan), **named)


FEED_FORWARD = ("down_proj", "fc2", "w2", "output_linear", "dense_4h_to_h")


def tokens(plan):
    return {"num_virtual_tokens": plan.get("virtual_tokens", 20), "task_type": "CAUSAL_LM"}


def prompt(plan, _):
    return peft.PromptTuningConfig(**tokens(plan))


def prefix(plan, _):
    return peft.PrefixTuningConfig(prefix_projection=plan.get("prefix_projection", False), encoder_hidden_size=plan.get("encoder_hidden"),
                                   **tokens(plan))


def ptuning(plan, _):
    return peft.PromptEncoderConfig(encoder_hidden_size=plan.get("encoder_hidden"), **tokens(plan))
