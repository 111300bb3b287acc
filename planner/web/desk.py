"""The desk: takes questions, asks workers, and keeps the latest answers."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field, replace

from fastapi import Request

from planner.questions.inputs.limits import MEMORY
from planner.web.fields import Form
from planner.web.question import Answered, Fields, Question, Refused, Told
from planner.web.store import Store
from planner.web.workers.pool import Pool

KEPT = 64
"""Answers that are kept. [1]"""
QUICK = 1.0
"""Time of the first search of a what-if. [s]"""
PROVING = 20.0
"""Time of the search that follows, for the proof. [s]"""


class LeftError(Exception):
    """The browser went away."""


@dataclass(frozen=True)
class Limits:
    """Limits of the server.

    Attributes:
        workers: Searches at once. [1]
        waiting: Questions that may wait. [1]
        seconds: Longest search. [s]
        memory: Most memory of a search. [text]
    """

    workers: int = 2
    waiting: int = 32
    seconds: float = 120.0
    memory: str = MEMORY


@dataclass
class Desk:
    """Questions go in, messages and answers come out.

    Attributes:
        limits: Limits of the server. [-]
        pool: The workers. [-]
        texts: Posted rows and logs by their digest. [-]
    """

    limits: Limits
    pool: Pool = field(init=False)
    texts: Store[Fields] = field(default_factory=lambda: Store(KEPT))
    _answers: Store[Answered] = field(default_factory=lambda: Store(KEPT))

    def __post_init__(self) -> None:
        self.pool = Pool(self.limits.workers, self.limits.waiting)

    def question(self, form: Form) -> Question:
        """The question that a form asks."""
        limits = self.limits
        return Question(form.kind, form.asked, limits.seconds, limits.memory)

    def known(self, question: Question) -> Answered | None:
        """Look up an answer that was given.

        Returns:
            The answer, None where it is not kept. [-]
        """
        return self._answers.get((question.kind, question.fields))

    async def ask(
        self, question: Question, request: Request, *, anew: bool = False
    ) -> AsyncGenerator[Told | None, None]:
        """Answer a question for as long as the browser listens.

        Args:
            question: The question. [-]
            request: The request of the browser. [-]
            anew: True to search where an answer is kept too. [-]

        Yields:
            Messages, the answer last; None where a while passed without.

        Raises:
            BusyError: Too many questions wait already.
            LeftError: The browser went away.
        """
        known = None if anew else self.known(question)
        if known is not None:
            yield known
            return
        async with aclosing(self.pool.ask(question)) as messages:
            async for told in messages:
                if await request.is_disconnected():
                    raise LeftError
                if isinstance(told, Answered):
                    limited = replace(told, seconds=question.seconds)
                    self._answers.put((question.kind, question.fields), limited)
                    yield limited
                    return
                yield told

    async def answer(
        self, question: Question, request: Request, *, anew: bool = False
    ) -> Answered | Refused:
        """Wait for the answer to a question.

        Args:
            question: The question. [-]
            request: The request of the browser. [-]
            anew: True to search where an answer is kept too. [-]

        Raises:
            BusyError: Too many questions wait already.
            LeftError: The browser went away.
        """
        async with aclosing(self.ask(question, request, anew=anew)) as messages:
            async for told in messages:
                if isinstance(told, Answered | Refused):
                    return told
        return Refused("the worker ended without an answer", bug=True)

    async def what_if(
        self, form: Form, request: Request, *, proof: bool
    ) -> Answered | Refused:
        """Answer a what-if at once, or with more time for the proof.

        Args:
            form: The form, filled in. [-]
            request: The request of the browser. [-]
            proof: True to search on where the kept answer is not proven. [-]
        """
        question = self.question(form)
        known = self.known(question)
        done = known is not None and known.summary is not None and known.summary.proven
        if known is not None and (done or not proof):
            return known
        seconds = min(PROVING if proof else QUICK, self.limits.seconds)
        timed = replace(question, seconds=seconds)
        return await self.answer(timed, request, anew=proof)
