"""Hybrid sharding is read with its shard group, or refused by the setting's name."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import planner
from planner.errors import BadInputError
from planner.hardware.catalog import resolve_cluster
from planner.hardware.fleets import ClusterSpec
from planner.hardware.reading.files import SHIPPED
from planner.launch.copies import Copies, shard_group
from planner.launch.importing import UserOverrides, import_spec, read_texts

CASES = Path(__file__).parent / "cases"
ACCELERATE = "distributed_type: FSDP\nmixed_precision: bf16\n"
MESH = ACCELERATE + "fsdp_config: {fsdp_version: 2}\nparallelism_config:\n"
SIZE = "  parallelism_config_"
TRAINER = "per_device_train_batch_size: 1\nbf16: true\n"
AXOLOTL = (
    "base_model: a/b\nsequence_len: 4096\nmicro_batch_size: 2\nfsdp_version: 2\n"
    "fsdp_config: {reshard_after_forward: true}\n"
)
TOML = (
    '[model]\nname = "llama3"\nflavor = "8B"\n[training]\nlocal_batch_size = 1\n'
    "seq_len = 8192\n[activation_checkpoint]\nmode = 'full'\n[parallelism]\n"
)
MEGATRON = (
    "torchrun --nproc_per_node gpu pretrain_gpt.py --num-layers 32 "
    "--micro-batch-size 1 --bf16 "
    "--no-create-attention-mask-in-dataloader --use-distributed-optimizer "
)
GIVEN = ("training.seq_len=4096", "training.global_batch=64", "layout.micro_batch=1")


def spec_of(name: str, text: str, on: str, *more: str) -> dict[str, object]:
    reading = read_texts({name: text}, None, name)
    told = UserOverrides(model="llama-3.1-70b", on=on)
    return import_spec(reading, told, more)


def layout_of(name: str, text: str, gpus: int) -> dict[str, object]:
    reading = read_texts({name: text}, None, name)
    fields = {"node": "dgx-h100", "nodes": gpus // 8, "name": "some"}
    cluster = resolve_cluster(ClusterSpec.model_validate(fields), SHIPPED)
    return dict(reading.layout_on(cluster))


@pytest.mark.parametrize(
    ("case", "more", "group", "peak_gib"),
    [
        ("accelerate-hybrid-shard.yaml", (*GIVEN, "layout.recompute=full"), 8, 144.7),
        ("torchtitan-hsdp4.toml", (), 2, 100.5),
    ],
)
def test_a_70b_model_that_is_copied_does_not_fit(
    case: str, more: tuple[str, ...], group: int, peak_gib: float
) -> None:
    fields = spec_of(case, (CASES / case).read_text(), "64xh100", *more)
    assert isinstance(fields["layout"], dict)
    assert fields["layout"]["dp_shard"] == group
    memory = planner.predict(fields).estimate.memory
    assert memory.peak_device_gib.value == pytest.approx(peak_gib, abs=0.1)
    assert memory.verdict == "oom"


@pytest.mark.parametrize(
    ("name", "text", "gpus", "group", "zero_stage"),
    [
        (
            "a.yaml",
            ACCELERATE + "fsdp_config: {fsdp_sharding_strategy: HYBRID_SHARD}",
            64,
            8,
            3,
        ),
        ("a.yaml", ACCELERATE + "fsdp_config: {fsdp_sharding_strategy: 4}", 32, 8, 3),
        (
            "a.yaml",
            ACCELERATE + "fsdp_config: {fsdp_sharding_strategy: _HYBRID_SHARD_ZERO2}",
            32,
            8,
            2,
        ),
        ("a.yaml", ACCELERATE + "fsdp_config: {fsdp_sharding_strategy: '5'}", 32, 8, 2),
        (
            "a.yaml",
            ACCELERATE
            + "num_processes: 8\nfsdp_config: {fsdp_sharding_strategy: HYBRID_SHARD}",
            64,
            8,
            3,
        ),
        ("t.yaml", TRAINER + "fsdp: hybrid_shard auto_wrap\n", 64, 8, 3),
        ("t.yaml", TRAINER + "fsdp: [hybrid_shard_zero2, offload]\n", 64, 8, 2),
        (
            "a.yaml",
            MESH + SIZE + "dp_replicate_size: 4\n" + SIZE + "dp_shard_size: 16\n",
            64,
            16,
            3,
        ),
        (
            "a.yaml",
            MESH
            + SIZE
            + "dp_replicate_size: 2\n"
            + SIZE
            + "dp_shard_size: 4\n"
            + SIZE
            + "tp_size: 2\n"
            + SIZE
            + "cp_size: 4\n",
            64,
            16,
            3,
        ),
        ("x.yml", AXOLOTL + "dp_replicate_size: 4\n", 64, 16, 3),
        (
            "x.yml",
            AXOLOTL + "dp_replicate_size: 4\ntensor_parallel_size: 2\n",
            64,
            8,
            3,
        ),
        ("x.yml", AXOLOTL + "dp_shard_size: 4\ncontext_parallel_size: 2\n", 64, 8, 3),
        ("r.toml", TOML + "data_parallel_replicate_degree = 4\n", 64, 16, 3),
        (
            "r.toml",
            TOML + "data_parallel_replicate_degree = 2\ntensor_parallel_degree = 2\n",
            64,
            16,
            3,
        ),
        ("m.sh", MEGATRON + "--num-distributed-optimizer-instances 4\n", 64, 16, 1),
    ],
)
def test_copies_leave_the_group_that_the_tool_makes(
    name: str, text: str, gpus: int, group: int, zero_stage: int
) -> None:
    layout = layout_of(name, text, gpus)
    assert (layout["dp_shard"], layout["zero_stage"]) == (group, zero_stage)


@pytest.mark.parametrize(
    ("name", "text", "field"),
    [
        (
            "a.yaml",
            ACCELERATE + "fsdp_config: {fsdp_sharding_strategy: HYBRID}",
            "a.yaml:3: fsdp_sharding_strategy",
        ),
        (
            "a.yaml",
            ACCELERATE + "fsdp_config: {fsdp_version: 2, "
            "fsdp_sharding_strategy: HYBRID_SHARD}",
            "a.yaml:3: fsdp_sharding_strategy",
        ),
        (
            "t.yaml",
            TRAINER + "fsdp: hybrid_shard\nfsdp_config: {version: 2}\n",
            "t.yaml:3: fsdp",
        ),
        ("t.yaml", TRAINER + "fsdp: half_shard auto_wrap\n", "t.yaml:3: fsdp"),
        (
            "a.yaml",
            ACCELERATE + "num_processes: 12\n"
            "fsdp_config: {fsdp_sharding_strategy: HYBRID_SHARD}",
            "a.yaml:4: fsdp_sharding_strategy",
        ),
        (
            "a.yaml",
            MESH + SIZE + "dp_replicate_size: 4\n" + SIZE + "dp_shard_size: 8\n",
            "a.yaml:5: parallelism_config_dp_replicate_size",
        ),
        ("a.yaml", MESH + SIZE + "dp_shard_size: 8\n", "dp_shard_size"),
        ("a.yaml", MESH + SIZE + "dp_replicate_size: 4\n", "dp_shard_size"),
        (
            "a.yaml",
            MESH + SIZE + "dp_replicate_size: -4\n" + SIZE + "dp_shard_size: 2\n",
            "dp_replicate_size",
        ),
        ("x.yml", AXOLOTL + "dp_replicate_size: 3\n", "x.yml:6: dp_replicate_size"),
        ("x.yml", AXOLOTL + "dp_replicate_size: -2\n", "x.yml:6: dp_replicate_size"),
        (
            "r.toml",
            TOML + "data_parallel_replicate_degree = 6\n",
            "r.toml:10: parallelism.data_parallel_replicate_degree",
        ),
        (
            "r.toml",
            TOML + "data_parallel_shard_degree = 0\n",
            "r.toml:10: parallelism.data_parallel_shard_degree",
        ),
        (
            "r.toml",
            TOML + "data_parallel_shard_degree = -1\ntensor_parallel_degree = 3\n",
            "r.toml:10: parallelism.data_parallel_shard_degree",
        ),
        (
            "m.sh",
            MEGATRON + "--num-distributed-optimizer-instances 3\n",
            "--num-distributed-optimizer-instances",
        ),
    ],
)
def test_copies_that_the_ranks_do_not_hold_are_refused(
    name: str, text: str, field: str
) -> None:
    with pytest.raises(BadInputError) as refused:
        layout_of(name, text, 64)
    assert field in str(refused.value)


degrees = st.sampled_from((1, 2, 3, 4, 8))


@given(nodes=st.integers(1, 8), tp=degrees, pp=degrees, cp=degrees, copies=degrees)
def test_groups_times_copies_are_the_ranks_or_there_is_no_group(
    nodes: int, tp: int, pp: int, cp: int, copies: int
) -> None:
    fields = {"node": "dgx-h100", "nodes": nodes, "name": "some"}
    cluster = resolve_cluster(ClusterSpec.model_validate(fields), SHIPPED)
    layout = {"tp": tp, "pp": pp, "cp": cp}
    able = [
        n for n in range(cp, 8 * nodes + 1, cp) if n * tp * pp * copies == 8 * nodes
    ]
    try:
        found = [shard_group(Copies("copies", copies, copies), layout, cluster, None)]
    except BadInputError:
        found = []
    assert found == able
