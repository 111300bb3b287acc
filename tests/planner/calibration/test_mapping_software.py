"""A row's software becomes a stack, with what the row says of its settings."""

import pytest
from measured_rows import MakeRow

from planner.calibration.mapping.cases import case_of
from planner.calibration.mapping.software import stack_rule, table
from planner.frameworks import FRAMEWORKS
from planner.frameworks.stacks import stack_names
from planner.hardware.reading.files import SHIPPED
from planner.specs.frameworks.framework import Framework


@pytest.mark.parametrize(
    ("framework", "version", "stack"),
    [
        ("Megatron-LM", "2021", "megatron-2021"),
        ("Megatron-LM v2.5", None, "megatron-2021"),
        ("Megatron-LM (2022)", None, "megatron-2022"),
        ("Megatron-Core r0.8.0", None, "megatron-2024"),
        ("Megatron-LM core_v0.14", None, "megatron-2026"),
        ("Megatron-DeepSpeed", None, "megatron-deepspeed"),
        ("GPT-NeoX (DeepSpeed)", None, "megatron-deepspeed"),
        ("NeMo", "24.07", "nemo-2024"),
        ("NeMo", "25.09", "nemo-2026"),
        ("NeMo", 25.1, "nemo-2026"),
        ("Megatron-Bridge", "NeMo container 26.02", "nemo-2026"),
        ("Megatron-LM (ROCm)", None, "megatron-rocm"),
        ("torchtitan", None, "torchtitan"),
        ("MaxText (JAX)", None, "pax"),
        ("PaxML (JAX)", "2023-07", "pax-2023"),
        ("DeepSpeed ZeRO-3", None, "deepspeed-2022"),
        ("HF Trainer + DeepSpeed ZeRO-3", None, "hf-trainer"),
        ("Axolotl", None, "hf-trainer"),
        ("OLMo-core (FSDP)", None, "torchtitan"),
        ("Colossal-AI", None, "eager-zero"),
        ("PaddleNLP", None, "eager-zero"),
        ("Megatron-LM fork", "2023-10", "megatron-2023"),
        ("Lightning with DeepSpeed ZeRO-3", "2022", "hf-trainer"),
        ("DeepSpeed ZeRO-3", "2022-06", "deepspeed-2022"),
        ("DeepSpeed ZeRO-3", "2026-02", "hf-trainer"),
    ],
)
def test_a_stack_is_chosen_by_framework_version_and_year(
    make_row: MakeRow, framework: str, version: str | float | None, stack: str
) -> None:
    job = {"framework": framework, "framework_version": version}
    rule = stack_rule(make_row(job=job, source={"title": "a table"}), "hopper")
    assert rule.stack == stack
    assert not rule.unknown


@pytest.mark.parametrize("room", FRAMEWORKS, ids=lambda room: room.name)
def test_every_room_is_reached_by_its_own_name_and_release(
    make_row: MakeRow, room: Framework
) -> None:
    job = {"framework": room.name, "framework_version": room.profile.version}
    row = make_row(job=job, source={"title": "a table"})
    rule = stack_rule(row, "hopper")
    assert (rule.room, rule.unknown) == (room.name, False)
    assert case_of(row, SHIPPED).workload.framework.name == room.name


def test_every_rule_leads_to_a_stack_of_a_room() -> None:
    stacks = {room.name: stack_names(room.name) for room in FRAMEWORKS}
    assert {rule.room for rule in table().rules} == stacks.keys()
    named = [rule for rule in table().rules if rule.stack]
    assert [r for r in named if r.stack not in stacks[r.room]] == []
    assert {rule.room for rule in table().rules if not rule.stack} == {"megatron"}


@pytest.mark.parametrize(
    ("framework", "version"),
    [("DeepSpeed 0.18.2", None), ("HF transformers + DeepSpeed AutoTP", "2026-02")],
)
def test_deepspeeds_own_engine_is_its_room(
    make_row: MakeRow, framework: str, version: str | None
) -> None:
    job = {"framework": framework, "framework_version": version}
    rule = stack_rule(make_row(job=job, source={"title": "a table"}), "hopper")
    assert (rule.room, rule.stack) == ("deepspeed", "hf-trainer")


@pytest.mark.parametrize(
    ("precision", "kind", "stack"),
    [
        ("fp16", "ddp", "megatron-2021"),
        ("fp16", "zero1", "megatron-deepspeed"),
        ("bf16", "ddp", "megatron-deepspeed"),
    ],
)
def test_deepspeed_runs_the_loop_where_it_has_something_to_do(
    make_row: MakeRow, precision: str, kind: str, stack: str
) -> None:
    job = {"framework": "Megatron-DeepSpeed", "precision": precision}
    row = make_row(job=job, normalised={"sharding": {"kind": kind}})
    assert stack_rule(row, "ampere").stack == stack


@pytest.mark.parametrize(
    ("framework", "kind", "masters", "stack"),
    [
        ("HF Trainer", "none", None, "hf-fsdp2"),
        ("HF Trainer", "ddp", "fp32", "hf-amp"),
        ("HF Trainer", "zero2", "fp32", "hf-trainer"),
        ("HF Trainer (FSDP)", "fsdp2", None, "hf-fsdp2"),
        ("HF Trainer + DeepSpeed", "none", None, "hf-trainer"),
    ],
)
def test_trainers_states_follow_what_shards_them(
    make_row: MakeRow, framework: str, kind: str, masters: str | None, stack: str
) -> None:
    """Whole replicas and FSDP are accelerate's own; ZeRO is DeepSpeed's plugin."""
    row = make_row(
        job={"framework": framework},
        normalised={"sharding": {"kind": kind}},
        software={"master_weights": masters},
    )
    assert stack_rule(row, "hopper").stack == stack


def test_unknown_software_is_flagged(make_row: MakeRow) -> None:
    case = case_of(make_row(job={"framework": "Homegrown"}), SHIPPED)
    assert "unknown framework" in case.flags


def test_the_rows_own_settings_overrule_the_stack(make_row: MakeRow) -> None:
    layout = {"overlap_grad_reduce": False, "cuda_graph": "per layer"}
    case = case_of(
        make_row(
            job={"flash_attention": False}, layout={**layout, "recompute": "full"}
        ),
        SHIPPED,
    )
    profile = case.workload.framework.profile
    assert profile.attention_kernel == "unfused"
    assert not profile.overlap_grad_reduce
    assert profile.cuda_graphs == "layer"


@pytest.mark.parametrize(
    ("release", "graphs"),
    [("MLPerf Training v4.0", "none"), ("MLPerf Training v5.0", "layer")],
)
def test_submissions_launch_graphs_unasked(
    make_row: MakeRow, release: str, graphs: str
) -> None:
    """All configurations of MLPerf 5.0 set them; a row that says none has none."""
    blocks = {"job": {"framework": "NeMo"}, "source": {"title": release}}
    profile = case_of(make_row(**blocks), SHIPPED).workload.framework.profile
    assert (profile.name, profile.cuda_graphs) == ("nemo-mlperf", graphs)
    stated = make_row(**blocks, software={"cuda_graphs": "none"})
    assert case_of(stated, SHIPPED).workload.framework.profile.cuda_graphs == "none"


def test_what_a_row_says_of_its_experts(make_row: MakeRow) -> None:
    moe = {"experts": 8, "topk": 2, "expert_ffn": 512}
    layout = {"moe_dispatcher": "hybridep", "cuda_graph": "full_iteration"}
    job = {"framework": "Megatron-Bridge", "framework_version": "NeMo container 26.02"}
    row = make_row(model={"moe": moe}, layout=layout, job=job)
    profile = case_of(row, SHIPPED).workload.framework.profile
    assert profile.expert_dispatch == "deduplicated"
    assert profile.cuda_graphs == "dense"
    assert not profile.ep_overlap
    later = make_row(
        model={"moe": moe},
        layout={"cuda_graph": "full_iteration", "moe_dispatcher": "alltoall"},
        job={**job, "framework_version": "NeMo container 26.06"},
    )
    profile = case_of(later, SHIPPED).workload.framework.profile
    assert profile.cuda_graphs == "full"
    assert profile.ep_overlap


@pytest.mark.parametrize("said", [{}, {"ep_overlap": True}])
def test_dispatch_inside_a_domain_overlaps_where_a_row_says_so(
    make_row: MakeRow, said: dict[str, bool]
) -> None:
    """Eight GPUs of one node, where recipes overlap nothing by themselves."""
    row = make_row(
        model={"moe": {"experts": 8, "topk": 2, "expert_ffn": 512}},
        layout={"ep": 8},
        job={
            "framework": "Megatron-Bridge",
            "framework_version": "NeMo container 26.06",
        },
        software=said,
    )
    overlaps = case_of(row, SHIPPED).workload.framework.profile.ep_overlap
    assert overlaps is bool(said)


def test_a_table_tells_the_year_where_nothing_else_does(make_row: MakeRow) -> None:
    source = {"title": "a table", "table_or_section": "2023 (early)"}
    row = make_row(job={"framework": "PaxML"}, source=source)
    assert stack_rule(row, "hopper").stack == "pax-2023"


def test_deepspeed_hides_no_gather_and_keeps_gradients_where_said(
    make_row: MakeRow,
) -> None:
    layout = {
        "tp": 1,
        "dp": 16,
        "sharding": "ZeRO-3",
        "offload": "params, grads and optimizer to CPU",
    }
    case = case_of(
        make_row(job={"framework": "HF Trainer + DeepSpeed ZeRO-3"}, layout=layout),
        SHIPPED,
    )
    assert case.workload.framework.profile.overlap_contention == 1.0
    assert case.layout.offload is not None
    assert case.layout.offload.gradients == 1.0


@pytest.mark.parametrize(
    ("version", "model", "each"),
    [
        ("2024-01", {"gated_mlp": True}, 4),
        ("2024-01", {"gated_mlp": False}, 2),
        ("2024-03", {"gated_mlp": True}, 2),
    ],
)
def test_megatron_fuses_its_gate_since_january_2024(
    make_row: MakeRow, version: str, model: dict[str, bool], each: float
) -> None:
    row = make_row(
        job={"framework": "Megatron-LM fork"},
        software={"version": version},
        model=model,
    )
    assert case_of(row, SHIPPED).workload.framework.profile.activation_bytes == each


@pytest.mark.parametrize(
    ("moe", "dropped"),
    [
        (None, "activation"),
        ({"experts": 8, "topk": 2, "expert_ffn": 1024}, "expert_activation"),
    ],
)
def test_the_activation_of_a_dense_model_is_its_mlps(
    make_row: MakeRow, moe: dict[str, int] | None, dropped: str
) -> None:
    again = {"kind": "selective", "modules": ["moe_act"]}
    row = make_row(
        job={"framework": "Megatron-LM core_v0.14"},
        model={"moe": moe},
        normalised={"recompute": again},
    )
    kind = case_of(row, SHIPPED).workload.framework.recipe.kind("selective-modules")
    activations = ("activation", "expert_activation")
    assert [name for name in activations if not kind.kept(name)] == [dropped]


@pytest.mark.parametrize(
    ("loss", "logits"), [("fused", 10.0), ("fused-te", 6.0), ("eager", 6.0)]
)
def test_megatrons_own_fused_loss_holds_a_softmax_more(
    make_row: MakeRow, loss: str, logits: float
) -> None:
    """Inductor makes the gradient in a new fp32 buffer beside the softmax."""
    job = {"framework": "Megatron-LM core_v0.14"}
    case = case_of(make_row(job=job, software={"loss": loss}), SHIPPED)
    assert case.workload.framework.recipe.logits_bytes == logits


@pytest.mark.parametrize(("repeats", "mebibytes"), [(True, 68), (False, 20)])
def test_a_run_that_repeats_itself_sets_cublas_workspaces(
    make_row: MakeRow, *, repeats: bool, mebibytes: float
) -> None:
    """Two threads with 32 MiB each where a variable says so, else with 8 MiB."""
    job = {"framework": "Megatron-LM (CI)"}
    case = case_of(make_row(job=job, software={"deterministic": repeats}), SHIPPED)
    recipe = case.workload.framework.recipe
    assert recipe.workspace_mib["ampere"] == mebibytes
