"""Sources of a job, which all commands share: a file, stdin, or one line."""

import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from planner.cli.options import Assignments, Calibration, Hardware
from planner.errors import BadInputError
from planner.hardware.reading.documents import is_there
from planner.hardware.reading.escape import yaml_text
from planner.hardware.reading.files import Catalog
from planner.job.loading import Job, as_read
from planner.job.one_line import ORIGIN, OneLine, job_of
from planner.job.resolve import about, planned_as
from planner.models import preset_names
from planner.questions.inputs.overlay import catalog_with
from planner.questions.outputs.files import write_whole
from planner.specs.job import JobSpec
from planner.specs.layouts.layout import PartialLayout
from planner.specs.reading.layout_line import read_layout
from planner.specs.reading.read import (
    Fields,
    assigned,
    locate,
    mapping_of,
    portable,
    read_spec,
)

STDIN = "-"
"""SPEC that stands for stdin. [text]"""
_EXAMPLE = "--model Qwen/Qwen2.5-7B --on 8xh100"
_NEEDED = f"SPEC, or --model and --on, as {_EXAMPLE}"
_BESIDE = {
    "method": "training.method",
    "seq_len": "training.seq_len",
    "global_batch": "training.global_batch",
    "framework": "framework",
    "tokens": "training.tokens",
    "network": "cluster.nic",
}
"""Options that go with --model and --on, to the field that --set sets in a SPEC."""


def _option(name: str, metavar: str, text: str, **more: Any) -> Any:
    return typer.Option(name, metavar=metavar, help=text, show_default=False, **more)


@dataclass(frozen=True)
class Given:
    """A job as it was given.

    Attributes:
        spec: The job, assignments put in. [-]
        file: File of the job, for messages. [text]
        base: Folder that relative paths in the job start from. [-]
        catalog: Files of facts. [-]
        assumed: Words for what the command line left open. [text]
        source: Options of the command line. [-]
    """

    spec: JobSpec
    file: str
    base: Path
    catalog: Catalog
    assumed: tuple[str, ...]
    source: "Source"

    def job(self) -> Job:
        """Look up the names of the job, and write the job where `--save` says.

        Raises:
            BadInputError: A name is wrong, or the job does not train.
        """
        found = self.unasked().asking(self.spec)
        self.save()
        return found

    def unasked(self) -> Job:
        """The job without a look at its names."""
        own = self.source.calibration
        return as_read(self.spec, self.file, self.base, self.catalog, own)

    def save(self) -> None:
        """Write the job to the file of `--save`, where there is one."""
        to = self.source.save
        if to is None:
            return
        told = portable(self.spec, self.base, preset_names(), self.catalog)
        beside = {"--hardware": self.source.hardware}
        beside |= {"--calibration": self.source.calibration}
        rest = [f"{name} {path}" for name, path in beside.items() if path is not None]
        head = [f"With {' '.join(rest)}"] if rest else []
        head += [f"Assumed: {'; '.join(self.assumed)}"] if self.assumed else []
        write_whole(to, yaml_text(told, head).rstrip("\n"))


@dataclass(frozen=True)
class Source:
    """Options that say which job; each field is an option of the command line."""

    spec: Annotated[
        Path | None,
        typer.Argument(
            metavar="[SPEC]",
            help="YAML file of a job, the name of one in configs/jobs, or - for stdin; "
            "or none, with --model and --on.",
            show_default=False,
        ),
    ] = None
    model: Annotated[
        str | None,
        _option("--model", "M", "A preset, a hub id or a config.json, without a SPEC."),
    ] = None
    on: Annotated[
        str | None,
        _option(
            "--on",
            "COUNTxGPU",
            "GPUs of --model, as 8xh100 or '2 nodes of 8 A100-40 over 25 GbE'; or a "
            "cluster.",
        ),
    ] = None
    method: Annotated[
        str | None,
        _option("--method", "full|lora|qlora", "Method of training; full unless said."),
    ] = None
    seq_len: Annotated[
        str | None,
        _option("--seq-len", "N", "Tokens of a sequence, as 8k; by task unless said."),
    ] = None
    global_batch: Annotated[
        str | None,
        _option("--global-batch", "N", "Sequences of a step; by task."),
    ] = None
    framework: Annotated[
        str | None, _option("--framework", "F", "Framework, or any; by task.")
    ] = None
    tokens: Annotated[
        str | None,
        _option("--tokens", "T", "Tokens of the run, as 15T, for time and cost."),
    ] = None
    family: Annotated[
        str | None,
        _option(
            "--as",
            "FAMILY",
            "Plan a model of an unknown architecture as one of FAMILY (a model_type); "
            "a warning names the fields of its config that are left out.",
        ),
    ] = None
    network: Annotated[
        str | None,
        _option("--network", "N", "Network between nodes, as '25 GbE' or '4 x HDR'."),
    ] = None
    save: Annotated[
        Path | None, _option("--save", "JOB.yaml", "Write the job to a file.")
    ] = None
    assignments: Assignments = None
    hardware: Hardware = None
    calibration: Calibration = None

    def assigning(self, assignment: str) -> "Source":
        """The options with one more `--set`."""
        return replace(self, assignments=[*(self.assignments or []), assignment])

    def read(self, layout: str | None = None) -> Given:
        """Read the job from the file, from stdin or from the line.

        Raises:
            BadInputError: No source, two sources, or a field is wrong.
        """
        own = None if layout is None else read_layout(layout)
        catalog = catalog_with(self.hardware)
        self._refuse_two_sources()
        found = self._found(self.assignments or [], catalog, own)
        if self.family is None or self.spec is None:
            return found
        with about(found.file):
            spec = planned_as(found.spec, self.family, found.base)
        return replace(found, spec=spec)

    def _found(
        self, sets: list[str], catalog: Catalog, own: PartialLayout | None
    ) -> Given:
        """The job where it lies, with layout and fields replaced."""
        if self.spec is None:
            self._refuse_said_twice(sets)
            line = self._line(catalog)
            told = _renamed(line.fields, sets)
            spec = assigned(told, sets, Path(), ORIGIN, catalog, own)
            return Given(spec, ORIGIN, Path(), catalog, line.told(sets), self)
        if str(self.spec) == STDIN:
            if sys.stdin is None:
                raise BadInputError("is closed", file="stdin", allowed=_NEEDED)
            text = mapping_of(sys.stdin.read(), "stdin")
            read = assigned(text, sets, Path(), "stdin", catalog, own)
            return Given(read, "stdin", Path(), catalog, (), self)
        spec = read_spec(self.spec, sets, catalog, own)
        base = locate(self.spec).parent
        return Given(spec, str(self.spec), base, catalog, (), self)

    def _refuse_said_twice(self, sets: list[str]) -> None:
        """Refuse a field that an option of the line says, and `--set` again."""
        assigned_to = {one.partition("=")[0].strip() for one in sets}
        for name, path in _BESIDE.items():
            if getattr(self, name) is not None and path in assigned_to:
                option = f"--{name.replace('_', '-')}"
                allowed = f"{option} or --set {path}=..., not both"
                raise BadInputError("is said twice", field=path, allowed=allowed)

    def _line(self, catalog: Catalog) -> OneLine:
        """The job of --model and --on."""
        assert self.model is not None
        assert self.on is not None
        return job_of(
            self.model,
            self.on,
            catalog,
            method=self.method or "full",
            seq_len=self.seq_len,
            global_batch=self.global_batch,
            framework=self.framework,
            tokens=self.tokens,
            network=self.network,
            family=self.family,
        )

    def _refuse_two_sources(self) -> None:
        """Refuse a file beside one line, half a line, and no source at all."""
        if self.spec is None:
            if self.model is None or self.on is None:
                lone = "--on" if self.model is None else "--model"
                alone = f"{lone} stands alone" if self.model or self.on else "no job"
                raise BadInputError(alone, allowed=_NEEDED)
            return
        if str(self.spec) in preset_names() and not is_there(self.spec):
            raise BadInputError(
                f"a model, not a job; give it as --model {self.spec}",
                field=str(self.spec),
                allowed=_NEEDED,
            )
        if self.model is not None or self.on is not None:
            raise BadInputError(
                "SPEC and --model or --on are both given; take one of them out",
                field=str(self.spec),
                allowed=_NEEDED,
            )
        for name, path in _BESIDE.items():
            if getattr(self, name) is not None:
                option = f"--{name.replace('_', '-')}"
                raise BadInputError(
                    f"{option} goes with --model and --on; with SPEC: --set {path}=...",
                    field=option,
                )


def _renamed(told: Fields, assignments: list[str]) -> Fields:
    """Fields of a line; a cluster that is changed says so in its name."""
    cluster = told["cluster"]
    changed = any(one.strip().startswith("cluster.") for one in assignments)
    if changed and isinstance(cluster, dict):
        return told | {"cluster": cluster | {"name": f"{cluster['name']} (changed)"}}
    return dict(told)


def sourced(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that say which job."""
    hints = get_type_hints(Source, include_extras=True)
    names = [each.name for each in fields(Source)]
    own = list(inspect.signature(command).parameters.values())[1:]

    @wraps(command)
    def run(**given: Any) -> None:
        source = Source(**{name: given.pop(name) for name in names})
        command(source, **given)

    ours = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=hints[name]
        )
        for name in names
    ]
    every = [*ours, *own]
    run.__signature__ = inspect.Signature(every)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in every}
    return run


def with_assumed(report: RenderableType, assumed: tuple[str, ...]) -> RenderableType:
    """A report with what the command line left open below it."""
    if not assumed:
        return report
    words = Padding(Text("; ".join(assumed)), (0, 0, 0, 2))
    return Group(report, Text("\nAssumed, where the line does not say"), words)
