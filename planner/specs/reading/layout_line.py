"""The line of a layout: `plan -q` writes it, and `--layout` takes it back."""

import re
from collections.abc import Iterable
from itertools import groupby
from typing import Any
from urllib.parse import quote, unquote

from pydantic import ValidationError
from yaml.representer import SafeRepresenter

from planner.errors import BadInputError
from planner.specs.layouts.axes import FIELDS
from planner.specs.layouts.blocks import recomputed_block, with_recompute
from planner.specs.layouts.formats import FORMAT_AXES
from planner.specs.layouts.layout import (
    MOST_LAYERS,
    Layout,
    PartialLayout,
    PoolStages,
    Stage,
)
from planner.specs.layouts.layout_text import (
    recompute_kinds,
    recompute_words,
    stages_words,
)
from planner.specs.reading.invalid import explained
from planner.specs.reading.read import Fields, value_of
from planner.specs.search import SETTINGS

OPTION = "--layout"
SEPARATOR = "/"
"""Between the virtual stages, or the pools, of one value. [text]"""
_SPANS = r"\d{1,5}@[^.@/]+(?:\.\d{1,5}@[^.@/]+)*"
_SHORT = {
    "stages": re.compile(rf"(?:(\d{{1,5}})x)?(\d{{1,5}}|{_SPANS})"),
    "pools": re.compile(
        r"([^@/]+)@(\d{1,5})(?:-(\d{1,5}))?(?:\.tp(\d{1,8}))?(?:\.dp(\d{1,8}))?"
    ),
}
"""One stage, or one pool, as a line has it."""
_FORMATS = {axis: f"comm_dtype.{name}" for axis, name in FORMAT_AXES.items()}
"""Words of the search block for the formats of a layout. [text]"""


def given_layout(layout: Layout) -> str:
    """A layout as `--layout` takes it back, whole.

    Virtual stages stand in model order, equal neighbours together: `stages=3x11/7`
    are three of 11 layers and one of 7. Where layers differ in recompute, each stage
    says it: `3x2@full.9@none/7@none`. Pools stand with their pipeline ranks and
    degrees: `pools=h100@0-3.tp8.dp4/a100@4-5.tp4.dp8`.
    """
    pairs = [
        (axis.name, axis.of(layout))
        for axis in FIELDS
        if axis.is_told(layout)
        and (axis.matters(layout) or axis.of(layout) != axis.default)
    ]
    pairs += _stages(layout)
    if layout.pools:
        pairs.append(("pools", SEPARATOR.join(map(_pool, layout.pools))))
    moved = layout.offload.model_dump(exclude_defaults=True)
    pairs += [(f"offload.{name}", share) for name, share in moved.items()]
    wire = layout.stated_formats
    pairs += [(f"comm_dtype.{name}", word) for name, word in wire or ()]
    word = SafeRepresenter().represent_data
    return ",".join(f"{name}={word(value).value}" for name, value in pairs)


def _stages(layout: Layout) -> list[tuple[str, object]]:
    """Layers of the virtual stages, and what of them is recomputed."""
    stages = layout.stages
    alike = recomputed_block(stages) or len(recompute_kinds(layout)) < 2  # kinds
    kind = recompute_words(layout)
    bare = (Stage(layers=stage.layers) for stage in stages)
    plain = alike and stages == tuple(with_recompute(each, kind) for each in bare)
    words = [str(s.layers) if plain else _stage(s) for s in stages]
    found: list[tuple[str, object]] = [("recompute", kind)] if plain else []
    return found + ([("stages", _runs(words))] if words else [])


def _stage(stage: Stage) -> str:
    spans = (f"{part.stop - part.start}@{part.kind}" for part in stage.recompute)
    return ".".join(spans) or str(stage.layers)


def _runs(words: Iterable[str]) -> str:
    """Equal neighbours together."""
    runs = ((word, len(list(group))) for word, group in groupby(words))
    return SEPARATOR.join(f"{n}x{word}" if n > 1 else word for word, n in runs)


def _pool(pool: PoolStages) -> str:
    own = {"tp": pool.tp, "dp": pool.dp}
    degrees = "".join(f".{name}{degree}" for name, degree in own.items() if degree)
    return f"{quote(pool.pool, safe='')}@{stages_words(pool)}{degrees}"


def read_layout(text: str) -> PartialLayout:
    """A layout in its short form: `tp=8,pp=16,stages=even,offload.optimizer=1`.

    Args:
        text: `key=value` pairs with commas between them; values are YAML, and a dot
            leads into a block; stages and pools as :func:`given_layout` writes them.
            [text]

    Raises:
        BadInputError: No pairs, a key twice or misspelt, or a value is wrong.
    """
    fields: Fields = {}
    for pair in filter(None, map(str.strip, text.split(","))):
        key, equals, value = (part.strip() for part in pair.partition("="))
        if not equals or not key:
            raise BadInputError("is no key=value pair", file=OPTION, value=pair)
        _refuse_setting(key, value)
        if not _lay(fields, _FORMATS.get(key, key), _value(key, value)):
            raise BadInputError("is given twice", file=OPTION, value=pair)
    try:
        return PartialLayout.model_validate(fields)
    except ValidationError as error:
        raise explained(error, PartialLayout, file=OPTION) from error


def _refuse_setting(key: str, value: str) -> None:
    """Refuse a choice of the training block, which a plan names beside its layout."""
    if key in SETTINGS:
        raise BadInputError(
            "is of the training block, not of the layout",
            file=OPTION,
            field=key,
            value=value,
            allowed=f"--set training.{key}={value}",
        )


def _lay(fields: Fields, key: str, value: Any) -> bool:
    """Put one value in its place, in a block or not; False where one lies there."""
    outer, dot, inner = key.partition(".")
    block = fields.setdefault(outer, {}) if dot else fields
    name = inner if dot else outer
    if not isinstance(block, dict) or name in block:
        return False
    block[name] = value
    return True


def _value(key: str, text: str) -> Any:
    """Value of a key: stages and pools in the short form, all else as YAML."""
    short = _SHORT.get(key)
    found = [short.fullmatch(each) for each in text.split(SEPARATOR)] if short else []
    matches = [match for match in found if match]
    if not matches or len(matches) < len(found):
        return value_of(text, f"{OPTION} {key}")
    if key == "pools":
        return [_read_pool(match) for match in matches]
    counts = [int(match[1] or 1) for match in matches]
    if sum(counts) > MOST_LAYERS:
        raise BadInputError(
            f"are {sum(counts):,} virtual stages",
            file=OPTION,
            field=key,
            value=text,
            allowed=f"at most {MOST_LAYERS:,}",
        )
    each = zip(matches, counts, strict=True)
    return [_read_stage(match[2]) for match, count in each for _ in range(count)]


def _read_stage(text: str) -> Fields:
    """One virtual stage: its layers, or layers under each kind of recompute."""
    if "@" not in text:
        return {"layers": int(text)}
    at, spans = 0, []
    for part in text.split("."):
        layers, _, kind = part.partition("@")
        spans.append({"from": at, "to": at + int(layers), "kind": kind})
        at += int(layers)
    return {"layers": at, "recompute": spans}


def _read_pool(match: re.Match[str]) -> Fields:
    """One pool: its name, its pipeline ranks, and degrees of its own."""
    ranks = range(int(match[2]), int(match[3] or match[2]) + 1)
    own = {"tp": match[4], "dp": match[5]}
    degrees = {name: int(degree) for name, degree in own.items() if degree}
    return {"pool": unquote(match[1]), "stages": list(ranks), **degrees}
