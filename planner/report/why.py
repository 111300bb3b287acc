"""The terms of a number as a tree in a terminal."""

from rich.console import Group, RenderableType
from rich.text import Text
from rich.tree import Tree

from planner.cost.why.terms import Term, Why
from planner.report.vocabulary import CAUSES


def why_report(answer: Why, depth: int) -> RenderableType:
    """Tree of each phase's terms, and the sources that its leaves rest on."""
    sources: dict[str, int] = {}
    shown: list[RenderableType] = []
    for each in answer.terms:
        tree = _tree(each.term, each.term.value, depth, sources)
        shown += [Text(each.phase), tree] if each.phase else [tree]
    notes = (Text(f"[{number}] {text}") for text, number in sources.items())
    return Group(*shown, *([Text("")] if sources else []), *notes)


def _tree(term: Term, whole: float, depth: int, sources: dict[str, int]) -> Tree:
    """A term with its parts to a depth, the largest first."""
    lines = _head(term, whole)
    lines += _facts(term, sources)
    if term.parts and depth == 0:
        lines.append(f"{len(term.parts)} parts: a greater --depth shows them")
    tree = Tree(Text("\n".join(lines)))
    if depth > 0:
        for part in sorted(term.parts, key=lambda each: -abs(each.value)):
            tree.children.append(_tree(part, whole, depth - 1, sources))
    return tree


def _head(term: Term, whole: float) -> list[str]:
    """Value, share and title; the formula, and the times that it counts."""
    share = f" {term.value / whole:.1%}" if whole else ""
    title = CAUSES.get(term.title, term.title)
    lines = [f"{term.value:.4g} {term.unit}{share}  {title}"]
    if term.formula:
        calls = f"{term.calls:,.6g} x " if term.calls != 1.0 else ""
        lines.append(f"= {calls}{term.formula}")
    return lines


def _facts(term: Term, sources: dict[str, int]) -> list[str]:
    """Numbers of a leaf's formula, its sources, and constants of the stack."""
    numbers = ", ".join(f"{name} {value:.6g}" for name, value in term.numbers.items())
    stack = ", ".join(f"{name} {value}" for name, value in term.stack.items())
    notes = [sources.setdefault(text, len(sources) + 1) for text in term.source]
    lines = [f"with {numbers}"] if numbers else []
    lines += [f"from {' '.join(f'[{note}]' for note in notes)}"] if notes else []
    return lines + ([f"stack: {stack}"] if stack else [])
