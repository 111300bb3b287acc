"""Layouts that a writer of launch files for the framework can express."""

from planner.cost.workload import Workload
from planner.specs.frameworks.lacks import View
from planner.specs.layouts.layout import Layout
from planner.verify.breach import Breach, Breaches


def writer_breaches(workload: Workload, layout: Layout) -> Breaches:
    """Check that some writer can express both the job and the layout.

    Yields:
        Records of the writer that lacks least. Nothing for a job that no writer can
        express. [-]
    """
    asked, view = workload.asked, View(layout)
    every = [tuple(writer.lacks(asked)) for writer in workload.framework.writers]
    able = [lacks for lacks in every if all(lack.when for lack in lacks)]
    missing = [[lack for lack in lacks if lack.holds(view)] for lacks in able]
    for lack in min(missing, key=len, default=[]):
        value = lack.shown(view)
        wordless = f"{workload.framework.name} has no words for {lack.field} = {value}"
        yield Breach(lack.field, value, f"{wordless}: {lack.feature}", lack.allowed)
