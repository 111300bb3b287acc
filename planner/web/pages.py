"""Pages of one question each: form, live answer, and files of the answer."""

import io
import zipfile
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from fastapi import Request, Response
from fastapi.responses import StreamingResponse

from planner.report.pages import page_html
from planner.web import render
from planner.web.desk import Desk, LeftError
from planner.web.fields import ON, PRICE, Form, read_form
from planner.web.question import Answered, Refused, Told
from planner.web.workers.pool import BusyError

RETRY = 5
"""Time after which a refused browser may ask again. [s]"""
KINDS = ("plan", "compare", "memory", "explain")
"""Pages of this kind. [text]"""
ABOUT = {
    "plan": "The fastest layout of a training job, with its proof.",
    "compare": "The same job on several clusters: time, cost, and the front.",
    "memory": "Memory method by method and moment by moment, and the most that fits.",
    "explain": "Why the best layout wins, and why not another.",
}
BUTTONS = {
    "plan": "Plan",
    "compare": "Compare",
    "memory": "Look",
    "explain": "Explain",
}
_CLUSTERS = "&on=8xh100&price=&on=8xh200&price=&on=8xmi300x&price="
EXAMPLES = (
    ("Llama 3.1 8B on 8 H100", "model=llama-3.1-8b&on=8xh100"),
    ("Qwen 2.5 7B, LoRA, on 4 RTX 4090", "model=Qwen/Qwen2.5-7B&on=4x4090&method=lora"),
    ("Llama 3.1 70B on 64 H100", "model=llama-3.1-70b&on=64xh100"),
)
"""Jobs to begin with: words and query."""
COMPARED = (
    (
        "Llama 3.1 8B, 20B tokens, on three kinds of node",
        f"model=llama-3.1-8b&tokens=20B{_CLUSTERS}",
    ),
)
"""Comparisons to begin with: words and query."""
FILES = {
    "zip": "application/zip",
    "yaml": "application/yaml",
    "html": "text/html",
    "json": "application/json",
}
"""Ending of a file to its type."""


def form_of(kind: str, request: Request) -> Form:
    """The form in the address of a request."""
    return read_form(kind, request.query_params.multi_items())


def asked_page(kind: str, request: Request) -> Response:
    """A page with its form; the browser then asks for the answer."""
    form = form_of(kind, request)
    return render.page(
        "asked.html.j2",
        form,
        kind,
        heading=dict(render.PAGES)[kind],
        about=ABOUT[kind],
        button=BUTTONS[kind],
        examples=COMPARED if kind == "compare" else EXAMPLES,
        on=ON,
        price=PRICE,
    )


async def live(desk: Desk, form: Form, request: Request) -> Response:
    """The answer as events: states, the answer, the end."""
    if not form.ready:
        return plain(422, "the form is not filled in")
    messages = desk.ask(desk.question(form), request)
    try:
        first = await anext(messages)
    except BusyError:
        return busy()
    except LeftError:
        return plain(499, "gone")
    events = _events(first, messages, form)
    headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
    return StreamingResponse(events, media_type="text/event-stream", headers=headers)


async def _events(
    first: Told | None, messages: AsyncGenerator[Told | None, None], form: Form
) -> AsyncGenerator[str, None]:
    """Server-sent events of an answer, till its end or the browser's."""
    silent = first is None
    try:
        async with aclosing(messages) as rest:
            yield _ending(first, form) if _last(first) else _state(first, form)
            if _last(first):
                return
            async for told in rest:
                silent = silent and told is None
                if _last(told):
                    yield _ending(told, form)
                    return
                yield ":\n\n" if told is None and not silent else _state(told, form)
    except LeftError:
        return


def _state(told: Told | None, form: Form) -> str:
    return event("state", render.told_html(told, form))


def _last(told: Told | None) -> bool:
    return isinstance(told, Answered | Refused)


def _ending(told: Told | None, form: Form) -> str:
    return event("answer", render.told_html(told, form)) + event("end", "")


def event(name: str, text: str) -> str:
    """An event as the browser reads it."""
    lines = "".join(f"data: {line}\n" for line in text.splitlines() or [""])
    return f"event: {name}\n{lines}\n"


async def download(desk: Desk, form: Form, ending: str, request: Request) -> Response:
    """A file of an answer."""
    if not form.ready:
        faults = "; ".join(f"{name}: {why}" for name, why in form.faults.items())
        return plain(422, faults or "the form is not filled in")
    try:
        told = await desk.answer(desk.question(form), request)
    except BusyError:
        return busy()
    except LeftError:
        return plain(499, "gone")
    if isinstance(told, Refused):
        place = f"{told.field}: " if told.field else ""
        return plain(500 if told.bug else 422, place + told.message)
    content = content_of(told, ending)
    if content is None:
        return plain(409, told.unwritten or "there is no such file")
    name = {"compare": "purchase", "rows": "calibration"}.get(form.kind, "job")
    file = f"{name if ending == 'yaml' else form.kind}.{ending}"
    headers = {"content-disposition": f'attachment; filename="{file}"'}
    return Response(content, media_type=FILES[ending], headers=headers)


def content_of(answer: Answered, ending: str) -> bytes | None:
    """Content of a file of an answer.

    Returns:
        The content; None where the answer has no such file. [B]
    """
    if ending == "json":
        return answer.json.encode()
    if ending == "yaml":
        return answer.job.encode() or None
    if ending == "html":
        return page_html(answer.page).encode()
    return _zipped(answer) if answer.files else None


def _zipped(answer: Answered) -> bytes:
    """The launch folder, scripts executable."""
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as folder:
        for file in answer.files:
            entry = zipfile.ZipInfo(f"run/{file.name}")
            entry.external_attr = (0o755 if file.executable else 0o644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            folder.writestr(entry, file.text)
    return held.getvalue()


def busy() -> Response:
    """A refusal for now."""
    more = {"retry-after": str(RETRY)}
    return plain(503, "All workers are busy, and the queue is full: try again.", more)


def plain(status: int, text: str, headers: dict[str, str] | None = None) -> Response:
    """A short answer in words."""
    more: dict[str, Any] = {"headers": headers} if headers else {}
    return Response(text, status, media_type="text/plain", **more)
