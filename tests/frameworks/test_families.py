"""Every family of the catalogue that a target supports trains from its folder."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import Run
from launching import forked

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS), str(TESTS / "planner" / "launch")]

from small_models import one_of_each_family, small_fields  # noqa: E402
from test_megatron_launch import on_forks as on_megatron  # noqa: E402
from test_torchtitan_launch import on_forks as on_torchtitan  # noqa: E402

from planner.errors import BadInputError, UnsupportedPlanError  # noqa: E402
from planner.job.resolve import resolve  # noqa: E402
from planner.launch import emit, read_plan, write_folder  # noqa: E402
from planner.planning.prediction.predict import predict  # noqa: E402
from planner.specs.answer.result import Plan  # noqa: E402
from planner.specs.job import JobSpec  # noqa: E402
from planner.specs.layouts.layout import PartialLayout  # noqa: E402

pytestmark = pytest.mark.frameworks
RANKS = 2
ABSENT = {"bailing_moe_v2", "grok-1", "nemotron-nas"}
"""Families whose code lies with their weights: no target has it. [text]"""
SHARDED = {"zero_stage": 3}
ON_CPU = {
    "DEVICE": "cpu",
    "DS_ACCELERATOR": "cpu",
    "HF_HUB_OFFLINE": "1",
    "OMP_NUM_THREADS": "1",
}
FAMILIES = tuple(one for one in one_of_each_family() if one not in ABSENT)


def tiny(family: str) -> dict[str, Any]:
    """The family's preset with small sizes, and a padding token that is one of them."""
    fields = small_fields(one_of_each_family()[family])
    return {"name": "tiny", "pad_token_id": 0, **fields}


def written(family: str, target: str, layout: dict[str, Any], folder: Path) -> Path:
    """A launch folder of one tiny step."""
    model = tiny(family)
    spec = JobSpec.model_validate(
        {
            "model": model,
            "cluster": "a6000-2",
            "training": {"seq_len": 32, "global_batch": RANKS},
            "framework": target,
        }
    )
    (workload,) = resolve(spec, file=family, base=Path())
    given = {"micro_batch": 1, "recompute": "none"} | layout
    priced = predict(workload, PartialLayout.model_validate(given))
    plan = Plan.model_validate(
        {
            "schema": "planner/plan@1",
            "spec": spec.model_dump(mode="json", by_alias=True) | {"model": model},
            "layout": priced.layout.model_dump(mode="json", by_alias=True),
            "estimate": priced.estimate.model_dump(mode="json", by_alias=True),
            "versions": {"planner": "0"},
        }
    )
    folder.mkdir()
    (folder / "plan.json").write_text(plan.model_dump_json(by_alias=True))
    found = read_plan(folder / "plan.json")
    write_folder(folder / "out", emit(found, target), force=False)
    return folder / "out"


def folders_of(
    families: tuple[str, ...], target: str, layout: dict[str, Any], scratch: Path
) -> dict[str, tuple[Path, int]]:
    """Launch folders of families, each with its number of ranks."""
    return {f: (written(f, target, layout, scratch / f), RANKS) for f in families}


def said(folder: Path) -> str:
    return (folder / "rank-0.log").read_text(errors="replace")


REFUSED = {
    "deepspeed": {
        "minimax": "ZeRO 3 leaves the decays",
        "zamba2": "share",
    },
    "accelerate": {"zamba2": "share"},
}
"""Families that a target has no shards for, and its words. [text]"""


@pytest.mark.parametrize(
    ("target", "family", "words"),
    [(target, *one) for target, its in REFUSED.items() for one in its.items()],
)
def test_shards_that_would_not_train_are_refused(
    target: str, family: str, words: str, tmp_path: Path
) -> None:
    with pytest.raises((BadInputError, UnsupportedPlanError), match=words):
        written(family, target, SHARDED, tmp_path / family)


def sharded(target: str) -> tuple[str, ...]:
    """Families that a target trains in shards."""
    return tuple(one for one in FAMILIES if one not in REFUSED[target])


@pytest.fixture(scope="module")
def deepspeed(
    run_in: Run, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, tuple[list[int], str]]:
    """Exit codes and words of every family under ZeRO 3."""
    scratch = tmp_path_factory.mktemp("deepspeed")
    families = sharded("deepspeed")
    folders = folders_of(families, "deepspeed", SHARDED, scratch)
    codes = forked(run_in, "deepspeed", folders, scratch, ("--steps", "1"), ON_CPU)
    return {family: (codes[family], said(folders[family][0])) for family in families}


@pytest.mark.parametrize("family", sharded("deepspeed"))
def test_deepspeed_trains_it_in_shards(
    family: str, deepspeed: dict[str, tuple[list[int], str]]
) -> None:
    codes, text = deepspeed[family]
    assert codes == [0] * RANKS, text[-3000:]
    (loss,) = re.findall(r"^step=1, loss=([\d.]+)", text, re.MULTILINE)
    assert 0.0 < float(loss) < 10.0
    (held,) = re.findall(r"^HELD (.*)", text, re.MULTILINE)
    whole = sum(one["parameters"] for one in json.loads(held))
    for one in json.loads(held):
        assert one["parameters"] < 0.6 * whole


ACCELERATE = (
    "torch",
    "accelerate.commands.launch",
    "transformers.training_args",
    "transformers.modeling_utils",
)
"""What train.py imports in its functions, before it knows the model. [text]"""


@pytest.fixture(scope="module")
def accelerate(
    run_in: Run, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, tuple[list[int], str]]:
    """Exit codes and words of every family under FSDP2."""
    scratch = tmp_path_factory.mktemp("accelerate")
    families = sharded("accelerate")
    folders = folders_of(families, "accelerate", SHARDED, scratch)
    words = ("--max_steps", "1", "--logging_steps", "1")
    codes = forked(run_in, "accelerate", folders, scratch, words, ON_CPU, ACCELERATE)
    return {family: (codes[family], said(folders[family][0])) for family in families}


@pytest.mark.parametrize("family", sharded("accelerate"))
def test_accelerate_trains_it_in_shards(
    family: str, accelerate: dict[str, tuple[list[int], str]]
) -> None:
    codes, text = accelerate[family]
    assert codes == [0] * RANKS, text[-3000:]
    (losses,) = re.findall(r"'loss': '([\d.]+)'", text)
    assert 0.0 < float(losses) < 20.0
    marked = [x.partition("LAYOUT ")[2] for x in text.splitlines() if "LAYOUT {" in x]
    (rank,) = map(json.loads, marked)
    assert rank["world"] == RANKS
    assert rank["held"] < 0.6 * rank["parameters"]


MEGATRON = ("mistral", "qwen2", "qwen3", "gpt2")
"""Dense families that pretrain_gpt.py's stand-in on CPUs can build; Llama is trained
under every axis by its own tests. [text]"""


@pytest.fixture(scope="module")
def megatron(
    run_in: Run, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, list[dict[str, Any]]]:
    """Lines of every family's ranks."""
    scratch = tmp_path_factory.mktemp("megatron")
    folders = folders_of(MEGATRON, "megatron", {}, scratch)
    return on_megatron(run_in, folders, scratch)


@pytest.mark.parametrize("family", MEGATRON)
def test_megatron_trains_it(
    family: str, megatron: dict[str, list[dict[str, Any]]]
) -> None:
    losses = [one["loss"] for one in megatron[family] if one.get("step") is not None]
    assert losses
    assert all(0.0 < loss < 10.0 for loss in losses)


TORCHTITAN = ("qwen3", "qwen3_moe", "deepseek_v2", "deepseek_v3")
"""Families beside Llama and Mixtral, which are trained under every axis. [text]"""


@pytest.fixture(scope="module")
def torchtitan(run_in: Run, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Logs of every family under ZeRO 3."""
    scratch = tmp_path_factory.mktemp("torchtitan")
    folders = folders_of(TORCHTITAN, "torchtitan", SHARDED, scratch)
    return on_torchtitan(run_in, folders, scratch)


@pytest.mark.parametrize("family", TORCHTITAN)
def test_torchtitan_trains_it_in_shards(
    family: str, torchtitan: dict[str, str]
) -> None:
    plain = re.sub(r"\x1b\[[0-9;]*m", "", torchtitan[family])
    losses = re.findall(r"loss:\s*(-?[\d.]+)", plain)
    assert losses
    assert all(0.0 < float(loss) < 20.0 for loss in losses)
