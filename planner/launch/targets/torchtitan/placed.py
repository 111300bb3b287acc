"""Layout that torchtitan's settings fix."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from planner.errors import BadInputError
from planner.frameworks.torchtitan.limits import ROTATIONS
from planner.launch.copies import Copies
from planner.launch.targets.megatron.stages import plain_stages
from planner.launch.targets.torchtitan.settings import Values, schedules
from planner.launch.targets.torchtitan.source import Built

MOST = 1 << 16
"""Most ranks of an axis, layers or stages. [1]"""
LARGEST = 1 << 40
"""Largest value of any other number. [1]"""
KINDS = {theirs: ours for ours, theirs in ROTATIONS.items()}
"""Kind of context parallelism by context_parallel_rotate_method. [text]"""
SINGLE = ("1F1B", "GPipe")
"""Schedules of one stage a rank. [text]"""
REPLICATE, SHARD = "data_parallel_replicate_degree", "data_parallel_shard_degree"
DEFAULTS = {
    REPLICATE: 1,
    SHARD: -1,
    "tensor_parallel_degree": 1,
    "pipeline_parallel_degree": 1,
    "context_parallel_degree": 1,
    "expert_parallel_degree": 1,
    "pipeline_parallel_microbatch_size": 1,
    "pipeline_parallel_first_stage_less_layers": 1,
    "pipeline_parallel_last_stage_less_layers": 1,
}
"""Value of a number that is not given, by name. [1]"""


class Settings:
    """Settings of a run, with the numbers that follow from them.

    Args:
        values: Values by section and name. [-]
        file: File of the settings, for messages. [text]
        gpus: Ranks of the run, or None where unknown. [1]
        layers: Layers of the model, or None where unknown. [1]
    """

    def __init__(
        self, values: Values, file: str, *, gpus: int | None, layers: int | None
    ) -> None:
        self.values, self.file, self.gpus = values, file, gpus
        self.layers = None if layers is None else self._layers(layers)
        self.local = self.whole("training.local_batch_size", 8, least=1)
        self.tp, self.pp, self.cp, self.ep = (
            self.degree(f"{name}_parallel_degree")
            for name in ("tensor", "pipeline", "context", "expert")
        )
        self.replicas = self.degree(REPLICATE)
        self.shards = self._shards()

    def degree(self, name: str, least: int = 1) -> int:
        """Number of the section parallelism. [1]."""
        where = f"parallelism.{name}"
        return self.whole(where, DEFAULTS[name], least=least, most=MOST)

    def whole(
        self, name: str, default: int, *, least: int = -1, most: int = LARGEST
    ) -> int:
        """Read a whole number within bounds; any other value is refused. [1]."""
        value = self.values.get(name, default)
        if isinstance(value, str) and value.lstrip("-").isdigit():
            value = int(value)
        number = isinstance(value, int) and not isinstance(value, bool)
        if not number or not least <= value <= most:
            raise BadInputError(
                "is no whole number in range",
                file=self.file,
                field=name,
                value=str(value),
                allowed=f"{least} or more, up to {most:,}",
            )
        return int(value)

    def _layers(self, value: object) -> int:
        """Layers of the model; a number outside 1 to `MOST` is refused. [1]."""
        if type(value) is not int or not 1 <= value <= MOST:
            raise BadInputError(
                "is no number of layers",
                file=self.file,
                field="layers",
                value=str(value),
                allowed=f"1 to {MOST:,}",
            )
        return value

    def _shards(self) -> int | None:
        """Data ranks that share states; -1 stands for all that remain. [1]."""
        given = self.degree(SHARD, least=-1) or self.degree(SHARD)
        rest = self.replicas * self.cp * self.tp * self.pp
        if given > 0:
            self.gpus = self.gpus or given * rest
            return given
        return max(self.gpus // rest, 1) if self.gpus else None

    @property
    def copies(self) -> Copies:
        """Copies of the states, which leave the shard group of a degree of -1. [-]."""
        name = REPLICATE if self.replicas > 1 else SHARD
        return Copies(f"parallelism.{name}", self.degree(name, -1), self.replicas)

    @property
    def dp(self) -> int | None:
        """Data ranks. [1]."""
        return None if self.shards is None else self.replicas * self.shards

    @property
    def sequences(self) -> int | None:
        """Sequences of one optimizer step. [1]."""
        given = self.whole("training.global_batch_size", -1)
        if given > 0:
            return given
        return None if self.dp is None else self.local * self.dp

    @property
    def micro_batch(self) -> int:
        """Sequences that one forward takes. [1]."""
        return (
            self.degree("pipeline_parallel_microbatch_size")
            if self.pp > 1
            else self.local
        )

    @property
    def flushes(self) -> int:
        """Pipeline flushes of one optimizer step. [1]."""
        if self.pp == 1 or self.dp is None or self.sequences is None:
            return 1
        return max(self.sequences // (self.local * self.dp), 1)


def placed(its: Settings, kind: str) -> dict[str, Any]:
    """Fields of a layout; fields that the settings leave open stay open."""
    sequence = its.values.get("parallelism.enable_sequence_parallel", True)
    found: dict[str, Any] = {
        "tp": its.tp,
        "sp": bool(sequence) and its.tp > 1,
        "pp": its.pp,
        "cp": its.cp,
        "ep": its.ep,
        "micro_batch": its.micro_batch,
        "zero_stage": _zero_stage(its),
        "order": its.values.get("order", "tp-cp-ep-dp-pp"),
    }
    if its.cp > 1:
        rotate = its.values.get("parallelism.context_parallel_rotate_method")
        found["cp_kind"] = KINDS.get(rotate or "", "all-gather")
    if its.dp is not None and its.shards is not None:
        found |= {"dp": its.dp, "dp_shard": its.shards * its.cp}
    moved = ("parameters", "gradients", "optimizer")
    offloads = bool(its.values.get("training.enable_cpu_offload"))
    found["offload"] = dict.fromkeys(moved, 1.0) if offloads else {}
    if its.values.get("gathers"):
        found["comm_dtype"] = {"parameters": its.values["gathers"]}
    return found | _stages(its, kind)


def _zero_stage(its: Settings) -> int:
    """ZeRO stage: 3 frees gathered parameters after the forward, 2 keeps them. [1]."""
    policy = its.values.get("parallelism.fsdp_reshard_after_forward", "default")
    usual = 3 if its.pp == 1 else 2
    return {"always": 3, "never": 2}.get(str(policy), usual)


def _stages(its: Settings, kind: str) -> dict[str, Any]:
    if its.pp == 1:
        return {"vpp": 1, "recompute": kind, "stages": "even"}
    counts = layers_by_stage(its)
    found: dict[str, Any] = {}
    name = str(its.values.get("parallelism.pipeline_parallel_schedule", "1F1B"))
    if name in schedules():
        found["schedule"] = schedules()[name]
    if counts is None:
        return found | {"recompute": kind}
    stages = plain_stages(counts, kind)
    return found | {
        "vpp": max(len(counts) // its.pp, 1),
        "stages": [s.model_dump(mode="json", by_alias=True) for s in stages],
    }


def layers_by_stage(its: Settings) -> tuple[int, ...] | None:
    """Layers of every stage, as given by the settings or as torchtitan cuts stages.

    Returns:
        Layers in the order of the model; None where they cannot be known. [1]

    References:
        torchtitan 0.3.0 distributed/pipeline_parallel.py, _get_pipeline_metadata and
        _generate_llm_fqn_per_model_part.
    """
    counts = _counts(its)
    if counts and min(counts) < 0:
        raise BadInputError(
            "these stages take more layers than there are",
            file=its.file,
            field="parallelism",
            value=", ".join(map(str, counts[:MOST_SHOWN])),
        )
    return counts


MOST_SHOWN = 16


def _counts(its: Settings) -> tuple[int, ...] | None:
    given = its.values.get("parallelism.module_fqns_per_model_part")
    if given:
        return _given(given)
    points = its.values.get("parallelism.pipeline_parallel_split_points")
    if points:
        return _split(points, its.layers)
    return _cut(its) if its.layers else None


def _given(parts: object) -> tuple[int, ...] | None:
    if isinstance(parts, Built):
        counts = parts.args[0] if parts.args else None
        whole = isinstance(counts, list) and all(type(one) is int for one in counts)
        return tuple(counts) if whole and counts else None
    if not isinstance(parts, list) or not all(isinstance(p, list) for p in parts):
        return None
    return tuple(sum(str(n).startswith("layers.") for n in part) for part in parts)


def _split(points: object, layers: int | None) -> tuple[int, ...] | None:
    """Layers by stage from split points such as `layers.8`, in releases before 0.2."""
    names = points.split(",") if isinstance(points, str) else points
    if layers is None or not isinstance(names, Sequence):
        return None
    numbers = [str(name).rpartition(".")[2] for name in names]
    if not all(number.isdigit() for number in numbers):
        return None
    edges = [0, *map(int, numbers), layers]
    return tuple(b - a for a, b in pairwise(edges))


def _cut(its: Settings) -> tuple[int, ...]:
    """Layers by stage of an even cut, where embedding and head count as layers."""
    first = its.degree("pipeline_parallel_first_stage_less_layers", least=0)
    last = its.degree("pipeline_parallel_last_stage_less_layers", least=0)
    whole = (its.layers or 0) + first + last
    each, more = divmod(whole, stages := _count(its, whole))
    counts = [each + 1] * more + [each] * (stages - more)
    counts[0] -= first
    counts[-1] -= last
    return tuple(counts)


def _count(its: Settings, whole: int) -> int:
    per_stage = "parallelism.pipeline_parallel_layers_per_stage"
    if its.values.get(per_stage) is not None:
        return -(-whole // its.whole(per_stage, 1, least=1, most=MOST))
    name = its.values.get("parallelism.pipeline_parallel_schedule", "1F1B")
    return its.pp * (1 if name in SINGLE else 2)
