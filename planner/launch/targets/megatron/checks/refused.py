"""Arguments that Megatron-LM's own checks refuse together.

References:
    Megatron-LM core_v0.16.1, megatron/training/arguments.py, validate_args;
    megatron/core/optimizer/optimizer_config.py;
    megatron/core/transformer/transformer_config.py, __post_init__.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from planner.errors import BadInputError
from planner.launch.targets.megatron.stages import counts_of

Given = Mapping[str, Any]
Rule = tuple[str, Callable[[Given], bool], str]
NARROW = ("exp_avg_dtype", "exp_avg_sq_dtype", "main_grads_dtype", "main_params_dtype")
"""Formats of what the optimizer keeps, fp32 unless it is precision-aware. [text]"""
WAYS = (
    "num_layers_per_virtual_pipeline_stage",
    "num_virtual_stages_per_pipeline_rank",
    "pipeline_model_parallel_layout",
)
"""Arguments that cut virtual stages. [text]"""
EACH, CHUNKS, TEXT = WAYS
ENDS = ("decoder_first_pipeline_num_layers", "decoder_last_pipeline_num_layers")
"""Arguments that give the first and last stage layers of their own. [text]"""
OVERLAP = "overlap_moe_expert_parallel_comm"


def refuse_contradictions(its: Given, file: str) -> None:
    """Refuse arguments that Megatron-LM's own checks refuse together.

    Raises:
        BadInputError: Two arguments contradict each other.
    """
    for name, wrong, allowed in RULES:
        if wrong(its):
            raise BadInputError(
                "is refused by Megatron-LM itself beside the other arguments",
                file=file,
                field="--" + name.replace("_", "-"),
                value=None if its.get(name) is True else its.get(name),
                allowed=allowed,
            )


def _degree(its: Given, axis: str) -> int:
    return max(its.get(f"{axis}_parallel_size") or 1, 1)


def _pp(its: Given) -> int:
    return _degree(its, "pipeline_model")


def _sizes(its: Given) -> list[int]:
    return its.get("hierarchical_context_parallel_sizes") or []


def _ends(its: Given) -> bool:
    return any(its.get(name) is not None for name in ENDS)


def _counted(its: Given) -> int:
    """Layers, with embedding and loss where they count as layers. [1]."""
    ends = ("embedding", "loss")
    counts = (bool(its.get(f"account_for_{end}_in_pipeline_split")) for end in ends)
    return (its.get("num_layers") or 0) + sum(counts)


def _unequal_ranks(its: Given) -> bool:
    """Tell if pipeline ranks that are to be alike cannot be."""
    free = not (its.get(TEXT) or _ends(its))
    return free and _counted(its) % _pp(its) > 0


def _middle(its: Given) -> tuple[int, int]:
    """Layers and ranks between a first and a last stage of their own. [1]."""
    ends = [its[name] for name in ENDS if its.get(name) is not None]
    return _counted(its) - sum(ends), _pp(its) - len(ends)


def _unequal_middle(its: Given) -> bool:
    layers, ranks = _middle(its)
    return _ends(its) and "num_layers" in its and ranks > 0 and layers % ranks > 0


def _ranks(its: Given) -> Iterator[int]:
    """Layers of each kind of rank, where no layout is written. [1]."""
    if its.get(TEXT) or "num_layers" not in its:
        return
    layers, ranks = _middle(its)
    yield from (its[name] for name in ENDS if its.get(name) is not None)
    if ranks > 0:
        yield layers // ranks


def _indivisible(name: str) -> Callable[[Given], bool]:
    """Tell if layers of a rank are no multiple of an argument."""
    return lambda its: any(count % (its.get(name) or 1) for count in _ranks(its))


def _chunks(its: Given) -> int:
    """Virtual stages of a rank. [1]."""
    if each := its.get(EACH):
        return _counted(its) // _pp(its) // int(each)
    return int(its.get(CHUNKS) or 1)


def _alone(name: str) -> Callable[[Given], bool]:
    """Tell if an argument cuts virtual stages of a single pipeline rank."""
    return lambda its: bool(its.get(name)) and _chunks(its) > 1 and _pp(its) == 1


def _cut(its: Given) -> bool:
    """Tell if the stages of a written layout are no multiple of the ranks."""
    text = its.get(TEXT)
    return bool(text) and len(counts_of(str(text), file="")) % _pp(its) > 0


def _shards(its: Given) -> bool:
    """Tell if an optimizer holds shards, which a gather of parameters needs."""
    switches = ("use_distributed_optimizer", "use_megatron_fsdp", "use_torch_fsdp2")
    return any(its.get(name) for name in switches)


def _mixed(its: Given) -> bool:
    return "a2a+p2p" in (its.get("cp_comm_type") or [])


def _odd_heads(its: Given) -> bool:
    width, heads = its.get("hidden_size"), its.get("num_attention_heads")
    return bool(width and heads and width % heads and not its.get("kv_channels"))


def _odd_length(its: Given) -> bool:
    cp = _degree(its, "context")
    return cp > 1 and (its.get("seq_length") or 0) % (2 * cp) > 0


def _narrow(name: str) -> Callable[[Given], bool]:
    return lambda its: (
        its.get(name, "fp32") != "fp32" and not its.get("use_precision_aware_optimizer")
    )


def _unplaced(its: Given) -> bool:
    """Tell if positions are turned off by the word that is no longer taken."""
    rope = its.get("position_embedding_type") == "rope"
    rotary = its.get("use_rotary_position_embeddings")
    return not (rope or rotary or its.get("add_position_embedding", True))


def _overlaps(wrong: Callable[[Given], bool]) -> Callable[[Given], bool]:
    """Tell if exchanges of experts overlap where Megatron-Core takes no overlap."""
    return lambda its: bool(its.get(OVERLAP)) and wrong(its)


def _sums_apart(its: Given) -> bool:
    summed = its.get("accumulate_allreduce_grads_in_fp32")
    return bool(summed) and its.get("main_grads_dtype", "fp32") != "fp32"


RULES: tuple[Rule, ...] = (
    (
        "micro_batch_size",
        lambda its: not its.get("micro_batch_size"),
        "a number, without which Megatron-LM starts no run",
    ),
    (
        OVERLAP,
        _overlaps(lambda its: _degree(its, "expert_model") == 1),
        "with ranks of experts",
    ),
    (
        OVERLAP,
        _overlaps(lambda its: _pp(its) > 1 and all(its.get(w) is None for w in WAYS)),
        "with virtual stages in a pipeline",
    ),
    (
        OVERLAP,
        _overlaps(lambda its: its.get("recompute_granularity") == "full"),
        "without recomputing of whole layers",
    ),
    *(
        (name, _narrow(name), "fp32, or --use-precision-aware-optimizer")
        for name in NARROW
    ),
    ("fp16", lambda its: bool(its.get("bf16") and its.get("fp16")), "--fp16 or --bf16"),
    ("fp4_format", lambda its: bool(its.get("fp4") and its.get("fp8")), "fp8 or fp4"),
    ("main_grads_dtype", _sums_apart, "fp32, as summed"),
    ("no_position_embedding", _unplaced, "--position-embedding-type none"),
    (
        "hierarchical_context_parallel_sizes",
        lambda its: (
            bool(_sizes(its)) and math.prod(_sizes(its)) != _degree(its, "context")
        ),
        "sizes whose product is --context-parallel-size",
    ),
    (
        "cp_comm_type",
        lambda its: _mixed(its) and not _sizes(its),
        "a2a+p2p with --hierarchical-context-parallel-sizes",
    ),
    (
        EACH,
        lambda its: sum(its.get(way) is not None for way in WAYS) > 1,
        "one way of cutting virtual stages",
    ),
    (TEXT, _cut, "stages that are a multiple of --pipeline-model-parallel-size"),
    (
        EACH,
        lambda its: its.get(EACH) is not None and _ends(its),
        "--num-virtual-stages-per-pipeline-rank",
    ),
    ("num_layers", _unequal_ranks, "a multiple of --pipeline-model-parallel-size"),
    ("num_layers", _unequal_middle, "layers that the middle stages share evenly"),
    (EACH, _indivisible(EACH), "a divisor of the layers of a pipeline rank"),
    (CHUNKS, _indivisible(CHUNKS), "a divisor of the layers of a pipeline rank"),
    *(
        (name, _alone(name), "--pipeline-model-parallel-size of 2 or more")
        for name in (EACH, CHUNKS)
    ),
    (
        "overlap_param_gather",
        lambda its: (
            bool(its.get("overlap_param_gather"))
            and not (_shards(its) or its.get("optimizer") == "dist_muon")
        ),
        "with --use-distributed-optimizer",
    ),
    (
        "overlap_param_gather",
        lambda its: (
            bool(its.get("overlap_param_gather")) and not its.get("overlap_grad_reduce")
        ),
        "with --overlap-grad-reduce",
    ),
    (
        "fp8_param_gather",
        lambda its: bool(its.get("fp8_param_gather")) and not _shards(its),
        "with --use-distributed-optimizer",
    ),
    ("hidden_size", _odd_heads, "a multiple of --num-attention-heads"),
    ("seq_length", _odd_length, "a multiple of 2 x --context-parallel-size"),
    (
        "max_position_embeddings",
        lambda its: (
            0 < (its.get("max_position_embeddings") or 0) < (its.get("seq_length") or 0)
        ),
        "--seq-length or more",
    ),
    (
        "recompute_method",
        lambda its: (
            its.get("recompute_granularity") == "selective"
            and its.get("recompute_method") is not None
        ),
        "none with selective recomputing",
    ),
    (
        "tp_comm_overlap",
        lambda its: (
            bool(its.get("tp_comm_overlap"))
            and not (its.get("sequence_parallel") and _degree(its, "tensor_model") > 1)
        ),
        "with --sequence-parallel and a tensor degree above 1",
    ),
    (
        "expert_model_parallel_size",
        lambda its: (
            (its.get("num_experts") or 0) % _degree(its, "expert_model") > 0
            or (_degree(its, "expert_model") > 1 and not its.get("num_experts"))
        ),
        "1, or a divisor of --num-experts",
    ),
    (
        "optimizer_cpu_offload",
        lambda its: (
            bool(its.get("optimizer_cpu_offload"))
            and not its.get("use_precision_aware_optimizer")
        ),
        "with --use-precision-aware-optimizer",
    ),
    (
        "group_query_attention",
        lambda its: bool(
            its.get("multi_latent_attention") and its.get("group_query_attention")
        ),
        "no groups with --multi-latent-attention",
    ),
)
"""(argument, test that is true where it is wrong, what is allowed), in order."""
