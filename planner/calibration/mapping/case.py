"""A measured row with the job and the layout that stand for it."""

from dataclasses import dataclass, replace

from planner.calibration.accuracy.logged_job import planned_job
from planner.calibration.mapping.measurements import Measured
from planner.calibration.rows.rows import Row
from planner.cost.workload import Workload
from planner.job.calibrated import calibrated
from planner.job.calibration_file import CalibrationFile
from planner.specs.layouts.layout import PartialLayout


@dataclass(frozen=True)
class Case:
    """A row with the job and the layout that stand for it."""

    row: Row
    workload: Workload
    """The job: of a planned run as predicted, else on the stack as documented. `under`
    gives the job of either as predicted. [-]"""
    layout: PartialLayout
    measured: Measured
    stack: str
    """Name of the software stack. [text]"""
    flags: tuple[str, ...]
    """Assumptions that the row needed. [text]"""

    def under(self, own: CalibrationFile | None) -> "Case":
        """The case as `planner predict` prices its job.

        Args:
            own: The user's calibration, or None. [-]
        """
        if self.row.spec is None:
            campaign = self.row.software.campaign or ""
            return replace(self, workload=calibrated(self.workload, own, campaign))
        catalog = self.workload.topology.cluster.catalog
        return replace(self, workload=planned_job(self.row, catalog, own)[0])
