"""A question to planner: fields go in, an answer comes out, within limits."""

import time
from abc import ABC, abstractmethod
from math import inf
from typing import Generic, TypeVar

from planner.questions.inputs.limits import memory_bytes
from planner.questions.inputs.progress import OnProgress
from planner.search.stop import Stop

Answered = TypeVar("Answered", covariant=True)  # noqa: PLC0105  # names the answer


class Question(ABC, Generic[Answered]):
    """A question with all its fields; Python, command line and pages ask it alike."""

    @abstractmethod
    def answer(self, stop: Stop, told: OnProgress | None = None) -> Answered:
        """Answer the question.

        Args:
            stop: Ends the searches. [-]
            told: Called about ten times a second with the state of a search; may raise
                `StopSearch` to end it. [-]
        """

    def within(
        self,
        seconds: float,
        memory: str | None = None,
        told: OnProgress | None = None,
    ) -> Answered:
        """Answer the question within limits.

        Args:
            seconds: Longest time. [s]
            memory: Most memory of this process and its workers; None: any. [text]
            told: As for `answer`. [-]

        Raises:
            BadInputError: The memory limit is no size, or too small to work in.
        """
        most = inf if memory is None else memory_bytes(memory)
        return self.answer(Stop(time.monotonic() + seconds, most), told)
