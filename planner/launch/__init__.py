"""Writes launch folders from plans, and reads launch files back into specs."""

from planner.launch.emit import emit, emit_own, target_names
from planner.launch.folder import check_folder, write_folder
from planner.launch.gaps import require_written
from planner.launch.read_plan import PlanFile, partial_of, plan_file, read_plan

__all__ = [
    "PlanFile",
    "check_folder",
    "emit",
    "emit_own",
    "partial_of",
    "plan_file",
    "read_plan",
    "require_written",
    "target_names",
    "write_folder",
]
