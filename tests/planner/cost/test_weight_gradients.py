"""Weight gradients: a part of the backward, and what waits for them."""

from dataclasses import replace

import numpy as np
import pytest
from examples import examples
from hypothesis import given, settings
from strategies import framework, jobs, small_job
from tiny_models import FAMILIES

from planner.cost.kernels import gemm_rate, gemm_time
from planner.cost.meshes import Meshes
from planner.cost.pricing import Pricing
from planner.cost.table.table import fill_table
from planner.cost.time.columns import Context
from planner.cost.time.ends import embedding_end, head_end
from planner.cost.time.gradients import (
    gemm_shape,
    layer_pending_bytes,
    layer_weight_time,
)
from planner.cost.time.layers import layer_time
from planner.job.methods import frozen_model
from planner.models import preset
from planner.search.space.space import enumerate_space
from planner.specs.search import SearchSpec
from planner.specs.training import TrainingSpec

SEQUENCE, BATCH = 2048, 2


def mesh(**axes: int) -> Meshes:
    names = ("tp", "sp", "pp", "cp", "cp_kind", "ep", "etp", "dp", "dp_shard")
    names += ("zero", "hpz", "micro_batch", "micro_batches", "order")
    start = dict.fromkeys(names, 1) | {"sp": 0, "zero": 0, "order": 0}
    start |= {"micro_batch": BATCH}
    return Meshes.from_rows([tuple((start | axes).values())])


def job(model: str, **training: object) -> Pricing:
    """A preset on one node of H100s."""
    block = TrainingSpec.model_validate(
        {"seq_len": SEQUENCE, "global_batch": 64} | training
    )
    workload = replace(small_job(SearchSpec()), training=block)
    return replace(workload, model=frozen_model(block, preset(model)))


def backward_of(context: Context) -> float:
    pricing = context.pricing
    kind = pricing.recipe.kinds["none"]
    return float(layer_time(context, pricing.kinds[0], kind)[1].total[0])


def test_what_waits_for_w_in_gpt_is_18_s_b_h() -> None:
    """The paper's M_W is 32 s b h: 14 are inputs of linears, 18 their gradients.

    6 of the fused qkv, 2 of the projection, 8 and 2 of the MLP.
    """
    workload = job("gpt3-175b")
    layer = workload.kinds[0]
    one, eight = (
        float(layer_pending_bytes(Context.of(workload, mesh(**axes)), layer)[0])
        for axes in ({}, {"tp": 8, "sp": 1})
    )
    tokens = SEQUENCE * BATCH * layer.hidden
    assert one == 18 * tokens
    # columns are split; what enters a row's product is whole on every rank
    assert eight == (14 / 8 + 4) * tokens


def test_weight_gradients_are_the_linears_own() -> None:
    """As many FLOPs as the linears forward, 24 s b h^2; the attention has none."""
    workload = job("gpt3-175b")
    layer, context = workload.kinds[0], Context.of(workload, mesh(tp=8, sp=1))
    flops = 0.0
    for gemm in layer.gemms():
        rows, outputs, inputs = gemm_shape(context, gemm)
        flops += float((2 * rows * outputs * inputs)[0])
    expected = 24 * SEQUENCE * BATCH * layer.hidden**2 / 8
    assert flops == pytest.approx(expected, rel=1e-9)
    rate = gemm_rate(workload)
    by_hand = [
        (6144 // 4 * 3, 12288),
        (12288, 1536),
        (6144, 12288),
        (12288, 6144),
    ]
    rows = np.array([float(SEQUENCE * BATCH)])
    total = sum(
        float(
            gemm_time(rate, np.array([i * 1.0]), np.array([o * 1.0]), rows, wgrad=True)[
                0
            ]
        )
        for o, i in by_hand
    )
    assert float(layer_weight_time(context, layer)[0]) == pytest.approx(total)


def test_longer_sequences_have_a_smaller_share_of_weight_gradients() -> None:
    """The attention core grows with the square of the sequence, in B alone."""
    shares = []
    for length in (2048, 8192, 32768):
        workload = job("gpt3-175b", seq_len=length)
        context = Context.of(workload, mesh(tp=8, sp=1, micro_batch=1))
        weight = float(layer_weight_time(context, workload.kinds[0])[0])
        shares.append(weight / backward_of(context))
    assert 0.5 > shares[0] > shares[1] > shares[2] > 0


def test_adapters_alone_have_nearly_none() -> None:
    whole, adapted = job("llama-3.1-8b"), job("llama-3.1-8b", method="lora")
    times, sizes = [], []
    for workload in (whole, adapted):
        context, layer = Context.of(workload, mesh()), workload.kinds[0]
        times.append(float(layer_weight_time(context, layer)[0]))
        sizes.append(float(layer_pending_bytes(context, layer)[0]))
    assert 0 < times[1] < 0.1 * times[0]
    assert 0 < sizes[1] < 1.1 * sizes[0]


def test_layers_below_all_that_trains_have_none() -> None:
    workload = job("llama-3.1-8b")
    context = Context.of(workload, mesh())
    below = replace(workload.kinds[0], role="below")
    assert layer_weight_time(context, below)[0] == 0
    assert layer_pending_bytes(context, below)[0] == 0


def test_the_ends() -> None:
    """The head keeps 2 B of gradient a logit; the embedding has no other backward."""
    workload = job("llama-3.1-8b")
    context = Context.of(workload, mesh(tp=2, sp=1))
    head, embedding = head_end(context), embedding_end(context)
    tokens, vocab = SEQUENCE * BATCH, 128_256
    assert float(head.pending[0]) == 2 * tokens * vocab / 2
    assert 0.3 < float((head.weight / head.backward.total)[0]) < 0.5
    assert float(embedding.pending[0]) == 2 * tokens * 4096 / 2
    compute = embedding.backward.by_cause["compute"]
    assert float(embedding.weight[0]) == float(compute[0]) > 0


@pytest.mark.hypothesis
@pytest.mark.parametrize("family", FAMILIES)
def test_no_weight_gradient_exceeds_its_backward(family: str) -> None:
    """In whole ns, for every mesh, kind and recompute; never below zero."""

    @settings(max_examples=examples(15))
    @given(jobs(framework("megatron"), family))
    def never(pricing: Pricing) -> None:
        space = enumerate_space(pricing)
        table = fill_table(pricing, space.meshes, space.recompute)
        for kind, unit in enumerate(table.units):
            assert (unit.weight > 0).all()
            assert (unit.weight <= table.backward[kind].min(axis=0)).all()
            assert (unit.pending > 0).all()
        for end in (table.embedding, table.head):
            assert (end.unit.weight <= end.backward).all()

    never()


def test_a_table_of_memory_alone_holds_the_same() -> None:
    workload = job("llama-3.1-8b")
    timed, bare = (
        fill_table(workload, mesh(), ("none",), timed=timed) for timed in (True, False)
    )
    assert bare.units[0].pending == timed.units[0].pending
    assert bare.units[0].weight == bare.head.unit.weight == 0
