"""Measured sections over ours: what they replace, what stays, what is refused."""

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from each import each

from planner.hardware.calibration import GpuCalibration, calibration
from planner.hardware.reading.files import SHIPPED, CatalogError
from planner.hardware.remeasured import remeasured

H200 = calibration("h200-sxm-141gb", SHIPPED)
GH200 = calibration("gh200-144gb", SHIPPED)
GEMM = {"efficiency": 0.7, "traffic": 0.5, "overhead": "3 us", "source": "here"}


def over(chip: GpuCalibration = H200, **sections: Any) -> Any:
    return remeasured(chip, sections, where=f"mine.yaml: gpus.{chip.name}")


def test_a_number_format_replaces_its_like_and_leaves_the_others() -> None:
    its = over(GH200, gemm={"bf16": GEMM})
    assert its.gemm["bf16"].efficiency == 0.7
    assert its.gemm["bf16"].overhead == 3e-6
    assert its.gemm["fp8"] == GH200.gemm["fp8"]
    assert its.transferred["gemm"] == GH200.transferred["gemm"]


def test_a_section_measured_whole_is_no_longer_transferred() -> None:
    its = over(GH200, gemm=dict.fromkeys(GH200.gemm, GEMM))
    assert "gemm" not in its.transferred
    assert its.transferred["memory"] == GH200.transferred["memory"]
    grouped = over(GH200, grouped_gemm=dict.fromkeys(GH200.grouped_gemm, GEMM))
    assert "grouped_gemm" in GH200.borrowed
    assert "grouped_gemm" not in grouped.borrowed


def test_an_attention_curve_replaces_that_of_its_kernel_and_head() -> None:
    (old,) = [c for c in H200.attention_curves("fa3") if c.head_dim == 128]
    rates = {
        way: [f"{rate / 2e12} TFLOP/s" for rate in getattr(old, way)]
        for way in ("forward", "backward")
    }
    new = old.model_dump() | rates
    its = over(attention=[new])
    assert len(its.attention) == len(H200.attention)
    (curve,) = [c for c in its.attention_curves("fa3") if c.head_dim == 128]
    assert curve.forward[0] == pytest.approx(old.forward[0] / 2)
    assert its.attention_curves("cudnn9") == H200.attention_curves("cudnn9")


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ({"gem": {}}, "mine.yaml: gpus.h200-sxm-141gb: gem: no such section"),
        ({"name": "h100"}, "name: no such section; sections are gemm"),
        ({"gemm": {"bf16": {"efficiency": 2}}}, "gemm.bf16.efficiency: "),
        ({"gemm": 3}, "gemm: "),
        ({"attention": [3]}, "attention.0: "),
        ({"memory": {"efficiency": 0.5}}, "memory.op_latency: "),
    ],
)
def test_a_wrong_section_is_named(sections: dict[str, Any], message: str) -> None:
    with pytest.raises(CatalogError, match=message):
        over(**sections)


ODD = ({"name": "x"}, ["x"], "x", -1, 0, None, 1e400, [])
"""Values that hardly any field can have."""


def fields(block: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths to every field of a block, and to the first entries of its lists."""
    inside = enumerate(block[:1]) if isinstance(block, list | tuple) else ()
    for key, value in block.items() if isinstance(block, dict) else inside:
        yield (*above, key)
        yield from fields(value, (*above, key))


SECTIONS = H200.model_dump(exclude={"name", "base", "transferred", "borrowed"})


@each("path", [p for p in fields(SECTIONS) if len(p) > 1])
def test_an_odd_field_is_refused_or_replaces_its_like(path: tuple[Any, ...]) -> None:
    """No value, and no absence, of a field of any section is more than a complaint."""
    missing = object()
    for odd in (*ODD, missing):
        whole = json.loads(json.dumps({path[0]: SECTIONS[path[0]]}, default=list))
        block = whole
        for key in path[:-1]:
            block = block[key]
        block[path[-1]] = odd
        if odd is missing:
            del block[path[-1]]
        with suppress(CatalogError):
            scale_up = over(**whole).scale_up
            assert scale_up.all_reduce_curve
