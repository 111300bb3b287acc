"""Worker processes in limits: so many at once, so many waiting, the rest refused."""

import asyncio
import os
import shutil
import signal
import tempfile
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from multiprocessing import forkserver, get_context
from multiprocessing.connection import Connection
from typing import Any

from planner.web.question import Answered, Question, Refused, Told, Waiting
from planner.web.workers.process import answer_in_process

TICK = 0.25
"""Time between two looks at a browser that may have left. [s]"""
GRACE = 30.0
"""Time of a worker beside that of its search: names, pages, files. [s]"""
_FORKS = get_context("forkserver")


class BusyError(Exception):
    """All workers have work, and as many questions wait as may."""


class Pool:
    """Processes that answer questions, one each, ended when nobody listens."""

    def __init__(self, workers: int, waiting: int) -> None:
        """Set the limits; nothing is started."""
        self.most = workers + waiting
        self.taken = 0
        self.waiting = 0
        self._free = asyncio.Semaphore(workers)
        self._running: set[Any] = set()
        _FORKS.set_forkserver_preload(["planner.web.workers.warm"])

    @property
    def running(self) -> list[int]:
        """Processes at work. [1]."""
        return sorted(process.pid for process in self._running)

    def start(self) -> None:
        """Start the process that workers are forked from, which takes seconds."""
        forkserver.ensure_running()

    def close(self) -> None:
        """End all work."""
        for process in list(self._running):
            self._end(process)

    async def ask(self, question: Question) -> AsyncGenerator[Told | None, None]:
        """Answer a question in a process, which ends when the iteration does.

        Yields:
            Messages as they come, the answer last; None where a while passed without.

        Raises:
            BusyError: Too many questions wait already.
        """
        if self.taken >= self.most:
            raise BusyError
        self.taken += 1
        try:
            async with aclosing(self._turn()) as turn:
                async for told in turn:
                    yield told
            try:
                async with aclosing(self._attended(question)) as messages:
                    async for message in messages:
                        yield message
            finally:
                self._free.release()
        finally:
            self.taken -= 1

    async def _turn(self) -> AsyncGenerator[Waiting, None]:
        """Wait for a free process, first come, first served."""
        self.waiting += 1
        turn = asyncio.ensure_future(self._free.acquire())
        taken = False
        try:
            while not (await asyncio.wait([turn], timeout=TICK))[0]:
                yield Waiting(self.waiting - 1)
            taken = True
        finally:
            self.waiting -= 1
            if not taken and not turn.cancel():
                self._free.release()

    async def _attended(self, question: Question) -> AsyncGenerator[Told | None, None]:
        """Messages of a process, which never outlives its time."""
        until = time.monotonic() + question.seconds + GRACE
        folder = tempfile.mkdtemp(prefix="planner-web-")
        receiver, sender = _FORKS.Pipe(duplex=False)
        process = _FORKS.Process(
            target=answer_in_process, args=(question, sender, folder), daemon=False
        )
        process.start()
        self._running.add(process)
        sender.close()
        try:
            async with aclosing(_messages(receiver)) as messages:
                async for told in messages:
                    yield told
                    if isinstance(told, Answered | Refused):
                        return
                    if time.monotonic() > until:
                        yield Refused(f"no answer within {question.seconds:g} s")
                        return
            yield Refused("the worker ended without an answer")
        finally:
            self._end(process)
            receiver.close()
            shutil.rmtree(folder, ignore_errors=True)

    def _end(self, process: Any) -> None:
        """End a process and all that it started."""
        self._running.discard(process)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.kill()


async def _messages(receiver: Connection) -> AsyncGenerator[Told | None, None]:
    """Messages from a pipe till its other end is closed; None where none came."""
    loop, there = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(receiver.fileno(), there.set)
    try:
        while True:
            try:
                await asyncio.wait_for(there.wait(), TICK)
            except TimeoutError:
                yield None
                continue
            there.clear()
            while receiver.poll():
                yield receiver.recv()
    except (EOFError, OSError):
        return
    finally:
        loop.remove_reader(receiver.fileno())
