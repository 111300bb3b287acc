"""The job of a form: one line, as the command line reads it."""

from dataclasses import dataclass
from pathlib import Path

from planner.hardware.reading.escape import yaml_text
from planner.hardware.reading.files import SHIPPED
from planner.job.loading import Job, as_read
from planner.job.one_line import ORIGIN, job_of
from planner.models import preset_names
from planner.specs.job import JobSpec
from planner.specs.reading.layout_line import read_layout
from planner.specs.reading.read import assigned, portable
from planner.web.fields import ANY, limited
from planner.web.question import Question


@dataclass(frozen=True)
class Line:
    """A job that a form describes.

    Attributes:
        spec: The job. [-]
        assumed: Words for what the form leaves open. [text]
    """

    spec: JobSpec
    assumed: tuple[str, ...]

    def unasked(self) -> Job:
        """The job without a look at its names."""
        return as_read(self.spec, ORIGIN, Path(), SHIPPED)

    def job(self) -> Job:
        """Look up the names of the job."""
        return self.unasked().asking(self.spec)

    def text(self) -> str:
        """Write the job as a file that any command takes.

        Returns:
            Fields below what is assumed. [YAML]
        """
        head = [f"Assumed: {'; '.join(self.assumed)}"] if self.assumed else []
        return yaml_text(portable(self.spec, Path(), preset_names(), SHIPPED), head)


def line_of(question: Question, on: str | None = None) -> Line:
    """Read the job of a form.

    Raises:
        BadInputError: Model, GPUs, network or tokens are unknown, or the layout is
            wrong.
    """
    made = job_of(
        question.get("model"),
        on or question.get("on"),
        SHIPPED,
        method=question.get("method") or "full",
        seq_len=question.get("seq_len") or None,
        global_batch=question.get("global_batch") or None,
        framework=question.get("framework") or None,
        tokens=question.get("tokens") or None,
        network=question.get("network") or None,
    )
    risk = question.get("risk")
    sets = [limited(risk)] if risk and risk != ANY else []
    layout = question.get("layout")
    own = read_layout(layout) if layout else None
    spec = assigned(made.fields, sets, Path(), ORIGIN, SHIPPED, own)
    return Line(spec, made.told())


def is_robust(question: Question) -> bool:
    """Tell if the risk of running out of memory is limited.

    Returns:
        False where any risk is taken. [-]
    """
    return question.get("risk") != ANY
