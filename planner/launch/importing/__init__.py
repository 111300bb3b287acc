"""From launch files to a spec with a layout: files, readings, specs, reports."""

from planner.launch.importing.fleet import UserOverrides
from planner.launch.importing.priced import refuse_unpriced
from planner.launch.importing.read import read_launch, read_texts
from planner.launch.importing.spec import import_spec, settled
from planner.launch.importing.told import report, spec_text

__all__ = (
    "UserOverrides",
    "import_spec",
    "read_launch",
    "read_texts",
    "refuse_unpriced",
    "report",
    "settled",
    "spec_text",
)
