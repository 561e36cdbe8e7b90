"""A job's optimizer as its library makes it, under membill's name.

Beside PyTorch and bitsandbytes: adam-mini 1.1.1, galore-torch 1.0, apollo-torch 1.0.3, lomo-optim 0.1.1, came-pytorch 0.1.3, grokadamw 0.1.2,
lion-pytorch 0.2.5, torch-optimi 0.3.3, schedulefree 1.4.1."""
import inspect

import torch

PROJECTED = ("self_attn", "attn", "mlp")  # modules whose matrices are projected or orthogonalised


def trained(model):
    return [p for p in model.parameters() if p.requires_grad]


def hidden_matrices(model):
    """Whether each trained parameter is a matrix of attention or MLP."""
    return {name: p.ndim == 2 and any(f".{part}." in name for part in PROJECTED) for name, p in model.named_parameters() if p.requires_grad}


def projected_groups(model, **options):
    """As transformers' trainer_optimizer.py groups them: others first."""
    chosen = hidden_matrices(model)
    named = {name: p for name, p in model.named_parameters() if p.requires_grad}
    return [{"params": [p for name, p in named.items() if not chosen[name]]},
            {"params": [p for name, p in named.items() if chosen[name]], **options}]


def rank(job, default):
    return int(job.get("optimizer_args", {}).get("rank", default))


def without_solver():
    """cuSOLVER is not there: of a decomposition the results alone."""

    def svd(matrix, full_matrices):
        rows, columns = matrix.shape
        least = min(rows, columns)
        return matrix.new_empty(rows, least), matrix.new_empty(least), matrix.new_empty(least, columns)

    torch.linalg.svd = svd


def galore(model, job, name):
    import galore_torch
    without_solver()
    kinds = {"galore_adamw": galore_torch.GaLoreAdamW, "galore_adamw_8bit": galore_torch.GaLoreAdamW8bit,
             "galore_adafactor": galore_torch.GaLoreAdafactor}
    options = {"scale_parameter": False, "relative_step": False} if name == "galore_adafactor" else {}
    return kinds[name](projected_groups(model, rank=rank(job, 128), update_proj_gap=200, scale=0.25, proj_type="std"), lr=1e-4, **options)


def apollo(model, job, name):
    from apollo_torch import APOLLOAdamW
    mini = name == "apollo_mini"
    groups = projected_groups(model, rank=rank(job, 1 if mini else 128), proj="random", scale_type="tensor" if mini else "channel",
                              update_proj_gap=200, scale=1.0, proj_type="std")
    return APOLLOAdamW(groups, lr=1e-4)


def muon(model, _, __):
    """torch's own, with its AdamW for what is no hidden matrix."""
    chosen = hidden_matrices(model)
    named = {name: p for name, p in model.named_parameters() if p.requires_grad}
    return Several([torch.optim.AdamW([p for name, p in named.items() if not chosen[name]], lr=1e-4, foreach=False),
                    torch.optim.Muon([p for name, p in named.items() if chosen[name]], lr=1e-4)])


class Several:
    def __init__(self, optimizers):
        self.optimizers = optimizers

    def step(self):
        for one in self.optimizers:
            one.step()

    def zero_grad(self, set_to_none):
        for one in self.optimizers:
            one.zero_grad(set_to_none=set_to_none)


class InBackward:
    """LOMO and AdaLOMO update while the backward runs; what is left when it returns, too."""

    def __init__(self, kind, model):
        self.own = kind(model, lr=1e-4)

    def after_backward(self):
        self.own.grad_func(0)

    def step(self):
        pass

    def zero_grad(self, set_to_none):
        pass


def lomo(model, _, name):
    import lomo_optim
    return InBackward(lomo_optim.AdaLomo if name == "adalomo" else lomo_optim.Lomo, model)


def adam_mini(model, _, __):
    from adam_mini import Adam_mini
    config = model.config
    return Adam_mini(model.named_parameters(), lr=1e-4, dim=config.hidden_size, n_heads=config.num_attention_heads,
                     n_kv_heads=config.num_key_value_heads, verbose=False)


def adafactor(model, _, __):
    from transformers.optimization import Adafactor
    return Adafactor(trained(model), lr=1e-4, relative_step=False, scale_parameter=False)


def came(model, _, __):
    from came_pytorch import CAME
    return CAME(trained(model), lr=1e-4)


def grokadamw(model, _, __):
    from grokadamw import GrokAdamW
    return GrokAdamW(trained(model), lr=1e-4, gradient_clipping=1.0)


def lion(model, _, __):
    from lion_pytorch import Lion
    return Lion(trained(model), lr=1e-4)


def stable_adamw(model, _, __):
    from optimi import StableAdamW
    return StableAdamW(trained(model), lr=1e-4)


def schedule_free(model, job, name):
    import schedulefree
    kinds = {"schedule_free_adamw": schedulefree.AdamWScheduleFree, "schedule_free_radam": schedulefree.RAdamScheduleFree,
             "schedule_free_sgd": schedulefree.SGDScheduleFree}
    made = kinds[name](trained(model), lr=1e-4, foreach=job.get("optimizer_impl", "foreach") == "foreach")
    made.train()
    return made


OTHERS = {"galore_adamw": galore, "galore_adamw_8bit": galore, "galore_adafactor": galore, "apollo_adamw": apollo, "apollo_mini": apollo,
          "muon": muon, "lomo": lomo, "adalomo": lomo, "adam_mini": adam_mini, "adafactor": adafactor, "came": came, "grokadamw": grokadamw,
          "lion": lion, "stable_adamw": stable_adamw, "schedule_free_adamw": schedule_free, "schedule_free_radam": schedule_free,
          "schedule_free_sgd": schedule_free}


def of_torch(name, parameters, job):
    impl = job.get("optimizer_impl", "foreach")
    how = {"fused": True} if impl == "fused" else {"foreach": impl == "foreach"}
    kinds = {"adamw": (torch.optim.AdamW, how), "sgd": (torch.optim.SGD, how), "sgd_momentum": (torch.optim.SGD, {"momentum": 0.9, **how}),
             "adagrad": (torch.optim.Adagrad, {"foreach": impl == "foreach"}), "rmsprop": (torch.optim.RMSprop, {"foreach": impl == "foreach"})}
    if name not in kinds:
        return None
    kind, options = kinds[name]
    return kind(parameters, lr=1e-4, **options)


def of_bitsandbytes(name, parameters, job):
    import bitsandbytes as bnb
    kinds = {"adamw_8bit": bnb.optim.AdamW8bit, "paged_adamw_8bit": bnb.optim.PagedAdamW8bit, "adamw_bnb_32bit": bnb.optim.AdamW32bit,
             "paged_adamw_32bit": bnb.optim.PagedAdamW32bit, "lion_8bit": bnb.optim.Lion8bit, "lion_32bit": bnb.optim.Lion32bit,
             "paged_lion_8bit": bnb.optim.PagedLion8bit, "paged_lion_32bit": bnb.optim.PagedLion32bit, "ademamix": bnb.optim.AdEMAMix,
             "ademamix_8bit": bnb.optim.AdEMAMix8bit, "paged_ademamix_8bit": bnb.optim.PagedAdEMAMix8bit,
             "paged_ademamix_32bit": bnb.optim.PagedAdEMAMix, "rmsprop_bnb_8bit": bnb.optim.RMSprop8bit, "rmsprop_bnb_32bit": bnb.optim.RMSprop32bit}
    if name not in kinds:
        raise ValueError("no optimizer " + name)
    arguments = job.get("optimizer_args", {})
    known = inspect.signature(kinds[name]).parameters
    return kinds[name](parameters, lr=1e-4, **{key: int(value) for key, value in arguments.items() if key in known})


def make(model, job):
    name = job.get("optimizer", "adamw").replace("-", "_")
    if name in OTHERS:
        return OTHERS[name](model, job, name)
    return of_torch(name, trained(model), job) or of_bitsandbytes(name, trained(model), job)
