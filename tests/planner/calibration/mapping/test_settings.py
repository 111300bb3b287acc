"""Words of software in a row set the stack that is priced."""

from typing import get_args

import pytest
from measured_rows import MakeRow

from planner.calibration.mapping.case import Case
from planner.calibration.mapping.cases import case_of
from planner.calibration.mapping.settings import attention, released, words
from planner.calibration.rows.blocks import SoftwareBlock
from planner.hardware.reading.files import SHIPPED
from planner.specs.frameworks.framework import Framework
from planner.specs.frameworks.profile import Profile


def case(make_row: MakeRow, framework: str = "Megatron-LM", **software: object) -> Case:
    return case_of(
        make_row(
            job={"framework": framework}, software={"version": "2024", **software}
        ),
        SHIPPED,
    )


def stack(make_row: MakeRow, **software: object) -> Framework:
    return case(make_row, **software).workload.framework


@pytest.mark.parametrize(
    ("software", "field", "value"),
    [
        ({"attention": "fa3"}, "attention_kernel", "fa3"),
        ({"attention": "unfused"}, "attention_kernel", "unfused"),
        ({"grad_reduce_overlap": False}, "overlap_grad_reduce", False),
        ({"param_gather_overlap": False}, "overlap_param_gather", False),
        ({"tp_overlap": "userbuffers"}, "tp_overlap", True),
        ({"dispatcher": "deepep"}, "expert_dispatch", "deduplicated"),
        ({"dispatcher": "alltoall"}, "expert_dispatch", "all-to-all"),
        ({"routing": "forced"}, "expert_spread", 0.0),
        ({"routing": "padded"}, "expert_spread", 0.0),
        ({"routing": "padded"}, "expert_wait", 0.0),
        ({"routing": "free"}, "expert_spread", 1.7),
        ({"cuda_graphs": "full-iteration"}, "cuda_graphs", "full"),
        ({"fp8": {"recipe": "rowwise"}}, "fp8_recipe", "current"),
        ({"bucket_parameters": 768e6}, "bucket_parameters", 768e6),
    ],
)
def test_a_word_sets_a_field_of_the_profile(
    make_row: MakeRow, software: dict[str, object], field: str, value: object
) -> None:
    profile: Profile = stack(make_row, **software).profile
    assert getattr(profile, field) == value


def test_the_input_of_an_activation_is_kept_in_8_bits_where_a_row_says_so(
    make_row: MakeRow,
) -> None:
    kept = stack(make_row, fp8={"activations": True}).recipe.formats_kept
    assert kept == {"fc1_output": 1.0}
    assert not stack(make_row, fp8={"activations": False}).recipe.formats_kept


@pytest.mark.parametrize(
    ("version", "graphs", "part"),
    [
        ("NeMo 25.09", "full-iteration", "dense"),
        ("NeMo 26.06", "full-iteration", "full"),
        ("NeMo 26.06", "layer", "dense"),
        ("NeMo 26.06", "attention", "dense"),
        ("NeMo 26.06", "none", "none"),
    ],
)
def test_experts_stay_with_the_host_until_their_counts_stay_on_the_device(
    make_row: MakeRow, version: str, graphs: str, part: str
) -> None:
    moe = {"experts": 8, "topk": 2, "expert_ffn": 1024}
    row = make_row(
        job={"framework": "NeMo"},
        model={"moe": moe},
        software={"version": version, "cuda_graphs": graphs},
    )
    assert case_of(row, SHIPPED).workload.framework.profile.cuda_graphs == part


@pytest.mark.parametrize(("routing", "part"), [("padded", "layer"), ("free", "dense")])
def test_a_graph_of_a_layer_holds_experts_whose_counts_never_vary(
    make_row: MakeRow, routing: str, part: str
) -> None:
    row = make_row(
        job={"framework": "NeMo"},
        model={"moe": {"experts": 8, "topk": 2, "expert_ffn": 1024}},
        software={"version": "NeMo 25.09", "cuda_graphs": "layer", "routing": routing},
    )
    assert case_of(row, SHIPPED).workload.framework.profile.cuda_graphs == part


def test_gradients_masters_and_moments_are_bytes_of_the_recipe(
    make_row: MakeRow,
) -> None:
    """bf16 gradients and a 16-bit remainder: 2 + 2 + 2 B beside 16-bit moments."""
    recipe = stack(
        make_row,
        gradients={"accumulate": "bf16", "reduce": "bf16"},
        master_weights="bf16-remainder",
        moments="bf16",
    ).recipe
    states = recipe.states[1]
    assert (states.weights, states.gradients, states.sharded_optimizer) == (2, 2, 2)
    assert (recipe.gradient_bytes, recipe.state_bits) == (2, 16)


def test_shards_without_masters_are_16_bits_wide(make_row: MakeRow) -> None:
    framework = case(make_row, "torchtitan", master_weights="none").workload.framework
    assert framework.recipe.states[3].sharded_weights == 2


def test_blocks_are_compiled_as_the_row_says(make_row: MakeRow) -> None:
    compiled = case(make_row, "torchtune", compile=True).workload.framework
    eager = case(make_row, "torchtune", compile=False).workload.framework
    assert compiled.profile.compile
    assert compiled.profile.memory_traffic < eager.profile.memory_traffic


@pytest.mark.parametrize(
    ("loss", "bytes_per_logit"), [("compiled", 4), ("chunked", 1.5), ("eager", 12)]
)
def test_a_loss_is_the_rooms_own_setting(
    make_row: MakeRow, loss: str, bytes_per_logit: float
) -> None:
    framework = case(make_row, "torchtitan", loss=loss).workload.framework
    assert framework.recipe.logits_bytes == bytes_per_logit


def test_an_eager_loss_is_whole_where_a_stack_takes_chunks(make_row: MakeRow) -> None:
    eager = case(make_row, "torchtune", loss="eager").workload.framework
    usual = case(make_row, "torchtune", loss="chunked").workload.framework
    assert (eager.recipe.logits_bytes, usual.recipe.logits_bytes) == (12, 4)


def test_ligers_kernels_keep_logits_unless_chunked(make_row: MakeRow) -> None:
    halo = "Halo (HF transformers, FSDP2, DeepEP)"
    fused = case(make_row, halo, loss="fused").workload.framework
    chunked = case(make_row, halo, loss="chunked").workload.framework
    assert (fused.recipe.logits_bytes, chunked.recipe.logits_bytes) == (6, 1.5)


def test_notes_change_nothing(make_row: MakeRow) -> None:
    """Physics is read from fixed words alone."""
    said = "eager, TP overlap on, forced load balancing, Liger, fp32 weights, autocast"
    for framework in ("Megatron-LM", "torchtitan", "HF Trainer"):
        job = {"framework": framework}
        plain, told = (
            case_of(make_row(job=job), SHIPPED),
            case_of(make_row(job=job, notes=said), SHIPPED),
        )
        assert plain.workload.framework == told.workload.framework


def choices(field: str) -> set[str]:
    """Words that a row may have in a field."""
    annotation = SoftwareBlock.model_fields[field].annotation
    literal = next(part for part in get_args(annotation) if get_args(part))
    return set(get_args(literal))


@pytest.mark.parametrize("field", ["tp_overlap", "dispatcher"])
def test_every_word_of_a_row_is_known(field: str) -> None:
    assert set(getattr(words(), field)) == choices(field)


def test_the_stack_knows_the_kernels_that_the_table_leaves_to_it() -> None:
    assert choices("attention") - set(words().attention) == {"triton"}


@pytest.mark.parametrize(
    ("word", "arch", "ran"),
    [
        ("sdpa", "cdna3", "aotriton"),
        ("ck", "cdna4", "aiter"),
        ("sdpa", "blackwell", "cudnn9"),
    ],
)
def test_a_word_names_the_kernel_of_an_architecture(
    word: str, arch: str, ran: str
) -> None:
    assert attention(SoftwareBlock.model_validate({"attention": word}), arch) == ran


@pytest.mark.parametrize(
    ("kernel", "software", "arch", "year", "ran"),
    [
        ("fa2", {"attention": "sdpa"}, "hopper", 2025.7, "fa2"),
        ("fa2", {"attention": "sdpa"}, "hopper", 2025.8, "cudnn9"),
        ("fa2", {}, "hopper", 2026.0, "fa2"),
        ("fa2", {"attention": "sdpa"}, "ampere", 2026.0, "fa2"),
        ("cudnn9", {}, "hopper", 2023.3, "fa1"),
        ("cudnn9", {"attention": "cudnn"}, "hopper", 2023.5, "cudnn9"),
    ],
)
def test_a_release_changes_the_kernel(
    kernel: str, software: dict[str, str], arch: str, year: float, ran: str
) -> None:
    """PyTorch 2.9 of October 2025; TransformerEngine of June 2023."""
    assert released(kernel, SoftwareBlock(**software), arch, year) == ran


def test_measured_runs_have_pytorchs_own_segments_unless_they_say(
    make_row: MakeRow,
) -> None:
    trainer = "PyTorch FSDP + PEFT (HF models)"
    said = case(make_row, trainer, allocator="expandable").workload.framework.profile
    assert said.allocator == "expandable"
    assert case(make_row, trainer).workload.framework.profile.allocator == "segments"
    assert case(make_row).workload.framework.profile.allocator == "ratio"
