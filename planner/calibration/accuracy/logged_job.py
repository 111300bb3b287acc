"""A measured run of a plan: a row that carries its whole job, and the way back."""

from collections.abc import Mapping
from pathlib import Path

from planner.calibration.rows.blocks import LayoutBlock
from planner.calibration.rows.logs import Log
from planner.calibration.rows.rows import Row
from planner.calibration.rows.skeleton import Block, measured_block
from planner.calibration.rows.unsupported import UnsupportedError
from planner.cost.workload import Workload
from planner.hardware.reading.escape import yaml_text
from planner.hardware.reading.files import Catalog
from planner.job.calibration_file import CalibrationFile
from planner.job.resolve import resolve
from planner.models.architecture import Architecture
from planner.specs.job import JobSpec
from planner.specs.layouts.axes import FIELDS, WORDS
from planner.specs.layouts.layout import Layout, PartialLayout
from planner.specs.layouts.layout_text import recompute_kinds
from planner.specs.training import TrainingSpec


def planned_row(
    name: str,
    spec: Mapping[str, object],
    workload: Workload,
    layout: Layout,
    log: Log,
) -> Block:
    """A complete row of a run whose plan is known.

    `spec` holds the job with its layout. That job stands for every word of the other
    blocks when the row is priced or fitted to.
    """
    given = layout.model_dump(mode="json", by_alias=True)
    cluster = workload.topology.cluster
    return {
        "id": name,
        "source": {"title": f"own run {name}"},
        "model": _model(workload.model),
        "hardware": {
            "gpu": cluster.gpu.name,
            "gpus": layout.gpus,
            "gpus_per_node": min(cluster.node.gpus_per_node, layout.gpus),
        },
        "job": _job(workload.training, log.framework),
        "layout": _layout(layout),
        "measured": measured_block(log),
        "inferred": [],
        "check": "ok",
        "spec": {**spec, "layout": given},
    }


def _model(model: Architecture) -> Block:
    attention = model.kinds[0].attention
    return {
        "name": model.name,
        "layers": model.layers,
        "hidden": model.hidden,
        "heads": attention.heads,
        "vocab": model.vocab,
    }


def _job(training: TrainingSpec, framework: str) -> Block:
    return {
        "seq_len": training.seq_len,
        "global_batch": training.sequences,
        "precision": training.precision,
        "optimizer": training.optimizer,
        "framework": framework,
    }


def _layout(layout: Layout) -> Block:
    known = LayoutBlock.model_fields.keys() - {axis.name for axis in WORDS}
    found: Block = {a.name: a.of(layout) for a in FIELDS if a.name in known}
    return found | {"recompute": "+".join(recompute_kinds(layout)) or "none"}


def planned_text(row: Block) -> str:
    """A row as a file of rows."""
    head = "For planner calibrate FILE --out mine.yaml, or planner validate FILE."
    return yaml_text([row], [head], short_in_one_line=True).rstrip()


def planned_job(
    row: Row, catalog: Catalog, own: CalibrationFile | None = None
) -> tuple[Workload, PartialLayout]:
    """The job and the layout that a row carries.

    Args:
        row: A row with a job under `spec`. [-]
        catalog: Files of facts. [-]
        own: The user's calibration, or None. [-]

    Raises:
        UnsupportedError: The job trains under several frameworks, or not at all.
        BadInputError: A name in it is not known.
    """
    spec = JobSpec.model_validate(row.spec)
    base = Path(row.file).parent
    workloads = resolve(
        spec, file=row.file, base=base, catalog=catalog, calibration=own
    )
    if len(workloads) > 1:
        raise UnsupportedError("spec: a run has one framework, not any")
    return workloads[0], spec.layout
