"""Numbers of the catalog held against each other, for `planner catalog --check`."""

from planner.hardware.checks.findings import Finding, Standing
from planner.hardware.checks.gpus import gpu_findings
from planner.hardware.checks.links import link_findings
from planner.hardware.checks.quotes import quote_findings, standings
from planner.hardware.reading.files import Catalog

__all__ = ["Finding", "Standing", "findings", "standings"]


def findings(catalog: Catalog) -> tuple[Finding, ...]:
    """Everything of a catalog that breaks a rule of physics or of a family.

    Returns:
        GPUs, then links, then prices; those with a reason among them. [-]
    """
    return (
        *gpu_findings(catalog),
        *link_findings(catalog),
        *quote_findings(catalog),
    )
