"""Calculon's space for GPT-3 175B on 512 A100: listed, counted, and as our layouts."""

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from planner.search.space.fleet import divisors

HERE = Path(__file__).parent
Choice = dict[str, Any]
"""A value for every axis that is no degree."""
FAST = 0
"""The network inside a node."""


class Degrees(NamedTuple):
    """Numbers that an execution is made of."""

    tensor_par: int
    pipeline_par: int
    data_par: int
    interleaving: int
    micro_batch: int


class Image(NamedTuple):
    """An execution as a layout of ours."""

    tp: int
    sp: bool
    pp: int
    dp: int
    zero: int
    micro_batch: int
    pp_inside: bool
    vpp: int
    recompute: str


class Calculon:
    """The declared space."""

    def __init__(self, path: Path = HERE / "calculon.yaml") -> None:
        self.told: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
        self.axes: dict[str, dict[str, Any]] = self.told["axes"]
        self._choices: dict[tuple[bool, ...], list[Choice]] = {}
        self._grouped: dict[tuple[bool, ...], list[tuple[Choice, int]]] = {}

    @cached_property
    def degrees(self) -> tuple[Degrees, ...]:
        """Every set of degrees that divides the processors, blocks and batch."""
        model, processors = self.told["model"], self.told["processors"]
        found: list[Degrees] = []
        for tp in divisors(processors):
            if model["hidden"] % tp or model["attn_heads"] % tp:
                continue
            for pp in divisors(min(processors // tp, model["num_blocks"])):
                if processors % (tp * pp) == 0 and model["num_blocks"] % pp == 0:
                    found += self._inner(tp, pp)
        return tuple(found)

    def _inner(self, tp: int, pp: int) -> Iterator[Degrees]:
        """Chunks and micro-batches; the batch is the most that the replicas divide."""
        dp = self.told["processors"] // (tp * pp)
        blocks = self.told["model"]["num_blocks"] // pp
        for chunks in divisors(blocks) if pp > 1 else [1]:
            for micro_batch in divisors(self.told["batch"] // dp):
                if micro_batch * self.told["model"]["seq_size"] % tp == 0:
                    yield Degrees(tp, pp, dp, chunks, micro_batch)

    def choices(self, degrees: Degrees, *, offload: bool) -> list[Choice]:
        """Every choice on the other axes.

        Args:
            degrees: Degrees, which decide the axes that are open.
            offload: True if processors have a second memory.

        Returns:
            A value for each axis.
        """
        key = _key(degrees, offload)
        if key not in self._choices:
            given = dict(zip(Degrees._fields, degrees, strict=True))
            self._choices[key] = list(self._chosen(given | {"second_memory": offload}))
        return self._choices[key]

    def grouped(self, degrees: Degrees, *, offload: bool) -> list[tuple[Choice, int]]:
        """Groups of choices that differ in the software stack alone.

        Args:
            degrees: Degrees, which decide the axes that are open.
            offload: True if processors have a second memory.

        Returns:
            One choice of each group, and the number of choices in the group.
        """
        key = _key(degrees, offload)
        if key not in self._grouped:
            laid = [name for name, axis in self.axes.items() if "layout" in axis]
            groups: dict[tuple[Any, ...], list[Choice]] = {}
            for choice in self.choices(degrees, offload=offload):
                groups.setdefault(tuple(choice[name] for name in laid), []).append(
                    choice
                )
            self._grouped[key] = [(same[0], len(same)) for same in groups.values()]
        return self._grouped[key]

    def _chosen(self, given: Mapping[str, Any]) -> Iterator[Choice]:
        for values in product(*(axis["values"] for axis in self.axes.values())):
            choice = dict(zip(self.axes, values, strict=True))
            if all(self._open(name, {**given, **choice}) for name in self.axes):
                yield choice

    def _open(self, name: str, values: Mapping[str, Any]) -> bool:
        """True if an axis may have its value: any, or the last on a closed axis."""
        axis = self.axes[name]
        needs = axis.get("needs", {}).items()
        met = all(_meets(values[other], asked) for other, asked in needs)
        return met or values[name] == axis["values"][-1]

    def count(self, *, offload: bool, micro_batch: int | None = None) -> int:
        """Executions of the space.

        Args:
            offload: True if processors have a second memory.
            micro_batch: The only size to count; none counts every size. [1]

        Returns:
            Number of executions. [1]
        """
        return sum(
            len(self.choices(degrees, offload=offload))
            for degrees in self.degrees
            if micro_batch in (None, degrees.micro_batch)
        )

    def accepts(self, degrees: Degrees, choice: Choice) -> bool:
        """Tell if Calculon prices an execution, memory aside.

        Args:
            degrees: Degrees of the execution.
            choice: Choice on the other axes.

        Returns:
            False where a network is too small or half empty, or a processor has too few
            blocks to offload.
        """
        blocks = self.told["model"]["num_blocks"] // degrees.pipeline_par
        few = blocks < self.told["offload_least_blocks"]
        if few and offloads(choice) != "none":
            return False
        sizes = Counter[int]()
        for axis, degree in zip(Degrees._fields[:3], degrees[:3], strict=True):
            if degree > 1:
                net = choice[f"{axis}_net"]
                sizes[net] = max(sizes[net], 1) * degree
        return all(self._carries(net, size) for net, size in sizes.items())

    def _carries(self, net: int, size: int) -> bool:
        network = self.told["networks"][net]
        whole = not network["must_be_filled"] or network["size"] % size == 0
        return bool(size <= network["size"] and whole)

    def image(self, degrees: Degrees, choice: Choice) -> Image:
        """The layout of ours that an execution is.

        All other choices belong to the software stack. A tensor group outside the
        node's network keeps its degree and lies innermost, as in every rank order.

        Args:
            degrees: Degrees of the execution.
            choice: Choice on the other axes.

        Returns:
            The layout, without offload.
        """
        tp, pp, dp, chunks, micro_batch = degrees
        optimizer = choice["optimizer_sharding"] or (
            choice["optimizer_offload"] and dp == 1
        )
        return Image(
            tp=tp,
            sp=choice["tensor_par_comm_type"] == "rs_ag" and tp > 1,
            pp=pp,
            dp=dp,
            zero=int(optimizer),
            micro_batch=micro_batch,
            pp_inside=min(pp, dp) > 1 and choice["pipeline_par_net"] == FAST,
            vpp=chunks,
            recompute=self.axes["activation_recompute"]["as"][
                choice["activation_recompute"]
            ],
        )


def offloads(choice: Choice) -> str:
    """State that an execution keeps in the second memory, in our words.

    Args:
        choice: Choice on the axes that are no degrees.

    Returns:
        `none`, or categories with + between them. [text]
    """
    ours = {
        "optimizer": "optimizer_offload",
        "parameters": "weight_offload",
        "activations": "activations_offload",
    }
    return "+".join(name for name, axis in ours.items() if choice[axis]) or "none"


def _key(degrees: Degrees, offload: bool) -> tuple[bool, ...]:  # noqa: FBT001
    """Key of the choices: flags for degrees above 1 and for offload."""
    return (*(degree > 1 for degree in degrees[:3]), offload)


def _meets(value: Any, asked: Any) -> bool:
    return value > 1 if asked == "above 1" else value in asked
