"""Redirections: what a command reads, and the files that here-documents make."""

import re
from itertools import pairwise

from tree_sitter import Node

from planner.launch.shell.bash.parse import text_of
from planner.launch.shell.bash.state import Shell
from planner.launch.shell.bash.words import Span, fields, quoted, single
from planner.launch.shell.values import known

_KEPT = ("heredoc_redirect", "herestring_redirect", "file_redirect")


def redirected(shell: Shell, node: Node) -> None:
    """Run a statement with its input and output redirected."""
    shell.line = shell.start + node.start_point.row + 1
    body = node.child_by_field_name("body")
    every = [r for child in node.children for r in _redirects(child)]
    before, out = shell.lines, shell.out
    target, more = _target(every, shell)
    for each in every:
        _read(each, shell)
    if target is not None:
        shell.out = []
    try:
        if body is not None:
            shell.run(shell, body)
    finally:
        written, shell.out, shell.lines = shell.out, out, before
    if target:
        _write(shell, target, "".join(written or []), more=more)
    for each in every:
        _go_on(each, shell)


def _go_on(redirect: Node, shell: Shell) -> None:
    """Run what stands behind a here-document's mark: `cat <<E && COMMAND`."""
    for before, child in pairwise(redirect.children):
        if child.type == "pipeline":
            shell.refuse(
                text_of(child),
                "takes a here-document through a pipe, which is not followed",
                "the text in a file, or COMMAND <<MARK",
            )
        if before.type in ("&&", "||") and shell.holds() == (before.type == "&&"):
            shell.run(shell, child)


def _redirects(node: Node) -> list[Node]:
    """Redirections of a node, and those that stand behind a here-document's mark."""
    if node.type not in _KEPT:
        return []
    return [node, *(c for c in node.named_children if c.type in _KEPT)]


def _target(every: list[Node], shell: Shell) -> tuple[str | None, bool]:
    """File that standard output goes to; empty where it goes nowhere to be read."""
    for each in every:
        signs = [c.type for c in each.children if not c.is_named]
        number = next(
            (text_of(c) for c in each.children if c.type == "file_descriptor"), "1"
        )
        if each.type != "file_redirect" or number != "1" or not signs:
            continue
        word = each.named_children[-1]
        if signs[0] in (">", ">>", ">|", "&>", "&>>"):
            return single(word, shell), ">>" in signs[0]
        if signs[0] == ">&" and text_of(word) == "2":
            return "", False
    return None, False


def _write(shell: Shell, target: str, text: str, *, more: bool) -> None:
    name = target.rpartition("/")[2]
    if not known(name) or (not text and target.startswith("/dev/")):
        return
    files = shell.record.files
    files[name] = files.get(name, "") + text if more else text


def _read(node: Node, shell: Shell) -> None:
    """Set the lines that a command reads."""
    signs = [c.type for c in node.children if not c.is_named]
    if node.type == "heredoc_redirect":
        _keep(shell, _heredoc(node, shell))
    elif node.type == "herestring_redirect":
        _keep(shell, single(node.named_children[-1], shell))
    elif signs and signs[0] == "<":
        word = node.named_children[-1]
        if word.type == "process_substitution":
            out = list[str]()
            inner = shell.child(out=out)
            for child in word.named_children:
                inner.run(inner, child)
            _keep(shell, "".join(out).removesuffix("\n"))
            return
        name = "".join(fields([word], shell)).rpartition("/")[2]
        text = shell.record.files.get(name)
        shell.lines = None if text is None else text.removesuffix("\n").split("\n")


def _keep(shell: Shell, text: str) -> None:
    shell.lines = text.split("\n")


def _heredoc(node: Node, shell: Shell) -> str:
    """Text of a here-document, expanded unless its mark is quoted."""
    its = {child.type: child for child in node.children}
    mark, body = its["heredoc_start"], its.get("heredoc_body")
    end = its.get("heredoc_end")
    if body is None or end is None:
        return ""
    source = node.text or b""
    start = source.index(b"\n", mark.end_byte - node.start_byte) + 1 + node.start_byte
    span = Span(node, start, end.start_byte)
    if re.search(r"['\"\\]", text_of(mark)):
        text = span.text(span.start, span.end)
    else:
        text = quoted(Span(body, body.start_byte, body.end_byte), shell)
        text = span.text(span.start, max(body.start_byte, span.start)) + text
    if any(child.type == "<<-" for child in node.children):
        text = re.sub(r"^\t+", "", text, flags=re.MULTILINE)
    return text.removesuffix("\n")
