"""The run that launch scripts start: one command, or one for each open condition."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from planner.errors import BadInputError
from planner.launch.shell.bash.execute import run
from planner.launch.shell.bash.parse import first_error, tree_of
from planner.launch.shell.bash.programs import SCHEDULERS, STARTERS, run_out
from planner.launch.shell.bash.state import Choices, Command, Doubt, Record, Shell
from planner.launch.shell.launchers import NONE, TRAINING, certainty, is_alone
from planner.launch.shell.seen import (
    VISIBLE,
    by_default,
    check_nodes,
    check_seen,
    included,
    starts_each,
    visible_of,
)
from planner.launch.shell.tasks import (
    counted,
    head_of,
    nodes_of,
    ranks_of,
    slurm_variables,
)
from planner.launch.shell.values import (
    LOOSE,
    PART,
    fill_words,
    plain,
    refuse_unset,
    unset,
)
from planner.launch.shell.written import written

DATA = (
    "cfg",
    "csv",
    "ini",
    "ipynb",
    "j2",
    "json",
    "jsonl",
    "lock",
    "log",
    "md",
    "py",
    "rst",
    "toml",
    "yaml",
    "yml",
)
"""Endings of files that no shell reads. [text]"""
SCRIPTS = ("bash", "job", "sbatch", "sh", "slurm")
"""Endings of files that a shell reads. [text]"""
WORLDS = 128
"""Ways through a script by its open conditions that are followed. [1]"""
_STARTS = re.compile(
    rf"\s*(\S*/)?({'|'.join(sorted(STARTERS | SCHEDULERS))}|python\S*)\s"
)
"""Line that starts a program of ranks, or one of Python. [text]"""
_MARKS = re.compile("[\ue000-\ue002]")


@dataclass(frozen=True)
class Launch:
    """The command that starts the ranks of a run.

    Attributes:
        file: File of the command; empty without any. [text]
        line: Line of the command. [1]
        words: Its words; what no file sets stands as the script writes it. [text]
        environment: Variables that the script sets for it. [text]
        ranks: Ranks of the run; None where no file says them. [1]
        nodes: Nodes that the ranks lie on; None where no file says them. [1]
        alone: True where one process is started, which starts no others. [-]
        visible: GPUs of a node that the command sees; None where nothing hides any. [1]
    """

    file: str = ""
    line: int = 0
    words: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    ranks: int | None = None
    nodes: int | None = None
    alone: bool = False
    visible: int | None = None


@dataclass(frozen=True)
class Alternative:
    """One way that the files can be meant.

    Attributes:
        files: Text by name: the files that are no scripts, those that a script
            writes, and the script with its command alone. [text]
        launch: The command. [-]
        answers: Answers to the conditions that the files do not settle. [-]
        lines: Place of the first use of each variable that no file sets. [text]
    """

    files: Mapping[str, str]
    launch: Launch
    answers: Mapping[Doubt, bool]
    lines: Mapping[str, str]


@dataclass(frozen=True)
class _World:
    """A way through a script, with the head that a scheduler reads."""

    name: str
    record: Record
    shell: Shell
    head: Sequence[str]

    def commands(self, least: int) -> Iterator[Command]:
        """Commands that are the run with some certainty."""
        yield from (c for c in self.record.commands if certainty(c) >= least)


def is_script(name: str, text: str) -> bool:
    """Tell if a shell reads a file, by the end of its name or its first line. [-]."""
    ending = name.rpartition(".")[2] if "." in name else ""
    return ending in SCRIPTS or (
        ending not in DATA
        and (text.startswith("#!") and "sh" in text.partition("\n")[0])
    )


def launch_of(files: Mapping[str, str]) -> Launch:
    """The command that starts a run.

    Raises:
        BadInputError: Several commands could be the run, or a condition that no file
            settles decides its words.
    """
    found = alternatives(files, {})
    if len({its.launch.words for its in found}) > 1:
        refuse_alternatives(found[0], found[1])
    return found[0].launch if found else Launch()


def alternatives(
    files: Mapping[str, str], given: Mapping[str, str]
) -> list[Alternative]:
    """Runs that the files can mean: one, unless conditions or commands leave it open.

    Returns:
        Runs with different words or files; none where no script starts a run. [-]

    Raises:
        BadInputError: A script is no bash, or does what is not followed.
    """
    worlds = [w for name in _scripts(files) for w in _worlds_of(name, files, given)]
    used = set[str]().union(*(w.record.used - {w.name} for w in worlds))
    roots = [world for world in worlds if world.name not in used] or worlds
    every = [certainty(c) for world in roots for c in world.record.commands]
    least = max(every, default=NONE)
    if least == NONE:
        for world in roots:
            _refuse_idle(world.record.commands)
            _refuse_ended(world.record)
        found = [its for world in roots for its in _listed(world, files)]
    else:
        found = [
            _alternative(world, command, files)
            for world in roots
            for command in world.commands(least)
        ]
    distinct = {(its.launch.words, tuple(its.files.items())): its for its in found}
    return list(distinct.values())


def _refuse_idle(commands: Sequence[Command]) -> None:
    """Refuse a script in which a trainer's program does all but train."""
    for command in commands:
        name = command.words[0].rpartition("/")[2]
        if name in TRAINING:
            raise BadInputError(
                "trains nothing",
                file=f"{command.file}:{command.line}",
                field=" ".join(map(plain, command.words[:2])),
                allowed=" or ".join(f"{name} {its}" for its in sorted(TRAINING[name])),
            )


def _refuse_ended(record: Record) -> None:
    """Refuse a script that ends before the line that would start a run."""
    file, _, line = record.ended.rpartition(":")
    rest = record.files.get(file, "").splitlines()[int(line or 0) :]
    behind = next((i for i, its in enumerate(rest, 1) if _STARTS.match(its)), 0)
    if file and behind:
        raise BadInputError(
            f"ends the script before the command of line {int(line) + behind}, and no "
            "run is started",
            file=record.ended,
            field="exit",
            allowed="a script that reaches its command",
        )


def _scripts(files: Mapping[str, str]) -> list[str]:
    """Scripts, or the files of words where there are none."""
    named = [name for name, text in files.items() if is_script(name, text)]
    if named:
        return named
    return [
        n
        for n, text in files.items()
        if n.rpartition(".")[2] not in DATA
        and "--" in text
        and first_error(tree_of(text)) is None
    ]


def _worlds_of(
    name: str, files: Mapping[str, str], given: Mapping[str, str]
) -> list[_World]:
    """Ways through a script that reach a run.

    A script is started without arguments, and variables with an empty default are
    empty; what does not start so is read with these unknown, and each is asked for.
    """
    if _MARKS.search(files[name]):
        raise BadInputError("has characters of private use", file=name)
    nothing: frozenset[str] = frozenset()
    first = list(_worlds(name, files, given, blanks=nothing, arguments=True))
    blanks = frozenset(name for world in first for name in world.record.blanks)
    ways = [(nothing, True), *((frozenset({b}), True) for b in sorted(blanks))]
    for unknown, arguments in (*ways, (blanks, True), (blanks, False)):
        found = list(_worlds(name, files, given, blanks=unknown, arguments=arguments))
        if any(certainty(c) for world in found for c in world.record.commands):
            return found
    return first


def _worlds(
    name: str,
    files: Mapping[str, str],
    given: Mapping[str, str],
    *,
    blanks: frozenset[str],
    arguments: bool,
) -> Iterator[_World]:
    head = head_of(files[name])
    several = "hetjob" in head
    counts = {} if several else counted(head)
    its = slurm_variables(counts) | dict(given)
    waiting: list[tuple[bool, ...]] = [()]
    count = 0
    while waiting:
        prefix = waiting.pop()
        record = Record(dict(files), its, Choices(prefix), arguments=arguments)
        record.open = blanks
        record.hosts = counts.get("nodes")
        shell = _run(name, record)
        yield _World(name, record, shell, () if several else head)
        made = tuple(record.choices.made.values())
        later = range(len(prefix), len(made))
        waiting += [(*made[:at], not made[at]) for at in later]
        count += 1
        if count > WORLDS:
            _refuse_many(record.choices.made)


def _run(name: str, record: Record) -> Shell:
    """Run a script from its start to its end."""
    shell = Shell(record, name, run)
    while str(len(shell.words) + 1) in record.given:
        shell.words.append(record.given[str(len(shell.words) + 1)])
    try:
        run_out(shell, record.files[name])
    except RecursionError as error:
        raise BadInputError("is nested too deeply to follow", file=name) from error
    return shell


def _refuse_many(made: Mapping[Doubt, bool]) -> None:
    names = dict.fromkeys(name for doubt in made for name in doubt.names)
    raise BadInputError(
        f"has over {WORLDS} ways through conditions that no file settles",
        file=next(iter(made)).place,
        allowed=fill_words(names),
    )


def _alternative(
    world: _World, command: Command, files: Mapping[str, str]
) -> Alternative:
    around = counted([*world.head, *command.tasks])
    for at, word in enumerate(command.words):
        before = command.words[at - 1] if at else ""
        if word.startswith(LOOSE) and not (
            before.startswith("-") and "=" not in before
        ):
            names = unset(plain(word))
            place = next(
                (world.record.lines[n] for n in names if n in world.record.lines), ""
            )
            refuse_unset("a word of the run", plain(word), file=place or command.file)
    words = tuple(plain(word) for word in command.words)
    environment = {n: v for n, v in command.environment.items() if not PART.search(v)}
    starter: Mapping[str, int] = counted(words, starter=True)
    for name in ("NNODES", VISIBLE):
        if world.record.given.get(name) and not (
            name == "NNODES" and "nodes" in starter
        ):
            environment.setdefault(name, world.record.given[name])
    starter, visible = _seen(command, words, starter, environment)
    launch = Launch(
        command.file,
        command.line,
        words,
        environment,
        ranks_of(starter, around) or None,
        nodes_of(starter, around) or None,
        alone=is_alone(command) and not starter,
        visible=visible,
    )
    text = written(command, environment, around)
    kept = {n: t for n, t in world.record.files.items() if not is_script(n, t)}
    kept.pop(world.name, None)
    del files
    return Alternative(
        {**kept, world.name: text},
        launch,
        dict(world.record.choices.made),
        world.record.lines,
    )


def _seen(
    command: Command,
    words: tuple[str, ...],
    starter: Mapping[str, int],
    environment: Mapping[str, str],
) -> tuple[Mapping[str, int], int | None]:
    """Counts of a command with the GPUs that it is told, and the GPUs that it sees."""
    place = f"{command.file}:{command.line}"
    its = {n: plain(value) for n, value in command.environment.items()}
    default = by_default(words, {**its, **environment}, place)
    counts = {**default, **starter, **included(words, place)}
    check_nodes(counts, words, place)
    visible = visible_of(environment, place)
    machines = counted(words).get("machines", 1)
    check_seen({"machines": machines, **counts}, visible, place)
    if starts_each(words) and not counts.keys() & {"ranks", "ranks_per_node"}:
        given = command.environment.get(VISIBLE)
        if given is not None and visible is None:
            refuse_unset(VISIBLE, plain(given), file=place)
        counts |= {"ranks_per_node": visible} if visible else {}
    return counts, visible


def _listed(world: _World, files: Mapping[str, str]) -> Iterator[Alternative]:
    """Arguments of a file that another script reads: arrays, or lines of options."""
    lines = [c.words for c in world.record.commands if c.words[0].startswith("-")]
    words = [word for line in lines for word in line]
    arrays = [v for v in world.shell.scopes[0].values() if isinstance(v, dict)]
    words += [word for array in arrays for word in array.values()]
    if any(word.startswith("--") for word in words):
        command = Command(("run", *words), {}, world.name, 1)
        yield _alternative(world, command, files)


def refuse_alternatives(one: Alternative, other: Alternative) -> None:
    """Refuse files that can be meant in two ways, and name what decides."""
    differ = [d for d, yes in one.answers.items() if other.answers.get(d, yes) != yes]
    if not differ:
        places = sorted({f"{a.launch.file}:{a.launch.line}" for a in (one, other)})
        raise BadInputError(
            "several commands could be the run",
            file=" and ".join(places),
            allowed="a script with one of them",
        )
    names = dict.fromkeys(name for doubt in differ for name in doubt.names)
    first = differ[0]
    raise BadInputError(
        "decides what is started, and no file settles it",
        file=first.place,
        field=first.source,
        allowed=fill_words(names),
    )
