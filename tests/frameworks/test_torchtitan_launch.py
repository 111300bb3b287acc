"""Emitted folders start and train on CPUs, through torchtitan's own trainer."""

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from conftest import Run
from launching import forked
from make_environments import python_of
from ports import free_port

from planner.calibration.rows.logs import parse_log
from planner.job.resolve import resolve
from planner.launch import emit, read_plan, write_folder
from planner.planning.prediction.predict import predict
from planner.specs.answer.result import Plan
from planner.specs.job import JobSpec
from planner.specs.layouts.layout import PartialLayout

pytestmark = pytest.mark.frameworks
SCRIPTS = Path(__file__).parent / "torchtitan"
STEPS = 5
MODEL = {
    "name": "tiny",
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 256,
    "max_position_embeddings": 256,
    "tie_word_embeddings": False,
    "rope_theta": 10000.0,
}
EXPERTS = {"model_type": "mixtral", "num_local_experts": 4, "num_experts_per_tok": 2}
CLUSTERS = {2: "a6000-2", 4: "rtx-4090-4"}
LAYOUTS: dict[str, tuple[int, dict[str, Any]]] = {
    "fsdp 2": (2, {"zero_stage": 3}),
    "tp 2": (2, {"tp": 2, "sp": True, "recompute": "full"}),
    "pp 2": (2, {"pp": 2}),
    "interleaved, no layers at the ends": (
        2,
        {
            "pp": 2,
            "vpp": 2,
            "schedule": "interleaved",
            "stages": [{"layers": count} for count in (0, 1, 1, 0)],
        },
    ),
    "cp 2": (2, {"cp": 2}),
    "ep 2": (2, {"ep": 2}),
    "pp 2, replicas apart": (4, {"pp": 2, "dp_shard": 1, "order": "tp-cp-ep-pp-dp"}),
    "hsdp 2 x 2": (4, {"dp_shard": 2, "zero_stage": 2}),
}
BY_LAUNCHER = "pp 2"
"""The one that check.sh starts; forks of one process have the same words. [text]"""
BY_FORKS = tuple(name for name in LAYOUTS if name != BY_LAUNCHER)
OPTIONS = (f"--training.steps={STEPS}", "--metrics.log-freq=1")
ON_CPU = {
    "PYTHONPATH": str(SCRIPTS),
    "LEARNING_RATE": "3e-3",
    "WARMUP_STEPS": "1",
    "OMP_NUM_THREADS": "1",
    "TORCHDYNAMO_DISABLE": "1",
    "WANDB_MODE": "disabled",
}
SCHEDULES = {"1f1b": "Schedule1F1B", "interleaved": "ScheduleInterleaved1F1B"}


def plan_of(gpus: int, fields: dict[str, Any]) -> Plan:
    model = MODEL | (EXPERTS if "ep" in fields else {})
    spec = JobSpec.model_validate(
        {
            "model": model,
            "cluster": CLUSTERS[gpus],
            "training": {"seq_len": 256, "global_batch": 8},
            "framework": "torchtitan",
        }
    )
    (workload,) = resolve(spec, file="tiny", base=Path())
    plain = {"micro_batch": 1, "recompute": "none", "order": "tp-cp-ep-dp-pp"}
    if "stages" in fields:
        del plain["recompute"]
    priced = predict(workload, PartialLayout.model_validate(plain | fields))
    return Plan.model_validate(
        {
            "schema": "planner/plan@1",
            "spec": spec.model_dump(mode="json", by_alias=True) | {"model": model},
            "layout": priced.layout.model_dump(mode="json", by_alias=True),
            "estimate": priced.estimate.model_dump(mode="json", by_alias=True),
            "versions": {"planner": "0"},
        }
    )


def launched(folder: Path, reports: Path) -> str:
    """What check.sh printed; every rank leaves a report."""
    binaries = python_of("torchtitan").parent
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run(
        ["bash", "check.sh", f"--training.steps={STEPS}"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        env={
            **environment,
            "PATH": f"{binaries}{os.pathsep}{environment['PATH']}",
            "REPORTS": str(reports),
            "MASTER_PORT": str(free_port()),
            **ON_CPU,
        },
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return (folder / "check.log").read_text()


def on_forks(
    run_in: Run, folders: dict[str, tuple[Path, int]], scratch: Path
) -> dict[str, str]:
    """Logs of each folder, all ranks one after the other; forks of one process.

    Ranks leave their reports in the folder itself.
    """
    variables = {**ON_CPU, "REPORTS": "."}
    codes = forked(
        run_in, "torchtitan", folders, scratch, OPTIONS, variables, ("warm",)
    )
    logs = {}
    for name, (folder, ranks) in folders.items():
        texts = [(folder / f"rank-{at}.log").read_text() for at in range(ranks)]
        assert codes[name] == [0] * ranks, texts[0][-3000:]
        logs[name] = "".join(texts)
    return logs


def emitted(name: str, scratch: Path) -> Plan:
    """A plan, and its launch folder beside it."""
    plan, folder = plan_of(*LAYOUTS[name]), scratch / name
    folder.mkdir()
    file = folder / "plan.json"
    file.write_text(plan.model_dump_json(by_alias=True, indent=2))
    write_folder(folder / "out", emit(read_plan(file), "torchtitan"), force=False)
    return plan


@pytest.fixture(scope="module")
def trained(
    run_in: Run, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, tuple[Plan, str, Path]]:
    """Every plan that forks train, its log, and the folder of its reports."""
    scratch = tmp_path_factory.mktemp("forks")
    plans = {name: emitted(name, scratch) for name in BY_FORKS}
    outs = {name: scratch / name / "out" for name in BY_FORKS}
    folders = {name: (outs[name], plan.layout.gpus) for name, plan in plans.items()}
    logs = on_forks(run_in, folders, scratch)
    return {name: (plans[name], logs[name], outs[name]) for name in BY_FORKS}


def test_check_sh_trains_under_torchrun(tmp_path: Path) -> None:
    plan, reports = emitted(BY_LAUNCHER, tmp_path), tmp_path / "reports"
    reports.mkdir()
    check(plan, launched(tmp_path / BY_LAUNCHER / "out", reports), reports)


@pytest.mark.parametrize("name", BY_FORKS)
def test_an_emitted_folder_trains(
    name: str, trained: dict[str, tuple[Plan, str, Path]]
) -> None:
    check(*trained[name])


def check(plan: Plan, log: str, reports: Path) -> None:
    """Losses fall, and every rank is where the plan has it."""
    gpus = plan.layout.gpus
    _learns(log)
    files = [reports / f"{at}.json" for at in range(gpus)]
    every = [json.loads(path.read_text()) for path in files]
    assert sorted(one["process"] for one in every) == list(range(gpus))
    assert sorted(one["rank"] for one in every) == list(range(gpus))
    for one in every:
        _is_where_the_plan_says(one, plan)


def _learns(log: str) -> None:
    """The loss that the last stage prints falls, and the log is one that we read."""
    found = re.findall(r"step:\s*(\d+) .*?loss:\s*(-?[\d.]+)", _plain(log))
    by_step: dict[int, float] = {}
    for step, loss in found:
        by_step[int(step)] = max(float(loss), by_step.get(int(step), -1.0))
    assert list(by_step) == list(range(1, STEPS + 1))
    assert by_step[STEPS] < by_step[1] - 0.1
    read = parse_log(log)
    assert read is not None
    assert read.framework == "torchtitan"
    assert read.step_time(global_batch=8, seq_len=256, gpus=2)


def _plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def _is_where_the_plan_says(one: dict[str, Any], plan: Plan) -> None:
    its = plan.layout
    shards = its.dp_shard // its.cp
    assert one["world"] == its.gpus
    assert one["mesh"] == {
        "dp_replicate": its.dp // shards,
        "dp_shard": shards,
        "cp": its.cp,
        "tp": its.tp,
        "pp": its.pp,
        "ep": its.ep,
    }
    held = [
        layer
        for stage in range(one["stage"], its.pp * its.vpp, its.pp)
        for layer in _layers_of(its.layers_per_stage, stage)
    ]
    assert one["layers"] == held
    assert one["micro_batches"] == its.grad_accum
    assert one["schedule"] == (SCHEDULES[its.schedule] if its.pp > 1 else None)
    # Stages are outermost in torchtitan's ranks; processes follow the plan's order.
    beside = its.dp if its.order == "tp-cp-ep-dp-pp" else 1
    assert one["stage"] == one["process"] // (its.tp * its.cp * beside) % its.pp
    rows, columns = MODEL["intermediate_size"], MODEL["hidden_size"]
    if its.ep > 1:
        experts = EXPERTS["num_local_experts"]
        assert one["whole"] == [experts, rows, columns]
        assert one["local"] == [experts // its.ep, rows, columns]
    else:
        assert one["whole"] == [rows, columns]
        assert one["local"] == [rows // (its.tp * its.dp_shard), columns]
    assert _sharded(one["placements"], its.tp * its.dp_shard > 1)


def _layers_of(counts: tuple[int, ...], stage: int) -> range:
    first = sum(counts[:stage])
    return range(first, first + counts[stage])


def _sharded(placements: list[str], wanted: bool) -> bool:  # noqa: FBT001  # a question
    found = any("Shard" in place or place.startswith("S(") for place in placements)
    return found or not wanted
