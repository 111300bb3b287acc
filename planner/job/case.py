"""A job with everything needed to resolve it again after a change."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Self

from planner.cost.pricing import Pricing
from planner.cost.workload import Workload
from planner.hardware.reading.files import Catalog
from planner.job.calibration_file import CalibrationFile
from planner.job.resolve import resolve
from planner.job.variants import variants
from planner.specs.job import JobSpec
from planner.specs.reading.read import reassigned

Edit = Callable[[Workload], Workload]
"""A change of a resolved job that no spec can express."""


@dataclass(frozen=True)
class Case:
    """A job with everything needed to resolve it again after a change.

    Attributes:
        spec: Spec as read, with `--set` put in. [-]
        file: File of the job, as the user named it. [text]
        base: Folder that relative paths in the spec start from. [-]
        catalog: Files of facts that names are looked up in. [-]
        calibration: Calibration that the user measured, or None. [-]
        edits: Changes of the resolved job, in order. [-]
    """

    spec: JobSpec
    file: str
    base: Path
    catalog: Catalog
    calibration: CalibrationFile | None = None
    edits: tuple[Edit, ...] = ()

    @cached_property
    def workloads(self) -> tuple[Workload, ...]:
        """The job under each framework it may run under, shape (frameworks,)."""
        found = resolve(
            self.spec,
            file=self.file,
            base=self.base,
            catalog=self.catalog,
            calibration=self.calibration,
        )
        for edit in self.edits:
            found = tuple(edit(workload) for workload in found)
        return found

    @cached_property
    def variants(self) -> tuple[Pricing, ...]:
        """The job as a search may settle it, shape (variants,).

        Raises:
            BadInputError: A listed setting is impossible, or nothing can run the job.
        """
        return variants(self.workloads)

    def assigned(self, assignments: Sequence[str]) -> Self:
        """The job with fields of the spec replaced."""
        spec = reassigned(
            self.spec,
            assignments,
            base=self.base,
            file=self.file,
            catalog=self.catalog,
        )
        return replace(self, spec=spec)

    def edited(self, edit: Edit) -> Self:
        """The job with the resolved form changed."""
        return replace(self, edits=(*self.edits, edit))
