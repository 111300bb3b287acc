"""Reads files of a torchtitan run into a layout, a training block and a model."""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import dropwhile, pairwise, takewhile
from typing import Any

from planner.errors import BadInputError
from planner.frameworks.torchtitan.loss import CHUNKED, COMPILED, WHOLE, usual_loss
from planner.launch.brief import Reading
from planner.launch.shell.runs import launch_of
from planner.launch.shell.values import refuse_unset, unset
from planner.launch.sizes import HUGGING_FACE, sizes_of
from planner.launch.targets.torchtitan.described import fields_of
from planner.launch.targets.torchtitan.legacy import from_toml, is_legacy, modern
from planner.launch.targets.torchtitan.modules import chosen, settings_of
from planner.launch.targets.torchtitan.placed import Settings, placed
from planner.launch.targets.torchtitan.settings import (
    Values,
    kind_of,
    renamed,
    schedules,
)
from planner.launch.targets.torchtitan.source import Module
from planner.launch.unknown import NOT_PRICED, Unknown

KINDS = ("none", "selective", "full")
LENGTH = 2048
"""Tokens of a sequence where none is given. [token]"""
SELECTED = ("--module", "--config")
SUBCOMMAND = "activation-checkpoint:"
"""Start of the word that chooses activation checkpointing in a command. [text]"""
PROGRAM = re.compile(r"torchtitan\.(\w+\.)*train|(.*/)?train\.py")
"""Word of a command line that names the program. [text]"""
SETTING = re.compile(r"--[\w-]+\.[\w.-]+(=|$)")
"""Word of a command line that names a setting by its section."""


def reads(files: Mapping[str, str]) -> bool:
    """Tell if files look like a torchtitan run.

    Returns:
        True where a file is torchtitan's TOML, a module with a configuration, or
        starts torchtitan.train.
    """
    return any(
        (name.endswith(".toml") and is_legacy(text))
        or (name.endswith(".py") and "torchtitan" in text and "Config" in text)
        or "torchtitan.train" in text
        for name, text in files.items()
    )


def read(files: Mapping[str, str]) -> Reading:
    """Read a module of a configuration registry, a TOML file, and a command line.

    Raises:
        BadInputError: No file has settings of torchtitan, or a value is wrong.
    """
    words = launch_of(files).words
    file, values, module, unread = _configured(files, words)
    values = modern(values | _overrides(words))
    if "model.flavor" in values and "model" in values:
        _, where, _ = values["model"]
        values["model"] = ("flavour", where, values.pop("model.flavor"))
    model = fields_of(values.get("model"), module)
    gpus = launch_of(files).ranks
    its = Settings(values, file, gpus=gpus, layers=model.get("num_hidden_layers"))
    depth = values.get("model.num_mtp_layers")
    if depth and model:
        model["num_nextn_predict_layers"] = depth
    return Reading(
        target="torchtitan",
        framework="torchtitan",
        layout=placed(its, _recompute(values)),
        training=_training(its),
        model=model,
        stack=_stack(values, model),
        ignored=tuple(its.setting for its in _shown(values, "harmless")),
        unknown=(
            *unread,
            *_untaken(words),
            *_shown(values, "unknown"),
            *_unplaced(its, bool(model)),
        ),
        gpus=its.gpus,
        sizes=sizes_of(model, HUGGING_FACE, file=file),
        per_replica=None if its.sequences else its.local,
        copies=its.copies,
    )


def _configured(
    files: Mapping[str, str], words: Sequence[str]
) -> tuple[str, Values, str, list[Unknown]]:
    """Settings of the file that configures a run, without those of the command line.

    Returns:
        (file, settings, module of the model, parts left out). [-]
    """
    tomls = {n: t for n, t in files.items() if n.endswith(".toml") and is_legacy(t)}
    if len(tomls) > 1:
        raise BadInputError("several configurations", file=", ".join(tomls))
    for name, text in tomls.items():
        return name, from_toml(name, text), "", []
    modules = {
        name.removesuffix(".py"): Module(name, text)
        for name, text in files.items()
        if name.endswith(".py") and "torchtitan" in text
    }
    module, config = (_option(words, name) for name in SELECTED)
    if not (modules or config):
        raise BadInputError(
            "has no settings of torchtitan",
            file=", ".join(files),
            allowed="a module with Trainer.Config, TOML before 0.3, or a command line "
            "with --module and --config",
        )
    where, found = chosen(modules, module, config)
    values, unread = settings_of(found, modules.get(where))
    own = _source_of(modules[where]) if where else ""
    return f"{where}.py" if where else "the command line", values, own, unread


def _source_of(module: Module) -> str:
    """Module of torchtitan.models whose registry a configuration imports."""
    source = module.imports.get("model_registry", "")
    return source.removesuffix(".config_registry").rpartition(".")[2]


def _option(words: Sequence[str], name: str) -> str:
    """Value of an option, as `--name value` or `--name=value`."""
    found = ""
    for word, following in pairwise([*words, ""]):
        if word == name:
            found = following
        elif word.startswith(f"{name}="):
            found = word.partition("=")[2]
    return found


def _overrides(words: Sequence[str]) -> Values:
    """Settings that the command line changes, as section.name."""
    found: Values = {}
    for at, word in enumerate(words):
        if word.replace("_", "-").startswith(SUBCOMMAND):
            name = word.partition(":")[2].removesuffix("-ac")
            found["activation_checkpoint"] = "none" if name == "None" else name
        if not SETTING.match(word):
            continue
        name, equals, inline = word[2:].partition("=")
        key, value = _switched(name.replace("-", "_"))
        more = [inline] if equals else list(takewhile(_is_value, words[at + 1 :]))
        if more:
            values = [_literal(each) for each in more]
            value = values[0] if len(values) == 1 else values
        if not unset(str(value)):
            found[key] = value
        elif kind_of(renamed(key), value) != "harmless":
            refuse_unset(f"--{name}", str(value), file="the command line")
    return found


def _is_value(word: str) -> bool:
    """Tell if a word is a value of the setting before it."""
    return not (word.startswith("--") or word.replace("_", "-").startswith(SUBCOMMAND))


def _untaken(words: Sequence[str]) -> Iterator[Unknown]:
    """Options of the program that name no section, which torchtitan has not."""
    own = list(dropwhile(lambda word: not PROGRAM.fullmatch(word), words))
    for word in own:
        name = word.partition("=")[0]
        if word.startswith("--") and not SETTING.match(word) and name not in SELECTED:
            yield Unknown(word, why="is no setting of torchtitan, with its section")


def _switched(name: str) -> tuple[str, object]:
    """Name and value of a switch: `section.no_x` turns x off."""
    section, _, key = name.rpartition(".")
    if key.startswith("no_"):
        return f"{section}.{key.removeprefix('no_')}", False
    return name, True


def _literal(text: str) -> object:
    """Read a word as a number, True, False, None or a list; else as text."""
    if text in ("true", "false"):
        return text == "true"
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _recompute(values: Values) -> str:
    kind = str(values.get("activation_checkpoint", "selective"))
    if kind.startswith("selective"):
        return "selective"
    return kind if kind in KINDS else "none"


def _training(its: Settings) -> dict[str, Any]:
    found: dict[str, Any] = {"seq_len": its.whole("training.seq_len", LENGTH)}
    if its.sequences is not None:
        found["global_batch"] = its.sequences
    found["precision"] = its.values.get("precision", "bf16")
    name = str(its.values.get("optimizer.name", "AdamW")).lower()
    found["optimizer"] = "adamw" if name == "adam" else name
    if its.values.get("optimizer.implementation") == "fused_opt_states_bf16":
        found["state_bits"] = 16
    return found


def _compiled(values: Values, part: str) -> bool:
    """Tell if torch.compile is on for a part: the blocks, `model`, or the loss."""
    parts = values.get("compile.components", ["model", "loss"])
    return bool(values.get("compile.enable", False)) and part in parts


def _loss(values: Values) -> str:
    """Loss by its word in a stack block. [text]."""
    if values.get("loss") == "ChunkedLossWrapper":
        return CHUNKED
    return COMPILED if _compiled(values, "loss") else WHOLE


def _usual_loss(values: Values, model: Mapping[str, Any]) -> str:
    """Loss that planner takes where a stack block sets no loss. [text]."""
    if not _compiled(values, "model"):
        return WHOLE
    depth = model.get("num_nextn_predict_layers") or 0
    tokens = int(values.get("training.seq_len", LENGTH))
    return usual_loss(mtp_layers=depth, tokens=tokens)


def _stack(values: Values, model: Mapping[str, Any]) -> dict[str, Any]:
    """Overrides of the software stack: eager blocks, loss, tp_overlap, dispatcher."""
    blocks = _compiled(values, "model")
    found: dict[str, Any] = {} if blocks else {"name": "torchtitan-eager"}
    if values.get("compile.enable_async_tensor_parallel"):
        found["tp_overlap"] = True
    if (loss := _loss(values)) != _usual_loss(values, model):
        found["loss"] = loss
    if values.get("dispatcher") in ("deepep", "hybridep"):
        found["dispatcher"] = values["dispatcher"]
    return found


def _shown(values: Values, kind: str) -> Iterator[Unknown]:
    """Settings of one kind, as a user would write them."""
    for name in sorted(values):
        if kind_of(name, values[name]) == kind and not name.startswith("model.num_mtp"):
            yield Unknown(name, values[name])


def _unplaced(its: Settings, known: bool) -> Iterator[Unknown]:  # noqa: FBT001  # private
    """Settings that were seen and cannot be expressed in a layout."""
    kind = str(its.values.get("activation_checkpoint", "selective"))
    if kind not in KINDS:
        yield Unknown("activation_checkpoint", kind, NOT_PRICED)
    if not known:
        yield Unknown("model", its.values.get("model"), "no flavour that is known")
    schedule = its.values.get("parallelism.pipeline_parallel_schedule", "1F1B")
    if its.pp > 1 and schedule not in schedules():
        yield Unknown("parallelism.pipeline_parallel_schedule", schedule, NOT_PRICED)
    if its.flushes > 1:
        yield Unknown(
            "training.local_batch_size",
            its.local,
            f"makes {its.flushes} pipelines a step, priced as one",
        )
