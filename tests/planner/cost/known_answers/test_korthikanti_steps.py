"""Step times of the four Korthikanti models, with constants that know none of them."""

import pytest
from strategies import framework, topology

from planner.cost.workload import Workload
from planner.frameworks.stacks import with_stack
from planner.hardware.calibration import calibration
from planner.hardware.reading.files import SHIPPED
from planner.models import preset
from planner.planning.prediction.predict import predict
from planner.specs.layouts.layout import PartialLayout
from planner.specs.training import TrainingSpec

RUNS = {
    "22b": (8, 4, 4, 1, 1, 1.42, 1.10),
    "175b": (64, 64, 1, 8, 3, 18.13, 13.75),
    "530b": (280, 280, 1, 35, 3, 49.05, 37.83),
    "1t": (512, 512, 1, 64, 1, 94.42, 71.49),
}
"""GPUs, batch, micro-batch, p, v; measured steps with full recompute and with
sequence parallelism and selective recompute (table 5). [1] and [s]"""


@pytest.mark.parametrize("technique", ["full", "selective"])
@pytest.mark.parametrize("name", RUNS)
def test_a_step_is_within_seven_percent(name: str, technique: str) -> None:
    """A100, t = 8, s = 2048, explicit scores, the stack of that year."""
    gpus, batch, micro_batch, pp, vpp, *measured = RUNS[name]
    cluster = topology("dgx-a100-80gb", gpus // 8)
    workload = Workload(
        preset(f"megatron-gpt-{name}"),
        TrainingSpec(seq_len=2048, global_batch=batch, precision="fp16"),
        with_stack(framework("megatron"), "megatron-2022"),
        cluster,
        calibration(cluster.cluster.gpu.name, SHIPPED),
    )
    layout = PartialLayout(
        tp=8,
        sp=technique == "selective",
        pp=pp,
        vpp=vpp,
        zero_stage=0,
        micro_batch=micro_batch,
        schedule="interleaved" if vpp > 1 else "1f1b",
        recompute=technique,
        stages="even",
    )
    step = predict(workload, layout).estimate.step_time_s.value
    truth = measured[technique == "selective"]
    error = step / truth - 1
    print(f"{name} {technique}: {step:.2f} s for {truth} s, {error:+.1%}")  # noqa: T201
    assert abs(error) < 0.07
