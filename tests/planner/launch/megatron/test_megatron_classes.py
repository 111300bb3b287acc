"""Every argument of Megatron-LM's parsers has one class, and defaults have a price."""

from collections import Counter
from pathlib import Path

import pytest
from each import each
from golden_folders import ROOT
from hypothesis import given
from hypothesis import strategies as st

from planner.errors import BadInputError
from planner.frameworks.megatron.launch.known import (
    VERSIONS,
    classes,
    declared,
    is_harmless,
)
from planner.launch.brief import Reading
from planner.launch.importing import read_texts
from planner.launch.targets.megatron.reader import READ, read

EVERY = {one["dest"]: one for v in VERSIONS for one in declared(v).values()}
FOLDERS = sorted((ROOT / "megatron").iterdir())
QUIET = "--no-create-attention-mask-in-dataloader --hidden-dropout 0 "
BASE = "torchrun pretrain_gpt.py --num-layers 8 --micro-batch-size 1 --bf16 "


def reading(words: str) -> Reading:
    return read({"train.sh": BASE + words})


def told(words: str) -> list[str]:
    return [its.name for its in reading(words).unknown]


def test_every_argument_of_every_release_is_in_one_class() -> None:
    its = classes()
    every = Counter([*READ, *its.harmless, *its.plain])
    every.update(name for names in its.default.values() for name in names)
    assert {name for name, count in every.items() if count > 1} == set()
    assert every.keys() == EVERY.keys()


@each("folder", FOLDERS)
def test_what_is_written_is_read_or_harmless(folder: Path) -> None:
    files = {f.name: f.read_text() for f in folder.glob("arguments.sh")}
    mock = {"DATA_PATH": "", "CHECKPOINTS": ""}
    assert read_texts(files, "megatron", "arguments.sh", mock).unknown == ()


@given(name=st.sampled_from(sorted(EVERY)))
def test_an_argument_that_is_not_priced_is_refused(name: str) -> None:
    """A value that is neither the default nor priced ends in a refusal or a price."""
    one = EVERY[name]
    count = {None: 1, "+": 1, "*": 1}.get(one["nargs"], one["nargs"])
    value = str((one["choices"] or ["3"])[-1])
    words = " ".join([one["options"][0], *[value] * count]) if one["options"] else ""
    try:
        found = reading(words)
    except BadInputError as error:
        assert one["options"][0] in str(error)  # noqa: PT017
        return
    refused = {its.name for its in found.unknown} & set(one["options"])
    default = [
        e["default"]
        for v in VERSIONS
        for e in declared(v).values()
        if e["dest"] == name
    ]
    shown = bool(one["nargs"] == 0) or value not in map(str, default)
    if any(name in names for names in classes().default.values()) and shown:
        assert refused or not one["options"], name


PIPED = "--pipeline-model-parallel-size 2"
SIZES = "--hierarchical-context-parallel-sizes"
EACH = "--num-layers-per-virtual-pipeline-stage"
CHUNKS = "--num-virtual-stages-per-pipeline-rank"
LAYOUT = "--pipeline-model-parallel-layout"


@pytest.mark.parametrize(
    ("words", "stack"),
    [
        ("", {"loads_masks": True, "recipe": {"dropout_bytes": 1}}),
        ("--hidden-dropout 0.0", {"loads_masks": True}),
        (
            "--no-create-attention-mask-in-dataloader --hidden-dropout 0.2",
            {"recipe": {"dropout_bytes": 1}},
        ),
        (QUIET, {}),
    ],
)
def test_what_the_defaults_keep_is_in_the_stack(
    words: str, stack: dict[str, object]
) -> None:
    kept = {"loads_masks", "recipe"}
    found = {k: v for k, v in reading(words).stack.items() if k in kept}
    assert found == stack


OVERLAP = "--overlap-moe-expert-parallel-comm"
EXPERTS = "--num-experts 64 --expert-model-parallel-size 8 "
GROUPED = "--moe-grouped-gemm --moe-token-dispatcher-type alltoall "


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (EXPERTS + GROUPED, []),
        (EXPERTS + "--moe-grouped-gemm", ["--moe-token-dispatcher-type"]),
        (EXPERTS + "--moe-token-dispatcher-type alltoall", ["--moe-grouped-gemm"]),
        ("--transformer-impl local", ["--transformer-impl"]),
        ("--attention-backend unfused", []),
        ("--no-rope-fusion", ["--no-rope-fusion"]),
        ("--cp-comm-type p2p a2a", ["--cp-comm-type"]),
        (
            "--recompute-granularity full --recompute-method uniform "
            "--recompute-num-layers 4",
            ["--recompute-num-layers"],
        ),
        (
            "--dataloader-inter-document-masking",
            ["--dataloader-inter-document-masking"],
        ),
        ("--spec megatron.core.models.mamba specs", ["--spec"]),
        ("--skip-train", ["--skip-train"]),
        ("--vocab-size 32000 --padded-vocab-size 200000", ["--padded-vocab-size"]),
        ("--vocab-size 32000 --padded-vocab-size 32000", []),
        ("--add-position-embedding False", ["--add-position-embedding"]),
        ("--max-position-embeddings 4096 8192", ["--max-position-embeddings"]),
    ],
)
def test_what_is_not_priced_is_refused_by_its_option(
    words: str, names: list[str]
) -> None:
    assert told(words) == names


@pytest.mark.parametrize(
    ("words", "option"),
    [
        ("--main-grads-dtype bf16", "--main-grads-dtype"),
        ("--exp-avg-dtype bf16 --exp-avg-sq-dtype bf16", "--exp-avg-dtype"),
        ("--fp16", "--fp16"),
        ("--no-position-embedding", "--no-position-embedding"),
        ("--sequence-parallel False", "--sequence-parallel"),
        ("--swiglu true", "--swiglu"),
        ("--swiglu 1", "--swiglu"),
        ("--hierarchical-context-parallel-sizes 2 4", SIZES),
        ("--context-parallel-size 4 --hierarchical-context-parallel-sizes 2 4", SIZES),
        ("--context-parallel-size 4 --cp-comm-type a2a+p2p", "--cp-comm-type"),
        (f"{PIPED} {EACH} 4 {CHUNKS} 2", EACH),
        (f"{PIPED} --pipeline-model-parallel-layout Et*16|t*8|t*8L", LAYOUT),
        (f"{PIPED} {EACH} 4 --decoder-first-pipeline-num-layers 4", EACH),
        (f"{PIPED} --num-layers 33", "--num-layers"),
        (f"{PIPED} {EACH} 3", EACH),
        (f"{PIPED} {CHUNKS} 3", CHUNKS),
        (f"{EACH} 4", EACH),
        ("--overlap-param-gather --overlap-grad-reduce", "--overlap-param-gather"),
        (
            "--overlap-param-gather --use-distributed-optimizer",
            "--overlap-param-gather",
        ),
        ("--fp8-format hybrid --fp8-param-gather", "--fp8-param-gather"),
        ("--hidden-size 100 --num-attention-heads 32", "--hidden-size"),
        ("--context-parallel-size 4 --seq-length 4100", "--seq-length"),
        (
            "--seq-length 8192 --max-position-embeddings 4096",
            "--max-position-embeddings",
        ),
        (
            "--recompute-granularity selective --recompute-method uniform",
            "--recompute-method",
        ),
        ("--tensor-model-parallel-size 2 --tp-comm-overlap", "--tp-comm-overlap"),
        ("--expert-model-parallel-size 2", "--expert-model-parallel-size"),
        (
            "--num-experts 8 --expert-model-parallel-size 3",
            "--expert-model-parallel-size",
        ),
        ("--optimizer-cpu-offload", "--optimizer-cpu-offload"),
        ("--micro-batch-size 0", "--micro-batch-size"),
        (OVERLAP, OVERLAP),
        (f"{EXPERTS} {OVERLAP} --pipeline-model-parallel-size 2", OVERLAP),
        (f"{EXPERTS} {OVERLAP} --recompute-granularity full", OVERLAP),
        (
            "--multi-latent-attention --group-query-attention",
            "--group-query-attention",
        ),
    ],
)
def test_what_megatron_refuses_is_refused(words: str, option: str) -> None:
    with pytest.raises(BadInputError) as raised:
        reading(words)
    assert raised.value.field == option


def test_a_run_without_a_micro_batch_is_refused() -> None:
    with pytest.raises(BadInputError) as raised:
        read({"train.sh": BASE.replace("--micro-batch-size 1 ", "")})
    assert raised.value.field == "--micro-batch-size"


def test_groups_of_queries_count_where_they_are_switched_on() -> None:
    words = "--num-attention-heads 32 --num-query-groups 8 "
    sizes = {size.field: size.value for size in reading(words).sizes}
    assert sizes["--num-query-groups"] == 32
    grouped = reading(words + "--group-query-attention").sizes
    assert {size.field: size.value for size in grouped}["--num-query-groups"] == 8


def test_main_gradients_in_bf16_are_reduced_in_bf16() -> None:
    found = reading("--use-precision-aware-optimizer --main-grads-dtype bf16")
    assert found.layout["comm_dtype"] == {"gradients": "bf16"}
    assert found.unknown == ()


def test_values_of_defaults_are_harmless() -> None:
    for name in sorted(EVERY.keys() - READ - classes().plain.keys()):
        assert is_harmless(name, EVERY[name]["default"]), name


@pytest.mark.parametrize("value", ["[]", "{}", "null", "''", "'false'", "1", "[no, 1]"])
def test_a_switch_of_yaml_is_true_or_false(value: str) -> None:
    """An empty list was true."""
    lines = "--num-layers: 16\n  --hidden-size: 2048"
    text = f"MODEL_ARGS:\n  {lines}\n  --overlap-grad-reduce: {value}\n"
    with pytest.raises(BadInputError, match="takes no value") as refused:
        read({"args.yaml": text})
    assert refused.value.field == "--overlap-grad-reduce"


@pytest.mark.parametrize(("value", "on"), [("true", True), ("false", False)])
def test_switches_of_yaml(value: str, *, on: bool) -> None:
    text = f"MODEL_ARGS: {{--micro-batch-size: 1, --overlap-grad-reduce: {value}}}"
    assert read({"args.yaml": text}).stack["overlap_grad_reduce"] is on
