"""The command of a script that is the run."""

import re
from collections.abc import Mapping, Sequence

from planner.launch.shell.bash.programs import STARTERS
from planner.launch.shell.bash.state import Command
from planner.launch.shell.values import known

SURE, LIKELY, POSSIBLE, NONE = 3, 2, 1, 0
"""Ranks of commands that may be the run, the surest first. [1]"""
TRAINING: Mapping[str, frozenset[str]] = {
    "accelerate": frozenset({"launch"}),
    "llamafactory-cli": frozenset({"train"}),
    "lmf": frozenset({"train"}),
    "swift": frozenset({"pt", "sft", "rlhf"}),
    "megatron": frozenset({"pt", "sft", "rlhf"}),
    "axolotl": frozenset({"train"}),
    "trl": frozenset(
        {"bco", "cpo", "dpo", "gkd", "grpo", "kto", "orpo", "ppo", "reward", "rloo"}
        | {"sft", "xpo"}
    ),
    "tune": frozenset({"run"}),
    "oumi": frozenset({"train", "distributed"}),
    "xtuner": frozenset({"train"}),
    "colossalai": frozenset({"run"}),
}
"""Subcommands that train, of programs that have others too. [text]"""
MODULES = re.compile(
    r"torch\.distributed\.(run|launch)|accelerate\.commands\.launch|deepspeed.*"
)
"""Modules of Python that start ranks. [text]"""
_OTHER_MODULES = re.compile(
    r"(pip|venv|virtualenv|http|json|site|ensurepip|nltk|spacy|huggingface_hub"
    r"|torch\.utils|pytest|wandb|tensorboard|jupyter|ipykernel|black|build)\b.*"
)
_PYTHON = re.compile(r"python[\d.]*|pypy\d?")
_UTILITIES = frozenset(
    {
        "apt",
        "apt-get",
        "aws",
        "bash",
        "chmod",
        "conda",
        "cp",
        "curl",
        "docker",
        "du",
        "find",
        "git",
        "grep",
        "gsutil",
        "hf",
        "huggingface-cli",
        "kubectl",
        "ls",
        "make",
        "mkdir",
        "module",
        "mount",
        "mv",
        "nvidia-smi",
        "pip",
        "pip3",
        "ray",
        "rm",
        "rsync",
        "scp",
        "sed",
        "squeue",
        "tar",
        "tensorboard",
        "uv",
        "wandb",
        "wget",
    }
)
"""Programs with long options that never train. [text]"""


def certainty(command: Command) -> int:
    """Degree to which a command is a training run, from `NONE` to `SURE`."""
    words = command.words
    name = words[0].rpartition("/")[2]
    if name in STARTERS:
        return SURE if _trains(name, words) else NONE
    if not known(words[0]):
        starts = any(w in STARTERS or w.endswith(".py") for w in words)
        return LIKELY if starts else POSSIBLE if _several(words) else NONE
    if _PYTHON.fullmatch(name):
        return _by_python(words, scheduled=bool(command.tasks))
    if name.endswith(".py"):
        return SURE if command.tasks else LIKELY
    return POSSIBLE if _several(words) and name not in _UTILITIES else NONE


def is_alone(command: Command) -> bool:
    """Tell if a command is one process of Python, which nothing starts again. [-]."""
    words, ranked = list(command.words), command.environment.keys() & _RANKED
    name = words[0].rpartition("/")[2]
    by_python = _PYTHON.fullmatch(name) or name.endswith(".py")
    module = words[words.index("-m") + 1 :][:1] if "-m" in words else []
    starts = any(MODULES.fullmatch(each) for each in module)
    return bool(by_python and not starts and not command.tasks and not ranked)


_RANKED = frozenset({"RANK", "LOCAL_RANK", "WORLD_SIZE"})
"""Variables that say the place of a process among others. [text]"""


def _trains(name: str, words: Sequence[str]) -> bool:
    if name not in TRAINING:
        return True
    plain = (word for word in words[1:] if not word.startswith("-"))
    return next(plain, "") in TRAINING[name]


def _several(words: Sequence[str]) -> bool:
    return sum(word.startswith("--") for word in words) > 1


def _by_python(words: Sequence[str], *, scheduled: bool) -> int:
    rest = list(words[1:])
    while rest and rest[0] in ("-u", "-O", "-B", "-E", "-s", "-I", "-W", "-X"):
        rest = rest[2:] if rest[0] in ("-W", "-X") else rest[1:]
    if not rest or rest[0] in ("-c", "-", "-V", "--version"):
        return NONE
    if rest[0] == "-m":
        module = rest[1] if len(rest) > 1 else ""
        if MODULES.fullmatch(module):
            return SURE
        if _OTHER_MODULES.fullmatch(module):
            return NONE
    return SURE if scheduled else LIKELY
