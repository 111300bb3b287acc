"""GPUs that a command sees, and the ranks that it starts on them by itself."""

import re
from collections.abc import Mapping, Sequence
from typing import NoReturn

from planner.errors import BadInputError
from planner.launch.shell.tasks import open_nodes
from planner.launch.shell.values import refuse_unset, unset

VISIBLE = "CUDA_VISIBLE_DEVICES"
_DEVICE = re.compile(r"\d+|(GPU|MIG)-[\w/-]+")
_EACH = re.compile(
    r"(\S*/)?(accelerate launch|deepspeed|ds|trl|axolotl train)\b"
    r"|(\S*/)?(llamafactory-cli|lmf) train\b"
    r"|\S*python\S* (-\w+ )*-m (accelerate\.commands\.launch|deepspeed\.)"
    r"|.* --nproc[-_]per[-_]node[= ](gpu|auto)\b"
)
"""Commands that start a rank on every GPU that they see, unless told another number.

References:
    accelerate, commands/launch.py; DeepSpeed, launcher/runner.py; LLaMA-Factory,
    cli.py; torch, distributed/run.py, `determine_local_world_size`.
"""
_ONE = re.compile(
    r"(\S*/)?(torchrun|tune run)\b"
    r"|\S*python\S* (-\w+ )*-m torch\.distributed\.(run|launch)\b"
)
"""Commands that start one rank a node, unless told another number.

References:
    torch, distributed/run.py, `--nproc-per-node`; torchtune 0.6.1, _cli/run.py.
"""
_BY_FACTORY = re.compile(r"(\S*/)?(llamafactory-cli|lmf) train\b")
"""Commands that start on one node, unless NNODES says another number.

References:
    LLaMA-Factory 0.9.5, launcher.py.
"""
_BY_VARIABLES = re.compile(_BY_FACTORY.pattern + r"|(\S*/)?(swift|megatron) \w")
"""Commands that read the counts of ranks from variables.

References:
    LLaMA-Factory 0.9.5, launcher.py; ms-swift 3.9, swift/cli/main.py.
"""
_COUNTS = {"nodes": "NNODES", "ranks_per_node": "NPROC_PER_NODE"}
"""Variable of a count, which torchrun reads as PET_NNODES, PET_NPROC_PER_NODE. [text]

References:
    torch, distributed/argparse_util.py, `env`.
"""
_BY_DEEPSPEED = re.compile(
    r"(\S*/)?(deepspeed|ds) |\S*python\S* (-\w+ )*-m deepspeed\."
)


def visible_of(environment: Mapping[str, str], place: str) -> int | None:
    """GPUs of a node that CUDA shows to a command.

    Returns:
        The GPUs; None where the variable is not set. [1]

    Raises:
        BadInputError: CUDA takes the value for another list, or for none.
    """
    value = environment.get(VISIBLE)
    if value is None:
        return None
    devices = value.split(",")
    sound = all(_DEVICE.fullmatch(device) for device in devices)
    if not sound or len(set(devices)) < len(devices):
        _refuse(VISIBLE, value, "is no list of different GPUs", place, "0,1,...")
    return len(devices)


def starts_each(words: Sequence[str]) -> bool:
    """Tell if a command starts a rank on every GPU that it sees. [-]."""
    return _EACH.match(" ".join(words)) is not None


def by_default(
    words: Sequence[str], environment: Mapping[str, str], place: str
) -> dict[str, int]:
    """Counts that variables give, or a command has where nothing says them.

    Args:
        words: The command. [text]
        environment: Variables that it sees. [text]
        place: File and line of the command. [text]
    """
    text = " ".join(words)
    torch = _ONE.match(text)
    told = re.search(r" --nproc[-_]per[-_]node\b", text)
    found = {"ranks_per_node": 1} if torch and not told else {}
    found |= {"nodes": 1} if _BY_FACTORY.match(text) else {}
    for kind, name in _COUNTS.items() if torch or _BY_VARIABLES.match(text) else ():
        its = f"PET_{name}" if torch else name
        value = environment.get(its, "")
        if unset(value):
            refuse_unset(its, value, file=place)
        found |= {kind: int(value)} if value.isdigit() else {}
    return found


def included(words: Sequence[str], place: str) -> Mapping[str, int]:
    """Ranks and nodes that DeepSpeed's launcher is told by `--include`.

    Returns:
        Counts by kind; empty without the option. [1]

    Raises:
        BadInputError: The GPUs are not listed, or `--exclude` leaves them open.

    References:
        DeepSpeed, launcher/runner.py, `parse_resource_filter`.
    """
    if not _BY_DEEPSPEED.match(" ".join(words)):
        return {}
    given = {
        n: v
        for w, v in zip(words, [*words[1:], ""], strict=True)
        for n, v in _pair(w, v)
    }
    if "exclude" in given:
        why = "leaves GPUs out of a number that no file says"
        _refuse("--exclude", given["exclude"], why, place, "--include, or --num_gpus")
    value = given.get("include")
    if value is None:
        return {}
    hosts = [host.partition(":")[2] for host in value.split("@")]
    if not all(re.fullmatch(r"\d+(,\d+)*", slots) for slots in hosts):
        _refuse("--include", value, "names no GPUs", place, "host:0,1")
    return {"ranks": sum(s.count(",") + 1 for s in hosts), "nodes": len(hosts)}


def _pair(word: str, following: str) -> list[tuple[str, str]]:
    name, equals, value = word.partition("=")
    short = {
        "-i": "include",
        "-e": "exclude",
        "--include": "include",
        "--exclude": "exclude",
    }
    return [(short[name], value if equals else following)] if name in short else []


def check_nodes(counts: Mapping[str, int], words: Sequence[str], place: str) -> None:
    """Refuse ranks of a node where an option says the nodes, but not their number.

    Raises:
        BadInputError: The value is of a variable that no file sets, or is a range.
    """
    option, value = open_nodes(words)
    if not option or "nodes" in counts or "ranks_per_node" not in counts:
        return
    if unset(value):
        refuse_unset(option, value, file=place)
    _refuse(option, value, "is no number of nodes", place, "a number")


def check_seen(counts: Mapping[str, int], visible: int | None, place: str) -> None:
    """Refuse a command that starts more ranks on a node than it sees GPUs.

    Args:
        counts: Counts of the command that starts ranks. [1]
        visible: GPUs of a node that it sees; None where nothing hides any. [1]
        place: File and line of the command. [text]
    """
    nodes = counts.get("nodes") or counts.get("machines") or 1
    each = counts.get("ranks_per_node") or -(-counts.get("ranks", 0) // nodes)
    if visible is not None and each > visible:
        why = f"shows {visible} GPUs of a node to a command with {each} ranks there"
        _refuse(VISIBLE, None, why, place, f"{each} GPUs, or {visible} ranks")


def _refuse(
    field: str, value: str | None, why: str, place: str, allowed: str
) -> NoReturn:
    raise BadInputError(why, file=place, field=field, value=value, allowed=allowed)
