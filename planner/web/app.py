"""The application: its addresses, its files, its guard."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from importlib.resources import files

from fastapi import FastAPI, Request, Response
from fastapi.responses import RedirectResponse
from starlette.requests import ClientDisconnect

from planner.web import rows
from planner.web.desk import Desk, Limits
from planner.web.fields import Form
from planner.web.guard import LOCAL, Guard
from planner.web.pages import FILES, KINDS, asked_page, download, form_of, live, plain
from planner.web.what_if import what_if

ASSETS = {
    "frame.css": ("planner.report", "templates", "text/css"),
    "charts.js": ("planner.report", "templates", "text/javascript"),
    "plotly-cartesian.min.js": ("planner.report", "assets", "text/javascript"),
    "htmx.min.js": ("planner.web", "assets", "text/javascript"),
    "htmx-sse.min.js": ("planner.web", "assets", "text/javascript"),
    "web.css": ("planner.web", "assets", "text/css"),
    "web.js": ("planner.web", "assets", "text/javascript"),
    "icon.svg": ("planner.web", "assets", "image/svg+xml"),
}
"""File to its package, folder and type; nothing else is read."""
Handler = Callable[[Request], Awaitable[Response]]


def make_app(
    limits: Limits | None = None,
    *,
    hosts: tuple[str, ...] = LOCAL,
    token: str = "",
) -> Guard:
    """Make the application.

    Args:
        limits: Limits of the server. [-]
        hosts: Names under which it answers. [text]
        token: Text that a browser has to show once; empty for none. [text]
    """
    desk = Desk(limits or Limits())
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None, lifespan=_life(desk))
    for path, handler in _routes(desk).items():
        methods = ["GET"] if _works(path) else ["GET", "HEAD"]
        app.add_api_route(path, handler, methods=methods, response_model=None)
    app.add_api_route(
        "/rows", partial(_post, desk), methods=["POST"], response_model=None
    )
    app.add_exception_handler(ClientDisconnect, _nobody)
    app.state.desk = desk
    return Guard(app, hosts, token)


async def _nobody(_request: Request, _gone: Exception) -> Response:
    """An answer to a client that has gone."""
    return Response(status_code=400)


def _life(desk: Desk) -> Callable[[FastAPI], AbstractAsyncContextManager[None]]:
    @asynccontextmanager
    async def alive(_app: FastAPI) -> AsyncIterator[None]:
        desk.pool.start()
        try:
            yield
        finally:
            desk.pool.close()

    return alive


def _works(path: str) -> bool:
    """True where an answer takes a job, which no HEAD is worth."""
    return path.startswith(("/live/", "/what-if")) or path.rpartition(".")[2] in FILES


def _routes(desk: Desk) -> dict[str, Handler]:
    """Address to the function that answers it."""

    async def start(request: Request) -> Response:
        del request
        return RedirectResponse("/plan", 303)

    async def asset(request: Request) -> Response:
        return _asset(request.path_params["name"])

    async def knobs(request: Request) -> Response:
        return await what_if(desk, request)

    routes: dict[str, Handler] = {
        "/": start,
        "/assets/{name}": asset,
        "/what-if": knobs,
    }
    for kind in KINDS:
        routes[f"/{kind}"] = _asked(kind)
        routes[f"/live/{kind}"] = _live(desk, kind)
    for kind in (*KINDS, "what-if"):
        for ending in FILES:
            routes[f"/{kind}.{ending}"] = _file(desk, kind, ending)
    return routes | _rows(desk)


def _asked(kind: str) -> Handler:
    async def handler(request: Request) -> Response:
        return asked_page(kind, request)

    return handler


def _live(desk: Desk, kind: str) -> Handler:
    async def handler(request: Request) -> Response:
        return await live(desk, form_of(kind, request), request)

    return handler


def _file(desk: Desk, kind: str, ending: str) -> Handler:
    async def handler(request: Request) -> Response:
        return await download(desk, form_of(kind, request), ending, request)

    return handler


def _rows(desk: Desk) -> dict[str, Handler]:
    """Addresses of measured rows."""

    def posted(request: Request) -> Form | None:
        digest = request.path_params["digest"]
        texts = desk.texts.get(digest)
        return None if texts is None else rows.form_with(texts, digest)

    async def form(request: Request) -> Response:
        return rows.empty(request)

    async def page(request: Request) -> Response:
        return rows.kept(desk, request.path_params["digest"])

    async def alive(request: Request) -> Response:
        found = posted(request)
        return plain(404, "gone") if found is None else await live(desk, found, request)

    async def file(request: Request) -> Response:
        found, ending = posted(request), request.path_params["ending"]
        if found is None or ending not in FILES:
            return plain(404, "gone")
        return await download(desk, found, ending, request)

    return {
        "/rows": form,
        "/rows/{digest}": page,
        "/live/rows/{digest}": alive,
        "/rows/{digest}/file.{ending}": file,
    }


async def _post(desk: Desk, request: Request) -> Response:
    return await rows.posted(desk, request)


def _asset(name: str) -> Response:
    """A file of the pages."""
    if name not in ASSETS:
        return plain(404, "there is no such file")
    package, folder, kind = ASSETS[name]
    content = (files(package) / folder / name).read_bytes()
    headers = {"cache-control": "public, max-age=86400"}
    return Response(content, media_type=kind, headers=headers)
