"""What torchtitan needs to train on CPUs, and a report of what it built.

Configuration, meshes, FSDP2, tensor and context parallelism, schedules and the loop of
training are torchtitan's own. Put in place are: probes of the device, FlexAttention
(no backward on CPUs), sums in gloo, and what only a later PyTorch has.
"""

# ruff: noqa: PLC0415  # torchtitan looks for its device where it is imported

import inspect
import json
import os
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch._utils

LAYER = ("feed_forward.w1.weight", "w1_EFD")


def install() -> None:
    """Put everything in place; called before torchtitan is imported."""
    devices()
    attention()
    pipelines()
    collectives()
    reports()


def devices() -> None:
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


def attention() -> None:
    """The same mask for scaled dot products."""
    from torch.nn.attention.flex_attention import create_mask
    from torch.nn.functional import scaled_dot_product_attention
    from torchtitan.models.common import attention as theirs

    def dense(q: Any, k: Any, v: Any, *, block_mask: Any, **more: Any) -> Any:
        sizes = (q.shape[0], 1, q.shape[2], k.shape[2])
        mask = create_mask(block_mask.mask_mod, *sizes, device="cpu")
        known = {name: more[name] for name in ("scale", "enable_gqa") if name in more}
        out = scaled_dot_product_attention(q, k, v, attn_mask=mask, **known)
        return out, types.SimpleNamespace(lse=None, max_scores=None)

    theirs.FlexAttention._compiled_flex_attn = staticmethod(dense)


def pipelines() -> None:
    """A step over micro-batches that are cut already, as later releases take it."""
    from torch.distributed.pipelining import schedules

    for kind in (schedules.PipelineScheduleSingle, schedules.PipelineScheduleMulti):
        kind.step = stepped(kind.step)


def stepped(original: Callable[..., Any]) -> Callable[..., Any]:
    """A schedule's step that takes micro-batches."""

    def step(self: Any, *args: Any, **more: Any) -> Any:
        names = ("arg_mbs", "kwarg_mbs", "target_mbs", "losses", "loss_kwargs")
        inputs, keywords, targets, losses, given = (more.pop(n, None) for n in names)
        if keywords is None:
            return original(self, *args, losses=losses, **more)
        if given:
            first = self.__dict__.setdefault("_first_loss", self._loss_fn)
            self._loss_fn = lambda out, target: first(out, target, **given)
        for stage in getattr(self, "_stages", None) or [self._stage]:
            stage.clear_runtime_states()
            stage.has_backward = self._has_backward
        known = inspect.signature(self._step_microbatches).parameters
        every = inputs or [()] * self._n_microbatches
        fit = {name: value for name, value in more.items() if name in known}
        return self._step_microbatches(every, keywords, targets, losses, **fit)

    return step


def collectives() -> None:
    """Sums alone, and no timeout of a group."""
    from torch.distributed.fsdp import FSDPModule
    from torchtitan.distributed import utils

    original = FSDPModule.set_gradient_divide_factor

    def summed(self: Any, factor: float) -> None:
        original(self, factor)
        self.set_force_sum_reduction_for_comms(True)

    FSDPModule.set_gradient_divide_factor = summed
    utils.set_pg_timeouts = lambda *_, **__: None


def reports() -> None:
    """Every rank writes down where it is and what it holds, before it trains."""
    from torchtitan import trainer

    original = trainer.Trainer.train

    def train(self: Any) -> Any:
        said = report(self)
        name = f"{said['process']}.json"
        Path(os.environ["REPORTS"], name).write_text(json.dumps(said))
        return original(self)

    trainer.Trainer.train = train


def report(trainer: Any) -> dict[str, Any]:
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
