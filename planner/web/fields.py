"""Fields of forms: labels, limits, and the options of the command line for them."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from urllib.parse import urlencode

from planner.frameworks import FRAMEWORKS
from planner.hardware.reading.files import SHIPPED, UnknownNameError
from planner.hardware.spelling import SpellingError, read_fleet
from planner.models import preset_names
from planner.specs.search import SearchSpec
from planner.web.question import Fields

LONGEST = 120
"""Characters of a field. [1]"""
MOST = 1_000_000_000
"""Largest whole number in a field. [1]"""
PATHLIKE = re.compile(r"^[/~.\\]|\\|\.\.|://|\.(?:json|ya?ml)$", re.IGNORECASE)
"""Texts that may name a file or an address."""
STRANGE = re.compile(r"[^\x20-\x7e\xd7]")
"""Characters that no name here has."""
SIZES = (8, 16, 32, 64, 128, 256, 512, 1024)
"""Counts of GPUs that forms suggest. [1]"""
KINDS = ("h100", "h200", "b200", "mi300x", "a100-80")
"""GPUs that forms suggest. [text]"""
RISKS = (0.01, 0.2)
"""Risks of running out of memory that forms offer beside the usual. [1]"""
ANY = "off"
"""Choice of any risk: the plain optimum, as `--robust off`. [text]"""
CLUSTERS = 4
"""Clusters of a comparison. [1]"""


@dataclass(frozen=True)
class Field:
    """A field of a form.

    Attributes:
        name: Name in the address. [text]
        label: Label for people. [text]
        hint: Example or unit, below the field. [text]
        option: Option of the command line; empty where there is none. [text]
        whole: True for a whole number above 0. [-]
        choices: Value and words of each choice; without any, the field is free. [-]
        suggested: Values that the browser suggests. [text]
        needed: True where the form cannot do without. [-]
        first: True where the field stands in the first row. [-]
    """

    name: str
    label: str
    hint: str = ""
    option: str = ""
    whole: bool = False
    choices: Callable[[], Sequence[tuple[str, str]]] | None = None
    suggested: Callable[[], Sequence[str]] | None = None
    needed: bool = False
    first: bool = False

    def fault(self, value: str) -> str:
        """Say what is wrong with a value, as far as its letters tell.

        Returns:
            A sentence; empty where nothing is. [text]
        """
        if not value:
            return "This is needed." if self.needed else ""
        if len(value) > LONGEST:
            return f"This is longer than {LONGEST} characters."
        if STRANGE.search(value):
            return "This has characters that no name has."
        return self._unknown(value)

    def _unknown(self, value: str) -> str:
        """Reason why a value in plain letters is none of the field's."""
        if self.choices is not None:
            known = [name for name, _ in self.choices()]
            return "" if value in known else f"Choose one of {', '.join(known)}."
        if self.whole:
            return "" if _is_whole(value) else f"Give a whole number, 1 to {MOST:,}."
        if PATHLIKE.search(value):
            return "No file or address is read here: give a name."
        return ""


def _is_whole(value: str) -> bool:
    return value.isascii() and value.isdigit() and 1 <= int(value) <= MOST


def _methods() -> Sequence[tuple[str, str]]:
    return (("full", "All weights"), ("lora", "LoRA"), ("qlora", "QLoRA"))


def _frameworks() -> Sequence[tuple[str, str]]:
    known = [(each.name, each.title) for each in FRAMEWORKS]
    return (("", "By task"), *known, ("any", "Any: the best of all"))


def _risks() -> Sequence[tuple[str, str]]:
    usual = SearchSpec().memory_risk
    limits = [(str(risk), f"At most {risk:.0%}") for risk in RISKS]
    return (("", f"At most {usual:.0%}"), *limits, (ANY, "Any: the fastest"))


@cache
def _fleets() -> Sequence[str]:
    return tuple(f"{count}x{kind}" for kind in KINDS for count in SIZES)


def _gpus() -> Sequence[tuple[str, str]]:
    return tuple((name, name) for name in SHIPPED.names("gpus"))


MODEL = Field(
    "model",
    "Model",
    "A preset or a hub id, as Qwen/Qwen2.5-7B",
    "--model",
    suggested=preset_names,
    needed=True,
    first=True,
)
ON = Field(
    "on",
    "GPUs",
    "8xh100, 2 nodes of 8 A100-40, or a cluster",
    "--on",
    suggested=_fleets,
    needed=True,
    first=True,
)
COUNT = Field("count", "Number of GPUs", whole=True, needed=True, first=True)
GPU = Field("gpu", "GPU", choices=_gpus, needed=True, first=True)
METHOD = Field("method", "Method", "", "--method", choices=_methods, first=True)
SEQUENCE = Field("seq_len", "Sequence", "tokens", "--seq-len", whole=True)
BATCH = Field("global_batch", "Batch", "sequences a step", "--global-batch", whole=True)
FRAMEWORK = Field("framework", "Framework", "", "--framework", choices=_frameworks)
TOKENS = Field("tokens", "Tokens of the run", "15T, 300B", "--tokens")
NETWORK = Field("network", "Network", "25 GbE, 4 x HDR", "--network")
RISK = Field(
    "risk", "Memory risk", "likelihood of running out of memory", choices=_risks
)
LAYOUT = Field(
    "layout", "Layout", "tp=4,pp=2; the rest is filled in", "--layout", first=True
)
BUDGET = Field("budget", "Budget", "100 MUSD", "--budget")
DEADLINE = Field("deadline", "Deadline", "60 d", "--deadline")
PRICE = Field("price", "Price", "2.5 USD/GPU-h; else the catalogue's")

_JOB = (SEQUENCE, BATCH, FRAMEWORK, TOKENS, NETWORK)
FORMS: Mapping[str, tuple[Field, ...]] = {
    "plan": (MODEL, ON, METHOD, *_JOB, RISK),
    "what-if": (MODEL, COUNT, GPU, METHOD, SEQUENCE, BATCH, FRAMEWORK, NETWORK, RISK),
    "compare": (MODEL, METHOD, SEQUENCE, BATCH, FRAMEWORK, TOKENS, BUDGET, DEADLINE),
    "memory": (MODEL, ON, METHOD, LAYOUT, *_JOB),
    "explain": (MODEL, ON, METHOD, LAYOUT, *_JOB, RISK),
    "rows": (MODEL, ON, METHOD, LAYOUT, *_JOB),
}
"""Fields of each page, in order."""


def limited(risk: str) -> str:
    """Assignment that limits the risk of running out of memory."""
    return f"search.memory_risk={risk}"


@dataclass(frozen=True)
class Form:
    """A form as the user filled it.

    Attributes:
        kind: Page of the form. [text]
        values: Value of each field, empty where it is left open. [text]
        faults: Name of a field that is wrong to what is wrong. [text]
        clusters: GPUs and price of each cluster of a comparison. [text]
    """

    kind: str
    values: Mapping[str, str]
    faults: Mapping[str, str]
    clusters: tuple[tuple[str, str], ...] = ()

    def fault(self, name: str) -> str:
        """Look up the fault of a field.

        Returns:
            The fault; empty where nothing is wrong. [text]
        """
        return self.faults.get(name, "")

    @property
    def blank(self) -> bool:
        """True where nothing is filled in."""
        return not any(self.values.values()) and not self.clusters

    @property
    def ready(self) -> bool:
        """True where the form may be asked."""
        return not self.blank and not self.faults

    @property
    def pairs(self) -> Fields:
        """Fields that say something, in order. [text]."""
        own = [(name, value) for name, value in self.values.items() if value]
        for on, price in self.clusters:
            own += [("on", on), ("price", price)]
        return tuple(own)

    @property
    def query(self) -> str:
        """The form in an address. [text]."""
        return urlencode(self.pairs)

    @property
    def asked(self) -> Fields:
        """Fields as questions have them: GPUs in one field. [text]."""
        if "count" not in self.values:
            return self.pairs
        kept = [pair for pair in self.pairs if pair[0] not in ("count", "gpu")]
        return (*kept, ("on", f"{self.values['count']}x{self.values['gpu']}"))


def read_form(kind: str, given: Sequence[tuple[str, str]]) -> Form:
    """Read a form from an address, with what is wrong by field."""
    found = {name: value.strip() for name, value in reversed(given)}
    if kind == "what-if":
        found = _counted(found)
    values = {field.name: found.get(field.name, "") for field in FORMS[kind]}
    faults = {f.name: why for f in FORMS[kind] if (why := f.fault(values[f.name]))}
    clusters = _clusters(given) if kind == "compare" else ()
    form = Form(kind, values, faults, clusters)
    if form.blank:
        return Form(kind, values, {}, ())
    more = _cluster_faults(clusters) if kind == "compare" else {}
    return Form(kind, values, faults | more, clusters)


def _counted(found: Mapping[str, str]) -> dict[str, str]:
    """GPUs of other pages, `8xh100`, as number and kind."""
    own, on = dict(found), found.get("on", "")
    if not on or own.get("count") or ON.fault(on):
        return own
    try:
        fleet = read_fleet(on, SHIPPED)
    except (SpellingError, UnknownNameError):
        return own
    return own | {"count": str(fleet.gpus), "gpu": fleet.gpu}


def _clusters(given: Sequence[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """GPUs and price of each cluster; rows without GPUs are left out."""
    names = [value.strip() for name, value in given if name == "on"]
    prices = [value.strip() for name, value in given if name == "price"]
    prices += [""] * (len(names) - len(prices))
    pairs = zip(names, prices, strict=False)
    return tuple((on, price) for on, price in pairs if on)[:CLUSTERS]


def _cluster_faults(clusters: Sequence[tuple[str, str]]) -> dict[str, str]:
    found = {} if clusters else {"on0": "Name at least one cluster."}
    for place, (on, price) in enumerate(clusters):
        found |= {f"on{place}": why} if (why := ON.fault(on)) else {}
        priced = PRICE.fault(price.replace("/", " "))
        found |= {f"price{place}": priced} if priced else {}
    return found
