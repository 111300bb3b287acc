"""A ds_config.json is read with the values that DeepSpeed makes of it, or refused."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.errors import BadInputError
from planner.launch.importing import (
    UserOverrides,
    import_spec,
    read_launch,
    read_texts,
)

CASES = Path(__file__).resolve().parents[3] / "golden" / "cases"
RANKS = 8
MICRO, STEPS = "train_micro_batch_size_per_gpu", "gradient_accumulation_steps"
TOLD = UserOverrides(model="llama-3.1-8b", on=f"{RANKS}xh100")


def job(its: Mapping[str, Any]) -> dict[str, Any]:
    reading = read_texts({"ds.json": json.dumps(its)}, "deepspeed", "ds.json")
    return dict(import_spec(reading, TOLD, ["training.seq_len=4096"]))


@pytest.mark.parametrize(
    ("file", "stage", "precision", "shares"),
    [
        ("ds-zero-true.json", 1, "bf16", (2, 4)),
        ("ds-bffalse.json", 2, "fp32", (2, 4)),
        ("ds-noprec.json", 2, "fp32", (2, 4)),
        ("ds-onlybatch.json", 2, "bf16", (8, 1)),
    ],
)
def test_a_file_is_read_as_deepspeed_reads_it(
    file: str, stage: int, precision: str, shares: tuple[int, int]
) -> None:
    reading = read_launch([CASES / file], "deepspeed")
    its: Any = import_spec(reading, TOLD, ["training.seq_len=4096"])
    layout = its["layout"]
    assert layout["zero_stage"] == stage
    assert its["training"]["precision"] == precision
    assert (layout["micro_batch"], layout["grad_accum"]) == shares


@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("ds-dupkey.json", "zero_optimization"),
        ("ds-both.json", "bf16 and fp16"),
        ("ds-contradictory.json", "train_batch_size"),
    ],
)
def test_a_contradiction_is_refused(file: str, said: str) -> None:
    with pytest.raises(BadInputError, match=said):
        import_spec(
            read_launch([CASES / file], "deepspeed"), TOLD, ["training.seq_len=4096"]
        )


@pytest.mark.parametrize("indent", ["\t", "  "])
def test_a_key_twice_is_refused_with_its_line(tmp_path: Path, indent: str) -> None:
    file = tmp_path / "ds.json"
    lines = ('{"zero_optimization": {', '"stage": 2,', '"stage": 3', "}}")
    file.write_text(f"\n{indent}".join(lines))
    with pytest.raises(BadInputError, match="given twice") as refused:
        read_launch([file], "deepspeed")
    assert refused.value.field == "line 3"


def test_bfloat16_is_the_old_name_of_bf16() -> None:
    its = {"train_batch_size": 8, "bfloat16": {"enabled": True}}
    assert job(its)["training"]["precision"] == "bf16"
    its["bf16"] = {"enabled": False}
    assert job(its)["training"]["precision"] == "fp32"


def test_part_of_the_optimizer_on_the_host_needs_stage_3() -> None:
    part = {"device": "cpu", "ratio": 0.5}
    its = {"train_batch_size": 8, "zero_optimization": {"offload_optimizer": part}}
    with pytest.raises(BadInputError, match="stage 3"):
        job(its)


@pytest.mark.parametrize("target", ["deepspeed", "accelerate"])
def test_groups_of_hpz_share_a_copy_and_no_states(target: str) -> None:
    """Stage 3 has them; below it DeepSpeed makes none, which is said."""
    for stage, ranks in ((3, 8), (3, 1), (2, 8)):
        zero = {"stage": stage, "zero_hpz_partition_size": ranks}
        its = {MICRO: 1, "zero_optimization": zero}
        files = {"ds.json": json.dumps(its)}
        if target == "accelerate":
            files["a.yaml"] = "distributed_type: DEEPSPEED\nmixed_precision: bf16\n"
        reading = read_texts(files, target, "ds.json")
        assert "dp_shard" not in reading.layout
        assert reading.layout.get("hpz", 1) == (ranks if stage == 3 else 1)
        assert any("hpz" in said for said in reading.ignored) is (stage < 3)


TRUE = (True, 1, 1.0, "1", "true", "True", "YES", "on", "t", "y")
FALSE = (False, 0, "0", "false", "No", "off", "F", "n")
NEITHER = (None, 2, "", "perhaps", [], {})
STAGES = {3: (3, "3", 3.0, "3.0"), 1: (1, True), 0: (0, False)}
NO_STAGES = (4, 2.5, None, -1, "three", [])
COUNTS = st.sampled_from((None, 1, 2, 4, 7, 8, 16, 64))


def shares(total: int | None, micro: int | None, steps: int | None) -> Any:
    """Micro-batch and accumulation by DeepSpeed's rules; None for a refusal."""
    if total is None:
        return micro and (micro, steps or 1)
    if micro is None and steps is None:
        micro, steps = total // RANKS, 1
    elif steps is None and micro is not None:
        steps = total // micro // RANKS
    elif micro is None and steps is not None:
        micro = total // RANKS // steps
    assert micro is not None
    assert steps is not None
    fits = micro > 0 and steps > 0 and micro * steps * RANKS == total
    return (micro, steps) if fits else None


@given(
    st.sampled_from([(k, v) for k, every in STAGES.items() for v in every])
    | st.sampled_from([(None, v) for v in NO_STAGES]),
    st.sampled_from([(True, v) for v in TRUE] + [(False, v) for v in FALSE])
    | st.sampled_from([(None, v) for v in NEITHER]),
    st.booleans(),
    COUNTS,
    COUNTS,
    COUNTS,
)
def test_drawn_files_are_read_by_the_rules_or_refused(
    stage: tuple[int | None, object],
    bf16: tuple[bool | None, object],
    fp16: bool,  # noqa: FBT001  # drawn
    total: int | None,
    micro: int | None,
    steps: int | None,
) -> None:
    counts = {"train_batch_size": total, MICRO: micro, STEPS: steps}
    its = {
        "zero_optimization": {"stage": stage[1]},
        "bf16": {"enabled": bf16[1]},
        "fp16": {"enabled": fp16},
        **{name: count for name, count in counts.items() if count is not None},
    }
    wanted = shares(total, micro, steps)
    wrong = None in (stage[0], bf16[0], wanted) or (bf16[0] and fp16)
    try:
        found = job(its)
    except BadInputError:
        assert wrong
        return
    assert not wrong
    layout = found["layout"]
    assert layout["zero_stage"] == stage[0]
    kind = "bf16" if bf16[0] else "fp16" if fp16 else "fp32"
    assert found["training"]["precision"] == kind
    assert (layout["micro_batch"], layout.get("grad_accum", 1)) == wanted
    assert found["training"]["global_batch"] == total or total is None
