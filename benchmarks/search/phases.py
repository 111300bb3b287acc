"""Time that a search spends in each phase, by timing the functions it calls."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from time import perf_counter
from typing import Any
from unittest.mock import patch

from planner.planning import optimize
from planner.search import first_tier
from planner.search.incumbents import Incumbents
from planner.search.space.space import Enumerator
from planner.search.variant import BestFirst

PHASES: dict[str, tuple[Any, str]] = {
    "enumerate": (Enumerator, "listing"),
    "price": (first_tier, "price_meshes"),
    "bound": (first_tier, "space_bounds"),
    "refine": (BestFirst, "_refine"),
    "solve": (BestFirst, "_solve"),
    "report": (optimize, "_plans"),
}
"""Each phase with the function that is called for it; none calls another."""
FOUND = (Incumbents, "add")
"""Method that a search calls with every plan that it keeps."""


class Phases:
    """Wall time by phase, and time of the first plan. [s]."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.first_plan: float | None = None
        """Time of the first plan by ``time.perf_counter``. [s]"""

    @property
    def report(self) -> float:
        """Time that the report took. [s]."""
        return self.seconds["report"]

    @contextmanager
    def watch(self) -> Iterator[None]:
        """Time the phases of every search inside the block."""
        with ExitStack() as stack:
            for name, (owner, attribute) in PHASES.items():
                call = self._timed(name, getattr(owner, attribute))
                stack.enter_context(patch.object(owner, attribute, call))
            owner, attribute = FOUND
            call = self._noted(getattr(owner, attribute))
            stack.enter_context(patch.object(owner, attribute, call))
            yield

    def _noted(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def noted(*args: Any, **named: Any) -> Any:
            if self.first_plan is None:
                self.first_plan = perf_counter()
            return call(*args, **named)

        return noted

    def _timed(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*args: Any, **named: Any) -> Any:
            start = perf_counter()
            try:
                return call(*args, **named)
            finally:
                self.seconds[name] += perf_counter() - start

        return timed
