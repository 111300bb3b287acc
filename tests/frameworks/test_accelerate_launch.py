"""Emitted folders start and train on CPUs, placed as their plans say."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from make_environments import extensions_of, python_of

LAUNCH = Path(__file__).parents[1] / "planner" / "launch"
sys.path.insert(0, str(LAUNCH))

from accelerate_plans import filed, plan_of  # noqa: E402  # of the tests beside these
from ports import free_port  # noqa: E402

from planner.calibration.rows.logs import read_log  # noqa: E402
from planner.launch import emit, write_folder  # noqa: E402
from planner.specs.layouts.layout import Layout  # noqa: E402

pytestmark = pytest.mark.frameworks
STEPS = 5
LORA = {"method": "lora", "lora": {"rank": 4, "targets": "all-linear"}}


@dataclass(frozen=True)
class Case:
    """A plan, and what every rank must say of it."""

    gpus: int
    layout: dict[str, Any]
    kind: str
    mesh: dict[str, int] = field(default_factory=dict)
    placements: tuple[str, ...] = ()
    spec: dict[str, Any] = field(default_factory=dict)
    target: str = "accelerate"
    rate: float = 0.003


CASES = {
    "fsdp2": Case(
        2,
        {"zero_stage": 3, "recompute": "full", "micro_batch": 2},
        "FSDP",
        {"dp_shard_cp": 2},
        ("(Shard(dim=0),)",),
    ),
    "hsdp 2 x 2 under torchrun": Case(
        4,
        {"zero_stage": 2, "dp_shard": 2},
        "FSDP",
        {"dp_replicate": 2, "dp_shard_cp": 2},
        ("(Replicate(), Shard(dim=0))",),
        target="torchrun",
    ),
    "tp 2 x fsdp 2": Case(
        4,
        {"tp": 2, "zero_stage": 3, "recompute": "full"},
        "MULTI_GPU",
        {"fsdp": 2, "tp": 2},
        ("(Shard(dim=0), Shard(dim=1))", "(_StridedShard(dim=0, sf=2), Shard(dim=0))"),
    ),
    "adapters": Case(
        2,
        {"zero_stage": 3},
        "FSDP",
        {"dp_shard_cp": 2},
        ("(Shard(dim=0),)",),
        {"training": LORA},
        rate=0.05,
    ),
    "deepspeed": Case(
        2, {"zero_stage": 3}, "DEEPSPEED", spec={"stack": {"name": "hf-trainer"}}
    ),
}


def launched(folder: Path, case: Case) -> str:
    """What check.sh said, which it also keeps in check.log."""
    environment = "deepspeed" if case.kind == "DEEPSPEED" else "accelerate"
    binaries = python_of(environment).parent
    clean = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run(
        [
            "bash",
            "check.sh",
            "--max_steps",
            str(STEPS),
            "--learning_rate",
            str(case.rate),
        ],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        env={
            **clean,
            "PATH": f"{binaries}{os.pathsep}{clean['PATH']}",
            "DEVICE": "cpu",
            "MASTER_PORT": str(free_port()),
            "OMP_NUM_THREADS": "1",
            "DS_ACCELERATOR": "cpu",
            "TORCH_EXTENSIONS_DIR": str(extensions_of(environment)),
            "HF_HUB_OFFLINE": "1",
        },
    )
    assert done.returncode == 0, done.stdout[-4000:]
    return done.stdout


def said(text: str) -> tuple[dict[int, dict[str, Any]], list[float]]:
    """The line of every rank, and the losses."""
    lines = text.splitlines()
    marked = [x.partition("LAYOUT ")[2] for x in lines if "LAYOUT {" in x]
    ranks = {one["rank"]: one for one in map(json.loads, marked)}
    losses = [
        float(line.split("'loss': '")[1].split("'")[0])
        for line in lines
        if "'loss': '" in line
    ]
    return ranks, losses


@pytest.mark.parametrize("name", CASES)
def test_an_emitted_folder_trains(name: str, tmp_path: Path) -> None:
    """Losses fall, on as many processes as planned, each with its share."""
    case = CASES[name]
    plan = plan_of(case.gpus, case.layout, **case.spec)
    write_folder(
        tmp_path / "out", emit(filed(plan, tmp_path), case.target), force=False
    )
    ranks, losses = said(launched(tmp_path / "out", case))
    assert sorted(ranks) == list(range(case.gpus))
    for one in ranks.values():
        _is_as_planned(one, case, plan.layout)
    assert len(losses) == STEPS
    assert losses[-1] < losses[0] - 0.05
    log = read_log(tmp_path / "out" / "check.log")
    assert log.framework == "Hugging Face Trainer"
    assert log.readings == STEPS - 1


def _is_as_planned(one: dict[str, Any], case: Case, layout: Layout) -> None:
    assert one["world"] == layout.gpus
    assert one["type"] == case.kind
    assert one["mesh"] == case.mesh
    assert set(case.placements) <= set(one["placements"])
    assert one["zero"] == (layout.zero_stage if case.kind == "DEEPSPEED" else None)
    assert one["sequences"] == layout.micro_batch
    assert one["accumulation"] == layout.grad_accum
    ranks = layout.dp_shard * layout.tp
    assert one["held"] < one["parameters"] / ranks * 1.1
