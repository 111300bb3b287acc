"""A question to planner: fields go in, an answer comes out, within limits."""

import time
from abc import ABC, abstractmethod
from math import inf
from typing import Generic, TypeVar

from planner.planning.optimize import Progress
from planner.questions.inputs.limits import memory_bytes
from planner.questions.inputs.progress import OnProgress, telling
from planner.search.stop import Stop

Answered = TypeVar("Answered", covariant=True)  # noqa: PLC0105  # names the answer


def untold(_: Progress) -> None:
    """Tell nobody of the state of a search."""


class Question(ABC, Generic[Answered]):
    """A question with all its fields; Python, command line and pages ask it alike."""

    @abstractmethod
    def answer(self, stop: Stop, told: OnProgress = untold) -> Answered:
        """Answer the question.

        Args:
            stop: Ends the searches. [-]
            told: Called about ten times a second with the state of a search. [-]
        """

    def within(
        self,
        seconds: float,
        memory: str | None = None,
        on_progress: OnProgress | None = None,
    ) -> Answered:
        """Answer the question within limits.

        Args:
            seconds: Longest time. [s]
            memory: Most memory of this process and its workers; None: any. [text]
            on_progress: Told of the state of a search; may end it. [-]

        Raises:
            BadInputError: The memory limit is no size, or too small to work in.
        """
        most = inf if memory is None else memory_bytes(memory)
        stop = Stop(time.monotonic() + seconds, most)
        return self.answer(stop, telling(on_progress, stop))
