"""What saving a checkpoint takes on the card, of one rank of many; one JSON line per job.

usage: measure_save.py < jobs.jsonl     each line as measure_sharded.py reads it, which measures one rank of many and is to
be on PYTHONPATH; the run has in addition
  save       full, sharded: accelerate's FSDP state dict types, saved as accelerate does
  optimizer_state   true: the optimizer's states are saved, too

The rows have measure_sharded.py's fields and peak_save. The other ranks are torch's fake process group: of objects that
are exchanged each rank gets this rank's own, from tensors of the size that the real exchange makes."""
import copy
import shutil
import tempfile
from types import SimpleNamespace

import measure_sharded as base
import torch
import torch.distributed as dist
from measure import M

REAL = base.Meter


def bytes_of(value):
    import torch.distributed.distributed_c10d as c10d
    return c10d._object_to_tensor(value, torch.device("cuda"), None)[0]


def exchanged(value, count):
    """The tensors of distributed_c10d.py's gather_object, as long as they live."""
    own = bytes_of(value)
    sizes = torch.zeros(count, dtype=torch.long, device="cuda")
    every = torch.empty(own.numel() * count, dtype=torch.uint8, device="cuda")
    del own, sizes, every


# Named as torch names them: callers do.
def all_gather_object(object_list, obj, group=None, weights_only=False):
    count = dist.get_world_size(group)
    exchanged(obj, count)
    for i in range(count):
        object_list[i] = copy.deepcopy(obj)


def gather_object(obj, object_gather_list=None, dst=None, group=None, group_dst=None, weights_only=False):
    count = dist.get_world_size(group)
    exchanged(obj, count)
    for i in range(count if object_gather_list is not None else 0):
        object_gather_list[i] = copy.deepcopy(obj)


def scatter_object_list(scatter_object_output_list, scatter_object_input_list=None, src=None, group=None,
                        group_src=None, weights_only=False):
    sent = [bytes_of(value) for value in scatter_object_input_list]
    received = torch.empty_like(sent[0])
    scatter_object_output_list[0] = scatter_object_input_list[0]
    del sent, received


def broadcast_object_list(object_list, src=None, group=None, device=None, group_src=None, weights_only=False):
    sent = [bytes_of(value) for value in object_list]
    joined = torch.cat(sent)
    del sent, joined


def patch():
    import torch.distributed.checkpoint.default_planner as planner
    import torch.distributed.distributed_c10d as c10d
    c10d._get_pg_default_device = lambda group=None: torch.device("cuda")  # as NCCL's; what the fake group says is the host
    planner._validate_global_plan = lambda plan, metadata: []  # each rank's plan is this rank's
    for place in (dist, c10d):
        for function in (all_gather_object, gather_object, scatter_object_list, broadcast_object_list):
            setattr(place, function.__name__, function)


def every_state(engine):
    """The others' parameters have states there: here they are empty."""
    for group in engine.opt.param_groups:
        for p in group["params"]:
            if p.requires_grad and p not in engine.opt.state and p.numel() == 0:
                engine.opt.state[p] = {"step": torch.tensor(0.0), "exp_avg": torch.empty_like(p),
                                       "exp_avg_sq": torch.empty_like(p)}


def save(engine, run):
    from accelerate.utils import fsdp_utils
    from torch.distributed.fsdp.fully_sharded_data_parallel import (FullOptimStateDictConfig, FullStateDictConfig,
                                                                    ShardedOptimStateDictConfig,
                                                                    ShardedStateDictConfig, StateDictType)
    whole = run["save"] == "full"
    plugin = SimpleNamespace(
        fsdp_version=1 if run["engine"] == "fsdp1" else 2,
        state_dict_type=StateDictType.FULL_STATE_DICT if whole else StateDictType.SHARDED_STATE_DICT,
        state_dict_config=(FullStateDictConfig(offload_to_cpu=True, rank0_only=True) if whole
                           else ShardedStateDictConfig(offload_to_cpu=True)),
        optim_state_dict_config=(FullOptimStateDictConfig(offload_to_cpu=True, rank0_only=True) if whole
                                 else ShardedOptimStateDictConfig(offload_to_cpu=True)))
    accelerator = SimpleNamespace(num_processes=run["world"], process_index=run["rank"])
    fsdp_utils.logger = SimpleNamespace(info=lambda *a, **k: None, warning=lambda *a, **k: None)
    folder = tempfile.mkdtemp()
    try:
        fsdp_utils.save_fsdp_model(plugin, accelerator, engine.model, folder)
        if run.get("optimizer_state", True):
            if run["engine"] == "fsdp1" and run.get("use_orig_params", True):
                every_state(engine)
            fsdp_utils.save_fsdp_optimizer(plugin, accelerator, engine.opt, engine.model, folder)
    finally:
        shutil.rmtree(folder)


class Meter(REAL):
    """A phase `save` comes after the step that is measured."""
    engine, run = None, None

    def rows(self, *arguments):
        self.phase("save")
        save(Meter.engine, Meter.run)
        self.phase("end")
        out = super().rows(*arguments)
        for i, part in enumerate(("bytes", "requested")):
            out[part]["peak_save"] = self.peak["save"][i]
            out[part]["peak"] = max(v[i] for k, v in self.peak.items() if k != "save")
        return out


def watch(engine_class):
    made = engine_class.__init__

    def init(self, job, run):
        made(self, job, run)
        patch()
        Meter.engine, Meter.run = self, run
    engine_class.__init__ = init


def main():
    base.Meter = Meter
    watch(base.Engine)
    base.main()


if __name__ == "__main__":
    main()
