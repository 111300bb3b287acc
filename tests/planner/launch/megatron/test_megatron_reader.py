"""Arguments that people write themselves, in all the ways that Megatron-LM has."""

from pathlib import Path
from typing import Any

import pytest

from planner.errors import BadInputError
from planner.hardware.reading.files import SHIPPED
from planner.job.fleets import cluster_named
from planner.launch.targets.megatron.reader import read, reads
from planner.launch.targets.megatron.stages import counts_of, stage_layout

UNMASKED = "--no-create-attention-mask-in-dataloader --hidden-dropout 0.0 "
BASE = (
    "torchrun --nproc_per_node gpu pretrain_gpt.py --num-layers 32 "
    "--micro-batch-size 1 --bf16 " + UNMASKED
)


def layout_of(words: str) -> dict[str, Any]:
    return dict(read({"train.sh": BASE + words}).layout)


def layers_of(words: str) -> list[int]:
    return [stage["layers"] for stage in layout_of(words)["stages"]]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (
            "--pipeline-model-parallel-size 4 --decoder-first-pipeline-num-layers 5 "
            "--decoder-last-pipeline-num-layers 7",
            [5, 10, 10, 7],
        ),
        (
            "--pipeline-model-parallel-size 4 --decoder-first-pipeline-num-layers 2",
            [2, 10, 10, 10],
        ),
        (
            "--pipeline-model-parallel-size 2 --decoder-last-pipeline-num-layers 12 "
            "--num-virtual-stages-per-pipeline-rank 2",
            [10, 6, 10, 6],
        ),
        (
            "--num-layers 30 --pipeline-model-parallel-size 4 "
            "--account-for-embedding-in-pipeline-split "
            "--account-for-loss-in-pipeline-split",
            [7, 8, 8, 7],
        ),
        (
            "--num-layers 30 --pipeline-model-parallel-size 4 "
            "--num-virtual-stages-per-pipeline-rank 2 "
            "--account-for-embedding-in-pipeline-split "
            "--account-for-loss-in-pipeline-split",
            [3, 4, 4, 4, 4, 4, 4, 3],
        ),
        (
            "--pipeline-model-parallel-size 5 "
            "--pipeline-model-parallel-layout 'Et*3|(tt|)*13tttL'",
            [3, *[2] * 13, 3],
        ),
        (
            "--pipeline-model-parallel-size 4 --recompute-granularity full "
            "--recompute-method block --recompute-num-layers 2",
            [8, 8, 8, 8],
        ),
    ],
)
def test_uneven_stages(words: str, expected: list[int]) -> None:
    assert layers_of(words) == expected


def test_layers_per_virtual_stage_are_chunks() -> None:
    words = "--pipeline-model-parallel-size 4 --num-layers-per-virtual-pipeline-stage 2"
    found = layout_of(words)
    assert (found["vpp"], found["schedule"], found["stages"]) == (
        4,
        "interleaved",
        "even",
    )


def test_a_block_is_the_head_of_every_stage() -> None:
    words = (
        "--pipeline-model-parallel-size 4 --recompute-granularity full "
        "--recompute-method block --recompute-num-layers 2"
    )
    for stage in layout_of(words)["stages"]:
        kinds = [
            (part["from"], part["to"], part["kind"]) for part in stage["recompute"]
        ]
        assert kinds == [(0, 2, "full"), (2, 8, "none")]


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("", "none"),
        ("--recompute-activations", "selective"),
        ("--recompute-granularity selective", "selective"),
        (
            "--recompute-granularity selective --recompute-modules moe_act layernorm",
            "layernorm+moe_act",
        ),
        (
            "--recompute-granularity full --recompute-method uniform "
            "--recompute-num-layers 1",
            "full",
        ),
    ],
)
def test_recompute(words: str, kind: str) -> None:
    assert layout_of(words)["recompute"] == kind


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("--context-parallel-size 4", "ring"),
        ("--context-parallel-size 4 --cp-comm-type all_gather", "all-gather"),
        ("--context-parallel-size 4 --cp-comm-type a2a", "ulysses"),
        (
            "--context-parallel-size 8 --cp-comm-type a2a+p2p "
            "--hierarchical-context-parallel-sizes 4 2",
            "ulysses4+ring",
        ),
    ],
)
def test_context_parallelism(words: str, kind: str) -> None:
    assert layout_of(words)["cp_kind"] == kind


def test_sequence_parallelism_needs_tensor_ranks() -> None:
    assert not layout_of("--sequence-parallel")["sp"]
    assert layout_of("--sequence-parallel --tensor-model-parallel-size 2")["sp"]


def test_experts_take_the_tensor_degree_unless_they_have_their_own() -> None:
    words = "--num-experts 8 --expert-model-parallel-size 4 "
    words += "--tensor-model-parallel-size 2 "
    assert layout_of(words)["etp"] == 2
    assert layout_of(words + "--expert-tensor-parallel-size 1")["etp"] == 1


def test_copies_of_the_optimizer_go_by_the_ranks() -> None:
    words = "--use-distributed-optimizer --num-distributed-optimizer-instances 2 "
    alone = read({"train.sh": BASE + words})
    assert alone.unknown == ()
    cluster = cluster_named("dgx-h100-4-nodes", Path(), SHIPPED)
    assert alone.layout_on(cluster)["dp_shard"] == 16
    ranks = "torchrun --nnodes 2 --nproc-per-node=8 pretrain_gpt.py --num-layers 32 "
    told = read({"train.sh": ranks + "--micro-batch-size 1 " + words})
    assert told.gpus == 16
    assert told.layout_on(cluster)["dp_shard"] == 8


@pytest.mark.parametrize(
    ("words", "precision", "stack"),
    [
        ("--fp8-format hybrid", "fp8", {"fp8_recipe": "delayed"}),
        (
            "--fp8-format e4m3 --fp8-recipe tensorwise",
            "fp8",
            {"fp8_recipe": "current"},
        ),
        ("--fp8-format e4m3 --fp8-recipe mxfp8", "mxfp8", {}),
        ("--fp4-format e2m1", "nvfp4", {}),
        (
            "--sequence-parallel --tensor-model-parallel-size 2 --tp-comm-overlap",
            "bf16",
            {"tp_overlap": True},
        ),
        ("--cross-entropy-loss-fusion", "bf16", {"loss": "fused"}),
        (
            "--cross-entropy-loss-fusion --cross-entropy-fusion-impl te",
            "bf16",
            {},
        ),
        (
            "--moe-token-dispatcher-type flex",
            "bf16",
            {"expert_dispatch": "deduplicated"},
        ),
    ],
)
def test_numbers_and_stack(words: str, precision: str, stack: dict[str, Any]) -> None:
    found = read({"train.sh": BASE + words})
    assert found.training["precision"] == precision
    apart = {"overlap_grad_reduce": False, "overlap_param_gather": False}
    assert found.stack == apart | stack


def test_masks_of_the_loader_are_there_unless_they_are_turned_off() -> None:
    with_masks = read({"train.sh": BASE.replace(UNMASKED, "")})
    assert with_masks.stack["loads_masks"] is True
    without = read({"train.sh": BASE})
    assert "loads_masks" not in without.stack
    assert with_masks.unknown == without.unknown == ()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("", ""),
        (
            "--hidden-size 512 --num-attention-heads 8 --vocab-size 1000 "
            "--swiglu --normalization RMSNorm --disable-bias-linear "
            "--position-embedding-type rope",
            "llama",
        ),
        (
            "--hidden-size 512 --num-attention-heads 8 --vocab-size 1000 "
            "--max-position-embeddings 1024",
            "gpt2",
        ),
        (
            "--hidden-size 512 --num-attention-heads 8 --vocab-size 1000 "
            "--swiglu --normalization RMSNorm --disable-bias-linear --num-experts 8 "
            "--position-embedding-type rope --moe-layer-freq '[1]*32'",
            "mixtral",
        ),
        (
            "--hidden-size 512 --num-attention-heads 8 --vocab-size 1000 "
            "--swiglu --normalization RMSNorm --disable-bias-linear --num-experts 8 "
            "--position-embedding-type rope --moe-layer-freq '[0]*3+[1]*29'",
            "",
        ),
        (
            "--hidden-size 512 --num-attention-heads 8 --vocab-size 1000 "
            "--multi-latent-attention --normalization RMSNorm --swiglu",
            "",
        ),
    ],
)
def test_models_that_the_sizes_describe(words: str, expected: str) -> None:
    found = read({"train.sh": BASE + words}).model
    assert (found.get("model_type") if isinstance(found, dict) else "") == (
        expected or None
    )


def test_rows_that_pad_the_vocabulary_are_priced() -> None:
    """Padded to a multiple of the argument times tp, which is 128 unless given."""
    found = read({"train.sh": BASE + "--make-vocab-size-divisible-by 1024"}).stack
    assert found["recipe"] == {"vocab_multiple": 1024}
    for words in ("", "--make-vocab-size-divisible-by 128"):
        assert "recipe" not in read({"train.sh": BASE + words}).stack
    assert read_unknown("--padded-vocab-size 1000") != ()
    assert read_unknown("--padded-vocab-size 1024") == ()


def test_relative_positions_are_not_priced() -> None:
    assert read_unknown("--position-embedding-type relative") != ()


def test_what_is_not_priced_is_reported_and_the_rest_is_listed() -> None:
    words = "--rampup-batch-size 16 16 1000 --log-interval 3 --my-own 5"
    found = read({"train.sh": BASE + words})
    settings = [told.setting for told in found.unknown]
    assert settings == ["--my-own", "--rampup-batch-size 16 16 1000"]
    assert "--log-interval 3" in found.ignored


def test_prediction_layers_elsewhere_are_reported() -> None:
    words = (
        "--num-layers 4 --mtp-num-layers 1 --pipeline-model-parallel-size 2 "
        "--pipeline-model-parallel-layout 'Et*2|t*2|m|L'"
    )
    assert any("prediction layers" in word for word in read_unknown(words))


def read_unknown(words: str) -> tuple[str, ...]:
    return tuple(map(str, read({"train.sh": BASE + words}).unknown))


def test_the_right_file_of_several_is_read() -> None:
    files = {"env.sh": "export A=1\n", "train.sh": BASE, "notes.yaml": "a: 1\n"}
    assert reads(files)
    assert read(files).layout["micro_batch"] == 1


def test_a_file_without_arguments_is_refused() -> None:
    with pytest.raises(BadInputError, match="no arguments of Megatron-LM"):
        read({"env.sh": "export A=1\n"})


@pytest.mark.parametrize(
    ("counts", "text"),
    [
        ((3, 4, 4, 3), "Et*3|(t*4|)*2t*3L"),
        ((0, 1, 1, 0), "E|(t|)*2L"),
        ((4,), "Et*4L"),
        ((2, 2), "Et*2|t*2L"),
        ((1, 2, 3), "Et|t*2|t*3L"),
    ],
)
def test_stages_are_written_and_read(counts: tuple[int, ...], text: str) -> None:
    assert stage_layout(counts, 0) == text
    assert counts_of(text, file="train.sh") == counts


@pytest.mark.parametrize("text", ["Et*2|x*2L", "abc", "Et(2)L"])
def test_what_is_no_layout_is_refused(text: str) -> None:
    with pytest.raises(BadInputError, match="no layout of stages"):
        counts_of(text, file="train.sh")
