"""Runs one rank of many of jobs whose sequences or layers are split over ranks, by the code that does so; one JSON line per job.

usage: measure_parallel.py < rows.jsonl > measured.jsonl

rows: those of data/measurements/oracle-parallel.jsonl; `run` is what measure_sharded.py calls a run, with
  spread    torch (context_parallel), deepspeed (UlyssesSPAttentionHF), ms-swift, verl, axolotl (llama3's ring of ring-flash-attn)
  degree    ranks that share a sequence
  tp        ranks that share a layer (DeepSpeed's AutoTP)
With engine trainer it is Hugging Face's Trainer itself, whose accelerate spreads sequences (torch).
measure_sharded.py is to be on PYTHONPATH; so are verl, ms-swift and ring-flash-attn for theirs (their files are loaded one by one)."""
import contextlib
import importlib.util
import os
import sys
import types

import measure_sharded as base
import torch
import torch.distributed as dist

import flash_package
import models


def load_file(package, path):
    """A module of an installed package without what the package imports."""
    for folder in sys.path:
        file = os.path.join(folder, package, path)
        if os.path.exists(file):
            spec = importlib.util.spec_from_file_location(path.replace("/", "_")[:-3], file)
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            return module
    raise SystemExit(f"{package}/{path} is not on PYTHONPATH")


def sequence_group(run):
    from torch.distributed.device_mesh import init_device_mesh
    return init_device_mesh("cuda", (run["world"] // run["degree"], run["degree"]), mesh_dim_names=("data", "sequence"))


class Spread:
    """Whose sequence of a batch this rank has, and what the loss is made of."""

    def __init__(self, model, run):
        self.run, self.mesh = run, sequence_group(run)["sequence"]
        self.group, self.degree = self.mesh.get_group(), run["degree"]

    def around(self, inputs):
        return contextlib.nullcontext()

    def own(self, whole):
        return whole.chunk(self.degree, dim=1)[self.group.rank()].contiguous()

    def inputs(self, ids):
        places = torch.arange(ids.shape[1], device=ids.device).expand(ids.shape)
        return {"input_ids": self.own(ids), "labels": self.own(ids), "position_ids": self.own(places)}

    def loss(self, model, inputs):
        return model(**inputs)["loss"]


class Torch(Spread):
    """accelerate 1.15 accelerator.py _prepare_cp, transformers 5.24 trainer.py _prepare_context_parallel_inputs: buffers that are split in place."""

    def __init__(self, model, run):
        super().__init__(model, run)
        from accelerate.big_modeling import _attach_context_parallel_hooks
        from torch.distributed.tensor.experimental._attention import set_rotate_method
        set_rotate_method(run.get("rotate", "allgather"))
        _attach_context_parallel_hooks(model)

    def inputs(self, ids):
        shifted = torch.nn.functional.pad(ids, (0, 1), value=-100)[:, 1:].contiguous()
        places = torch.arange(ids.shape[1], device=ids.device).expand(ids.shape[0], -1)
        return {"input_ids": ids, "labels": ids.clone(), "shift_labels": shifted, "position_ids": places.contiguous()}

    def around(self, inputs):
        from torch.distributed.tensor.experimental import context_parallel
        buffers = list(inputs.values())
        return context_parallel(self.mesh, buffers=buffers, buffer_seq_dims=[1] * len(buffers), no_restore_buffers=set(buffers))


class DeepSpeed(Spread):
    """accelerate 1.15 accelerator.py _prepare_deepspeed: variable lengths, labels that the loader has shifted."""

    def __init__(self, model, run):
        from deepspeed import comm
        from deepspeed.runtime.sequence_parallel.ulysses_sp import UlyssesSPAttentionHF
        comm.init_distributed(dist_backend=None, dist_init_required=False)
        self.run, self.degree = run, run["degree"]
        self.mpu = UlyssesSPAttentionHF.register_with_transformers(
            model, core_attn_implementation=model.config._attn_implementation, sequence_parallel_size=self.degree,
            micro_batch_size=run["batch"], seq_length_is_variable=True)
        self.group = self.mpu.get_sequence_parallel_group()

    def inputs(self, ids):
        own = super().inputs(ids)
        own["shift_labels"] = own["labels"] = self.own(torch.nn.functional.pad(ids, (0, 1), value=-100)[:, 1:].contiguous())
        return own


class Swift(Spread):
    """ms-swift 4.6 sequence_parallel.py local_sdpa_attn, trainers/utils.py per_token_loss_func_sp; its Ulysses by the file itself."""

    def __init__(self, model, run):
        super().__init__(model, run)
        from transformers import masking_utils
        from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
        name = model.config._attn_implementation
        self.sp_group, self.world_size, self.sp_world_size, self.rp_world_size = self.group, self.degree, self.degree, 1
        ulysses, whole = load_file("swift", "sequence_parallel/ulysses.py"), ALL_ATTENTION_FUNCTIONS[name]
        make_mask = masking_utils.create_causal_mask
        over_all = ulysses.DistributedAttention(None, self)

        def attention(module, query, key, value, mask, *arguments, **named):
            def local(q, k, v, *rest, **kept):
                return whole(module, q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), *rest, **kept)[0]
            over_all.local_attn = local
            return over_all(query.transpose(1, 2), key.transpose(1, 2), value.transpose(1, 2), mask, *arguments, **named), None

        def causal_mask(config, inputs_embeds, *arguments, **named):
            shape = (inputs_embeds.shape[0], inputs_embeds.shape[1] * self.degree, inputs_embeds.shape[2])
            wide = torch.ones(shape, dtype=inputs_embeds.dtype, device=inputs_embeds.device)
            named.pop("position_ids", None)
            return make_mask(config, wide, *arguments, **named)
        ALL_ATTENTION_FUNCTIONS[name] = attention
        sys.modules[type(model).__module__].create_causal_mask = causal_mask

    def gather(self, local, dim, position_ids=None):
        out = torch.empty([local.shape[0] * self.degree, *local.shape[1:]], dtype=local.dtype, device=local.device)
        dist.all_gather_into_tensor(out, local, group=self.group)
        return torch.cat(out.split(local.shape[0], dim=0), dim=dim).contiguous()

    def inputs(self, ids):
        own = super().inputs(ids)
        self.labels = self.own(torch.roll(own.pop("labels"), shifts=-1, dims=-1))
        return own

    def loss(self, model, inputs):
        labels = self.own(torch.roll(self.whole, shifts=-1, dims=-1))
        outputs = model(**inputs)
        logits = outputs["logits"]
        each = torch.nn.CrossEntropyLoss(reduction="none")(logits.view(-1, logits.shape[-1]), labels.flatten())
        each = Gathered.apply(each.reshape(labels.shape), labels, self)
        return each.sum() / (labels != -100).sum()


class Gathered(torch.autograd.Function):
    @staticmethod
    def forward(ctx, loss, labels, spread):
        ctx.width, ctx.spread = loss.shape[1], spread
        spread.gather(labels, 1)
        return spread.gather(loss, 1)

    @staticmethod
    def backward(ctx, gradient):
        whole = gradient * ctx.spread.degree
        return whole.split(ctx.width, dim=1)[ctx.spread.group.rank()].contiguous(), None, None


class Verl(Spread):
    """verl 0.9 monkey_patch.py _ulysses_flash_attention_forward, with the all-to-all of its file."""

    def __init__(self, model, run):
        super().__init__(model, run)
        from transformers.integrations import flash_attention
        ulysses, plain = load_file("verl", "utils/ulysses.py"), flash_attention._flash_attention_forward
        ulysses.set_ulysses_sequence_parallel_group(self.group)
        borders = torch.tensor([0, run["seq"]], dtype=torch.int32, device="cuda")  # what the positions would say, which read as zeros here

        def forward(q, k, v, mask, query_length, *arguments, position_ids=None, **named):
            repeats = max(self.degree // k.size(2), 1)
            if repeats > 1:
                k, v = k.repeat_interleave(repeats, dim=2), v.repeat_interleave(repeats, dim=2)
            q = ulysses.gather_seq_scatter_heads(q, seq_dim=1, head_dim=2)
            k = ulysses.gather_seq_scatter_heads(k, seq_dim=1, head_dim=2)
            v = ulysses.gather_seq_scatter_heads(v, seq_dim=1, head_dim=2)
            parts = [torch.empty_like(position_ids) for _ in range(self.degree)]
            dist.all_gather(parts, position_ids, group=self.group)
            position_ids = torch.concat(parts, dim=-1)
            named.update(cu_seq_lens_q=borders, cu_seq_lens_k=borders, max_length_q=run["seq"], max_length_k=run["seq"])
            out = plain(q, k, v, mask, q.size(1), *arguments, position_ids=position_ids, **named)
            return ulysses.gather_heads_scatter_seq(out, seq_dim=1, head_dim=2)
        flash_attention._flash_attention_forward = forward


class Axolotl(Spread):
    """axolotl 0.19 monkeypatch/ring_attn/patch.py: llama3_flash_attn_varlen_func, one head of keys at a time."""

    def __init__(self, model, run):
        super().__init__(model, run)
        from transformers.integrations import flash_attention
        flash_package.install_kernels()
        package = types.ModuleType("ring_flash_attn")
        package.__path__ = [os.path.join(folder, "ring_flash_attn") for folder in sys.path]
        sys.modules["ring_flash_attn"] = package  # without what its __init__ wants of older releases of Transformers
        import ring_flash_attn.llama3_flash_attn_varlen as ring
        borders = torch.tensor([0, run["seq"]], dtype=torch.int32, device="cuda")
        share = run["seq"] // self.degree
        own = torch.tensor([0, share], dtype=torch.int32, device="cuda")

        def forward(q, k, v, mask, query_length, *arguments, **named):
            out = ring.llama3_flash_attn_varlen_func(
                q.squeeze(0), k.squeeze(0), v.squeeze(0), cu_seqlens_q=own, cu_seqlens_k=borders, max_seqlen_q=share,
                max_seqlen_k=run["seq"], heads_k_stride=1, local_k_slice=slice(0, run["seq"]), causal=True, group=self.group)
            return out.unsqueeze(0)
        flash_attention._flash_attention_forward = forward


SPREADS = {"torch": Torch, "deepspeed": DeepSpeed, "ms-swift": Swift, "verl": Verl, "axolotl": Axolotl}
REAL = {"engine": base.measure_engine, "trainer": base.measure_trainer}


def prepare(row, run):
    if run["engine"] == "trainer":
        return PREPARE(row, run)
    if run.get("spread") in ("verl", "axolotl"):
        flash_package.install()
        row = {**row, "job": {**row["job"], "attention": "flash", "attention_mask": True}}
    model = models.prepare(models.build(row["config"], row["job"]), row["job"])
    SPREAD.append(SPREADS[run["spread"]](model, run) if "spread" in run else None)
    return model


SPREAD = []


def forward(engine, ids):
    spread, run = SPREAD[0], engine.run
    if spread is None:
        return FORWARD[base.DeepSpeedEngine if run["engine"] == "deepspeed" else base.Engine](engine, ids)
    spread.whole = ids
    inputs = spread.inputs(ids)
    amp = run.get("amp", "none")
    spread.left = spread.around(inputs)
    spread.left.__enter__()
    with torch.autocast("cuda", dtype=base.DT[amp]) if amp != "none" else contextlib.nullcontext():
        return spread.loss(engine.model, inputs)


def backward(engine, loss):
    (BACKWARD[type(engine)] if type(engine) in BACKWARD else BACKWARD[base.Engine])(engine, loss)
    if SPREAD[0] is not None:
        SPREAD[0].left.__exit__(None, None, None)


def configure(engine, row, run):
    CONFIGURE(engine, row, run)
    if run.get("tp", 1) > 1:
        engine.ds["tensor_parallel"] = {"autotp_size": run["tp"]}
        if row["config"]["tie_word_embeddings"]:
            split_vocabulary(run["tp"])


def split_vocabulary(ranks):
    """DeepSpeed asks the other ranks for their parts, and the card whether a label is out of range: both would read as nothing here."""
    from deepspeed.sequence import cross_entropy
    cross_entropy._validate_vocab_shard_bounds = lambda size, start, end, group, device: size * ranks
    item = torch.Tensor.item
    torch.Tensor.item = lambda tensor: False if tensor.dtype == torch.bool else item(tensor)


def measured(kind, row, run):
    return {**{key: row[key] for key in ("config", "job", "run")}, **REAL[kind](row, run),
            "source": "tests/oracle/measure_parallel.py on the phantom GPU, torch " + torch.__version__}


def measure(row, run):
    import deepspeed
    initialize = deepspeed.initialize
    deepspeed.initialize = lambda **named: initialize(**named, mpu=getattr(SPREAD[0], "mpu", None))
    return measured("engine", row, run)


def measure_trainer(row, run):
    degrees = {"CP_SIZE": run["degree"], "DP_SHARD_SIZE": run["world"] // run["degree"], "DP_REPLICATE_SIZE": 1}
    os.environ.update({"PARALLELISM_CONFIG_" + key: str(degree) for key, degree in degrees.items()})
    os.environ["ACCELERATE_USE_PARALLELISM_CONFIG"] = "true"
    return measured("trainer", row, run)


base.measure_engine, base.measure_trainer = measure, measure_trainer
FORWARD = {base.Engine: base.Engine.forward, base.DeepSpeedEngine: base.DeepSpeedEngine.forward}
CONFIGURE, base.DeepSpeedEngine.config = base.DeepSpeedEngine.config, configure
base.Engine.forward = base.DeepSpeedEngine.forward = forward
PREPARE, base.prepare = base.prepare, prepare
BACKWARD = {base.Engine: base.Engine.backward, base.DeepSpeedEngine: base.DeepSpeedEngine.backward}
base.Engine.backward = base.DeepSpeedEngine.backward = backward

if __name__ == "__main__":
    base.main()
