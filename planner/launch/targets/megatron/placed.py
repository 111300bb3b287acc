"""Layout that Megatron's arguments fix."""

from collections.abc import Mapping
from typing import Any

from planner.errors import BadInputError
from planner.frameworks.megatron.limits import CP_TYPES
from planner.launch.copies import Copies
from planner.launch.targets.megatron.recompute import MODULES
from planner.launch.targets.megatron.stages import counts_of, plain_stages
from planner.specs.layouts.context import MIXED, mixed_kind
from planner.specs.layouts.layout import even_layers

Given = Mapping[str, Any]
KINDS = {theirs: ours for ours, theirs in CP_TYPES.items()}
"""Kind of context parallelism by --cp-comm-type. [text]"""
ORDER = ("core_attn", "layernorm", "mla_up_proj", "mlp", "moe_act", "shared_experts")
"""Modules in the order in which a combination names them; moe comes last. [text]"""
SHARDING = {"no_shard": 0, "optim": 1, "optim_grads": 2, "optim_grads_params": 3}
"""ZeRO stage by --data-parallel-sharding-strategy of Megatron-FSDP. [1]"""
COUNTS = frozenset(
    {
        "num_layers",
        "tensor_model_parallel_size",
        "pipeline_model_parallel_size",
        "context_parallel_size",
        "expert_model_parallel_size",
        "expert_tensor_parallel_size",
        "num_virtual_stages_per_pipeline_rank",
        "num_layers_per_virtual_pipeline_stage",
        "num_distributed_optimizer_instances",
        "recompute_num_layers",
    }
)
"""Arguments that count layers, stages or ranks. [text]"""
MOST = 1 << 16
"""Most layers, stages or ranks of an axis. [1]"""
USED = frozenset(
    {
        "tensor_model_parallel_size",
        "sequence_parallel",
        "pipeline_model_parallel_size",
        "num_virtual_stages_per_pipeline_rank",
        "num_layers_per_virtual_pipeline_stage",
        "pipeline_model_parallel_layout",
        "decoder_first_pipeline_num_layers",
        "decoder_last_pipeline_num_layers",
        "account_for_embedding_in_pipeline_split",
        "account_for_loss_in_pipeline_split",
        "context_parallel_size",
        "cp_comm_type",
        "hierarchical_context_parallel_sizes",
        "expert_model_parallel_size",
        "expert_tensor_parallel_size",
        "use_distributed_optimizer",
        "data_parallel_sharding_strategy",
        "num_distributed_optimizer_instances",
        "use_tp_pp_dp_mapping",
        "micro_batch_size",
        "recompute_granularity",
        "recompute_method",
        "recompute_num_layers",
        "recompute_modules",
        "recompute_activations",
        "optimizer_cpu_offload",
        "optimizer_offload_fraction",
        "cpu_offloading_num_layers",
        "grad_reduce_in_bf16",
        "fp8_param_gather",
    }
)
"""Arguments that a layout is read from. [text]"""


def placed(its: Given, file: str) -> dict[str, Any]:
    """Fields of a layout; fields that the arguments leave open stay open."""
    _bounded(its, file)
    tp = its.get("tensor_model_parallel_size", 1)
    found: dict[str, Any] = {
        "tp": tp,
        # Megatron itself turns sequence parallelism off without tensor parallelism.
        "sp": bool(its.get("sequence_parallel")) and tp > 1,
        "pp": its.get("pipeline_model_parallel_size", 1),
        "cp": its.get("context_parallel_size", 1),
        "micro_batch": its.get("micro_batch_size", 1),
        "zero_stage": _zero_stage(its),
        "order": "tp-cp-ep-pp-dp"
        if its.get("use_tp_pp_dp_mapping")
        else "tp-cp-ep-dp-pp",
    }
    found |= _experts(its, tp) | _context(its, found["cp"])
    found |= _stages(its, found["pp"], file) | _offload(its) | _formats(its)
    return found


def _bounded(its: Given, file: str) -> None:
    """Refuse a count below 1 or above `MOST`."""
    for name in sorted(COUNTS & its.keys()):
        if its[name] is not None and not 1 <= its[name] <= MOST:
            option = "--" + name.replace("_", "-")
            raise BadInputError(
                "is no such count",
                file=file,
                field=option,
                value=its[name],
                allowed=f"1 to {MOST:,}",
            )


def _zero_stage(its: Given) -> int:
    if its.get("use_torch_fsdp2"):
        return 3
    if its.get("use_megatron_fsdp"):
        strategy = its.get("data_parallel_sharding_strategy", "no_shard")
        return SHARDING.get(strategy, 0)
    return int(bool(its.get("use_distributed_optimizer")))


def copies_of(its: Given, spelled: str) -> Copies | None:
    """Copies of the optimizer states, where there are several.

    Returns:
        The copies; None for one. [-]
    """
    count = its.get("num_distributed_optimizer_instances", 1)
    return None if count == 1 or not _zero_stage(its) else Copies(spelled, count, count)


def _experts(its: Given, tp: int) -> dict[str, Any]:
    """Expert degrees; without an expert tensor degree, etp is the tensor degree."""
    if not its.get("num_experts"):
        return {}
    return {
        "ep": its.get("expert_model_parallel_size", 1),
        "etp": its.get("expert_tensor_parallel_size") or tp,
    }


def _context(its: Given, cp: int) -> dict[str, Any]:
    if cp == 1:
        return {}
    given = (its.get("cp_comm_type") or ["p2p"])[0]
    kind = KINDS.get(given.replace("allgather", "all_gather"), "ulysses")
    if kind == MIXED:
        inner = (its.get("hierarchical_context_parallel_sizes") or [1])[0]
        kind = mixed_kind(inner)
    return {"cp_kind": kind}


def recompute_of(its: Given) -> str:
    """The recompute kind of all layers; `full:N` for the first N of every stage."""
    granularity = its.get("recompute_granularity")
    if its.get("recompute_activations"):
        granularity = "selective"
    if granularity == "selective":
        modules = its.get("recompute_modules") or ["core_attn"]
        rank = {name: at for at, name in enumerate((*ORDER, "moe"))}
        named = sorted(modules, key=lambda name: rank.get(name, len(MODULES)))
        return "selective" if named == ["core_attn"] else "+".join(named)
    if granularity != "full":
        return "none"
    if its.get("recompute_method") == "block":
        return f"full:{its.get('recompute_num_layers', 1)}"
    return "full"


def _stages(its: Given, pp: int, file: str) -> dict[str, Any]:
    vpp, counts = stage_counts(its, pp, file)
    found: dict[str, Any] = {"vpp": vpp}
    found["schedule"] = "interleaved" if vpp > 1 else "1f1b"
    kind = recompute_of(its)
    layers = its.get("num_layers")
    if counts is None and kind.startswith("full:") and layers:
        counts = even_layers(layers, pp * vpp)
    if counts is None:
        return found | {"recompute": kind, "stages": "even"}
    stages = plain_stages(counts, kind)
    return found | {
        "stages": [s.model_dump(mode="json", by_alias=True) for s in stages]
    }


def stage_counts(its: Given, pp: int, file: str) -> tuple[int, tuple[int, ...] | None]:
    """Chunks per rank, and layers of every virtual stage where they are uneven.

    Returns:
        (chunks, layers in model order or None where all stages are alike). [-]

    Raises:
        BadInputError: The first and last stage take more layers than the model has.
    """
    text = its.get("pipeline_model_parallel_layout")
    if text:
        counts = counts_of(str(text), file=file)
        return max(len(counts) // pp, 1), counts
    layers = its.get("num_layers", 0)
    each = its.get("num_layers_per_virtual_pipeline_stage")
    vpp = its.get("num_virtual_stages_per_pipeline_rank") or 1
    if each and layers:
        vpp = max(layers // pp // each, 1)
    ranks = _rank_counts(its, layers, pp)
    if ranks is None:
        return vpp, None
    counts = _chunks(ranks, vpp, its)
    if min(counts) < 0:
        raise BadInputError(
            "the first and last stage take more layers than there are",
            file=file,
            field="--num-layers",
            value=layers,
        )
    return vpp, counts


def _rank_counts(its: Given, layers: int, pp: int) -> list[int] | None:
    """Layers of every rank where stages are uneven, embedding and loss counted.

    None where all stages are alike.
    """
    first, last = (
        its.get(f"decoder_{end}_pipeline_num_layers") for end in ("first", "last")
    )
    if pp == 1 or not layers:
        return None
    if first or last:
        ends = 2 - [first, last].count(None)
        middle = (layers - (first or 0) - (last or 0)) // max(pp - ends, 1)
        head, tail = [first] if first else [], [last] if last else []
        return [*head, *[middle] * (pp - ends), *tail]
    extra = _counted_ends(its)
    return [(layers + sum(extra)) // pp] * pp if any(extra) else None


def _counted_ends(its: Given) -> tuple[int, int]:
    """Layers that embedding and loss count for when stages are cut, 0 or 1. [1]."""
    return (
        int(bool(its.get("account_for_embedding_in_pipeline_split"))),
        int(bool(its.get("account_for_loss_in_pipeline_split"))),
    )


def _chunks(ranks: list[int], vpp: int, its: Given) -> tuple[int, ...]:
    """Layers by virtual stage: chunk c of rank r is stage ``c pp + r``. [1]."""
    counts = [count // vpp for _ in range(vpp) for count in ranks]
    embedding, loss = _counted_ends(its)
    counts[0] -= embedding
    counts[-1] -= loss
    return tuple(counts)


def _offload(its: Given) -> dict[str, Any]:
    found: dict[str, float] = {}
    if its.get("optimizer_cpu_offload"):
        found["optimizer"] = its.get("optimizer_offload_fraction", 1.0)
    layers = its.get("cpu_offloading_num_layers")
    if layers and its.get("num_layers"):
        found["activations"] = layers / its["num_layers"]
    return {"offload": found} if found else {}


def _formats(its: Given) -> dict[str, Any]:
    found: dict[str, str] = {}
    if its.get("grad_reduce_in_bf16") or its.get("main_grads_dtype") == "bf16":
        found["gradients"] = "bf16"
    if its.get("fp8_param_gather"):
        found["parameters"] = "fp8"
    return {"comm_dtype": found} if found else {}
