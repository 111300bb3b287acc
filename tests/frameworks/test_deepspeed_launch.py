"""Emitted folders start and train on CPUs, under DeepSpeed's own launcher."""

import json
import os
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from conftest import Run
from launching import forked
from make_environments import extensions_of, python_of

LAUNCH = Path(__file__).parents[1] / "planner" / "launch"
sys.path.insert(0, str(LAUNCH))

from deepspeed_plans import plan_file  # noqa: E402  # of the tests beside these
from ports import free_port  # noqa: E402

from planner.calibration.rows.logs import parse_log  # noqa: E402
from planner.launch import PlanFile, emit, write_folder  # noqa: E402
from planner.launch.targets.deepspeed.writer import STARTER  # noqa: E402
from planner.specs.layouts.layout import Layout  # noqa: E402

pytestmark = pytest.mark.frameworks
STEPS = 5
OPTIONS = ("--learning-rate", "0.01", "--steps", str(STEPS))
ON_CPU = {"LEARNING_RATE": "1e-4", "DS_ACCELERATOR": "cpu", "OMP_NUM_THREADS": "1"}
BY_LAUNCHER = "pipeline"
"""The one that DeepSpeed's own launcher starts."""
BY_FORKS = (
    "zero 1",
    "zero 2",
    "zero 3",
    "optimizer on the host",
    "both on the host",
    "pipeline, uneven",
    "pipeline, checkpointed",
    "pipeline of experts",
    "tp",
    "ulysses",
    "ulysses under zero 3",
)
"""Those that share one import: the same scripts with the same words."""


def emitted(name: str, folder: Path) -> PlanFile:
    """A plan, and its launch folder beside it."""
    folder.mkdir()
    found = plan_file(name, folder)
    write_folder(folder / "out", emit(found, "deepspeed"), force=False)
    return found


def launched(folder: Path, binaries: Path, **variables: str) -> str:
    """What launch.sh printed where this folder's programs come first."""
    clean = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run(
        ["bash", "launch.sh", *OPTIONS],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=480,
        check=False,
        env={
            **clean,
            "PATH": f"{binaries}{os.pathsep}{clean['PATH']}",
            **ON_CPU,
            "MASTER_PORT": str(free_port()),
            "TORCH_EXTENSIONS_DIR": str(extensions_of("deepspeed")),
            **variables,
        },
    )
    assert done.returncode == 0, (done.stdout[-2000:], done.stderr[-4000:])
    return done.stdout


@pytest.fixture(scope="module")
def trained(
    run_in: Run, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, tuple[PlanFile, str]]:
    """Every plan that forks train, with what its first rank said."""
    scratch = tmp_path_factory.mktemp("forks")
    plans = {name: emitted(name, scratch / name) for name in BY_FORKS}
    folders = {
        name: (scratch / name / "out", found.plan.layout.gpus)
        for name, found in plans.items()
    }
    codes = forked(run_in, "deepspeed", folders, scratch, OPTIONS, ON_CPU)
    assert set(map(tuple, codes.values())) <= {(0, 0), (0, 0, 0, 0)}, codes
    logs = {name: scratch / name / "out" / "rank-0.log" for name in plans}
    return {name: (plans[name], log.read_text()) for name, log in logs.items()}


def told(text: str, word: str) -> Any:
    (line,) = [one for one in text.splitlines() if one.startswith(f"{word} ")]
    return json.loads(line.removeprefix(f"{word} "))


def check(found: PlanFile, text: str) -> None:
    """Losses fall, the layout is the plan's, and what is sharded really is."""
    losses = [
        float(x) for x in re.findall(r"^step=\d+, loss=([\d.]+)", text, re.MULTILINE)
    ]
    assert len(losses) == STEPS, text[-3000:]
    assert losses[-1] < losses[0] - 0.05
    _is_the_plan(told(text, "LAYOUT"), found.plan.layout)
    _holds_its_part(told(text, "HELD"), found)
    log = parse_log(text)
    assert log is not None
    assert (log.framework, log.samples_per_s is not None) == ("DeepSpeed", True)


def test_launch_sh_trains_under_deepspeeds_launcher(tmp_path: Path) -> None:
    found = emitted(BY_LAUNCHER, tmp_path / "plan")
    check(found, launched(tmp_path / "plan" / "out", python_of("deepspeed").parent))


def test_ranks_follow_the_slots_of_each_node(tmp_path: Path) -> None:
    """Nodes of two pools, one of which has one GPU less."""
    (tmp_path / "hostfile").write_text("node-0 slots=1\nnode-1 slots=2\n")
    (tmp_path / "train.py").write_text(
        "import os\n"
        "os.write(1, 'rank {RANK} {WORLD_SIZE}\\n'.format(**os.environ).encode())\n"
    )
    (tmp_path / "launch.sh").write_text(f"{' '.join(STARTER.words)} train.py\n")
    for node, ranks in (("0", ["rank 0 3"]), ("1", ["rank 1 3", "rank 2 3"])):
        place = {"NODE_RANK": node, "MASTER_ADDR": "localhost"}
        said = launched(tmp_path, python_of("deepspeed").parent, **place)
        lines = [line for line in said.splitlines() if line.startswith("rank ")]
        assert sorted(lines) == ranks


@pytest.mark.parametrize("name", BY_FORKS)
def test_an_emitted_folder_trains(
    name: str, trained: dict[str, tuple[PlanFile, str]]
) -> None:
    check(*trained[name])


def _is_the_plan(said: dict[str, Any], its: Layout) -> None:
    for name in ("gpus", "tp", "cp", "pp", "dp", "zero_stage", "micro_batch"):
        assert said[name] == getattr(its, name), name
    assert said["grad_accum"] == its.grad_accum
    assert said["engine"] == ("PipelineEngine" if its.pp > 1 else "DeepSpeedEngine")
    if its.pp > 1:
        held = [after - before for before, after in pairwise(said["parts"])]
        # Embedding first; norm and head last.
        held[0] -= 1
        held[-1] -= 2
        assert tuple(held) == its.layers_per_stage


def _holds_its_part(held: list[dict[str, Any]], found: PlanFile) -> None:
    """Parameters over tp, pp and ZeRO-3's ranks; states over ZeRO's."""
    its, model = found.plan.layout, found.pricing.model
    whole = model.parameters
    assert len(held) == its.gpus
    parameters = sum(one["parameters"] for one in held)
    states = sum(one["states"] for one in held)
    assert {one["host_optimizer"] for one in held} == {its.offload.optimizer > 0}
    if its.tp > 1:
        # Norms and the embedding stay whole on every tensor rank.
        kept = (model.vocab + 2 * model.layers + 1) * model.hidden
        assert parameters == its.gpus * (kept + (whole - kept) // its.tp)
        return
    copies = 1 if its.zero_stage == 3 else its.dp * its.cp
    # Shards are padded to whole multiples.
    assert parameters == pytest.approx(whole * copies, rel=0.01)
    assert states == pytest.approx(whole, rel=0.01)
    for one in held:
        assert one["states"] < 0.8 * whole
