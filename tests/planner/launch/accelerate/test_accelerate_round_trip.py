"""What is emitted for accelerate reads back as the plan that it was written from."""

import ast
from pathlib import Path

import pytest
import yaml
from accelerate_plans import drawn_plans, jobs

from planner.frameworks.accelerate.launch.known import unknown_arguments, unknown_keys
from planner.launch import emit
from planner.launch.emit import CHECK, PLAN, README
from planner.launch.read_plan import PlanFile
from planner.launch.targets.accelerate.reader import read, reads
from planner.planning.prediction.predict import complete
from planner.specs.job import JobSpec
from planner.specs.layouts.layout import PartialLayout

COUNT = 5


def files_of(found: PlanFile, target: str = "accelerate") -> dict[str, str]:
    """Files that `planner import` sees of the folder."""
    every = {file.name: file.text for file in emit(found, target)}
    return {n: t for n, t in every.items() if n not in (PLAN, README, CHECK)}


@pytest.fixture(scope="module", params=jobs(), ids=lambda path: path.name)
def plans(request: pytest.FixtureRequest) -> list[PlanFile]:
    folder: Path = request.param
    return drawn_plans(folder, COUNT)


def test_layouts_read_back_as_they_were_written(plans: list[PlanFile]) -> None:
    assert plans
    for plan in plans:
        files = files_of(plan)
        reading = read(files)
        partial = PartialLayout.model_validate(reading.layout_on(plan.brief.cluster))
        assert complete(plan.pricing, partial) == plan.plan.layout
        assert reading.unknown == ()
        assert reading.gpus == plan.plan.layout.gpus
        assert reads(files)


def test_the_training_block_and_the_stack_read_back(plans: list[PlanFile]) -> None:
    plan = plans[0]
    reading, its = read(files_of(plan)), plan.pricing.training
    assert reading.training["seq_len"] == its.seq_len
    assert reading.training["global_batch"] == its.sequences
    assert reading.training["precision"] == its.precision
    assert reading.training["optimizer"] == its.optimizer
    assert reading.training.get("method", "full") == its.method
    assert reading.training.get("lora", {}).get("rank", 16) == its.lora.rank
    given = {k: v for k, v in plan.spec.stack.items() if v != "hf-fsdp2"}
    assert reading.stack == given


def test_every_key_is_one_that_somebody_reads(plans: list[PlanFile]) -> None:
    for plan in plans:
        files = files_of(plan)
        places = yaml.safe_load(files["accelerate.yaml"])
        assert list(unknown_keys(places)) == []
        given = yaml.safe_load(files["training.yaml"])
        assert list(unknown_arguments(given)) == []


def test_the_sizes_of_a_mesh_make_up_the_ranks(plans: list[PlanFile]) -> None:
    for plan in plans:
        places = yaml.safe_load(files_of(plan)["accelerate.yaml"])
        assert places["num_processes"] == plan.plan.layout.gpus
        assert places["use_cpu"] is False
        mesh = places.get("parallelism_config", {})
        sizes = [n for key, n in mesh.items() if key.endswith("_size")]
        if "parallelism_config_dp_shard_size" in mesh:
            product = 1
            for size in sizes:
                product *= size
            assert product == plan.plan.layout.gpus


def test_blocks_are_checkpointed_by_one_of_two(plans: list[PlanFile]) -> None:
    """Trainer stops where FSDP and it both checkpoint."""
    for plan in plans:
        files = files_of(plan)
        given = yaml.safe_load(files["training.yaml"])["gradient_checkpointing"]
        places = yaml.safe_load(files["accelerate.yaml"])
        its = places.get("fsdp_config", {}).get("fsdp_activation_checkpointing", False)
        full = plan.plan.layout.stages[0].recompute[0].kind == "full"
        assert (given or its) is full
        assert not (given and its)


def test_torchrun_starts_the_same_script(plans: list[PlanFile]) -> None:
    plan = plans[0]
    own, plain = files_of(plan), files_of(plan, "torchrun")
    assert "accelerate launch" in own["launch.sh"]
    assert "accelerate launch" not in plain["launch.sh"]
    assert "torchrun --nnodes" in plain["launch.sh"]
    for name in ("accelerate.yaml", "training.yaml", "run.yaml", "train.py"):
        assert own[name] == plain[name]
    ast.parse(plain["train.py"])
    assert read(plain).layout == read(own).layout


def test_what_is_read_is_a_job(plans: list[PlanFile]) -> None:
    reading = read(files_of(plans[0]))
    JobSpec.model_validate(
        {
            "model": dict(reading.model),
            "cluster": "any",
            "training": dict(reading.training),
            "stack": dict(reading.stack),
            "framework": reading.framework,
            "layout": dict(reading.layout),
        }
    )
