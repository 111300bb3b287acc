"""The user's calibration file: what it changes, and how a wrong one is told."""

from pathlib import Path

import pytest
import yaml

from planner.errors import BadInputError
from planner.hardware.calibration import calibration
from planner.hardware.reading.files import SHIPPED
from planner.job.calibration_file import read_calibration
from planner.job.resolve import resolve
from planner.specs.job import JobSpec

GEMM = {"efficiency": 0.5, "traffic": 0.5, "overhead": "3 us", "source": "here"}
FIT = {
    "gpu": "h100-sxm5-80gb",
    "stack": "megatron-2024",
    "constants": {"clock": 0.9, "step_overhead": 0},
    "rows": 3,
    "residual": 0.02,
}
JOB = {
    "model": "llama-3.1-8b",
    "cluster": {"node": "dgx-h100", "nodes": 1},
    "framework": "megatron",
    "training": {"seq_len": 8192, "global_batch": 32},
}


def written(folder: Path, content: object) -> Path:
    path = folder / "mine.yaml"
    path.write_text(yaml.safe_dump(content))
    return path


def test_a_job_is_priced_with_what_was_measured(tmp_path: Path) -> None:
    file = {"gpus": {"h100-sxm5-80gb": {"gemm": {"bf16": GEMM}}}}
    own = read_calibration(written(tmp_path, file), catalog=SHIPPED)
    spec = JobSpec.model_validate(JOB)
    (ours,) = resolve(spec, file="job", base=tmp_path)
    (theirs,) = resolve(spec, file="job", base=tmp_path, calibration=own)
    assert ours.calibration == calibration("h100-sxm5-80gb", SHIPPED)
    assert theirs.calibration.gemm["bf16"].efficiency == 0.5
    assert theirs.calibration.attention == ours.calibration.attention


def test_a_gpu_that_the_file_lacks_keeps_its_own(tmp_path: Path) -> None:
    own = read_calibration(written(tmp_path, {"stacks": [FIT]}), catalog=SHIPPED)
    b200 = calibration("b200-sxm-180gb", SHIPPED)
    assert own.kernels(b200) is b200
    assert own.fit("h100-sxm5-80gb", "megatron", "megatron-2024") == own.stacks[0]
    assert own.fit("h100-sxm5-80gb", "megatron", "megatron-2021") is None


def test_a_stack_of_one_name_in_two_rooms_is_two_stacks(tmp_path: Path) -> None:
    base = {**FIT, "stack": "hf-trainer"}
    fits = [{**base, "framework": "deepspeed", "rows": 4}, base]
    own = read_calibration(written(tmp_path, {"stacks": fits}), catalog=SHIPPED)
    named = own.fit("h100-sxm5-80gb", "deepspeed", "hf-trainer")
    other = own.fit("h100-sxm5-80gb", "accelerate", "hf-trainer")
    assert (named, other) == own.stacks


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([1], "holds a list"),
        ({"gpu": {}}, "gpu: no such key; did you mean gpus"),
        ({"gpus": {}}, "has neither gpus nor stacks"),
        ({"gpus": {"h100-sxm": {}}}, "gpus.h100-sxm: no such GPU; did you mean h100"),
        ({"gpus": {"l40s": {"gem": {}}}}, "gpus.l40s: gem: no such section"),
        (
            {"gpus": {"l40s": {"memory": {"efficiency": 2}}}},
            "gpus.l40s: memory.efficiency: ",
        ),
        ({"stacks": [FIT | {"gpu": "h10"}]}, "stacks.0.gpu: no such GPU"),
        ({"stacks": [FIT, FIT]}, "megatron-2024 on h100-sxm5-80gb is given twice"),
        ({"stacks": [FIT | {"constants": {"clock": 0}}]}, "clock is a factor"),
        ({"stacks": [FIT | {"constants": {"clok": 1}}]}, "stacks.0.constants"),
        ({"stacks": [FIT | {"constants": {"clock": 9}}]}, "clock of 9 is not between"),
        ({"stacks": [FIT | {"constants": {"network": 1e9}}]}, "network of 1e+09"),
        ({"stacks": [FIT | {"constants": {"step_overhead": 1e5}}]}, "over an hour"),
        ({"stacks": [FIT | {"step_factor": 20}]}, "stacks.0.step_factor"),
        ({"stacks": [FIT | {"stack": "megatron-204"}]}, "stacks.0.stack: no such"),
        ({"stacks": [FIT | {"framework": "torchtita"}]}, "did you mean torchtitan"),
        ({"schema": "planner/calibration@9", "stacks": [FIT]}, "schema: "),
    ],
)
def test_a_wrong_file_is_told_with_its_field(
    tmp_path: Path, content: object, message: str
) -> None:
    path = written(tmp_path, content)
    with pytest.raises(BadInputError) as told:
        read_calibration(path, catalog=SHIPPED)
    assert str(told.value).startswith(str(path))
    assert message in str(told.value)
