"""A measured row as a job that the cost model prices."""

import re
from dataclasses import dataclass, replace
from math import prod

from pydantic import ValidationError

from hardware.calibration import calibration
from hardware.catalog import Cluster
from hardware.files import CatalogError, UnknownNameError
from hardware.topology import ClusterTopology
from planner.cost.workload import Workload
from planner.errors import BadInputError
from planner.evidence.architectures import architecture_of, latent_assumed
from planner.evidence.clusters import hardware_of
from planner.evidence.frameworks import software_of
from planner.evidence.layouts import layout_of, recomputing
from planner.evidence.measurements import Measured, Scale, measured_of
from planner.evidence.rows import Row
from planner.evidence.software import stack_rule, year_of
from planner.evidence.unsupported import UnsupportedError
from planner.evidence.words import RecomputeWords
from planner.predict import predict
from planner.specs.layout import PartialLayout
from planner.specs.training import LoraSpec, Method, Precision, TrainingSpec

PRECISIONS: tuple[tuple[str, Precision], ...] = (
    (r"nvfp4|mxfp4|\bfp4", "nvfp4"),
    (r"mxfp8|fp8[-_]?mx", "mxfp8"),
    (r"fp8|float8|e4m3|hybrid", "fp8"),
    (r"bf16|bfloat16", "bf16"),
    (r"fp16|float16|half|\bamp\b|o[12]\b", "fp16"),
    (r"fp32|tf32|float32", "fp32"),
)
"""Patterns of a number format, the narrowest first."""


@dataclass(frozen=True)
class Case:
    """A row with the job and the layout that stand for it."""

    row: Row
    workload: Workload
    layout: PartialLayout
    measured: Measured
    stack: str
    """Name of the software stack. [text]"""
    flags: tuple[str, ...]
    """What had to be assumed. [text]"""


def case_of(row: Row) -> Case:
    """The job that a row ran, as far as it can be told.

    A row that does not say what it recomputed ran without, unless its memory says
    that this does not fit: then with full recomputation.

    Args:
        row: The measured row. [-]

    Returns:
        The case.

    Raises:
        UnsupportedError: No catalogue entry, or no price, for something it names.
    """
    try:
        case = _stated(row)
        return _with_recompute(case)
    except (BadInputError, CatalogError, UnknownNameError) as error:
        raise UnsupportedError(str(error)) from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise UnsupportedError(f"{where}: {first['msg']}") from error


def _stated(row: Row) -> Case:
    """The case with unknown recomputation read as none."""
    hardware = hardware_of(row.hardware, row.normalised.fabric)
    cluster = hardware.cluster
    achieved = calibration(cluster.gpu.name)
    rule = stack_rule(row, cluster.gpu.arch)
    software = software_of(row, rule, cluster.gpu, achieved, hardware.clock)
    model = architecture_of(row.model, row.job.seq_len)
    placed = layout_of(row, model.layers, rule, cluster.node.gpus_per_node)
    workload = Workload(
        model=model,
        training=_training(row, placed.layout),
        framework=software.framework,
        topology=ClusterTopology(cluster),
        calibration=achieved,
    )
    latent = ("latent ranks assumed",) if latent_assumed(row.model) else ()
    scale = _scale(row, workload, cluster)
    return Case(
        row=row,
        workload=workload,
        layout=placed.layout,
        measured=measured_of(row, model, scale),
        stack=rule.stack,
        flags=(*hardware.flags, *software.flags, *placed.flags, *latent),
    )


def _with_recompute(case: Case) -> Case:
    """The case with unknown recomputation decided by its memory."""
    if case.row.normalised.recompute.kind != "unknown":
        return case
    memory = predict(case.workload, case.layout).estimate.memory
    if memory.peak_device_gib.value <= memory.capacity_gib:
        return replace(case, flags=(*case.flags, "recomputation assumed, none"))
    full = recomputing(case.layout, RecomputeWords(kind="full"))
    flags = (*case.flags, "recomputation assumed, full: none does not fit")
    return replace(case, layout=full, flags=flags)


def _scale(row: Row, workload: Workload, cluster: Cluster) -> Scale:
    return Scale(
        sequences=workload.sequences,
        gpus=row.hardware.gpus,
        year=year_of(row, cluster.gpu.arch),
        full_recompute=row.normalised.recompute.kind == "full",
        peak_tflops=workload.peak_flops / 1e12,
    )


def _training(row: Row, layout: PartialLayout) -> TrainingSpec:
    """The training block of a row."""
    words = row.normalised.optimizer
    names = {"adam": "adamw", "sgd": "sgd-momentum"}
    return TrainingSpec.model_validate(
        {
            "seq_len": row.job.seq_len,
            "global_batch": _sequences(layout),
            "precision": _precision(row),
            "optimizer": names.get(words.name, words.name),
            "state_bits": None if words.state_bits == 32 else words.state_bits,
            "optimizer_in_backward": words.in_backward,
            "method": _method(row),
            "lora": _lora(row),
        }
    )


def _sequences(layout: PartialLayout) -> int:
    """Sequences of a step: dp * micro-batch * accumulation. [1]."""
    cut = (layout.dp, layout.micro_batch, layout.grad_accum)
    return prod(part or 1 for part in cut)


def _precision(row: Row) -> Precision:
    """Number format of the linear layers."""
    for text in (row.job.precision.lower(), row.job.text("precision_detail")):
        for pattern, word in PRECISIONS:
            if re.search(pattern, text):
                return word
    raise UnsupportedError(f"job: precision {row.job.precision!r} is not known")


def _method(row: Row) -> Method:
    text = row.job.text("task")
    if "qlora" in text:
        return "qlora"
    return "lora" if "lora" in text or "peft" in text else "full"


def _lora(row: Row) -> LoraSpec:
    """Adapters as stated; on attention alone only where the text says so."""
    said = row.job.lora or {}
    text = str(said.get("targets", "")).lower()
    everywhere = not text or re.search(r"all|mlp|fc|gate|up|down|ffn", text)
    rank = said.get("rank")
    return LoraSpec(
        rank=rank if isinstance(rank, int) else LoraSpec().rank,
        targets="all" if everywhere else "attention",
    )
