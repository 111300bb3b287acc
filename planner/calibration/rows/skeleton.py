"""A measured row as far as a training log fills it; the user states the rest."""

from collections.abc import Callable, Mapping

from planner.calibration.rows.logs import Log
from planner.hardware.reading.escape import yaml_text
from planner.hardware.reading.yaml_text import parse_yaml

Block = dict[str, object]

_ASKED: dict[str, tuple[str, ...]] = {
    "model": ("name", "layers", "hidden", "heads", "kv_heads", "ffn_hidden", "vocab"),
    "hardware": ("gpu", "gpus", "gpus_per_node", "per_gpu_inter_gbps"),
    "job": ("seq_len", "global_batch", "precision", "optimizer", "framework"),
    "layout": ("tp", "sp", "pp", "cp", "dp", "micro_batch", "zero_stage", "recompute"),
}
"""Fields of each block that a row cannot be priced without, in order of listing."""
_PLAIN: dict[str, tuple[str, str]] = {
    "num_layers": ("model", "layers"),
    "hidden_size": ("model", "hidden"),
    "num_attention_heads": ("model", "heads"),
    "ffn_hidden_size": ("model", "ffn_hidden"),
    "padded_vocab_size": ("model", "vocab"),
    "kv_channels": ("model", "head_dim"),
    "swiglu": ("model", "gated_mlp"),
    "world_size": ("hardware", "gpus"),
    "seq_length": ("job", "seq_len"),
    "global_batch_size": ("job", "global_batch"),
    "optimizer": ("job", "optimizer"),
    "transformer_impl": ("job", "transformer_impl"),
    "tensor_model_parallel_size": ("layout", "tp"),
    "sequence_parallel": ("layout", "sp"),
    "pipeline_model_parallel_size": ("layout", "pp"),
    "virtual_pipeline_model_parallel_size": ("layout", "vpp"),
    "context_parallel_size": ("layout", "cp"),
    "expert_model_parallel_size": ("layout", "ep"),
    "data_parallel_size": ("layout", "dp"),
    "micro_batch_size": ("layout", "micro_batch"),
}
"""Arguments of Megatron-LM that a row takes as they are: to block and field."""


def skeleton_text(log: Log, name: str) -> str:
    """A row in the format of measured rows, its unknown fields null."""
    head = (
        f"From {log.readings} readings of a log of {log.framework}.",
        "State what is null, then: planner validate FILE",
    )
    return yaml_text([skeleton(log, name)], head, short_in_one_line=True).rstrip()


def skeleton(log: Log, name: str) -> Block:
    """The fields of a row."""
    blocks: dict[str, Block] = {b: dict.fromkeys(asked) for b, asked in _ASKED.items()}
    blocks["job"]["framework"] = log.framework
    for argument, (block, key) in _PLAIN.items():
        if (value := _value(log.arguments, argument)) is not None:
            blocks[block][key] = value
    if log.arguments:
        for (block, key), read in _DERIVED.items():
            blocks[block][key] = read(log.arguments)
    return {
        "id": name,
        "source": {"title": f"training log {name}"},
        **blocks,
        "measured": measured_block(log),
        "inferred": [],
        "check": "ok",
    }


def measured_block(log: Log) -> Block:
    """Measured quantities of a log, in the units of a row."""
    known: Block = {
        "step_time_s": log.step_s,
        "tokens_per_s_per_gpu": log.tokens_per_s_per_gpu,
        "samples_per_s": log.samples_per_s,
        "peak_memory_gb": log.memory_gib,
    }
    kind = {"memory_kind": f"GiB, {log.memory_counter}"} if log.memory_gib else {}
    stated = {
        key: round(value, 6) if isinstance(value, float) else value
        for key, value in known.items()
        if value is not None
    }
    return stated | kind


def _value(arguments: Mapping[str, str], name: str) -> object:
    """An argument as a number, a truth or a text; None for Python's None."""
    text = arguments.get(name, "None")
    return None if text == "None" else parse_yaml(text)


def _kv_heads(arguments: Mapping[str, str]) -> object:
    grouped = _value(arguments, "group_query_attention")
    return _value(arguments, "num_query_groups" if grouped else "num_attention_heads")


def _precision(arguments: Mapping[str, str]) -> object:
    wide = "bf16" if _value(arguments, "bf16") else "fp32"
    narrow = "fp16" if _value(arguments, "fp16") else wide
    return "fp8" if _value(arguments, "fp8") else narrow


def _zero_stage(arguments: Mapping[str, str]) -> object:
    return 1 if _value(arguments, "use_distributed_optimizer") else 0


def _recompute(arguments: Mapping[str, str]) -> object:
    return _value(arguments, "recompute_granularity") or "none"


_DERIVED: dict[tuple[str, str], Callable[[Mapping[str, str]], object]] = {
    ("model", "kv_heads"): _kv_heads,
    ("job", "precision"): _precision,
    ("layout", "zero_stage"): _zero_stage,
    ("layout", "recompute"): _recompute,
}
"""Fields that several arguments of Megatron-LM decide."""
