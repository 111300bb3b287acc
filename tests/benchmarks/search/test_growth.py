"""How the search's work grows, counted and not timed."""

import tracemalloc

import pytest
from strategies import small_job

from benchmarks.search.growth import AXES, GPUS, LAYERS, cases, exponent, point
from planner.cost.workload import Workload
from planner.job.resolve import resolve
from planner.search.incumbents import Incumbents
from planner.search.variant import BestFirst
from planner.specs.reading.read import read_spec
from planner.specs.search import SearchSpec

NODES = (2, 8, 32)
"""Nodes of eight GPUs: 16 to 256 GPUs. [1]"""
DEPTHS = (6, 24, 96)
"""Layers of a job on 64 GPUs. [1]"""
PROPORTIONAL = 1.0
"""Power of something that doubles with what it is plotted against. [1]"""


def work(nodes: int, layers: int, space: str) -> tuple[int, int]:
    """Candidates that are priced, and the most bytes held meanwhile."""
    job = small_job(
        SearchSpec(space=space),
        nodes=nodes,
        sequences=8 * nodes,
        config={"num_hidden_layers": layers},
    )
    tracemalloc.start()
    try:
        priced = BestFirst(job, Incumbents(top=1))
        return sum(priced.declared.values()), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def powers(axis: tuple[int, ...], counted: list[tuple[int, int]]) -> list[float]:
    """Fitted powers of candidates and of bytes."""
    columns = zip(*counted, strict=True)
    fits = [exponent(list(zip(axis, c, strict=True))) for c in columns]
    return [fit for fit in fits if fit is not None]


@pytest.mark.slow
@pytest.mark.parametrize("space", ["default", "full"])
def test_work_grows_less_than_the_gpus(space: str) -> None:
    """Four doublings: nothing is quadratic, nor even proportional."""
    work(NODES[0], 6, space)  # what is loaded once is no work of a job
    counted = [work(nodes, 6, space) for nodes in NODES]
    assert counted[0][0] > 1000
    assert 0 < max(powers(NODES, counted)) < PROPORTIONAL


@pytest.mark.slow
def test_work_grows_less_than_the_layers() -> None:
    work(8, DEPTHS[0], "default")
    counted = [work(8, layers, "default") for layers in DEPTHS]
    assert max(powers(DEPTHS, counted)) < PROPORTIONAL


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0, 2.0])
def test_the_fit_finds_the_power(power: float) -> None:
    points = [(x, 3.0 * x**power) for x in (512, 1024, 131_072)]
    assert exponent(points) == pytest.approx(power)


def test_one_point_has_no_power() -> None:
    assert exponent([(512, 1.0)]) is None


def job_of(axis: str, at: int) -> Workload:
    _, case = cases(AXES[axis])[at]
    spec = read_spec(case.path, case.assignments)
    (workload,) = resolve(spec, file=case.path.name, base=case.path.parent)
    return workload


def test_gpus_and_their_batch_grow_together() -> None:
    for at, gpus in enumerate(GPUS.values):
        workload = job_of("GPUs", at)
        assert (workload.gpus, workload.sequences) == (gpus, gpus // 8)
    assert (GPUS.values[0], GPUS.values[-1]) == (512, 131_072)


def test_layers_grow_alone() -> None:
    found = [job_of("layers", at) for at in range(len(LAYERS.values))]
    assert tuple(each.model.layers for each in found) == LAYERS.values
    assert {(each.gpus, each.sequences) for each in found} == {(1024, 512)}


def test_a_point_leaves_out_what_modules_take_to_load() -> None:
    row = {
        "phases_s": {"import": 1.0},
        "first_plan_s": 3.0,
        "proof_s": None,
        "process_s": 5.0,
        "series": [[1.0, 2.0, 2.0]],
    }
    kept = point(GPUS, 512, row)
    assert (kept["along"], kept["value"]) == ("GPUs", 512)
    assert (kept["first_plan_s"], kept["search_s"], kept["proof_s"]) == (2.0, 4.0, None)
    assert "series" not in kept
