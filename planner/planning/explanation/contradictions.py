"""Limits that leave no legal layout: which of them clash, and what goes together."""

from collections.abc import Iterator, Sequence
from math import lcm, log

import numpy as np

from planner.errors import BadInputError
from planner.frameworks import FRAMEWORKS
from planner.job.case import Case
from planner.job.expressible import able, lacking
from planner.models.layers.blocks import LayerKind, Mlp
from planner.planning.explanation.ask import is_legal, variants_of
from planner.planning.explanation.conflict import legal_conflict
from planner.planning.explanation.limits import GPUS, other_sizes, widened
from planner.planning.reasons import gpus_words
from planner.search.emptiness import thin
from planner.search.space.space import Space, enumerate_space
from planner.specs.answer.explanation import Contradiction, Limit
from planner.specs.layouts.axes import AXIS, NUMBERS, WORDS
from planner.specs.layouts.layout import Layout
from planner.specs.search import IntLimit, Span, limit_words, listed
from planner.verify.writable import writer_breaches

SHOWN = 3
"""Values of an axis that are named as the nearest. [1]"""


def contradiction(case: Case) -> Contradiction:
    """Say which limits of a job cannot hold together, and what is near that can.

    The limits are a minimal set; where the search block clashes with the model
    alone, the model's own numbers are named, too. The nearest values of a limit are
    legal with everything else as it is.

    Returns:
        The limits, a sentence, the nearest values, and what removed the last layouts.
    """
    conflict = legal_conflict(case)
    clash = _clash(case, conflict)
    cannot = "cannot hold together" if len(clash) > 1 else "cannot hold here"
    nearest = tuple(filter(None, (_nearest(case, limit) for limit in conflict)))
    return Contradiction(
        limits=conflict,
        text=f"{' and '.join(clash)} {cannot}: no layout is legal",
        nearest=nearest,
        last=_last(case),
    )


def as_error(found: Contradiction, file: str) -> BadInputError:
    """A contradiction as the error that a command leaves with."""
    near = f"; what would go: {', or '.join(found.nearest)}" if found.nearest else ""
    fields = ", ".join(limit.field for limit in found.limits)
    return BadInputError(
        f"{found.text}{near}; {found.last}", file=file, field=fields or None
    )


def _clash(case: Case, conflict: Sequence[Limit]) -> list[str]:
    """The limits that clash, with facts of the model or the framework behind it."""
    words = [limit.limit for limit in conflict]
    axes = [limit.field.removeprefix("search.") for limit in conflict]
    given = all(limit.field.startswith("search.") for limit in conflict)
    if given:
        words += _model(case, axes)
    if any(limit.field == "framework" for limit in conflict):
        words[-1] += _framework(case, axes)
    return words or ["this model on this cluster"]


def _framework(case: Case, axes: Sequence[str]) -> str:
    """Features that the framework lacks, and frameworks that have them."""
    search, (workload, *_) = case.spec.search, case.workloads
    lacks = lacking(workload.framework.limits, search)
    said = [
        f"{words}; frameworks that can: {', '.join(able(axis, search)) or 'none'}"
        for axis, words in lacks.items()
        if axis in axes
    ]
    return f" ({'; '.join(said)})" if said else ""


def _model(case: Case, axes: Sequence[str]) -> list[str]:
    """The numbers of the model that the degrees are bound by."""
    wanted = dict.fromkeys(
        fact for axis in axes if axis in AXIS for fact in AXIS[axis].facts
    )
    model, kinds = case.workloads[0].model, case.workloads[0].kinds
    said = {
        "heads": lambda: sorted({w for kind in kinds for w in _heads(kind)}),
        "widths": lambda: sorted({_width(kind) for kind in kinds}),
        "layers": lambda: [f"{model.layers} layers"],
        "experts": lambda: sorted({_experts(kind) for kind in kinds}),
    }
    facts = [word for fact in wanted for word in said[fact]()]
    return [f"a model of {', '.join(facts)}"] if facts else []


def _heads(kind: LayerKind) -> Iterator[str]:
    groups = getattr(kind.attention, "kv_heads", kind.attention.heads)
    yield f"{kind.attention.heads} heads"
    if groups != kind.attention.heads:
        yield f"{groups} KV heads"


def _width(kind: LayerKind) -> str:
    dense = kind.ffn if isinstance(kind.ffn, Mlp) else kind.ffn.shared
    return f"inner width {dense.ffn:,}"


def _experts(kind: LayerKind) -> str:
    ffn = kind.ffn
    if isinstance(ffn, Mlp):
        return "dense layers"
    return f"{ffn.experts} experts of inner width {ffn.ffn:,}"


def _nearest(case: Case, limit: Limit) -> str:
    """Nearest legal values in place of one limit, all else as it is; maybe empty."""
    axis = limit.field.removeprefix("search.")
    kind = AXIS.get(axis)
    if kind in NUMBERS:
        return _degrees(case, axis)
    if kind in WORDS:
        known = dict.fromkeys(
            word for f in FRAMEWORKS for word in getattr(f.limits, kind.limit)
        )
        return _words(case, axis, known)
    if limit.field == GPUS:
        near = next((c for c in other_sizes(case) if is_legal(c)), None)
        return "" if near is None else gpus_words(near.workloads[0].gpus)
    if limit.field == "framework":
        return _frameworks(case)
    if limit.field in ("training.global_batch", "training.seq_len"):
        return _divisible(case, limit.field)
    return _other(case, limit.field)


def _other(case: Case, field: str) -> str:
    """The full space, or the other value of ``sp``, where that is legal."""
    sp = str(not case.spec.search.sp).lower()
    known = {
        "search.space": ("full", "the full space"),
        "search.sp": (sp, f"sp = {sp}"),
    }
    if field not in known:
        return ""
    value, words = known[field]
    there = widened(case, (f"{field}={value}",))
    return words if there is not None and is_legal(there) else ""


def _degrees(case: Case, axis: str) -> str:
    """The nearest degrees that are legal with everything else as it is."""
    free = widened(case, (f"search.{axis}=null",))
    every = () if free is None else variants_of(free)
    spaces = [enumerate_space(thin(variant, free=axis)) for variant in every]
    found = {value for space in spaces for value in _values(space, axis)}
    wanted = _ends(getattr(case.spec.search, axis))

    def distance(value: int) -> float:
        return min(abs(log((value + 1) / (each + 1))) for each in wanted)

    near = sorted(sorted(found, key=distance)[:SHOWN])
    return limit_words(axis, near) if near else ""


def _ends(limit: IntLimit) -> tuple[int, ...]:
    """The values of a limit, or the ends of a range. [1]."""
    if isinstance(limit, Span):
        return (limit.min,) if limit.max is None else (limit.min, limit.max)
    return listed(limit)


def _values(space: Space, axis: str) -> list[int]:
    """Degrees of an axis that a space has. [1]."""
    if axis == "vpp":
        column = space.vpp
    else:
        column = getattr(space.meshes, {"zero_stage": "zero"}.get(axis, axis))
        column = column[space.mesh]
    return [int(value) for value in np.unique(column)]


def _words(case: Case, axis: str, known: dict[str, None]) -> str:
    legal = []
    for word in known:
        there = widened(case, (f"search.{axis}={word}",))
        if there is not None and is_legal(there):
            legal.append(word)
    return limit_words(axis, legal) if legal else ""


def _frameworks(case: Case) -> str:
    legal = []
    for framework in FRAMEWORKS:
        there = widened(case, (f"framework={framework.name}", "stack={}"))
        if there is not None and is_legal(there):
            legal.append(framework.name)
    return f"framework {' or '.join(legal)}" if legal else ""


def _divisible(case: Case, field: str) -> str:
    """The nearest batch or length below and above that is legal."""
    training, search = case.workloads[0].training, case.spec.search
    batch = field == "training.global_batch"
    own = training.sequences if batch else training.seq_len
    axes = ("dp", "micro_batch") if batch else ("tp", "cp")
    whole = lcm(*(v for axis in axes for v in listed(getattr(search, axis))))
    whole *= 1 if batch else 2
    near = [own // whole * whole, -(-own // whole) * whole]
    alone = lcm(whole, case.workloads[0].gpus)
    near += [own // alone * alone, -(-own // alone) * alone]
    legal = [
        value
        for value in dict.fromkeys(near)
        if value > 0
        and (there := widened(case, (f"{field}={value}",))) is not None
        and is_legal(there)
    ]
    words = " or ".join(f"{value:,}" for value in sorted(legal[:2]))
    unit = "a global batch of {} sequences" if batch else "sequences of {} tokens"
    return unit.format(words) if words else ""


def _last(case: Case) -> str:
    """The limit that removed the last layouts, and the number of those layouts."""
    given = case.spec.search.limits()
    without = [f"search.{axis}=null" for axis in given]
    for axis in given:
        there = widened(case, tuple(without))
        without.remove(f"search.{axis}=null")
        after = widened(case, tuple(without))
        if there is None or after is None or is_legal(after):
            continue
        left = sum(len(enumerate_space(variant)) for variant in variants_of(there))
        if left:
            words = limit_words(axis, given[axis])
            return f"the last {left:,} legal layouts were removed by {words}"
        break
    for workload in case.workloads:
        if workload.gpus == 1 and (wordless := [*writer_breaches(workload, Layout())]):
            return wordless[0].sentence
    return "no layout is legal even without the limits of the search block"
