"""The guard before every page: hosts, token, sites, sizes, and headers of answers."""

import hmac
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

COOKIE = "planner-token"
LONGEST_QUERY = 8_000
"""Bytes of an address behind its path. [B]"""
LOCAL = ("127.0.0.1", "localhost", "::1")
"""Hosts that name this machine alone, without brackets. [text]"""
TOKEN = "token"  # noqa: S105  # its name
"""Field of an address that shows the token. [text]"""
HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; "
    "style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
"""Headers of every answer: no script but ours, no frame, no guess at types."""


@dataclass(frozen=True)
class Guard:
    """The application behind checks that come before any page.

    Attributes:
        app: The application. [-]
        hosts: Names under which it answers, beside the address that a request came
            to. [text]
        token: Text that a browser has to show once; empty for none. [text]
    """

    app: App
    hosts: tuple[str, ...] = LOCAL
    token: str = ""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        guarded = _with_headers(send)
        headers = {
            name.decode(): value.decode("latin-1") for name, value in scope["headers"]
        }
        refused = self._refused(scope, headers)
        if refused is not None:
            await _say(guarded, *refused)
            return
        query = scope["query_string"].decode("latin-1")
        pairs = parse_qsl(query, keep_blank_values=True)
        shown = [value for name, value in pairs if name == TOKEN]
        if self.token and shown:
            rest = [pair for pair in pairs if pair[0] != TOKEN]
            await self._enter(scope["path"], shown, rest, guarded)
        elif self.token and not self._knows(headers):
            asked = "Open the address with the token that planner serve printed."
            await _say(guarded, 401, asked)
        else:
            await self.app(scope, receive, guarded)

    def _refused(self, scope: Scope, headers: dict[str, str]) -> tuple[int, str] | None:
        """Status and reason for a request that no page answers."""
        came_to, _ = scope.get("server") or ("", None)
        if _host(headers.get("host", "")) not in {*self.hosts, came_to} - {""}:
            return 421, "This host is not served here."
        if len(scope["query_string"]) > LONGEST_QUERY:
            return 414, "The address is too long."
        if scope["method"] not in {"GET", "HEAD", "POST"}:
            return 405, "Only GET and POST are answered."
        if _foreign(scope, headers):
            return 403, "Another site asks for this."
        return None

    def _knows(self, headers: dict[str, str]) -> bool:
        """True where the request shows the token."""
        try:
            cookie = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
        except CookieError:
            return False
        bearer = headers.get("authorization", "").removeprefix("Bearer ")
        shown = cookie.value if cookie is not None else bearer
        return _same(shown, self.token)

    async def _enter(
        self, path: str, shown: list[str], rest: list[tuple[str, str]], send: Send
    ) -> None:
        """Keep the token in a cookie, and lead to the page without it."""
        if not all(_same(given, self.token) for given in shown):
            await _say(send, 401, "The token is another one.")
            return
        query, path = urlencode(rest), "/" + path.lstrip("/\\")
        there = f"{path}?{query}" if query else path
        cookie = f"{COOKIE}={self.token}; Path=/; HttpOnly; SameSite=Strict"
        await _say(send, 303, "", {"location": there, "set-cookie": cookie})


def _host(given: str) -> str:
    """Host of a header, without port and brackets; empty where it is none. [text]."""
    try:
        return urlsplit(f"//{given}").hostname or ""
    except ValueError:
        return ""


def _foreign(scope: Scope, headers: dict[str, str]) -> bool:
    """True where a page of another site sends the request, but for a plain link."""
    site, mode = headers.get("sec-fetch-site"), headers.get("sec-fetch-mode")
    posts = scope["method"] == "POST"
    own = f"{scope['scheme']}://{headers.get('host', '')}"
    if posts and headers.get("origin", own) != own:
        return True
    return site in {"cross-site", "same-site"} and (posts or mode != "navigate")


def _same(given: str, token: str) -> bool:
    return hmac.compare_digest(given.encode(), token.encode())


def _with_headers(send: Send) -> Send:
    """The answer with our headers."""

    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            own = [(k.encode(), v.encode()) for k, v in HEADERS.items()]
            message["headers"] = [*message.get("headers", []), *own]
        await send(message)

    return sent


async def _say(
    send: Send, status: int, text: str, more: dict[str, str] | None = None
) -> None:
    """A short answer in words."""
    headers = {"content-type": "text/plain; charset=utf-8", **(more or {})}
    start = {"type": "http.response.start", "status": status}
    start["headers"] = [(k.encode(), v.encode()) for k, v in headers.items()]
    await send(start)
    await send({"type": "http.response.body", "body": text.encode()})
