"""Keys of ds_config.json that change the price are read or refused, none dropped."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.errors import BadInputError
from planner.frameworks.deepspeed.launch.known import blocks
from planner.job.resolve import resolve
from planner.launch.brief import Reading
from planner.launch.importing import UserOverrides, import_spec, read_texts
from planner.planning.prediction.predict import predict
from planner.specs.job import JobSpec

BF16: dict[str, Any] = {"bf16": {"enabled": True}}
TRAINER = "per_device_train_batch_size: 2\nmax_length: 2048\nbf16: true\n"
TARGETS = ("deepspeed", "accelerate")


def reading(its: dict[str, Any], target: str, trainer: str = TRAINER) -> Reading:
    whole = {"zero_optimization": {"stage": 2}, **BF16, **its}
    files = {"ds.json": json.dumps(whole), "t.yaml": f"{trainer}deepspeed: ds.json\n"}
    return read_texts(files, target, "ds.json")


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("its", "name"),
    [
        (
            {"bf16": {"enabled": True, "bf16_master_weights_and_grads": True}},
            "bf16.bf16_master_weights_and_grads",
        ),
        (
            {"bf16": {"enabled": True, "bf16_optimizer_states": True}},
            "bf16.bf16_optimizer_states",
        ),
        ({"communication_data_type": "fp16"}, "communication_data_type"),
        ({"data_types": {"grad_accum_dtype": "bf16"}}, "data_types.grad_accum_dtype"),
        ({"torch_autocast": {"enabled": True}}, "torch_autocast.enabled"),
        ({"compile": {"deepcompile": True}}, "compile.deepcompile"),
        ({"data_efficiency": {"enabled": True}}, "data_efficiency.enabled"),
        ({"autotuning": {"enabled": True}}, "autotuning.enabled"),
        (
            {"zero_optimization": {"stage": 2, "reduce_scatter": False}},
            "zero_optimization.reduce_scatter",
        ),
        ({"optimizer": {"type": "OneBitAdam"}}, "optimizer.type"),
        ({"gradient_cliping": 1.0}, "gradient_cliping"),
    ],
)
def test_what_no_price_holds_is_told(
    its: dict[str, Any], name: str, target: str
) -> None:
    assert [each.name for each in reading(its, target).unknown] == [name]


@pytest.mark.parametrize("target", TARGETS)
def test_formats_and_optimizer_are_read(target: str) -> None:
    its = {
        "communication_data_type": "bf16",
        "data_types": {"grad_accum_dtype": "torch.float32"},
        "optimizer": {"type": "SGD", "params": {"momentum": 0.9}},
        "torch_autocast": {"enabled": False},
        "compile": {"deepcompile": False},
    }
    found = reading(its, target)
    assert found.unknown == ()
    assert found.layout["comm_dtype"] == {"gradients": "bf16"}
    assert found.training["optimizer"] == "sgd-momentum"


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("stage", "beside", "behind"),
    [(2, False, True), (2, True, False), (1, False, True), (3, False, False)],
)
def test_gradients_that_are_reduced_behind_the_backward_are_read(
    target: str,
    stage: int,
    beside: bool,  # noqa: FBT001  # a switch
    behind: bool,  # noqa: FBT001
) -> None:
    its = {"zero_optimization": {"stage": stage, "overlap_comm": beside}}
    found = reading(its, target)
    assert found.unknown == ()
    assert (found.stack.get("overlap_grad_reduce") is False) is behind


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("optim", ["adafactor", "paged_adamw_8bit", "lion_32bit"])
def test_two_optimizers_are_refused(target: str, optim: str) -> None:
    its = {"optimizer": {"type": "AdamW"}}
    with pytest.raises(BadInputError, match="optim: is adamw as") as no:
        reading(its, target, f"{TRAINER}optim: {optim}\n")
    assert no.value.file == "t.yaml:4"
    assert reading(its, target, f"{TRAINER}optim: adamw_torch\n").unknown == ()


SETTLED = [
    (block, name, values)
    for block, its in blocks().items()
    for name, values in its.priced.items()
]


@given(st.sampled_from(SETTLED), st.sampled_from(TARGETS), st.booleans())
def test_a_judged_key_is_told_but_with_the_values_that_are_priced(
    one: tuple[str, str, tuple[object, ...]],
    target: str,
    off: bool,  # noqa: FBT001  # drawn
) -> None:
    block, name, values = one
    on = not values[0] if values and isinstance(values[0], bool) else "other"
    its: dict[str, Any] = {name: values[0] if off and values else on}
    for part in reversed(block.split(".") if block else ()):
        its = {part: {"stage": 3, **its} if part == "zero_optimization" else its}
    if block == "bf16":
        its["bf16"]["enabled"] = True
    path = f"{block}.{name}" if block else name
    told = {each.name for each in reading(its, target).unknown}
    assert told == (set() if off and values else {path})


def test_the_wire_of_a_file_is_priced(tmp_path: Path) -> None:
    steps = {}
    for wire in ("fp32", "bf16"):
        told = UserOverrides(model="llama-3.1-8b", on="16xh100")
        found = reading({"communication_data_type": wire}, "deepspeed")
        job = JobSpec.model_validate(import_spec(found, told, []))
        (workload,) = resolve(job, file="job", base=tmp_path)
        priced = predict(workload, job.layout)
        assert priced.layout.comm_dtype.gradients == wire
        steps[wire] = priced.estimate.step_time_s.value
    assert steps["bf16"] < steps["fp32"]
