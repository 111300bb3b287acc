"""Modules and facts that every worker needs: read once, shared by all forks.

The process that workers are forked from imports this module.
"""

from planner.hardware.reading.files import SHIPPED
from planner.job.one_line import job_of
from planner.models import preset_hub_ids, preset_names
from planner.questions import explain as _explain
from planner.questions.inputs.given import looked_up
from planner.questions.plan import Plan
from planner.report import plan as _plan
from planner.search.stop import Stop
from planner.web.workers import work as _work

NEEDED = (_explain, _plan, _work)
"""Rooms that answers come from."""


def warm() -> None:
    """Plan a small job, so that tables that never change are read."""
    preset_names()
    preset_hub_ids()
    job = job_of("llama-3.2-1b", "8xh100", SHIPPED).fields
    read = looked_up(job, None, SHIPPED, None)
    Plan(read, top=1, robust=False).answer(Stop()).page(0.0)


warm()
