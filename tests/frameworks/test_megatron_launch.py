"""Emitted folders start and train on CPUs, through megatron-core's own schedules."""

import json
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from conftest import Run
from launching import forked
from make_environments import python_of
from ports import free_port

from planner.job.resolve import resolve
from planner.launch import emit, read_plan, write_folder
from planner.planning.prediction.predict import predict
from planner.specs.answer.result import Plan
from planner.specs.job import JobSpec
from planner.specs.layouts.layout import PartialLayout

pytestmark = pytest.mark.frameworks
SCRIPTS = Path(__file__).parent / "megatron"
STEPS = 5
MODEL = {
    "name": "tiny",
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 257,
    "max_position_embeddings": 64,
    "tie_word_embeddings": False,
    "rope_theta": 10000.0,
}
CLUSTERS = {2: "a6000-2", 4: "rtx-4090-4"}
LAYOUTS: dict[str, tuple[int, dict[str, Any]]] = {
    "data parallel": (2, {}),
    "tp 2": (2, {"tp": 2, "sp": False}),
    "pp 2": (2, {"pp": 2}),
    "interleaved": (2, {"pp": 2, "vpp": 2, "schedule": "interleaved"}),
    "uneven": (2, {"pp": 2, "stages": [{"layers": 3}, {"layers": 1}]}),
    "tp 2 pp 2": (4, {"tp": 2, "sp": False, "pp": 2}),
    "full recompute": (2, {"pp": 2, "recompute": "full"}),
}


BY_LAUNCHER = "interleaved"
"""The one that torchrun starts; forks of one process have the same words. [text]"""
BY_FORKS = tuple(name for name in LAYOUTS if name != BY_LAUNCHER)
ON_CPU = {
    "LEARNING_RATE": "1e-4",
    "MEGATRON_PATH": str(SCRIPTS),
    "TRAIN_STEPS": str(STEPS),
    "OMP_NUM_THREADS": "1",
    "TORCHDYNAMO_DISABLE": "1",
}


FLEET = {
    "name": "three cards",
    "pools": [
        {"name": "two", "node": "workstation-rtx-3090-2", "nodes": 1},
        {"name": "one", "node": "workstation-rtx-4090-1", "nodes": 1},
    ],
}
ON_FLEET: dict[str, Any] = {
    "pp": 3,
    "stages": [{"layers": 1}, {"layers": 1}, {"layers": 2}],
    "pools": [{"pool": "two", "stages": [0, 1]}, {"pool": "one", "stages": [2]}],
}


def plan_of(cluster: str | dict[str, Any], fields: dict[str, Any]) -> Plan:
    spec = JobSpec.model_validate(
        {
            "model": MODEL,
            "cluster": cluster,
            "training": {"seq_len": 32, "global_batch": 8},
            "framework": "megatron",
        }
    )
    (workload,) = resolve(spec, file="tiny", base=Path())
    plain = {"micro_batch": 1, "recompute": "none", "order": "tp-cp-ep-dp-pp"}
    if "stages" in fields:
        del plain["recompute"]
    partial = PartialLayout.model_validate(plain | fields)
    priced = predict(workload, partial)
    return Plan.model_validate(
        {
            "schema": "planner/plan@1",
            "spec": spec.model_dump(mode="json", by_alias=True) | {"model": MODEL},
            "layout": priced.layout.model_dump(mode="json", by_alias=True),
            "estimate": priced.estimate.model_dump(mode="json", by_alias=True),
            "versions": {"planner": "0"},
        }
    )


def launched(folder: Path, **variables: str) -> list[dict[str, Any]]:
    """What every rank of launch.sh said, in order."""
    binaries = python_of("megatron").parent
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run(
        ["bash", "launch.sh"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        env={
            **environment,
            "PATH": f"{binaries}{os.pathsep}{environment['PATH']}",
            "MASTER_PORT": str(free_port()),
            **ON_CPU,
            **variables,
        },
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return told(done.stdout)


def told(text: str) -> list[dict[str, Any]]:
    """Lines of ranks, in order."""
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def on_forks(
    run_in: Run, folders: dict[str, tuple[Path, int]], scratch: Path
) -> dict[str, list[dict[str, Any]]]:
    """Words of every rank of each folder, forked from one process."""
    variables = {**ON_CPU, "PYTHONPATH": str(SCRIPTS)}
    codes = forked(run_in, "megatron", folders, scratch, (), variables, ("warm",))
    texts = {
        name: [(folder / f"rank-{at}.log").read_text() for at in range(ranks)]
        for name, (folder, ranks) in folders.items()
    }
    for name, (_, ranks) in folders.items():
        assert codes[name] == [0] * ranks, texts[name][0][-3000:]
    return {name: told("".join(each)) for name, each in texts.items()}


def emitted(name: str, scratch: Path) -> Plan:
    """A plan, and its launch folder beside it."""
    gpus, fields = LAYOUTS[name]
    plan = plan_of(CLUSTERS[gpus], fields)
    written(plan, scratch / name)
    return plan


def written(plan: Plan, folder: Path) -> None:
    """Write the launch folder of a plan."""
    folder.mkdir()
    file = folder / "plan.json"
    file.write_text(plan.model_dump_json(by_alias=True, indent=2))
    write_folder(folder / "out", emit(read_plan(file), "megatron"), force=False)


@pytest.fixture(scope="module")
def trained(
    run_in: Run, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, tuple[Plan, list[dict[str, Any]]]]:
    """Every plan that forks train, with what its ranks said."""
    scratch = tmp_path_factory.mktemp("forks")
    plans = {name: emitted(name, scratch) for name in BY_FORKS}
    folders = {
        name: (scratch / name / "out", plan.layout.gpus) for name, plan in plans.items()
    }
    said = on_forks(run_in, folders, scratch)
    return {name: (plan, said[name]) for name, plan in plans.items()}


def test_launch_sh_trains_under_torchrun(tmp_path: Path) -> None:
    plan = emitted(BY_LAUNCHER, tmp_path)
    check(plan, launched(tmp_path / BY_LAUNCHER / "out"))


def test_nodes_of_two_pools_train_with_as_many_ranks_as_each_has_gpus(
    tmp_path: Path,
) -> None:
    """torchrun numbers ranks over nodes of two and of one, in the order of nodes."""
    plan = plan_of(FLEET, ON_FLEET)
    written(plan, tmp_path / "fleet")
    port = str(free_port())
    start = partial(launched, tmp_path / "fleet" / "out", DEVICE="cpu")
    with ThreadPoolExecutor() as pool:
        nodes = [
            pool.submit(start, NODE_RANK=node, MASTER_PORT=port) for node in ("0", "1")
        ]
        said = [node.result() for node in nodes]
    ranks = [[one["rank"] for one in each if "rank" in one] for each in said]
    assert [sorted(each) for each in ranks] == [[0, 1], [2]]
    check(plan, [*said[0], *said[1]])


@pytest.mark.parametrize("name", BY_FORKS)
def test_an_emitted_folder_trains(
    name: str, trained: dict[str, tuple[Plan, list[dict[str, Any]]]]
) -> None:
    check(*trained[name])


def check(plan: Plan, said: list[dict[str, Any]]) -> None:
    """Losses fall, and every rank is where the plan has it."""
    ranks = {one["rank"]: one for one in said if "rank" in one}
    losses = [one["loss"] for one in said if one.get("step") is not None]
    assert sorted(ranks) == list(range(plan.layout.gpus))
    for one in ranks.values():
        _is_where_the_plan_says(one, plan)
    assert len(losses) >= STEPS
    assert losses[-1] < losses[0] - 0.05


def _is_where_the_plan_says(one: dict[str, Any], plan: Plan) -> None:
    its = plan.layout
    stages = range(one["stage"], its.pp * its.vpp, its.pp)
    assert (one["world"], one["tp"], one["pp"]) == (its.gpus, its.tp, its.pp)
    assert one["dp"] == its.dp
    assert one["micro_batches"] == its.grad_accum
    assert one["layers"] == [its.stages[stage].layers for stage in stages]
    assert one["hidden"] == MODEL["intermediate_size"] // its.tp
    schedule = {
        (False, False): "forward_backward_no_pipelining",
        (True, False): "forward_backward_pipelining_without_interleaving",
        (True, True): "forward_backward_pipelining_with_interleaving",
    }
    assert one["schedule"] == schedule[its.pp > 1, its.vpp > 1]
