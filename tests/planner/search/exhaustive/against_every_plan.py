"""What has to hold between the search of a whole job and all of its plans."""

from collections.abc import Sequence
from itertools import count
from types import SimpleNamespace

import numpy as np
import pytest
from brute_force import Tied, best_plans, fields_of, within_host_memory
from every_fleet import places
from every_mesh import Mesh
from every_plan import Choice, choices, kinds_of
from every_split import candidate_costs, cheapest_split

from planner.cost.meshes import Meshes
from planner.cost.pricing import Pricing
from planner.cost.table.mixed import price_meshes
from planner.errors import BadInputError
from planner.job.expressible import lacking
from planner.job.variants import variants
from planner.planning.optimize import optimize
from planner.search import stop
from planner.search.best_first import search_all
from planner.search.bounds import pool_bounds as pools
from planner.search.incumbents import Found
from planner.search.space.formats import BY_NARROWER
from planner.search.space.menus import BEATEN, BY_CONVEX
from planner.search.space.space import Space, enumerate_space

CP_KIND = Mesh._fields.index("cp_kind")
"""Place of the kind of context parallelism in a mesh. [1]"""


def listed(space: Space) -> list[Choice]:
    """The candidates of a space in the words of :mod:`every_plan`."""
    names = Mesh._fields
    columns = [getattr(space.meshes, name)[space.mesh].tolist() for name in names]
    return [
        Choice(
            Mesh(*row),
            int(space.vpp[at]),
            space.schedule(at),
            tuple(space.recompute[entry] for entry in space.choices(at)),
            space.block(at),
            space.hosting(at),
        )
        for at, row in enumerate(zip(*columns, strict=True))
    ]


def check_space(job: Pricing) -> None:
    """Each candidate is in the space once, and nothing else is.

    But for those that another beats: the same with other recompute, another kind of
    cp, or narrower gradients in another variant. That they are never better is for
    :func:`check_answer` to see.
    """
    its = variants([job])
    check_places(its)
    for variant in its:
        space = enumerate_space(variant)
        found, held = listed(space), admitted(variant)
        kept = set(filter(None, (without_beaten(c, space.recompute) for c in held)))
        assert len(set(found)) == len(found)
        check_kinds(variant, space)
        assert set(found) <= kept
        if not space.removed.get(BY_NARROWER):
            assert set(map(any_kind_of_cp, found)) == set(map(any_kind_of_cp, kept))


def setting_of(variant: Pricing) -> str:
    """All that tells variants apart but the places of their stages."""
    its = (variant.training, variant.comm_dtype, variant.offload, variant.without)
    return str(its)


def check_places(its: Sequence[Pricing]) -> None:
    """Every setting is tried on every pool, in every order and split, and once."""
    tried: dict[str, list[object]] = {}
    for variant in its:
        setting = str(
            (variant.training, variant.comm_dtype, variant.offload, variant.without)
        )
        tried.setdefault(setting, []).append(variant.stage_pools)
    for variant in its:
        setting = str(
            (variant.training, variant.comm_dtype, variant.offload, variant.without)
        )
        expected = [place.stage_pools for place in places(variant)]
        assert len(tried[setting]) == len(expected)
        assert all(hosts in tried[setting] for hosts in expected)


def check_kinds(variant: Pricing, space: Space) -> None:
    """Kinds of recompute that are gone are counted, and no plain one is."""
    lost = set(kinds_of(variant)) - set(space.recompute)
    counted = [space.removed.get(rule, 0) for rule in (BEATEN, BY_CONVEX)]
    assert len(lost) == sum(counted)
    assert not lost & set(variant.framework.limits.recompute)


def admitted(variant: Pricing) -> list[Choice]:
    """Every candidate of a variant that its hosts hold."""
    expected = choices(variant)
    rows = Meshes.from_rows([tuple(choice.mesh) for choice in expected])
    fits = within_host_memory(variant, expected, rows)
    return [choice for choice, held in zip(expected, fits, strict=True) if held]


def any_kind_of_cp(choice: Choice) -> tuple[object, ...]:
    """All of a candidate but its kind of context parallelism."""
    return (choice.mesh[:CP_KIND], choice.mesh[CP_KIND + 1 :], *choice[1:])


def without_beaten(choice: Choice, kinds: Sequence[str]) -> Choice | None:
    """A candidate with the kinds that are left to it; none without any."""
    menu = tuple(kind for kind in choice.menu if kind in kinds)
    if menu == choice.menu:
        return choice
    return choice._replace(menu=menu) if menu else None


def check_answer(job: Pricing) -> None:
    """The best of all plans to the last bit, its bound, and the stated tie order."""
    its = variants([job])
    best = best_plans(its)
    outcomes = search_all(its, top=1)
    bound = min(outcome.bound_s for outcome in outcomes)
    plans = sorted(plan for outcome in outcomes for plan in outcome.ranked)
    if not best:
        assert not plans
        assert bound == float("inf")
        return
    (plan,) = plans
    assert plan.step_s == best[0].step_s == bound
    check_tie(plan, best, [outcome.space for outcome in outcomes])


def check_tie(plan: Found, best: list[Tied], spaces: Sequence[Space]) -> None:
    """Less device memory, then the layout's fields, then the variant's place.

    Of one layout any of its fastest splits may be found, so that a layout loses to
    those alone whose splits all need less memory. Candidates that another beats
    everywhere are none of the space, and do not tie.
    """
    there = [set(listed(space)) for space in spaces]
    hosting = spaces[plan.variant].hosting(plan.candidate)
    kept = [
        (tied, fields_of(choice, spaces[tied.variant].recompute))
        for tied in best
        if (choice := without_beaten(tied.choice, spaces[tied.variant].recompute))
        and choice in there[tied.variant]
    ]
    mine = plan.fields, plan.variant, hosting
    (own,) = (t for t, f in kept if (f, t.variant, t.choice.hosting) == mine)
    assert own.least_bytes <= plan.device_bytes <= own.most_bytes
    for other, fields in kept:
        key = (other.most_bytes, fields, other.variant)
        assert (plan.device_bytes, plan.fields, plan.variant) <= key


def check_hurried(job: Pricing, ticks: int, patch: pytest.MonkeyPatch) -> None:
    """Stopped after so many looks at the clock, the bound holds, and so does the gap.

    The clock moves by one second each time that it is read, so that a job is stopped
    at the same place on every machine.
    """
    its = variants([job])
    best = best_plans(its)
    clock = SimpleNamespace(monotonic=count().__next__)
    with patch.context() as patched:
        patched.setattr(stop, "time", clock)
        outcomes = search_all(its, top=1, time_limit=float(ticks))
    bound = min(outcome.bound_s for outcome in outcomes)
    plans = sorted(plan for outcome in outcomes for plan in outcome.ranked)
    if not best:
        assert not plans
        return
    assert bound <= best[0].step_s
    assert all(plan.step_s >= best[0].step_s for plan in plans)
    if not any(outcome.timed_out for outcome in outcomes):
        assert plans[0].step_s == best[0].step_s
        assert bound == best[0].step_s


def check_whole(job: Pricing) -> None:
    check_space(job)
    check_answer(job)


def check_flow(job: Pricing) -> None:
    """The whole flow: the verifier agrees, and the status is that of all plans."""
    if lacking(job.framework.limits, job.search):
        with pytest.raises(BadInputError, match="cannot express"):
            optimize([job])
        return
    its = variants([job])
    if not any(map(admitted, its)):
        with pytest.raises(BadInputError, match="no legal layout is left"):
            optimize([job])
        return
    best = best_plans(its)
    result = optimize([job], top=2)
    assert result.status == ("optimal" if best else "infeasible")
    if best:
        assert result.plans[0].estimate.step_time_s.value == best[0].step_s
        assert result.objective.gap == 0


def check_bound(job: Pricing) -> None:
    """The first bounds over pools are above no plan of their candidate."""
    for variant in variants([job]):
        found = enumerate_space(variant)
        if not (variant.mixed and len(found)):
            continue
        table = price_meshes(variant, found.meshes, found.recompute)
        both = (pools.pooled_bound(table, found), pools.dealt_to_pools(table, found))
        bounds = np.maximum(*both)
        for at, bound in enumerate(bounds.tolist()):
            costs = candidate_costs(table, found, at)
            best = cheapest_split(costs)
            assert best is None or bound <= best[0] * costs.slowdown / 1e9
