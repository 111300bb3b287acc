"""Layouts that are advised: only those that launch files can be written for."""

from planner.cost.workload import Workload
from planner.errors import BadInputError
from planner.planning.prediction.predict import predict
from planner.specs.answer.result import RankedPlan
from planner.specs.layouts.layout import PartialLayout
from planner.verify.writable import writer_breaches


def predict_writable(workload: Workload, partial: PartialLayout) -> RankedPlan:
    """Complete and price a layout that the framework's launch files have words for.

    Raises:
        BadInputError: No legal layout has those degrees, or no writer has words for it.
    """
    plan = predict(workload, partial)
    for breach in writer_breaches(workload, plan.layout):
        raise BadInputError(breach.sentence, field=breach.field, value=breach.value)
    return plan
