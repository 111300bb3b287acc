"""The job of a measured row is planned within the limits of the row's software."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from planner.calibration.accuracy.claims import Searching, _case, _job, with_claims
from planner.calibration.accuracy.outcome import Outcome
from planner.calibration.accuracy.price import price_row
from planner.calibration.rows.rows import Row, read_rows
from planner.hardware.reading.files import SHIPPED
from planner.specs.search import SearchSpec

ROWS = Path(__file__).resolve().parents[4] / "benchmarks" / "accuracy" / "rows"
ALONE = Searching(seconds=20.0, workers=1, catalog=SHIPPED)
EIGHT = ("titan2412-8b-8g-fsdp", "titan2412-8b-8g-compile-fp8")


def rows_of(source: str, names: Iterable[str]) -> list[Row]:
    rows = {row.id: row for row in read_rows([ROWS / f"{source}.yaml"]).rows}
    return [rows[name] for name in names]


@pytest.fixture(scope="module")
def claimed() -> tuple[list[Outcome], list[int]]:
    """One job measured once, another twice."""
    first, second = rows_of("torchtitan", EIGHT)
    rows = [first, second, second]
    told: list[int] = []
    outcomes = [price_row(row, catalog=SHIPPED) for row in rows]
    answer = with_claims(rows, outcomes, ALONE, lambda _done, total: told.append(total))
    return answer, told


@pytest.mark.slow
def test_a_plan_is_never_slower_than_the_measured_layout(
    claimed: tuple[list[Outcome], list[int]],
) -> None:
    for row in claimed[0]:
        assert row.predicted_step_s
        assert row.planned_step_s
        assert row.planned_step_s <= row.predicted_step_s
        assert row.claimed_gain == 1 - row.planned_step_s / row.predicted_step_s
        assert row.planned_status == "optimal"
        assert row.planned_layout


def test_rows_of_one_job_share_a_plan(
    claimed: tuple[list[Outcome], list[int]],
) -> None:
    answer, told = claimed
    assert told == [2, 2]
    assert answer[1] == answer[2]
    assert answer[0].planned_step_s != answer[1].planned_step_s


def test_an_unpriced_row_is_left_as_it_is() -> None:
    (row,) = rows_of("torchtitan", EIGHT[:1])
    gone = Outcome(id=row.id, file="", source="", status="unsupported", reason="why")
    assert with_claims([row], [gone], ALONE) == [gone]
    assert gone.claimed_gain is None


def test_a_plan_is_within_the_limits_of_the_row_s_stack() -> None:
    name = "narayanan21-t2-zero3-gpt-175b-384g"
    (row,) = rows_of("megatron-2021-a100", [name])
    case = _case(row, ALONE)
    assert case.workload.framework.limits.pipeline
    limits = _job(case).framework.limits
    assert (limits.pipeline, limits.zero_stages) == (False, (3,))


@pytest.mark.parametrize(
    ("source", "name", "search"),
    [
        ("nemo-a100-launcher", "nemo-a100-2022-04-gpt3-5b-1n", {"zero_stage": 0}),
        (
            "mlperf-v4.1",
            "mlperf-v4-1-nvidia-eos-ngc24-09-nemo-llama2-70b-lora",
            {"vpp": 1},
        ),
        ("torchtitan", EIGHT[0], {}),
    ],
)
def test_a_plan_uses_what_the_software_of_the_row_had(
    source: str, name: str, search: dict[str, object]
) -> None:
    (row,) = rows_of(source, [name])
    assert _job(_case(row, ALONE)).search == SearchSpec.model_validate(search)


def test_a_row_that_offloads_may_be_planned_with_offload() -> None:
    rows = read_rows([ROWS / "megatron-kwai.yaml"]).rows
    row = next(row for row in rows if row.normalised.offload.activations > 0)
    assert _job(_case(row, ALONE)).search.offload is True
