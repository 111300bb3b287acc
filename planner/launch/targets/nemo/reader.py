"""Reads a configuration of NeMo 1 as the options of Megatron-LM that it stands for."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict

from planner.errors import BadInputError
from planner.hardware.reading.yaml_text import parse_yaml
from planner.launch.brief import Reading
from planner.launch.targets.megatron.reader import read_words
from planner.launch.unknown import CHANGES, NOT_PRICED, Unknown

Fields = Mapping[str, Any]
MARKS = ("encoder_seq_length", "megatron_amp_O2")
"""Fields of a model that NeMo 1 alone has. [text]"""
ALWAYS = ("--no-create-attention-mask-in-dataloader",)
"""Options of what NeMo 1 does without a field: one mask serves all samples. [text]"""
NESTED = frozenset({"data", "optim"})
"""Blocks of a model whose fields are read one by one. [text]"""
GRANULARITY = "model.activations_checkpoint_granularity"
CHUNKS = "model.virtual_pipeline_model_parallel_size"
INTERLEAVED = frozenset({"model.overlap_p2p_comm", "model.batch_p2p_comm"})
"""Fields that count where a rank has several chunks. [text]"""
OVERLAPS = frozenset(
    {"model.optim.overlap_grad_sync", "model.optim.overlap_param_sync"}
)
"""Fields that an optimizer takes whose states the ranks share. [text]"""
COUNTED = {
    "model.activations_checkpoint_method": "--recompute-method",
    "model.activations_checkpoint_num_layers": "--recompute-num-layers",
}
"""Options of fields that count where whole layers are recomputed. [text]"""
_INSIDE = re.compile(r"\$\{(?:training\.)?(trainer|model|)\.(\w+)\}")
_PRODUCT = re.compile(r"\$\{multiply:\s*([\d.]+)\s*,\s*([\d.]+)\s*\}")


class Names(BaseModel):
    """Fields of NeMo 1: what each is in Megatron-LM's options, or that it is none."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    options: dict[str, str]
    words: dict[str, dict[str, list[str]]]
    plain: dict[str, list[str]]
    unset_is_false: tuple[str, ...]
    harmless: frozenset[str]


@cache
def names() -> Names:
    """Read ``planner/launch/targets/nemo/fields.yaml``. [-]."""
    text = (Path(__file__).parent / "fields.yaml").read_text("utf-8")
    return Names.model_validate(parse_yaml(text))


def is_nemo(its: object) -> bool:
    """Tell if a YAML file is a configuration of a GPT of NeMo 1.

    Returns:
        True where its model block has fields that NeMo 1 alone has.
    """
    model = its.get("model") if isinstance(its, Mapping) else None
    return isinstance(model, Mapping) and any(mark in model for mark in MARKS)


def reads(files: Mapping[str, str]) -> bool:
    """Tell if a file is a configuration of NeMo 1.

    Returns:
        True where :func:`is_nemo` is true of a YAML file.
    """
    return bool(_loaded(files)[1])


def _loaded(files: Mapping[str, str]) -> tuple[str, Fields]:
    """Name and content of the first configuration of NeMo 1; empty without one."""
    for name, text in files.items():
        if name.endswith((".yaml", ".yml")) and any(mark in text for mark in MARKS):
            try:
                its = parse_yaml(text)
            except (yaml.YAMLError, ValueError):
                continue
            if is_nemo(its):
                return name, its
    return "", {}


def read(files: Mapping[str, str]) -> Reading:
    """Read a configuration of NeMo 1."""
    name, its = _loaded(files)
    fields = dict(_fields(its))
    _refuse_two_lengths(fields, name)
    said = dict(_said(fields))
    words = [word for words in said.values() for word in words]
    try:
        reading = read_words(name, [*words, *ALWAYS])
    except BadInputError as error:
        error.field = _field_of(error.field or "", said) or None
        raise
    named = _in_fields(reading, said)
    return replace(
        named,
        stack={**named.stack, **_stack(fields)},
        ignored=(*named.ignored, *sorted(fields.keys() & names().harmless)),
        unknown=(*named.unknown, *_unread(fields)),
        **_ranks(fields.get("trainer.devices"), fields.get("trainer.num_nodes", 1)),
    )


def _refuse_two_lengths(fields: Fields, file: str) -> None:
    """Refuse rows of data of another length than the model's."""
    data, model = "model.data.seq_length", "model.encoder_seq_length"
    if data in fields and fields[data] != fields.get(model):
        raise BadInputError(
            f"is not {model}",
            file=file,
            field=data,
            value=fields[data],
            allowed=fields.get(model),
        )


def _ranks(devices: object, nodes: object) -> dict[str, Any]:
    """Ranks and nodes of a run where the file counts them; it may say -1 or auto."""
    if not (isinstance(devices, int) and isinstance(nodes, int) and devices > 0):
        return {}
    return {"gpus": devices * nodes, "nodes": nodes}


def _in_fields(reading: Reading, said: Mapping[str, list[str]]) -> Reading:
    """A reading of options whose settings have the names of fields."""
    return replace(
        reading,
        unknown=tuple(
            replace(each, name=_field_of(each.name, said)) for each in reading.unknown
        ),
        sizes=tuple(
            replace(each, field=_field_of(each.field, said)) for each in reading.sizes
        ),
    )


def _fields(its: Fields) -> Iterator[tuple[str, Any]]:
    """Fields of trainer and model that are given, by path, references filled in."""
    for block in ("trainer", "model"):
        for name, value in (its.get(block) or {}).items():
            path = f"{block}.{name}"
            inner = isinstance(value, Mapping) and block == "model" and name in NESTED
            every = value.items() if inner else [("", value)]
            for key, each in every:
                filled = _filled(each, its)
                if filled is not None:
                    yield f"{path}.{key}" if inner else path, filled
    average = (its.get("exp_manager") or {}).get("ema") or {}
    if average.get("enable"):
        yield "exp_manager.ema.enable", True


def _filled(value: Any, its: Fields) -> Any:
    """A value with references to other fields, and products, filled in."""
    if not (isinstance(value, str) and "${" in value):
        return value
    text = _INSIDE.sub(lambda m: str(its[m[1] or "model"].get(m[2], m[0])), value)
    text = _PRODUCT.sub(lambda m: f"{float(m[1]) * float(m[2]):g}", text)
    return text if "${" in text else parse_yaml(text)


def _said(fields: Fields) -> Iterator[tuple[str, list[str]]]:
    """Words of Megatron-LM by the field that says them."""
    own = names()
    for path, value in fields.items():
        if path in OVERLAPS and not _shares(fields):
            continue
        if path in own.options:
            yield path, _words(own.options[path], value)
        elif path in own.words:
            yield path, own.words[path].get(str(value), [])
        elif path in COUNTED and fields.get(GRANULARITY) == "full":
            yield path, _words(COUNTED[path], value)
    yield from _of_several(fields)


def _shares(fields: Fields) -> bool:
    """True where ranks share the states of the optimizer."""
    name = str(fields.get("model.optim.name"))
    return "--use-distributed-optimizer" in names().words["model.optim.name"].get(
        name, ()
    )


def _words(option: str, value: Any) -> list[str]:
    if isinstance(value, bool):
        return [option] if value else []
    values = value if isinstance(value, list) else [value]
    return [option, *map(_plain, values)]


def _plain(value: Any) -> str:
    """A whole number without its point, as options of whole numbers take it."""
    whole = isinstance(value, float) and value.is_integer()
    return str(int(value) if whole else value)


def _of_several(fields: Fields) -> Iterator[tuple[str, list[str]]]:
    """Words of settings that several fields, or several options, say."""
    groups = fields.get("model.num_query_groups")
    if groups and groups != fields.get("model.num_attention_heads"):
        grouped = ["--group-query-attention", "--num-query-groups", str(groups)]
        yield "model.num_query_groups", grouped
    if fields.get("model.fp8"):
        form = "e4m3" if fields.get("model.fp8_e4m3") else "hybrid"
        yield "model.fp8", ["--fp8-format", form]
    if window := fields.get("model.window_size"):
        yield "model.window_size", ["--window-size", ",".join(map(str, window))]


def _field_of(option: str, said: Mapping[str, list[str]]) -> str:
    """Field that says an option of Megatron-LM; the option itself without one."""
    every = {path: [its] for path, its in names().options.items()} | dict(said)
    return next((path for path, words in every.items() if option in words), option)


def _stack(fields: Fields) -> dict[str, Any]:
    """Software of the time, by the format that gradients are kept and summed in."""
    short = str(fields.get("model.optim.grad_sync_dtype")) == "bf16"
    overlap = bool(fields.get("model.ub_tp_comm_overlap"))
    return {"name": "nemo-2024" if short else "megatron-2024", "tp_overlap": overlap}


SEVERAL = frozenset(
    {
        "model.num_query_groups",
        "model.fp8",
        "model.fp8_e4m3",
        "model.fp8_hybrid",
        "model.data.seq_length",
        "model.window_size",
        *COUNTED,
    }
)
"""Fields that are read with others. [text]"""


def _unread(fields: Fields) -> Iterator[Unknown]:
    """Fields whose value is not what is priced, and fields that nobody knows."""
    own = names()
    known = own.options.keys() | own.harmless | SEVERAL
    for path, value in fields.items():
        if path in INTERLEAVED and not fields.get(CHUNKS):
            continue
        if path in own.words or path in own.plain:
            legal = own.words.get(path) or own.plain.get(path) or ()
            if str(value) not in legal:
                yield Unknown(path, value, NOT_PRICED)
        elif path not in known and _says(path, value, fields):
            yield Unknown(path, value, CHANGES)
    absent = (path for path in own.unset_is_false if path not in fields)
    yield from (
        Unknown(path, "false", f"where absent, {NOT_PRICED}") for path in absent
    )


def _says(path: str, value: Any, fields: Fields) -> bool:
    """True of a field that nobody knows where it is on, and no copy of another."""
    if path == "model.precision":
        return bool(value != fields.get("trainer.precision"))
    return any(value.values()) if isinstance(value, Mapping) else value is not False
