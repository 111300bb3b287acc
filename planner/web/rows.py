"""The page of measured rows: posted once, then an address of its own."""

import hashlib
from urllib.parse import parse_qsl

from fastapi import Request, Response
from fastapi.responses import RedirectResponse

from planner.web import render
from planner.web.desk import Desk
from planner.web.fields import Form, read_form
from planner.web.pages import form_of, plain
from planner.web.question import Fields

MOST = 2_000_000
"""Size of posted rows or of a log. [B]"""


async def posted(desk: Desk, request: Request) -> Response:
    """Keep what is posted under its digest, and lead to its page."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > 3 * MOST + 10_000:
            return plain(413, f"more than {MOST / 1e6:g} MB")
    try:
        pairs = parse_qsl(
            body.decode("ascii"), keep_blank_values=True, max_num_fields=40
        )
    except ValueError:
        return plain(400, "this is no form")
    given = dict(pairs)
    content, kind = given.get("content", ""), given.get("is", "rows")
    form = read_form("rows", pairs)
    if not content.strip():
        return _form(form, kind, content, "Paste rows or a log.")
    if len(content.encode()) > MOST:
        return _form(form, kind, "", f"This is more than {MOST / 1e6:g} MB.")
    if kind == "log" and not form.ready:
        return _form(form, kind, content, "")
    digest = hashlib.sha256(body).hexdigest()[:32]
    job = form.pairs if kind == "log" else ()
    desk.texts.put(digest, (*job, ("is", kind), ("content", content)))
    return RedirectResponse(f"/rows/{digest}", 303)


def empty(request: Request) -> Response:
    """The form."""
    return _form(form_of("rows", request), "rows", "", "", status=200)


def kept(desk: Desk, digest: str) -> Response:
    """The page of rows that were posted."""
    texts = desk.texts.get(digest)
    if texts is None:
        about = "The server was started anew, or many came after: post them again."
        return render.page(
            "lost.html.j2", None, "rows", 404, heading="Rows are gone", about=about
        )
    form, found = form_with(texts, digest), dict(texts)
    live = f"/live/rows/{digest}"
    return _form(form, found["is"], found["content"], "", status=200, live=live)


def form_with(texts: Fields, digest: str) -> Form:
    """The form of what was posted."""
    form = read_form("rows", texts)
    return Form("rows", {**form.values, **dict(texts), "digest": digest}, {})


def _form(
    form: Form,
    kind: str,
    content: str,
    fault: str,
    *,
    status: int = 422,
    live: str = "",
) -> Response:
    values = {"is": kind, "content": content, "fault": fault, "live": live}
    if kind == "rows" and form.faults:
        form = Form(form.kind, form.values, {}, form.clusters)
    most = f"{MOST / 1e6:g}"
    return render.page("rows.html.j2", form, "rows", status, most=most, **values)
