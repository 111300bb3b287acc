"""Serves the pages till Ctrl-C."""

import secrets
import socket
from collections.abc import Callable

import uvicorn

from planner.web.app import make_app
from planner.web.desk import Limits
from planner.web.guard import LOCAL
from planner.web.punctual import Punctual

LOCAL_HOSTS = ("127.0.0.1", "localhost", "::1")
"""Addresses that only this machine reaches. [text]"""
GRACE = 2
"""Time for open answers when the server ends. [s]"""
ANYWHERE = ("0.0.0.0", "::")  # noqa: S104  # compared with, not bound to
"""Addresses of all networks of this machine. [text]"""


def serve(host: str, port: int, limits: Limits, told: Callable[[str], object]) -> None:
    """Serve the pages till a signal comes.

    Args:
        host: Address to bind to. [text]
        port: Port; 0 for any that is free. [1]
        limits: Limits of the server. [-]
        told: Told of the address, with the token where there is one. [-]
    """
    token = "" if host in LOCAL_HOSTS else secrets.token_urlsafe(24)
    named = (socket.gethostname(), socket.getfqdn()) if host in ANYWHERE else (host,)
    hosts = (*LOCAL, *(name.lower() for name in named))
    config = uvicorn.Config(
        make_app(limits, hosts=hosts, token=token),
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=GRACE,
        http=Punctual,
        ws="none",
        proxy_headers=False,
    )
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, port), family=family) as bound:
        shown = f"[{host}]" if ":" in host else host
        address = f"http://{shown}:{bound.getsockname()[1]}/"
        told(f"{address}?token={token}" if token else address)
        uvicorn.Server(config).run(sockets=[bound])
