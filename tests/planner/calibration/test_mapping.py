"""A row's words become the model, the cluster, the stack and the layout they mean."""

from math import prod
from typing import Any

import pytest
from measured_rows import MakeRow

from planner.calibration.mapping.architectures import architecture_of
from planner.calibration.mapping.case import Case
from planner.calibration.mapping.cases import case_of
from planner.calibration.mapping.gpus import gpu_named
from planner.calibration.notes.recompute import stages_of
from planner.calibration.rows.rows import Row
from planner.calibration.rows.unsupported import UnsupportedError
from planner.calibration.rows.vocabulary import RecomputeWords
from planner.hardware.calibration import calibration
from planner.hardware.reading.files import SHIPPED
from planner.models.layers.blocks import LatentAttention, Moe
from planner.specs.layouts.layout import Stage


@pytest.mark.parametrize(
    ("text", "memory", "name"),
    [
        ("A100-80GB", 80, "a100-sxm4-80gb"),
        ("A100-40GB", None, "a100-sxm4-40gb"),
        ("NVIDIA H100 80GB HBM3", 80, "h100-sxm5-80gb"),
        ("H100-96GB", 96, "h100-sxm5-80gb"),
        ("H100 NVL", 94, "h100-nvl-94gb"),
        ("H100 PCIe", 80, "h100-pcie-80gb"),
        ("V100-16GB", 16, "v100-sxm2-16gb"),
        ("GH200", 96, "gh200-96gb"),
        ("GB200", 186, "gb200-186gb"),
        ("L40S", 48, "l40s"),
        ("L40", 48, "l40"),
        ("NVIDIA GeForce RTX 4090", 24, "rtx-4090"),
        ("MI250X", 64, "mi250x-gcd"),
        ("MI300X", 192, "mi300x"),
        ("A10G", 24, "a10g"),
        ("Gaudi 2", 96, "gaudi2"),
        ("RTX4090", None, "rtx-4090"),
        ("GH200", None, "gh200-96gb"),
        ("A100", None, "a100-sxm4-80gb"),
    ],
)
def test_free_text_names_a_gpu(text: str, memory: float | None, name: str) -> None:
    assert gpu_named(text, memory, catalog=SHIPPED).name == name


def test_cards_joined_by_pcie_are_pcie_cards() -> None:
    assert gpu_named("A100", 80, SHIPPED, "PCIe 4.0").name == "a100-pcie-80gb"


def test_an_unknown_gpu_is_unsupported(make_row: MakeRow) -> None:
    with pytest.raises(UnsupportedError, match="no GPU 'Abacus'"):
        case_of(make_row(hardware={"gpu": "Abacus"}), SHIPPED)


def hardware(make_row: MakeRow, **fields: Any) -> Case:
    gpus = fields["gpus"]
    return case_of(
        make_row(
            hardware=fields,
            layout={"tp": 1, "dp": gpus, "micro_batch": 1},
            job={"global_batch": 2 * gpus},
        ),
        SHIPPED,
    )


@pytest.mark.parametrize(
    ("fields", "node", "domain"),
    [
        ({"gpu": "H100", "gpus": 16}, 8, 8),
        ({"gpu": "H100", "gpus": 2, "gpus_per_node": 8}, 2, 2),
        ({"gpu": "H100", "gpus": 12, "gpus_per_node": 8}, 6, 6),
        ({"gpu": "GB200", "gpus": 256, "gpus_per_node": 4}, 4, 64),
        ({"gpu": "GB200", "gpus": 144, "gpus_per_node": 4, "nvlink_domain": 72}, 4, 72),
        ({"gpu": "B200", "gpus": 8, "gpus_per_node": 8}, 8, 8),
        ({"gpu": "A100", "gpus": 1}, 1, 1),
    ],
)
def test_nodes_and_domains_hold_the_gpus(
    make_row: MakeRow, fields: dict[str, Any], node: int, domain: int
) -> None:
    cluster = hardware(make_row, **fields).workload.topology.cluster
    assert cluster.gpus == fields["gpus"]
    assert cluster.node.gpus_per_node == node
    assert cluster.node.scale_up_domain == domain


def test_stated_hardware_overrules_the_datasheet(make_row: MakeRow) -> None:
    case = hardware(
        make_row,
        gpu="H100-96GB",
        gpus=16,
        gpu_memory_gb=96,
        hbm_tb_s=2.4,
        power_limit_w=500,
        per_gpu_inter_gbps=50,
    )
    gpu, cluster = case.workload.gpu, case.workload.topology.cluster
    assert gpu.memory_bandwidth == pytest.approx(2.4e12)
    assert gpu.memory_capacity == pytest.approx(81559 * 2**20 * 96 / 80)
    assert cluster.nic_share == pytest.approx(50e9 / 8)
    own, usual = case.workload.calibration, calibration(gpu.name, SHIPPED)
    assert own.gemm["bf16"].efficiency == pytest.approx(
        usual.gemm["bf16"].efficiency * (500 / 700) ** 0.6
    )


@pytest.mark.parametrize(
    ("words", "nics"),
    [
        ("InfiniBand HDR, 4 NICs/node", 4),
        ("Omni-Path 4x100 Gbps per node", 4),
        ("Omni-Path 100 Gbps x4 per node", 4),
        ("InfiniBand HDR 8x200 Gb/s per node", 8),
        ("Compute: 8x Quantum-2, Management: 2x100Gb/s Ethernet NIC", 8),
        ("InfiniBand", 8),
    ],
)
def test_a_row_may_count_its_nics(make_row: MakeRow, words: str, nics: int) -> None:
    """The share of a GPU is as stated, 100 Gb/s, however many NICs bring it."""
    case = hardware(
        make_row, gpus=16, gpus_per_node=8, inter_node=words, per_gpu_inter_gbps=100
    )
    cluster = case.workload.topology.cluster
    assert cluster.node.nics_per_node == nics
    assert cluster.nic_share == pytest.approx(100e9 / 8)
    assert cluster.nic.bandwidth == pytest.approx(100e9 / 8 * 8 / nics)


@pytest.mark.parametrize(
    ("gpu", "peers"),
    [("RTX 4090", False), ("RTX 3090", False), ("RTX 6000 Ada", True), ("L40S", True)],
)
def test_geforce_boards_copy_through_host_memory(
    make_row: MakeRow, gpu: str, *, peers: bool
) -> None:
    """GeForce drivers refuse peer copies over PCIe; others allow them."""
    case = hardware(make_row, gpu=gpu, gpus=2, gpus_per_node=2, intra_node="PCIe 4.0")
    assert case.workload.topology.cluster.scale_up.peer_to_peer is peers


@pytest.mark.parametrize(
    "words", ["PCIe (no NVLink, older board)", "PCIe, no NVSwitch"]
)
def test_a_link_that_a_row_says_is_not_there_joins_nothing(
    make_row: MakeRow, words: str
) -> None:
    bus = hardware(make_row, gpu="RTX 3090", gpus=2, gpus_per_node=2, intra_node=words)
    assert bus.workload.topology.cluster.scale_up.topology == "bus"
    card = hardware(make_row, gpu="A100", gpus=2, gpus_per_node=2, intra_node=words)
    assert card.workload.gpu.name.startswith("a100-pcie")


@pytest.mark.parametrize(
    ("framework", "stated", "kind"),
    [
        ("torchtitan", {}, "gathered-ring"),
        ("torchtitan", {"cp_comm": "ring"}, "ring"),
        ("Meta in-house (FSDP+TP+CP+PP)", {}, "all-gather"),
    ],
)
def test_software_has_a_context_parallelism_of_its_own(
    make_row: MakeRow, framework: str, stated: dict[str, Any], kind: str
) -> None:
    """PyTorch 2.6 rotates by all-gather; arXiv:2407.21783, section 3.3.2, gathers."""
    layout = {"tp": 1, "cp": 2, "dp": 4, "micro_batch": 1, **stated}
    job = {"framework": framework, "global_batch": 4}
    row = make_row(hardware={"gpu": "H100", "gpus": 8}, layout=layout, job=job)
    assert case_of(row, SHIPPED).layout.cp_kind == kind


def test_an_open_network_is_assumed_and_flagged(make_row: MakeRow) -> None:
    stated = make_row(hardware={"per_gpu_inter_gbps": 400})
    assert not any("network" in flag for flag in case_of(stated, SHIPPED).flags)
    assert any(
        "network rate assumed" in flag for flag in case_of(make_row(), SHIPPED).flags
    )


def test_a_preset_is_taken_where_name_and_shape_agree(make_row: MakeRow) -> None:
    shape = {"layers": 32, "hidden": 4096, "heads": 32, "kv_heads": 8}
    llama = {"name": "Llama3-8B", "vocab": 128256, **shape}
    row = make_row(model=llama)
    assert architecture_of(row.model, 4096).name == "llama-3-8b"
    cut = make_row(model={**llama, "layers": 4})
    assert architecture_of(cut.model, 4096).family == "measured"


def test_a_stated_family_is_replayed_with_its_operators(make_row: MakeRow) -> None:
    row = make_row(model={"name": "of no preset", "family": "llama"})
    assert architecture_of(row.model, 4096).family == "llama"


def test_blocks_are_built_from_a_row(make_row: MakeRow) -> None:
    moe = {
        "experts": 8,
        "topk": 2,
        "expert_ffn": 512,
        "shared_experts": 1,
        "dense_layers": 3,
    }
    latent = "MLA: q_lora 96, kv_lora 64, qk_nope 32, qk_rope 16, v 32"
    model = architecture_of(make_row(model={"moe": moe, "attention": latent}).model, 64)
    assert [count for _, count in model.runs] == [3, 13]
    sparse = model.kinds[1]
    assert isinstance(sparse.ffn, Moe)
    assert sparse.ffn.shared_ffn == 512
    assert isinstance(sparse.attention, LatentAttention)
    assert (sparse.attention.q_rank, sparse.attention.value_dim) == (96, 32)


def test_a_pattern_says_which_layers_have_experts(make_row: MakeRow) -> None:
    moe = {"experts": 8, "topk": 2, "expert_ffn": 512, "layer_freq_spec": "[0,1]*8"}
    model = architecture_of(make_row(model={"moe": moe}).model, 64)
    assert [isinstance(kind.ffn, Moe) for kind, _ in model.runs] == [False, True] * 8


@pytest.mark.parametrize(
    ("words", "fabric"),
    [("Omni-Path 4x100 Gbps per node", "omni-path"), ("fast", "infiniband")],
)
def test_a_fabric_may_be_named_in_words_alone(
    make_row: MakeRow, words: str, fabric: str
) -> None:
    hardware = {"inter_node": words, "per_gpu_inter_gbps": 50}
    row = make_row(hardware=hardware, normalised={"fabric": "unknown"})
    assert case_of(row, SHIPPED).workload.topology.cluster.nic.fabric == fabric


def test_tuned_runs_leave_the_odd_layers_to_the_last_stage(make_row: MakeRow) -> None:
    """The last of four stages has the head beside 1 layer of 13, not 3."""
    row = make_row(
        model={"layers": 13, "vocab": 256000},
        layout={"tp": 1, "pp": 4, "vpp": 1, "dp": 2},
        hardware={"gpus": 8},
        job={"framework": "Megatron-Bridge", "framework_version": "26.02"},
    )
    stages = case_of(row, SHIPPED).layout.stages
    assert isinstance(stages, tuple)
    assert [stage.layers for stage in stages] == [4, 4, 4, 1]


def test_fine_tuning_of_nemo_packs_and_adapts_qkv(make_row: MakeRow) -> None:
    job = {"framework": "NeMo", "framework_version": "24.07", "task": "lora"}
    training = case_of(make_row(job=job), SHIPPED).workload.training
    assert training.lora.modules == ("qkv",)
    assert training.span == 256


def test_adapters_drop_what_a_row_says(make_row: MakeRow) -> None:
    for said, dropped in (({}, 0.0), ({"dropout": 0.1}, 0.1)):
        row = make_row(job={"task": "lora", "lora": {"rank": 16, **said}})
        assert case_of(row, SHIPPED).workload.training.lora.dropout == dropped


def test_adapters_by_name(make_row: MakeRow) -> None:
    named = {"rank": 16, "targets": ["qkv", "fc1"]}
    row = make_row(job={"task": "lora", "lora": named})
    assert case_of(row, SHIPPED).workload.training.lora.modules == ("qkv", "fc1")
    row = make_row(job={"task": "lora", "lora": {"targets": ["qk"]}})
    with pytest.raises(UnsupportedError, match="'qk'; did you mean qkv"):
        case_of(row, SHIPPED)


@pytest.mark.parametrize(
    ("stated", "bandwidth", "held"),
    [({}, 2.4e12, 0.82), ({"power_limit_w": 700}, 3.35e12, 1.0)],
)
def test_a_publishers_own_part_is_meant_unless_a_row_says_more(
    make_row: MakeRow, stated: dict[str, Any], bandwidth: float, held: float
) -> None:
    case = case_of(
        make_row(
            source={"title": "a table", "url_or_repo_path": "pytorch/ao docs"},
            hardware=stated,
            job={"framework": "torchtitan"},
        ),
        SHIPPED,
    )
    assert case.workload.gpu.memory_bandwidth == pytest.approx(bandwidth, rel=0.01)
    own, usual = case.workload.calibration, calibration(case.workload.gpu.name, SHIPPED)
    ratio = own.gemm["bf16"].efficiency / usual.gemm["bf16"].efficiency
    assert ratio == pytest.approx(held, abs=0.01)


def kinds(stages: tuple[Stage, ...]) -> list[list[tuple[int, str]]]:
    return [[(p.stop - p.start, p.kind) for p in s.recompute] for s in stages]


def test_recomputation_lies_on_the_layers_that_are_said() -> None:
    def stages(pp: int, **words: Any) -> list[list[tuple[int, str]]]:
        return kinds(stages_of((4, 4), RecomputeWords(kind="full", **words), pp))

    assert stages(2) == [[(4, "full")]] * 2
    assert stages(2, layers_per_virtual_stage=1) == [[(1, "full"), (3, "none")]] * 2
    assert stages(2, layers=4) == [[(2, "full"), (2, "none")]] * 2
    assert stages(1, layers=4) == [[(4, "full")], [(4, "none")]]
    assert stages(2, every=4) == [[(1, "full"), (3, "none")]] * 2


@pytest.mark.parametrize(
    ("layout", "counts"),
    [
        ({"tp": 1, "pp": 4, "dp": 4, "vpp": 1}, (4, 4, 4, 4)),
        ({"tp": 1, "pp": 16, "dp": 1}, (1,) * 16),
        ({"tp": 1, "pp": 2, "vpp": 4, "dp": 8}, (2,) * 8),
        ({"tp": 1, "pp": 4, "dp": 4, "pp_partition": "5,4,4,3"}, (5, 4, 4, 3)),
    ],
)
def test_stages_hold_all_layers(
    make_row: MakeRow, layout: dict[str, Any], counts: tuple[int, ...]
) -> None:
    case = case_of(make_row(layout=layout), SHIPPED)
    assert isinstance(case.layout.stages, tuple)
    assert tuple(stage.layers for stage in case.layout.stages) == counts


def test_a_head_that_counts_as_a_layer_takes_one(make_row: MakeRow) -> None:
    words = {"pipeline": {"count_as_layer": ["embedding", "head"]}}
    case = case_of(
        make_row(
            layout={"tp": 1, "pp": 4, "dp": 4},
            model={"layers": 14},
            normalised=words,
        ),
        SHIPPED,
    )
    assert isinstance(case.layout.stages, tuple)
    assert [stage.layers for stage in case.layout.stages] == [3, 4, 4, 3]


def test_a_batch_that_does_not_divide_is_unsupported(make_row: MakeRow) -> None:
    with pytest.raises(UnsupportedError, match="does not divide over dp 8"):
        case_of(make_row(job={"global_batch": 60}), SHIPPED)


@pytest.mark.parametrize(
    ("said", "optimizer", "rank", "in_backward"),
    [
        ("GaLore AdamW, rank 1024", "galore-adamw", 1024, False),
        ("8-bit GaLore, per-layer weight updates", "galore-adamw", 128, True),
        ("APOLLO", "apollo-adamw", 128, False),
        ("LOMO", "sgd", 128, True),
        ("SGD with momentum", "sgd-momentum", 128, False),
    ],
)
def test_an_optimizer_is_read_with_its_rank(
    make_row: MakeRow, said: str, optimizer: str, rank: int, *, in_backward: bool
) -> None:
    row = make_row(job={"optimizer": said}, normalised={"optimizer": {}})
    training = case_of(row, SHIPPED).workload.training
    assert (training.optimizer, training.projection_rank) == (optimizer, rank)
    assert training.optimizer_in_backward == in_backward


def test_an_open_micro_batch_is_the_fastest_that_fits(make_row: MakeRow) -> None:
    case = case_of(make_row(layout={"micro_batch": None}), SHIPPED)
    cut = (case.layout.dp, case.layout.micro_batch, case.layout.grad_accum)
    assert prod(part or 1 for part in cut) == 64
    assert any("fastest that fits" in flag for flag in case.flags)


def test_an_open_schedule_of_a_tuned_stack_is_interleaved(make_row: MakeRow) -> None:
    pipeline = {"tp": 1, "pp": 4, "dp": 4, "micro_batch": 1}
    tuned = case_of(make_row(layout=pipeline, job={"framework": "NeMo 24.07"}), SHIPPED)
    assert (tuned.layout.vpp or 1) > 1
    for said in ({"vpp": 1}, {"schedule": "1f1b"}):
        stated = make_row(layout={**pipeline, **said}, job={"framework": "NeMo 24.07"})
        assert case_of(stated, SHIPPED).layout.vpp == 1


def test_fine_tuning_as_the_recipe_has_it(make_row: MakeRow) -> None:
    """NeMo's launcher: no interleaving, no recomputation, exchanges in the open."""
    layout = {"tp": 2, "pp": 4, "dp": 2, "micro_batch": 1}
    for task, plain in (("pretrain", False), ("sft", True)):
        job = {"framework": "NeMo 24.07", "task": task, "seq_len": 65536}
        case = case_of(make_row(layout=layout, job=job), SHIPPED)
        assert (case.layout.vpp == 1) is plain
        assert case.workload.framework.profile.tp_overlap is not plain
        assert any("recomputation assumed" in flag for flag in case.flags) is not plain


def test_open_recomputation_is_none_where_that_fits(make_row: MakeRow) -> None:
    case = case_of(make_row(), SHIPPED)
    assert "recomputation assumed, none" in case.flags
    huge = make_row(layout={"micro_batch": 8}, job={"seq_len": 32768})
    assert any("of the layers" in flag for flag in case_of(huge, SHIPPED).flags)


def test_every_sample_row_has_a_case(sample: tuple[Row, ...]) -> None:
    for row in sample:
        case = case_of(row, SHIPPED)
        assert case.workload.gpus == row.hardware.gpus
        assert case.stack == case.workload.framework.profile.name
