"""Reads overrides of Megatron-Bridge into a layout and a training block."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import yaml

from planner.errors import BadInputError
from planner.frameworks.megatron.bridge.lacks import MODULES
from planner.frameworks.megatron.launch.known import (
    deciding,
    declared,
    given,
    is_harmless,
    reason,
)
from planner.hardware.reading.yaml_text import parse_yaml
from planner.launch.brief import Reading
from planner.launch.sizes import MEGATRON, Size, sizes_of
from planner.launch.targets.megatron.placed import copies_of, placed
from planner.launch.targets.megatron.reader import ranks_of, stack_of, training_of
from planner.launch.targets.megatron_bridge.paths import paths, unknown_fields
from planner.launch.targets.megatron_bridge.writer import PLAIN, PRECISIONS
from planner.launch.targets.nemo.reader import is_nemo
from planner.launch.unknown import CHANGES, NOT_PRICED, Unknown

PRICED = frozenset({"model", "ddp", "optimizer", "dist", "mixed_precision"})
"""Blocks whose fields have the names of Megatron-LM's arguments. [text]"""
DECIDED = {
    "model.fp8": "mixed_precision",
    "model.fp4": "mixed_precision",
    "model.cpu_offloading": "cpu_offloading_num_layers",
}
"""Fields that count for nothing where another one is given. [text]"""
SOME = 1
"""Experts of a model with experts, where the file gives no number. [1]"""
MARK = "tensor_model_parallel_size"
LETTERS = {"embedding": "E", "decoder": "t", "mtp": "m", "loss": "L"}
"""Letter of --pipeline-model-parallel-layout by kind of layer. [text]"""
BACKENDS = ("flash", "fused", "unfused", "local", "auto")
"""Members of AttnBackend, in order. [text]"""
ALSO = {"--seq-length": ["dataset.sequence_length"]}
"""Fields that are read beside those that are written, by option. [text]"""
DTYPES = {
    "torch.float32": "fp32",
    "torch.bfloat16": "bf16",
    "torch.float16": "fp16",
    "torch.uint8": "fp8",
}
"""Formats of moments as a saved ConfigContainer names them. [text]"""


def _loaded(files: Mapping[str, str]) -> tuple[str, dict[str, Any]]:
    """Name and content of the YAML whose model block has a tensor degree, or empty."""
    for name, text in files.items():
        if not name.endswith((".yaml", ".yml")) or MARK not in text:
            continue
        try:
            its = parse_yaml(text)
        except (yaml.YAMLError, ValueError):
            continue
        model = its.get("model") if isinstance(its, dict) else None
        if isinstance(model, dict) and MARK in model and not is_nemo(its):
            return name, its
    return "", {}


def reads(files: Mapping[str, str]) -> bool:
    """Tell if a file looks like a ConfigContainer or overrides of a ConfigContainer.

    Returns:
        True where the model block of a YAML file has a tensor degree.
    """
    return bool(_loaded(files)[1])


def read(files: Mapping[str, str]) -> Reading:
    """Read overrides of a recipe, or a ConfigContainer that was saved.

    Raises:
        BadInputError: No file is a ConfigContainer, or a value is wrong.
    """
    name, its = _loaded(files)
    if not its:
        allowed = "YAML with model.tensor_model_parallel_size"
        where = ", ".join(files)
        raise BadInputError("is no ConfigContainer", file=where, allowed=allowed)
    (values, unread), gpus = _values(its, name), ranks_of(files)
    training = training_of(values) | _adapters(its, name) | _rows(its)
    skipped = unknown_fields({k: v for k, v in its.items() if isinstance(v, Mapping)})
    return Reading(
        target="megatron-bridge",
        framework="megatron",
        layout=placed(values, name),
        training=training,
        stack=stack_of(values),
        ignored=tuple(p for p, value in _others(its) if not _why(its, p, value)),
        unknown=(
            *(Unknown(its, why="not in ConfigContainer") for its in skipped),
            *unread,
            *_deciding(its),
            *_unnamed(its),
        ),
        gpus=gpus,
        sizes=_sizes(values | _stated(its), name),
        copies=copies_of(values, "ddp.num_distributed_optimizer_instances"),
    )


def _rows(its: Mapping[str, Any]) -> dict[str, str]:
    """Rows are packed where the data set is packed before the run."""
    data = its.get("dataset")
    packs = isinstance(data, Mapping) and data.get("offline_packing_specs")
    return {"padding": "packed"} if packs else {}


def _values(its: Mapping[str, Any], file: str) -> tuple[dict[str, Any], list[Unknown]]:
    """Values by argument of Megatron-LM, and the fields that were not understood.

    Fields that are null or false count as not given.
    """
    found: dict[str, Any] = {}
    unread = []
    for path, words in _words(its, file):
        try:
            found |= given(words)
        except ValueError as error:
            if declared()[words[0]]["type"] == "int":
                message = f"is not what Megatron-Bridge accepts: {error}"
                raise BadInputError(message, file=file, field=path) from error
            unread.append(Unknown(path, " ".join(words[1:])))
    found |= _recipe_values(its.get("mixed_precision"))
    precise = "ddp.grad_reduce_in_fp32"
    if _switch(_at(its, precise), precise, file) is False:
        found["grad_reduce_in_bf16"] = True
    if "expert_model_parallel_size" in found or "num_moe_experts" in str(its):
        found.setdefault("num_experts", SOME)
    return found, unread


def _stated(its: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of the model by argument of Megatron-LM."""
    model = {**its["model"], "num_experts": its["model"].get("num_moe_experts")}
    return {name: value for name, value in model.items() if value is not None}


def _sizes(values: Mapping[str, Any], file: str) -> tuple[Size, ...]:
    """Sizes of the model that the file states."""
    theirs = {"num_experts": "num_moe_experts"}
    found = sizes_of(
        values, MEGATRON, file=file, spelled=lambda n: f"model.{theirs.get(n, n)}"
    )
    return tuple(s for s in found if (s.what, s.value) != ("experts", SOME))


def _words(its: Mapping[str, Any], file: str) -> Iterator[tuple[str, list[str]]]:
    """Fields as the words of a command line: an option with its values each."""
    for option, every in paths().paths.items():
        takes = declared()[option]["nargs"]
        path, value = _said(its, [*every, *ALSO.get(option, ())], file)
        if takes == 0:
            value = _switch(value, path, file)
        if value is None or value is False:
            continue
        value = _member(value)
        several = takes == "+" and isinstance(value, list)
        values = value if several else [_letters(value)]
        if takes == 0:
            values = []
        yield path, [option, *(DTYPES.get(str(v), str(v)) for v in values)]


def _said(its: Mapping[str, Any], every: Sequence[str], file: str) -> tuple[str, Any]:
    """Value of a setting, which several fields may say, and the field that says it."""
    said = [(path, value) for path in every if (value := _at(its, path)) is not None]
    for path, value in said[1:]:
        if not isinstance(value, bool) and value != said[0][1]:
            raise BadInputError(
                f"is not {said[0][0]}, and Megatron-Bridge refuses two values",
                file=file,
                field=path,
                value=value,
                allowed=said[0][1],
            )
    return said[0] if said else (every[0], None)


def _at(its: Mapping[str, Any], path: str) -> Any:
    block, _, name = path.partition(".")
    inside = its.get(block)
    return inside.get(name) if isinstance(inside, Mapping) else None


def _switch(value: object, path: str, file: str) -> bool | None:
    """Value of a switch, which is true, false or null."""
    if value is None or isinstance(value, bool):
        return value
    raise BadInputError(
        "is a switch", file=file, field=path, value=value, allowed="true or false"
    )


def _member(value: Any) -> Any:
    """Name of a member of AttnBackend, which a saved ConfigContainer counts.

    Source: megatron/core/transformer/enums.py, AttnBackend.
    """
    if not (isinstance(value, Mapping) and "AttnBackend" in str(value.get("_target_"))):
        return value
    number = (value.get("_args_") or [0])[0]
    return dict(enumerate(BACKENDS, start=1)).get(number, number)


def _letters(value: object) -> object:
    """Write stages, given as lists of layer names, as the option takes them."""
    stages = value if isinstance(value, list) else []
    if not (stages and all(isinstance(stage, list) for stage in stages)):
        return value
    names = [[LETTERS.get(str(name), "?") for name in stage] for stage in stages]
    return "|".join("".join(stage) for stage in names)


def _recipe_values(recipe: object) -> dict[str, Any]:
    """Values by argument for the name of a recipe of number formats."""
    scaled = {name: word for word, name in PRECISIONS.items()}
    name = recipe if isinstance(recipe, str) else ""
    if name in scaled:
        return {"bf16": True, "fp8": "hybrid", "fp8_recipe": scaled[name]}
    plain = {name: word for word, name in PLAIN.items()}.get(name)
    return {"fp4": "e2m1"} if plain == "nvfp4" else {plain: True} if plain else {}


def _adapters(its: Mapping[str, Any], file: str) -> dict[str, Any]:
    peft = its.get("peft")
    if not isinstance(peft, Mapping):
        return {}
    names = {theirs: ours for ours, theirs in MODULES.items()}
    given_names = peft.get("target_modules") or []
    if not isinstance(given_names, list):
        raise BadInputError(
            "is no list of layers",
            file=file,
            field="peft.target_modules",
            value=given_names,
            allowed=", ".join(names),
        )
    targets = [names.get(str(target), str(target)) for target in given_names]
    lora = {"rank": peft.get("dim", 32), "targets": targets or "all"}
    if peft.get("dropout"):
        lora["dropout"] = peft["dropout"]
    return {"method": "lora", "lora": lora}


def _others(its: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Fields that no reader reads, each with its value."""
    lists = (*paths().paths.values(), *ALSO.values())
    used = {path for every in lists for path in every}
    for block, inside in its.items():
        if isinstance(inside, Mapping) and block != "peft":
            every = ((f"{block}.{name}", value) for name, value in inside.items())
            yield from ((path, value) for path, value in every if path not in used)


def _deciding(its: Mapping[str, Any]) -> Iterator[Unknown]:
    """Fields with the name and another value than an argument that is not priced."""
    for path, value in _others(its):
        if why := _why(its, path, value):
            yield Unknown(path, value, why)


def _unnamed(its: Mapping[str, Any]) -> Iterator[Unknown]:
    """Blocks that a word stands for, which names none that is priced."""
    known = {*PLAIN.values(), *PRECISIONS.values()}
    recipe, peft = its.get("mixed_precision"), its.get("peft")
    if isinstance(recipe, str) and recipe not in known:
        yield Unknown("mixed_precision", recipe, NOT_PRICED)
    if peft is not None and not isinstance(peft, Mapping):
        yield Unknown("peft", peft, "is no block of adapters")


def _why(its: Mapping[str, Any], path: str, value: object) -> str:
    """Reason to refuse a field that no reader reads; empty where it decides nothing."""
    block, _, name = path.partition(".")
    decided = DECIDED.get(path, path)
    if decided != path and (its.get(decided) or its[block].get(decided)):
        return ""
    if path in paths().always_on:
        return CHANGES if value is False else ""
    if path in paths().refused:
        plain = value in (None, False, *paths().refused[path])
        return "" if plain else reason(name) or CHANGES
    if block not in PRICED or value in (None, False) or name not in deciding():
        return ""
    return "" if is_harmless(name, value) else reason(name) or CHANGES
