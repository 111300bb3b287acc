"""One plan of an answer on its own, as emitters take it."""

from collections.abc import Mapping
from importlib.metadata import version

from planner import __version__
from planner.specs.answer.result import Plan, RankedPlan


def alone(spec: Mapping[str, object], plan: RankedPlan) -> Plan:
    """Take a plan out of its answer."""
    versions = {name: version(name) for name in ("ortools", "numpy")}
    return Plan(
        spec=dict(spec),
        layout=plan.layout,
        estimate=plan.estimate,
        versions={"planner": __version__, **versions},
    )
