"""Training logs: the lines of each framework that state time, speed or memory."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from statistics import median

from planner.calibration.rows.blocks import RATES, STEPS
from planner.calibration.rows.vocabulary import Counter
from planner.errors import BadInputError
from planner.hardware.reading.documents import DocumentError, read_text

LARGEST = 1 << 27
"""Characters of a log. [1]"""
WARM_UP = 0.1
"""Share of the first readings that is left out, at least one of several. [1]"""


@dataclass(frozen=True)
class Log:
    """Readings of a training log, after the run's warm-up.

    Attributes:
        framework: Name of the framework that wrote it. [text]
        readings: Lines that the medians are over. [1]
        step_s: Median time of an optimizer step. [s]
        tokens_per_s_per_gpu: Median, where the log has it. [token/s]
        samples_per_s: Median over the whole job, where the log has it. [1/s]
        memory_gib: Largest peak stated. [GiB]
        memory_counter: allocated or reserved. [text]
        arguments: The run's settings, where the log begins with them. [text]
    """

    framework: str
    readings: int
    step_s: float | None = None
    tokens_per_s_per_gpu: float | None = None
    samples_per_s: float | None = None
    memory_gib: float | None = None
    memory_counter: Counter = "allocated"
    arguments: Mapping[str, str] = field(default_factory=dict)

    def step_time(self, *, global_batch: int, seq_len: int, gpus: int) -> float | None:
        """Step time, from the speed where the log states no time.

        ::

            T = B / samples_per_s = B L / (gpus tokens_per_s_per_gpu)

        Args:
            global_batch: Sequences in one optimizer step, ``B``. [1]
            seq_len: Tokens in a sequence, ``L``. [token]
            gpus: Ranks of the job. [1]

        Returns:
            None where the log states neither. [s]
        """
        if self.step_s is not None:
            return self.step_s
        if self.samples_per_s:
            return global_batch / self.samples_per_s
        if self.tokens_per_s_per_gpu:
            return global_batch * seq_len / (gpus * self.tokens_per_s_per_gpu)
        return None


def read_log(path: Path) -> Log:
    """Read a training log.

    Args:
        path: Text that Megatron-LM, torchtitan, DeepSpeed or the Trainer of
            Hugging Face wrote to its terminal. [-]

    Raises:
        BadInputError: Unreadable, or no line of any of these frameworks.
    """
    try:
        text = read_text(path, most=LARGEST, errors="replace")
    except DocumentError as error:
        raise BadInputError(error.problem, file=str(path)) from error
    log = parse_log(text)
    if log is None:
        names = (*(dialect.framework for dialect in _DIALECTS), _TRAINER)
        raise BadInputError(
            "no line states a step time or a speed",
            file=str(path),
            allowed=f"a log of {', '.join(names)}",
        )
    _refuse_unreal(log, path)
    return log


def _refuse_unreal(log: Log, path: Path) -> None:
    """Refuse a step or a speed that no machine has: a misread or broken log."""
    ends = {"step_s": STEPS, "tokens_per_s_per_gpu": RATES, "samples_per_s": RATES}
    for name, (least, most) in ends.items():
        value = getattr(log, name)
        if value is not None and not least <= value <= most:
            raise BadInputError(
                "no machine has it",
                file=str(path),
                field=name,
                value=value,
                allowed=f"{least:g} to {most:g}",
            )


def parse_log(text: str) -> Log | None:
    """Read the text of a training log in the first dialect that it has lines of.

    Returns:
        Medians of time and speed, largest memory; None without a reading. [-]
    """
    lines = _ANSI.sub("", text).splitlines()
    logs = (_read(dialect, lines) for dialect in _DIALECTS)
    return next((log for log in logs if log is not None), None) or _trainer(lines)


@dataclass(frozen=True)
class _Dialect:
    """The lines of a framework that logs every few steps.

    Attributes:
        framework: Name of the framework. [text]
        field: Field of a Log that a reading is for. [text]
        reading: Pattern with a reading in its only group. [-]
        scale: Unit of a reading over the unit of the field. [1]
        memory: Pattern of a peak of memory. [-]
        memory_counter: Counter of the peak. [text]
        memory_scale: Unit of the peak over GiB. [1]
    """

    framework: str
    field: str
    reading: re.Pattern[str]
    memory: re.Pattern[str]
    memory_counter: Counter
    scale: float = 1.0
    memory_scale: float = 1.0


def _read(dialect: _Dialect, lines: Sequence[str]) -> Log | None:
    readings = _numbers(dialect.reading, lines)
    if not readings:
        return None
    steady = readings[_warm_up(len(readings)) :]
    peaks = _numbers(dialect.memory, lines)
    return Log(
        framework=dialect.framework,
        readings=len(steady),
        memory_gib=max(peaks) * dialect.memory_scale if peaks else None,
        memory_counter=dialect.memory_counter,
        arguments=_arguments(lines),
        **{dialect.field: median(steady) * dialect.scale},
    )


def _warm_up(readings: int) -> int:
    """Readings to leave out: compilation, autotuning and first touches. [1]."""
    return max(1, int(readings * WARM_UP)) if readings > 1 else 0


def _numbers(pattern: re.Pattern[str], lines: Sequence[str]) -> list[float]:
    """The positive numbers that lines hold behind some words."""
    found = (pattern.search(line) for line in lines)
    numbers = (float(match[1].replace(",", "")) for match in found if match)
    return [number for number in numbers if 0 < number < inf]


def _arguments(lines: Sequence[str]) -> dict[str, str]:
    """Settings as Megatron prints them, a row of dots before each value."""
    found = (_ARGUMENT.search(line) for line in lines)
    return {match[1]: match[2] for match in found if match}


def _trainer(lines: Sequence[str]) -> Log | None:
    """The Trainer of Hugging Face, which sums up at the end of a run.

    The Trainer prints steps per second to three decimals. The run's time over the
    number of steps, or the samples per second, are the better figures.
    """
    times = _numbers(_key("step_time"), lines)
    samples, rates, runtimes, steps = (
        _numbers(pattern, lines)[-1:] for pattern in _TRAINER_TOTALS
    )
    if times:
        step: float | None = median(times[_warm_up(len(times)) :])
    elif runtimes and steps:
        step = runtimes[0] / steps[0]
    else:
        step = 1 / rates[0] if rates and not samples else None
    if step is None and not samples:
        return None
    peaks = _numbers(_AXOLOTL_MEMORY, lines)
    return Log(
        framework=_TRAINER,
        readings=max(len(times) - _warm_up(len(times)), 1),
        step_s=step,
        samples_per_s=samples[0] if samples else None,
        memory_gib=max(peaks) if peaks else None,
    )


_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_NUMBER = r"\s*([\d,]*\.?\d+(?:[eE][-+]?\d+)?)"
_ARGUMENT = re.compile(r"^\s*(?:\d+:\s*)?(\w+) \.{2,} ?(\S+)\s*$")


def _after(words: str) -> re.Pattern[str]:
    return re.compile(words + _NUMBER)


def _key(name: str) -> re.Pattern[str]:
    """A key of a Python dictionary, of JSON, or of the Trainer's `key = value`.

    The Trainer of transformers 5 prints numbers as text, in quotes.
    """
    return _after(rf"\b{name}['\"]?\s*[:=]\s*['\"]?")


# Megatron-LM's report_memory prints 2^20 bytes as MB.
_MEGATRON_MEMORY = _after(r"\bmax allocated:")
_TRAINER = "Hugging Face Trainer"
# transformers, speed_metrics of trainer_utils.py and Trainer._inner_training_loop.
_TRAINER_TOTALS = (
    _key("train_samples_per_second"),
    _key("train_steps_per_second"),
    _key("train_runtime"),
    _after("Total optimization steps ="),
)
_AXOLOTL_MEMORY = re.compile(
    r"max_(?:mem_)?allocated ?\(gib\)['\"]?\s*:\s*['\"]?" + _NUMBER, re.IGNORECASE
)
_DIALECTS = (
    # Megatron-LM, training_log of megatron/training/training.py.
    _Dialect(
        framework="Megatron-LM",
        field="step_s",
        reading=_after(r"elapsed time per iteration \(ms\):"),
        scale=1e-3,
        memory=_MEGATRON_MEMORY,
        memory_counter="allocated",
        memory_scale=1 / 1024,
    ),
    # BigScience's fork of Megatron-LM prints seconds.
    _Dialect(
        framework="Megatron-DeepSpeed",
        field="step_s",
        reading=_after(r"elapsed time per iteration \(s\):"),
        memory=_MEGATRON_MEMORY,
        memory_counter="allocated",
        memory_scale=1 / 1024,
    ),
    # torchtitan, MetricsProcessor.log of torchtitan/components/metrics.py: tokens
    # are those of one device, memory is the most that the allocator reserved.
    _Dialect(
        framework="torchtitan",
        field="tokens_per_s_per_gpu",
        reading=_after(r"\bstep:\s*\d+ .*\b[tw]ps:"),
        memory=re.compile(r"\bmemory:" + _NUMBER + "GiB"),
        memory_counter="reserved",
    ),
    # DeepSpeed, ThroughputTimer.stop of deepspeed/utils/timer.py: samples are those
    # of the whole job, a GB is 2^30 bytes.
    _Dialect(
        framework="DeepSpeed",
        field="samples_per_s",
        reading=_after(r"(?:Curr|\b)SamplesPerSec="),
        memory=re.compile("MaxMemAllocated=" + _NUMBER + " ?GB"),
        memory_counter="allocated",
    ),
)
