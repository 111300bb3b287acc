"""`planner serve`: the planner as pages in a browser of this machine."""

import os
from typing import Annotated

import typer

from planner.cli.guard import guarded
from planner.cli.stopping import MemoryLimit, SignalError
from planner.errors import BadInputError, install
from planner.questions.inputs.limits import MEMORY, memory_bytes

Host = Annotated[
    str,
    typer.Option(
        "--host",
        metavar="ADDRESS",
        help="Address to bind to; elsewhere than on 127.0.0.1 a token is asked for.",
    ),
]
Port = Annotated[
    int,
    typer.Option("--port", min=0, max=65535, metavar="N", help="Port; 0: a free one."),
]
Workers = Annotated[
    int | None,
    typer.Option(
        "--workers",
        min=1,
        metavar="N",
        help="Searches at once; one for each core unless said.",
        show_default=False,
    ),
]
Waiting = Annotated[
    int,
    typer.Option(
        "--waiting",
        min=0,
        metavar="N",
        help="Questions that may wait for a worker; more are refused for now.",
    ),
]
TimeLimit = Annotated[
    float,
    typer.Option("--time-limit", min=1, metavar="S", help="Seconds of one search."),
]


@guarded
def serve(
    *,
    host: Host = "127.0.0.1",
    port: Port = 8000,
    workers: Workers = None,
    waiting: Waiting = 32,
    time_limit: TimeLimit = 120.0,
    memory_limit: MemoryLimit = MEMORY,
) -> None:
    """Serve pages that plan, compare and explain, till Ctrl-C.

    Args:
        host: Address to bind to. [text]
        port: Port. [1]
        workers: Searches at once; None: one for each core. [1]
        waiting: Questions that may wait. [1]
        time_limit: Longest search. [s]
        memory_limit: Most memory of a search. [text]

    Raises:
        BadInputError: The extra is not installed, or the address cannot be bound.
    """
    memory_bytes(memory_limit)
    try:
        from planner.web.desk import Limits  # noqa: PLC0415  # the extra web
        from planner.web.server import serve as serve_pages  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise BadInputError(
            f"planner serve needs {error.name}: {install('web')}"
        ) from error
    cores = len(os.sched_getaffinity(0)) if workers is None else workers
    limits = Limits(cores, waiting, time_limit, memory_limit)
    try:
        serve_pages(host, port, limits, _tell)
    except SignalError:
        return  # the usual end
    except OSError as error:
        reason = error.strerror or str(error)
        place = f"{host}:{port}"
        raise BadInputError(
            f"cannot be bound: {reason}", field="--port", value=place
        ) from error


def _tell(address: str) -> None:
    print(f"planner is at {address}  (Ctrl-C ends it)", flush=True)
