"""Configurations that people write, in every form that torchtitan has had."""

from typing import Any

import pytest

from planner.errors import BadInputError
from planner.frameworks.torchtitan.limits import ROTATIONS
from planner.launch.brief import Reading
from planner.launch.importing.read import read_texts
from planner.launch.targets.torchtitan.reader import read, reads

LAUNCH = "torchrun --nnodes=4 --nproc-per-node=8 -m torchtitan.train "
OWN = LAUNCH + "--module llama3 --config llama3_8b "
MODULE = """
import os
from torchtitan.models.llama3 import model_registry
from torchtitan.models.llama3.config_registry import llama3_70b

LOCAL = 2

def debug() -> Trainer.Config:
    return Trainer.Config(model_spec=model_registry("8B"), activation_checkpoint=None)

def mine() -> Trainer.Config:
    config = llama3_70b()
    config.training.local_batch_size = LOCAL * 2
    config.training.seq_len = int(os.environ.get("SEQ", "4096"))
    config.parallelism.pipeline_parallel_degree = 2
    config.parallelism.module_fqns_per_model_part = [
        ["tok_embeddings", "layers.0"], ["layers.1", "layers.2", "norm", "lm_head"]
    ]
    config.activation_checkpoint = SelectiveAC.Config()
    if big:
        config.training.local_batch_size = 64
    return config
"""


def command(words: str) -> Reading:
    return read({"train.sh": OWN + words})


def module(config: str, text: str = MODULE) -> Reading:
    words = LAUNCH + f"--module mine --config {config}"
    return read({"mine.py": text, "train.sh": words})


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("--parallelism.tensor_parallel_degree=4", {"tp": 4, "sp": True, "dp": 8}),
        ("--parallelism.tensor-parallel-degree 4", {"tp": 4, "dp_shard": 8}),
        (
            "--parallelism.tensor_parallel_degree 2 "
            "--parallelism.no-enable-sequence-parallel",
            {"tp": 2, "sp": False},
        ),
        (
            "--parallelism.data_parallel_replicate_degree 4",
            {"dp": 32, "dp_shard": 8, "zero_stage": 3},
        ),
        (
            "--parallelism.context_parallel_degree 4 "
            "--parallelism.data_parallel_shard_degree 8",
            {"cp": 4, "cp_kind": "all-gather", "dp": 8, "dp_shard": 32},
        ),
        (
            "--parallelism.fsdp_reshard_after_forward never",
            {"zero_stage": 2, "micro_batch": 1},
        ),
        ("activation-checkpoint:full", {"recompute": "full"}),
        ("activation-checkpoint:none", {"recompute": "none"}),
        (
            "--training.enable-cpu-offload",
            {"offload": {"parameters": 1, "gradients": 1, "optimizer": 1}},
        ),
    ],
)
def test_words_change_the_package_s_configuration(
    words: str, expected: dict[str, Any]
) -> None:
    found = command(words)
    assert expected.items() <= found.layout.items()
    assert found.gpus == 32
    assert found.training["seq_len"] == 8192


@pytest.mark.parametrize(
    ("words", "schedule", "layers"),
    [
        ("", "1f1b", [7, 9, 9, 7]),
        ("--parallelism.pipeline_parallel_schedule GPipe", "gpipe", [8, 9, 8, 7]),
        (
            "--parallelism.pipeline_parallel_schedule Interleaved1F1B",
            "interleaved",
            [4, 5, 4, 4, 4, 4, 4, 3],
        ),
    ],
)
def test_stages_are_cut_as_torchtitan_cuts_them(
    words: str, schedule: str, layers: list[int]
) -> None:
    ends = (
        "--parallelism.pipeline_parallel_first_stage_less_layers 2 "
        "--parallelism.pipeline_parallel_last_stage_less_layers 2 "
        if not words
        else ""
    )
    found = command("--parallelism.pipeline_parallel_degree 4 " + ends + words).layout
    stages = found["stages"]
    assert isinstance(stages, list)
    assert [stage["layers"] for stage in stages] == layers
    assert found["schedule"] == schedule


def test_a_module_is_followed_statement_by_statement() -> None:
    found = module("mine")
    assert found.layout["tp"] == 8
    assert found.layout["pp"] == 2
    assert found.layout["micro_batch"] == 1
    assert [stage["layers"] for stage in found.layout["stages"]] == [1, 2]  # type: ignore[attr-defined]
    assert found.training == {
        "seq_len": 4096,
        "global_batch": 8,
        "precision": "bf16",
        "optimizer": "adamw",
    }
    assert any(word.name.startswith("if big") for word in found.unknown)


def test_the_configuration_that_is_named_counts() -> None:
    found = module("debug")
    assert found.layout["recompute"] == "none"
    assert found.model["hidden_size"] == 4096  # type: ignore[index]
    with pytest.raises(BadInputError, match=r"--config.*debug, .*mine"):
        module("other")
    with pytest.raises(BadInputError, match="several"):
        read({"mine.py": MODULE})


def test_what_is_spread_or_computed_is_reported() -> None:
    text = MODULE.replace(
        "activation_checkpoint=None", "compile=CompileConfig(enable=x > 1), **more"
    )
    found = [its.setting for its in module("debug", text).unknown]
    assert "compile.enable x > 1" in found
    assert "** more" in found


def test_split_points_that_are_no_layers_leave_the_stages_open() -> None:
    found = read({"a.toml": TOML.replace("layers.20", "encoder")})
    assert "stages" not in found.layout


def test_a_module_is_never_run() -> None:
    text = MODULE + "\nraise SystemExit(1)\nopen('/nonexistent/x', 'w')\n"
    assert module("mine", text).layout["tp"] == 8
    with pytest.raises(BadInputError, match="is no Python"):
        module("mine", "def broken(:  # torchtitan Config")


TOML = """
[model]
name = "llama3"
flavor = "8B"
converters = ["float8"]
[training]
batch_size = 2
seq_len = 8192
compile = true
[parallelism]
tensor_parallel_degree = 2
pipeline_parallel_degree = 2
pipeline_parallel_split_points = ["layers.20"]
context_parallel_rotate_method = "alltoall"
context_parallel_degree = 2
disable_loss_parallel = true
no_such_setting = 3
[activation_checkpoint]
mode = "selective"
selective_ac_option = "2"
[float8]
enable_fsdp_float8_all_gather = true
[optimizer]
lr = 3e-4
"""


@pytest.mark.parametrize(("kind", "rotation"), ROTATIONS.items())
def test_rotations_of_older_releases(kind: str, rotation: str) -> None:
    """Without a known rotation keys are gathered."""
    found = read({"train.toml": TOML.replace("alltoall", rotation)})
    assert found.layout["cp_kind"] == kind


def test_toml_of_older_releases() -> None:
    found = read({"train.toml": TOML})
    layout = found.layout
    assert (layout["tp"], layout["pp"], layout["cp"]) == (2, 2, 2)
    assert layout["cp_kind"] == "ring"
    assert layout["comm_dtype"] == {"parameters": "fp8"}
    assert [stage["layers"] for stage in layout["stages"]] == [20, 12]  # type: ignore[attr-defined]
    assert found.training["precision"] == "fp8"
    assert found.stack == {"loss": "compiled"}
    assert "optimizer.lr 0.0003" in found.ignored
    for said in ("no_such_setting 3", "disable_loss_parallel True", "selective 2"):
        assert any(said in str(word) for word in found.unknown), said


def test_words_change_a_toml_too() -> None:
    words = (
        LAUNCH + "--job.config_file train.toml --training.batch_size 4 "
        "--parallelism.context_parallel_degree=1 --model.flavor=70B"
    )
    found = read({"train.toml": TOML, "run.sh": words})
    assert found.layout["cp"] == 1
    assert found.layout["dp"] == 8
    assert found.model["hidden_size"] == 8192  # type: ignore[index]


SCRIPT = """
NGPU=${NGPU:-"8"}
CONFIG_FILE=${CONFIG_FILE:-"./train.toml"}
TRAIN_FILE=${TRAIN_FILE:-"torchtitan.train"}
overrides=""
if [ $# -ne 0 ]; then
    overrides="$*"
fi
torchrun --nproc_per_node=${NGPU} --rdzv_backend c10d --role rank --tee 3 \\
-m ${TRAIN_FILE} --job.config_file ${CONFIG_FILE} $overrides
"""
PLAIN = """
[model]
name = "llama3"
flavor = "8B"
[training]
seq_len = 8192
[activation_checkpoint]
mode = "selective"
"""


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--parallelism.tensor_parallel_degree", "2"), {"tp": 2, "dp": 4}),
        (("--model.converters=float8",), {"precision": "fp8", "dp": 8}),
        (("--model.converters", "float8,mx"), {"precision": "fp8"}),
        (("--model.converters", "float8", "mx"), {"precision": "fp8"}),
        (
            (
                "--model.converters=float8",
                "--float8.enable_fsdp_float8_all_gather",
            ),
            {"comm_dtype": {"parameters": "fp8"}},
        ),
    ],
)
def test_arguments_of_a_script_change_its_toml(
    words: tuple[str, ...], expected: dict[str, Any]
) -> None:
    """The script that torchtitan ships takes settings as its arguments."""
    files = {"train.toml": PLAIN, "run_train.sh": SCRIPT}
    given = {str(at): word for at, word in enumerate(words, start=1)}
    found = read_texts(files, None, "the run", given)
    assert expected.items() <= {**found.layout, **found.training}.items()
    assert (found.gpus, found.unknown) == (8, ())


@pytest.mark.parametrize(
    "words",
    [
        "--activation_checkpoint.selective_ac_option 2",
        "--tensor_parallel_degree 2",
        "--training.no_such_setting",
    ],
)
def test_words_that_change_what_is_not_read_are_refused(words: str) -> None:
    line = LAUNCH + f"--job.config_file train.toml {words}"
    found = read({"train.toml": PLAIN, "run.sh": line})
    assert len(found.unknown) == 1


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({"a.toml": TOML.replace("= 2\n", "= 2.5\n")}, "no whole number"),
        ({"a.toml": TOML.replace("lel_degree = 2\n", "lel_degree = 0\n")}, "1 or more"),
        ({"a.py": "x = " + "1 + " * 9000 + "1  # torchtitan Config"}, "is n"),
        ({"a.toml": TOML, "b.toml": TOML}, "several"),
        ({"a.sh": "echo torchtitan"}, "no settings"),
        ({"a.sh": LAUNCH + "--module x --config y"}, "no configuration"),
    ],
)
def test_what_cannot_be_read_is_refused(files: dict[str, str], says: str) -> None:
    with pytest.raises(BadInputError, match=says):
        read(files)


def test_files_are_recognised() -> None:
    assert reads({"train.toml": TOML})
    assert reads({"mine.py": MODULE})
    assert reads({"train.sh": OWN})
    assert not reads({"pyproject.toml": '[project]\nname = "x"'})
    assert not reads({"train.sh": "torchrun pretrain_gpt.py"})


@pytest.mark.parametrize(
    ("setting", "other"),
    [
        ("training.mixed_precision_reduce", "bfloat16"),
        ("training.mixed_precision_param", "float32"),
        ("training.dtype", "bfloat16"),
        ("optimizer.implementation", "for-loop"),
        ("optimizer.implementation", "foreach"),
        ("fault_tolerance.enable", "true"),
        ("fault_tolerance.semi_sync_method", "diloco"),
        ("comm.mode", "torchcomms"),
        ("debug.detect_anomaly", "true"),
        ("override.imports", "[mine]"),
        ("experimental.custom_import", "mine"),
    ],
)
def test_values_that_are_not_priced_are_refused_with_their_line(
    setting: str, other: str
) -> None:
    text = OWN + f"\\\n    --{setting.replace('_', '-')} {other}\n"
    (word,) = command(f"--{setting} {other}").unknown
    assert word.name == setting
    (placed,) = read_texts({"train.sh": text}, "torchtitan", "here").unknown
    assert placed.place == "train.sh:2"


def test_values_that_are_priced_are_harmless() -> None:
    words = "--training.mixed_precision_reduce float32 --optimizer.implementation fused"
    assert not command(words + " --compile.backend inductor").unknown
