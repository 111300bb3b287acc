"""Collectives against measured curves: 427 points, 8 to 8192 GPUs, 1 MiB to 16 GiB."""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from strategies import small_job
from whole_fleet import groups_on

from planner.cost.meshes import Floats, Groups
from planner.cost.network.collectives import (
    Fabric,
    all_gather_time,
    all_reduce_time,
    all_to_all_time,
    fabric,
)
from planner.specs.search import SearchSpec

CURVES: list[dict[str, Any]] = yaml.safe_load(
    (Path(__file__).parent / "collective_curves.yaml").read_text()
)["curves"]
PRICED = {"all_reduce": (all_reduce_time, 2), "all_gather": (all_gather_time, 1)}
"""Collective to its price, and the passes over the ring of its bus bandwidth."""
CALIBRATES = {1}
"""Nodes of the curves that are data of the model itself."""


def group_of(curve: dict[str, Any]) -> tuple[Fabric, Groups]:
    workload = small_job(SearchSpec(), node=curve["node"], nodes=curve["nodes"])
    whole = np.array([curve["gpus"]], dtype=np.int64)
    return fabric(workload), groups_on(workload.topology, whole, np.ones_like(whole))


@cache
def errors(index: int) -> tuple[Floats, Floats]:
    """Messages [MiB] of a curve, and predicted over measured time less 1."""
    curve = CURVES[index]
    links, group = group_of(curve)
    price, passes = PRICED[curve["collective"]]
    mebi, rate = np.array(curve["points"], dtype=np.float64).T
    message, n = mebi * 2**20, curve["gpus"]
    measured = passes * (n - 1) / n * message / (rate * 1e9)
    times = [price(links, np.array([size]), group)[0] for size in message]
    return mebi, np.array(times) / measured - 1


def pooled(indices: list[int]) -> Floats:
    return np.concatenate([errors(i)[1] for i in indices])


def test_half_the_points_between_nodes_are_within_eight_percent() -> None:
    between = [i for i, c in enumerate(CURVES) if c["nodes"] not in CALIBRATES]
    off = pooled(between)
    assert len(off) > 350
    assert np.median(abs(off)) < 0.08
    assert abs(np.median(off)) < 0.06
    assert np.quantile(abs(off), 0.9) < 0.3


@pytest.mark.parametrize(
    ("fewest", "most", "bar"),
    [(8, 8, 0.02), (16, 16, 0.15), (17, 99, 0.1), (100, 999, 0.08), (1000, 9000, 0.12)],
)
def test_no_size_of_group_is_off_by_much(fewest: int, most: int, bar: float) -> None:
    chosen = [i for i, c in enumerate(CURVES) if fewest <= c["gpus"] <= most]
    assert np.median(abs(pooled(chosen))) < bar


@pytest.mark.parametrize(
    ("smallest", "largest", "bar"),
    [(1, 8, 0.15), (8, 64, 0.13), (64, 512, 0.11), (512, 20000, 0.06)],
)
def test_no_size_of_message_is_off_by_much(
    smallest: int, largest: int, bar: float
) -> None:
    every = [errors(i) for i in range(len(CURVES))]
    kept = [off[(mebi >= smallest) & (mebi < largest)] for mebi, off in every]
    assert np.median(abs(np.concatenate(kept))) < bar


@pytest.mark.parametrize("index", range(len(CURVES)))
def test_the_largest_message_is_close(index: int) -> None:
    """All but A3 High, whose two sources differ by 40 %, and 20 racks of GB200."""
    curve = CURVES[index]
    loose = "a3high" in curve["name"] or curve["nodes"] == 360
    assert abs(errors(index)[1][-1]) < (0.6 if loose else 0.1)


@pytest.mark.parametrize(
    ("node", "nodes", "gpus", "measured"),
    [
        ("dgx-h100", 1, 8, 320e9),
        ("dgx-a100-80gb", 1, 8, 210e9),
        ("dgx-h100", 4, 32, 48e9),
        ("dgx-a100-80gb", 4, 32, 24e9),
        ("gb200-nvl72", 18, 36, 640e9),
    ],
)
def test_an_all_to_all_reaches_its_measured_rate(
    node: str, nodes: int, gpus: int, measured: float
) -> None:
    """Bus bandwidths of NVIDIA GTC25 S72583, slide 13."""
    links, group = group_of({"node": node, "nodes": nodes, "gpus": gpus})
    sent = 2.0**32
    time = float(all_to_all_time(links, np.array([sent]), group)[0])
    assert (gpus - 1) / gpus * sent / time == pytest.approx(measured, rel=0.03)
