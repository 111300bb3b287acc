"""Settings of launch files that a reader did not understand, and their refusal."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from planner.errors import BadInputError, did_you_mean

NOT_PRICED = "is not priced"
"""Why a value is refused that the target takes and no price is known for. [text]"""
CHANGES = "changes time or memory, and is not priced"
"""Why a setting is refused whose effect no price holds. [text]"""
ABSENT = "the file is not among those given"
"""Why the name of another file is refused. [text]"""
NAMED = 8
"""Settings that one message names. [1]"""


@dataclass(frozen=True)
class Unknown:
    """A setting that was not understood.

    Attributes:
        name: Name of the setting, as the file writes it. [text]
        value: Value of the setting; None for a switch. [-]
        why: Reason, as the end of a sentence. [text]
        ranks: True where the number of ranks says what the files leave open. [-]
        place: File and line, `file:line`. [text]
        wants: File that would settle it, as the setting names it; empty for none.
            [text]
    """

    name: str
    value: object = None
    why: str = "is not understood"
    ranks: bool = False
    place: str = ""
    wants: str = ""

    @property
    def setting(self) -> str:
        """The setting with its value, in short. [text]."""
        value = "" if self.value is None else f" {self.value}"
        return f"{self.name}{value}"

    def __str__(self) -> str:
        return f"{self.setting}: {self.why}"


def refuse_unknown(unknown: Sequence[Unknown], ignore: Iterable[str]) -> None:
    """Refuse settings that were not understood, except those that the user sets aside.

    Raises:
        BadInputError: A setting is left; or a name is set aside that is none of these.
    """
    aside, names = frozenset(ignore), {each.name for each in unknown}
    for name in sorted(aside - names):
        raise BadInputError(
            "is no setting of the files that was not understood",
            field="--ignore",
            value=name,
            allowed=did_you_mean(name, names) if names else "none: all are understood",
        )
    left = [each for each in unknown if each.name not in aside]
    if left:
        raise _refusal(left)


def _refusal(left: Sequence[Unknown]) -> BadInputError:
    """One message on all settings that are left; the first has its place."""
    first, *others = left
    more = [f"{each.place}: {each}" for each in others[: NAMED - 1]]
    more += [f"{len(left) - NAMED} more"] if len(left) > NAMED else []
    return BadInputError(
        "; ".join([first.why, *more]),
        file=first.place,
        field=first.name,
        value=first.value,
        allowed=_settled_by(left),
    )


def _settled_by(left: Sequence[Unknown]) -> str:
    """Words of a command line that settle what is left. [text]."""
    said = ["the number of ranks (--on 8xh100)"] if any(i.ranks for i in left) else []
    names = dict.fromkeys(each.name for each in left if not each.ranks)
    if names:
        aside = " ".join(f"--ignore {name}" for name in names)
        them = "it" if len(names) == 1 else "them"
        said.append(f"{aside}, to price the job without {them}")
    return "; ".join(said)


def placed(files: Mapping[str, str], name: str) -> str:
    """File and line that a setting stands in.

    Returns:
        `file:line`; empty where no line holds the name. [text]
    """
    # An option is looked for as one, so that no option of ours is found in a file.
    dashes = "--" if name.startswith("--") and "." not in name else "(?:--)?"
    for word in dict.fromkeys((name, name.rpartition(".")[2])):
        spelled = re.escape(word.lstrip("-")).replace(r"\-", "_").replace("_", "[_-]")
        alone = re.compile(rf"(?<![\w.-]){dashes}{spelled}(?![\w-])")
        for file, text in files.items():
            for number, line in enumerate(text.splitlines(), start=1):
                if alone.search(line.partition(" #")[0]):
                    return f"{file}:{number}"
    return ""


def absent(name: str, file: object) -> Unknown:
    """A setting that names a file which is not among those given."""
    return Unknown(name, file, ABSENT, wants=str(file))


def unjudged(
    given: Mapping[str, object], known: Collection[str], judged: Collection[str]
) -> Iterator[Unknown]:
    """Arguments that a program has, and that stand in no list."""
    for name, value in given.items():
        if name in known and name not in judged:
            yield Unknown(str(name), value)


@contextmanager
def lines_of(files: Mapping[str, str]) -> Iterator[None]:
    """Add the line of a field to a complaint that names one of the files."""
    try:
        yield
    except BadInputError as error:
        near = {n: text for n, text in files.items() if error.file in (None, n)}
        if error.field and near:
            error.file = placed(near, error.field) or error.file
        raise
