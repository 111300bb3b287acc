"""The part of the page that stands beside Calculon."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from benchmarks.search.cases import BESIDE_CALCULON
from benchmarks.search.peers.calculon import Calculon
from benchmarks.search.peers.held import Held, held, our_layouts
from benchmarks.search.process import Row
from benchmarks.search.shown.tables import seconds, share, table

CORES = 2
"""Cores over which Calculon's rate is spread. [1]"""
OFFLOAD_AXES = {
    "parameters": "weight_offload",
    "activations": "activations_offload",
    "optimizer": "optimizer_offload",
}


def calculon_section(rows: Sequence[Row]) -> str:
    """Calculon's space, the part that our space contains, and times of both searches.

    Args:
        rows: Measurements of cases.

    Returns:
        Markdown. [text]
    """
    theirs = Calculon()
    one_each, every = _found()
    return "\n\n".join(
        [
            _axes(theirs),
            _contained(theirs, one_each),
            f"With every micro-batch size instead of one, the space without offload "
            f"has {every.executions:,} executions; {every.contained:,} are layouts of "
            f"our space, {every.layouts:,} different ones. Those left interleave over "
            "micro-batches that do not come in whole groups of the pipeline's ranks.",
            f"Calculon's times below are its executions over {theirs.told['rate']} a "
            f"second and core: {theirs.told['rate_source']}.",
            _times(theirs, rows),
        ]
    )


@cache
def _found() -> tuple[dict[str, Held], Held]:
    """Executions with one micro-batch size; and with all sizes, without offload."""
    theirs, ours = Calculon(), our_layouts()
    one_each = held(theirs, ours, offload=True, all_sizes=False)
    return one_each, held(theirs, ours, offload=False, all_sizes=True)["none"]


def _axes(theirs: Calculon) -> str:
    """Table of every axis with its counterpart here."""
    cells = [(name, _values(axis), _here(axis)) for name, axis in theirs.axes.items()]
    degrees = ("tp, pp, dp, interleaving, micro-batch", "divisors", "layout: the same")
    return table(("axis of Calculon", "values", "here"), [degrees, *cells])


def _values(axis: Mapping[str, Any]) -> str:
    return ", ".join(str(value).lower() for value in axis["values"])


def _here(axis: Mapping[str, Any]) -> str:
    parts = (
        f"{name}: {axis[key]}"
        for key, name in (
            ("layout", "layout"),
            ("software", "software"),
            ("missing", "not all"),
        )
        if key in axis
    )
    return "; ".join(parts)


def _contained(theirs: Calculon, found: Mapping[str, Held]) -> str:
    """Table of executions by offload, with the number that are layouts here."""
    head = (
        "on the host", "executions", "priced by Calculon", "in our space",
        "layouts of ours", "why not all",
    )  # fmt: skip
    words = sorted(found, key=lambda word: (word != "none", word.count("+"), word))
    rows = [(word, *_held(found[word]), _why(theirs, word, found)) for word in words]
    total = [sum(column) for column in zip(*map(_numbers, found.values()), strict=True)]
    return table(head, [*rows, ("all", *(f"{n:,}" for n in total), "")])


def _numbers(one: Held) -> tuple[int, ...]:
    return one.executions, one.accepted, one.contained, one.layouts


def _held(one: Held) -> tuple[str, ...]:
    return tuple(f"{number:,}" for number in _numbers(one))


def _why(theirs: Calculon, word: str, found: Mapping[str, Held]) -> str:
    """Reason that executions of a kind are not in our space."""
    if found[word].contained == found[word].executions:
        return ""
    axes = (theirs.axes[OFFLOAD_AXES[part]] for part in word.split("+"))
    return "; ".join(axis["missing"] for axis in axes)


def _times(theirs: Calculon, rows: Sequence[Row]) -> str:
    """Table of the time of each search."""
    rate, counted = theirs.told["rate"] * CORES, theirs.told["counted"]
    told = [
        _their_time("Calculon, no offload", counted["without_offload"], rate),
        _their_time("Calculon, offload", counted["with_offload"], rate),
    ]
    ours = [row for row in rows if row["job"] == BESIDE_CALCULON]
    told += [_our_time(row) for row in ours if "candidates" in row]
    head = ("search", "executions or candidates", "time", "gap at its end")
    return table(head, told)


def _their_time(name: str, executions: int, rate: float) -> tuple[str, ...]:
    minutes = executions / rate / 60
    return name, f"{executions:,}", f"{minutes:.1f} min on {CORES} cores", "none told"


def _our_time(row: Row) -> tuple[str, ...]:
    proven = row["proof_s"]
    time = seconds(row["process_s"] if proven is None else proven)
    name = f"ours, {row['space']} space"
    what = "to the time limit" if proven is None else "to the proof"
    return name, f"{row['candidates']:,}", f"{time} {what}", share(row["gap"])
