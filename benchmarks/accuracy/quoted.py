"""Figures that other pages quote: ``python -m benchmarks.accuracy.quoted``.

Sentences of ``quoted.yaml`` name the figures of each page. The figures come from
``results.json``, ``results.csv``, this folder's README and the ledger of first contact.
The command writes them into the pages; ``python -m benchmarks.accuracy`` does so, too.
"""

import csv
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import Any

import yaml

from benchmarks.accuracy import ledger
from benchmarks.accuracy.contact_report import RAN, share
from benchmarks.accuracy.intervals import by_source, coverage, left_out

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
BUSY = "leave-one-source-out, over sweeps of steps that no host decides"
"""Name of a row of the report's table of rankings. [text]"""
FIGURE = r"(none|[-+]?\d(?:[\d,.]*\d)?(?:\s%)?)"
"""Pattern of a figure on a page."""
Figures = Mapping[str, str]


def figures() -> dict[str, str]:
    """Every figure that a page quotes.

    Returns:
        Name to figure as it is written. [text]
    """
    results = json.loads((HERE / "results.json").read_text())
    named = [*_contact(), *_held(), *_rows(), *_tuned(results), *_busy()]
    return dict(named)


def sentences() -> dict[str, list[str]]:
    """Sentences that quote figures.

    Returns:
        Page to its sentences, with the names of figures in braces. [text]
    """
    found: dict[str, list[str]] = yaml.safe_load((HERE / "quoted.yaml").read_text())
    return found


def places(text: str, sentence: str) -> Iterator[re.Match[str]]:
    """Places where a page has a sentence, whatever its figures and line breaks.

    Args:
        text: The page. [text]
        sentence: Words, and names of figures in braces. [text]

    Yields:
        Matches, with a group for each figure.
    """
    parts = re.split(r"\{[^}]+\}", sentence)
    words = [r"\s+".join(map(re.escape, re.split(r"\s+", part))) for part in parts]
    yield from re.finditer(FIGURE.join(words), text)


def quoted(text: str, sentence: str, known: Figures) -> str:
    """Put the figures of a sentence into a page.

    Args:
        text: The page. [text]
        sentence: Words, and names of figures in braces. [text]
        known: Name to figure. [text]

    Returns:
        The page.

    Raises:
        ValueError: The page does not have the sentence once.
    """
    found = list(places(text, sentence))
    if len(found) != 1:
        raise ValueError(f"{len(found)} times on the page: {sentence}")
    (match,) = found
    names = re.findall(r"\{([^}]+)\}", sentence)
    for at in range(len(names), 0, -1):
        start, end = match.span(at)
        if " ".join(text[start:end].split()) != known[names[at - 1]]:
            text = text[:start] + known[names[at - 1]] + text[end:]
    return text


def page(name: str, known: Figures) -> str:
    """A page with the figures of today.

    Args:
        name: Path of the page in the repository. [text]
        known: Name to figure. [text]

    Returns:
        Markdown. [text]
    """
    text = (ROOT / name).read_text()
    for sentence in sentences()[name]:
        text = quoted(text, sentence, known)
    return text


def write() -> None:
    """Write the figures of today into every page that quotes some."""
    known = figures()
    for name in sentences():
        (ROOT / name).write_text(page(name, known))


def _contact() -> Iterator[tuple[str, str]]:
    """Errors and verdicts of the newest version of the ledger."""
    version = ledger.versions()[-1]
    for name, its in (
        ("time", ledger.step_times(version)),
        ("memory", ledger.memory_peaks(version)),
    ):
        yield f"contact.{name}.runs", f"{its.values:,}"
        yield f"contact.{name}.sources", f"{its.sources:,}"
        yield f"contact.{name}.error", share(its.error)
        yield f"contact.{name}.inside", share(its.covered)
    ran = ledger.verdicts(version)[RAN]
    yield "contact.ran", f"{ran.total():,}"
    yield "contact.oom", f"{ran['oom']:,}"


def _held() -> Iterator[tuple[str, str]]:
    """Rows of the ledger inside the bands that other publications give."""
    for name, met in (
        ("time", ledger.met_times()),
        ("memory", ledger.met_memories()),
    ):
        held = left_out(met)
        over_rows, over_sources = coverage(held)
        yield f"held.{name}.runs", f"{len(held):,}"
        yield f"held.{name}.sources", f"{len(by_source(held)):,}"
        yield f"held.{name}.inside", share(over_rows)
        yield f"held.{name}.mean", share(over_sources)
        yield f"held.{name}.half", share(median(one.half_width for one in held))


def _rows() -> Iterator[tuple[str, str]]:
    with (HERE / "results.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    yield "rows.all", f"{len(rows):,}"
    yield "rows.sources", f"{len({row['source'] for row in rows}):,}"


def _tuned(results: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Figures of ``results.json``."""
    source = results["summaries"]["without_source"]
    for name, its in (
        ("campaign", results["several_campaigns"]["macro"]["step_time"]),
        ("source", source["macro"]["step_time"]),
        ("memory", results["summaries"]["in_sample"]["macro"]["memory"]),
    ):
        for figure in ("median", "p90", "bias"):
            yield f"{name}.{figure}", share(its[figure])
    yield "tuned.runs", f"{source['step_time']['n']:,}"
    yield from _verdicts(source["oom"])
    ranks = source["ranking"]
    yield "sweeps.all", f"{ranks['groups']:,}"
    yield "sweeps.tau", f"{ranks['kendall_tau']:.2f}"
    yield "sweeps.first", share(ranks["top1_regret"])
    yield "sweeps.choice", share(ranks["choice_regret"])
    for name, its in results["summaries"]["in_sample"]["by_source"].items():
        yield f"{name}.runs", f"{its['memory']['n']:,}"
        yield f"{name}.median", share(its["memory"]["median"])


def _verdicts(oom: dict[str, int]) -> Iterator[tuple[str, str]]:
    """Verdicts on the runs that ran."""
    ran = ("false_positive", "at_risk_ran", "true_negative")
    yield "oom.ran", f"{sum(oom[each] for each in ran):,}"
    yield (
        "oom.called",
        f"{oom['false_positive']:,}" if oom["false_positive"] else "none",
    )
    yield "oom.at_risk", f"{oom['at_risk_ran']:,}"


def _busy() -> Iterator[tuple[str, str]]:
    """Sweeps whose steps no host decides, from the report's table of rankings."""
    report = (HERE / "README.md").read_text().splitlines()
    (line,) = (each for each in report if each.startswith(f"| {BUSY} |"))
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    heads = next(each for each in report if "| regret of our choice |" in each)
    names = [name.strip() for name in heads.strip("|").split("|")]
    row = dict(zip(names, cells, strict=True))
    yield "busy.all", row["sweeps or sources"]
    yield "busy.choice", row["regret of our choice"]


if __name__ == "__main__":
    write()
