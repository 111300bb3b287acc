"""What stacks keep: optimizers, quantised weights, masks, scores, padded tables."""

from dataclasses import replace

import numpy as np
import pytest
from strategies import framework, small_job

from planner.cost.memory.activations import saved_bytes, score_bytes
from planner.cost.memory.buffers import (
    buffer_bytes,
    device_bytes,
    head_buffers,
    layer_buffers,
    root_bytes,
)
from planner.cost.memory.optimizer_step_bytes import step_copies
from planner.cost.meshes import Floats, Meshes
from planner.cost.parameters.optimizers import moment_bytes
from planner.cost.parameters.rank_parameters import layer_owned, padded_vocab
from planner.cost.parameters.states import (
    held_bytes,
    optimizer_time,
    state_bytes,
    waiting_bytes,
)
from planner.cost.parameters.weights import linear_weights, newton_schulz_flops
from planner.cost.pricing import Pricing
from planner.cost.time.columns import Context
from planner.cost.time.ends import embedding_end, logit_bytes
from planner.frameworks.stacks import with_stack
from planner.models import preset
from planner.models.layers.blocks import LayerKind
from planner.specs.search import SearchSpec
from planner.specs.training import TrainingSpec


def job(
    stack: str = "megatron-2026", room: str = "megatron", **training: object
) -> Pricing:
    node = str(training.pop("node", "dgx-h100"))
    workload = small_job(SearchSpec(), nodes=1, node=node)
    spec = TrainingSpec.model_validate({"seq_len": 2048, "global_batch": 8} | training)
    return replace(
        workload,
        model=preset("llama-3-8b"),
        training=spec,
        framework=with_stack(framework(room), stack),
    )


def mesh(*, zero: int = 0, tp: int = 1, dp: int = 1) -> Meshes:
    return Meshes.from_rows([(tp, 0, 1, 1, 1, 1, 1, dp, dp, zero, 1, 1, 4, 0)])


def per_parameter(pricing: Pricing, *, zero: int = 0, dp: int = 1) -> float:
    meshes = mesh(zero=zero, dp=dp)
    owned = layer_owned(pricing, pricing.kinds[0], meshes)
    total = state_bytes(pricing, owned, meshes).total[0]
    return float(total / owned.dense[0])


@pytest.mark.parametrize(
    ("stack", "room", "precision", "zero", "unsharded", "sharded"),
    [
        ("megatron-2026", "megatron", "bf16", 0, 18, 0),
        ("megatron-2026", "megatron", "bf16", 1, 6, 12),
        ("megatron-2026", "megatron", "bf16", 2, 2, 16),
        ("megatron-2026", "megatron", "bf16", 3, 0, 18),
        ("megatron-2021", "megatron", "fp16", 0, 20, 0),
        ("megatron-2021", "megatron", "fp16", 1, 4, 16),
        ("megatron-deepspeed", "megatron", "bf16", 1, 8, 12),
        ("deepspeed-zero3", "torchtitan", "fp16", 1, 4, 12),
        ("deepspeed-zero3", "torchtitan", "fp16", 2, 2, 14),
        ("deepspeed-zero3", "torchtitan", "fp16", 3, 0, 16),
        ("torchtitan", "torchtitan", "bf16", 3, 0, 16),
        ("torchtune", "torchtitan", "bf16", 0, 8, 0),
        ("torchtune", "torchtitan", "bf16", 3, 0, 8),
        ("hf-fsdp2", "accelerate", "bf16", 0, 8, 0),
        ("hf-fsdp2", "accelerate", "bf16", 2, 2, 16),
        ("hf-fsdp2", "accelerate", "bf16", 3, 0, 16),
        ("hf-bf16", "accelerate", "bf16", 0, 8, 0),
        ("hf-bf16", "accelerate", "bf16", 3, 0, 8),
        ("hf-amp", "accelerate", "bf16", 0, 16, 0),
        ("hf-amp", "accelerate", "bf16", 3, 0, 16),
        ("hf-trainer", "accelerate", "bf16", 1, 6, 12),
    ],
)
def test_bytes_per_parameter(
    stack: str, room: str, precision: str, zero: int, unsharded: float, sharded: float
) -> None:
    """Megatron's dist_optimizer.md, the ZeRO paper's K = 12, FSDP2, pure bf16."""
    workload = job(stack, room, precision=precision)
    dp = 4 if zero else 1
    expected = unsharded + sharded / dp
    assert per_parameter(workload, zero=zero, dp=dp) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("optimizer", "bits", "each"),
    [
        ("adamw", None, 8),
        ("adamw", 16, 4),
        ("adamw", 8, 2),
        ("adamw-8bit", None, 2 + 2 * 4 / 256),
        ("paged-adamw", None, 8),
        ("paged-adamw-8bit", None, 2 + 2 * 4 / 256),
        ("lamb", None, 8),
        ("lion", None, 4),
        ("lion", 8, 1),
        ("sgd", None, 0),
        ("sgd-momentum", None, 4),
        ("adafactor", None, 0),
        ("muon", None, 4),
    ],
)
def test_moments(optimizer: str, bits: int | None, each: float) -> None:
    workload = job(optimizer=optimizer, state_bits=bits)
    owned = layer_owned(workload, workload.kinds[0], mesh())
    assert moment_bytes(workload, owned) == each


def test_muon_orthogonalises_every_matrix() -> None:
    """5 (4 r^2 q + 2 r^3) of (1 x 1) summed over four matrices, at the GEMM rate."""
    workload = job(optimizer="muon")
    kind = workload.kinds[0]
    sides = [(4096, 6144), (4096, 4096), (4096, 28672), (14336, 4096)]
    by_hand = sum(5 * (4 * min(s) ** 2 * max(s) + 2 * min(s) ** 3) for s in sides)
    assert newton_schulz_flops(kind, mesh())[0] == by_hand
    adam = job()
    times = [
        optimizer_time(w, layer_owned(w, kind, mesh()), mesh())[0]
        for w in (adam, workload)
    ]
    assert times[1] > times[0] + by_hand / 989e12


@pytest.mark.parametrize(
    ("node", "precision", "copies"),
    [
        ("dgx-h100", "bf16", 0.0),
        ("dgx-h100", "fp8", 2.0),
        ("dgx-b200", "fp8", 1.0),
        ("dgx-b200", "mxfp8", 2 * (1 + 1 / 32)),
        ("dgx-b200", "nvfp4", 2 * (0.5 + 1 / 16)),
    ],
)
def test_quantised_weights_beside_16_bit_ones(
    node: str, precision: str, copies: float
) -> None:
    """TransformerEngine: a transpose on Hopper, two directions with block scales."""
    workload = job(precision=precision, node=node)
    kind, meshes = workload.kinds[0], mesh()
    owned = layer_owned(workload, kind, meshes)
    weights = state_bytes(workload, owned, meshes).weights[0]
    linears = linear_weights(kind, meshes)[0]
    assert linears == kind.matmul_parameters
    assert weights == pytest.approx(2 * owned.dense[0] + copies * linears)


def test_torch_quantises_again() -> None:
    kept = [
        per_parameter(job("torchtitan", "torchtitan", precision=p), zero=3)
        for p in ("bf16", "fp8")
    ]
    assert kept[0] == kept[1]


def test_explicit_scores_and_masks() -> None:
    """Korthikanti et al.: 5 a s a token for the core, two byte masks of h."""
    fused, unfused = job("megatron-2024"), job("megatron-2022")
    kind = fused.kinds[0]
    assert score_bytes(fused, kind) == 0
    assert score_bytes(unfused, kind) == 5 * 32 * 2048
    for name, more in (("none", 5 * 32 * 2048 + 2 * 4096), ("selective", 2 * 4096)):
        kept = [
            saved_bytes(w, kind, w.recipe.kind(name), mesh())[0] / 2048
            for w in (fused, unfused)
        ]
        assert kept[1] - kept[0] == pytest.approx(more)


@pytest.mark.parametrize(("tp", "rows"), [(1, 128_256), (4, 128_512), (8, 129_024)])
def test_megatron_pads_its_vocabulary(tp: int, rows: int) -> None:
    """To a multiple of 128 tp; torchtitan does not."""
    assert padded_vocab(job(), mesh(tp=tp))[0] == rows
    plain = job("torchtitan", "torchtitan")
    assert np.all(padded_vocab(plain, mesh(tp=tp)) == 128_256)


def buffers_of(pricing: Pricing, kind: LayerKind, meshes: Meshes) -> Floats:
    return layer_buffers(pricing, layer_owned(pricing, kind, meshes), meshes)


def test_zero3_holds_layers_in_their_backward_and_one_in_the_loss() -> None:
    """FSDP2: two gathered layers, one of gradients in bf16 and fp32; one ahead."""
    workload = job("torchtitan", "torchtitan")
    layer = (
        workload.kinds[0].sharded_parameters + workload.kinds[0].replicated_parameters
    )
    meshes = mesh(zero=3, dp=8)
    held = buffers_of(workload, workload.kinds[0], meshes)[0]
    assert held == pytest.approx(layer * (2 * 2 + 4 + 2))
    assert head_buffers(workload, meshes)[0] == pytest.approx(2 * layer)
    assert buffers_of(workload, workload.kinds[0], mesh())[0] == 0


def test_deepspeed_gathers_linears_within_its_limits() -> None:
    """Two 8B layers are below 1e9 live parameters; a layer below the 5e8 bucket.

    Its gradients are made beside the bucket, which is a buffer that stays.
    """
    workload = job("deepspeed-zero3", "torchtitan", precision="fp16")
    kind = workload.kinds[0]
    layer = kind.sharded_parameters + kind.replicated_parameters
    meshes = mesh(zero=3, dp=8)
    assert buffers_of(workload, kind, meshes)[0] == pytest.approx(layer * (4 + 2))
    tight = replace(workload.recipe, live_parameters=1e6, reduced_parameters=1e6)
    small = replace(workload, framework=replace(workload.framework, recipe=tight))
    largest = 2 * 4096 * 14336
    assert buffers_of(small, kind, meshes)[0] == pytest.approx(largest * (2 + 2))


@pytest.mark.parametrize(("zero", "each"), [(0, 0), (1, 2), (2, 2), (3, 2)])
def test_deepspeeds_bucket_is_there_at_every_stage(zero: int, each: int) -> None:
    """5e8 gradients of 16 bits (runtime/zero/stage3.py, ipg_bucket_flat_buffer)."""
    workload = job("deepspeed-zero3", "torchtitan", precision="fp16")
    meshes = mesh(zero=zero, dp=8)
    recipe = replace(workload.recipe, reduced_parameters=None)
    plain = replace(workload, framework=replace(workload.framework, recipe=recipe))
    more = buffer_bytes(workload, meshes) - buffer_bytes(plain, meshes)
    assert more.item() == each * 5e8


def test_the_root_of_fsdp2_is_whole() -> None:
    """Embedding and head in bf16, and the head's gradient; none under DeepSpeed."""
    table = 128_256 * 4096
    first, last = root_bytes(job("torchtitan", "torchtitan"), mesh(zero=3, dp=8))
    assert (first[0], last[0]) == (2 * table, 4 * table)
    units = job("deepspeed-zero3", "torchtitan")
    assert not any(side[0] for side in root_bytes(units, mesh(zero=3, dp=8)))
    assert head_buffers(units, mesh(zero=3, dp=8))[0] == 4 * table


def test_the_allocators_cache_gives_way() -> None:
    """At leisure A / phi, near the capacity the capacity, beyond it A / phi_0."""
    workload = job()
    phi, least = workload.profile.fragmentation, workload.profile.packing
    capacity = workload.gpu.memory_capacity
    assert device_bytes(workload, 1e9, 1e9) == pytest.approx(1e9 / phi + 1e9)
    near = 0.95 * capacity
    assert device_bytes(workload, near, 0.0) == capacity
    assert device_bytes(workload, capacity, 1e9) == capacity / least + 1e9


def test_a_frozen_fp8_weight_caches_no_transpose() -> None:
    """One byte on Hopper where the stack stores it so, else 16 bits and both forms."""
    for stack, each in (("nemo-2024", 1), ("megatron-2024", 4)):
        workload = job(stack, precision="fp8", method="lora")
        meshes, kind = mesh(), workload.kinds[0]
        owned = layer_owned(workload, kind, meshes)
        held = held_bytes(workload, owned, meshes)[0]
        norms = owned.frozen[0] - owned.quantised[0]
        assert held == pytest.approx(each * owned.quantised[0] + 2 * norms)


def test_deepspeeds_bucket_and_stage_outputs() -> None:
    """5e8 fp16 gradients, and 2 h a token of what the first stage sent on."""
    old, new = job("megatron-deepspeed"), job("megatron-2024")
    one = mesh(zero=1, dp=8)
    assert buffer_bytes(old, one)[0] - buffer_bytes(old, mesh())[0] == 1e9
    piped = Meshes.from_rows([(1, 0, 4, 1, 1, 1, 1, 2, 2, 1, 1, 1, 4, 0)])
    kept = [
        embedding_end(Context.of(workload, piped)).saved[0] for workload in (old, new)
    ]
    assert kept[0] - kept[1] == (2 + 1) * 4096 * 2048


def test_a_copy_of_an_input_for_every_linear_that_reads_it() -> None:
    """Q, K and V, gate and up: three more of the norms' outputs of 4096 columns."""
    sizes = []
    for copies in (False, True):
        workload = job("torchtitan-eager", "torchtitan")
        recipe = replace(workload.framework.recipe, copies_inputs=copies)
        changed = replace(workload.framework, recipe=recipe)
        own = replace(workload, framework=changed)
        kept = saved_bytes(own, own.kinds[0], recipe.kind("none"), mesh(tp=2))
        sizes.append(float(kept[0]))
    assert sizes[1] - sizes[0] == pytest.approx(3 * 2 * 4096 * 2048)


@pytest.mark.parametrize(
    ("name", "tp", "each"),
    [
        ("llama-3-8b", 1, 12),
        ("llama-3-8b", 2, 18),
        ("gpt3-175b", 1, 6),
        ("mixtral-8x7b", 1, 12),
    ],
)
def test_the_loss_by_model_and_by_tensor_ranks(name: str, tp: int, each: float) -> None:
    """Only models with gates upcast their logits; a split vocabulary has its loss."""
    workload = job("hf-trainer", "accelerate")
    recipe = replace(workload.framework.recipe, split_logits_bytes=18.0)
    changed = replace(workload.framework, recipe=recipe)
    own = replace(workload, framework=changed, model=preset(name))
    assert logit_bytes(own, mesh(tp=tp)).tolist() == [each]


@pytest.mark.parametrize(
    ("stack", "room"),
    [
        ("hf-trainer", "accelerate"),
        ("deepspeed-2022", "torchtitan"),
        ("deepspeed-zero3", "torchtitan"),
        ("eager-zero", "torchtitan"),
    ],
)
def test_stage_2_keeps_shards_of_gradients_alone(stack: str, room: str) -> None:
    """Gradients are reduced to their owners in every backward: 2 P + 16 P / N."""
    workload, meshes = job(stack, room), mesh(zero=2, dp=8)
    owned = layer_owned(workload, workload.kinds[0], meshes)
    assert waiting_bytes(workload, owned, meshes).tolist() == [0.0]
    shard = 14 if stack == "eager-zero" else 16
    each = per_parameter(workload, zero=2, dp=8)
    assert each == pytest.approx(2 + shard / 8)


@pytest.mark.parametrize(
    ("stack", "bits", "each"),
    [
        ("megatron-2026", 32, 0),
        ("megatron-2026", 16, 8),
        ("megatron-2026", 8, 8),
        ("deepseek-v3", 16, 0),
    ],
)
def test_transformer_engines_adam_takes_fp32_moments(
    stack: str, bits: int, each: float
) -> None:
    """Narrower moments of all parameters are copied to fp32 before its kernel."""
    own = job(stack, "megatron", state_bits=bits)
    meshes = mesh(zero=1, dp=4)
    owned = layer_owned(own, own.kinds[0], meshes)
    copies = step_copies(own, owned, meshes)
    assert copies.item() == pytest.approx(each * owned.dense.item() / 4)


@pytest.mark.parametrize(("loss", "more"), [("hf", 2), ("upcast", 4), ("liger", 0)])
def test_a_loop_that_keeps_its_outputs_has_the_logits_that_it_gets(
    loss: str, more: float
) -> None:
    own = job("hf-bf16", "accelerate")
    sizes = []
    for keeps in (False, True):
        recipe = replace(own.framework.recipe, loss=loss, keeps_outputs=keeps)
        changed = replace(own, framework=replace(own.framework, recipe=recipe))
        sizes.append(logit_bytes(changed, mesh()).item())
    assert sizes[1] - sizes[0] == more
