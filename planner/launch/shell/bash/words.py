"""Words of bash: quotes, expansions, and the fields that they are split into."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tree_sitter import Node

from planner.launch.shell.bash.arithmetic import computed
from planner.launch.shell.bash.escapes import decoded
from planner.launch.shell.bash.operators import Part, Parts, as_pattern, joined
from planner.launch.shell.bash.parameters import parameter
from planner.launch.shell.bash.parse import text_of
from planner.launch.shell.bash.state import Shell
from planner.launch.shell.values import HOST, PART, known, loose, plain, unknown

_EXPANDED = frozenset(
    {
        "simple_expansion",
        "expansion",
        "command_substitution",
        "arithmetic_expansion",
        "process_substitution",
        "string",
        "translated_string",
        "raw_string",
        "ansi_c_string",
        "brace_expression",
    }
)
"""Nodes that stand for other text than their source. [text]"""
_IN_QUOTES = _EXPANDED - {"raw_string", "ansi_c_string", "process_substitution"}
_BRACES = re.compile(r"(?<!\\)\{[^{}\s]*(?:,|\.\.)[^{}\s]*\}")
_MISSED = re.compile(r"(?<!\\)(?:\\\\)*(?:`|\$[({])")
"""Start of an expansion that the grammar has not seen. [text]"""
_ESCAPE = re.compile(r"\\(.|\n)", re.DOTALL)
_ESCAPE_IN_QUOTES = re.compile(r"\\([$`\"\\\n])")
_RANGE = re.compile(r"\{(-?\d+)\.\.(-?\d+)(?:\.\.(-?\d+))?\}")
_FILES = re.compile(r"(?![-\\]|.*=).*[*?]", re.DOTALL)
"""Word that stands for the files that fit it; none of them begins with a dash, and a
setting has none. [text]"""


@dataclass(frozen=True)
class Span:
    """Part of a node's source.

    Attributes:
        node: The node. [-]
        start: First byte, in the script. [B]
        end: Byte after the last one. [B]
    """

    node: Node
    start: int
    end: int

    def text(self, start: int, end: int) -> str:
        """Source between two bytes of the script. [text]."""
        first = self.node.start_byte
        return (self.node.text or b"")[start - first : end - first].decode()


def fields(nodes: Iterable[Node], shell: Shell) -> list[str]:
    """Words that a shell makes of the source of words."""
    return [word for node in nodes for word in _split(_braced(node, shell), shell)]


def single(node: Node, shell: Shell) -> str:
    """Word that is not split, such as the value of an assignment. [text]."""
    return joined(parts(node, shell))


def quoted(span: Span, shell: Shell) -> str:
    """Text of a span as if it stood in double quotes. [text]."""
    return joined(_between(span, shell, quoted=True))


def pattern(node: Node, shell: Shell) -> str:
    """Glob of a word, in which quoted characters stand for themselves. [text]."""
    return as_pattern(parts(node, shell))


def expression_of(node: Node, shell: Shell) -> str:
    """Regular expression of a word, in which quoted text stands for itself. [text]."""
    source = text_of(node)
    inside = node.type == "regex" and re.search(r"['\"`]|\$[\w{(]", source)
    if inside or re.search(r"\\[A-Za-z0-9<>]", source):
        shell.refuse(text_of(node), "is a regular expression that is not followed")
    found = (part for part in parts(node, shell) if part is not None)
    return "".join(
        re.escape(p.text) if p.quoted and known(p.text) else p.text for p in found
    )


def _braced(node: Node, shell: Shell) -> Parts:
    """Parts of a word; unknown where braces give several words."""
    source = text_of(node)
    bare = re.sub(r"\"[^\"]*\"|'[^']*'|\$\{[^}]*\}", "", source)
    if _BRACES.search(bare):
        return [
            p for word in _range(source, shell) for p in (Part(word, quoted=True), None)
        ]
    globbed = node.type in ("word", "concatenation") and _FILES.match(bare)
    if globbed and "noglob" not in shell.options:
        files = unknown(plain(joined(parts(node, shell))))
        return [Part(loose(files), quoted=True)]
    return parts(node, shell)


def _range(source: str, shell: Shell) -> list[str]:
    """Numbers of `{1..8}` and `{01..08..2}`, which keep their zeros."""
    ends = _RANGE.fullmatch(source)
    if ends is None:
        shell.refuse(source, "is a list in braces, which is not followed")
    first, last = int(ends[1]), int(ends[2])
    step = abs(int(ends[3] or 1)) or 1
    padded = any(re.match(r"-?0\d", end) for end in ends.groups()[:2])
    width = max(len(ends[1]), len(ends[2])) if padded else 0
    if abs(last - first) // step > 1 << 12:
        shell.refuse(source, "is too long to follow")
    up = last >= first
    numbers = range(first, last + (1 if up else -1), step if up else -step)
    return [f"{number:0{width}d}" if width else str(number) for number in numbers]


def parts(node: Node, shell: Shell, *, in_quotes: bool = False) -> Parts:
    """Parts of a word.

    Returns:
        Parts; None between the elements of `"$@"`. [-]
    """
    if node.type in _EXPANDED:
        return _expanded(node, shell, in_quotes=in_quotes)
    span = Span(node, node.start_byte, node.end_byte)
    found = _between(span, shell, quoted=in_quotes)
    if found and found[0] is not None and not in_quotes:
        first = found[0]
        if re.match(r"~(/|$)", first.text) and not first.quoted and not first.split:
            home = shell.value("HOME")
            rest = Part(first.text[1:])
            found[:1] = [Part(str(home), quoted=True), rest]
    return found


def _expansions(node: Node, *, quoted: bool) -> Iterator[Node]:
    """Outermost parts of a node that stand for other text."""
    for child in node.children:
        if child.type in (_IN_QUOTES if quoted else _EXPANDED):
            yield child
        else:
            yield from _expansions(child, quoted=quoted)


def _between(span: Span, shell: Shell, *, quoted: bool) -> Parts:
    """Parts of a span: expansions, and the text between them."""
    found, at = list[Part | None](), span.start
    for child in _expansions(span.node, quoted=quoted):
        if not span.start <= child.start_byte < span.end:
            continue
        # A space before an expansion in quotes belongs to the tree's node of it.
        source = text_of(child)
        start = child.start_byte + len(source) - len(source.lstrip(" \t\n"))
        found += _literal(span.text(at, start), shell, quoted=quoted)
        found += _expanded(child, shell, in_quotes=quoted)
        at = child.end_byte
    return found + _literal(span.text(at, span.end), shell, quoted=quoted)


def _literal(text: str, shell: Shell, *, quoted: bool) -> Parts:
    """Text without backslashes; the characters behind them are quoted."""
    missed = _MISSED.search(text)
    if missed:
        shell.refuse(text.strip(), "has an expansion that is not followed")
    found, at = list[Part | None](), 0
    for match in (_ESCAPE_IN_QUOTES if quoted else _ESCAPE).finditer(text):
        found.append(Part(text[at : match.start()], quoted=quoted))
        found.append(Part("" if match[1] == "\n" else match[1], quoted=True))
        at = match.end()
    found.append(Part(text[at:], quoted=quoted))
    return [p for p in found if p is not None and p.text]


def _expanded(node: Node, shell: Shell, *, in_quotes: bool) -> Parts:
    """Parts of a node that stands for other text than its source."""
    kind, source = node.type, text_of(node).strip()
    if kind in ("string", "translated_string"):
        return _string(node, shell, in_quotes=in_quotes)
    if kind in ("raw_string", "ansi_c_string"):
        text = source[1:-1] if kind == "raw_string" else decoded(source[2:-1])
        return [Part(text, quoted=True)]
    if kind in ("process_substitution", "brace_expression"):
        return [Part(shell.unsaid("$(...)"), quoted=True)]
    if kind in ("arithmetic_expansion", "command_substitution"):
        get = _sum if kind == "arithmetic_expansion" else _output
        return [Part(get(node, shell), quoted=in_quotes, split=not in_quotes)]
    return _parameter(node, shell, in_quotes=in_quotes)


def _sum(node: Node, shell: Shell) -> str:
    """Value of `$((...))` or `$[...]`."""
    source = text_of(node).strip()
    inner = 3 if source.startswith("$((") else 2
    start = node.end_byte - len(source.encode()) + inner
    span = Span(node, start, node.end_byte - (inner - 1))
    return computed(quoted(span, shell), shell)


def _parameter(node: Node, shell: Shell, *, in_quotes: bool) -> Parts:
    """Parts of `$X` or `${X...}`."""
    source = text_of(node).strip()
    first = node.end_byte - len(source.encode())

    def operand(start: int, end: int, *, quoted: bool) -> Parts:
        ends = (first + len(source[:at].encode()) for at in (start, end))
        return _between(Span(node, *ends), shell, quoted=quoted)

    return parameter(source, shell, operand, in_quotes=in_quotes)


def _string(node: Node, shell: Shell, *, in_quotes: bool) -> Parts:
    """Parts of a text in double quotes, which is one word even where it is empty."""
    source = text_of(node)
    start = node.start_byte + source.encode().index(b'"') + 1
    found = _between(Span(node, start, node.end_byte - 1), shell, quoted=True)
    if in_quotes:
        return found
    several = re.search(r"\$(@|\{[^}]*@)", source) is not None
    return found if several else [Part("", quoted=True), *found]


def _output(node: Node, shell: Shell) -> str:
    """Output of a command; unknown where a program would have to be run."""
    source = text_of(node).strip()
    if source.startswith("`") and re.search(r"\\[$`\\]", source):
        shell.refuse(source, "has backslashes in backquotes, which is not followed")
    out = list[str]()
    inner = shell.child(out=out)
    if "inherit_errexit" not in shell.options:
        inner.options.discard("errexit")
    inner.run(inner, node)
    text = "".join(out)
    shell.status, shell.doubt = inner.status, inner.doubt
    shell.substituted = True
    return text.rstrip("\n")


def _split(found: Sequence[Part | None], shell: Shell) -> list[str]:
    """Words of the parts of a word."""
    maker = _Maker(separators(shell))
    for part in found:
        if part is None:
            maker.end()
        elif part.split and not part.quoted:
            maker.split(part.text)
        else:
            maker.add(part.text)
    maker.end()
    return maker.words


def separators(shell: Shell) -> str:
    """Characters that part words: those of IFS. [text]."""
    value = shell.value("IFS") if "IFS" in shell.settled() else None
    return value if isinstance(value, str) else " \t\n"


def cut(text: str, by: str) -> list[str]:
    """Words of a text."""
    maker = _Maker(by)
    maker.split(text)
    maker.end()
    return maker.words


class _Maker:
    """Makes words of parts.

    Attributes:
        words: Words that are complete. [text]
    """

    def __init__(self, separators: str) -> None:
        self.blank = "".join(s for s in separators if s in " \t\n")
        self.other = "".join(s for s in separators if s not in " \t\n")
        self.words: list[str] = []
        self.text: str | None = None
        self.bare = True
        self.ended_by_blank = False

    def add(self, text: str) -> None:
        """Add text to the word, quoted or as it is."""
        self.text = (self.text or "") + text
        self.bare = False
        self.ended_by_blank = False

    def end(self) -> None:
        """End the word, where one has begun."""
        if self.text is None:
            return
        part = PART.fullmatch(self.text)
        alone = self.bare and part and not part[1].startswith(HOST)
        self.words.append(loose(self.text) if alone else self.text)
        self.text, self.bare = None, True

    def split(self, text: str) -> None:
        """Add the value of an expansion, cut at separators."""
        for match in re.finditer(rf"{PART.pattern}|.", text, re.DOTALL):
            each = match[0]
            if each in self.blank:
                self.ended_by_blank = self.ended_by_blank or self.text is not None
                self.end()
            elif each in self.other:
                if not self.ended_by_blank:
                    self.text = self.text or ""
                self.end()
                self.ended_by_blank = False
            else:
                self.text = (self.text or "") + each
                self.ended_by_blank = False
