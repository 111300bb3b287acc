"""Measured step time and peak memory of a row, in one unit each."""

import re
from dataclasses import dataclass

from planner.calibration.rows.rows import Row
from planner.calibration.rows.vocabulary import Counter, Ranks
from planner.models import Architecture

CAUSAL_SINCE = 2025.2
"""Megatron-Core counts causal attention since its 0.11 and NeMo 25.02. [year]"""
_DAY = 86400.0
_TOKENS_OF_DAYS = 300e9


@dataclass(frozen=True)
class Measured:
    """The measurement of a row; None where it has none."""

    step_s: float | None
    """Step time. [s]"""
    basis: str
    """Field of the row that the step time comes from. [text]"""
    memory_gib: float | None
    """Peak memory. [GiB]"""
    counter: Counter
    ranks: Ranks
    oom: bool
    """The run did not fit."""


@dataclass(frozen=True)
class Scale:
    """Batch, ranks and conventions that turn a rate into a step time."""

    sequences: int
    """Sequences of a step. [1]"""
    gpus: int
    """Ranks. [1]"""
    year: float
    """Year of the software, which tells its FLOP convention. [year]"""
    full_recompute: bool
    peak_tflops: float
    """Dense half-precision peak of the GPU. [TFLOP/s]"""


def measured_of(row: Row, model: Architecture, scale: Scale) -> Measured:
    """Step time and memory of a row.

    The first stated quantity gives the time: step time, tokens per second, sequences
    per second. Then come FLOPs or utilisation under the row's own convention, then
    days of a run.
    """
    step, basis = _step(row, model, scale)
    memory = row.normalised.memory
    oom = row.measured.oom
    return Measured(
        step_s=None if oom else step,
        basis=basis,
        memory_gib=memory.gib if memory else None,
        counter=memory.counter if memory else "unknown",
        ranks=memory.ranks if memory else "unknown",
        oom=oom,
    )


def _step(row: Row, model: Architecture, scale: Scale) -> tuple[float | None, str]:
    """Step time [s] and the field it is from."""
    said = row.measured
    sequences = float(scale.sequences)
    tokens = sequences * row.job.seq_len
    rates: tuple[tuple[str, float, float | None], ...] = (
        ("tokens_per_s_per_gpu", tokens / scale.gpus, said.tokens_per_s_per_gpu),
        ("tokens_per_s_total", tokens, said.tokens_per_s_total),
        ("samples_per_s", sequences, said.samples_per_s),
        ("sequences_per_s", sequences, said.sequences_per_s),
    )
    if said.step_time_s is not None:
        return said.step_time_s, "step_time_s"
    for name, work, rate in rates:
        if rate is not None:
            return work / rate, name
    flops = _by_flops(row, model, scale)
    if flops[0] is None and said.days_for_300b_tokens is not None:
        seconds = said.days_for_300b_tokens * _DAY
        return seconds * tokens / _TOKENS_OF_DAYS, "days_for_300b_tokens"
    return flops


def _by_flops(row: Row, model: Architecture, scale: Scale) -> tuple[float | None, str]:
    """Step time [s] from a rate of FLOPs or a utilisation."""
    said = row.measured
    peak = said.mfu_peak_tflops or scale.peak_tflops
    options = (
        ("model_tflops_per_gpu", said.model_tflops_per_gpu, False),
        ("hardware_tflops_per_gpu", said.hardware_tflops_per_gpu, True),
        ("mfu", said.mfu and said.mfu * peak, False),
        ("hfu", said.hfu and said.hfu * peak, True),
    )
    for name, rate, hardware in options:
        if rate:
            work = _flops_per_token(row, model, scale, hardware=hardware)
            tokens = scale.sequences * row.job.seq_len
            return work * tokens / (rate * 1e12 * scale.gpus), name
    return None, ""


def _flops_per_token(
    row: Row, model: Architecture, scale: Scale, *, hardware: bool
) -> float:
    """FLOPs [1/token] under the row's convention.

    `8*N` counts recomputation on every parameter. `6N` counts every active parameter
    and the attention scores; `12*L` says full attention. Other texts say causal or
    full attention; without such a text the software's year decides. Hardware FLOPs add
    the layers' forward under full recompute.
    """
    said = (
        f"{row.measured.text('flops_convention')} {row.measured.text('mfu_convention')}"
    )
    said += f" {row.notes.lower()}" if hardware else ""
    seq_len = row.job.seq_len
    if re.search(r"8 ?\* ?n\b", said):
        return 8.0 * model.parameters
    causal = _is_causal(said, row, scale.year)
    if re.search(r"6 ?n\b", said):
        layers = sum(
            count
            * kind.attention.core_flops(kind.attention.attended(seq_len, causal=causal))
            for kind, count in model.runs
        )
        return 6.0 * model.active_parameters + 3 * layers
    total = model.model_flops_per_token(seq_len, "causal" if causal else "full")
    forward = total / 3
    if hardware and scale.full_recompute:
        total += forward - model.head_flops * (1 + model.mtp_layers)
    return total if (row.job.task or "") != "lora" else 2 * forward


def _is_causal(said: str, row: Row, year: float) -> bool:
    """True where a convention counts half of the attention scores."""
    if re.search(r"causal|half attention", said) and "non-causal" not in said:
        return True
    if re.search(r"full attention|12 ?\* ?l|72 ?\*|96 ?\*|sc21|narayanan", said):
        return False
    framework = row.job.framework.lower()
    return year >= CAUSAL_SINCE and bool(re.search("megatron|nemo", framework))
