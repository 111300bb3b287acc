"""What is emitted for torchtitan reads back as the plan that it was written from."""

import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from many_plans import jobs
from target_gaps import torchtitan as gaps
from tiers import some
from torchtitan_plans import torchtitan_plans

from planner.cost.estimate.stack import stack_in_force
from planner.cost.pricing import Pricing
from planner.job.resolve import resolve
from planner.launch import emit
from planner.launch.emit import CHECK, PLAN, README
from planner.launch.read_plan import PlanFile
from planner.launch.targets.torchtitan.reader import read
from planner.launch.targets.torchtitan.writer import write
from planner.models.architecture import Architecture
from planner.models.registry import from_config
from planner.planning.prediction.predict import complete
from planner.specs.layouts.layout import PartialLayout

COUNT = 8
STACKS: tuple[dict[str, Any], ...] = (
    {},
    {"compile": False},
    {"memory_traffic": 1.2},
    *({"loss": word} for word in ("whole", "compiled", "chunked")),
    *({"compile": False, "loss": word} for word in ("whole", "compiled", "chunked")),
    {"name": "torchtitan"},
    {"name": "torchtitan-eager"},
    {"name": "torchtitan", "loss": "compiled"},
)
"""Stack blocks of a job, the default's first. [-]"""


def files_of(found: PlanFile) -> dict[str, str]:
    """Files that `planner import` sees of the folder."""
    every = {file.name: file.text for file in emit(found, "torchtitan")}
    return {n: t for n, t in every.items() if n not in (PLAN, README, CHECK)}


@cache
def expressible(folder: Path) -> list[PlanFile]:
    return [p for p in torchtitan_plans(folder, COUNT) if not gaps(p.brief)]


@pytest.mark.parametrize(
    "folder", some(jobs("torchtitan"), 3), ids=lambda path: path.name
)
def test_layouts_read_back_as_they_were_written(folder: Path) -> None:
    found = expressible(folder)
    assert len(found) >= COUNT // 4
    for plan in found:
        reading = read(files_of(plan))
        partial = PartialLayout.model_validate(reading.layout_on(plan.brief.cluster))
        assert complete(plan.pricing, partial) == plan.plan.layout
        assert reading.unknown == ()


@pytest.mark.parametrize("folder", jobs("torchtitan"), ids=lambda path: path.name)
@pytest.mark.parametrize("tokens", [4096, 4100])
def test_the_loss_that_is_priced_is_written_and_read(folder: Path, tokens: int) -> None:
    """Bytes of a logit: of the price, of the module, and of what is read from it."""
    for stack in STACKS:
        plan = with_stack(expressible(folder)[0], stack, tokens)
        priced = plan.pricing.recipe.logits_bytes
        brief = replace(plan.brief, stack=stack_in_force(plan.pricing))
        if any(gap.field == "spec.stack.loss" for gap in gaps(brief)):
            able = tokens % 8 == 0 and not plan.pricing.model.mtp_layers
            assert (stack.get("loss"), able) == ("chunked", False)
            continue
        text = {file.name: file.text for file in write(brief).files}
        assert priced in written(text["plan_config.py"]), stack
        reading = read(text)
        again = with_stack(plan, dict(reading.stack), tokens)
        assert again.pricing.recipe.logits_bytes == priced, (stack, reading.stack)
        if not stack:
            assert not {"loss", "name"} & reading.stack.keys()
            assert not plan.pricing.framework.by_hand


def with_stack(plan: PlanFile, stack: dict[str, Any], tokens: int) -> PlanFile:
    """A plan on another software stack and of another length."""
    training = plan.spec.training
    assert training is not None
    training = training.model_copy(update={"seq_len": tokens})
    spec = plan.spec.model_copy(update={"stack": stack, "training": training})
    (workload,) = resolve(spec, file="job.yaml", base=Path())
    return replace(plan, spec=spec, pricing=Pricing.of(workload, plan.plan.layout))


def written(module: str) -> tuple[float, ...]:
    """Bytes of a logit of the loss that a module configures."""
    if "ChunkedLossWrapper.Config" in module:
        return (1.5,)
    (line,) = re.findall(r"CompileConfig\((.*)\)", module)
    parts = re.findall(r"components=(.*?\])", line) or ["model loss"]
    return (4,) if "enable=True" in line and "loss" in parts[0] else (12, 14)


@pytest.mark.parametrize("folder", jobs("torchtitan"), ids=lambda path: path.name)
def test_job_and_model_read_back(folder: Path) -> None:
    plan = expressible(folder)[0]
    reading = read(files_of(plan))
    training = plan.pricing.training
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
    assert _layers(again) == _layers(plan.pricing.model)
    said = {k: v for k, v in plan.spec.stack.items() if k in ("name", "dispatcher")}
    if "recipe" in plan.spec.stack:
        # 6 B a logit, by hand: the loss with the nearest is compiled.
        said["loss"] = "compiled"
    assert dict(reading.stack) == said


def _layers(model: Architecture) -> tuple[object, ...]:
    return (model.runs, model.hidden, model.vocab, model.tied_embeddings)
