"""The report of a study as Markdown."""

import re
from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from statistics import fmean

import yaml

from benchmarks.accuracy.chances import chances_section
from benchmarks.accuracy.claims import claims_section
from benchmarks.accuracy.contact_report import (
    contact_verdicts,
    contacts,
    group_bands,
    held_rows,
)
from benchmarks.accuracy.contact_report import share as _percent
from benchmarks.accuracy.contact_report import table as _lines
from benchmarks.accuracy.order import by_difference
from benchmarks.accuracy.quoted import BUSY
from benchmarks.accuracy.results import (
    WAYS,
    counts,
    large,
    several_campaigns,
    summaries,
)
from benchmarks.accuracy.sanity import compare
from benchmarks.accuracy.study import Study, outcomes_of
from benchmarks.machine import machine
from planner import __version__
from planner.calibration.accuracy.errors import Errors, accuracy, by_key, macro_accuracy
from planner.calibration.accuracy.outcome import Outcome
from planner.calibration.accuracy.ranking import Ranking, ranking, sweeps
from planner.calibration.accuracy.summary import Summary, is_v100
from planner.specs.answer.uncertainty import WAITING
from planner.specs.frameworks.deviation import CONSTANTS, Deviation

HERE = Path(__file__).parent
WORST = 40
"""Rows in the list of the worst. [1]"""


def report(done: Study) -> str:
    """The whole report.

    Args:
        done: The study. [-]

    Returns:
        Markdown. [text]
    """
    all_ways = summaries(done)
    out = outcomes_of(done, "without_source")
    return (
        (HERE / "template.md")
        .read_text()
        .format(
            version=__version__,
            machine=machine(),
            rows=sum(row.status != "invalid" for row in out),
            contacts=contacts(),
            contact_verdicts=contact_verdicts(),
            errors=_errors(done, all_ways),
            memory=_memory(done, all_ways["in_sample"]),
            intervals=_intervals(all_ways["without_source"]),
            bands=group_bands(),
            ranking=_ranking(done, all_ways),
            largest=_largest(done),
            differences=_differences(done),
            comparison=_comparison(done),
            chances=chances_section(),
            claims=claims_section(),
            sources=_by_source(out, done),
            stacks=_stacks(done),
            archs=_archs(done),
            everything=_moved(done.fit.everything),
            worst=_worst(out),
            unsupported=_unsupported(out),
            linear_max=_percent(done.linearisation[0]),
            linear_median=_percent(done.linearisation[1]),
            v100=_v100(done),
        )
    )


def _signed(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:+.1f} %"


def _cells(errors: Errors) -> tuple[object, ...]:
    return (
        errors.n,
        _percent(errors.median),
        _percent(errors.p90),
        _signed(errors.bias),
    )


def _errors(done: Study, all_ways: dict[str, Summary]) -> str:
    """Errors of the three ways, over sources and over rows, and of two further sets."""
    rows: list[tuple[object, ...]] = []
    for which, name in WAYS.items():
        summary = all_ways[which]
        rows.append((f"{name}, average over sources", *_cells(summary.macro.step_time)))
        rows.append((f"{name}, over rows", *_cells(summary.step_time)))
    several, big = several_campaigns(done), large(done)
    name = "sources with several campaigns, leave-one-group-out"
    rows.append((f"{name}, over sources", *_cells(macro_accuracy(several).step_time)))
    rows.append((f"{name}, over rows", *_cells(accuracy(several).step_time)))
    name = "Megatron, NeMo, MLPerf on 64 GPUs or more, leave-one-source-out"
    rows.append((name, *_cells(accuracy(big).step_time)))
    return _lines(rows)


def _memory(done: Study, summary: Summary) -> str:
    rows = [("average over sources", *_cells(summary.macro.memory))]
    rows.append(("over rows", *_cells(summary.memory)))
    counted = [row for row in outcomes_of(done, "in_sample") if counts(row)]
    for counter, its in sorted(by_key(counted, lambda row: row.memory_counter).items()):
        if (errors := accuracy(its).memory).n:
            rows.append((counter, *_cells(errors)))
    oom = summary.oom
    ran = oom.false_positive + oom.at_risk_ran + oom.true_negative
    failed = oom.true_positive + oom.false_negative
    said = (
        f"\nOf {ran} rows that ran, {oom.false_positive} are called `oom` and "
        f"{oom.at_risk_ran} `at-risk`; of {failed} that did not fit, "
        f"{oom.true_positive} are called one of the two."
    )
    return _lines(rows) + "\n" + said


def _intervals(summary: Summary) -> str:
    """Rows inside their intervals: the ledger's, then those of the fit."""
    over_sources = summary.macro
    rows = (
        (
            f"{name}, tuned",
            its.n,
            mean.n,
            _percent(its.coverage),
            _percent(mean.coverage),
            "-",
        )
        for name, its, mean in (
            ("step time", summary.step_time, over_sources.step_time),
            ("memory", summary.memory, over_sources.memory),
        )
    )
    return held_rows() + "\n" + _lines(rows)


def _ranking(done: Study, all_ways: dict[str, Summary]) -> str:
    found = [(name, all_ways[which]) for which, name in WAYS.items()]
    overall = [(f"{name}, over sweeps", *_ranks(its.ranking)) for name, its in found]
    ends = [
        (f"{name}, average over sources", *_ranks(its.macro.ranking))
        for name, its in found
    ]
    return _lines([*overall, *ends, (BUSY, *_ranks(_of_busy_gpus(done)))])


def _of_busy_gpus(done: Study) -> Ranking:
    """Ranking of layouts whose steps no host decides, the row's source left out."""
    counted = filter(counts, outcomes_of(done, "without_source"))
    return ranking(sweeps(row for row in counted if row.waiting < WAITING))


def _ranks(found: Ranking) -> tuple[object, ...]:
    tau = "-" if found.kendall_tau is None else f"{found.kendall_tau:.2f}"
    regrets = found.top1_regret, found.choice_regret
    rates = *regrets, found.top3_hit_rate, found.tied_hit_rate
    return (found.groups, _percent(found.pairs_right), tau, *map(_percent, rates))


def _largest(done: Study) -> str:
    """Sentence on the sweep with most pairs, the source of each sweep left out."""
    each = sweeps(filter(counts, outcomes_of(done, "without_source")))
    if not each:
        return ""
    most = max(each, key=lambda sweep: sweep.pairs)
    rest = ranking(sweep for sweep in each if sweep is not most)
    alike = fmean(sweep.pairs_right for sweep in each)
    total, others = sum(its.pairs for its in each), _percent(rest.pairs_right)
    return (
        f"One sweep of {most.source} has {most.pairs} of the {total} pairs, "
        f"{most.pairs_right:.1%} of them\nright; without it {others} are right, and "
        f"with every sweep weighing the same {alike:.1%},\nleave-one-source-out."
    )


def _differences(done: Study) -> str:
    """Pairs right by measured difference, the row's source left out."""
    rows = filter(counts, outcomes_of(done, "without_source"))
    return _lines((name, n, _percent(right)) for name, n, right in by_difference(rows))


def _comparison(done: Study) -> str:
    """The error of comparing two layouts of one job."""
    its = compare((one.outcome for one in done.observations), done.fit.date)
    turned = (_percent(its.reversed_tied), _percent(its.reversed_apart))
    return _lines([(f"{its.spread:.3f}", its.pairs, its.sweeps, its.sources, *turned)])


def _by_source(out: Sequence[Outcome], done: Study) -> str:
    """Errors of each source, its group and itself left out."""
    group = by_key(filter(counts, outcomes_of(done, "without_group")), _source)
    alone = by_key(filter(counts, out), _source)
    rows = []
    for key in sorted(alone):
        inner, outer = accuracy(group[key]), accuracy(alone[key])
        time, memory = outer.step_time, outer.memory
        rows.append(
            (
                key,
                time.n,
                _percent(inner.step_time.median),
                _percent(time.median),
                _percent(time.p90),
                _signed(time.bias),
                _percent(time.coverage),
                memory.n or "-",
                _percent(memory.median),
            )
        )
    return _lines(rows)


def _source(row: Outcome) -> str:
    return row.source


def _stacks(done: Study) -> str:
    """Fitted constants of every GPU and stack, all levels together."""
    gpus = {one.outcome.id: one.outcome.gpu for one in done.observations}
    pairs = Counter((t.stack, gpus[t.id], t.arch) for t in done.observed.tags)
    return _lines(
        (stack, gpu, rows, _moved(done.fit.deviation(arch, stack)))
        for (stack, gpu, arch), rows in sorted(pairs.items())
    )


def _archs(done: Study) -> str:
    return _lines(
        (name, _moved(own)) for name, own in sorted(done.fit.architectures.items())
    )


def _moved(own: Deviation | None) -> str:
    moved = (own or Deviation()).moved()
    words = [
        f"{name} {moved[name]:+.4g} s"
        if name == CONSTANTS[-1]
        else f"{name} x {moved[name]:.3g}"
        for name in CONSTANTS
        if name in moved
    ]
    return ", ".join(words) or "as documented"


def _worst(out: Sequence[Outcome]) -> str:
    """Rows with the largest errors, and the believed reasons."""
    rows = [row for row in out if counts(row) and row.step_error is not None]
    rows.sort(key=lambda row: -abs(row.step_error or 0.0))
    return _lines(
        (
            f"`{row.id}`",
            row.stack,
            row.layout,
            f"{row.measured_step_s:.4g}",
            _signed(row.step_error),
            reason_of(row),
        )
        for row in rows[:WORST]
    )


def reason_of(row: Outcome) -> str:
    """Believed reason of a row's error.

    Args:
        row: Any row. [-]

    Returns:
        First reason whose pattern is in the row's source or id. [text]
    """
    for reason in _reasons():
        if re.search(reason["match"], f"{row.source}/{row.id}"):
            return reason["why"]
    return "not understood"


@cache
def _reasons() -> list[dict[str, str]]:
    content: list[dict[str, str]] = yaml.safe_load((HERE / "reasons.yaml").read_text())
    return content


def _unsupported(out: Sequence[Outcome]) -> str:
    rows = [row for row in out if row.status == "unsupported" and row.counted]
    total = sum(row.counted for row in out)
    said = (
        f"{len(rows)} of {total} rows that count ({_percent(len(rows) / total)}).\n\n"
    )
    found = Counter((row.source, row.reason[:120]) for row in rows)
    return said + _lines((source, n, why) for (source, why), n in found.most_common())


def _v100(done: Study) -> str:
    rows = [o.outcome for o in done.observations if is_v100(o.outcome)]
    return _lines(
        (name, *_cells(accuracy(its).step_time))
        for name, its in sorted(by_key(rows, _source).items())
    )
