"""What each recomputed module drops, builds again and runs again, by hand."""

from dataclasses import replace

import numpy as np
import pytest
from strategies import small_job

from planner.cost.estimate.estimate import _again
from planner.cost.memory.activations import kept_bytes, transient_bytes
from planner.cost.memory.recompute_modules import combinations, is_known
from planner.cost.meshes import Meshes
from planner.cost.pricing import Pricing
from planner.cost.routing import imbalance
from planner.cost.streaming import memory_time
from planner.cost.time.columns import Context
from planner.cost.time.exchange import tensor_exchange
from planner.cost.time.experts import expert_exchange
from planner.cost.time.layers import gemm_times, layer_time
from planner.cost.time.recompute import launch_share
from planner.models import preset
from planner.models.layers.blocks import LayerKind
from planner.specs.layouts.recompute import combination, combinations_of
from planner.specs.search import SearchSpec
from planner.specs.training import TrainingSpec

TOKENS = 4096


def job(model: str, nodes: int = 1) -> Pricing:
    workload = small_job(SearchSpec(), nodes=nodes)
    training = TrainingSpec(seq_len=TOKENS, global_batch=64)
    return replace(workload, training=training, model=preset(model))


def mesh(**axes: int) -> Meshes:
    names = ("tp", "sp", "pp", "cp", "cp_kind", "ep", "etp", "dp", "dp_shard")
    names += ("zero", "hpz", "micro_batch", "micro_batches", "order")
    start = dict.fromkeys(names, 1) | {"sp": 0, "zero": 1, "order": 0}
    return Meshes.from_rows([tuple((start | axes).values())])


def of_kind(pricing: Pricing, name: str) -> LayerKind:
    """The first layer, dense where the model has dense layers, or the last."""
    return pricing.kinds[0 if name == "dense" else -1]


def freed(model: str, name: str, layer: str = "dense") -> float:
    """Bytes per token that a kind keeps less than none, on one rank."""
    workload = job(model)
    here, kinds = of_kind(workload, layer), workload.recipe
    none, some = (
        kept_bytes(workload, here, kinds.kind(kind), mesh())[0]
        for kind in ("none", name)
    )
    return float(none - some) / TOKENS


LLAMA, MIXTRAL, DEEPSEEK = "llama-3-8b", "mixtral-8x7b", "deepseek-v3"


@pytest.mark.parametrize(
    ("model", "name", "layer", "expected"),
    [
        # h 4096, f 14336: norm's output 2 h, gate and up 4 f, activation 2 f.
        (LLAMA, "mlp", "dense", 2 * 4096 + 6 * 14336),
        # No module of its own: TransformerEngine fuses both norms into linears.
        (LLAMA, "layernorm", "dense", 0),
        # Two experts of 14336 a token: 2 h k + 4 f k + 2 f k, and 2 E fp32 numbers.
        (MIXTRAL, "moe", "routed", 2 * 2 * 4096 + 6 * 2 * 14336 + 4 * 2 * 8),
        (MIXTRAL, "moe_act", "routed", 2 * 2 * 14336),
        (MIXTRAL, "layernorm", "routed", 2 * 4096),
        # 128 heads of 128 + 64 for queries and keys, of 128 for values.
        (DEEPSEEK, "mla_up_proj", "routed", 2 * 128 * (2 * 192 + 128)),
        (DEEPSEEK, "layernorm", "routed", 2 * 2 * 7168),
        (DEEPSEEK, "layernorm", "dense", 2 * 7168),
        (DEEPSEEK, "mlp", "dense", 2 * 7168 + 6 * 18432),
        (DEEPSEEK, "mlp", "routed", 0),
        (DEEPSEEK, "shared_experts", "routed", 6 * 2048),
        (DEEPSEEK, "moe_act", "routed", 2 * 8 * 2048),
        (DEEPSEEK, "moe", "routed", 2 * 8 * 7168 + 6 * 9 * 2048 + 4 * 2 * 256),
        # Core attention: one fp32 number a head.
        (LLAMA, "core_attn+mlp", "dense", 4 * 32 + 2 * 4096 + 6 * 14336),
        (DEEPSEEK, "layernorm+moe_act", "routed", 4 * 7168 + 2 * 8 * 2048),
    ],
)
def test_bytes_that_a_module_frees(
    model: str, name: str, layer: str, expected: float
) -> None:
    assert freed(model, name, layer) == expected


@pytest.mark.parametrize(
    ("model", "name", "layer", "expected"),
    [
        (LLAMA, "mlp", "dense", 6 * 4096 * 14336),
        (DEEPSEEK, "mla_up_proj", "routed", 2 * (1536 * 128 * 192 + 512 * 128 * 256)),
        (DEEPSEEK, "layernorm+moe_act", "routed", 0),
        (DEEPSEEK, "shared_experts", "routed", 6 * 7168 * 2048),
        (MIXTRAL, "moe", "routed", 2 * 4096 * 8 + 2 * 6 * 4096 * 14336),
    ],
)
def test_flops_that_a_module_runs_again(
    model: str, name: str, layer: str, expected: float
) -> None:
    """Per token: 2 for each weight that it meets again."""
    workload = job(model)
    assert _again(workload, of_kind(workload, layer), name) == expected


def again(pricing: Pricing, layer: LayerKind, name: str, where: Meshes) -> float:
    context = Context.of(pricing, where)
    _, backward = layer_time(context, layer, pricing.recipe.kind(name))
    return float(backward.by_cause["recompute"][0])


def products(pricing: Pricing, layer: LayerKind, where: Meshes, *names: str) -> float:
    context = Context.of(pricing, where)
    ahead = [gemm_times(context, layer, g)[0] for g in layer.gemms() if g.name in names]
    return float(np.sum(ahead))


def moved(pricing: Pricing, size: float, operators: float) -> float:
    """Time of so many bytes, and of a share of the forward's operators."""
    kernels = operators * pricing.profile.forward_operators
    return float(memory_time(pricing, np.array([size]), kernels)[0])


def test_time_of_an_mlp_run_again() -> None:
    """Both products, SwiGLU's 6 f bytes and the norm's 4 h: two of three operators."""
    workload = job(LLAMA)
    layer, where = workload.kinds[0], mesh()
    ops = moved(workload, TOKENS * (6 * 14336 + 4 * 4096), 2 / 3)
    expected = products(workload, layer, where, "fc1", "fc2") + ops
    assert again(workload, layer, "mlp", where) == pytest.approx(expected, rel=1e-12)


def test_an_mlp_run_again_repeats_the_exchange_of_its_half() -> None:
    """tp 8 with sp: a gather and a scatter of the two of each that a layer has."""
    workload = job(LLAMA)
    layer, where = workload.kinds[0], mesh(tp=8, sp=1)
    ops = moved(workload, TOKENS / 8 * (6 * 14336 + 4 * 4096), 2 / 3)
    whole = tensor_exchange(Context.of(workload, where), layer, {})[0][0]
    expected = products(workload, layer, where, "fc1", "fc2") + ops + whole / 2
    assert whole > 0
    assert again(workload, layer, "mlp", where) == pytest.approx(expected, rel=1e-12)


def test_time_of_latents_projected_up_again() -> None:
    """Two products and the rotation of 2 a heads of d_v = 128: 4 B each."""
    workload = job(DEEPSEEK)
    layer, where = of_kind(workload, "routed"), mesh()
    ops = moved(workload, TOKENS * 4 * 2 * 128 * 128, 1 / 5)
    expected = products(workload, layer, where, "q_b", "kv_b") + ops
    found = again(workload, layer, "mla_up_proj", where)
    assert found == pytest.approx(expected, rel=1e-12)


def test_experts_run_again_dispatch_and_combine_again() -> None:
    """ep 8: all products of the half, three operators, one exchange each way."""
    workload = job(MIXTRAL)
    layer, where = workload.kinds[0], mesh(ep=8, dp=8, dp_shard=8)
    busiest = float(imbalance(workload, where)[0])
    sent = 4 * 4096 * (1 + 2)
    experts = busiest * 6 * 14336 * 2
    ops = moved(workload, TOKENS * (sent + experts), 3 / 5)
    names = ("router", "expert_fc1", "expert_fc2")
    dealt = float(expert_exchange(Context.of(workload, where), layer)[0])
    expected = products(workload, layer, where, *names) + ops + dealt
    assert dealt > 0
    found = again(workload, layer, "moe", where)
    assert found == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("name", ["mlp", "mla_up_proj", "moe", "layernorm+moe_act"])
def test_what_is_dropped_exists_again_in_its_half(name: str) -> None:
    """No more than all that is freed comes back, and nothing of the rest goes."""
    workload = job(DEEPSEEK)
    recipe = workload.recipe
    for layer in workload.kinds:
        kept, beside = (
            [
                measure(workload, layer, recipe.kind(k), mesh())[0]
                for k in ("none", name)
            ]
            for measure in (kept_bytes, transient_bytes)
        )
        assert kept[1] + beside[1] <= kept[0] + beside[0]
        assert beside[1] >= beside[0]


def test_the_backward_of_a_recomputed_mlp_holds_it_whole() -> None:
    """Llama's feed-forward half is the larger: all that it drops is on top of it."""
    workload = job(LLAMA)
    layer, recipe = workload.kinds[0], workload.recipe
    none, some = (
        transient_bytes(workload, layer, recipe.kind(kind), mesh())[0]
        for kind in ("none", "mlp")
    )
    assert some - none == freed(LLAMA, "mlp") * TOKENS


def test_a_combination_is_the_sum_of_its_modules() -> None:
    """Disjoint modules free, and run again, what each does alone."""
    workload = job(DEEPSEEK)
    layer, where = of_kind(workload, "routed"), mesh()
    parts = ("layernorm", "mla_up_proj", "moe_act")
    whole = "+".join(parts)
    alone = [again(workload, layer, part, where) for part in parts]
    together = again(workload, layer, whole, where)
    assert together == pytest.approx(sum(alone), rel=1e-12)
    freed_alone = [freed(DEEPSEEK, part, "routed") for part in parts]
    assert freed(DEEPSEEK, whole, "routed") == sum(freed_alone)


def test_kernels_launched_again_are_counted() -> None:
    """Of Llama's 4 products, its core and 3 operators: fc1, fc2, SwiGLU, a norm."""
    workload = job(LLAMA)
    kinds, layer = workload.recipe, workload.kinds[0]
    assert launch_share(layer, kinds.kind("mlp")) == 4 / 8
    assert launch_share(layer, kinds.kind("core_attn+mlp")) == 5 / 8
    assert launch_share(layer, kinds.kind("full")) == 1
    assert launch_share(layer, kinds.kind("selective")) == 0


def test_the_core_beside_other_modules_is_selective_recompute() -> None:
    """What `selective` adds to none, core_attn adds to mlp."""
    workload = job(LLAMA)
    layer, where = workload.kinds[0], mesh()
    alone = again(workload, layer, "selective", where)
    both = again(workload, layer, "core_attn+mlp", where)
    mlp = again(workload, layer, "mlp", where)
    assert both - mlp == pytest.approx(alone, rel=1e-12)


@pytest.mark.parametrize(
    "name",
    ["", "+", "mlp+mlp", "mlp+layernorm", "moe_act+moe", "core_attn", "mpl", "mlp+"],
)
def test_a_combination_has_one_spelling(name: str) -> None:
    """Own order, each module once, none inside another; core alone is selective."""
    workload = job(DEEPSEEK)
    assert combination(workload.recipe.modules, name) is None
    assert not workload.recipe.has_kind(name)
    assert not is_known(workload, name)


def test_every_spelling_is_listed_once() -> None:
    """2^4 of core, norms, up-projection, MLP, times 5 of experts; none, core less."""
    names = combinations_of(job(DEEPSEEK).recipe.modules)
    assert len(names) == len(set(names)) == 16 * 5 - 2


@pytest.mark.parametrize(
    ("model", "count"), [(LLAMA, 2), (MIXTRAL, 2 * 2 * 3 - 2), (DEEPSEEK, 78)]
)
def test_a_model_has_the_modules_that_change_it(model: str, count: int) -> None:
    """Llama: core and MLP. Mixtral: core, norm, and experts in three ways."""
    assert len(combinations(job(model))) == count


def test_delayed_scaling_recomputes_neither_norms_nor_the_experts_activation() -> None:
    workload = job(DEEPSEEK)
    profile = workload.profile.model_copy(update={"fp8_recipe": "delayed"})
    framework = replace(workload.framework, profile=profile)
    training = workload.training.model_copy(update={"precision": "fp8"})
    scaled = replace(workload, framework=framework, training=training)
    assert not is_known(scaled, "layernorm")
    assert not is_known(scaled, "moe_act+shared_experts")
    assert is_known(scaled, "mla_up_proj+shared_experts")


def test_an_older_stack_has_no_modules() -> None:
    workload = job(LLAMA)
    limits = replace(workload.framework.limits, recompute_modules=())
    older = replace(workload, framework=replace(workload.framework, limits=limits))
    assert combinations(older) == ()
    assert is_known(older, "full")
