"""Escapes of bash: `$'...'`, and those of `echo -e` and `printf`."""

import re

_ESCAPE = re.compile(
    r"\\(?:x(?P<hex>[0-9a-fA-F]{1,2})|u(?P<u>[0-9a-fA-F]{1,4})|U(?P<U>[0-9a-fA-F]{1,8})"
    r"|(?P<octal>[0-7]{1,3})|c(?P<control>.)|(?P<char>.))",
    re.DOTALL,
)
_CHARS = dict(zip("abeEfnrtv\\'\"?", "\a\b\x1b\x1b\f\n\r\t\v\\'\"?", strict=True))


def decoded(text: str) -> str:
    """Text with escapes replaced; what is no escape stays."""
    return _ESCAPE.sub(_character, text)


def _character(match: re.Match[str]) -> str:
    code = match["hex"] or match["u"] or match["U"]
    if code:
        return chr(int(code, 16))
    if match["octal"]:
        return chr(int(match["octal"], 8) % 256)
    if match["control"]:
        return chr(ord(match["control"].upper()) ^ 64)
    return _CHARS.get(match["char"], match[0])
