"""The line that `plan -q` prints is the line that `--layout` takes."""

from typing import Any

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.errors import BadInputError
from planner.specs.layouts.axes import FIELDS
from planner.specs.layouts.blocks import with_block, with_recompute
from planner.specs.layouts.layout import (
    Layout,
    PartialLayout,
    PoolStages,
    RecomputeRange,
    Stage,
)
from planner.specs.reading.layout_line import given_layout, read_layout

KINDS = ("none", "full", "selective", "layernorm+moe_act")
DEGREES = st.integers(1, 64)
SHARES = st.floats(0, 1)


@st.composite
def stages(draw: st.DrawFn) -> tuple[Stage, ...]:
    """Virtual stages that share a kind of recompute, are a block, or differ."""
    counts = draw(st.lists(st.integers(0, 12), min_size=1, max_size=9))
    way = draw(st.sampled_from(["kind", "block", "mixed"]))
    if way == "kind":
        kind = draw(st.sampled_from(KINDS))
        return tuple(with_recompute(Stage(layers=count), kind) for count in counts)
    if way == "block":
        size = draw(st.integers(1, 12))
        return tuple(with_block(count, size) for count in counts)
    return tuple(draw(mixed(count)) for count in counts)


@st.composite
def mixed(draw: st.DrawFn, layers: int) -> Stage:
    """A virtual stage whose first layers have one kind and the others another."""
    edge = draw(st.integers(0, layers))
    first, rest = draw(st.tuples(st.sampled_from(KINDS), st.sampled_from(KINDS)))
    spans = ((0, edge, first), (edge, layers, rest))
    parts = tuple(
        RecomputeRange(start=start, stop=stop, kind=kind) for start, stop, kind in spans
    )
    return Stage(layers=layers, recompute=parts if layers else ())


@st.composite
def pools(draw: st.DrawFn) -> tuple[PoolStages, ...]:
    """Pools with names as a user may give them, each on neighbouring ranks."""
    names = draw(st.sampled_from([(), ("h100", "a100"), ("my h100, new/old", "x@y.2")]))
    sizes = draw(st.tuples(st.integers(1, 4), st.integers(1, 4)))
    firsts, own = (0, sizes[0]), st.none() | DEGREES
    return tuple(
        PoolStages(
            pool=name,
            stages=tuple(range(first, first + size)),
            tp=draw(own),
            dp=draw(own),
        )
        for name, first, size in zip(names, firsts, sizes, strict=False)
    )


@st.composite
def layouts(draw: st.DrawFn) -> Layout:
    """Layouts of every shape of line; nothing makes them legal."""
    axes: dict[str, Any] = {
        axis.name: draw(st.sampled_from(axis.values) if axis.values else DEGREES)
        for axis in FIELDS
        if axis.name != "cp_kind"
    }
    formats = {
        "gradients": draw(st.sampled_from(["fp32", "bf16"])),
        "parameters": draw(st.sampled_from(["fp32", "bf16", "fp8"])),
    }
    moved = {"optimizer": draw(SHARES), "activations": draw(SHARES)}
    return Layout.model_validate(
        axes
        | {
            "cp_kind": draw(st.sampled_from(["ring", "all-gather", "ulysses4+ring"])),
            "comm_dtype": formats,
            "offload": moved,
            "stages": draw(stages()),
            "pools": draw(pools()),
        }
    )


def whole(partial: PartialLayout) -> Layout:
    """A layout whose line leaves nothing open, with its recompute in its stages."""
    fields = partial.given()
    kind = str(fields.pop("recompute", "none"))
    assert isinstance(partial.stages, tuple)
    stages = tuple(with_recompute(stage, kind) for stage in partial.stages)
    formats = partial.comm_dtype and partial.comm_dtype.model_dump()
    return Layout.model_validate(fields | {"stages": stages, "comm_dtype": formats})


@given(layouts())
@settings(max_examples=examples(2000))
def test_a_layout_is_the_one_that_its_line_says(layout: Layout) -> None:
    assert whole(read_layout(given_layout(layout))) == layout


def test_a_line_says_stages_with_equal_neighbours_together() -> None:
    even = [Stage(layers=5)] * 3 + [Stage(layers=1)]
    alike = tuple(with_recompute(stage, "full") for stage in even)
    apart = (*alike[:3], with_recompute(Stage(layers=1), "none"))

    def tail(stages: tuple[Stage, ...]) -> str:
        return given_layout(Layout(pp=4, stages=stages)).partition("-dp-pp,")[2]

    assert tail(alike) == "recompute=full,stages=3x5/1"
    assert tail(apart) == "stages=3x5@full/1@none"
    blocks = tuple(with_block(count, 2) for count in (5, 5, 1))
    assert tail(blocks) == "recompute=full:2,stages=2x5/1"


def test_words_that_plan_prints_for_formats_are_taken() -> None:
    """A plan tells `gradient_dtype bf16`, the limit of the search, as its choice."""
    words = read_layout("tp=2,gradient_dtype=bf16,parameter_dtype=fp8")
    assert words.comm_dtype is not None
    assert words.comm_dtype.model_dump() == {"gradients": "bf16", "parameters": "fp8"}


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("gradient_dtype=bf16,comm_dtype.gradients=fp32", "is given twice"),
        ("method=lora", "--set training.method=lora"),
        ("precision=fp8", "--set training.precision=fp8"),
        ("stages=99999x1", "at most 65,536"),
        ("stages=5/", "stages"),
        ("stages=5@full/x", "stages"),
        ("pools=h100@0-", "pools"),
    ],
)
def test_a_wrong_line_is_refused(line: str, told: str) -> None:
    with pytest.raises(BadInputError) as refusal:
        read_layout(line)
    assert told in str(refusal.value)
    assert "--layout" in str(refusal.value)
