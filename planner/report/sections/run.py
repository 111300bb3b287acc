"""The whole run: facts, parts and assumptions."""

from planner.document.blocks import Block, Facts, Notes, Section, Table, Tile
from planner.specs.answer.estimate import Interval
from planner.specs.answer.run import Run, RunCost

_SCALES = ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k"), (1.0, ""))
_DAY, _HOUR, _MINUTE = 86400.0, 3600.0, 60.0


def run_sections(run: Run | None) -> list[Section]:
    """Time, interruptions, GPU-hours, cost and energy of a run.

    Args:
        run: The run, None where no tokens are known. [-]
    """
    if run is None:
        return []
    parts: list[Block] = [Facts(run_rows(run))]
    if len(run.stretches) > 1:
        parts.append(Table(("part", *PARTS), stretch_rows(run), 1, "Parts of the run"))
    parts.append(Notes(run.assumptions, "Assumed of the run"))
    return [Section("run", "The whole run", parts)]


def run_tile(run: Run) -> Tile:
    """Time and effective share of a run."""
    time, share = run.time_to_train_s, run.effective_share
    return Tile(
        "Whole run",
        f"{time.value / _DAY:,.1f} days",
        f"between {time.low / _DAY:,.1f} and {time.high / _DAY:,.1f}; "
        f"{share.value:.1%} of it trains",
    )


def run_rows(run: Run) -> list[tuple[str, str]]:
    """Time, interruptions, GPU-hours, cost and energy of a run, name by name."""
    return [
        ("tokens", f"{short(run.tokens)}, {run.tokens_rule}"),
        ("time", _spread(run.time_to_train_s, *_unit_of_time(run))),
        ("effective share", _share(run)),
        ("checkpoints", _checkpoints(run)),
        ("nodes", _nodes(run)),
        ("GPU-hours", _short_spread(run.gpu_hours)),
        *_cost(run.cost_usd),
        ("energy", _spread(run.energy_mwh, *_mega(run.energy_mwh, "MWh", "GWh"))),
        ("carbon", _spread(run.carbon_t, *_mega(run.carbon_t, "t", "kt", " of CO2"))),
    ]


PARTS = ("tokens", "sequences", "of tokens", "steps", "step", "days")
"""Titles of the columns behind the name of a part of a run."""


def stretch_rows(run: Run) -> list[tuple[str, ...]]:
    """Every part of a run, and the time of reshards between parts."""
    rows: list[tuple[str, ...]] = [
        (
            part.name,
            short(part.tokens),
            f"{part.sequences:,}",
            f"{part.seq_len:,}",
            f"{part.steps:,.0f}",
            f"{part.step_time_s.value:.3f} s",
            f"{part.time_s.value / _DAY:,.2f}",
        )
        for part in run.stretches
    ]
    if run.reshard_s:
        moved = f"{run.reshard_s / _DAY:,.3f}"
        rows.append(("reshards between parts", "", "", "", "", "", moved))
    return rows


def short(value: float) -> str:
    """A large number in four digits: `15.6T`."""
    for scale, letter in _SCALES:
        if value >= scale:
            return f"{value / scale:.4g}{letter}"
    return f"{value:.3g}"


def _short_spread(interval: Interval) -> str:
    low, high = short(interval.low), short(interval.high)
    return f"{short(interval.value)} ({low} to {high})"


def _spread(interval: Interval, scale: float, unit: str) -> str:
    value, low, high = (
        x / scale for x in (interval.value, interval.low, interval.high)
    )
    digits = 1 if value >= 1 else 3
    return f"{value:,.{digits}f} {unit} ({low:,.{digits}f} to {high:,.{digits}f})"


def _unit_of_time(run: Run) -> tuple[float, str]:
    days = run.time_to_train_s.value >= 2 * _DAY
    return (_DAY, "days") if days else (_HOUR, "hours")


def _mega(
    interval: Interval, small: str, large: str, after: str = ""
) -> tuple[float, str]:
    """Divisor and unit of a figure: thousands of the small unit from 1000 on."""
    big = interval.value >= 1000
    return (1000.0, large + after) if big else (1.0, small + after)


def _share(run: Run) -> str:
    share, often = run.effective_share, run.interruptions
    hours = run.time_to_train_s.value / max(often.value, 1e-12) / _HOUR
    every = f"one every {hours:,.1f} h" if hours < 1000 else "rare"
    count = f"{often.value:,.0f}" if often.value >= 10 else f"{often.value:.2g}"
    return (
        f"{share.value:.1%} ({share.low:.1%} to {share.high:.1%}), "
        f"{count} interruption{'' if count == '1' else 's'}, {every}"
    )


def _checkpoints(run: Run) -> str:
    its = run.checkpoint
    kind = "asynchronous" if its.asynchronous else "synchronous"
    every = f"{its.interval_s / _MINUTE:,.1f} min"
    return (
        f"{its.total_gib:,.4g} GiB every {every}, {kind}; "
        f"{its.write_s:,.1f} s to write, the run waits {its.stall_s:,.1f} s"
    )


def _nodes(run: Run) -> str:
    its = run.nodes
    more = [f"{n:,} {what}" for n, what in ((its.idle, "idle"), (its.spare, "spare"))]
    others = [text for text in more if not text.startswith("0 ")]
    return ", ".join([f"{its.training:,} train", *others, f"{its.paid:,} are paid for"])


def _cost(cost: RunCost | None) -> list[tuple[str, str]]:
    """Total cost with the known kinds of cost, and the price."""
    if cost is None:
        return [("cost", "no price is known; give economics.price")]
    scale = (1e6, "MUSD") if cost.total.value >= 1e6 else (1e3, "kUSD")
    kinds = [
        f"{name} {getattr(cost, name).value / scale[0]:,.3g}"
        for name in ("capital", "electricity", "colocation")
        if getattr(cost, name) is not None
    ]
    told = _spread(cost.total, *scale)
    return [
        ("cost", f"{told}: {', '.join(kinds)}" if kinds else told),
        ("price", cost.price),
    ]
