"""The guard: hosts, token, other sites, and headers of every answer."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.web.guard import HEADERS, Guard


async def _app(_scope: Any, _receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"in"})


def asked(
    guard: Guard,
    headers: Mapping[str, str],
    query: str = "",
    method: str = "GET",
    came_to: str = "127.0.0.1",
) -> tuple[int, dict[str, str]]:
    """Status and headers of the answer to a request."""
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    named = {"host": "127.0.0.1:8000"} | dict(headers)
    scope = {
        "type": "http",
        "method": method,
        "scheme": "http",
        "path": "/plan",
        "server": (came_to, 8000),
        "query_string": query.encode(),
        "headers": [(k.encode(), v.encode()) for k, v in named.items()],
    }
    asyncio.run(guard(scope, receive, send))
    start = sent[0]
    return start["status"], {k.decode(): v.decode() for k, v in start["headers"]}


def test_every_answer_has_the_headers() -> None:
    for guard, headers in ((Guard(_app), {}), (Guard(_app), {"host": "evil.example"})):
        found = asked(guard, headers)[1]
        assert found.items() >= HEADERS.items()
    policy = HEADERS["content-security-policy"]
    assert "script-src 'self';" in policy
    assert "frame-ancestors 'none'" in policy


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:8000", 200),
        ("localhost", 200),
        ("[::1]:8000", 200),
        ("[::1]", 200),
        ("LocalHost:8000", 200),
        ("[::1", 421),
        ("10.1.2.3", 421),
        ("evil.example", 421),
        ("127.0.0.1.evil.example:8000", 421),
        ("", 421),
    ],
)
def test_only_this_machine_is_answered_by_name(host: str, status: int) -> None:
    assert asked(Guard(_app), {"host": host})[0] == status


def test_other_sites_may_link_and_no_more() -> None:
    foreign = {"sec-fetch-site": "cross-site"}
    guard = Guard(_app)
    assert asked(guard, foreign | {"sec-fetch-mode": "navigate"})[0] == 200
    assert asked(guard, foreign | {"sec-fetch-mode": "no-cors"})[0] == 403
    assert (
        asked(guard, foreign | {"sec-fetch-mode": "navigate"}, method="POST")[0] == 403
    )
    assert asked(guard, {"origin": "http://evil.example"}, method="POST")[0] == 403
    assert asked(guard, {"origin": "http://127.0.0.1:8000"}, method="POST")[0] == 200
    assert asked(guard, {}, method="DELETE")[0] == 405


def test_a_token_is_shown_once_and_kept_in_a_cookie() -> None:
    guard = Guard(_app, token="right")  # noqa: S106  # made up here
    assert asked(guard, {})[0] == 401
    assert asked(guard, {}, "token=wrong")[0] == 401
    status, headers = asked(guard, {}, "model=a&token=right")
    assert (status, headers["location"]) == (303, "/plan?model=a")
    assert "HttpOnly; SameSite=Strict" in headers["set-cookie"]
    cookie = headers["set-cookie"].split(";")[0]
    assert asked(guard, {"cookie": cookie})[0] == 200
    assert asked(guard, {"authorization": "Bearer right"})[0] == 200
    assert asked(guard, {"authorization": "Bearer "})[0] == 401


def test_a_long_address_is_refused() -> None:
    assert asked(Guard(_app), {}, "model=" + "a" * 9000)[0] == 414


def test_the_address_that_a_request_came_to_is_answered_and_no_other_name() -> None:
    guard = Guard(_app, hosts=("gpu01",), token="")
    for host, status in (("10.1.2.3:80", 200), ("gpu01", 200), ("evil.example", 421)):
        assert asked(guard, {"host": host}, came_to="10.1.2.3")[0] == status


SHOWN = {
    "none": ("", {}, 401),
    "blank": ("token=", {}, 401),
    "a name alone": ("token", {}, 401),
    "part of a name": ("xtoken=1", {}, 401),
    "in a value": ("model=token=right", {}, 401),
    "wrong": ("token=wrong", {}, 401),
    "one of two": ("token=right&token=wrong", {}, 401),
    "right": ("token=right", {}, 303),
    "in capitals": ("TOKEN=right", {}, 401),
    "a blank cookie": ("", {"cookie": "planner-token="}, 401),
    "a wrong cookie": ("", {"cookie": "planner-token=wrong"}, 401),
    "a wrong token beside the cookie": (
        "token=",
        {"cookie": "planner-token=right"},
        401,
    ),
    "the cookie": ("", {"cookie": "planner-token=right"}, 200),
}


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST"])
@pytest.mark.parametrize("shown", SHOWN)
def test_nothing_but_the_token_opens(shown: str, method: str) -> None:
    query, headers, status = SHOWN[shown]
    guard = Guard(_app, token="right")  # noqa: S106  # made up here
    assert asked(guard, headers, query, method)[0] == status
    other = f"model=a&{query}" if query else "model=a"
    assert asked(guard, headers, other, method)[0] == status


@given(query=st.text(st.sampled_from("token=&x%61;+?#/ "), max_size=40))
def test_no_query_without_the_token_opens(query: str) -> None:
    guard = Guard(_app, token="right")  # noqa: S106  # made up here
    assert asked(guard, {}, query)[0] == 401
