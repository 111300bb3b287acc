"""Each batch of a ramp is priced at its own step time; phases are jobs of their own."""

from pathlib import Path

import pytest

from planner.cost.estimate.estimate import estimate
from planner.errors import BadInputError
from planner.hardware.reading.files import SHIPPED
from planner.job.loading import load
from planner.planning.economics import Planned, run_of, stretches_of
from planner.planning.prediction.predict import predict
from planner.specs.economics import EconomicsSpec
from planner.specs.layouts.layout import Offload, PartialLayout
from planner.specs.reading.layout_line import read_layout
from planner.specs.reading.read import read_spec

JOB = Path("llama-3-8b-8-a100")
LAYOUT = read_layout("tp=2,dp=4,micro_batch=1,zero_stage=1,recompute=full")


def planned(*assignments: str, layout: PartialLayout = LAYOUT) -> Planned:
    job = load(JOB, assignments, catalog=SHIPPED)
    (workload,) = job.workloads
    assert job.spec.training is not None
    return Planned("", workload, predict(workload, layout), job.spec.training)


def ramp(*steps: tuple[int, float]) -> str:
    entries = ", ".join(f"{{global_batch: {b}, tokens: {t:g}}}" for b, t in steps)
    return f"training.batch_ramp=[{entries}]"


def test_smaller_batches_come_first_at_their_own_step_time() -> None:
    one = planned("training.tokens=1e12", ramp((8, 1e11), (32, 2e11)))
    first, second, rest = stretches_of(one.workload, one.plan)
    assert [s.tokens for s in (first, second, rest)] == pytest.approx(
        [1e11, 2e11, 7e11]
    )
    assert first.layout.grad_accum == 2
    assert second.layout.grad_accum == 8
    again = estimate(first.workload, first.layout)
    assert first.estimate.step_time_s == again.step_time_s
    # A smaller batch pays the exchange of gradients more often.
    rates = [s.estimate.tokens_per_s for s in (first, second, rest)]
    assert rates == sorted(rates)


def test_a_ramp_makes_a_run_longer_by_its_own_steps() -> None:
    plain = planned("training.tokens=1e12")
    ramped = planned("training.tokens=1e12", ramp((8, 1e11)))
    whole, slower = (run_of([one], EconomicsSpec()) for one in (plain, ramped))
    assert whole is not None
    assert slower is not None
    assert slower.tokens == whole.tokens
    assert slower.time_to_train_s.value > whole.time_to_train_s.value
    assert [part.sequences for part in slower.stretches] == [8, 128]
    assert slower.reshard_s == 0


def test_a_batch_without_virtual_stages_keeps_offload_and_formats() -> None:
    """Two micro-batches on four ranks are too few for an interleaved schedule."""
    chunked = "pp=4,vpp=2,dp=2,micro_batch=1,zero_stage=1,recompute=full"
    given = read_layout(f"{chunked},offload={{optimizer: 1}}")
    one = planned("training.tokens=1e12", ramp((4, 1e11)), layout=given)
    small, rest = stretches_of(one.workload, one.plan)
    assert (small.layout.vpp, rest.layout.vpp) == (1, 2)
    assert small.layout.offload == rest.layout.offload != Offload()
    assert small.layout.comm_dtype == rest.layout.comm_dtype


def test_a_batch_that_the_replicas_do_not_share_is_refused() -> None:
    one = planned("training.tokens=1e12", ramp((6, 1e11)))
    with pytest.raises(BadInputError, match="4 replicas") as error:
        stretches_of(one.workload, one.plan)
    assert error.value.field == "training.batch_ramp"


def test_a_job_without_tokens_has_no_run() -> None:
    assert run_of([planned()], EconomicsSpec()) is None


def test_phases_keep_the_tokens_of_a_step() -> None:
    spec = read_spec(Path("llama-3.1-405b-two-phases"))
    (short, one), (long, other) = spec.in_phases()
    assert (short, long) == ("short", "long")
    assert one.training.sequences * 8192 == other.training.sequences * 131_072
    assert (one.layout.cp, other.layout.cp) == (None, 16)
    assert one.training.tokens + other.training.tokens == pytest.approx(16e12)
    assert one.phases == other.phases == ()
