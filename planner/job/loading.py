"""A job as a user gives it: read, with every name looked up."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from planner.cost.workload import Workload
from planner.errors import BadInputError
from planner.hardware.reading.files import Catalog
from planner.job.calibration_file import read_calibration
from planner.job.case import Case
from planner.job.expressible import unwritable
from planner.job.resolve import cautions, resolved_spec
from planner.job.variants import with_settings
from planner.specs.answer.result import RankedPlan
from planner.specs.job import JobSpec
from planner.specs.layouts.layout import PartialLayout
from planner.specs.reading.read import locate, read_spec


@dataclass(frozen=True)
class Job(Case):
    """A job of the command line or of Python.

    Attributes:
        measured_in: File of the calibration, for messages. [text]
    """

    measured_in: str = ""

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about legal but unusual settings and the calibration. [text]."""
        said, gpu = cautions(self.workloads[0]), self.workloads[0].gpu.name
        if self.calibration is None or gpu in self.calibration.measured:
            return said
        return (*said, f"{self.measured_in} has nothing of {gpu}; it changes nothing")

    def asking(self, spec: JobSpec) -> Self:
        """Look up the names of another spec on the same files.

        Raises:
            BadInputError: A name is wrong, or the job does not train.
        """
        job = replace(self, spec=spec)
        assert job.workloads
        return job

    def workload_of(self, plan: RankedPlan | None) -> Workload:
        """The workload of a plan, with the plan's settings.

        Without a plan, the first under a framework that can run the job.

        Args:
            plan: A plan of this job, or None. [-]
        """
        if plan is None:
            able = (each for each in self.workloads if not unwritable(each))
            return next(able, self.workloads[0])
        chosen = str(plan.estimate.stack.get("framework"))
        return self.workload_under(chosen, plan.settings)

    def workload_under(self, framework: str, settings: Mapping[str, str]) -> Workload:
        """The workload under a framework, with settings that a search chose."""
        by_name = {w.framework.name: w for w in self.workloads}
        return with_settings(by_name.get(framework, self.workloads[0]), settings)

    def resolved(self, plan: RankedPlan | None) -> dict[str, object]:
        """The spec with names replaced by the entries that they stand for.

        Args:
            plan: The plan that decides framework and settings, or None. [-]
        """
        return resolved_spec(self.spec, self.workload_of(plan), base=self.base)


def load(
    path: Path,
    assignments: Sequence[str] | None,
    catalog: Catalog,
    calibration: Path | None = None,
) -> Job:
    """Read a job and look up its names.

    Args:
        path: YAML file, or the name of a known job. [-]
        assignments: `a.b.c=value` each. [text]
        catalog: Files of facts. [-]
        calibration: File of what the user measured, or None. [-]

    Raises:
        BadInputError: The file, a field or a name is wrong.
    """
    spec = read_spec(path, assignments or (), catalog)
    return from_spec(spec, str(path), locate(path).parent, catalog, calibration)


def from_spec(
    spec: JobSpec,
    file: str,
    base: Path,
    catalog: Catalog,
    calibration: Path | None = None,
) -> Job:
    """Look up the names of a job that was read.

    Args:
        spec: The job. [-]
        file: File of the job, for messages. [text]
        base: Folder that relative paths in the job start from. [-]
        catalog: Files of facts. [-]
        calibration: File of what the user measured, or None. [-]

    Raises:
        BadInputError: A name is wrong, or the job does not train.
    """
    return as_read(spec, file, base, catalog, calibration).asking(spec)


def as_read(
    spec: JobSpec,
    file: str,
    base: Path,
    catalog: Catalog,
    calibration: Path | None = None,
) -> Job:
    """Take a job that was read, without a look at its names.

    Args:
        spec: The job. [-]
        file: File of the job, for messages. [text]
        base: Folder that relative paths in the job start from. [-]
        catalog: Files of facts. [-]
        calibration: File of what the user measured, or None. [-]
    """
    own = None if calibration is None else read_calibration(calibration, catalog)
    return Job(spec, file, base, catalog, own, measured_in=str(calibration))


def workload_for(job: Job, given: PartialLayout) -> Workload:
    """The one workload that a layout is priced for.

    Raises:
        BadInputError: There is no layout, or the job has several frameworks.
    """
    if not given.given():
        raise BadInputError(
            "there is no layout to price",
            file=job.file,
            field="layout",
            allowed="--layout tp=8,pp=2,... or a layout block in the spec",
        )
    return workload_of_one(job)


def workload_of_one(job: Job) -> Workload:
    """The workload of a job that names one framework."""
    if len(job.workloads) > 1:
        raise BadInputError(
            "a layout is priced under one framework",
            file=job.file,
            field="framework",
            value=job.spec.framework,
            allowed=", ".join(w.framework.name for w in job.workloads),
        )
    return job.workloads[0]
