"""What Hugging Face's Trainer keeps, one GPU or many, and the words of its settings."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from strategies import framework, small_job

from planner.cost.memory.activations import counted_bytes, kept_bytes
from planner.cost.memory.buffers import head_buffers, root_bytes
from planner.cost.meshes import Meshes
from planner.cost.parameters.optimizers import moment_bytes
from planner.cost.parameters.rank_parameters import layer_owned
from planner.cost.parameters.states import late_gradients, state_bytes, waiting_bytes
from planner.cost.pricing import Pricing
from planner.errors import BadInputError
from planner.frameworks.stacks import with_stack
from planner.job.resolve import resolve
from planner.models import preset
from planner.planning.prediction.predict import predict
from planner.specs.job import JobSpec
from planner.specs.layouts.layout import PartialLayout
from planner.specs.search import SearchSpec
from planner.specs.training import TrainingSpec


def job(stack: str = "hf-fsdp2", **training: object) -> Pricing:
    spec = {"seq_len": 2048, "global_batch": 8} | training
    return replace(
        small_job(SearchSpec(), nodes=1, name="accelerate"),
        model=preset("llama-3-8b"),
        training=TrainingSpec.model_validate(spec),
        framework=with_stack(framework("accelerate"), stack),
    )


def mesh(*, zero: int = 0, dp: int = 1, accum: int = 4) -> Meshes:
    return Meshes.from_rows([(1, 0, 1, 1, 1, 1, 1, dp, dp, zero, 1, 1, accum, 0)])


def resolved(**stack: Any) -> Pricing:
    spec = JobSpec.model_validate(
        {
            "model": "llama-3.1-8b",
            "cluster": "dgx-a100-1-node",
            "training": {"seq_len": 2048, "global_batch": 64},
            "framework": "accelerate",
            "stack": stack,
        }
    )
    return Pricing.candidate(resolve(spec, file="job.yaml", base=Path())[0])


H, A, G, D, F = 4096, 32, 8, 128, 14336
BLOCK = 16 * H + 4 * A * D + 4 * G * D + 4 * A + 8 * F
"""Kept by a Llama 3 8B block per token, the norms' two fp32 factors apart. [B]"""


def kept(pricing: Pricing, kind: str, tokens: int) -> tuple[float, float]:
    """Bytes per token of a block by formula and by replay."""
    spec = TrainingSpec(seq_len=tokens, global_batch=1)
    pricing = replace(pricing, training=spec)
    args = (pricing, pricing.kinds[0], pricing.recipe.kind(kind), mesh())
    formula, replayed = counted_bytes(*args), kept_bytes(*args)
    return float(formula[0]) / tokens, float(replayed[0]) / tokens


def test_an_eager_llama_block_keeps_what_pytorch_keeps() -> None:
    """16 h + 8 + 4 a d + 4 g d + 4 a + 8 f a token, of transformers' LlamaDecoderLayer.

    Two seeds of the attention kernel beside them take a block of 512 B each.
    """
    formula, replayed = kept(job(), "none", 1024)
    assert formula == BLOCK
    assert replayed == BLOCK + 8 + 2 * 512 / 1024
    assert kept(job(), "full", 1024) == (2 * H, 2 * H)


def test_autocast_keeps_a_copy_for_every_consumer() -> None:
    """26 h where weights in bf16 keep 16 h, and 2 B of every weight."""
    weights = 2 * (H * (2 * A + 2 * G) * D + 3 * H * F) / 1024
    formula, replayed = kept(job("hf-amp"), "none", 1024)
    assert formula == BLOCK + 10 * H + weights
    assert replayed == formula + 8 + 2 * 512 / 1024


def test_replicas_reduce_gradients_in_buckets_of_their_own() -> None:
    """DDP's reducer: another 2 B a parameter, from the second replica on."""
    workload = job()
    owned = layer_owned(workload, workload.kinds[0], mesh())
    one, two = (state_bytes(workload, owned, mesh(dp=dp)).gradients[0] for dp in (1, 2))
    assert two - one == 2 * owned.dense[0]


def test_moments_have_the_width_of_the_weights() -> None:
    """16 bits where weights are whole, 32 in fp32 shards; 8-bit Adam stays at 8."""
    workload = job()
    owned = layer_owned(workload, workload.kinds[0], mesh())
    each = [
        state_bytes(workload, owned, mesh(zero=zero, dp=1)).optimizer[0]
        / owned.dense[0]
        for zero in (0, 3)
    ]
    assert each == [4, 8]
    small = job(optimizer="adamw-8bit")
    bits = state_bytes(small, owned, mesh()).optimizer[0] / owned.dense[0]
    assert bits == moment_bytes(small, owned) == pytest.approx(2, rel=0.02)
    given = job(state_bits=32)
    assert state_bytes(given, owned, mesh()).optimizer[0] / owned.dense[0] == 8


def test_the_ends_are_units_of_their_own_under_fsdp2() -> None:
    """accelerate 1.15, fsdp2_prepare_model: the head is whole over the loss alone."""
    meshes = mesh(zero=3, dp=8)
    assert [side[0] for side in root_bytes(job(), meshes)] == [0, 0]
    assert head_buffers(job(), meshes)[0] == 2 * 128_256 * 4096


def test_shards_of_gradients_are_there_only_after_their_backward() -> None:
    """Freed by zero_grad; kept from one micro-batch to the next."""
    workload = job()
    for accum, each in ((1, 0), (2, 4)):
        meshes = mesh(zero=3, dp=8, accum=accum)
        owned = layer_owned(workload, workload.kinds[0], meshes)
        held = state_bytes(workload, owned, meshes).gradients[0]
        late = late_gradients(workload, owned, meshes)[0]
        assert held == pytest.approx(each * owned.dense[0] / 8)
        assert late + held == pytest.approx(4 * owned.dense[0] / 8)


@pytest.mark.parametrize(
    ("word", "zero", "accum", "each"),
    [
        ("no_sync", 3, 4, 2),
        ("no_sync", 3, 1, 0),
        ("no_sync", 2, 4, 2),
        ("no_sync", 0, 4, 0),
        ("sync_each_batch", 3, 4, 0),
    ],
)
def test_whole_gradients_wait_only_without_sync(
    word: str, zero: int, accum: int, each: float
) -> None:
    """Trainer's no_sync keeps whole 16-bit gradients between micro-batches."""
    workload = resolved(accumulation=word)
    meshes = mesh(zero=zero, dp=8, accum=accum)
    owned = layer_owned(workload, workload.kinds[0], meshes)
    assert waiting_bytes(workload, owned, meshes)[0] == each * owned.dense[0]


def test_a_chunked_loss_needs_less_than_a_whole_one() -> None:
    layout = PartialLayout(dp=8, zero_stage=3, recompute="full", micro_batch=4)
    peaks = [
        predict(resolved(loss=word), layout).estimate.memory.peak_allocated_gib.value
        for word in ("hf", "chunked", "liger")
    ]
    assert peaks[0] > peaks[1] >= peaks[2]


def test_the_words_of_attention() -> None:
    """transformers' attn_implementation, and a kernel's own name as in every room."""
    kernels = {
        word: resolved(attention=word).profile.attention_kernel
        for word in ("flash_attention_2", "fa2", "eager", "unfused")
    }
    assert kernels == {
        "flash_attention_2": "fa2",
        "fa2": "fa2",
        "eager": "unfused",
        "unfused": "unfused",
    }
    assert resolved(attention="sdpa").profile == resolved().profile


def test_an_unknown_loss_names_the_known_ones() -> None:
    with pytest.raises(BadInputError, match="did you mean liger") as error:
        resolved(loss="ligr")
    assert error.value.field == "stack.loss"
    assert "hf, half, chunked, chunked_logits, chunked_head, liger" in str(error.value)


def test_a_setting_of_another_room_is_no_key() -> None:
    spec = {"framework": "megatron", "stack": {"outputs": "kept"}}
    fields = {
        "model": "llama-3.1-8b",
        "cluster": "dgx-a100-1-node",
        "training": {"seq_len": 2048, "global_batch": 64},
    }
    with pytest.raises(BadInputError, match="no such key"):
        resolve(JobSpec.model_validate(fields | spec), file="j.yaml", base=Path())


def test_one_gpu_holds_everything_whole() -> None:
    """ZeRO 0 is the default of one GPU, ZeRO-3 of several."""
    limits = framework("accelerate").limits
    assert [limits.default_zero(pp=1, ranks=n) for n in (1, 2)] == [0, 3]
    assert framework("torchtitan").limits.default_zero(pp=1, ranks=1) == 3


def test_deepspeeds_plugin_has_its_own_limits() -> None:
    """ZeRO 0 to 3 and Ulysses under hf-trainer; FSDP2 has neither ZeRO-1 nor it."""
    room = framework("accelerate")
    deepspeed = with_stack(room, "hf-trainer").limits
    assert deepspeed.zero_stages == (0, 1, 2, 3)
    assert deepspeed.cp_kinds == ("ulysses",)
    assert room.limits.zero_stages == (0, 2, 3)
