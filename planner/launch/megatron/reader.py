"""Arguments of Megatron-LM back into a layout, a training block and a model."""

from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from planner.errors import BadInputError
from planner.launch.brief import Reading
from planner.launch.megatron.known import VERSIONS, declared, given
from planner.launch.megatron.stages import counts_of, plain_stages
from planner.launch.shell import Script

Given = Mapping[str, Any]
KINDS = {"p2p": "ring", "all_gather": "all-gather", "allgather": "all-gather"}
"""Kind of context parallelism by --cp-comm-type; a2a is Ulysses. [text]"""
FP8 = {"mxfp8": "mxfp8", "blockwise": "fp8", "tensorwise": "fp8", "delayed": "fp8"}
STACK = {"blockwise": "blockwise", "tensorwise": "current", "delayed": "delayed"}
OURS = frozenset(
    {
        "tensor_model_parallel_size",
        "sequence_parallel",
        "pipeline_model_parallel_size",
        "num_virtual_stages_per_pipeline_rank",
        "num_layers_per_virtual_pipeline_stage",
        "pipeline_model_parallel_layout",
        "decoder_first_pipeline_num_layers",
        "decoder_last_pipeline_num_layers",
        "context_parallel_size",
        "cp_comm_type",
        "hierarchical_context_parallel_sizes",
        "expert_model_parallel_size",
        "expert_tensor_parallel_size",
        "use_distributed_optimizer",
        "num_distributed_optimizer_instances",
        "use_tp_pp_dp_mapping",
        "micro_batch_size",
        "global_batch_size",
        "seq_length",
        "recompute_granularity",
        "recompute_method",
        "recompute_num_layers",
        "recompute_modules",
        "optimizer_cpu_offload",
        "optimizer_offload_fraction",
        "cpu_offloading_num_layers",
        "overlap_grad_reduce",
        "overlap_param_gather",
        "fp16",
        "bf16",
        "fp8",
        "fp8_recipe",
        "fp8_param_gather",
        "grad_reduce_in_bf16",
        "optimizer",
        "tp_comm_overlap",
    }
)
"""Arguments that a layout, a training block or a stack is read from. [text]"""
LAYERS = {
    "num_layers": "num_hidden_layers",
    "hidden_size": "hidden_size",
    "ffn_hidden_size": "intermediate_size",
    "num_attention_heads": "num_attention_heads",
    "num_query_groups": "num_key_value_heads",
    "kv_channels": "head_dim",
    "max_position_embeddings": "max_position_embeddings",
    "num_experts": "num_local_experts",
    "moe_router_topk": "num_experts_per_tok",
    "moe_ffn_hidden_size": "moe_intermediate_size",
    "q_lora_rank": "q_lora_rank",
    "kv_lora_rank": "kv_lora_rank",
    "qk_head_dim": "qk_nope_head_dim",
    "qk_pos_emb_head_dim": "qk_rope_head_dim",
    "v_head_dim": "v_head_dim",
}
"""Hugging Face field by argument of Megatron. [text]"""


def reads(files: Mapping[str, str]) -> bool:
    """Whether a file looks like arguments of Megatron-LM.

    Args:
        files: Text by name. [text]

    Returns:
        True where one names a tensor or pipeline degree as Megatron does.
    """
    marks = ("--tensor-model-parallel-size", "--micro-batch-size", "--num-layers")
    return any(sum(mark in text for mark in marks) > 1 for text in files.values())


def read(files: Mapping[str, str]) -> Reading:
    """Understand a script, an argument list or a model_config.yaml.

    Args:
        files: Text by name; other files are passed over. [text]

    Returns:
        What they say. [-]

    Raises:
        BadInputError: No file has arguments of Megatron, or one has a wrong value.
    """
    name, words = _words(files)
    version, its = _given(name, words)
    unknown = [w for w in words if w.startswith("--") and not _known(w, version)]
    ours = OURS | set(LAYERS)
    return Reading(
        target="megatron",
        framework="megatron",
        layout=_layout(its, name),
        training=_training(its),
        model=_model(its),
        stack=_stack(its),
        ignored=tuple(
            f"--{n.replace('_', '-')} {v}" for n, v in its.items() if n not in ours
        ),
        unknown=tuple(dict.fromkeys(unknown)),
    )


def _words(files: Mapping[str, str]) -> tuple[str, list[str]]:
    """The file that names most arguments, as words; a script before its YAML twin."""
    best: tuple[str, list[str]] = ("", [])
    scripts = sorted(files, key=lambda n: (n.endswith((".yaml", ".yml")), n))
    for name in scripts:
        text = files[name]
        words = _yaml_words(text) if name.endswith((".yaml", ".yml")) else None
        words = Script(text).words() if words is None else words
        if sum(map(_is_option, words)) > sum(map(_is_option, best[1])):
            best = (name, words)
    if not best[1]:
        raise BadInputError(
            "has no arguments of Megatron-LM",
            file=", ".join(files),
            allowed="a script, or YAML with MODEL_ARGS",
        )
    return best


def _is_option(word: str) -> bool:
    return any(
        word.split("=", maxsplit=1)[0] in declared(version) for version in VERSIONS
    )


def _known(word: str, version: str) -> bool:
    return word.split("=", maxsplit=1)[0] in declared(version)


def _yaml_words(text: str) -> list[str] | None:
    """MODEL_ARGS of a model_config.yaml as words."""
    try:
        its = yaml.safe_load(text)
    except yaml.YAMLError:
        return None
    arguments = its.get("MODEL_ARGS") if isinstance(its, dict) else None
    if not isinstance(arguments, dict):
        return None
    words: list[str] = []
    for option, value in arguments.items():
        if value is False:
            continue
        values = value if isinstance(value, list) else [value]
        words += [str(option), *(str(v) for v in values if value is not True)]
    return words


def _given(name: str, words: Sequence[str]) -> tuple[str, dict[str, Any]]:
    """Values under the release that knows most of the options."""
    counts = {
        v: sum(word.split("=")[0] in declared(v) for word in words) for v in VERSIONS
    }
    version = max(VERSIONS, key=lambda v: counts[v])
    usable = [
        word for word in words if not word.startswith("--") or _known(word, version)
    ]
    try:
        return version, given(usable, version)
    except ValueError as error:
        raise BadInputError(
            f"is not what Megatron-LM {version} accepts: {error}", file=name
        ) from error


def _layout(its: Given, file: str) -> dict[str, Any]:
    """Fields of a layout; those that the arguments leave open stay open."""
    found: dict[str, Any] = {
        "tp": its.get("tensor_model_parallel_size", 1),
        "pp": its.get("pipeline_model_parallel_size", 1),
        "cp": its.get("context_parallel_size", 1),
        "micro_batch": its.get("micro_batch_size", 1),
        "zero_stage": int(its.get("use_distributed_optimizer", False)),
    }
    # Megatron itself turns sequence parallelism off without tensor parallelism.
    found["sp"] = bool(its.get("sequence_parallel")) and found["tp"] > 1
    found |= _experts(its, found["tp"]) | _context(its, found["cp"])
    if its.get("use_tp_pp_dp_mapping"):
        found["order"] = "tp-cp-ep-pp-dp"
    else:
        found["order"] = "tp-cp-ep-dp-pp"
    return found | _stages(its, found["pp"], file) | _offload(its)


def _experts(its: Given, tp: int) -> dict[str, Any]:
    """Experts take the tensor degree unless they are given one of their own."""
    if not its.get("num_experts"):
        return {}
    return {
        "ep": its.get("expert_model_parallel_size", 1),
        "etp": its.get("expert_tensor_parallel_size") or tp,
    }


def _context(its: Given, cp: int) -> dict[str, Any]:
    if cp == 1:
        return {}
    kind = (its.get("cp_comm_type") or ["p2p"])[0]
    if kind == "a2a+p2p":
        inner = (its.get("hierarchical_context_parallel_sizes") or [1])[0]
        return {"cp_kind": f"ulysses{inner}+ring"}
    return {"cp_kind": KINDS.get(kind, "ulysses")}


def _recompute(its: Given) -> str:
    granularity = its.get("recompute_granularity")
    if granularity == "selective":
        modules = its.get("recompute_modules") or ["core_attn"]
        return "selective" if modules == ["core_attn"] else "+".join(modules)
    if granularity != "full":
        return "none"
    if its.get("recompute_method") == "block":
        return f"full:{its.get('recompute_num_layers', 1)}"
    return "full"


def _counts(its: Given, pp: int, file: str) -> tuple[int, tuple[int, ...] | None]:
    """Chunks per rank, and layers of every virtual stage where they are uneven."""
    text = its.get("pipeline_model_parallel_layout")
    if text:
        counts = counts_of(str(text), file=file)
        return max(len(counts) // pp, 1), counts
    layers = its.get("num_layers", 0)
    each = its.get("num_layers_per_virtual_pipeline_stage")
    vpp = its.get("num_virtual_stages_per_pipeline_rank") or 1
    if each and layers:
        vpp = max(layers // pp // each, 1)
    first, last = (
        its.get(f"decoder_{e}_pipeline_num_layers") for e in ("first", "last")
    )
    if (first or last) and pp > 1 and vpp == 1:
        ends = (first is not None) + (last is not None)
        middle = (layers - (first or 0) - (last or 0)) // max(pp - ends, 1)
        inner = [middle] * (pp - ends)
        head, tail = [first] if first else [], [last] if last else []
        return vpp, (*head, *inner, *tail)
    return vpp, None


def _stages(its: Given, pp: int, file: str) -> dict[str, Any]:
    vpp, counts = _counts(its, pp, file)
    found: dict[str, Any] = {"vpp": vpp}
    found["schedule"] = "interleaved" if vpp > 1 else "1f1b"
    kind = _recompute(its)
    if counts is None:
        return found | {"recompute": kind, "stages": "even"}
    stages = plain_stages(counts, kind)
    return found | {
        "stages": [s.model_dump(mode="json", by_alias=True) for s in stages]
    }


def _offload(its: Given) -> dict[str, Any]:
    found: dict[str, float] = {}
    if its.get("optimizer_cpu_offload"):
        found["optimizer"] = its.get("optimizer_offload_fraction", 1.0)
    layers = its.get("cpu_offloading_num_layers")
    if layers and its.get("num_layers"):
        found["activations"] = layers / its["num_layers"]
    return {"offload": found} if found else {}


def _training(its: Given) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if its.get("seq_length"):
        found["seq_len"] = its["seq_length"]
    if its.get("global_batch_size"):
        found["global_batch"] = its["global_batch_size"]
    precision = "fp16" if its.get("fp16") else "bf16"
    if its.get("fp8"):
        precision = FP8.get(its.get("fp8_recipe", "delayed"), "fp8")
    found["precision"] = precision
    names = {"adam": "adamw", "sgd": "sgd-momentum", "dist_muon": "muon"}
    name = its.get("optimizer", "adam")
    return found | {"optimizer": names.get(name, name)}


def _stack(its: Given) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if its.get("use_distributed_optimizer"):
        found["overlap_grad_reduce"] = bool(its.get("overlap_grad_reduce"))
        found["overlap_param_gather"] = bool(its.get("overlap_param_gather"))
    if its.get("fp8") and its.get("fp8_recipe") in STACK:
        found["fp8_recipe"] = STACK[its["fp8_recipe"]]
    if its.get("tp_comm_overlap"):
        found["tp_overlap"] = True
    return found


def _model(its: Given) -> dict[str, Any]:
    """A Hugging Face config of the same layers; empty without their sizes."""
    if not {"num_layers", "hidden_size", "num_attention_heads"} <= its.keys():
        return {}
    found = {ours: its[theirs] for theirs, ours in LAYERS.items() if its.get(theirs)}
    found.setdefault("num_key_value_heads", found["num_attention_heads"])
    found.setdefault("intermediate_size", 4 * found["hidden_size"])
    if its.get("vocab_size"):
        found["vocab_size"] = its["vocab_size"]
    found["tie_word_embeddings"] = not its.get("untie_embeddings_and_output_weights")
    family = _family(its)
    return {"name": "imported", "model_type": family, **found} if family else {}


def _family(its: Given) -> str:
    """The family whose layers these are; empty where none is known to be."""
    gated, rms = its.get("swiglu"), its.get("normalization") == "RMSNorm"
    if its.get("multi_latent_attention") or not (gated and rms):
        return ""
    return "mixtral" if its.get("num_experts") else "llama"
