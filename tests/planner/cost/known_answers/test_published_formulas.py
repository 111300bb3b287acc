"""Closed forms give the figures that their sources print."""

import pytest
from closed_forms import (
    gpt_step_flops,
    gpt_step_flops_full,
    gpt_step_flops_selective,
    parameter_flops_per_token,
    time_to_train,
)

from planner.models import preset
from planner.planning.economics.goodput import lost_fraction, young_daly_interval

DAY, HOUR = 86_400, 3_600
A100, H100, H800 = 312e12, 989e12, 989e12
"""Dense bf16 peaks. [FLOP/s]"""
GPT = {
    "22b": {"sequences": 4, "layers": 48, "hidden": 6_144},
    "175b": {"sequences": 64, "layers": 96, "hidden": 12_288},
    "530b": {"sequences": 280, "layers": 105, "hidden": 20_480},
    "1t": {"sequences": 512, "layers": 128, "hidden": 25_600},
}
"""Korthikanti et al., table 3; s = 2048 and V = 51200 for all. [1]"""
SECONDS = {
    "22b": (8, 1.10),
    "175b": (64, 13.75),
    "530b": (280, 37.83),
    "1t": (512, 71.49),
}
"""GPUs and measured step with sequence parallelism and selective recompute. [s]"""


@pytest.mark.parametrize(
    ("parameters", "tokens", "gpus", "tflops", "days"),
    [(174.6e9, 300e9, 1024, 140, 33.8), (1008e9, 450e9, 3072, 163, 83.9)],
)
def test_training_times_of_gpt3_and_of_a_trillion_parameters(
    parameters: float, tokens: float, gpus: int, tflops: int, days: float
) -> None:
    """Narayanan et al. print 34 and 84 days."""
    seconds = time_to_train(tokens, parameters, rate=gpus * tflops * 1e12)
    assert seconds / DAY == pytest.approx(days, abs=0.06)


@pytest.mark.parametrize(
    ("name", "mfu"), [("22b", 41.7), ("175b", 51.4), ("530b", 56.0), ("1t", 56.3)]
)
def test_mfu_of_the_korthikanti_runs(name: str, mfu: float) -> None:
    """Published: 41.5, 51.4, 56.0 and 56.3 %."""
    gpus, seconds = SECONDS[name]
    flops = gpt_step_flops(**GPT[name], seq_len=2048, vocab=51_200)
    assert 100 * flops / (gpus * A100 * seconds) == pytest.approx(mfu, abs=0.05)


@pytest.mark.parametrize(
    ("name", "hfu"), [("22b", 43.8), ("175b", 52.8), ("530b", 57.0), ("1t", 57.0)]
)
def test_hfu_of_the_korthikanti_runs(name: str, hfu: float) -> None:
    """Published: 43.7, 52.8, 57.0 and 57.0 %, with the formula's s / (3 h)."""
    gpus, seconds = SECONDS[name]
    flops = gpt_step_flops_selective(**GPT[name], seq_len=2048, vocab=51_200)
    assert 100 * flops / (gpus * A100 * seconds) == pytest.approx(hfu, abs=0.05)


@pytest.mark.parametrize("name", GPT)
def test_the_closed_form_counts_what_the_layers_count(name: str) -> None:
    """72 B L s h^2 (...) equals the FLOPs that the model's own layers add up to."""
    model = preset(f"megatron-gpt-{name}")
    per_token = model.model_flops_per_token(2048, "full")
    flops = gpt_step_flops(**GPT[name], seq_len=2048, vocab=51_200)
    assert per_token * 2048 * GPT[name]["sequences"] == pytest.approx(flops, rel=1e-12)


@pytest.mark.parametrize(
    ("layers", "hidden", "sequences", "tflops", "gpus", "seconds"),
    [
        (80, 12_288, 2304, 148, 1536, 24.82),
        (105, 20_480, 2520, 163, 2520, 54.08),
        (128, 25_600, 3072, 163, 3072, 102.63),
    ],
)
def test_step_times_that_follow_from_printed_rates(
    layers: int,
    hidden: int,
    sequences: int,
    tflops: int,
    gpus: int,
    seconds: float,
) -> None:
    """Narayanan et al., table 1: FLOPs of a step over the achieved rate."""
    flops = gpt_step_flops_full(
        sequences=sequences, layers=layers, seq_len=2048, hidden=hidden, vocab=51_200
    )
    assert flops / (gpus * tflops * 1e12) == pytest.approx(seconds, rel=1e-3)


def test_full_recompute_adds_one_forward_of_the_layers() -> None:
    """96 - 72 = 24 B L s h^2 (1 + s / (6 h)): a third of the layers' work, no head."""
    job = {**GPT["175b"], "seq_len": 2048}
    kept, again = gpt_step_flops(**job, vocab=0), gpt_step_flops_full(**job, vocab=0)
    assert again == pytest.approx(kept * 4 / 3, rel=1e-12)


def test_the_phases_of_deepseek_v3_add_up_to_its_step() -> None:
    """Published: 19.926 s, 272.8 B tokens a day."""
    phases = 1.13 + 2.06 + 1.99 + 0.48 + 13.95 + 0.29
    assert phases == pytest.approx(19.926, abs=0.03)
    assert 15_360 * 4096 / 19.926 * DAY == pytest.approx(272.8e9, rel=1e-3)


@pytest.mark.parametrize(
    ("convention", "tflops", "mfu"), [("full", 432, 43.73), ("causal", 385, 38.94)]
)
def test_deepseek_v3_has_its_printed_rate(
    convention: str, tflops: int, mfu: float
) -> None:
    """Model FLOPs without MTP on 2048 H800 in 19.926 s, within half a percent."""
    model = preset("deepseek-v3")
    per_token = model.model_flops_per_token(4096, convention)
    per_token -= 3 * model.mtp_flops(4096, convention)
    rate = per_token * 15_360 * 4096 / 19.926 / 2048
    assert rate == pytest.approx(tflops * 1e12, rel=5e-3)
    assert 100 * rate / H800 == pytest.approx(mfu, rel=5e-3)


def test_young_and_daly_checkpoint_every_nineteen_minutes() -> None:
    """C = 60 s, M = 3 h: tau = 1138 s loses 10.5 % and R / M."""
    interval = young_daly_interval(60, 3 * HOUR)
    assert interval == pytest.approx(1138.4, abs=0.1)
    lost = lost_fraction(60, 3 * HOUR, interval=interval)
    assert lost == pytest.approx(0.1054, abs=5e-5)
    with_restart = lost_fraction(60, 3 * HOUR, interval=interval, restart=540)
    assert with_restart == pytest.approx(lost + 0.05, abs=1e-12)


@pytest.mark.parametrize("factor", [0.5, 0.9, 1.1, 2.0])
def test_no_other_interval_loses_less(factor: float) -> None:
    best = young_daly_interval(60, 3 * HOUR)
    least = lost_fraction(60, 3 * HOUR, interval=best)
    assert lost_fraction(60, 3 * HOUR, interval=factor * best) > least


@pytest.mark.parametrize("times", [(0, 1), (1, 0), (-1, 1)])
def test_times_that_cannot_be_are_refused(times: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match="must be more than 0 s"):
        young_daly_interval(*times)


def test_more_than_everything_is_never_lost() -> None:
    assert lost_fraction(100, 50, interval=100) == 1.0


def test_mosaicml_counts_all_parameters_and_full_attention() -> None:
    """70B at s = 2048 and 1058 tokens/s on H100: published 43.36 % MFU."""
    per_token = parameter_flops_per_token(
        64_862_437_376, layers=80, hidden=8192, seq_len=2048
    )
    assert per_token * 1058 / H100 == pytest.approx(0.4336, rel=3e-3)


def test_counting_parameters_misses_nothing_but_norms_in_a_llama() -> None:
    """6 P counts the embedding look-up, which multiplies nothing: 3 percent of 8B."""
    model = preset("llama-3-8b")
    by_parameters = parameter_flops_per_token(
        model.parameters, layers=32, hidden=4096, seq_len=8192
    )
    by_layers = model.model_flops_per_token(8192, "full")
    look_up = 6 * 128_256 * 4096
    assert by_parameters - look_up == pytest.approx(by_layers, rel=1e-4)
