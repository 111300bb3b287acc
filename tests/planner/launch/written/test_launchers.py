"""Scripts of every launcher parse; objects have the fields of their schemas."""

import json
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
import yaml
from each import each
from golden_folders import ROOT

from planner.errors import BadInputError
from planner.hardware.fleets import TierSpec
from planner.hardware.graph.topology import ClusterTopology
from planner.launch import emit, read_plan, write_folder
from planner.launch.launchers.kubernetes import COPY, FOLDER

SCHEMAS = Path(__file__).with_name("kubernetes_fields.yaml")
SCRIPTS = sorted(
    path for pattern in ("*.sh", "*.sbatch") for path in ROOT.glob(f"*/*/{pattern}")
)
HOSTILE = 'x\'; touch owned; echo "$(touch owned2)" `touch owned3`\ntouch owned4\n#'


@each("script", SCRIPTS)
def test_scripts_parse(script: Path) -> None:
    done = subprocess.run(
        ["bash", "-n", str(script)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def fields_of(value: Any, schema: Any, at: str) -> list[str]:
    """Fields of an object that its schema lacks; a word stands for any value."""
    if isinstance(schema, list):
        return [x for item in value for x in fields_of(item, schema[0], at)]
    if not isinstance(schema, dict):
        return []
    unknown = [f"{at}.{name}" for name in value if name not in schema]
    inside = (name for name in value if name in schema)
    return unknown + [
        x for n in inside for x in fields_of(value[n], schema[n], f"{at}.{n}")
    ]


@pytest.mark.parametrize("name", ["trainjob.yaml", "jobset.yaml"])
def test_objects_have_fields_of_their_schemas(name: str) -> None:
    schemas = yaml.safe_load(SCHEMAS.read_text())
    for path in ROOT.glob(f"kubernetes/*/{name}"):
        its = yaml.safe_load(path.read_text())
        schema = schemas[its["kind"]]
        assert its["apiVersion"] == schema["apiVersion"]
        assert fields_of(its, schema["fields"], its["kind"]) == []
        assert "spec.nodes" in str(fields_of({"nodes": 1}, {"node": "any"}, "spec"))


def hostile(tmp_path: Path, target: str) -> Path:
    """A folder of a plan whose names and texts would run commands if they could.

    No file gives such a plan, see the test below; the writers are safe without that.
    """
    found = read_plan(ROOT / "slurm" / "llama-3.1-70b-32-h100" / "plan.json")
    plan, cluster = found.plan, found.pricing.topology.cluster
    model = {**cast("dict[str, object]", plan.spec["model"]), "name": HOSTILE}
    tier = TierSpec(name="leaf", gpus=16, oversubscription=2)
    tier = tier.model_copy(update={"name": HOSTILE})
    spec = cluster.spec.model_copy(update={"name": HOSTILE, "tiers": (tier,)})
    stack = {**plan.estimate.stack, "name": HOSTILE, "version": HOSTILE}
    texts = {"stack": stack, "assumptions": (HOSTILE,)}
    evil = {
        "spec": {**plan.spec, "model": model},
        "versions": {"planner": HOSTILE},
        "estimate": plan.estimate.model_copy(update=texts),
    }
    topology = ClusterTopology(replace(cluster, spec=spec))
    changed = replace(
        found,
        plan=plan.model_copy(update=evil),
        pricing=replace(found.pricing, topology=topology),
    )
    out = tmp_path / "out"
    write_folder(out, emit(changed, target), force=False)
    return out


@pytest.mark.parametrize("place", ["model", "cluster", "tier"])
def test_a_plan_with_a_hostile_name_is_refused(tmp_path: Path, place: str) -> None:
    path = tmp_path / "plan.json"
    fields = json.loads(
        (ROOT / "slurm" / "llama-3.1-70b-32-h100" / "plan.json").read_text()
    )
    named = fields["spec"]["cluster" if place == "tier" else place]
    if place == "tier":
        named["tiers"] = [{"gpus": 16, "oversubscription": 2}]
        named = named["tiers"][0]
    named["name"] = "rack\ntouch owned\n"
    path.write_text(json.dumps(fields))
    with pytest.raises(BadInputError) as refused:
        read_plan(path)
    message = str(refused.value)
    assert str(path) in message
    assert "is no name" in message
    assert "nearest: rack" in message
    assert "\n" not in message


@pytest.mark.parametrize("target", ["slurm", "torchrun", "kubernetes"])
def test_hostile_names_run_nothing(tmp_path: Path, target: str) -> None:
    out = hostile(tmp_path, target)
    for script in (*out.glob("*.sh"), *out.glob("*.sbatch")):
        done = subprocess.run(
            ["bash", "-n", str(script)], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, (script.name, done.stderr)
        for line in script.read_text().splitlines():
            live = "touch owned" in line and not line.startswith("# ")
            assert not live, (script.name, line)
    for thing in out.glob("*job*.yaml"):
        name = yaml.safe_load(thing.read_text())["metadata"]["name"]
        assert name.replace("-", "").isalnum()


def test_a_hostile_folder_starts_nothing_else(tmp_path: Path) -> None:
    """launch.sh stops at its first check, and has run none of the name by then."""
    out = hostile(tmp_path, "torchrun")
    done = subprocess.run(
        ["bash", "launch.sh"],
        cwd=out,
        env={"PATH": "/usr/bin:/bin", "NNODES": "3", "LEARNING_RATE": "1e-4"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "are not the plan's" in done.stderr
    assert not list(out.glob("owned*"))


def written(target: str, **changes: Any) -> dict[str, str]:
    """Files of the golden plan of four nodes, its step and tokens changed."""
    found = read_plan(ROOT / "kubernetes" / "llama-3.1-70b-32-h100" / "plan.json")
    training = found.pricing.training.model_copy(update=changes)
    found = replace(found, pricing=replace(found.pricing, training=training))
    return {file.name: file.text for file in emit(found, target)}


@pytest.mark.parametrize("name", ["trainjob.yaml", "jobset.yaml"])
def test_pods_run_a_copy_of_files_that_no_shell_may_run(
    name: str, tmp_path: Path
) -> None:
    """As a ConfigMap mounts them: linked, readable, neither writable nor executable."""
    files = written("kubernetes")
    its = yaml.safe_load(files[name])
    spec = its["spec"]
    if name == "jobset.yaml":
        pod = spec["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
        command = pod["containers"][0]["command"]
    else:
        command = spec["trainer"]["command"]
    mounted, copy, ran = tmp_path / "plan", tmp_path / "copy", tmp_path / "ran"
    hidden = mounted / "..data"
    hidden.mkdir(parents=True)
    for file in ("launch.sh", "arguments.sh"):
        (hidden / file).write_text(f"echo $0 > {ran}\ntouch {copy}/output\n")
        (hidden / file).chmod(0o444)
        (mounted / file).symlink_to(Path("..data") / file)
    script = command[2].replace(COPY, str(copy)).replace(f" {FOLDER}/", f" {mounted}/")
    done = subprocess.run(
        [*command[:2], script],
        env={"PATH": "/usr/bin:/bin", "JOB_COMPLETION_INDEX": "0", **PET},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert ran.read_text().strip() == f"{copy}/launch.sh"


PET = {f"PET_{name}": "1" for name in ("NNODES", "NODE_RANK")} | {
    "PET_MASTER_ADDR": "here",
    "PET_MASTER_PORT": "29500",
}


def test_pods_of_several_nodes_ask_for_their_nics() -> None:
    its = yaml.safe_load(written("kubernetes")["jobset.yaml"])
    pod = its["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert container["resources"]["limits"]["rdma/rdma_shared_device_a"] == 1
    assert container["securityContext"]["capabilities"]["add"] == ["IPC_LOCK"]
    mounted = {one["name"] for one in container["volumeMounts"]}
    assert mounted == {one["name"] for one in pod["volumes"]}
    items = next(v["configMap"]["items"] for v in pod["volumes"] if "configMap" in v)
    files = written("kubernetes")
    assert {one["path"] for one in items} <= files.keys()
    for one in items:
        assert f"--from-file={one['key']}={one['path']}" in files["jobset.yaml"]


def options(text: str) -> dict[str, str]:
    lines = [line for line in text.splitlines() if line.startswith("#SBATCH --")]
    pairs = [line.removeprefix("#SBATCH --").partition("=") for line in lines]
    return {name: value for name, _, value in pairs}


def seconds(time: str) -> int:
    days, _, clock = time.partition("-")
    hours, minutes, rest = map(int, clock.split(":"))
    return ((int(days) * 24 + hours) * 60 + minutes) * 60 + rest


@pytest.mark.parametrize("steps", [10, 1000, 100_000])
def test_a_slurm_job_has_memory_cores_and_time(steps: int) -> None:
    """Time for the steps at the slow end of the prediction; a week at most."""
    found = read_plan(ROOT / "slurm" / "llama-3.1-70b-32-h100" / "plan.json")
    its = found.pricing.training
    tokens = float(steps * its.sequences * its.seq_len)
    text = written("slurm", tokens=tokens)["job.sbatch"]
    given = options(text)
    assert given["mem"] == "0"
    assert int(given["cpus-per-task"]) >= 8
    needed = steps * found.plan.estimate.step_time_s.high
    if needed < 6 * 86400:
        assert needed < seconds(given["time"]) < needed * 1.1 + 3600
    else:
        assert seconds(given["time"]) == 7 * 86400
        assert "several jobs of a week" in text
    assert "sbatch --time=" in text
    assert f"{steps:,} steps" in text
