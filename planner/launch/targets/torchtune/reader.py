"""Reads the YAML of a torchtune recipe into a layout and training."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from planner.errors import BadInputError
from planner.frameworks.accelerate.stack import BF16_STACK
from planner.frameworks.accelerate.switches import true
from planner.frameworks.accelerate.torchtune.lacks import MLP, OPTIMIZERS, VERSION
from planner.launch.brief import Reading
from planner.launch.shell.runs import launch_of
from planner.launch.shell.started import changed, started
from planner.launch.sizes import HUGGING_FACE, sizes_of
from planner.launch.targets.accelerate.files import (
    block,
    found,
    parsed,
    part,
    whole,
)
from planner.launch.targets.torchtune.contradictions import (
    refuse_contradictions,
)
from planner.launch.targets.torchtune.references import resolved
from planner.launch.targets.torchtune.words import (
    FUSED,
    HARMLESS,
    LOSSES,
    PIECES,
    PRESETS,
    READ,
    UNPRICED,
)
from planner.launch.unknown import CHANGES, NOT_PRICED, Unknown

OF_SHARDS = ("custom_sharded_layers", "fsdp_cpu_offload", "fsdp_reshard_after_forward")
"""Settings that recipes with shards alone have. [text]"""
NAMES = {
    **{kind.rpartition(".")[2]: ours for ours, kind in OPTIMIZERS.items()},
    "SGD": "sgd",
    "AdamW8bit": "adamw-8bit",
}
"""The planner's name of an optimizer by its class. [text]"""
_BUILDER = re.compile(r"(?:q?lora_)?(.+)")
PROGRAM = re.compile(r"(dev/)?\w+_(distributed|single_device)")
"""Recipes of `tune run`. [text]"""
_RUN = re.compile(
    r"tune\s+run\b[^\n]*?\b(\w+_(?:distributed|single_device))\b", re.DOTALL
)


@dataclass(frozen=True)
class _Files:
    """The YAML, the file's name, the recipe and a model's config.json."""

    given: Mapping[str, Any]
    name: str
    recipe: str
    model: Mapping[str, Any]


def reads(files: Mapping[str, str]) -> bool:
    """Tell if a file is torchtune's.

    Returns:
        True where a file builds a model with a component of torchtune.
    """
    return _own(files) is not None


def read(files: Mapping[str, str]) -> Reading:
    """Read torchtune's YAML.

    Raises:
        BadInputError: No file is torchtune's, or a value is wrong.
    """
    name = _own(files)
    if name is None:
        raise BadInputError(
            "is no configuration of torchtune",
            file=", ".join(files),
            allowed="YAML with model._component_ of torchtune",
        )
    command = started(files, PROGRAM, READ)
    rest = {n: text for n, text in files.items() if n != name}
    others = found(rest, command.launcher)
    own = parsed(files[name])
    said = command.given.items()
    own = changed(own, {_spelled(own, name, value): value for name, value in said})
    own = resolved(own, name)
    its = _Files(own, name, _recipe_of(files), others.model)
    refuse_contradictions(own, name)
    _refuse_adapters(its)
    layout = _layout(its)
    return Reading(
        target="torchtune",
        framework="accelerate",
        layout=layout,
        training=_training(its),
        model={"name": "imported", **its.model} if its.model else {},
        stack=_stack(its.given),
        ignored=tuple(f"{k} {v}" for k, v in its.given.items() if k in HARMLESS),
        unknown=tuple(_unknown(its)),
        sizes=sizes_of(its.model, HUGGING_FACE, file="config.json"),
        per_replica=layout["micro_batch"] * layout["grad_accum"],
        on_one_rank={} if _says_recipe(its) else {"zero_stage": 0},
        named=PRESETS.get(_builder(its.given), ""),
    )


def _spelled(own: Mapping[str, Any], name: str, value: object) -> str:
    """Name of a setting that a command changes: of a block with a component, that.

    Source: torchtune 0.6.1 config/_utils.py, _merge_yaml_and_cli_args.
    """
    built = isinstance(value, str) and "_component_" in block(own, name)
    return f"{name}._component_" if built else name


def _own(files: Mapping[str, str]) -> str | None:
    """Name of the first file that builds a model of torchtune; None without one."""
    for name, text in files.items():
        if name.endswith((".yaml", ".yml")):
            component = block(parsed(text), "model").get("_component_")
            if str(component).startswith("torchtune."):
                return name
    return None


def _recipe_of(files: Mapping[str, str]) -> str:
    """Recipe that a launch script names; empty without one."""
    match = _RUN.search(" ".join(launch_of(files).words))
    return match[1] if match else ""


def _builder(given: Mapping[str, Any]) -> str:
    """Builder of the model, without the mark of its adapters."""
    component = str(block(given, "model").get("_component_", ""))
    match = _BUILDER.fullmatch(component.rpartition(".")[2])
    return match[1] if match else ""


def _says_recipe(its: _Files) -> bool:
    return bool(its.recipe) or any(name in its.given for name in OF_SHARDS)


def _refuse_adapters(its: _Files) -> None:
    """Refuse adapters of a model whose recipe trains all its weights."""
    component = str(block(its.given, "model").get("_component_"))
    if "lora_" in component.rpartition(".")[2] and its.recipe.startswith("full_"):
        raise BadInputError(
            f"has adapters, and {its.recipe} trains every weight",
            file=its.name,
            field="model._component_",
            value=component,
            allowed=f"{its.recipe.replace('full_', 'lora_', 1)}, or a model without",
        )


def _layout(its: _Files) -> dict[str, Any]:
    given = its.given
    after = true(given, "fsdp_reshard_after_forward", absent=True)
    sharded = not its.recipe.endswith("_single_device")
    layout: dict[str, Any] = {
        "pp": 1,
        "ep": 1,
        "tp": whole(given, "tensor_parallel_dim", its.name),
        "cp": 1,
        "zero_stage": (3 if after else 2) if sharded else 0,
        "micro_batch": whole(given, "batch_size", its.name),
        "grad_accum": whole(given, "gradient_accumulation_steps", its.name),
    }
    full = true(given, "enable_activation_checkpointing")
    layout["recompute"] = "full" if full else "none"
    if true(given, "fsdp_cpu_offload"):
        kept = ("optimizer", "parameters", "gradients")
        layout["offload"] = dict.fromkeys(kept, 1.0)
    if true(given, "enable_activation_offloading"):
        layout["offload"] = {**layout.get("offload", {}), "activations": 1.0}
    return layout


def _training(its: _Files) -> dict[str, Any]:
    given: dict[str, Any] = {"precision": str(its.given.get("dtype", "bf16"))}
    name = _optimizer(its.given)
    if name:
        given["optimizer"] = NAMES.get(name, name)
    if block(its.given, "optimizer").get("momentum") and name == "SGD":
        given["optimizer"] = "sgd-momentum"
    tokenizer = block(its.given, "tokenizer")
    if tokenizer.get("max_seq_len") is not None:
        given["seq_len"] = whole(tokenizer, "max_seq_len", its.name)
    if true(its.given, "optimizer_in_bwd"):
        given["optimizer_in_backward"] = True
    given["padding"] = "packed" if _packs(its) else "longest"
    return given | _adapters(its)


def _packs(its: _Files) -> bool:
    """Tell if the texts of a row are packed, of one dataset or of a list alike.

    Source: torchtune 0.6.1 datasets/_concat.py takes packed datasets alone, or others.
    """
    given = its.given.get("dataset")
    every = given if isinstance(given, list) else [given]
    packs = {isinstance(one, Mapping) and true(one, "packed") for one in every}
    if len(packs) > 1:
        raise BadInputError(
            "is a list of packed datasets and of others",
            file=its.name,
            field="dataset",
            allowed="packed: true for all, or for none",
        )
    return packs == {True}


def _optimizer(given: Mapping[str, Any]) -> str:
    component = block(given, "optimizer").get("_component_")
    return str(component).rpartition(".")[2] if component else ""


def _adapters(its: _Files) -> dict[str, Any]:
    model = block(its.given, "model")
    name = str(model["_component_"]).rpartition(".")[2]
    if not name.startswith(("lora_", "qlora_")):
        return {}
    lora: dict[str, Any] = {
        "rank": whole(model, "lora_rank", its.name, 8),
        "targets": _targets(model, its.name),
        "dropout": part(model, "lora_dropout", its.name, 0.0),
    }
    if name.startswith("qlora_") or true(model, "quantize_base"):
        bits = {"quantization": "nf4", "double_quantization": True}
        return {"method": "qlora", "lora": lora, **bits}
    return {"method": "lora", "lora": lora}


def _targets(model: Mapping[str, Any], file: str) -> str | list[str]:
    named = model.get("lora_attn_modules", [])
    if not isinstance(named, list):
        raise BadInputError(
            "is no list of linear layers",
            file=file,
            field="lora_attn_modules",
            value=named,
            allowed="q_proj, k_proj, v_proj, output_proj",
        )
    names = ["o_proj" if one == "output_proj" else str(one) for one in named]
    mlp = true(model, "apply_lora_to_mlp")
    if mlp and len(set(names)) == 4:
        return "all-linear"
    every = names + (sorted(MLP) if mlp else [])
    fused = FUSED if ".phi3." in str(model["_component_"]) else {}
    return list(dict.fromkeys(fused.get(name, name) for name in every))


def _stack(given: Mapping[str, Any]) -> dict[str, Any]:
    """Stack, and words of the stack block, that differ from accelerate's defaults."""
    found: dict[str, Any] = {}
    if str(given.get("dtype", "bf16")) == "bf16":
        found["name"] = BF16_STACK
    word = LOSSES.get(_loss(given), "hf")
    return found if word == "hf" else found | {"loss": word}


def _loss(given: Mapping[str, Any]) -> str:
    """Class of the loss; that of a recipe without one is PyTorch's."""
    component = block(given, "loss").get("_component_", "CrossEntropyLoss")
    return str(component).rpartition(".")[2]


def _unknown(its: _Files) -> Iterator[Unknown]:
    """Settings that are not read, and settings that are not priced."""
    given = its.given
    for name in map(str, given):
        if name not in READ | UNPRICED | HARMLESS:
            yield Unknown(name, why=f"no setting of a recipe of torchtune {VERSION}")
    for name in sorted(UNPRICED & given.keys()):
        if given[name] not in (None, False):
            yield Unknown(name, given[name], CHANGES)
    name = _optimizer(given)
    if name and name not in NAMES:
        yield Unknown("optimizer", name, NOT_PRICED)
    if _loss(given) not in LOSSES:
        yield Unknown("loss", _loss(given), CHANGES)
    yield from _otherwise(given)
    if not _says_recipe(its):
        why = "is named by no file: one rank has one of its own, several shard"
        yield Unknown("recipe", why=why, ranks=True)


def _otherwise(given: Mapping[str, Any]) -> Iterator[Unknown]:
    """Settings with a value that is not priced."""
    if given.get("device") not in (None, "cuda"):
        yield Unknown("device", given["device"], NOT_PRICED)
    pieces = block(given, "loss").get("num_output_chunks", PIECES)
    if pieces != PIECES:
        yield Unknown("loss.num_output_chunks", pieces, CHANGES)
    for key in ("use_dora", "apply_lora_to_output"):
        if true(block(given, "model"), key):
            yield Unknown(f"model.{key}", "true", CHANGES)
