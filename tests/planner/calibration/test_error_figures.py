"""Every figure of a validation, from examples worked out by hand."""

import json

import pytest

from planner.calibration.accuracy.errors import Errors, accuracy, macro_accuracy
from planner.calibration.accuracy.outcome import Outcome
from planner.calibration.accuracy.ranking import macro_ranking, orders, ranking, sweeps
from planner.calibration.accuracy.summary import OomCounts, oom_counts, summarise
from planner.calibration.accuracy.validation import validation
from planner.specs.answer.estimate import TimeBreakdown


def row(name: str, predicted: float | None = None, **fields: object) -> Outcome:
    """A row measured at 10 s unless told otherwise, bounds 15 % around."""
    bounds = predicted and {
        "predicted_step_s": predicted,
        "step_low_s": predicted * 0.85,
        "step_high_s": predicted * 1.15,
    }
    known = {
        "id": name,
        "file": "a.yaml",
        "source": "a",
        "status": "ok",
        "gpu": "h100-sxm-80gb",
        "gpus": 64,
        "seq_len": 8192,
        "measured_step_s": 10.0,
        "verdict": "fits",
    }
    return Outcome.model_validate(known | (bounds or {}) | fields)


def test_step_errors_are_those_of_the_hand_calculation() -> None:
    """Errors of -20, -10, 0 and +50 %; 12.5, 9, 8 and 15 s against 10 s."""
    rows = [row("1", 8.0), row("2", 9.0), row("3", 10.0), row("4", 15.0)]
    its = accuracy(rows).step_time
    assert its.n == 4
    assert its.mape == pytest.approx(0.2)
    assert its.median == pytest.approx(0.15)
    assert its.p90 == pytest.approx(0.2 + 0.7 * 0.3)
    assert its.bias == pytest.approx(0.05)
    # 8 s reaches up to 9.2 s and 15 s down to 12.75 s: both miss.
    assert its.coverage == 0.5


def test_memory_has_figures_of_its_own() -> None:
    fields = {"predicted_memory_gib": 44.0, "measured_memory_gib": 40.0}
    bounds = {"memory_low_gib": 41.0, "memory_high_gib": 47.0}
    its = accuracy([row("1", **fields, **bounds), row("2", 10.0)]).memory
    assert its.n == 1
    assert its.median == its.bias == pytest.approx(0.1)
    assert its.coverage == 0.0


def test_claimed_gains_are_those_of_the_hand_calculation() -> None:
    """Plans of 10, 9.5, 9 and 8 s for 10 s: gains of 0, 5, 10 and 20 %."""
    plans = (10.0, 9.5, 9.0, 8.0)
    rows = [row(str(plan), 10.0, planned_step_s=plan) for plan in plans]
    its = summarise([*rows, row("not planned", 10.0)])
    assert its.claimed_gain.n == 4
    assert its.claimed_gain.median == pytest.approx(0.075)
    assert its.claimed_gain.p90 == pytest.approx(0.1 + 0.7 * 0.1)
    assert its.claimed_gain.over_8_percent == 0.5
    assert its.by_source["a"].claimed_gain == its.claimed_gain
    assert summarise([row("1", 10.0)]).claimed_gain.median is None


def test_no_rows_have_no_figures() -> None:
    assert accuracy([]).step_time == Errors()
    assert accuracy([row("1")]).step_time.median is None


def test_a_macro_figure_gives_each_source_the_same_weight() -> None:
    """Three rows at +10 % in one source, one at -30 % in the other."""
    rows = [row(str(i), 11.0) for i in range(3)] + [row("x", 7.0, source="b")]
    its = macro_accuracy(rows).step_time
    assert its.n == 2
    assert its.median == its.mape == its.p90 == pytest.approx(0.2)
    assert its.bias == pytest.approx(-0.1)
    assert its.coverage == pytest.approx(0.5)
    assert accuracy(rows).step_time.bias == pytest.approx(0.0)


def test_a_source_without_a_quantity_does_not_dilute_its_average() -> None:
    memory = {"predicted_memory_gib": 50.0, "measured_memory_gib": 40.0}
    rows = [row("1", 10.0), row("2", 10.0, source="b", **memory)]
    its = macro_accuracy(rows).memory
    assert (its.n, its.median) == (1, pytest.approx(0.25))


def test_out_of_memory_calls_are_counted_by_kind() -> None:
    called = [
        ("oom", True),
        ("at-risk", True),
        ("fits", True),
        ("oom", False),
        ("at-risk", False),
        ("fits", False),
        ("fits", False),
        ("", False),
    ]
    rows = [
        row(str(i), verdict=verdict, oom=oom) for i, (verdict, oom) in enumerate(called)
    ]
    assert oom_counts(rows) == OomCounts(
        true_positive=2,
        false_negative=1,
        false_positive=1,
        at_risk_ran=1,
        true_negative=2,
    )


def sweep_of(*times: tuple[float, float], **fields: object) -> list[Outcome]:
    """Rows of one job, each a (predicted, measured) time of its own layout."""
    return [
        row(
            f"{fields}{i}",
            predicted,
            measured_step_s=measured,
            sweep="job",
            layout=f"tp{i}",
            **fields,
        )
        for i, (predicted, measured) in enumerate(times)
    ]


def test_a_sweep_has_tau_regret_and_a_hit() -> None:
    """We rank the second best first, and the best third."""
    rows = sweep_of((1.0, 11.0), (2.0, 12.0), (3.0, 10.0), (4.0, 13.0))
    (its,) = sweeps(rows)
    assert its.layouts == 4
    assert its.kendall_tau == pytest.approx((4 - 2) / 6)
    assert its.top1_regret == pytest.approx(0.1)
    assert its.top3_hit


def test_a_pair_within_the_repeats_is_no_order_to_find() -> None:
    """Of six pairs two differ by less than 3 %; one of the others is turned."""
    rows = sweep_of((1.0, 10.2), (2.0, 10.0), (4.0, 12.0), (3.0, 12.3))
    (its,) = sweeps(rows)
    assert (its.pairs, its.pairs_right, its.kendall_tau) == (4, 1.0, 1.0)
    (turned,) = sweeps(sweep_of((1.0, 10.2), (2.0, 10.0), (4.0, 12.0), (0.5, 14.0)))
    assert (turned.pairs, turned.pairs_right) == (5, pytest.approx(2 / 5))
    assert turned.kendall_tau == pytest.approx((2 - 3) / 5)
    alike = sweep_of((1.0, 10.0), (2.0, 10.1), (3.0, 10.2), (4.0, 10.3))
    assert sweeps(alike) == ()


def test_one_predicted_time_for_two_measured_is_not_right() -> None:
    (its,) = sweeps(sweep_of((1.0, 10.0), (1.0, 12.0), (2.0, 14.0), (3.0, 16.0)))
    assert (its.pairs, its.pairs_right) == (6, pytest.approx(5 / 6))
    assert its.kendall_tau == pytest.approx(5 / 6)


def test_orders_say_by_how_much_the_measured_steps_differ() -> None:
    found = orders(sweep_of((1.0, 10.0), (2.0, 12.0), (3.0, 12.1), (2.5, 9.0)))
    assert sorted((round(o.difference, 3), o.agrees) for o in found) == [
        (0.111, -1), (0.2, 1), (0.21, 1), (0.333, -1), (0.344, 1),
    ]  # fmt: skip


def test_a_tied_plan_may_be_the_best() -> None:
    """Ties come from the time that two layouts spend differently."""

    def timed(step: float, bubble: float, measured: float) -> Outcome:
        causes = TimeBreakdown(compute=step - bubble, bubble=bubble)
        fields = {"causes_s": causes, "measured_step_s": measured, "sweep": "job"}
        return row(f"{step}", step, layout=f"pp{step}", **fields)

    rows = [timed(10.0, 0.0, 11.0), timed(13.0, 3.0, 13.0), timed(14.0, 4.0, 15.0)]
    (near,) = sweeps([*rows, timed(10.05, 1.0, 10.0)])
    (far,) = sweeps([*rows, timed(30.0, 20.0, 10.0)])
    assert (near.tied_hit, far.tied_hit) == (True, False)


def test_our_choice_is_the_simplest_that_ties() -> None:
    """The plainer plan is 2 % slower in our eyes, and 10 % faster in truth."""

    def timed(step: float, axes: int, measured: float) -> Outcome:
        causes = TimeBreakdown(compute=0.6 * step, bubble=0.4 * step * axes)
        fields = {"causes_s": causes, "complexity": (axes,), "sweep": "job"}
        fields |= {"measured_step_s": measured, "layout": f"pp{step}"}
        return row(f"{step}", step, **fields)

    rows = [timed(10.0, 2, 11.0), timed(13.0, 0, 13.0), timed(14.0, 2, 15.0)]
    (near,) = sweeps([*rows, timed(10.2, 1, 10.0)])
    (far,) = sweeps([*rows, timed(10.6, 1, 10.0)])
    assert (near.top1_regret, near.choice_regret) == (pytest.approx(0.1), 0.0)
    assert far.choice_regret == pytest.approx(0.1)


def test_the_best_in_fourth_place_is_a_miss() -> None:
    (its,) = sweeps(sweep_of((1.0, 11.0), (2.0, 12.0), (3.0, 13.0), (4.0, 10.0)))
    assert not its.top3_hit


def test_predictions_that_tie_keep_their_stated_order() -> None:
    (its,) = sweeps(sweep_of((1.0, 12.0), (1.0, 10.0), (2.0, 13.0), (3.0, 14.0)))
    assert its.top1_regret == pytest.approx(0.2)


def test_three_layouts_are_no_sweep() -> None:
    assert sweeps(sweep_of((1.0, 1.0), (2.0, 2.0), (3.0, 3.0))) == ()


def test_one_layout_measured_four_times_is_no_sweep() -> None:
    clones = [
        row(str(i), 9.0, measured_step_s=9.0 + i, sweep="job", layout="tp8")
        for i in range(4)
    ]
    assert sweeps(clones) == ()


def test_rows_without_a_job_or_a_time_are_not_ranked() -> None:
    rows = sweep_of((1.0, 1.0), (2.0, 2.0), (3.0, 3.0), (4.0, 4.0))
    loose = [r.model_copy(update={"sweep": ""}) for r in rows]
    unmeasured = [rows[0].model_copy(update={"measured_step_s": None}), *rows[1:]]
    assert sweeps(loose) == sweeps(unmeasured) == ()


def test_means_of_sweeps_go_over_sweeps_and_over_sources() -> None:
    right = [(1.0, 1.0), (2.0, 2.0), (3.0, 3.0), (4.0, 4.0)]
    wrong = [(4.0, 1.0), (3.0, 2.0), (2.0, 3.0), (1.0, 4.0)]
    rows = [
        *sweep_of(*right, source="a"),
        *[r.model_copy(update={"sweep": "2"}) for r in sweep_of(*right, source="a")],
        *sweep_of(*wrong, source="b"),
    ]
    found = sweeps(rows)
    assert ranking(found).groups == 3
    assert ranking(found).pairs_right == pytest.approx(2 / 3)
    assert ranking(found).kendall_tau == pytest.approx(1 / 3)
    assert ranking(found).top1_regret == pytest.approx(1.0)
    assert ranking(found).top3_hit_rate == pytest.approx(2 / 3)
    assert macro_ranking(found).groups == 2
    assert macro_ranking(found).kendall_tau == pytest.approx(0.0)


def test_a_summary_counts_what_counts() -> None:
    rows = [
        row("ok", 11.0, stack="megatron-2024"),
        row("suspect", 20.0, counted=False, note="a typo in the table"),
        row("unsupported", status="unsupported", reason="an unknown GPU"),
        row("aside", status="unsupported", counted=False),
        row("invalid", status="invalid"),
    ]
    its = summarise(rows)
    assert (its.rows, its.suspect, its.unsupported, its.invalid) == (2, 2, 1, 1)
    assert its.step_time.n == 1
    assert its.by_stack.keys() == {"megatron-2024"}
    assert its.macro.step_time.median == pytest.approx(0.1)


def test_groups_are_in_order_of_size() -> None:
    lengths = (131072, 8192, 4096, 32768, 2048)
    rows = [row(str(n), 10.0, seq_len=n, gpus=n // 8) for n in lengths]
    its = summarise(rows)
    assert list(its.by_context) == ["up to 4k", "8k", "16k to 32k", "over 32k"]
    assert its.by_context["up to 4k"].step_time.n == 2
    assert list(its.by_scale) == ["65 to 512", "513 to 4096", "over 4096"]


def test_the_answer_has_the_fields_that_scripts_read() -> None:
    rows = [row("1", 11.0), row("2", 13.0, gpu="v100-sxm2-16gb")]
    data = json.loads(validation(rows).model_dump_json(by_alias=True))
    assert data["schema"] == "planner/validation@1"
    first = data["rows"][0]
    assert (first["id"], first["status"], first["reason"]) == ("1", "ok", "")
    assert first["predicted"]["step_time_s"] == 11.0
    assert first["predicted"]["peak_memory_gib"] is None
    assert first["predicted"]["verdict"] == "fits"
    assert first["measured"]["oom"] is False
    assert first["error"] == {"step_time": pytest.approx(0.1), "memory": None}
    assert first["within_interval"] is True
    names = {"n", "mape", "median", "p90", "bias", "coverage"}
    for summary in (data["summary"], data["summary_v100"]):
        assert summary["step_time"].keys() == summary["memory"].keys() == names
        assert summary["step_time"]["n"] == 1
        assert summary["ranking"].keys() == {
            "groups",
            "pairs_right",
            "kendall_tau",
            "top1_regret",
            "choice_regret",
            "top3_hit_rate",
            "tied_hit_rate",
        }
        assert (summary["unsupported"], summary["invalid"]) == (0, 0)
