"""Calculon's space: counted to its own numbers, and contained in ours."""

from functools import cache

import pytest

from benchmarks.search.peers.calculon import Calculon, Degrees, offloads
from benchmarks.search.peers.held import Held, held, our_layouts


@cache
def calculon() -> Calculon:
    return Calculon()


@cache
def one_size() -> dict[str, Held]:
    """Every execution with a micro-batch of one, held against our space."""
    ours = our_layouts("search.micro_batch=1")
    return held(calculon(), ours, offload=True, all_sizes=False)


@pytest.mark.parametrize("offload", [pytest.param(True, marks=pytest.mark.slow), False])
def test_the_space_has_as_many_executions_as_calculon_counts(*, offload: bool) -> None:
    """1,096,832 with its second memory and 158,752 without, one size each."""
    counted = calculon().told["counted"][
        "with_offload" if offload else "without_offload"
    ]
    assert counted == (1_096_832 if offload else 158_752)
    assert calculon().count(offload=offload, micro_batch=1) == counted


@pytest.mark.slow
def test_our_space_contains_every_execution_that_stays_on_the_gpus() -> None:
    """All of them, those too that Calculon itself refuses for its networks."""
    found = one_size()["none"]
    assert found.executions == found.contained == 158_752
    assert 0 < found.accepted < found.executions
    assert found.layouts > 1000


@pytest.mark.slow
def test_what_is_offloaded_is_contained_as_far_as_the_framework_can() -> None:
    """States where they are sharded; activations without pipeline and recompute."""
    found = one_size()
    for word in ("optimizer", "activations", "optimizer+activations"):
        assert 0 < found[word].contained < found[word].executions
    missing = [one for word, one in found.items() if "parameters" in word]
    assert [one.contained for one in missing] == [0] * 4
    assert sum(one.executions for one in found.values()) == 1_096_832


def test_an_axis_is_a_layout_or_software() -> None:
    for axis in calculon().axes.values():
        assert "layout" in axis or "software" in axis
        assert "missing" not in axis or "layout" in axis


def test_groups_differ_in_the_software_alone() -> None:
    degrees = Degrees(8, 8, 8, 2, 1)
    choices = calculon().choices(degrees, offload=True)
    groups = calculon().grouped(degrees, offload=True)
    assert sum(many for _, many in groups) == len(choices)
    images = {(calculon().image(degrees, c), offloads(c)) for c in choices}
    assert images == {(calculon().image(degrees, c), offloads(c)) for c, _ in groups}


def test_a_network_inside_the_node_is_small_and_filled() -> None:
    """Groups of 8 and its divisors, over all axes that it carries."""
    choice = calculon().choices(Degrees(8, 8, 8, 2, 1), offload=False)[0]
    inside = choice | {"tensor_par_net": 0, "pipeline_par_net": 1, "data_par_net": 1}
    both = inside | {"data_par_net": 0}
    accepted = calculon().accepts
    assert accepted(Degrees(8, 8, 8, 2, 1), inside)
    assert not accepted(Degrees(16, 8, 4, 2, 1), inside)
    assert not accepted(Degrees(8, 8, 8, 2, 1), both)
    assert accepted(Degrees(2, 64, 4, 1, 1), both)
