"""Programs that a script starts: noted, or followed where they are scripts again."""

import re
from collections.abc import Iterator, Mapping, Sequence

from tree_sitter import Node

from planner.launch.shell.bash.commands.options import switched
from planner.launch.shell.bash.parse import first_error, line_of, text_of, tree_of
from planner.launch.shell.bash.state import (
    BreakError,
    Command,
    ContinueError,
    ExitError,
    ReturnError,
    Shell,
)
from planner.launch.shell.values import PART, loose, plain

SHELLS = frozenset({"bash", "sh", "zsh", "ksh", "dash"})
SCHEDULERS = frozenset({"srun", "mpirun", "mpiexec", "orterun", "jsrun", "sbatch"})
"""Commands that start another command, once for each task. [text]"""
AROUND = SCHEDULERS | {
    "nohup",
    "time",
    "env",
    "stdbuf",
    "nice",
    "ionice",
    "numactl",
    "taskset",
    "timeout",
    "sudo",
    "setsid",
    "unbuffer",
    "xargs",
    "nsys",
    "ncu",
    "apptainer",
    "singularity",
    "docker",
    "podman",
    "enroot",
    "conda",
    "mamba",
    "micromamba",
    "uv",
    "poetry",
    "pipenv",
    "rocprof",
    "coproc",
}
"""Commands that start another command, which is among their words. [text]"""
REMOTE = frozenset({"ssh", "pdsh", "clush", "parallel-ssh"})
STARTERS = frozenset(
    {
        "torchrun",
        "deepspeed",
        "ds",
        "accelerate",
        "llamafactory-cli",
        "lmf",
        "swift",
        "megatron",
        "axolotl",
        "trl",
        "tune",
        "oumi",
        "xtuner",
        "composer",
        "colossalai",
        "horovodrun",
        "lightning",
        "nemo",
        "torchx",
    }
)
"""Programs that start a training run. [text]"""
_LONG = ("--login", "--noprofile", "--norc", "--noediting", "--verbose")
_PROGRAM = re.compile(r"python[\d.]*|.*\.(?:sh|bash|py|sbatch|slurm)")
_VARIABLE = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)


def begun(shell: Shell, text: str, node: Node | None = None) -> None:
    """Run a text in a shell: a file that is sourced, or the words of `eval`.

    Args:
        shell: State of the shell. [-]
        text: The text. [text]
        node: Command that the text is part of; None for a whole file. [-]
    """
    shell.depth += 1
    if shell.depth > 60:
        shell.refuse("a script", "calls itself over 60 times")
    start = shell.start
    if node is not None:
        shell.start = shell.line - 1
    tree = tree_of(_held(shell, text))
    wrong = first_error(tree)
    if wrong is not None:
        shell.line = shell.start + line_of(wrong)
        what = text_of(wrong) or f"a missing {wrong.type}"
        shell.refuse(what, "is no bash that is followed")
    try:
        shell.run(shell, tree)
    finally:
        shell.depth -= 1
        shell.start = start


def _held(shell: Shell, text: str) -> str:
    """Text in which variables hold its unknown parts, which are not read again."""

    def name_of(part: re.Match[str]) -> str:
        held = [name for name in shell.scopes[0] if name.startswith("_unknown_")]
        shell.scopes[0][f"_unknown_{len(held)}"] = part[0]
        return f"${{_unknown_{len(held)}}}"

    return PART.sub(name_of, text)


def run_out(shell: Shell, text: str, node: Node | None = None) -> None:
    """Run a text in a shell to its end, and what a `trap` leaves for the end.

    Args:
        shell: State of the shell. [-]
        text: The text. [text]
        node: Command that the text is part of; None for a whole file. [-]
    """
    for each in (text, None):
        try:
            begun(shell, shell.ending if each is None else each, node)
        except (ExitError, ReturnError) as ended:
            shell.status = ended.status
        except (BreakError, ContinueError):
            shell.status = 0


def started(
    shell: Shell, words: Sequence[str], node: Node, environment: Mapping[str, str]
) -> None:
    """Note a program that a script starts, or follow the script that it is."""
    own = dict(environment)
    inner, tasks = list(words), shell.tasks
    while inner:
        name = _base(inner[0])
        variable = _VARIABLE.fullmatch(inner[0]) if inner is not words else None
        if variable and own is not None and len(inner) < len(words):
            own[variable[1]] = variable[2]
            inner = inner[1:]
            continue
        if name not in AROUND:
            break
        at = next(_inside(inner, shell), 0)
        if not at:
            break
        if name == "env" and inner[1].startswith("-"):
            shell.refuse(" ".join(map(plain, inner[:at])), "is not followed")
        if name == "xargs":
            inner.append(loose(shell.unsaid("$(xargs)")))
        if name in SCHEDULERS:
            tasks = (*tasks, *inner[:at])
        inner = inner[at:]
    _noted(shell, inner, node, own, tasks)


def _base(word: str) -> str:
    return word.rpartition("/")[2]


def _inside(words: Sequence[str], shell: Shell) -> Iterator[int]:
    """Places of words that may be the program that another one starts."""
    programs = STARTERS | SHELLS | AROUND | shell.functions.keys()
    sets = _base(words[0]) in ("env", "sudo")
    for at, word in enumerate(words[1:], start=1):
        program = _base(word) in programs or _PROGRAM.fullmatch(_base(word))
        if program or (sets and _VARIABLE.fullmatch(word)):
            yield at


def _noted(
    shell: Shell,
    words: list[str],
    node: Node,
    own: dict[str, str],
    tasks: tuple[str, ...],
) -> None:
    if not words:
        return
    name = _base(words[0])
    if name in REMOTE:
        _remote(shell, words, node, own)
    elif name in SHELLS:
        _shell(shell, words, node, own, tasks)
    elif name in shell.record.files and re.search(r"\.\w*sh$|\.sbatch$|\.slurm$", name):
        _script(shell, name, _process(shell, own, words[1:], tasks))
    else:
        place = shell.name, shell.line
        everything = {**shell.environment(), **own}
        command = Command(tuple(words), everything, *place, tasks)
        shell.record.commands.append(command)
        _outside(shell, words, node)


def _outside(shell: Shell, words: Sequence[str], node: Node) -> None:
    """Leave the status and output of a program open."""
    shell.fail(node)
    if shell.out is not None:
        source = " ".join(plain(word) for word in words)
        shell.out.append(shell.unsaid(f"$({source})"))


def _shell(
    shell: Shell,
    words: list[str],
    node: Node,
    own: dict[str, str],
    tasks: tuple[str, ...],
) -> None:
    """Follow `bash -c TEXT` or `bash FILE` where it is among the files."""
    inner = _process(shell, own, [], tasks)
    rest, text = words[1:], False
    while rest and re.match(r"[-+]\w|--", rest[0]):
        flag = rest.pop(0)
        if flag.startswith("--") and flag not in _LONG:
            shell.refuse(f"{words[0]} {flag}", "is not followed", ", ".join(_LONG))
        if not flag.startswith("--"):
            letters = re.sub("[cilrs]", "", flag)
            own_ones = [letters, *(rest[:1] if "o" in letters else [])]
            switched(inner, own_ones)
            rest = rest[len(own_ones) - 1 :]
            text = text or "c" in flag
    if text and rest:
        inner.zero, inner.words = (rest[1:2] or [words[0]])[0], rest[2:]
        _finish(inner, rest[0], shell, node)
        return
    if not rest and (shell.lines is not None or shell.script):
        script = shell.script if shell.lines is None else "\n".join(shell.lines)
        inner.lines, inner.script = None, ""
        _finish(inner, script, shell, node)
        return
    name = _base(rest[0]) if rest else ""
    if name in shell.record.files:
        inner.words = rest[1:]
        _script(shell, name, inner)
    else:
        command = Command(tuple(words), own, shell.name, shell.line, tasks)
        shell.record.commands.append(command)
        _outside(shell, words, node)


def _process(
    shell: Shell, own: dict[str, str], words: Sequence[str], tasks: tuple[str, ...]
) -> Shell:
    """Shell of another process, which sees exported variables alone."""
    exported = shell.environment() | own
    return shell.child(
        scopes=[dict(exported)],
        exported=set(exported),
        functions={
            n: b for n, b in shell.functions.items() if f"{n}()" in shell.exported
        },
        words=list(words),
        bound=True,
        options=set(),
        testing=0,
        status=0,
        zero="",
        ending="",
        tasks=tasks,
    )


def _script(shell: Shell, name: str, inner: Shell) -> None:
    """Follow a script that is among the files."""
    shell.record.used.add(name)
    inner.name, inner.start = name, 0
    _finish(inner, shell.record.files[name], shell, None)


def _finish(inner: Shell, text: str, shell: Shell, node: Node | None) -> None:
    run_out(inner, text, node)
    shell.status, shell.doubt = inner.status, inner.doubt


def _remote(shell: Shell, words: list[str], node: Node, own: dict[str, str]) -> None:
    """Follow a command on another machine, whose words are one text."""
    takes = "bceiLlmoPpRSWwq"
    rest = words[1:]
    while rest and rest[0].startswith("-"):
        flag = rest.pop(0)
        if len(flag) == 2 and flag[1] in takes and rest:
            rest.pop(0)
    text = " ".join(rest[1:])
    if not text:
        shell.fail(node)
        return
    inner = _process(shell, own, [], shell.tasks)
    inner.scopes, inner.exported = [dict(own)], set(own)
    try:
        _finish(inner, text, shell, node)
    finally:
        shell.fail(node)
