"""Records of what a writer of launch files has no words for, one for each fact.

Search, verifier, explanations and the writers themselves ask the same records.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from planner.specs.layouts.layout import Layout
from planner.specs.layouts.offload import CATEGORIES
from planner.specs.training import TrainingSpec

REFERENCE = "spec.training.reference"
"""Field of the frozen model of preference training. [text]"""

PADDING = "spec.training.padding"
"""Field of the way in which rows are filled with texts. [text]"""
RATIO_FIELD = "spec.training.lora.loraplus_lr_ratio"
"""Field of the learning rates of LoRA+. [text]"""
ONE_RATE = "both factors of an adapter learn at one rate"
"""Feature that a writer without LoRA+ lacks. [text]"""


@dataclass(frozen=True)
class Lack:
    """Something in a job, or in its layouts, that a target has no words for.

    Attributes:
        feature: Feature that the target lacks, as half a sentence. [text]
        field: Field that asks for the feature, as a path below `layout` or `spec`.
            [text]
        value: Value that the job asks for; None where the layout has the value. [-]
        allowed: Values that the target has in its place. [text]
        when: Condition under which a layout asks for the feature, for one layout or
            columns of layouts, with `&` and `|`. None: every layout of the job. [-]
        of_layers: True where the condition reads the kind of recompute. [-]
    """

    feature: str
    field: str
    value: object = None
    allowed: str = ""
    when: Callable[[Any], Any] | None = None
    of_layers: bool = False

    def holds(self, view: "View") -> bool:
        """Tell if a layout asks for the feature.

        Returns:
            True for every layout where the job itself asks for the feature.
        """
        return self.when is None or bool(self.when(view))

    def shown(self, view: "View") -> object:
        """Value that the job or the layout asks for."""
        if self.value is not None or not self.field.startswith("layout."):
            return self.value
        return view.value(self.field.removeprefix("layout."))


def no_reference(asked: Any) -> Iterator[Lack]:
    """A reference model that a writer has no words for."""
    if asked.training.reference is not None:
        allowed = "none; accelerate with stack.loss chunked, for which TRL has DPO"
        its = asked.training.reference
        yield Lack("no pairs with a reference", REFERENCE, its, allowed)


def states_rows(training: TrainingSpec) -> bool:
    """Tell if a job says how rows are filled, in words other than document.

    Returns:
        True where it has padding or lengths.
    """
    return not training.document and bool(training.padding or training.lengths)


def other_rows(asked: Any, ways: tuple[str, ...], feature: str) -> Iterator[Lack]:
    """A way to fill rows with texts that a writer has no words for."""
    its = asked.training
    if states_rows(its) and its.rows not in ways:
        none = "neither lengths nor padding"
        yield Lack(feature, PADDING, its.rows, ", ".join(ways) or none)


def plain_adapters(asked: Any, magnitudes: str) -> Iterator[Lack]:
    """Variants of adapters, of a writer that has words for plain ones alone."""
    its, where = asked.training.lora, "spec.training.lora"
    if its.rslora:
        what = "adapters are scaled by alpha over the rank"
        yield Lack(what, f"{where}.rslora", "true", "false")
    if its.dora:
        yield Lack(magnitudes, f"{where}.dora", "true", "false")
    if its.loraplus_lr_ratio:
        yield Lack(ONE_RATE, RATIO_FIELD, its.loraplus_lr_ratio, "none")


def states_together() -> Iterator[Lack]:
    """States that FSDP2 moves to the host together or not at all.

    References:
        torch 2.13 distributed/fsdp/_fully_shard/_fsdp_api.py, CPUOffloadPolicy: shards,
        gradients and with them the optimizer's states lie on the host.
    """

    def alone(its: Any) -> Any:
        every = [its.offload.parameters, its.offload.gradients, its.offload.optimizer]
        some = (every[0] > 0) | (every[1] > 0) | (every[2] > 0)
        whole = (every[0] == 1) & (every[1] == 1) & (every[2] == 1)
        return some & (1 - whole > 0)

    what = "FSDP2 moves parameters, gradients and optimizer together"
    yield Lack(what, "layout.offload", allowed="all three whole, or none", when=alone)


class View:
    """A layout as the conditions of records read it."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout

    def __getattr__(self, name: str) -> Any:
        return getattr(self._layout, name)

    @property
    def recompute(self) -> str:
        """The one kind of all layers; `mixed` where they differ. [text]."""
        stages = self._layout.stages
        kinds = {part.kind for stage in stages for part in stage.recompute}
        return kinds.pop() if len(kinds) == 1 else "mixed" if kinds else "none"

    def value(self, path: str) -> object:
        """Value that the layout has in the field of a record."""
        layout = self._layout
        if path == "stages.recompute":
            return self.recompute
        if path == "stages":
            return ", ".join(map(str, layout.layers_per_stage)) or "none"
        if path == "pools":
            return ", ".join(pool.pool for pool in layout.pools) or "none"
        if path != "offload":
            return getattr(layout, path)
        moved = [name for name in CATEGORIES if getattr(layout.offload, name)]
        return ", ".join(moved) or "none"


@dataclass(frozen=True)
class Writer:
    """A target that files of a framework are written for.

    Attributes:
        target: Name of the target on the command line. [text]
        title: Name in prose. [text]
        version: Releases that the files are written for. [text]
        lacks: Records of what the target has no words for, in a job and its layouts.
            [-]
        holds: Targets whose files may lie among the target's own. [text]
        kin: Tools whose files say a job of this target. [text]
    """

    target: str
    title: str
    version: str
    lacks: Callable[[Any], Iterator[Lack]]
    holds: frozenset[str] = frozenset()
    kin: tuple[str, ...] = ()
