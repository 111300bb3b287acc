"""Refusal of an objective by commands that know the fastest plan alone."""

from planner.errors import BadInputError
from planner.specs.job import JobSpec


def refuse_objective(spec: JobSpec, instead: str) -> None:
    """Refuse a job that asks for another plan than the fastest."""
    if spec.objective != "throughput":
        raise BadInputError(
            f"{instead}; planner plan and planner sweep search for least "
            f"{spec.objective}",
            field="objective",
            value=spec.objective,
            allowed="throughput",
        )
