"""Activations: Korthikanti's table, and our layers against it."""

from dataclasses import replace

import pytest
from closed_forms import (
    KorthikantiMode,
    korthikanti_activation_bytes,
    korthikanti_layer_bytes,
)
from strategies import small_job

from planner.cost.memory.activations import saved_bytes
from planner.cost.meshes import Meshes
from planner.models import preset
from planner.specs.search import SearchSpec
from planner.specs.training import TrainingSpec

GIB = 2**30
RUNS = {
    "22b": {"layers": 48, "hidden": 6_144, "heads": 64, "pp": 1, "vpp": 1},
    "175b": {"layers": 96, "hidden": 12_288, "heads": 96, "pp": 8, "vpp": 3},
    "530b": {"layers": 105, "hidden": 20_480, "heads": 128, "pp": 35, "vpp": 3},
    "1t": {"layers": 128, "hidden": 25_600, "heads": 160, "pp": 64, "vpp": 1},
}
"""Korthikanti et al., table 3, t = 8 and s = 2048 for all; b = 4 for 22B, else 1."""


def activations(name: str, mode: KorthikantiMode) -> float:
    tokens = 2048 * (4 if name == "22b" else 1)
    run = RUNS[name]
    return korthikanti_activation_bytes(
        **run, tokens=tokens, seq_len=2048, tp=8, mode=mode
    )


@pytest.mark.parametrize(
    ("name", "tensor", "both"),
    [
        ("22b", 59.25, 9.5625),
        ("175b", 66.84, 12.35),
        ("530b", 114.02, 23.08),
        ("1t", 131.25, 26.56),
    ],
)
def test_first_stage_of_the_four_models(name: str, tensor: float, both: float) -> None:
    """GiB with tensor parallelism alone, and with both techniques (figure 1)."""
    assert activations(name, "tensor") / GIB == pytest.approx(tensor, abs=0.01)
    assert activations(name, "both") / GIB == pytest.approx(both, abs=0.01)


@pytest.mark.parametrize(
    ("mode", "percent"),
    [
        ("sequence", (66.77, 61.96, 58.33)),
        ("selective", (49.37, 56.52, 61.90)),
        ("both", (16.14, 18.48, 20.24)),
        ("full", (7.59, 8.70, 9.52)),
    ],
)
def test_shares_of_the_tensor_parallel_baseline(
    mode: KorthikantiMode, percent: tuple[float, float, float]
) -> None:
    """Figure 7, in percent, within 0.2 points."""
    for name, share in zip(("22b", "175b", "530b"), percent, strict=True):
        ratio = activations(name, mode) / activations(name, "tensor")
        assert 100 * ratio == pytest.approx(share, abs=0.2)


@pytest.mark.parametrize(
    ("name", "scores"), [("22b", 106.7), ("175b", 80), ("530b", 64), ("1t", 64)]
)
def test_attention_scores_weigh_five_a_s_over_h(name: str, scores: float) -> None:
    run = RUNS[name]
    shape = {"tokens": 1, "hidden": run["hidden"], "heads": run["heads"]}
    kept = korthikanti_layer_bytes(**shape, seq_len=2048, tp=1, mode="tensor")
    assert kept / run["hidden"] - 34 == pytest.approx(scores, abs=0.05)


def our_layer(tp: int, *, sp: bool, kind: str) -> float:
    """What one GPT-175B layer of ours keeps of 2048 tokens. [B]."""
    workload = replace(
        small_job(SearchSpec()),
        model=preset("megatron-gpt-175b"),
        training=TrainingSpec(seq_len=2048, global_batch=1),
    )
    mesh = Meshes.from_rows([(tp, int(sp), 1, 1, 1, 1, 1, 1, 1, 0, 1, 1, 1, 0)])
    chosen = workload.recipe.kind(kind)
    return float(saved_bytes(workload, workload.kinds[0], chosen, mesh)[0])


def published_layer(tp: int, mode: KorthikantiMode) -> float:
    return korthikanti_layer_bytes(
        tokens=2048, hidden=12_288, heads=96, seq_len=2048, tp=tp, mode=mode
    )


@pytest.mark.parametrize("tp", [1, 2, 8])
def test_our_gpt_layer_keeps_all_but_the_dropout_masks(tp: int) -> None:
    """32 of the 34 s b h / t: we train without dropout, whose masks are 2 s b h."""
    ours = our_layer(tp, sp=tp > 1, kind="selective")
    assert ours == pytest.approx(published_layer(tp, "both") * 32 / 34, rel=1e-12)


@pytest.mark.parametrize("tp", [1, 2, 8])
def test_without_sequence_parallelism_the_masks_are_whole(tp: int) -> None:
    """8 + 24 / t of the 10 + 24 / t."""
    masks = 2 * 2048 * 12_288
    ours = our_layer(tp, sp=False, kind="selective")
    assert ours == pytest.approx(published_layer(tp, "selective") - masks, rel=1e-12)


def test_full_recompute_keeps_the_input_alone() -> None:
    """2 s b h; with sequence parallelism ours is divided, which the paper leaves."""
    assert our_layer(8, sp=False, kind="full") == published_layer(8, "full")
    assert our_layer(8, sp=True, kind="full") == published_layer(8, "full") / 8


def test_flash_attention_keeps_the_log_sum_exp() -> None:
    """4 a bytes a token more without recompute: 4 * 96 * 2048."""
    more = our_layer(1, sp=False, kind="none") - our_layer(
        1, sp=False, kind="selective"
    )
    assert more == 4 * 96 * 2048
