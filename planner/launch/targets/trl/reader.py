"""Reads the YAML or the command of `trl sft` into a layout and training."""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from planner.errors import BadInputError
from planner.frameworks.accelerate.launch.known import (
    LENGTHS,
    NAMES_ONLY,
    TRL,
    earlier,
    keys,
    trainer_arguments,
)
from planner.frameworks.accelerate.switches import true
from planner.frameworks.accelerate.together import refuse_auto
from planner.launch.shell.runs import launch_of
from planner.launch.shell.started import Started, started
from planner.launch.targets.accelerate.files import (
    Found,
    found,
    launcher_options,
    whole,
)
from planner.launch.targets.accelerate.trainer import (
    adapters_of,
    refuse_quantised,
)
from planner.launch.targets.trainers.reader import (
    Files,
    Run,
    Settings,
    TrainerReader,
    adapted,
)
from planner.launch.targets.trl.presets import with_preset
from planner.launch.unknown import Unknown, absent

SCRIPT = re.compile(r".*\.py")
"""Scripts that are TRL's where their options are of TRL's ModelConfig alone. [text]"""
OWN = re.compile(r"(.*/)?(sft|dpo)\.py")
"""TRL's scripts wherever they lie, which have an option of the marks. [text]"""
OF_WEIGHTS = frozenset({"lora_r", "lora_target_modules", "use_peft"})
"""Options of ModelConfig that mark a script as TRL's. [text]"""
ALONE = ("trl", "sft")
"""Command of a YAML without one; its words start no other method. [text]"""
LENGTH = 1024
"""max_length where the file has none. [token]"""
RANK = 16
"""lora_r where the file has none. [1]"""


class _Reader(TrainerReader):
    def command(self, files: Files) -> Started:
        """The command of TRL's that starts the run, if one does."""
        own, marks = super().command(files), self.dialect.marks
        for program, options in ((SCRIPT, OF_WEIGHTS), (OWN, marks)):
            words = started(files, program, ()).given.keys()
            if not own.found and options & words and not self.dialect.others & words:
                return self.started_by(files, program)
        return own

    def reads(self, files: Files) -> bool:
        return self.own_file(files, self.command(files)) is not None

    def own_file(self, files: Files, command: Started) -> str | None:
        """First file with a mark, or else of the command; None without both."""
        config = command.file.rpartition("/")[2]
        named = config if config in files else launch_of(files).file
        return self.marked(files) or (named if command.found else None)

    def settings(self, own: Settings, command: Started, file: str) -> dict[str, Any]:
        """Settings where what is null has its default."""
        both = super().settings(own, command, file)
        said = {name: value for name, value in both.items() if value is not None}
        return {**self.dialect.defaults, **said}

    def others(self, files: Files, settings: Settings, command: Started) -> Found:
        """Files beside TRL's; the launcher takes the options that the script lacks."""
        options = ((n, v) for n, v in settings.items() if n in launcher_options())
        words = [word for n, v in options for word in (f"--{n}", str(v))]
        launcher = command.launcher if command.found else ALONE
        presets = with_preset(files, settings.get("accelerate_config"))
        return found(presets, (*launcher, *words))

    def refuse(self, run: Run) -> None:
        refuse_quantised(run.settings, run.file)
        refuse_auto(run.settings, run.file)
        _refuse_wide(run.settings, run.file)

    def harmless(self) -> frozenset[str]:
        older = (earlier().harmless | NAMES_ONLY) - trainer_arguments()
        return super().harmless() | older | {"accelerate_config", "env", "config"}

    def known(self) -> frozenset[str]:
        """Arguments of the script beyond those of the trainers; env sets variables."""
        every = keys().of_weights | keys().of_script | keys().of_mixture
        return (every - trainer_arguments()) | self.harmless()

    def strange(self, settings: Settings) -> Iterator[Unknown]:
        every = trainer_arguments() | self.known() | launcher_options()
        for name in (name for name in map(str, settings) if name not in every):
            used = "; TRL has max_length" if name in LENGTHS else ""
            yield Unknown(name, why=f"no argument of TRL {TRL}{used}")

    def otherwise(self, run: Run) -> Iterator[Unknown]:
        """accelerate's file, which TRL starts its ranks with, where it is not there."""
        file = run.settings.get("accelerate_config")
        if file and not run.others.places:
            yield absent("accelerate_config", file)

    def translated(self, run: Run) -> Found:
        return _translated(run.settings, run.others, run.file)


_READER = _Reader("trl")
reads, read = _READER.reads, _READER.read


def _refuse_wide(settings: Settings, name: str) -> None:
    """Refuse frozen weights in fp32, TRL's default, which are not priced."""
    if settings["dtype"] == "float32" and true(settings, "use_peft"):
        raise BadInputError(
            "weights beside adapters are priced in 16 bits; TRL loads them in float32 "
            "unless told, at twice the memory",
            file=name,
            field="dtype",
            value=settings["dtype"],
            allowed="bfloat16, float16, auto",
        )


def _translated(settings: Settings, others: Found, name: str) -> Found:
    """TRL's arguments as the files that accelerate's target writes."""
    half = true(settings, "bf16", absent=not true(settings, "fp16"))
    training = {
        key: value for key, value in settings.items() if key in trainer_arguments()
    }
    scaled = half or true(settings, "fp16")
    places = {} if scaled or others.zero else {"mixed_precision": "no"}
    return replace(
        others,
        places=others.places or places,
        training={**training, "bf16": half},
        run=_run(settings, name, by_deepspeed=others.by_deepspeed),
        name=name,
    )


def _run(settings: Settings, name: str, *, by_deepspeed: bool) -> dict[str, Any]:
    """run.yaml of the same run."""
    lengths = (key for key in LENGTHS if settings.get(key) is not None)
    fields: dict[str, Any] = {
        "seq_len": whole(settings, next(lengths, "max_length"), name, LENGTH),
        "weights": _format(settings["dtype"]),
        "attention": settings.get("attn_implementation"),
        "loss": "chunked",
    }
    lora, bits = adapters_of(settings)
    if not lora:
        return fields
    named = lora["target_modules"]
    lora |= {
        "r": whole(settings, "lora_r", name, RANK),
        "target_modules": "all-linear" if list(named) == ["all-linear"] else named,
    }
    return fields | adapted(lora, bits, wide=not (by_deepspeed or bits))


def _format(dtype: object) -> str:
    """Format of the weights; bfloat16 where the checkpoint decides it. [text]."""
    return str(dtype) if dtype in ("float32", "float16") else "bfloat16"
