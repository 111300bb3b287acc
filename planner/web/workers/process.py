"""A process that answers one question, in limits, and ends with the server."""

import os
import resource
import signal
import tempfile
from multiprocessing import parent_process
from multiprocessing.connection import Connection, wait
from pathlib import Path
from threading import Thread

from planner.questions.inputs.limits import memory_bytes
from planner.web.question import Question, Refused
from planner.web.workers.work import answer

HEADROOM = 2.0
"""Address space of a worker over the memory limit of its search. [1]"""
_ONE_CORE = {"LOKY_MAX_CPU_COUNT": "1"}
"""Settings by which a search stays in one process."""


def answer_in_process(question: Question, out: Connection, folder: str) -> None:
    """Answer a question, and send every message through a pipe.

    The process leads a group of its own, so that all it starts can be ended with it.

    Args:
        question: The question. [-]
        out: Pipe to the server. [-]
        folder: Empty folder to work in. [path]
    """
    os.setsid()
    Thread(target=_end_with_the_server, daemon=True).start()
    _limit(question)
    os.environ.update(_ONE_CORE)
    os.chdir(folder)
    tempfile.tempdir = folder
    try:
        out.send(answer(question, out.send, Path(folder)))
    except MemoryError:
        out.send(Refused(f"the question takes more memory than {question.memory}"))
    finally:
        out.close()


def _limit(question: Question) -> None:
    """Refuse more memory than the limit and what the libraries need beside it."""
    most = int(memory_bytes(question.memory) * HEADROOM)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    seconds = int(question.seconds * 4) + 60
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))


def _end_with_the_server() -> None:
    """Wait for the end of the server, however it comes, and end this group."""
    server = parent_process()
    if server is not None:
        wait([server.sentinel])
        os.killpg(os.getpgrp(), signal.SIGKILL)
