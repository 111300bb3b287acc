"""A rule of the space that removes too much, or too little, is seen in the space."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from against_every_plan import check_space
from axes_of_jobs import limited
from strategies import small_job, with_host_memory
from tiny_models import TINY_MIXTRAL

from planner.cost.pricing import Pricing
from planner.search.space import context_kinds as context
from planner.search.space import listing, schedules, space
from planner.search.space.experts import ExpertDegrees
from planner.search.space.formats import NarrowGradients
from planner.search.space.space import Enumerator
from planner.specs.frameworks.limits import Limits
from planner.specs.search import SearchSpec

Patch = pytest.MonkeyPatch
Break = Callable[[Any], Any]
"""From the true function to the broken one."""
GROUPED: dict[str, object] = {"num_attention_heads": 8, "num_key_value_heads": 2}
MODELS = ({"num_hidden_layers": 3} | GROUPED, TINY_MIXTRAL | {"num_hidden_layers": 4})
NODES = (("h100-pcie-4", 1, 8), ("gh200-1", 6, 24), ("azure-nc48ads-a100-v4", 3, 6))


@cache
def jobs() -> tuple[Pricing, ...]:
    """Jobs in which every rule of the space has something to do."""
    plain = [
        small_job(
            SearchSpec(space=size, offload=offload),
            name=name,
            node=node,
            nodes=nodes,
            sequences=sequences,
            seq_len=384,
            config=model,
        )
        for name in ("megatron", "torchtitan", "accelerate", "deepspeed")
        for size, offload in (("default", True), ("full", None))
        for node, nodes, sequences in NODES
        for model in MODELS
    ]
    full = [job for job in plain if job.search.space == "full"]
    moved = [job for job in plain if job.search.offload]
    ulysses = [limited(job, cp_kinds=("ring", "ulysses")) for job in full[2:4]]
    narrow = [with_host_memory(job, 6e6) for job in moved[::3]]
    seven = small_job(
        SearchSpec(),
        node="gh200-1",
        nodes=7,
        sequences=6,
        seq_len=384,
        config=MODELS[0],
    )
    few = SearchSpec(tp=1, pp=1, micro_batch=1, zero_stage=1)
    wide = small_job(few, nodes=16, seq_len=2048, sequences=128)
    return (wide, seven, *ulysses, *narrow, *plain)


def few() -> tuple[Pricing, ...]:
    """Jobs of the first line, which every mistake below shows in."""
    return (*jobs()[:6], *jobs()[10::5])


def is_caught(among: tuple[Pricing, ...]) -> bool:
    """Whether the space of any of the jobs differs from the list of its plans."""
    for job in among:
        try:
            check_space(job)
        except (AssertionError, ValueError):
            # an illegal layout may not even have a price
            return True
    return False


def test_the_spaces_are_right_unbroken() -> None:
    assert not is_caught(few())


@pytest.mark.slow
def test_all_spaces_are_right_unbroken() -> None:
    assert not is_caught(jobs())


def always(value: Any) -> Break:
    return lambda _: lambda *_args, **_named: value


def without_copies(true: Any) -> Any:
    return lambda *given: (at for at in true(*given) if at[2] == 1)


def but_last(true: Any) -> Any:
    """One choice less wherever there are two or more."""

    def fewer(*args: Any, **named: Any) -> Any:
        found = list(true(*args, **named))
        return found[:-1] if len(found) > 1 else found

    return fewer


def but_first(true: Any) -> Any:
    def fewer(*args: Any, **named: Any) -> Any:
        found = list(true(*args, **named))
        return found[1:] if len(found) > 1 else found

    return fewer


def one_larger(true: Any) -> Any:
    """The largest degree counts as one more, so that its rule acts too early."""

    def legal(self: Any, *degrees: int) -> bool:
        return bool(true(self, *degrees) and true(self, *[d + 1 for d in degrees]))

    return legal


def unless(*values: int) -> Break:
    """A rule that also removes some legal values."""

    def broken(true: Any) -> Any:
        def legal(self: Any, first: int, *others: int) -> bool:
            return bool(true(self, first, *others)) and first not in values

        return legal

    return broken


def last_twice(true: Any) -> Any:
    def more(*args: Any, **named: Any) -> Any:
        found = list(true(*args, **named))
        return [*found, found[-1]] if found else found

    return more


def both_orders(_: Any) -> Any:
    """Both orders everywhere, also where they are one layout."""
    return lambda _self, _pp, _dp, _inner, _experts: (0, 1)


def all_positions(_: Any) -> Any:
    return lambda _job, held, _removed: np.arange(len(held))


def fewer_positions(true: Any) -> Any:
    return lambda job, held, removed: true(job, held, removed)[:-1]


def any_mesh(_: Any) -> Any:
    return lambda _job, meshes, **_: [True] * len(meshes)


def no_mesh(_: Any) -> Any:
    return lambda _job, meshes, **_: [False] * len(meshes)


def any_mesh_at_all(_: Any) -> Any:
    return lambda _job, meshes, _name: meshes.pp > 0


def no_mesh_at_all(_: Any) -> Any:
    return lambda _job, meshes, _name: meshes.pp < 0


MUTATIONS: dict[str, tuple[Any, str, Break]] = {
    "tp not checked": (Enumerator, "_tensor_legal", always(value=True)),
    "tp 4 removed": (Enumerator, "_tensor_legal", unless(4)),
    "cp not checked": (Enumerator, "_context_legal", always(value=True)),
    "cp checked too strictly": (Enumerator, "_context_legal", one_larger),
    "pp not checked": (Enumerator, "_pipeline_legal", always(value=True)),
    "stages need a layer each": (Enumerator, "_pipeline_legal", one_larger),
    "the largest micro-batch lost": (Enumerator, "_micro_batches", but_last),
    "the smallest micro-batch lost": (Enumerator, "_micro_batches", but_first),
    "no choice of sp": (Enumerator, "_sequence_parallel", but_last),
    "sp where tp is 1": (Enumerator, "_sequence_parallel", always([0, 1])),
    "ulysses of any heads": (context, "heads_divide", always(value=True)),
    "the last experts lost": (ExpertDegrees, "_every", but_last),
    "experts not checked": (ExpertDegrees, "_legal", always(value=True)),
    "no expert tensor": (ExpertDegrees, "_tensor", always([1])),
    "one rank order": (Enumerator, "_orders", but_last),
    "one order twice": (Enumerator, "_orders", both_orders),
    "no hybrid shards": (Enumerator, "_sharding", but_last),
    "no second copies": (Enumerator, "_sharding", without_copies),
    "one shard group twice": (Enumerator, "_sharding", last_twice),
    "offload not checked": (Enumerator, "_offload_legal", always(value=True)),
    "activations leave with a pipeline": (
        Enumerator,
        "_activations_alone",
        always(value=False),
    ),
    "a recompute kind lost": (Enumerator, "_recompute_menu", but_last),
    "narrower gradients always win": (
        NarrowGradients,
        "worth",
        lambda _: lambda *_args: [],
    ),
    "a shape lost": (Enumerator, "_shapes", but_last),
    "a fleet that nothing fills": (Enumerator, "_fills", always(value=True)),
    "hosts hold anything": (listing, "within_host_memory", all_positions),
    "a candidate lost at the hosts": (listing, "within_host_memory", fewer_positions),
    "limits not applied": (Enumerator, "_keep", always(value=True)),
    "shards not checked": (Limits, "shards", always(None)),
    "all goes together": (Limits, "clash", always(None)),
    "what goes apart not checked": (Enumerator, "_apart", always(value=False)),
    "chunks of any batch": (schedules, "_interleaves", any_mesh),
    "no chunks": (schedules, "_interleaves", no_mesh),
    "one chunk less": (schedules, "_chunk_counts", but_last),
    "gpipe everywhere": (schedules, "_exists", any_mesh_at_all),
    "gpipe nowhere": (schedules, "_exists", no_mesh_at_all),
    "micro-batches of 9": (
        space,
        "MOST_DEFAULT_MICRO_BATCH",
        lambda most: most * 2,
    ),
    "cp above 64": (space, "MOST_DEFAULT_CONTEXT", lambda most: most * 2),
    "cp up to 32": (space, "MOST_DEFAULT_CONTEXT", lambda most: most // 2),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MUTATIONS)
def test_a_broken_rule_is_caught(name: str, monkeypatch: Patch) -> None:
    place, attribute, breaks = MUTATIONS[name]
    monkeypatch.setattr(place, attribute, breaks(getattr(place, attribute)))
    assert is_caught(few())


def test_every_rule_has_a_mutation() -> None:
    """Each method that can remove a candidate is among those broken above."""
    broken = {attribute for _, attribute, _ in MUTATIONS.values()}
    helpers = {"space", "rows", "_rows", "_axis", "_inner", "_on_host", "_shards"}
    helpers |= {"listing", "fills"}  # the second asks, and removes nothing
    helpers |= {"_hosted_rows"}  # broken in test_pool_mutations
    methods = {name for name in vars(Enumerator) if not name.startswith("__")}
    assert methods - helpers <= broken
