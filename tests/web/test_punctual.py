"""Clients that never end what they began to ask."""

import asyncio
import socket
from typing import Any

import pytest

uvicorn = pytest.importorskip("uvicorn")
app = pytest.importorskip("planner.web.app")
punctual = pytest.importorskip("planner.web.punctual")
pytestmark = pytest.mark.web
FORM = [(b"content-type", b"application/x-www-form-urlencoded")]


def test_half_a_request_is_not_held_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(punctual.Punctual, "whole", 0.2)
    half = b"GET /plan HTTP/1.1\r\nHost: localhost\r\nX-Slow: "
    assert asyncio.run(_answer_to(half)) == b""
    whole = b"GET /plan HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    assert asyncio.run(_answer_to(whole)).startswith(b"HTTP/1.1 200")


def test_rows_of_a_client_that_has_gone_are_no_error() -> None:
    """A disconnection while a body is read was a traceback in the log."""
    scope = {"type": "http", "method": "POST", "path": "/rows", "query_string": b""}
    scope |= {"scheme": "http", "server": ("127.0.0.1", 8000), "root_path": ""}
    scope |= {"headers": [(b"host", b"127.0.0.1:8000"), *FORM]}
    sent: list[Any] = []

    async def receive() -> dict[str, str]:
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(app.make_app()(scope, receive, send))
    assert sent[0]["status"] == 400


async def _answer_to(sent: bytes) -> bytes:
    """What a server in this process answers until it hangs up."""
    config = uvicorn.Config(
        app.make_app(), http=punctual.Punctual, ws="none", log_level="error"
    )
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as bound:
        running = asyncio.create_task(server.serve(sockets=[bound]))
        read, write = await asyncio.open_connection(*bound.getsockname())
        write.write(sent)
        answer = await asyncio.wait_for(read.read(), 20)
        write.close()
        server.should_exit = True
        await running
    return answer
