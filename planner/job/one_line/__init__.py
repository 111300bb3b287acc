"""Jobs from one line: a model, a count of GPUs, and what is assumed beside them."""

from planner.job.one_line.one_line import ORIGIN, OneLine, fleet_of, job_of
from planner.job.one_line.said import token_count
from planner.job.one_line.tasks import task_named

__all__ = ["ORIGIN", "OneLine", "fleet_of", "job_of", "task_named", "token_count"]
