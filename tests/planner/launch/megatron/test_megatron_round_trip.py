"""What is emitted for Megatron-LM reads back as the plan that it was written from."""

from functools import cache
from pathlib import Path

import pytest
from many_plans import jobs, many_plans
from target_gaps import megatron as gaps
from tiers import some

from planner.launch import emit
from planner.launch.emit import CHECK, PLAN, README
from planner.launch.read_plan import PlanFile
from planner.launch.targets.megatron.reader import read
from planner.planning.prediction.predict import complete
from planner.specs.layouts.layout import PartialLayout

COUNT = 8


def files_of(found: PlanFile) -> dict[str, str]:
    """Files that `planner import` sees of the folder."""
    every = {file.name: file.text for file in emit(found, "megatron")}
    return {n: t for n, t in every.items() if n not in (PLAN, README, CHECK)}


@cache
def expressible(folder: Path) -> list[PlanFile]:
    return [p for p in many_plans(folder, COUNT) if not gaps(p.brief)]


@pytest.mark.parametrize(
    "folder", some(jobs("megatron"), 3), ids=lambda path: path.name
)
def test_layouts_read_back_as_they_were_written(folder: Path) -> None:
    found = expressible(folder)
    assert len(found) >= COUNT // 2
    for plan in found:
        reading = read(files_of(plan))
        partial = PartialLayout.model_validate(reading.layout_on(plan.brief.cluster))
        assert complete(plan.pricing, partial) == plan.plan.layout


@pytest.mark.parametrize("folder", jobs("megatron"), ids=lambda path: path.name)
def test_the_training_block_and_the_ranks_read_back(folder: Path) -> None:
    plan = expressible(folder)[0]
    reading = read(files_of(plan))
    training = plan.pricing.training
    assert reading.gpus == plan.plan.layout.gpus
    assert reading.training == {
        "seq_len": training.seq_len,
        "global_batch": training.sequences,
        "precision": training.precision,
        "optimizer": training.optimizer,
    }
    assert reading.unknown == ()


def test_the_yaml_twin_says_the_same() -> None:
    for folder in jobs("megatron"):
        files = files_of(expressible(folder)[0])
        script, twin = files["arguments.sh"], files["arguments.yaml"]
        launch = files["launch.sh"]
        first = read({"arguments.sh": script, "launch.sh": launch})
        bare = launch.replace("source arguments.sh\n", "ARGUMENTS=() DATA=()\n")
        second = read({"arguments.yaml": twin, "launch.sh": bare})
        assert first.layout == second.layout
        assert first.training == second.training
        assert first.stack == second.stack
