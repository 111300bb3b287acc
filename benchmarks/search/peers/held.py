"""The part of Calculon's space that our declared space contains."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from benchmarks.search.cases import BESIDE_CALCULON, case
from benchmarks.search.peers.calculon import Calculon, Image, offloads
from planner.cost.meshes import PP_INSIDE
from planner.cost.pricing import Pricing
from planner.job.resolve import resolve
from planner.job.variants import variants
from planner.search.space.space import Space, enumerate_space
from planner.specs.layouts.offload import CATEGORIES, word_for
from planner.specs.reading.read import read_spec

SCHEDULES = ("1f1b", "interleaved")
"""Our schedules for executions of Calculon without and with interleaving."""
ONE_EACH = 1
"""Micro-batch where the space is counted with a single size. [sequence]"""


@dataclass(frozen=True)
class Held:
    """Executions of one kind, and how many of them our space contains."""

    executions: int
    accepted: int
    """Executions that Calculon prices, memory aside. [1]"""
    contained: int
    contained_accepted: int
    layouts: int
    """Different layouts of ours among the contained executions. [1]"""


def our_layouts(*assignments: str) -> dict[str, set[Image]]:
    """Our declared space of the job, in the form of Calculon's executions.

    Limits on axes that Calculon does not have leave out layouts that are no execution
    of Calculon. The full space holds those layouts too.

    Args:
        assignments: More limits, as ``--set`` takes them. [text]

    Returns:
        Layouts by the categories that are offloaded whole. [-]
    """
    one = case(BESIDE_CALCULON, "Calculon's axes")
    spec = read_spec(one.path, (*one.assignments, *assignments))
    found: dict[str, set[Image]] = {}
    resolved = resolve(spec, file=one.path.name, base=one.path.parent)
    # Every layout that can run counts, even if launch files cannot state it.
    for workload in variants([job.unwritten() for job in resolved]):
        word = _whole(workload)
        if word is not None:
            found.setdefault(word, set()).update(_images(enumerate_space(workload)))
    return found


def _whole(pricing: Pricing) -> str | None:
    """Categories that a variant offloads, or None where one stays in part on the GPU.

    A single layer's part may stay.
    """
    whole = 1.0 - 1.0 / pricing.model.layers
    shares = {name: getattr(pricing.offload, name) for name in CATEGORIES}
    if any(0.0 < share < whole for share in shares.values()):
        return None
    return word_for(name for name, share in shares.items() if share)


def _images(space: Space) -> Iterator[Image]:
    """Candidates whose states, if shared, are shared by all replicas."""
    m = space.meshes
    plain = (m.cp == 1) & (m.ep == 1) & (m.dp_shard == m.dp)
    for row in np.flatnonzero(plain[space.mesh]).tolist():
        at = int(space.mesh[row])
        if space.schedule(row) in SCHEDULES:
            for kind in space.choices(row):
                yield Image(
                    tp=int(m.tp[at]),
                    sp=bool(m.sp[at]),
                    pp=int(m.pp[at]),
                    dp=int(m.dp[at]),
                    zero=int(m.zero[at]),
                    micro_batch=int(m.micro_batch[at]),
                    pp_inside=bool(m.order[at] == PP_INSIDE),
                    vpp=int(space.vpp[row]),
                    recompute=space.recompute[kind],
                )


def held(
    theirs: Calculon, ours: dict[str, set[Image]], *, offload: bool, all_sizes: bool
) -> dict[str, Held]:
    """Hold every execution against our space.

    Args:
        theirs: Calculon's space.
        ours: Our layouts by offloaded categories.
        offload: True if processors have a second memory.
        all_sizes: True for every micro-batch size, False for ``ONE_EACH`` alone.

    Returns:
        Counts by offloaded categories. [-]
    """
    counts = {name: Counter[str]() for name in Held.__dataclass_fields__}
    images: dict[str, set[Image]] = {}
    for degrees in theirs.degrees:
        if not all_sizes and degrees.micro_batch != ONE_EACH:
            continue
        for choice, many in theirs.grouped(degrees, offload=offload):
            word, image = offloads(choice), theirs.image(degrees, choice)
            inside = image in ours.get(word, ())
            accepted = many * theirs.accepts(degrees, choice)
            counts["executions"][word] += many
            counts["accepted"][word] += accepted
            counts["contained"][word] += many * inside
            counts["contained_accepted"][word] += accepted * inside
            images.setdefault(word, set()).update([image] * inside)
    counts["layouts"] = Counter({word: len(each) for word, each in images.items()})
    return {
        word: Held(**{name: counts[name][word] for name in counts})
        for word in counts["executions"]
    }
