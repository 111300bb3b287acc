"""Python code of a configuration: calls with one keyword a line."""

from collections.abc import Iterator, Mapping, Sequence

Keywords = Mapping[str, object]
COMMENTS = {
    "disable_cuda_graphs": (
        "A pipeline, or tokens on their way to experts, cannot be captured, and the",
        "plan counts no memory for captured graphs.",
    ),
    "spmd_backend": ("The default, spmd_types, needs a later PyTorch than 2.13.",),
    "local_batch_size": ("Sequences of one pipeline, or of one forward without one.",),
    "fsdp_reshard_after_forward": (
        "always: ZeRO-3; never: ZeRO-2; default: ZeRO-3, but 2 under a pipeline.",
    ),
}
"""Comment lines above a keyword. [text]"""


class Code(str):
    """Words that are Python already; other values are written as literals."""

    __slots__ = ()


def call(name: str, keywords: Keywords, indent: int = 8) -> str:
    """Write a call as code, one keyword a line."""
    inside = " " * (indent + 4)
    lines = [
        line
        for key, value in keywords.items()
        for line in (*_comment(key, inside), f"{inside}{key}={_literal(value)},")
    ]
    return "\n".join([f"{name}(", *lines, " " * indent + ")"])


def _comment(key: str, inside: str) -> Iterator[str]:
    return (f"{inside}# {line}" for line in COMMENTS.get(key, ()))


def _literal(value: object) -> str:
    """Write a value as code, with text in double quotes."""
    if isinstance(value, Code):
        return str(value)
    if isinstance(value, str):
        return '"' + value.encode("unicode_escape").decode().replace('"', '\\"') + '"'
    if isinstance(value, Mapping):
        inside = ", ".join(f"{_literal(k)}: {_literal(v)}" for k, v in value.items())
        return "{" + inside + "}"
    if isinstance(value, Sequence):
        return "[" + ", ".join(map(_literal, value)) + "]"
    return repr(value)
