"""Plans on several pools through the commands: written, read back, or refused."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from golden_folders import ROOT
from typer.testing import CliRunner

from planner.cli.app import app
from planner.errors import BadInputError, UnsupportedPlanError
from planner.launch import emit, read_plan
from planner.launch.registry import TARGETS
from planner.launch.targets.deepspeed.writer import hostfile
from planner.questions import nearest
from planner.questions.emit import Emit, priced_anew

CASE = ROOT / "slurm" / "llama-3.1-8b-16-h100-8-a100"
runner = CliRunner()


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """The job of the golden folder, of few layouts."""
    spec = json.loads((CASE / "plan.json").read_text())["spec"]
    limits = {"pp": 3, "cp": 2, "tp": 1, "vpp": 1, "recompute": ["none"]}
    path = tmp_path / "job.yaml"
    path.write_text(yaml.safe_dump({**spec, "search": limits}))
    return path


def run(*words: object) -> tuple[int, str]:
    result = runner.invoke(app, [str(word) for word in words])
    return result.exit_code, " ".join(result.output.split())


def test_a_mixed_fleet_is_planned_and_written(job: Path, tmp_path: Path) -> None:
    code, said = run("plan", job, "--out", tmp_path / "out")
    assert code == 0, said
    assert f"cd {tmp_path / 'out'} && ./launch.sh" in said
    found = read_plan(tmp_path / "out" / "plan.json")
    assert len(found.plan.layout.pools) == 2
    assert {"nodes.txt", "place.sh"} <= {p.name for p in (tmp_path / "out").iterdir()}


def test_short_runs_of_a_mixed_fleet_are_written(job: Path, tmp_path: Path) -> None:
    code, said = run("tune", job, "--out", tmp_path / "runs")
    assert code == 0, said
    for folder in sorted((tmp_path / "runs").glob("run-*/")):
        assert (folder / "nodes.txt").exists() == bool(
            read_plan(folder / "plan.json").plan.layout.pools
        )


@pytest.mark.parametrize("target", [target.name for target in TARGETS])
def test_no_target_lacks_words_for_pools(target: str) -> None:
    """Every node starts its own ranks, whichever launcher its framework has."""
    found = read_plan(CASE / "plan.json")
    (its,) = (one for one in TARGETS if one.name == target)
    assert "layout.pools" not in {gap.field for gap in its.gaps(found.brief)}


def test_bridge_and_deepspeed_place_the_ranks_of_pools() -> None:
    found = read_plan(CASE / "plan.json")
    assert "nodes.txt" in {file.name for file in emit(found, "megatron-bridge")}
    hosts = hostfile(found.brief).splitlines()
    assert [line.split("slots=")[1] for line in hosts[1:]] == ["8", "8", "4", "4"]


def of_two_makers(path: Path) -> Path:
    """The plan with an MI300X in place of every A100."""
    fields = json.loads((CASE / "plan.json").read_text())
    first, second = fields["spec"]["cluster"]["pools"]
    second["node"] = "hgx-mi300x"
    second["nodes"] = first["nodes"]
    path.write_text(json.dumps(fields, indent=2))
    return path


def test_pools_of_two_makers_are_no_legal_layout(tmp_path: Path) -> None:
    plan, out = of_two_makers(tmp_path / "plan.json"), tmp_path / "out"
    code, said = run("emit", plan, "--target", "megatron", "--out", out)
    assert code == BadInputError.exit_code, said
    assert "h100, a100 of four have GPUs of amd and nvidia" in said
    assert not out.exists()


def test_all_searches_for_a_nearest_plan_share_one_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each takes its time to the end; the clock is the test's own."""
    clock, given = [0.0], []

    def slow(*_: Any, time_limit: float, **__: Any) -> Any:
        given.append(time_limit)
        clock[0] += time_limit
        raise BadInputError("nothing is legal")

    monkeypatch.setattr(nearest, "optimize", slow)
    monkeypatch.setattr(nearest, "monotonic", lambda: clock[0])
    found = read_plan(ROOT / "megatron" / "llama-3.1-70b-32-h100" / "plan.json")
    with pytest.raises(UnsupportedPlanError, match="nearest: no layout"):
        Emit(found, "deepspeed").answer()
    assert len(given) > 2
    assert sum(given) == pytest.approx(nearest.SECONDS)
    assert min(given) > 0


def test_a_folder_is_read_back_with_its_pools(tmp_path: Path) -> None:
    plan, back = read_plan(CASE / "plan.json"), tmp_path / "back.yaml"
    cluster = tmp_path / "cluster.yaml"
    cluster.write_text(yaml.safe_dump(plan.plan.spec["cluster"]))
    words = ("--cluster", cluster, "--model", "llama-3.1-8b", "--out", back)
    code, said = run("import", CASE, *words)
    assert code == 0, said
    assert "not understood" not in said
    layout = yaml.safe_load(back.read_text())["layout"]
    its = plan.plan.layout
    assert layout["pools"] == [
        {"pool": pool.pool, "stages": list(pool.stages)} for pool in its.pools
    ]
    code, said = run("predict", back)
    assert code == 0, said
    assert "ranks on h100 0-1, a100 of four 2" in said
    step = priced_anew(plan).step_time_s.value
    assert f" {step:.2f} s a step" in said


def test_a_folder_of_pools_is_refused_on_a_cluster_without(tmp_path: Path) -> None:
    back = tmp_path / "back.yaml"
    words = ("--cluster", "dgx-h100-4-nodes", "--model", "llama-3.1-8b", "--out", back)
    assert run("import", CASE, *words)[0] == 0
    code, said = run("predict", back)
    assert code == 2
    assert "no such pool in dgx-h100-4-nodes; it has no pools" in said
