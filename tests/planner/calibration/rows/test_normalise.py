"""Free text becomes the fixed words that a careful reader gave the published rows."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from measured_rows import SAMPLE

from planner.calibration.rows.normalise import GIB_PER_GB, normalised
from planner.calibration.rows.vocabulary import Normalised

ROOT = Path(__file__).resolve().parents[4]
FILES = sorted(SAMPLE.glob("*.yaml"))
ROUNDING = 0.006
"""The published words round memory to three digits after the point. [GiB]"""


def words_of(**blocks: Any) -> Normalised:
    return Normalised.model_validate(normalised(blocks))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_words_derived_from_raw_text_are_those_of_the_reader(file: Path) -> None:
    for row in yaml.safe_load(file.read_text()):
        given = Normalised.model_validate(row.pop("normalised"))
        derived = Normalised.model_validate(normalised(row))
        for name in ("recompute", "sharding", "optimizer", "schedule", "offload"):
            assert getattr(derived, name) == getattr(given, name), (row["id"], name)
        assert (derived.memory is None) == (given.memory is None)
        if derived.memory and given.memory:
            assert derived.memory.gib == pytest.approx(given.memory.gib, abs=ROUNDING)
            assert derived.memory.counter == given.memory.counter
            assert derived.memory.ranks == given.memory.ranks


@pytest.mark.parametrize(
    ("text", "gib", "counter"),
    [
        ("GiB, max over ranks of max_memory_allocated", 10.0, "allocated"),
        ("decimal GB (1e9), allocated", 10 * GIB_PER_GB, "allocated"),
        ("GB, nvidia-smi", 10.0, "device"),
        ("GiB peak active (torch)", 10.0, "active"),
        ("torch max_memory_reserved, GiB", 10.0, "reserved"),
        ("", 10.0, "unknown"),
    ],
)
def test_memory_has_a_unit_and_a_counter(text: str, gib: float, counter: str) -> None:
    memory = words_of(measured={"peak_memory_gb": 10, "memory_kind": text}).memory
    assert memory is not None
    assert (memory.gib, memory.counter) == (pytest.approx(gib), counter)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("full", {"kind": "full"}),
        ("none", {"kind": "none"}),
        (None, {"kind": "unknown"}),
        ("full (block, 21 of 80 layers)", {"kind": "full", "layers": 21}),
        ("full on 5 layers per (virtual) stage", {"layers_per_virtual_stage": 5}),
        ("selective (every second layer)", {"kind": "full", "every": 2}),
        ("every 3rd layer", {"kind": "full", "every": 3}),
        ("selective: mla_up_proj,mlp", {"modules": ("mla_up_proj", "mlp")}),
        ("selective: save_qkv_proj", {"modules": ("all-but-qkv",)}),
        ("selective: SAVE_QKV_OUT_PROJ", {"modules": ("all-but-qkv-and-output",)}),
        ("selective: SAVE_DOT_ONLY", {"modules": ("all-but-products",)}),
        (
            "selective: SAVE_DOT_WITH_NO_BATCH_DIM",
            {"modules": ("all-but-products",)},
        ),
        ("as the wind blows", {"kind": "unknown"}),
    ],
)
def test_recompute_words(text: str | None, expected: dict[str, Any]) -> None:
    words = words_of(layout={"recompute": text}).recompute
    assert {name: getattr(words, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("layout", "kind"),
    [
        ({"sharding": "FSDP2, full shard"}, "fsdp2"),
        ({"sharding": "fsdp over 256 ranks"}, "fsdp"),
        ({"sharding": "ZeRO-3"}, "zero3"),
        ({"sharding": "distributed optimizer"}, "distributed-optimizer"),
        ({"sharding": "HSDP"}, "hsdp"),
        ({"zero_stage": 2}, "zero2"),
        ({"zero_stage": 0}, "ddp"),
    ],
)
def test_sharding_words(layout: dict[str, Any], kind: str) -> None:
    sharding = words_of(layout=layout).sharding
    assert sharding is not None
    assert sharding.kind == kind


def test_megatron_notation_of_stages_is_unrolled() -> None:
    words = words_of(layout={"pipeline_layout": "Et|(tt|)*3mL", "pp": 5})
    assert words.pipeline.stages == (1, 2, 2, 2, 0)
    assert words_of(layout={"pp_partition": "3,4,3"}).pipeline.stages == (3, 4, 3)


def test_words_that_a_row_gives_stand() -> None:
    words = normalised(
        {"layout": {"recompute": "full"}, "normalised": {"fabric": "efa"}}
    )
    assert words["fabric"] == "efa"
    assert words["recompute"] == {"kind": "full"}
