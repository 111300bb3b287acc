"""A number by its name: the terms of a step, of a cause, of memory or a part of it."""

from planner.cost.estimate.pricing import Priced
from planner.cost.why.memory import PARTS, MemoryTerms
from planner.cost.why.step import StepTerms
from planner.cost.why.terms import Term
from planner.errors import BadInputError, did_you_mean
from planner.specs.answer.estimate import WAIT_WORDS, TimeBreakdown

STEP, MEMORY = "step_time", "memory"
CAUSES = (*TimeBreakdown.model_fields, *WAIT_WORDS)
NAMES = (STEP, *CAUSES, MEMORY, *PARTS)
"""Numbers whose terms can be asked for. [text]"""


def check_name(name: str) -> None:
    """Refuse a number that has no terms."""
    if name in NAMES:
        return
    raise BadInputError(
        f"no number of a prediction has this name; {did_you_mean(name, NAMES)}",
        field="--why",
        value=name,
        allowed=", ".join(NAMES),
    )


def terms_of(priced: Priced, name: str) -> Term:
    """Terms of a number of one priced layout.

    Args:
        priced: The layout with its row of the table.
        name: One of ``NAMES``. [text]

    Returns:
        The number as a tree. [s] or [GiB]
    """
    check_name(name)
    term = _terms(priced, name)
    own = "; ".join(priced.pricing.framework.by_hand)
    return term.model_copy(update={"stack": {"set by the job": own}}) if own else term


def _terms(priced: Priced, name: str) -> Term:
    if name == STEP:
        return StepTerms(priced).whole
    if name in CAUSES:
        return StepTerms(priced).cause(name)
    memory = MemoryTerms(priced)
    return memory.whole if name == MEMORY else memory.part(name)
