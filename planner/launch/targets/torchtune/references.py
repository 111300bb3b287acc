"""References within a file of torchtune, as OmegaConf resolves them."""

import re
from collections.abc import Mapping
from typing import Any, NoReturn

from planner.errors import BadInputError, did_you_mean

_REFERENCE = re.compile(r"\$\{(\.*)([A-Za-z_][\w.-]*)\}")
"""A setting by its dotted name; dots in front count blocks upwards. [text]"""
Path = tuple[object, ...]


def resolved(given: Mapping[str, Any], file: str) -> dict[str, Any]:
    """Resolve `${name}` and `${block.name}` to the setting of that name.

    A value that is a reference alone has the type of what it names. Calls, such as
    `${oc.env:HOME}`, stay as they are.

    Raises:
        BadInputError: No setting has the name, or settings name each other in a ring.

    References:
        OmegaConf 2.3 omegaconf/base.py, _resolve_node_interpolation.
    """
    reader = _Reader(given, file)
    return {name: reader.inside(value, (name,), ()) for name, value in given.items()}


class _Reader:
    """Reads values of one file."""

    def __init__(self, given: Mapping[str, Any], file: str) -> None:
        self.given, self.file = given, file

    def inside(self, value: Any, at: Path, open_: tuple[Path, ...]) -> Any:
        """Value with its references resolved; *open_* are those under way."""
        if isinstance(value, Mapping):
            return {k: self.inside(v, (*at, k), open_) for k, v in value.items()}
        if isinstance(value, list):
            return [self.inside(v, (*at, i), open_) for i, v in enumerate(value)]
        if not isinstance(value, str):
            return value
        alone = _REFERENCE.fullmatch(value)
        if alone:
            return self._named(alone, at, open_)
        return _REFERENCE.sub(lambda its: str(self._named(its, at, open_)), value)

    def _named(self, its: re.Match[str], at: Path, open_: tuple[Path, ...]) -> Any:
        above = at[: len(at) - len(its[1])] if its[1] else ()
        where: Path = (*above, *its[2].split("."))
        if where in open_:
            self._refuse(at, its[0], "names itself", "a value, or another setting")
        found: Any = self.given
        for name in where:
            if not isinstance(found, Mapping) or name not in found:
                known = map(str, found) if isinstance(found, Mapping) else ()
                near = did_you_mean(str(name), known) or "a setting of the file"
                self._refuse(at, its[0], "names no setting of the file", near)
            found = found[name]
        return self.inside(found, where, (*open_, where))

    def _refuse(self, at: Path, value: str, why: str, allowed: str) -> NoReturn:
        field = ".".join(str(name) for name in at if isinstance(name, str))
        raise BadInputError(
            why, file=self.file, field=field, value=value, allowed=allowed
        )
