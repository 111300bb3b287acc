"""Reads a module of torchtitan's configuration registry into settings."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from planner.errors import BadInputError, did_you_mean
from planner.launch.targets.torchtitan.settings import Values, registered, registry
from planner.launch.targets.torchtitan.source import (
    CONFIGURATIONS,
    Built,
    Module,
    Unread,
)
from planner.launch.unknown import Unknown

SECTIONS = {
    "TrainingConfig": "training",
    "ParallelismConfig": "parallelism",
    "CompileConfig": "compile",
}
CHECKPOINTING = {
    "FullAC": "full",
    "SelectiveAC": "selective",
    "MemoryBudgetAC": "memory-budget",
}
"""Recompute by class of the policy; planner has no kind for the budget. [text]"""
CONVERTERS = {"Float8": "fp8", "MXFP8": "mxfp8", "NVFP4": "nvfp4"}
"""Number format by the beginning of a converter's name. [text]"""
BUILDERS = ("llama3", "qwen3", "deepseek_v3")


def chosen(
    modules: Mapping[str, Module], module: str, config: str
) -> tuple[str, Built]:
    """Find the configuration that a run is started with.

    Args:
        modules: Files of the run, by name without `.py`. [-]
        module: Name that `--module` gives; empty without that option. [text]
        config: Name that `--config` gives; empty without that option. [text]

    Returns:
        (file, configuration); the file is empty for the package's registry. [-]

    Raises:
        BadInputError: No configuration has that name, or several fit.
    """
    found = {
        (name, function): value
        for name, one in modules.items()
        for function in one.functions
        if _is_config(value := one.result(function))
    }
    own = module.rpartition(".")[2]
    named = [key for key in found if config in ("", key[1])]
    inside = [
        key for key in named if own in ("", key[0]) or key[0] == "config_registry"
    ]
    if len(inside) == 1:
        return inside[0][0], found[inside[0]]
    if config in registry() and not inside:
        return "", Built(config)
    known = sorted({function for _, function in found} | set(registry()))
    raise BadInputError(
        "no configuration of this name is among the files"
        + (f"; {did_you_mean(config, known)}" if config else ""),
        file=", ".join(f"{name}.py" for name in modules) or "the command line",
        field="--config",
        value=config or "several",
        allowed=", ".join(known),
    )


def _is_config(value: object) -> bool:
    return isinstance(value, Built) and (
        value.word in CONFIGURATIONS or value.name in registry()
    )


def settings_of(config: Built, module: Module | None) -> tuple[Values, list[Unknown]]:
    """Settings of a configuration, and the parts that could not be read.

    Args:
        config: Call that makes the configuration, with later assignments. [-]
        module: File of the configuration; None for the package's registry. [-]
    """
    values = registered(config.name) if config.name in registry() else {}
    unread = [Unknown(statement) for statement in config.skipped]
    for name, value in config.given.items():
        for key, inner in _flat(name, value):
            if isinstance(inner, Unread):
                unread.append(Unknown(key, inner.text))
            else:
                values[key] = inner
    if module:
        values |= _order(module)
    return values, unread


def _order(module: Module) -> Values:
    """Rank order for which a module written by planner renumbers processes."""
    return {"order": module.constants["ORDER"]} if "place" in module.functions else {}


def _flat(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Settings of a section by `section.name`."""
    special = {
        "model_spec": _model,
        "activation_checkpoint": _checkpointing,
        "loss": _loss,
        "optimizer": _optimizer,
    }
    if name in special:
        yield from special[name](value)
    elif isinstance(value, Built) and value.word in (*SECTIONS, ""):
        for key, inner in value.given.items():
            yield f"{SECTIONS.get(value.word, name)}.{key}", inner
    elif isinstance(value, Built):
        yield from ((f"{name}.{key}", inner) for key, inner in value.given.items())
    else:
        yield name, value


def _checkpointing(value: Any) -> Iterator[tuple[str, Any]]:
    if value is None:
        yield "activation_checkpoint", "none"
    elif isinstance(value, Built):
        word = value.name.removesuffix(".Config").split(".")[-1]
        yield "activation_checkpoint", CHECKPOINTING.get(word, word)
        yield from (
            (f"activation_checkpoint.{key}", inner)
            for key, inner in value.given.items()
        )
    else:
        yield "activation_checkpoint", value


def _loss(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Built):
        yield "loss", value.word


def _optimizer(value: Any) -> Iterator[tuple[str, Any]]:
    if not isinstance(value, Built):
        return
    inner = value.args[0] if value.word == "replace" and value.args else value
    if "implementation" in value.given:
        yield "optimizer.implementation", value.given["implementation"]
    if isinstance(inner, Built) and inner.word not in ("default_adamw", ""):
        yield "optimizer.name", inner.word


def _model(value: Any) -> Iterator[tuple[str, Any]]:
    if not isinstance(value, Built):
        return
    if value.word in BUILDERS:
        own = {k: v for k, v in value.given.items() if k not in _EXTRAS}
        yield "model", ("own", value.word, own)
    elif value.word == "model_registry":
        named = value.args[0] if value.args else value.given.get("flavor")
        yield "model", ("flavour", "", named)
    if "moe_comm_backend" in value.given:
        yield "dispatcher", value.given["moe_comm_backend"]
    if value.given.get("num_mtp_layers"):
        yield "model.num_mtp_layers", value.given["num_mtp_layers"]
    yield from _formats(value.given.get("converters"))


_EXTRAS = ("converters", "moe_comm_backend", "num_mtp_layers")


def _formats(converters: Any) -> Iterator[tuple[str, Any]]:
    """Number format that converters turn linear layers into."""
    every: Sequence[Any] = converters if isinstance(converters, list) else []
    for one in every:
        word = one.word if isinstance(one, Built) else str(one)
        match = re.match("|".join(CONVERTERS), word)
        if match:
            yield "precision", CONVERTERS[match.group(0)]
        else:
            yield f"model.converters.{word}", True
