"""The hardware of an imported job is what its run takes, and predict accepts it."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from planner.cli.app import app
from planner.errors import BadInputError
from planner.job.resolve import resolve
from planner.launch.importing import UserOverrides, import_spec, read_texts
from planner.planning.prediction.predict import predict
from planner.specs.job import JobSpec
from planner.specs.layouts.layout import PartialLayout

ACCELERATE = """distributed_type: FSDP
mixed_precision: bf16
num_processes: {ranks}
{machines}
fsdp_config: {{fsdp_version: 2, fsdp_reshard_after_forward: true}}
"""
TRAINER = "per_device_train_batch_size: 1\nbf16: true\nmax_length: 1024\n"
PROGRAM = "train.py --per_device_train_batch_size 1 --bf16 true --max_length 1024"


def brought(files: dict[str, str], on: str, *, shards: bool = True) -> dict[str, Any]:
    told = UserOverrides(model="llama-3.2-1b", on=on)
    reading = read_texts(files, "accelerate", "the files")
    return import_spec(reading, told, ("layout.zero_stage=3",) * shards)


def files_of(way: str, nodes: int | None, each: int) -> dict[str, str]:
    ranks = each * (nodes or 1)
    if way == "accelerate":
        machines = f"num_machines: {nodes}" if nodes else ""
        text = ACCELERATE.format(ranks=ranks, machines=machines)
        return {"a.yaml": text, "t.yaml": TRAINER}
    if way == "slurm":
        head = f"#!/bin/bash\n#SBATCH --nodes={nodes or 1}\n"
        head += f"#SBATCH --ntasks-per-node={each}\n#SBATCH --gpus-per-node={each}\n"
        return {"run.sh": f"{head}srun python {PROGRAM}\n"}
    words = f"--nproc_per_node={each}" + (f" --nnodes={nodes}" if nodes else "")
    return {"run.sh": f"torchrun {words} {PROGRAM}\n"}


@given(
    way=st.sampled_from(("accelerate", "torchrun", "slurm")),
    nodes=st.sampled_from((None, 1, 2, 3, 4)),
    each=st.sampled_from((1, 2, 3, 4, 8, 16)),
    have=st.sampled_from((1, 2, 3, 8)),
)
def test_ranks_take_their_share_or_are_refused(
    way: str, nodes: int | None, each: int, have: int
) -> None:
    """What import writes, predict accepts, on as many GPUs as the run has ranks."""
    ranks = each * (nodes or 1)
    try:
        files = files_of(way, nodes, each)
        fields = brought(files, f"{8 * have}xh100", shards=ranks > 1)
    except BadInputError as error:
        unplaced = ranks > 8 * have or (nodes or 1) > have or each > 8
        assert unplaced, error  # noqa: PT017
        assert f"{ranks} ranks" in str(error)  # noqa: PT017
        return
    spec = JobSpec.model_validate(fields)
    (workload,) = resolve(spec, file="read", base=Path())
    cluster = workload.topology.cluster
    assert cluster.gpus == ranks
    if nodes:
        assert (cluster.spec.nodes, cluster.node.gpus_per_node) == (nodes, each)
    assert isinstance(spec.layout, PartialLayout)
    assert predict(workload, spec.layout).layout.gpus == ranks
    assert fields["training"]["global_batch"] == ranks


def test_sixteen_processes_on_three_nodes_are_two_nodes(tmp_path: Path) -> None:
    for name, text in files_of("accelerate", None, 16).items():
        (tmp_path / name).write_text(text)
    out = tmp_path / "job.yaml"
    words = ["import", str(tmp_path), "--on=24xh100", "--model=llama-3.2-1b"]
    done = CliRunner().invoke(app, [*words, f"--out={out}"])
    assert done.exit_code == 0, done.output
    assert "hardware: 16 GPUs of" in done.output
    assert yaml.safe_load(out.read_text())["cluster"]["nodes"] == 2
    assert CliRunner().invoke(app, ["predict", str(out)]).exit_code == 0


def test_a_named_cluster_keeps_its_fabric() -> None:
    reading = read_texts(files_of("accelerate", None, 16), "accelerate", "the files")
    told = UserOverrides(model="llama-3.2-1b", cluster="dgx-h100-4-nodes")
    cluster = import_spec(reading, told, ())["cluster"]
    assert isinstance(cluster, dict)
    assert (cluster["node"], cluster["nodes"]) == ("dgx-h100", 2)


def test_the_attention_of_megatron_bridge_is_read() -> None:
    model = {"tensor_model_parallel_size": 2, "attention_backend": "unfused"}
    text = yaml.safe_dump({"model": model, "train": {"micro_batch_size": 1}})
    reading = read_texts({"x.yaml": text}, "megatron-bridge", "x.yaml")
    assert reading.stack["attention"] == "unfused"
    assert not [word for word in reading.unknown if "attention" in word.name]


@pytest.mark.parametrize("head", ["--ntasks=1 --gres=gpu:8", "--ntasks=1"])
def test_one_task_is_no_count_of_ranks(head: str) -> None:
    lines = "".join(f"#SBATCH {word}\n" for word in head.split())
    files = {"run.sh": f"#!/bin/bash\n{lines}llamafactory-cli train {PROGRAM}\n"}
    reading = read_texts(files, "accelerate", "run.sh")
    assert reading.gpus in (8, None)


def test_tasks_of_a_scheduler_are_ranks_with_no_word_but_the_head() -> None:
    files = files_of("slurm", None, 8)
    reading = read_texts(files, "accelerate", "run.sh")
    assert (reading.gpus, reading.nodes, reading.shares_gpus) == (8, 1, False)
