"""Writes pipeline stages as Megatron's text of a layout, and reads that text."""

import re
from collections.abc import Sequence
from itertools import groupby

from planner.errors import BadInputError
from planner.specs.layouts.layout import Layout, Stage

EMBEDDING, DECODER, MTP, LOSS = "E", "t", "m", "L"
LONGEST, DIGITS = 1 << 16, 5
"""Most letters of a layout that is written out, and most digits of a repeat. [1]"""


def stage_layout(counts: Sequence[int], mtp: int) -> str:
    """Virtual stages in model order, as --pipeline-model-parallel-layout takes them.

    ``Et*3|(t*4|)*2t*3L``: embedding, decoder layers, prediction layers, loss. Equal
    neighbours are written once. Virtual stage i is chunk ``i // pp`` of rank
    ``i % pp``.

    Args:
        counts: Layers of every virtual stage. [1], shape (stages,)
        mtp: Layers of multi-token prediction, all on the last stage. [1]
    """
    words = [_repeated(DECODER, count) for count in counts]
    words[0] = EMBEDDING + words[0]
    words[-1] += _repeated(MTP, mtp) + LOSS
    runs = [(word, len(list(run))) for word, run in groupby(words[:-1])]
    return "".join(_run(f"{word}|", count) for word, count in runs) + words[-1]


def _run(stage: str, count: int) -> str:
    return f"({stage})*{count}" if count > 1 else stage


def _repeated(letter: str, count: int) -> str:
    return letter if count == 1 else f"{letter}*{count}" if count else ""


def is_even(layout: Layout) -> bool:
    """Tell if all virtual stages hold the same number of layers.

    Returns:
        True where a count alone describes the stages. [-]
    """
    return len(set(layout.layers_per_stage)) == 1


def counts_of(text: str, *, file: str) -> tuple[int, ...]:
    """Layers of every virtual stage of a written layout.

    Args:
        text: For example `Et*3|(t*4|)*2t*3L`; backslashes are escapes of a shell.
            [text]
        file: File of the text, for messages. [text]

    Returns:
        Decoder layers by stage. [1], shape (stages,)

    References:
        Megatron-LM core_v0.16.1 megatron/core/transformer/
        pipeline_parallel_layer_layout.py, parse_str_to_list.
    """
    plain = _unrolled(re.sub(r"[\s,'\"\\]", "", text))
    stages = plain.split("|")
    if any(set(stage) - set("EtmL") for stage in stages):
        raise BadInputError(
            "is no layout of stages",
            file=file,
            field="--pipeline-model-parallel-layout",
            value=text,
            allowed="E, t, m, L, counts such as t*3 and (...)*3, split by |",
        )
    return tuple(stage.count(DECODER) for stage in stages)


def _unrolled(text: str) -> str:
    """Write out groups and repeats, innermost first."""
    before = ""
    while before != text:
        before = text
        text = re.sub(r"\(([^()]*)\)\*(\d+)", _times, text)
        text = re.sub(r"([A-Za-z|])\*(\d+)", _times, text)
    return text


def _times(match: re.Match[str]) -> str:
    """Repeat a part; a repeat that is too long stays as written, and is no layout."""
    part, count = match.group(1), match.group(2)
    few = len(count) <= DIGITS and len(part) * int(count) <= LONGEST
    return part * int(count) if few else match.group(0)


def plain_stages(counts: Sequence[int], kind: str) -> tuple[Stage, ...]:
    """Stages with one recompute kind, for all layers or for the first of each stage.

    Args:
        counts: Layers of every virtual stage. [1]
        kind: Recompute of all layers; `full:N` of the first N of each stage. [text]
    """
    name, _, head = kind.partition(":")
    return tuple(
        _stage(count, name, min(int(head), count) if head else count)
        for count in counts
    )


def _stage(count: int, kind: str, head: int) -> Stage:
    ranges = [(0, head, kind), (head, count, "none")]
    parts = [{"from": a, "to": b, "kind": k} for a, b, k in ranges if b > a]
    return Stage.model_validate({"layers": count, "recompute": parts})
