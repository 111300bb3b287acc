"""State of a shell: variables, functions, positional parameters, and what is unsaid."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NoReturn

from tree_sitter import Node

from planner.errors import BadInputError
from planner.launch.shell.bash.parse import line_of, text_of
from planner.launch.shell.values import LOOSE, PART, loose, plain, unknown, unset

Array = dict[str, str]
Value = str | Array
STEPS = 20_000
"""Commands that are followed; a real script has some hundred. [1]"""
LONGEST = 1 << 16
"""Characters of a variable; a command line has fewer. [1]"""
FAILED = -1
"""Exit status of a failure whose number is unknown. [1]"""
DEEPEST = 64
"""Functions, scripts and substitutions within each other. [1]"""


@dataclass(frozen=True)
class Doubt:
    """A condition that the files do not settle.

    Attributes:
        source: The condition as a script writes it. [text]
        names: Variables that settle it. [text]
        place: File and line. [text]
    """

    source: str
    names: tuple[str, ...]
    place: str = field(compare=False)


@dataclass
class Choices:
    """Answers to conditions that the files do not settle.

    Attributes:
        given: Answers to the first conditions; later ones are answered no. [-]
        made: Answer by condition, in the order of asking. [-]
        asked: Times that any condition was asked. [1]
    """

    given: tuple[bool, ...] = ()
    made: dict[Doubt, bool] = field(default_factory=dict)
    asked: int = 0

    def answer(self, doubt: Doubt) -> bool:
        """Answer to a condition; the same condition has one answer. [-]."""
        self.asked += 1
        if doubt not in self.made:
            at = len(self.made)
            self.made[doubt] = self.given[at] if at < len(self.given) else False
        return self.made[doubt]


@dataclass(frozen=True)
class Command:
    """A command that a script would start.

    Attributes:
        words: Its words, variables filled in. [text]
        environment: Variables of its environment that the script sets. [text]
        file: File of the command. [text]
        line: Line of the command. [1]
        tasks: Words of the scheduler's command around it. [text]
    """

    words: tuple[str, ...]
    environment: Mapping[str, str]
    file: str
    line: int
    tasks: tuple[str, ...] = ()


@dataclass
class Record:
    """State that all shells of one run of a script share.

    Attributes:
        files: Text by name; here-documents add to it. [text]
        given: Variables of the environment. [text]
        choices: Answers to conditions. [-]
        commands: Commands that are no part of the shell, in order. [-]
        lines: Place of the first use of a variable that no file sets. [text]
        used: Scripts that another one sources or starts. [text]
        hosts: Nodes of the job, where its header says so. [1]
        arguments: False where the script's own arguments are unknown. [-]
        blanks: Variables with an empty default, in the order of use. [text]
        open: Those of them that are unknown, and not empty. [text]
        ended: File and line of an `exit` that was reached; empty without one. [text]
        steps: Commands that were followed. [1]
    """

    files: dict[str, str]
    given: Mapping[str, str]
    choices: Choices
    commands: list[Command] = field(default_factory=list)
    lines: dict[str, str] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    hosts: int | None = None
    arguments: bool = True
    blanks: dict[str, None] = field(default_factory=dict)
    open: frozenset[str] = frozenset()
    ended: str = ""
    steps: int = 0


@dataclass
class Shell:
    """A shell in the middle of a script.

    Attributes:
        record: What its subshells share with it. [-]
        name: File of the script. [text]
        run: Runs a statement in a shell. [-]
        scopes: Variables, the script's own first; None for one that was unset. [-]
        exported: Variables of the environment of commands. [text]
        maps: Associative arrays. [text]
        functions: Bodies by name. [-]
        whole: Variables whose values are arithmetic. [text]
        fixed: Variables that cannot be set again. [text]
        words: Positional parameters. [text]
        bound: False for the script's own parameters, which may be others. [-]
        options: Options of `set` by their long names. [text]
        status: Exit status of the last command; None where it is unknown. [1]
        doubt: Condition that settles an unknown status. [-]
        out: What the standard output is kept in; None where nobody reads it. [text]
        lines: Lines of the standard input; None where they are unknown. [text]
        script: Text of a pipe, with the marks of its unknown values, as another bash
            reads it. [text]
        line: Line that is run. [1]
        start: Line of the file that the text of the shell begins on. [1]
        testing: Conditions around the statement, in which a failure ends nothing. [1]
        depth: Functions, scripts and substitutions around it. [1]
        tasks: Words of the scheduler's command around it. [text]
        zero: Value of `$0`; empty where that is the file of the script. [text]
        ending: What `trap` runs at the end. [text]
        substituted: True where the words of a command ran another one. [-]
    """

    record: Record
    name: str
    run: Callable[["Shell", Node], None]
    scopes: list[dict[str, Value | None]] = field(default_factory=lambda: [{}])
    exported: set[str] = field(default_factory=set)
    maps: set[str] = field(default_factory=set)
    functions: dict[str, Node] = field(default_factory=dict)
    whole: set[str] = field(default_factory=set)
    fixed: set[str] = field(default_factory=set)
    words: list[str] = field(default_factory=list)
    bound: bool = False
    options: set[str] = field(default_factory=set)
    status: int | None = 0
    doubt: Doubt | None = None
    out: list[str] | None = None
    lines: list[str] | None = None
    script: str = ""
    line: int = 1
    start: int = 0
    testing: int = 0
    depth: int = 0
    tasks: tuple[str, ...] = ()
    zero: str = ""
    ending: str = ""
    substituted: bool = False

    def at(self, node: Node) -> None:
        """Move to the line of a node, and count it."""
        self.line = self.start + line_of(node)
        self.record.steps += 1
        if self.record.steps > STEPS:
            self.refuse("a script", f"goes on for more than {STEPS:,} commands")

    @property
    def place(self) -> str:
        """File and line that is run. [text]."""
        return f"{self.name}:{self.line}"

    def refuse(self, what: str, why: str, allowed: str | None = None) -> NoReturn:
        """Refuse a construct that cannot be followed."""
        raise BadInputError(why, file=self.place, field=what, allowed=allowed)

    def child(self, **others: object) -> "Shell":
        """Subshell, whose variables are copies. [-]."""
        if self.depth > DEEPEST:
            self.refuse("a script", f"calls itself over {DEEPEST} times")
        its = Shell(self.record, self.name, self.run)
        its.__dict__.update(self.__dict__)
        its.scopes = [_copied(scope) for scope in self.scopes]
        for name in ("exported", "fixed", "maps", "options", "whole"):
            setattr(its, name, set(getattr(self, name)))
        its.functions, its.words = dict(self.functions), list(self.words)
        its.depth = self.depth + 1
        its.__dict__.update(others)
        return its

    def value(self, name: str) -> Value | None:
        """Value of a variable; None where it is unset, a marked text where unknown."""
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        if name in self.record.given:
            return self.record.given[name]
        return self.unsaid(f"${{{name}}}")

    def unsaid(self, source: str) -> str:
        """Value of which the source alone is known; notes the place of its names."""
        for name in unset(source):
            self.record.lines.setdefault(name, self.place)
        return unknown(source)

    def assign(self, name: str, value: Value | None) -> None:
        """Set a variable where it is visible, else for the whole script."""
        if name in self.fixed:
            self.refuse(name, "is set again, and is readonly")
        if not name.isidentifier():
            self.refuse(plain(name), "is no name of a variable that is followed")
        if "allexport" in self.options:
            self.exported.add(name)
        if isinstance(value, str) and len(value) > LONGEST:
            self.refuse(name, f"is filled to more than {LONGEST:,} characters")
        scope = next((s for s in reversed(self.scopes) if name in s), self.scopes[0])
        scope[name] = value

    def forget(self, name: str) -> None:
        """Leave a variable open, and the number of its elements."""
        for scope in self.scopes:
            scope.pop(name, None)
        self.unsaid(f"${{{name}}}")

    def array(self, name: str) -> Array | None:
        """Elements by index of an array, or of a plain variable; None where unknown."""
        value = self.value(name)
        if isinstance(value, str):
            whole = loose(value) if PART.fullmatch(value) else value
            return {"0": whole} if name in self.settled() else None
        return value or {}

    def counted(self, name: str) -> Array | None:
        """Elements by index of an array; None where their number is unknown."""
        array = self.array(name)
        several = any(word.startswith(LOOSE) for word in (array or {}).values())
        return None if several and name not in self.maps else array

    def settled(self) -> set[str]:
        """Variables that the script or the user sets. [text]."""
        return {n for s in self.scopes for n in s} | self.record.given.keys()

    def environment(self) -> dict[str, str]:
        """Exported variables that the script sets. [text]."""
        changed = {name for scope in self.scopes for name in scope}
        names = self.exported | (self.record.given.keys() & changed)
        values = {n: self.value(n) for n in sorted(names) if n.isidentifier()}
        return {name: v for name, v in values.items() if isinstance(v, str)}

    def fail(self, node: Node, names: tuple[str, ...] = ()) -> None:
        """Leave the status of a command open: it may fail, and no file says so."""
        source = " ".join(text_of(node).split())
        key = source if names else f"{source} ({self.record.steps})"
        self.status, self.doubt = None, Doubt(key, names, self.place)

    def choose(self, source: str) -> bool:
        """Answer to a condition on unknown values. [-]."""
        names = unset(source)
        return self.record.choices.answer(Doubt(source, names, self.place))

    def holds(self) -> bool:
        """Tell if the last command succeeded; chooses where that is unknown. [-]."""
        if self.status is None:
            assert self.doubt is not None
            self.status = 0 if self.record.choices.answer(self.doubt) else FAILED
        return self.status == 0


def _copied(scope: dict[str, Value | None]) -> dict[str, Value | None]:
    return {n: dict(v) if isinstance(v, dict) else v for n, v in scope.items()}


class _LeftError(Exception):
    """Leaves the statements around it.

    Attributes:
        status: Exit status, or levels of loops that are left. [1]
    """

    def __init__(self, status: int | None = 0) -> None:
        self.status = status
        super().__init__(str(status))


class ExitError(_LeftError):
    """Ends a shell."""


class ReturnError(_LeftError):
    """Ends a function, or a script that another one sources."""


class BreakError(_LeftError):
    """Leaves a loop."""


class ContinueError(_LeftError):
    """Goes on with the next round of a loop."""
