"""What is emitted for torchtitan reads back as the plan that it was written from."""

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from many_plans import jobs
from torchtitan_plans import torchtitan_plans

from planner.launch import emit
from planner.launch.emit import CHECK, PLAN, README
from planner.launch.read_plan import PlanFile
from planner.launch.torchtitan.gaps import gaps
from planner.launch.torchtitan.reader import read
from planner.launch.torchtitan.writer import write
from planner.models.architecture import Architecture
from planner.models.registry import from_config
from planner.predict import complete
from planner.specs.layout import PartialLayout

COUNT = 12


def files_of(found: PlanFile) -> dict[str, str]:
    """What `planner import` sees of the folder."""
    every = {file.name: file.text for file in emit(found, "torchtitan")}
    return {n: t for n, t in every.items() if n not in (PLAN, README, CHECK)}


@cache
def expressible(folder: Path) -> list[PlanFile]:
    return [p for p in torchtitan_plans(folder, COUNT) if not gaps(p.brief)]


@pytest.mark.parametrize("folder", jobs("torchtitan"), ids=lambda path: path.name)
def test_layouts_read_back_as_they_were_written(folder: Path) -> None:
    found = expressible(folder)
    assert len(found) >= COUNT // 4
    for plan in found:
        reading = read(files_of(plan))
        partial = PartialLayout.model_validate(reading.layout)
        assert complete(plan.workload, partial) == plan.plan.layout
        assert reading.unknown == ()


@pytest.mark.parametrize("folder", jobs("torchtitan"), ids=lambda path: path.name)
def test_a_loss_in_chunks_is_written_and_read(folder: Path) -> None:
    plan = expressible(folder)[0]
    spec = plan.brief.spec.model_copy(update={"stack": {"loss": "chunked"}})
    asked = replace(plan.brief, spec=spec)
    text = {file.name: file.text for file in write(asked).files}
    if plan.workload.model.mtp_layers:
        assert any(gap.field == "spec.stack.loss" for gap in gaps(asked))
        return
    assert read(text).stack["loss"] == "chunked"
    assert "loss" not in read(files_of(plan)).stack


@pytest.mark.parametrize("folder", jobs("torchtitan"), ids=lambda path: path.name)
def test_job_and_model_read_back(folder: Path) -> None:
    plan = expressible(folder)[0]
    reading = read(files_of(plan))
    training = plan.workload.training
    assert reading.gpus == plan.plan.layout.gpus
    moments = {"state_bits": training.state_bits} if training.state_bits else {}
    assert reading.training == {
        "seq_len": training.seq_len,
        "global_batch": training.sequences,
        "precision": training.precision,
        "optimizer": training.optimizer,
    } | ({} if moments == {"state_bits": 32} else moments)
    assert isinstance(reading.model, dict)
    again = from_config(reading.model, source="read back")
    assert _layers(again) == _layers(plan.workload.model)
    said = {k: v for k, v in plan.spec.stack.items() if k in ("name", "dispatcher")}
    assert dict(reading.stack) == said


def _layers(model: Architecture) -> tuple[object, ...]:
    return (model.runs, model.hidden, model.vocab, model.tied_embeddings)
