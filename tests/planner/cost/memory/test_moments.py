"""The moments of a run: which is fullest when, and what each holds."""

from dataclasses import replace
from typing import Any

import pytest
from strategies import small_job

from planner.cost.estimate.estimate import memory_estimate
from planner.cost.estimate.pricing import price
from planner.cost.memory.memory_moments import (
    BACKWARD_END,
    GATHER,
    LOSS,
    ORDER,
    RESUME,
    SAVE,
    START,
    STEADY,
    STEP,
)
from planner.cost.meshes import Meshes
from planner.cost.parameters.rank_parameters import (
    embedding_owned,
    head_owned,
    layer_owned,
)
from planner.cost.pricing import Pricing
from planner.frameworks.stacks import with_stack
from planner.specs.answer.estimate import MomentMemory, StageMemory
from planner.specs.layouts.layout import Layout, RecomputeRange, Stage
from planner.specs.search import SearchSpec

GIB = 2**30
LAYERS = 6


def job(
    stack: str, room: str, *, tied: bool = False, vocab: int = 32_000, **fields: Any
) -> Pricing:
    """Six small layers, by default under a wide vocabulary."""
    config = {"vocab_size": vocab, "tie_word_embeddings": tied}
    workload = small_job(SearchSpec(), name=room, config=config)
    recipe = fields.pop("recipe", {})
    framework = with_stack(workload.framework, stack)
    return replace(
        workload,
        framework=replace(framework, recipe=replace(framework.recipe, **recipe)),
        training=workload.training.model_copy(update=fields),
    )


def layout(recompute: str = "none", layers: int = LAYERS, **degrees: Any) -> Layout:
    pp = degrees.get("pp", 1)
    ranges = (RecomputeRange(start=0, stop=layers // pp, kind=recompute),)
    stage = Stage(layers=layers // pp, recompute=ranges)
    return Layout(**{"zero_stage": 0} | degrees, stages=(stage,) * pp)


def stage_of(pricing: Pricing, placed: Layout, rank: int = 0) -> StageMemory:
    return memory_estimate(price(pricing, placed)).stages[rank]


def at(pricing: Pricing, placed: Layout, name: str, rank: int = 0) -> MomentMemory:
    """One moment of one rank."""
    stage = stage_of(pricing, placed, rank)
    return next(moment for moment in stage.moments if moment.moment == name)


def parameters(pricing: Pricing, placed: Layout) -> float:
    """Trained parameters of the only rank. [1]."""
    meshes = Meshes.of_layout(placed)
    ends = [owned(pricing, meshes).dense[0] for owned in (embedding_owned, head_owned)]
    layers = [layer_owned(pricing, kind, meshes).dense[0] for kind in pricing.kinds]
    return float(sum(ends) + LAYERS * layers[0])


ALONE = job("torchtune", "torchtitan")


def test_every_moment_is_there_in_the_order_of_a_run() -> None:
    stage = stage_of(job("megatron-2026", "megatron"), layout(zero_stage=1))
    names = [moment.moment for moment in stage.moments]
    assert names == [name for name in ORDER if name in names]
    assert {START, LOSS, BACKWARD_END, STEP, GATHER, SAVE, RESUME} <= set(names)


def test_a_stage_repeats_its_fullest_moment() -> None:
    stage = stage_of(ALONE, layout())
    top = max(stage.moments, key=lambda moment: moment.allocated)
    assert stage.moment == top.moment
    assert (stage.allocated, stage.reserved) == (top.allocated, top.reserved)
    assert stage.device == pytest.approx(top.device)


@pytest.mark.parametrize("grad_accum", [1, 2])
def test_gradients_come_with_the_only_backward_or_stay_from_the_one_before(
    grad_accum: int,
) -> None:
    """Pure bf16, freed every step: 6 B a parameter in the loss, 8 at its end."""
    placed = layout(grad_accum=grad_accum)
    count = parameters(ALONE, placed)
    found = [at(ALONE, placed, name) for name in (LOSS, BACKWARD_END, STEP)]
    there = [moment.gradients * GIB / count for moment in found]
    assert (there[0], there[2]) == pytest.approx((2.0 * (grad_accum > 1), 2.0))
    assert there[0] <= there[1] <= there[2]
    for moment in found:
        states = (moment.weights + moment.optimizer) * GIB / count
        assert states == pytest.approx(6.0, rel=1e-3)


def test_full_recompute_moves_the_peak_to_the_end_of_the_backward() -> None:
    """Little is saved then, and all gradients are there: as PyTorch allocates it."""
    short = job("torchtune", "torchtitan", vocab=1024)
    assert stage_of(short, layout("none")).moment in (LOSS, STEADY)
    assert stage_of(short, layout("full")).moment == BACKWARD_END


def test_lists_of_tensors_copy_the_moments_once() -> None:
    """Roots of the second moments of all parameters: 2 B each in bf16.

    Before PyTorch 2.1 their sum with epsilon was there beside them.
    """
    kernels = ("fused", "foreach", "foreach-2.0", "for-loop")
    fused, foreach, older, loop = (
        at(
            job("torchtune", "torchtitan", recipe={"optimizer_kernel": k}),
            layout(),
            STEP,
        )
        for k in kernels
    )
    more = (foreach.transient - fused.transient) * GIB
    assert more == pytest.approx(2 * parameters(ALONE, layout()), rel=1e-4)
    twice = (older.transient - fused.transient) * GIB
    assert twice == pytest.approx(2 * more)
    largest = 32_000 * 512
    assert (loop.transient - fused.transient) * GIB == pytest.approx(2 * largest)


def test_muon_works_on_one_matrix_at_a_time() -> None:
    """Three forms of 512 x 3072 and three products of 512 x 512, in bf16."""
    muon = job("torchtune", "torchtitan", optimizer="muon")
    plain = job("torchtune", "torchtitan", optimizer="sgd-momentum")
    found = [at(each, layout(), STEP).transient * GIB for each in (muon, plain)]
    assert found[0] - found[1] == pytest.approx(2 * (3 * 512 * 3072 + 3 * 512**2))


def test_a_tied_table_has_two_gradients_at_once() -> None:
    """The head's and the embedding's; one is the sum's place, and counted as kept."""
    wide = {"vocab": 256_000, "seq_len": 64}
    own, tied = (job("torchtune", "torchtitan", tied=t, **wide) for t in (False, True))
    ends = [at(each, layout(), BACKWARD_END).transient for each in (own, tied)]
    assert (ends[1] - ends[0]) * GIB == pytest.approx(2 * 256_000 * 512)


def test_a_resume_loads_the_moments_beside_the_others() -> None:
    """Megatron: 12 / 8 B of optimizer a parameter, and 8 / 8 B once more."""
    megatron = job("megatron-2026", "megatron")
    placed = layout(zero_stage=1, dp=8, dp_shard=8)
    count = parameters(megatron, placed)
    there = [at(megatron, placed, name).optimizer * GIB for name in (STEP, RESUME)]
    assert there == pytest.approx([12 / 8 * count, 20 / 8 * count], rel=1e-3)


def test_before_the_first_step_there_are_no_optimizer_states() -> None:
    start = at(ALONE, layout(), START)
    assert (start.optimizer, start.activations) == (0.0, 0.0)
    assert start.weights == stage_of(ALONE, layout()).weights


@pytest.mark.parametrize(
    ("form", "held"), [("shards", 0), ("units", 1), ("model", LAYERS)]
)
def test_a_checkpoint_makes_whole_what_its_form_needs(form: str, held: int) -> None:
    """ZeRO-3: nothing, the largest unit (the head), or everything in 2 B."""
    workload = job("torchtitan", "torchtitan", recipe={"checkpoint": form})
    placed = layout(zero_stage=3, dp=8, dp_shard=8)
    plain = job("torchtitan", "torchtitan", recipe={"checkpoint": "shards"})
    count = {0: 0.0, 1: 32_000 * 512 + 512, LAYERS: parameters(workload, placed)}
    more = at(workload, placed, SAVE).transient - at(plain, placed, SAVE).transient
    assert more * GIB == pytest.approx(2 * count[held])


def steady(pricing: Pricing, zero: int, **degrees: Any) -> MomentMemory:
    placed = layout(dp=2, dp_shard=2, zero_stage=zero, **degrees)
    return at(pricing, placed, STEADY, rank=int(degrees.get("pp", 1) > 1))


def test_more_sharding_may_hold_more() -> None:
    """One layer of n parameters on a rank, gradients divided by two.

    ZeRO-1 keeps 4 n of main gradients; ZeRO-2 4 n / 2 of them, and a buffer of 4 n
    that the whole unit is reduced from.
    """
    megatron = job("megatron-2026", "megatron")
    few = replace(
        megatron,
        model=small_job(SearchSpec(), config={"num_hidden_layers": 4}).model,
    )
    first, second = (steady(few, zero, layers=4, pp=4) for zero in (1, 2))
    assert second.gradients < first.gradients
    layer = layer_owned(few, few.kinds[0], Meshes.of_layout(layout()))
    more = (second.allocated - first.allocated) * GIB
    assert more == pytest.approx(2 * layer.dense[0], rel=1e-3)


def test_zero_2_of_fsdp2_may_hold_more_than_zero_1() -> None:
    """It accumulates whole fp32 gradients too, and reduces them from a buffer."""
    titan = job("torchtitan", "torchtitan")
    first, second = (steady(titan, zero, grad_accum=4) for zero in (1, 2))
    assert second.allocated > first.allocated
