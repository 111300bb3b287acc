"""What torchtitan needs to train on CPUs, and a report of what it built.

Configuration, meshes, FSDP2, tensor and context parallelism, schedules and the loop of
training are torchtitan's own. Put in place are: probes of the device, FlexAttention
(no backward on CPUs), sums in gloo, and what only a later PyTorch has.
"""

import inspect
import json
import os
import types
from pathlib import Path

import torch
import torch._utils

LAYER = "feed_forward.w1.weight"


def install():
    """Put everything in place; called before torchtitan is imported."""
    devices()
    attention()
    pipelines()
    collectives()
    reports()


def devices():
    """CPUs in place of GPUs."""
    torch._utils._get_available_device_type = lambda: "cpu"
    properties = types.SimpleNamespace(total_memory=2**34, name="CPU")
    for name, function in {
        "set_device": lambda *_, **__: None,
        "device_count": lambda: 1,
        "memory_stats": lambda *_, **__: {},
        "empty_cache": lambda: None,
        "reset_peak_memory_stats": lambda *_, **__: None,
        "get_device_name": lambda *_: "CPU",
        "get_device_properties": lambda *_: properties,
    }.items():
        setattr(torch.cpu, name, function)


def attention():
    """The same mask for scaled dot products."""
    import torch.nn.functional as F
    import torchtitan.models.common.attention as theirs
    from torch.nn.attention.flex_attention import create_mask

    def dense(q, k, v, *, block_mask=None, scale=None, enable_gqa=False, **_):
        sizes = (q.shape[0], 1, q.shape[2], k.shape[2])
        mask = create_mask(block_mask.mask_mod, *sizes, device="cpu")
        out = F.scaled_dot_product_attention(
            q, k, v, attn_mask=mask, scale=scale, enable_gqa=enable_gqa
        )
        return out, types.SimpleNamespace(lse=None, max_scores=None)

    theirs.FlexAttention._compiled_flex_attn = staticmethod(dense)


def pipelines():
    """A step over micro-batches that are cut already, as later releases take it."""
    import torch.distributed.pipelining.schedules as schedules

    for kind in (schedules.PipelineScheduleSingle, schedules.PipelineScheduleMulti):
        kind.step = stepped(kind.step)


def stepped(original):
    """A schedule's step that takes micro-batches."""

    def step(self, *args, arg_mbs=None, kwarg_mbs=None, target_mbs=None, **more):
        losses, given = more.pop("losses", None), more.pop("loss_kwargs", None)
        if kwarg_mbs is None:
            return original(self, *args, losses=losses, **more)
        if given:
            first = self.__dict__.setdefault("_first_loss", self._loss_fn)
            self._loss_fn = lambda out, target: first(out, target, **given)
        for stage in getattr(self, "_stages", None) or [self._stage]:
            stage.clear_runtime_states()
            stage.has_backward = self._has_backward
        known = inspect.signature(self._step_microbatches).parameters
        inputs = arg_mbs or [()] * self._n_microbatches
        fit = {name: value for name, value in more.items() if name in known}
        return self._step_microbatches(inputs, kwarg_mbs, target_mbs, losses, **fit)

    return step


def collectives():
    """Sums alone, and no timeout of a group."""
    import torchtitan.distributed.utils as utils
    from torch.distributed.fsdp import FSDPModule

    original = FSDPModule.set_gradient_divide_factor

    def summed(self, factor):
        original(self, factor)
        self.set_force_sum_reduction_for_comms(True)

    FSDPModule.set_gradient_divide_factor = summed
    utils.set_pg_timeouts = lambda *_, **__: None


def reports():
    """Every rank writes down where it is and what it holds, before it trains."""
    import torchtitan.trainer as trainer

    original = trainer.Trainer.train

    def train(self):
        said = report(self)
        name = f"{said['process']}.json"
        Path(os.environ["REPORTS"], name).write_text(json.dumps(said))
        return original(self)

    trainer.Trainer.train = train


def report(trainer):
    """Process, rank, mesh, schedule and one parameter of a rank."""
    from torch.distributed.tensor import DTensor

    dims = trainer.parallel_dims
    names = ("dp_replicate", "dp_shard", "cp", "tp", "pp", "ep")
    weights = [
        (name, value)
        for part in trainer.model_parts
        for name, value in part.named_parameters()
        if name.endswith(LAYER)
    ]
    layers = sorted({int(name.split(".")[1]) for name, _ in weights})
    weight = weights[0][1]
    assert isinstance(weight, DTensor), "not distributed"
    schedule = getattr(trainer, "pp_schedule", None)
    pipeline = dims.get_optional_mesh("pp")
    return {
        "process": int(os.environ.get("PLACE", os.environ["RANK"])),
        "rank": torch.distributed.get_rank(),
        "world": torch.distributed.get_world_size(),
        "mesh": {name: getattr(dims, name) for name in names},
        "stage": pipeline.get_local_rank() if pipeline else 0,
        "layers": layers,
        "placements": [str(one) for one in weight.placements],
        "local": list(weight.to_local().shape),
        "whole": list(weight.shape),
        "micro_batches": trainer.num_pipeline_parallel_microbatches
        * trainer.gradient_accumulation_steps,
        "schedule": type(schedule).__name__ if schedule else None,
    }
