"""Connections that do not wait for ever for the rest of a request."""

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

WHOLE = 20.0
"""Time in which a request has to come in whole, headers and body. [s]"""


class Punctual(H11Protocol):
    """HTTP/1.1 that hangs up on requests which do not come in whole in time.

    Uvicorn limits the time between two requests, and not that of one: a client could
    send half of its headers and hold the connection.
    """

    whole = WHOLE
    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Take a connection, and wait for its first request."""
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        """Take a part of a request."""
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """End a connection."""
        self._forget()
        super().connection_lost(exc)

    @property
    def _is_whole(self) -> bool:
        cycle = self.cycle
        return cycle is not None and not cycle.more_body and not cycle.response_complete

    def _watch(self) -> None:
        """Start the clock with the first byte that a request lacks, and stop it."""
        if self._is_whole:
            self._forget()
        elif self._late is None:
            self._late = self.loop.call_later(self.whole, self._hang_up)

    def _forget(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _hang_up(self) -> None:
        self._late = None
        if not self._is_whole:
            self.transport.close()
