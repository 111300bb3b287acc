"""The least change that makes a job fit is named, and the job fits after it."""

from pathlib import Path

import pytest

from planner.hardware.reading.files import SHIPPED
from planner.job.loading import as_read, workload_of_one
from planner.planning.capacity.capacity import training_memory
from planner.specs.answer.memory import TrainingMemory
from planner.specs.layouts.layout import PartialLayout
from planner.specs.reading.layout_line import read_layout
from planner.specs.reading.read import Fields, assigned

CARD: Fields = {
    "model": "llama-3.1-8b",
    "cluster": "rtx-4090-1",
    "training": {"seq_len": 2048, "global_batch": 16, "method": "lora"},
    "framework": "accelerate",
}
PAIR: Fields = {
    "model": "qwen2.5-3b",
    "cluster": {"name": "two", "node": "workstation-rtx-4090-2", "nodes": 1},
    "training": {"seq_len": 2048, "global_batch": 16},
    "framework": "deepspeed",
}


def answer(
    job: Fields, layout: str = "", options: tuple[str, ...] = ()
) -> TrainingMemory:
    """`planner memory` on a job, with options of the command line."""
    pairs = list(zip(options[::2], options[1::2], strict=True))
    sets = [value for name, value in pairs if name == "--set"]
    layouts = [value for name, value in pairs if name == "--layout"]
    text = layouts[0] if layouts else layout
    spec = assigned(dict(job), sets, Path(), "a test", catalog=SHIPPED)
    workload = workload_of_one(as_read(spec, "a test", Path(), SHIPPED))
    given = read_layout(text) if text else PartialLayout()
    return training_memory(workload, given)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("job", "layout", "change"),
    [
        (CARD, "", "qlora"),
        (PAIR, "", "states in host memory"),
        (PAIR | {"cluster": "dgx-a100-1-node"}, "zero_stage=0,micro_batch=2", "layout"),
    ],
    ids=["lora on a card", "full on two", "another layout"],
)
def test_the_change_is_named_and_fits(job: Fields, layout: str, change: str) -> None:
    found = answer(job, layout)
    told = found.cheapest_change
    assert found.memory.verdict != "fits"
    assert told is not None
    assert told.change.startswith(change)
    after = answer(job, layout, told.options)
    assert after.memory.verdict == told.verdict == "fits"


@pytest.mark.usefixtures("own_method")
def test_a_job_that_fits_needs_no_change() -> None:
    found = answer(CARD | {"model": "llama-3.2-1b"})
    assert found.memory.verdict == "fits"
    assert found.cheapest_change is None


@pytest.mark.slow
@pytest.mark.usefixtures("own_method")
def test_without_another_method_sequences_get_shorter_or_gpus_more() -> None:
    long = {"seq_len": 16384, "global_batch": 16, "method": "qlora"}
    told = answer(CARD | {"training": long}).cheapest_change
    assert told is not None
    assert told.options[1].startswith("training.seq_len=")


@pytest.mark.usefixtures("own_method")
def test_where_weights_alone_are_too_many_more_gpus_are_named() -> None:
    told = answer(CARD | {"model": "llama-3.1-70b"}).cheapest_change
    assert told is not None
    assert told.options[1] == "cluster.node=server-rtx-4090-8"
    assert told.gpus == 8
