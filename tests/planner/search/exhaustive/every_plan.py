"""Every candidate of a job: its meshes with schedules, chunks and recompute kinds.

The rest of the second statement that :mod:`every_mesh` begins.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from every_fleet import Hosting, hosted
from every_mesh import Mesh, alone, is_full, meshes

from planner.cost.kernels import is_unfused
from planner.cost.memory.recompute_modules import combinations
from planner.cost.pricing import Pricing
from planner.specs.layouts.recompute import block_of

FOLDED = ("zb-v", "dualpipe-v", "dualpipe")
"""Schedules whose two chunks a rank lie in a V. [text]"""
RECIPES = ("moe_act", "layernorm+mla_up_proj+moe_act")
"""Combinations of modules of the default space. [text]"""
EVERY_SCHEDULE = ("1f1b", "interleaved", "gpipe", "zb-h1", *FOLDED)


class Choice(NamedTuple):
    """A mesh with its schedule, its chunks, and the kinds that layers choose from."""

    mesh: Mesh
    vpp: int
    schedule: str
    menu: tuple[str, ...]
    block: int = 0
    """First layers of every virtual stage under the first kind of the menu. [1]"""
    hosting: Hosting = ()


def schedules(job: Pricing, mesh: Mesh) -> Iterator[tuple[str, int]]:
    """Schedules of a mesh, each with its chunks per rank."""
    has, search = job.framework.limits.schedules, job.search
    if search.allows("vpp", 1) and search.allows_text("schedule", "1f1b"):
        yield "1f1b", 1
    named = is_full(job) or search.schedule is not None
    for name in EVERY_SCHEDULE[2:]:
        chunks = 1 + (name in FOLDED)
        there = named and name in has and is_another(job, mesh, name)
        if (
            there
            and search.allows("vpp", chunks)
            and search.allows_text("schedule", name)
        ):
            yield name, chunks
    layers = job.model.layers
    groups = mesh.pp > 1 and mesh.micro_batches % mesh.pp == 0
    if not (groups and "interleaved" in has):
        return
    for vpp in range(2, layers + 3):
        even = is_full(job) or -layers % (vpp * mesh.pp) < mesh.pp
        legal = even and vpp * mesh.pp - 2 <= layers and search.allows("vpp", vpp)
        if legal and search.allows_text("schedule", "interleaved"):
            yield "interleaved", vpp


def is_another(job: Pricing, mesh: Mesh, name: str) -> bool:
    """Where a schedule exists and is not 1F1B under another name."""
    if mesh.pp == 1 or (name == "gpipe" and mesh.micro_batches == 1):
        return False
    if name == "dualpipe":
        if job.mixed:
            return False
        paired = mesh.pp % 2 == mesh.micro_batches % 2 == 0
        return paired and mesh.micro_batches >= 2 * mesh.pp
    if name in FOLDED and 2 * mesh.pp - 2 > job.model.layers:
        return False
    return name != "dualpipe-v" or mesh.micro_batches >= 2 * mesh.pp


def kinds_of(job: Pricing) -> list[str]:
    """Kinds of recompute that framework and user have, dominated ones among them.

    The full space has combinations of modules; the attention core is in one only
    where attention is not fused, or where the user names it. The default space has
    those of published recipes.
    """
    limits, search = job.framework.limits, job.search
    if alone(job):
        return [k for k in ("none",) if search.allows_text("recompute", k)]
    names = [*limits.recompute]
    for combined in combinations(job):
        core = "core_attn" in combined.split("+") and not is_unfused(job)
        wanted = not core if is_full(job) else combined in RECIPES
        wanted = wanted and search.recompute is None
        if combined not in names and (wanted or search.recompute is not None):
            names.append(combined)
    names = [name for name in names if name != "full" or not hides_experts(job)]
    return [name for name in names if search.allows_text("recompute", name)]


def menus(job: Pricing, kinds: Sequence[str], schedule: str) -> list[tuple[str, ...]]:
    """One menu of all kinds where layers choose, else a menu of one for each."""
    limits = job.framework.limits
    if schedule in EVERY_SCHEDULE[3:] and not limits.recomputes_split:
        kinds = [kind for kind in kinds if kind == "none"]
    if limits.recompute_scope == "virtual-stage":
        return [tuple(kinds)] if kinds else []
    return [(kind,) for kind in kinds]


def choices(job: Pricing) -> list[Choice]:
    """Every candidate of a job's space.

    Args:
        job: The job, with what one of its variants offloads and sends. [-]

    Returns:
        All of them, hosts' memory aside. [-]
    """
    kinds = kinds_of(job)
    every = [
        Choice(mesh, vpp, schedule, menu, block, stages)
        for mesh, stages in (laid_out(job) if kinds or blocks(job, 1) else ())
        for schedule, vpp in schedules(job, mesh)
        for menu, block in [
            *((menu, 0) for menu in menus(job, kinds, schedule)),
            *((("full", "none"), size) for size in blocks(job, mesh.pp * vpp)),
        ]
        if not (block and schedule in EVERY_SCHEDULE[3:])
    ]
    return [choice for choice in every if takes_its_switches(job, choice)]


def free_layers(job: Pricing, choice: Choice) -> int:
    """Layers that a stage may hold above the largest of even stages, on one pool.

    One everywhere in the full space. In the default space one where a rank has one
    stage of four layers or more.
    """
    pp, vpp = choice.mesh.pp, choice.vpp
    long = job.model.layers > 3 * pp
    return int(is_full(job) or (pp > 1 and vpp == 1 and long))


def hides_experts(job: Pricing) -> bool:
    """Whether every plan of a variant runs experts' exchanges beside other passes."""
    needs = job.framework.switches.get("ep_overlap")
    undecided = job.without is None or needs is None or needs.full_recompute
    return not undecided and job.profile.ep_overlap


def takes_its_switches(job: Pricing, choice: Choice) -> bool:
    """Whether Megatron hides experts' exchanges just where the variant does.

    The flag wants several ranks for the experts, two micro-batches, chunks in a
    pipeline, and no layer that is recomputed whole; DeepSeek's own stack DualPipe.
    """
    if job.without is None or not job.framework.profile.ep_overlap:
        return True
    mesh, its = choice.mesh, job.framework.switches["ep_overlap"]
    if its.schedules:
        met = choice.schedule == "dualpipe" and mesh.ep > 1
    else:
        alone = mesh.pp == 1 and not job.model.mtp_layers
        chunked = mesh.pp > 1 and choice.vpp > 1 and job.model.mtp_layers < 2
        met = mesh.ep > 1 and mesh.micro_batches > 1 and (alone or chunked)
        met = met and "full" not in choice.menu
    return met == job.profile.ep_overlap


def laid_out(job: Pricing) -> list[tuple[Mesh, Hosting]]:
    """Every mesh, with the stages of each pool where there are several."""
    return hosted(job) if job.mixed else [(mesh, ()) for mesh in meshes(job)]


def blocks(job: Pricing, stages: int) -> list[int]:
    """Quarters of the largest stage in the full space, or those that are listed."""
    limits, words = job.framework.limits, job.search.words("recompute")
    largest = -(-job.model.layers // stages)
    apart = job.mixed or alone(job)
    if not limits.recompute_blocks or limits.recompute_scope != "plan" or apart:
        return []
    listed = {block_of(word) for word in words} - {0}
    quarters = {-(-largest * step // 4) for step in (1, 2, 3)}
    found = quarters if is_full(job) and not words else listed
    return sorted(size for size in found if size < largest)
