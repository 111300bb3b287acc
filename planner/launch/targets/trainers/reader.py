"""Reads the file of a trainer on accelerate into a layout and training."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from planner.errors import BadInputError
from planner.frameworks.accelerate.harmless import harmless
from planner.frameworks.accelerate.launch.known import READ as OF_TRAINER
from planner.frameworks.accelerate.launch.known import under_todays_names
from planner.frameworks.accelerate.switches import true
from planner.frameworks.accelerate.together import refuse_together
from planner.frameworks.transformers import strange_attention
from planner.launch.brief import Reading
from planner.launch.shell.started import Started, changed, started
from planner.launch.targets.accelerate.files import Found, found, parsed
from planner.launch.targets.accelerate.reader import reading_of
from planner.launch.targets.trainers.dialect import dialect
from planner.launch.unknown import CHANGES, NOT_PRICED, Unknown, unjudged

Settings = Mapping[str, Any]
Files = Mapping[str, str]


@dataclass(frozen=True)
class Run:
    """A run of a trainer: settings, and the files that lie with them.

    Attributes:
        settings: Settings of file and command, with defaults. [-]
        file: Name of the file. [text]
        others: Other files, by the library that reads them. [-]
        files: Text of every file by name. [text]
    """

    settings: Settings
    file: str
    others: Found
    files: Files


class TrainerReader:
    """Reads files in a trainer's dialect; a trainer overrides where it differs.

    The files become those that accelerate's own target writes for the same run.
    """

    def __init__(self, target: str) -> None:
        self.target, self.dialect = target, dialect(target)

    def reads(self, files: Files) -> bool:
        """Tell if a file is the trainer's, or a command starts it. [-]."""
        return self.marked(files) is not None

    def read(self, files: Files) -> Reading:
        """Read the trainer's file, the command and the files beside them.

        Raises:
            BadInputError: No file is the trainer's, or a value is wrong.
        """
        command = self.command(files)
        file = self.own_file(files, command)
        if file is None:
            raise BadInputError(
                f"is no configuration of {self.dialect.title}",
                file=", ".join(files),
                allowed=self.dialect.wanted,
            )
        own = parsed(files[file]) if file in files else {}
        settings = self.settings(own, command, file)
        refuse_together(settings, self.dialect.apart, file)
        rest = {name: text for name, text in files.items() if name != file}
        others = self.others(rest, settings, command)
        run = Run(settings, file, others, files)
        self.refuse(run)
        return self.reading(run)

    def command(self, files: Files) -> Started:
        """The command that starts the trainer, if one does."""
        return self.started_by(files, self.dialect.program)

    def started_by(self, files: Files, program: re.Pattern[str]) -> Started:
        """The command that starts a program with the trainer's settings."""
        of_trainer = OF_TRAINER if self.dialect.of_trainer else frozenset()
        return started(files, program, self.dialect.read | of_trainer)

    def own_file(self, files: Files, command: Started) -> str | None:
        """Name of the trainer's file; None without one."""
        del command
        return self.marked(files)

    def marked(self, files: Files) -> str | None:
        """Name of the first file with enough marks; None without one."""
        marks, others = self.dialect.marks, self.dialect.others
        for name, text in files.items():
            if name.endswith((".yaml", ".yml", ".json")):
                keys = parsed(text).keys()
                if len(marks & keys) >= self.dialect.needed and not others & keys:
                    return name
        return None

    def settings(self, own: Settings, command: Started, file: str) -> dict[str, Any]:
        """Settings of file and command under today's names, with defaults."""
        of_launcher, renamed = self.dialect.of_launcher, self.dialect.renamed
        said = {n: v for n, v in command.given.items() if n not in of_launcher}
        both = changed(own, said)
        if self.dialect.of_trainer:
            both = under_todays_names(both, file)
        today = {renamed.get(name, name): value for name, value in both.items()}
        return {**self.dialect.defaults, **today}

    def others(self, files: Files, settings: Settings, command: Started) -> Found:
        """Files beside the trainer's own."""
        del settings
        return found(files, command.launcher)

    def refuse(self, run: Run) -> None:
        """Refuse settings that stop a run before the first step."""

    def reading(self, run: Run) -> Reading:
        """Settings of the run."""
        reading = reading_of(self.translated(run), self.target)
        spelled = self.dialect.spelled
        of_trainer = (
            replace(unknown, name=spelled.get(unknown.name, unknown.name))
            for unknown in reading.unknown
        )
        return replace(
            reading,
            training={**reading.training, **self.training(run)},
            gpus=self.ranks(run) or reading.gpus,
            named=str(run.settings.get(self.dialect.weights, "")),
            ignored=(*reading.ignored, *self.ignored(run.settings)),
            unknown=(*of_trainer, *self.unknown(run)),
        )

    def translated(self, run: Run) -> Found:
        """Files that accelerate's target writes for the same run."""
        raise NotImplementedError

    def training(self, run: Run) -> dict[str, Any]:
        """Fields of a training block that accelerate's files do not say."""
        del run
        return {}

    def ranks(self, run: Run) -> int | None:
        """Ranks that the settings count; None where they count none. [1]."""
        del run
        return None

    def harmless(self) -> frozenset[str]:
        """Settings that change no layout, time or memory. [text]."""
        return harmless(self.target)

    def ignored(self, settings: Settings) -> Iterator[str]:
        """Settings that are given and change nothing, with their values."""
        names = self.harmless()
        yield from (f"{name} {v}" for name, v in settings.items() if name in names)

    def known(self) -> frozenset[str]:
        """Settings of the trainer alone, each of which some list judges. [text]."""
        return frozenset()

    def strange(self, settings: Settings) -> Iterator[Unknown]:
        """Settings that the trainer has not."""
        raise NotImplementedError

    def otherwise(self, run: Run) -> Iterator[Unknown]:
        """Values that are not priced, and files that are not there."""
        del run
        yield from ()

    def unknown(self, run: Run) -> Iterator[Unknown]:
        """Settings that are not read, and settings that are not priced."""
        settings, unpriced = run.settings, self.dialect.unpriced
        yield from self.strange(settings)
        judged = self.dialect.read | unpriced | self.harmless()
        yield from unjudged(settings, self.known(), judged)
        for name in sorted(unpriced & settings.keys()):
            if settings[name] not in (None, False):
                yield Unknown(name, settings[name], CHANGES)
        kernel = settings.get("attn_implementation")
        if "attn_implementation" in self.dialect.read and strange_attention(kernel):
            yield Unknown("attn_implementation", kernel, NOT_PRICED)
        for name, values in self.dialect.priced.items():
            if settings.get(name) not in (None, *values):
                yield Unknown(name, settings[name], NOT_PRICED)
        yield from self.otherwise(run)


def adapted(adapters: Settings, bits: Settings, *, wide: bool) -> dict[str, Any]:
    """Part of run.yaml that says how a run of adapters trains.

    Args:
        adapters: Fields of LoraConfig. [-]
        bits: Fields of BitsAndBytesConfig; empty for frozen weights of 16 bits. [-]
        wide: True where adapters train in fp32. [-]
    """
    fields = {"adapters": adapters, "adapters_in_fp32": wide}
    return fields | ({"quantization": bits} if bits else {})


def bits_of(
    width: object, settings: Settings, kind: str, double: str
) -> dict[str, Any]:
    """BitsAndBytesConfig of frozen weights, whose scales are quantised unless told.

    Args:
        width: Bits of a weight: 4 or 8; others where they are not quantised. [bit]
        settings: Settings that say how. [-]
        kind: Setting of the 4-bit format. [text]
        double: Setting of quantised scales. [text]
    """
    if width == 8:
        return {"load_in_8bit": True}
    if width != 4:
        return {}
    return {
        "load_in_4bit": True,
        "bnb_4bit_quant_type": settings.get(kind, "nf4"),
        "bnb_4bit_use_double_quant": true(settings, double, absent=True),
    }
