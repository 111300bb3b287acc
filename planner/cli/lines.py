"""One line on several GPUs: `planner compare --model M --on A --on B`."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from planner.errors import BadInputError
from planner.hardware.reading.files import Catalog
from planner.job.one_line import job_of
from planner.planning.comparison.read import Given, given_by

_NEEDED = (
    "SPEC..., or --model and --on, as --model llama-3.1-8b --on 1xl40s --on 1xh100"
)

LineModel = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="M",
        help="A preset, a hub id or a config.json, without a SPEC.",
        show_default=False,
    ),
]
On = Annotated[
    list[str] | None,
    typer.Option(
        "--on",
        metavar="COUNTxGPU",
        help="GPUs of a candidate, as 8xh100, or a cluster; repeatable.",
        show_default=False,
    ),
]
LineMethod = Annotated[
    str | None,
    typer.Option("--method", metavar="full|lora|qlora", help="Method of training."),
]
SeqLen = Annotated[
    str | None,
    typer.Option("--seq-len", metavar="N", help="Tokens of a sequence, as 8k."),
]
GlobalBatch = Annotated[
    str | None,
    typer.Option("--global-batch", metavar="N", help="Sequences of a step."),
]
LineFramework = Annotated[
    str | None,
    typer.Option("--framework", metavar="F", help="Framework, or any; by task."),
]
Tokens = Annotated[
    str | None,
    typer.Option("--tokens", metavar="T", help="Tokens of the run, as 100M."),
]


@dataclass(frozen=True)
class Line:
    """A job without a file, on the GPUs of each candidate."""

    model: str | None
    on: Sequence[str] | None
    method: str | None
    seq_len: str | None
    global_batch: str | None
    framework: str | None
    tokens: str | None

    def given(
        self, specs: Sequence[Path], catalog: Catalog
    ) -> tuple[list[Given], tuple[str, ...]]:
        """Jobs of the files, or else of the line, and what the line left open.

        Args:
            specs: Job files, or one purchase file. [path]
            catalog: Files of facts. [-]

        Raises:
            BadInputError: Files and a line are given, half a line, or neither; or a
                name is not known.
        """
        said = [name for name, value in vars(self).items() if value]
        if specs and said:
            option = f"--{said[0].replace('_', '-')}"
            raise BadInputError("goes without a SPEC", field=option, allowed=_NEEDED)
        if specs:
            return [given_by(path) for path in specs], ()
        if self.model is None or not self.on:
            raise BadInputError("no job is given", allowed=_NEEDED)
        lines = [self._job(self.model, on, catalog) for on in self.on]
        words = dict.fromkeys(text for _, told in lines for text in told)
        return [job for job, _ in lines], tuple(words)

    def _job(
        self, model: str, on: str, catalog: Catalog
    ) -> tuple[Given, tuple[str, ...]]:
        """The job on the GPUs of one candidate."""
        line = job_of(
            model,
            on,
            catalog,
            method=self.method or "full",
            seq_len=self.seq_len,
            global_batch=self.global_batch,
            framework=self.framework,
            tokens=self.tokens,
        )
        return Given(on, Path(on), line.fields), line.told()
