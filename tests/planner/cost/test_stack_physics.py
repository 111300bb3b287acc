"""Every constant of a software stack acts where its name says, by hand."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from strategies import small_job
from whole_fleet import groups_on

from planner.cost.attention import unfused_time
from planner.cost.kernels import cast_time, gemm_rate
from planner.cost.meshes import Meshes
from planner.cost.network.collectives import all_gather_time, fabric
from planner.cost.parameters.data_groups import DataGroups, gather_time, scatter_time
from planner.cost.parameters.rank_parameters import Owned, layer_owned
from planner.cost.pricing import Pricing
from planner.cost.streaming import memory_time, operator_latency, stream_rate
from planner.cost.time.columns import Context, Parts
from planner.cost.time.contention import BUSY_RATE, contention
from planner.cost.time.exchange import GemmTimes, core_times, tensor_exchange
from planner.cost.time.layers import gemm_times, layer_time
from planner.cost.time.transfers import sharded_parts
from planner.models import preset
from planner.planning.prediction.predict import predict
from planner.specs.layouts.layout import PartialLayout
from planner.specs.search import SearchSpec
from planner.specs.training import LoraSpec, TrainingSpec

EXACT = 1e-6


def job(
    node: str = "dgx-b200",
    nodes: int = 1,
    precision: str = "bf16",
    **stack: Any,
) -> Pricing:
    """Llama 3 8B on some nodes under a changed stack."""
    workload = small_job(SearchSpec(), node=node, nodes=nodes)
    profile = workload.profile.model_copy(update=stack)
    training = TrainingSpec(seq_len=4096, global_batch=64, precision=precision)
    return replace(
        workload,
        model=preset("llama-3-8b"),
        training=training,
        framework=replace(workload.framework, profile=profile),
    )


def context(pricing: Pricing, **axes: int) -> Context:
    names = ("tp", "sp", "pp", "cp", "cp_kind", "ep", "etp", "dp", "dp_shard")
    names += ("zero", "hpz", "micro_batch", "micro_batches", "order")
    start = dict.fromkeys(names, 1) | {"sp": 0, "zero": 0, "order": 0}
    return Context.of(pricing, Meshes.from_rows([tuple((start | axes).values())]))


def number(value: float) -> np.ndarray:
    return np.array([value])


def test_explicit_scores_on_a100() -> None:
    """1e12 FLOP at 312e12 * 0.836; 1e9 scores of 13 and 20 B at 2039e9 * 0.863.

    3833.88 us and 7387.80 us forward; 7667.77 us and 11365.85 us backward.
    """
    forward, backward = unfused_time(
        job("dgx-a100-80gb"), flops=number(1e12), scores=number(1e9), head_dim=128
    )
    assert forward == pytest.approx(11221.68e-6, rel=1e-5)
    assert backward == pytest.approx(19033.62e-6, rel=1e-5)


def test_eager_kernels_move_more_bytes_per_score() -> None:
    """Transformers writes, scales, masks, widens and casts: 24 B forward, not 13."""
    fused, eager = (
        job("dgx-a100-80gb", attention_kernel="unfused", **more)
        for more in ({}, {"score_forward": 24.0, "score_backward": 28.0})
    )
    scores = np.array([1e9])
    once = [
        unfused_time(each, flops=np.zeros(1), scores=scores, head_dim=128)
        for each in (fused, eager)
    ]
    more = [float(b[0] - a[0]) for a, b in zip(*once, strict=True)]
    assert more == pytest.approx([n * 1e9 / stream_rate(fused) for n in (11, 8)])


def test_heads_that_do_not_align_leave_the_tensor_cores() -> None:
    """1e12 FLOP at half the vector units: 2e12 / 19.5e12 = 102564.1 us."""
    forward, _ = unfused_time(
        job("dgx-a100-80gb"), flops=number(1e12), scores=number(0.0), head_dim=150
    )
    assert forward == pytest.approx(102564.1e-6, rel=1e-5)


def test_attention_rate_and_clock_scale_explicit_scores() -> None:
    ask = {"flops": number(1e12), "scores": number(1e9), "head_dim": 128}
    plain = unfused_time(job(), **ask)
    slow = unfused_time(job(attention_rate=0.5), **ask)
    assert [s / p for s, p in zip(slow, plain, strict=True)] == [2.0, 2.0]
    assert unfused_time(job(clock=0.5), **ask)[0] > plain[0]


@pytest.mark.parametrize(
    ("precision", "peak", "element"),
    [("fp8", 4500e12, 1.0), ("mxfp8", 4500e12, 1.03125), ("nvfp4", 9000e12, 0.5625)],
)
def test_narrow_formats_run_at_their_own_peak(
    precision: str, peak: float, element: float
) -> None:
    workload = job(precision=precision)
    rate = gemm_rate(workload)
    entry = workload.calibration.gemm[precision]
    assert rate.flops == pytest.approx(peak * entry.efficiency, rel=EXACT)
    assert rate.element == element
    assert gemm_rate(workload, narrow=False) == gemm_rate(job())


def test_a_grouped_product_loses_what_a_dense_one_loses() -> None:
    narrow, half = job(precision="mxfp8"), job()
    ratio = gemm_rate(narrow).flops / gemm_rate(half).flops
    grouped = [gemm_rate(each, grouped=True).flops for each in (narrow, half)]
    assert grouped[0] / grouped[1] == pytest.approx(ratio, rel=EXACT)


@pytest.mark.parametrize(
    ("node", "recipe", "moved"),
    [
        ("dgx-h100", "delayed", 4e9),
        ("dgx-h100", "current", 6e9),
        ("dgx-b200", "delayed", 3e9),
        ("dgx-b200", "current", 5e9),
    ],
)
def test_casts_move_bytes_by_recipe(node: str, recipe: str, moved: float) -> None:
    """4 B an element by earlier maxima, 6 by a first pass; one copy on Blackwell.

    A cast is one kernel: what else the stack does not fuse leaves it alone.
    """
    assert cast_time(job(node), number(1e9)) == 0.0
    stack = {"precision": "fp8", "fp8_recipe": recipe}
    fused = job(node, memory_traffic=1.0, **stack)
    eager = job(node, memory_traffic=3.0, **stack)
    assert cast_time(fused, number(1e9)) == memory_time(fused, number(moved), 1)
    assert cast_time(eager, number(1e9)) == cast_time(fused, number(1e9))


def test_without_weight_gradients_one_copy_is_cast() -> None:
    frozen = job("dgx-h100", precision="fp8", fp8_recipe="delayed")
    lora = frozen.training.model_copy(update={"method": "lora"})
    frozen = replace(frozen, training=lora)
    assert cast_time(frozen, number(1e9)) == memory_time(frozen, number(3e9), 1)


def test_packed_documents_attend_to_themselves() -> None:
    """Documents of 512 in 4096 tokens: the core of sequences of 512, no more."""
    whole = job("dgx-h100")
    packed = whole.training.model_copy(update={"document": 512})
    short = whole.training.model_copy(update={"seq_len": 512})
    times = []
    for training, micro_batch in ((packed, 1), (short, 8)):
        its = context(replace(whole, training=training), micro_batch=micro_batch)
        times.append(core_times(its, whole.model.kinds[0]))
    assert times[0] == times[1]
    assert times[0][0] < core_times(context(whole), whole.model.kinds[0])[0] / 4


def test_frozen_halves_gather_nothing_again() -> None:
    """Adapters on QKV: one half of two gathers its input again in the backward."""
    full = job("dgx-h100", hidden_tp=0.0, hidden_regather=0.0)
    lora = LoraSpec(targets=("qkv",))
    some = full.training.model_copy(update={"method": "lora", "lora": lora})
    layer, axes = full.model.kinds[0], {"tp": 8, "sp": 1}
    (gather,) = _one_gather(context(full, **axes))
    _, back = tensor_exchange(context(full, **axes), layer, {})
    _, less = tensor_exchange(context(replace(full, training=some), **axes), layer, {})
    assert back - less == pytest.approx(gather)


def test_a_stack_that_keeps_no_quantised_weights_casts_them_each_way() -> None:
    workload = job(precision="fp8", fp8_recipe="current")
    again = replace(
        workload,
        framework=replace(
            workload.framework, recipe=replace(workload.recipe, keeps_fp8=False)
        ),
    )
    layer = workload.kinds[0]
    gemm = layer.gemms()[0]
    weights = number(float(gemm.inputs * gemm.outputs))
    for kept, cast in zip(
        gemm_times(context(workload), layer, gemm),
        gemm_times(context(again), layer, gemm),
        strict=True,
    ):
        assert cast - kept == pytest.approx(cast_time(again, weights))


ZERO3 = {"zero": 3, "dp": 8, "dp_shard": 8}


def sharded(**stack: Any) -> tuple[DataGroups, Owned]:
    workload = job("dgx-h100", **stack)
    its = context(workload, **ZERO3)
    data = DataGroups.of(workload, its.meshes, fabric(workload))
    return data, layer_owned(workload, workload.kinds[0], its.meshes)


def test_what_is_gathered_is_copied_into_place_on_the_compute_stream() -> None:
    """4 B a parameter each way, 6 more behind: whatever runs beside."""
    long = Parts().plus("compute", number(1.0))
    shown = []
    for copies in ({}, {"gather_copy": 4.0, "scatter_copy": 6.0}):
        data, owned = sharded(overlap_contention=0.0, **copies)
        shown.append([p.total for p in sharded_parts(data, owned, long, long)])
    each = float(owned.dense[0]) / stream_rate(data.pricing)
    assert shown[0] == [1.0, 1.0]
    assert shown[1][0] - 1.0 == pytest.approx(4 * each)
    assert shown[1][1] - 1.0 == pytest.approx(10 * each)


@pytest.mark.parametrize("kappa", [0.15, 1.0])
@pytest.mark.parametrize("reduces", [False, True])
def test_a_collective_that_runs_alone_shows_all_of_it(
    *, kappa: float, reduces: bool
) -> None:
    """Whatever the contention: gathers alone, and reductions if they are too."""
    data, owned = sharded(
        overlap_param_gather=False,
        overlap_grad_reduce=reduces,
        overlap_contention=kappa,
    )
    long = Parts().plus("compute", number(1.0))
    forward, backward = sharded_parts(data, owned, long, long)
    gather, scatter = gather_time(data, owned), scatter_time(data, owned)
    share = contention(data, owned, scatter, gathers=0.0) if reduces else 1.0
    assert forward.total - 1.0 == pytest.approx(gather)
    assert backward.total - 1.0 == pytest.approx(gather + share * scatter)


def test_tensors_that_travel_apart_pay_a_latency_each() -> None:
    whole = sharded(bucket_parameters=None)
    apart = sharded(bucket_parameters=None, collectives_per_unit=16)
    part = replace(whole[1], dense=whole[1].dense / 16)
    assert gather_time(*apart) == pytest.approx(16 * gather_time(whole[0], part))
    assert gather_time(*apart) > gather_time(*whole)


def test_narrow_layers_are_faster_and_their_heads_are_not_touched() -> None:
    times = []
    for precision in ("bf16", "mxfp8", "nvfp4"):
        its = context(job(precision=precision))
        layer = its.pricing.model.kinds[0]
        wide = max(layer.gemms(), key=lambda gemm: gemm.weights)
        times.append(sum(float(t[0]) for t in gemm_times(its, layer, wide)))
    assert times[0] > times[1] > times[2]


def test_latency_acts_on_kernels() -> None:
    assert operator_latency(job(latency=2.0)) == 2 * operator_latency(job())
    assert gemm_rate(job(latency=2.0)).overhead == 2 * gemm_rate(job()).overhead


def test_an_exchange_in_pieces_beside_its_gemm() -> None:
    """Of 8 ranks: a GEMM of 10 c hides all but an eighth and the contention."""
    its = context(job(tp_overlap=True, tp_contention=0.05), tp=8, sp=1)
    layer = its.pricing.model.kinds[0]
    (gather,) = _one_gather(its)
    long: GemmTimes = (number(10 * gather), number(20 * gather))
    beside = {
        f"{half} {split}": long
        for half in ("attention", "ffn")
        for split in ("column", "row")
    }
    forward, backward = tensor_exchange(its, layer, beside)
    shown = gather * (0.05 + 1 / 8)
    assert forward == pytest.approx(4 * shown)
    assert backward == pytest.approx(6 * shown)


@pytest.mark.parametrize(
    ("precision", "inputs", "gradients"),
    [("fp8", 1.0, 1.0), ("mxfp8", 33 / 32, 33 / 16), ("nvfp4", 9 / 16, 9 / 8)],
)
def test_gathers_send_what_products_read_and_sums_stay_wide(
    precision: str, inputs: float, gradients: float
) -> None:
    """Gradients with scales by blocks travel twice, by rows and by columns."""
    stack = {"narrow_gathers": True, "hidden_tp": 0.0, "hidden_regather": 1.0}
    narrow = context(job(precision=precision, **stack), tp=8, sp=1)
    layer = narrow.pricing.model.kinds[0]
    wide = _one_gather(narrow)
    forward, backward = tensor_exchange(narrow, layer, {})
    assert forward == pytest.approx(2 * (_one_gather(narrow, inputs) + wide))
    assert backward == pytest.approx(2 * (_one_gather(narrow, gradients) + wide))
    half = context(job(**stack), tp=8, sp=1)
    assert tensor_exchange(half, layer, {})[0] == pytest.approx(4 * wide)


def test_an_adapter_reads_a_wide_gathered_input() -> None:
    """Of QKV alone: one of two forward gathers is of 16 bits, both behind of 8."""
    stack = {"narrow_gathers": True, "hidden_tp": 0.0, "hidden_regather": 1.0}
    full = job("dgx-h100", precision="fp8", **stack)
    update = {"method": "lora", "lora": LoraSpec(targets=("qkv",))}
    lora = replace(full, training=full.training.model_copy(update=update))
    its = context(lora, tp=8, sp=1)
    wide, narrow = _one_gather(its), _one_gather(its, 1.0)
    forward, backward = tensor_exchange(its, full.model.kinds[0], {})
    assert forward == pytest.approx(3 * wide + narrow)
    assert backward == pytest.approx(2 * wide + 2 * narrow)


def _one_gather(its: Context, width: float = 2.0) -> np.ndarray:
    tokens = 4096
    message = number(width * 4096 * tokens)
    return all_gather_time(its.links, message, its.tensor)


def test_without_gemms_an_exchange_in_pieces_shows_whole() -> None:
    its = context(job(tp_overlap=True), tp=8, sp=1)
    layer = its.pricing.model.kinds[0]
    forward, _ = tensor_exchange(its, layer, {})
    assert forward == pytest.approx(4 * _one_gather(its))


def test_the_network_factor_acts_between_domains_alone() -> None:
    times = {}
    for factor in (1.0, 0.5):
        workload = job("dgx-h100", 4, network=factor)
        for ranks in (8, 32):
            ring = groups_on(workload.topology, np.array([ranks]), np.array([1]))
            moved = all_gather_time(fabric(workload), number(1e11), ring)
            times[factor, ranks] = float(moved[0])
    assert times[0.5, 8] == times[1.0, 8]
    assert times[0.5, 32] == pytest.approx(2 * times[1.0, 32], rel=0.01)


def test_a_slow_collective_takes_the_compute_that_its_bytes_take() -> None:
    """Half the rate of a busy collective costs half the compute a second."""
    data, owned = sharded(overlap_contention=0.6)
    sent = 2.0 * (owned.dense + owned.expert)
    busy = sent / BUSY_RATE
    shares = [contention(data, owned, t * busy, reduces=0.0) for t in (0.5, 1.0, 2.0)]
    assert [float(share[0]) for share in shares] == pytest.approx([0.6, 0.6, 0.3])


def test_host_work_of_a_step_is_added_once() -> None:
    layout = PartialLayout(tp=1, pp=4, micro_batch=1, stages="even")
    plain = predict(job("dgx-h100", step_overhead=0.0), layout).estimate
    slow = predict(job("dgx-h100", step_overhead=0.5), layout).estimate
    factor = plain.time_breakdown_s.straggler / (
        plain.step_time_s.value - plain.time_breakdown_s.straggler
    )
    added = slow.step_time_s.value - plain.step_time_s.value
    assert added == pytest.approx(0.5 * (1 + factor), rel=EXACT)
    shown = slow.time_breakdown_s.other - plain.time_breakdown_s.other
    assert shown == pytest.approx(0.5, rel=EXACT)


def test_a_recompute_launches_its_kernels_again() -> None:
    its = context(job(host_forward=1.0, host_backward=2.0))
    layer, kinds = its.pricing.model.kinds[0], its.pricing.recipe.kinds
    for name, seconds in (("none", 2.0), ("full", 3.0)):
        _, backward = layer_time(its, layer, kinds[name])
        assert backward.total == pytest.approx(seconds)
