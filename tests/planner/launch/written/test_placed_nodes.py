"""Ranks of a plan on several pools start on nodes of the pool that hosts them."""

import re
import subprocess
from pathlib import Path

import pytest
import yaml
from golden_folders import ROOT
from hypothesis import given
from hypothesis import strategies as st
from placed_runs import CASE, folder_of, run, with_hosts

from planner.hardware.catalog import gpu, resolve_cluster
from planner.hardware.fleets import ClusterSpec
from planner.hardware.reading.files import SHIPPED
from planner.launch import read_plan
from planner.launch.placement import placed
from planner.launch.text.nodes import placement_files, pools_of
from planner.launch.text.render import render
from planner.specs.layouts.layout import Layout

HOSTS = ("h0", "h1.site", "a0", "a1")
NODES = {"eight": "dgx-h100", "four": "hgx-a100-4gpu", "two": "workstation-rtx-3090-2"}


@given(
    order=st.permutations(sorted(NODES)),
    stages=st.lists(st.integers(1, 3), min_size=1, max_size=3),
    tp=st.sampled_from((1, 2, 8)),
    cp=st.sampled_from((1, 2)),
    nodes=st.integers(1, 3),
)
def test_every_rank_is_placed_once_and_on_its_pool(
    order: list[str], stages: list[int], tp: int, cp: int, nodes: int
) -> None:
    """The pipeline is outermost: rank // (tp cp dp) is a rank's stage."""
    dp, first, pools = 8 * nodes, 0, []
    for name, count in zip(order, stages, strict=False):
        pools.append({"pool": name, "stages": list(range(first, first + count))})
        first += count
    layout = Layout.model_validate(
        {"tp": tp, "cp": cp, "dp": dp, "pp": first, "pools": pools}
    )
    fleet = [{"name": name, "node": NODES[name], "nodes": 9999} for name in order]
    cluster = resolve_cluster(
        ClusterSpec.model_validate({"name": "x", "pools": fleet}), SHIPPED
    )
    found = placed(cluster, layout)
    ranks = [
        (its, n) for its in found for n in range(its.count) for _ in range(its.gpus)
    ]
    assert len(ranks) == layout.gpus
    hosts = {stage: pool.pool for pool in layout.pools for stage in pool.stages}
    for rank, (its, _) in enumerate(ranks):
        assert its.pool == hosts[rank // (tp * cp * dp)]
        assert its.cluster.node.name == NODES[its.pool]
        assert its.gpus == its.cluster.node.gpus_per_node
    starts = [its.first for its in found]
    assert starts == [sum(its.count for its in found[:at]) for at in range(len(found))]


def test_the_list_of_nodes_says_what_the_plan_does() -> None:
    brief = read_plan(ROOT / "slurm" / CASE / "plan.json").brief
    text = placement_files(brief)[0].text
    rows = [line.split(maxsplit=4) for line in text.splitlines() if line[0] != "#"]
    assert [int(row[0]) for row in rows] == list(range(brief.nodes))
    assert sum(int(row[1]) for row in rows) == brief.layout.gpus
    pools = [{"pool": p.pool, "stages": list(p.stages)} for p in brief.layout.pools]
    assert pools_of(text, brief.layout.pp) == pools
    assert pools_of(text, brief.layout.pp + 2) == []
    assert pools_of("0 8 h100\n", 1) == []


@pytest.mark.parametrize(
    ("host", "node", "gpus"), [("h1", "1", "8"), ("a0", "2", "4"), ("a1", "3", "4")]
)
def test_a_node_starts_as_many_ranks_as_its_pool_has_gpus(
    host: str, node: str, gpus: str, tmp_path: Path
) -> None:
    folder = folder_of("torchrun", tmp_path)
    given = {"HOST": host, "NODE_RANK": node, "MASTER_ADDR": "h0"}
    by_hand = run(folder, "launch.sh", **given)
    assert by_hand.returncode == 0, by_hand.stderr
    start = f"ran {host} --nnodes 4 --node-rank {node} --nproc-per-node {gpus} "
    assert by_hand.stdout.startswith(f"{start}--master-addr h0 ")
    with_hosts(folder, *HOSTS)
    by_list = run(folder, "launch.sh", HOST=host)
    assert by_list.stdout == by_hand.stdout
    checked = run(folder, "check.sh", HOST=host)
    assert checked.stdout.startswith(start)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"HOST": "a0", "NODE_RANK": "1"},
            "node 1 is to be of pool h100 (h100-sxm5-80gb); a0 has NVIDIA A100-SXM4",
        ),
        (
            {"HOST": "h0", "NODE_RANK": "2"},
            "node 2 is to be of pool a100 of four (a100-sxm4-40gb); h0 has NVIDIA H100",
        ),
        ({"HOST": "h7"}, "set NODE_RANK, or name h7 in nodes.txt"),
        ({"HOST": "h0", "NODE_RANK": "4"}, "nodes.txt has no node 4"),
        ({"HOST": "h0", "NNODES": "3"}, "3 nodes are not the 4 of nodes.txt"),
    ],
)
def test_a_node_in_the_wrong_place_is_refused_in_one_line(
    given: dict[str, str], said: str, tmp_path: Path
) -> None:
    done = run(folder_of("torchrun", tmp_path), "launch.sh", **given)
    assert done.returncode == 2
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"place.sh: {said}")


def test_gpus_are_not_checked_on_a_cpu_and_where_nothing_names_them(
    tmp_path: Path,
) -> None:
    folder = folder_of("torchrun", tmp_path)
    assert run(folder, "launch.sh", HOST="a0", NODE_RANK="0", DEVICE="cpu").stdout
    (tmp_path / "bin" / "nvidia-smi").write_text("#!/bin/bash\nexit 9\n")
    blind = run(folder, "launch.sh", HOST="a0", NODE_RANK="0")
    assert blind.returncode == 0
    assert "its GPUs are not checked" in blind.stderr


SEEN = {
    "NVIDIA A100-SXM4-40GB, 40960": "a100-sxm4-40gb",
    "NVIDIA A100-SXM4-80GB, 81920": "a100-sxm4-80gb",
    "NVIDIA A100 80GB PCIe, 81920": "a100-pcie-80gb",
    "NVIDIA H100 80GB HBM3, 81559": "h100-sxm5-80gb",
    "NVIDIA H100 NVL, 95830": "h100-nvl-94gb",
    "NVIDIA H200, 143771": "h200-sxm-141gb",
    "NVIDIA H20, 97871": "h20-sxm-96gb",
    "NVIDIA GH200 480GB, 97871": "gh200-96gb",
    "NVIDIA B200, 183359": "b200-sxm-180gb",
    "NVIDIA L40S, 46068": "l40s",
    "NVIDIA L4, 23034": "l4",
    "Tesla V100-SXM2-32GB, 32768": "v100-sxm2-32gb",
    "NVIDIA GeForce RTX 4090, 24564": "rtx-4090",
    "NVIDIA RTX A6000, 49140": "rtx-a6000",
    "NVIDIA RTX 6000 Ada Generation, 49140": "rtx-6000-ada",
}
"""GPU of the catalog by the name and MiB that nvidia-smi shows. [text]"""


def test_the_words_of_nvidia_smi_name_the_gpu_of_the_catalog() -> None:
    """The plain form alone also takes a card's: H100 PCIe for an H100 of 80 GB."""
    text = render("place.sh.j2")
    start = text.index("is_of_kind()")
    function = text[start : text.index("\n}\n", start) + 3]
    every = [gpu(name, SHIPPED) for name in SHIPPED.names("gpus")]
    kinds = [its.name for its in every if its.vendor == "nvidia"]
    script = function + "\n".join(
        f'is_of_kind {kind} "{seen.split(", ")[0]}" {seen.split(", ")[1]} && '
        f'echo "{seen}={kind}"'
        for seen in SEEN
        for kind in kinds
    )
    done = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, check=False
    )
    pairs = {tuple(line.split("=")) for line in done.stdout.splitlines()}
    assert set(SEEN.items()) <= pairs
    others = {(kind, SEEN[seen]) for seen, kind in pairs if SEEN[seen] != kind}
    assert all(gpu(a, SHIPPED).arch == gpu(b, SHIPPED).arch for a, b in others), others


def test_components_of_a_slurm_job_are_the_pools_in_the_order_of_ranks(
    tmp_path: Path,
) -> None:
    folder = folder_of("slurm", tmp_path)
    text = (folder / "job.sbatch").read_text()
    parts = text.split("#SBATCH hetjob\n")
    options = [
        dict(re.findall(r"^#SBATCH --([\w-]+)=(.*)$", p, re.MULTILINE)) for p in parts
    ]
    assert [(o["constraint"], o["nodes"], o["gpus-per-node"]) for o in options] == [
        ("h100", "2", "8"),
        ("a100-of-four", "2", "4"),
    ]
    # sbatch hands these on to later components, and --time of its command line.
    assert not {"time", "output", "job-name"} & options[1].keys()
    lists = {"HET_GROUP_0": "h0,h1", "HET_GROUP_1": "a0,a1"}
    slurm = {f"SLURM_JOB_NODELIST_{name}": hosts for name, hosts in lists.items()}
    given = slurm | {"SLURM_SUBMIT_DIR": str(folder), "SLURM_JOB_ID": "7"}
    done = run(folder, "job.sbatch", **given)
    assert done.returncode == 0, done.stderr
    first, *ran = done.stdout.splitlines()
    least = min(int(o["cpus-per-task"]) for o in options)
    assert first == f"srun --het-group=0-1 --cpus-per-task={least}"
    told = [re.match(r"ran (\w+) .*--node-rank (\d) .*-node (\d) ", row) for row in ran]
    assert [its.groups() for its in told if its] == [
        ("h0", "0", "8"),
        ("h1", "1", "8"),
        ("a0", "2", "4"),
        ("a1", "3", "4"),
    ]
    assert all("--master-addr h0 " in row for row in ran)


def test_hosts_of_the_list_start_over_ssh(tmp_path: Path) -> None:
    folder = folder_of("torchrun", tmp_path)
    empty = run(folder, "run.sh", "nodes.txt")
    assert (empty.returncode, empty.stdout) == (2, "")
    assert "has no host for some of its nodes" in empty.stderr
    with_hosts(folder, *HOSTS)
    rows = run(folder, "run.sh", "nodes.txt", "--more").stdout.splitlines()
    (folder / "hosts.txt").write_text("\n".join(HOSTS))
    assert sorted(rows) == sorted(
        run(folder, "run.sh", "hosts.txt", "--more").stdout.splitlines()
    )
    assert len(rows) == len(HOSTS)
    assert all(row.endswith(" --more") for row in rows)


def test_pods_of_each_pool_are_numbered_as_their_nodes() -> None:
    folder = ROOT / "kubernetes" / CASE
    assert not (folder / "trainjob.yaml").exists()
    its = yaml.safe_load((folder / "jobset.yaml").read_text())
    jobs = its["spec"]["replicatedJobs"]
    assert [job["name"] for job in jobs] == ["node-0", "node-2"]
    specs = [job["template"]["spec"] for job in jobs]
    assert [spec["completions"] for spec in specs] == [2, 2]
    pods = [spec["template"]["spec"] for spec in specs]
    pools = [pod["nodeSelector"]["planner-pool"] for pod in pods]
    assert pools == ["h100", "a100-of-four"]
    (first,), (second,) = (pod["containers"] for pod in pods)
    assert first["env"] == second["env"]
    assert 'NODE_RANK="$JOB_COMPLETION_INDEX"' in first["command"][2]
    assert 'NODE_RANK="$((2 + JOB_COMPLETION_INDEX))"' in second["command"][2]
    limits = [each["resources"]["limits"]["nvidia.com/gpu"] for each in (first, second)]
    assert limits == [8, 4]
