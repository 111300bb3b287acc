"""The page of knobs: the new answer, with older answers beside it."""

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode

from fastapi import Request, Response

from planner.document.blocks import Tile
from planner.web import render
from planner.web.commands import command_of
from planner.web.desk import Desk, LeftError
from planner.web.fields import Form, read_form
from planner.web.pages import EXAMPLES, busy, form_of, plain
from planner.web.question import Answered, Refused, Summary
from planner.web.workers.pool import BusyError

OLDER = 5
"""Older answers that stay. [1]"""
EVEN = 0.005
"""Difference of throughput that counts as none. [1]"""


@dataclass(frozen=True)
class Card:
    """An answer beside others.

    Attributes:
        title: The setting. [text]
        said: The answer in one sentence. [text]
        tiles: Main numbers. [-]
        layout: The layout in its short form. [text]
        gap: The proof in a few words. [text]
        proven: True where the plan is the fastest. [-]
        beside: The newest answer beside this one; empty for the newest. [text]
        mood: `good` or `bad`, for `beside`. [text]
        new: True for the newest. [-]
        command: Command line of the same answer. [text]
        plan: Address of the whole plan. [text]
        back: Address that turns back to this setting; empty for the newest. [text]
        job: Address of the job file. [text]
    """

    title: str
    said: str
    tiles: Sequence[Tile]
    layout: str
    gap: str
    proven: bool
    beside: str
    mood: str
    new: bool
    command: str
    plan: str
    back: str
    job: str


async def what_if(desk: Desk, request: Request) -> Response:
    """The page, with the answer to its knobs."""
    form = form_of("what-if", request)
    proof = request.query_params.get("proof") == "1"
    try:
        return await _page(desk, form, request, proof=proof)
    except BusyError:
        return busy()
    except LeftError:
        return plain(499, "gone")


async def _page(desk: Desk, form: Form, request: Request, *, proof: bool) -> Response:
    older = _older(form, request)
    cards, refused, unproven = list[Card](), "", False
    newest: Summary | None = None
    usual: dict[str, tuple[str, ...]] = {}
    forms = [form, *older] if form.ready else older
    for place, each in enumerate(forms):
        told = await desk.what_if(each, request, proof=proof)
        if isinstance(told, Refused) and each is form:
            form, refused = _marked(form, told)
        if isinstance(told, Refused) or told.summary is None:
            continue
        unproven = unproven or not told.summary.proven
        usual = usual if newest else told.more
        newest = newest or told.summary
        cards.append(_card(each, told, newest, forms[:place] + forms[place + 1 :]))
    kept = [each.query for each in (older if refused or not form.ready else forms)]
    address = _address(form, older)
    response = render.page(
        "what-if.html.j2",
        form,
        "what-if",
        examples=EXAMPLES,
        cards=cards,
        kept=kept[:OLDER],
        usual={name: value for name, (value,) in usual.items()},
        refused=refused,
        unproven=f"{address}&proof=1" if unproven and not proof else "",
    )
    if not proof:
        response.headers["hx-push-url"] = address
    return response


def _older(form: Form, request: Request) -> list[Form]:
    """Older settings in the address, each once, the newest first."""
    found: dict[str, Form] = {}
    for text in request.query_params.getlist("was"):
        each = read_form("what-if", parse_qsl(text))
        if each.ready and each.query != form.query:
            found.setdefault(each.query, each)
    return list(found.values())[:OLDER]


def _marked(form: Form, told: Refused) -> tuple[Form, str]:
    """The form with a refusal at its field, or the refusal for the page."""
    field, _ = render.field_of(told.field, form)
    faults = {field: told.message} if field else {}
    return Form(form.kind, form.values, faults), told.message


def _address(form: Form, older: Sequence[Form]) -> str:
    was = urlencode([("was", each.query) for each in older])
    return "/what-if?" + "&".join(filter(None, [form.query, was]))


def _card(form: Form, answer: Answered, newest: Summary, others: list[Form]) -> Card:
    its = answer.summary
    assert its is not None
    new = its is newest
    beside, mood = ("", "") if new else _beside(newest, its)
    return Card(
        title=_title(form),
        said=its.verdict,
        tiles=its.tiles,
        layout=its.layout,
        gap=_gap(its),
        proven=its.proven,
        beside=beside,
        mood=mood,
        new=new,
        command=command_of(form),
        plan=f"/plan?{render.shared(form)}",
        back="" if new else _address(form, others[:OLDER]),
        job=f"/what-if.yaml?{form.query}",
    )


def _title(form: Form) -> str:
    """The setting in a few words."""
    its = form.values
    words = [its["model"], f"{its['count']} x {its['gpu']}", its["method"] or "full"]
    words += [f"{int(its['seq_len']):,} tokens"] if its["seq_len"] else []
    words += [f"batch {int(its['global_batch']):,}"] if its["global_batch"] else []
    words += [its[name] for name in ("framework", "network") if its[name]]
    words += [f"memory risk {its['risk']}"] if its["risk"] else []
    return ", ".join(words)


def _gap(its: Summary) -> str:
    if its.proven:
        return "Proven." if its.tiles else "Proven: no layout fits."
    return f"The best so far; another may be up to {its.gap:.1%} faster."


def _beside(newest: Summary, its: Summary) -> tuple[str, str]:
    """The newest answer's throughput beside an older one's."""
    if not (newest.tokens_per_s and its.tokens_per_s):
        return "", ""
    ratio = newest.tokens_per_s / its.tokens_per_s
    if abs(ratio - 1) < EVEN:
        return "The new one trains as many tokens a second.", ""
    words = f"{ratio:.2f} times as many" if ratio > 1 else f"{ratio:.2f} of the"
    return (
        f"The new one trains {words} tokens a second.",
        "good" if ratio > 1 else "bad",
    )
