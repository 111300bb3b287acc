"""Derives the fixed words of a row from its raw text, where it does not give them.

Each rule is a pattern on lower-case text; the first that matches decides. Text that
no rule knows becomes `unknown`, which is priced under the framework's default. Only a
memory unit or counter that cannot be read is refused: a guess there would be scored
as a prediction error.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from planner.errors import BadInputError

GIB_PER_GB = 1e9 / 2**30
Fields = Mapping[str, Any]
Rules = tuple[tuple[str, str], ...]

COUNTERS: Rules = (
    (r"nvidia-smi|rocm-smi|\bsmi\b|\bdevice\b|\bnvml\b", "device"),
    (r"reserved|\bcached\b", "reserved"),
    (r"\bactive\b", "active"),
    (r"allocat|max_memory|mem_alloc", "allocated"),
    (r"unknown|not stated|unclear", "unknown"),
    (r"^\W*(peak|max|gpu|memory|usage|per|in|\W)*(gib|gb|mib|mb)?\W*$", "unknown"),
)
RANKS: Rules = (
    (r"last (pipeline )?(rank|stage)", "last"),
    (r"first (pipeline )?(rank|stage)|rank 0|rank zero", "first"),
    (r"max|peak over|worst|all (ranks|gpus)", "max"),
)
SHARDING: Rules = (
    (r"megatron.{0,12}fsdp", "megatron-fsdp"),
    (r"hsdp|hybrid", "hsdp"),
    (r"fsdp ?2\b|fully_shard", "fsdp2"),
    (r"fsdp|full_shard|fully sharded", "fsdp"),
    (r"zero[ -_]?3|stage ?3", "zero3"),
    (r"zero[ -_]?2|stage ?2", "zero2"),
    (r"distributed[ -]optimizer|dist[ -]?opt", "distributed-optimizer"),
    (r"zero[ -_]?1|stage ?1", "zero1"),
    (r"ddp|data[ -]parallel|replicat", "ddp"),
    (r"none|^no\b", "none"),
)
RECOMPUTE: Rules = (
    (r"every (second|third|fourth|\d+(st|nd|rd|th)) layer", "full"),
    (r"^(none|no|off|false)\b", "none"),
    (r"selective|per-op|op-level|sdpa|core[ _]att|fine[- ]grained", "selective"),
    (r"minimal|save[ _-](dot|out|qkv|attn)", "unknown"),
    (r"full|uniform|block|every layer|\btrue\b|\byes\b|\bon\b", "full"),
    (r"none|\bno\b|\boff\b|without|false", "none"),
    (r"checkpoint|\bac\b|unsloth|remat|layers", "full"),
)
MODULES: Rules = (
    (r"save qkv out", "all-but-qkv-and-output"),
    (r"save qkv", "all-but-qkv"),
    (r"save dot (only|with no batch)", "all-but-products"),
    (r"mla|up proj", "mla_up_proj"),
    (r"norm", "layernorm"),
    (r"shared", "shared_experts"),
    (r"moe act|swiglu|expert act|activation", "moe_act"),
    (r"core|attention|attn|sdpa", "core_attn"),
    (r"mlp|ffn", "mlp"),
    (r"moe|expert", "moe"),
)
OPTIMIZERS: Rules = (
    (r"muon", "muon"),
    (r"galore", "galore"),
    (r"\bapollo\b", "apollo"),
    (r"lamb\b", "lamb"),
    (r"adafactor", "adafactor"),
    (r"\bsgd|\blomo\b", "sgd"),
)
FABRICS: Rules = (
    (r"none needed|one nvlink domain|^none$", "none"),
    (r"infiniband.*(roce|ethernet)|roce.*infiniband", "infiniband-or-roce"),
    (r"omni[ -]?path|\bopa\b", "omni-path"),
    (r"slingshot", "slingshot"),
    (r"tcpxo", "tcpxo"),
    (r"tcpx", "tcpx"),
    (r"\befa\b|elastic fabric", "efa"),
    (r"roce", "roce"),
    (r"infiniband|\bib\b|\bhdr\b|\bndr\b|\bedr\b|quantum", "infiniband"),
    (r"ethernet|\btcp\b|\bgbe\b", "ethernet"),
)
_ORDINALS = {"second": 2, "third": 3, "fourth": 4}


def normalised(row: Fields) -> dict[str, Any]:
    """Fixed words of a row: those it gives, then those its text implies.

    Raises:
        BadInputError: The unit or the counter of its memory cannot be read.
    """
    given = dict(row.get("normalised") or {})
    rules: dict[str, Callable[[Fields], dict[str, Any] | str | None]] = {
        "memory": _memory,
        "recompute": _recompute,
        "sharding": _sharding,
        "optimizer": _optimizer,
        "schedule": _schedule,
        "offload": _offload,
        "pipeline": _pipeline,
        "fabric": _fabric,
    }
    for name, rule in rules.items():
        vague = given.get(name) in (None, {}, "unknown")
        if vague and (derived := rule(row)) is not None:
            given[name] = derived
    return given


def _first(rules: Rules, text: str, default: str = "") -> str:
    return next((word for pattern, word in rules if re.search(pattern, text)), default)


def _text(row: Fields, block: str, field: str) -> str:
    value = (row.get(block) or {}).get(field)
    return "" if value is None else str(value).lower()


def _memory(row: Fields) -> dict[str, Any] | None:
    """Peak in GiB; `GB` alone is read as GiB, as PyTorch and nvidia-smi print it."""
    peak = (row.get("measured") or {}).get("peak_memory_gb")
    if peak is None:
        return None
    kind = _text(row, "measured", "memory_kind")
    counter = _first(COUNTERS, kind)
    if kind and not counter:
        raise BadInputError(
            "no known counter",
            field="measured.memory_kind",
            value=kind,
            allowed="allocated, active, reserved, nvidia-smi or unknown",
        )
    gib, certain = _in_gib(peak, kind)
    ranks = _first(RANKS, kind, "unknown")
    return {
        "gib": gib,
        "counter": counter or "unknown",
        "ranks": ranks,
        "unit_certain": certain,
        "rounded": "round" in kind,
    }


def _in_gib(peak: Any, kind: str) -> tuple[float, bool]:
    """A peak in GiB, and True where the text tells the unit of the peak."""
    if isinstance(peak, bool) or not isinstance(peak, int | float) or peak <= 0:
        raise BadInputError(
            "no amount", field="measured.peak_memory_gb", value=peak, allowed="> 0"
        )
    if re.search(r"decimal|1e9|\bgb \(1", kind):
        return float(peak) * GIB_PER_GB, True
    known = bool(re.search(r"\bgib\b|\bmib\b", kind))
    if kind and not known and not re.search(r"\bg(i)?b\b|\bmb\b", kind):
        unit = re.search(r"\b(tb|tib|kb|kib|bytes?|pages?|%|percent)\b", kind)
        if unit:
            raise BadInputError(
                "unknown unit",
                field="measured.memory_kind",
                value=unit.group(0),
                allowed="GiB or GB",
            )
    return float(peak), known


def _recompute(row: Fields) -> dict[str, Any]:
    text = _text(row, "layout", "recompute")
    if not text:
        return {"kind": "unknown"}
    words: dict[str, Any] = {"kind": _first(RECOMPUTE, text, "unknown")}
    if match := re.search(r"(\d+) of (\d+) layers", text):
        words["layers"] = int(match[1])
    elif match := re.search(r"block\W+(\d+)|^full,? (\d+) layers$", text):
        words["layers_per_virtual_stage"] = int(match[1] or match[2])
    elif match := re.search(r"(\d+) layers per (?:\(virtual\) )?stage", text):
        words["layers_per_virtual_stage"] = int(match[1])
    elif match := re.search(r"every (\w+) layer", text):
        digits = re.match(r"\d+", match[1])
        words["every"] = int(digits[0]) if digits else _ORDINALS.get(match[1], 2)
    elif "second matmul" in text or "per-op" in text:
        words["policy"] = "save-sdpa-and-every-second-matmul"
    elif match := re.search(r"selective:\s*([\w, -]+)", text):
        modules = [_module(name.strip()) for name in match[1].split(",")]
        words["modules"] = [name for name in modules if name]
    elif words["kind"] == "selective" and re.search(r"core[ _]att", text):
        words["modules"] = ["core_attn"]
    return words


def _module(name: str) -> str:
    """Megatron's name of a module that is said in prose; empty without one."""
    return _first(MODULES, re.sub("[_-]", " ", name))


def _sharding(row: Fields) -> dict[str, Any] | None:
    text = _text(row, "layout", "sharding")
    stage = (row.get("layout") or {}).get("zero_stage")
    by_stage = {0: "ddp", 1: "zero1", 2: "zero2", 3: "zero3"}.get(stage or 0)
    kind = _first(SHARDING, text)
    if not kind and (stage is None or by_stage is None):
        return None
    words: dict[str, Any] = {"kind": kind or by_stage}
    if match := re.search(
        r"(?:groups of|over|within) (\d+) ranks|shard\D{0,12}(\d+)", text
    ):
        words["group"] = int(match[1] or match[2])
    if _stays_whole(row, words["kind"], text):
        words["reshard_after_forward"] = False
    return words


def _stays_whole(row: Fields, kind: str, text: str) -> bool:
    """True where parameters stay gathered from forward to backward.

    The row says so, or runs FSDP inside a pipeline, where torchtitan's default keeps
    parameters gathered (``fsdp_reshard_after_forward``).
    """
    if re.search(r"not resharded|no reshard|reshard[^,;]*(never|false)", text):
        return True
    pipelined = ((row.get("layout") or {}).get("pp") or 1) > 1
    return pipelined and kind in {"fsdp", "fsdp2", "hsdp"} and "reshard" not in text


def _optimizer(row: Fields) -> dict[str, Any]:
    text = _text(row, "job", "optimizer")
    pure = "pure" in _text(row, "job", "precision")
    bits = 8 if re.search(r"8[ -]?bit", text) else 32
    if bits == 32 and (pure or re.search(r"\bbf16$|\bbf16,|bf16 states", text)):
        bits = 16
    cpu = bool(re.search(r"\b(on|to) cpu\b", text))
    rank = re.search(r"rank\W*(\d+)", text)
    return {
        "rank": int(rank[1]) if rank else None,
        "name": _first(OPTIMIZERS, text, "adam"),
        "state_bits": 32 if cpu else bits,
        "in_backward": bool(re.search(r"backward|per-layer weight|\blomo\b", text)),
        "on_cpu": cpu,
    }


def _schedule(row: Fields) -> dict[str, Any]:
    layout = row.get("layout") or {}
    text = _text(row, "layout", "schedule")
    if (layout.get("pp") or 1) == 1:
        return {"kind": "none"}
    deep = (layout.get("vpp") or 1) > 1 or "interleav" in text
    overlap = "none" if "no comm overlap" in text else "unknown"
    kind = "interleaved" if deep else "1f1b"
    return {"kind": kind, "stated": bool(text), "overlap": overlap}


def _offload(row: Fields) -> dict[str, Any] | None:
    text = _text(row, "layout", "offload")
    if not text or text in {"none", "false"}:
        return None
    words: dict[str, Any] = {}
    if match := re.search(r"activations of (\d+) layers", text):
        words["activation_layers"] = int(match[1])
    elif "activation" in text:
        words["activations"] = 1.0
    for name, stem in (
        ("optimizer", "optim"),
        ("parameters", "param"),
        ("gradients", "grad"),
        ("checkpoints", "checkpoint"),
    ):
        if stem in text:
            words[name] = 1.0
    return words or _offload_to(row, text)


def _offload_to(row: Fields, text: str) -> dict[str, Any] | None:
    """Offloaded states where a row names the place alone; parameters under ZeRO-3."""
    if not re.search(r"cpu|host|nvme|ssd|\btrue\b|\byes\b|full", text):
        return None
    sharding = _sharding(row) or {}
    whole = sharding.get("kind") in {"zero3", "fsdp", "fsdp2", "hsdp"}
    return {"optimizer": 1.0, **({"parameters": 1.0} if whole else {})}


def _pipeline(row: Fields) -> dict[str, Any] | None:
    layout = row.get("layout") or {}
    text, split = layout.get("pipeline_layout"), layout.get("pp_partition")
    if isinstance(text, str) and "|" in text:
        return {"stages": _layers_of(text)}
    if isinstance(split, str):
        split = [int(number) for number in re.findall(r"\d+", split)]
    return {"stages": list(split)} if split else None


def _layers_of(layout: str) -> list[int]:
    """Layers per virtual stage in Megatron's notation, `Et|(tt|)*30mL(1)`."""
    unrolled = re.sub(
        r"\(([^)]*)\)\*(\d+)", lambda part: part[1] * int(part[2]), layout
    )
    plain = re.sub(r"([a-zA-Z])\*(\d+)", lambda part: part[1] * int(part[2]), unrolled)
    return [stage.count("t") for stage in plain.split("|")]


def _fabric(row: Fields) -> str:
    text = _text(row, "hardware", "inter_node")
    return _first(FABRICS, text, "unknown") if text else "none"
