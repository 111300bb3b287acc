"""Starts emitted training scripts, each rank in a process of its own, on one import.

    forked.py RUNS [MODULE...]

RUNS has one JSON line a run: the folder, the number of ranks, the script (or `-m` and a
module) with the words that launch.sh gives it, and the variables that launch.sh sets.
Every rank is forked from a process that has imported MODULES, then what the first
script imports at its top, but no model's code: the fork stands where a fresh process
stands when its script has its imports behind it. A rank writes what it says into
`rank-N.log` of the folder.
"""

import ast
import faulthandler
import importlib
import importlib.util
import json
import os
import runpy
import signal
import sys
import time
from pathlib import Path
from typing import Any

from ports import free_port

MODELS = "transformers.models."
OTHERS = (f"{MODELS}auto.", f"{MODELS}bloom.")
"""The tables of models, and what PEFT imports by itself. [text]"""
MODULE = "-m"
"""Word of Python before a module that is run as a script. [text]"""
LONGEST = 400.0
"""Time for one run; the first builds DeepSpeed's operators. [s]"""
ALONE = 20.0
"""Time in which ranks have to end once one has failed. [s]"""


def rank(run: dict[str, Any], number: int, port: int) -> int:
    """Fork one rank; its process. [1]."""
    child = os.fork()
    if child:
        return child
    os.chdir(run["folder"])
    place = {"RANK": number, "LOCAL_RANK": number, "WORLD_SIZE": run["ranks"]}
    place |= {"LOCAL_WORLD_SIZE": run["ranks"]}
    place |= {"MASTER_ADDR": "localhost", "MASTER_PORT": port}
    os.environ.update(run["environment"])
    os.environ.update({name: str(value) for name, value in place.items()})
    log = os.open(f"rank-{number}.log", os.O_WRONLY | os.O_CREAT)
    os.dup2(log, 1)
    os.dup2(log, 2)
    faulthandler.enable()
    failed = 1
    try:
        started(run["words"])
        failed = 0
    except BaseException:  # noqa: BLE001  # whatever it is, the log has to say it
        sys.excepthook(*sys.exc_info())
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(failed)


def started(words: list[str]) -> None:
    """Run a script, or a module after `-m`, as Python does with these words.

    The folder of the script, or the one where a module is started, is first on the
    path.
    """
    script, *more = words
    sys.argv = more if script == MODULE else words
    home = Path() if script == MODULE else Path(script).parent
    sys.path.insert(0, str(home.resolve()))
    if script == MODULE:
        runpy.run_module(more[0], run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(script, run_name="__main__")


def ended(children: list[int]) -> list[int]:
    """Exit codes of ranks; those that hang, or wait for one that failed, are ended."""
    codes: dict[int, int] = {}
    deadline = time.monotonic() + LONGEST
    while len(codes) < len(children):
        left = [child for child in children if child not in codes]
        late = time.monotonic() > deadline
        for child in left:
            if late:
                # Its log then ends with where it stood.
                os.kill(child, signal.SIGABRT)
            done, status = os.waitpid(child, 0 if late else os.WNOHANG)
            if done:
                codes[child] = os.waitstatus_to_exitcode(status)
        if any(codes.values()):
            deadline = min(deadline, time.monotonic() + ALONE)
        time.sleep(0.02)
    return [codes[child] for child in children]


def source_of(run: dict[str, Any]) -> Path:
    """File of the script, or of the module, that a run starts."""
    script, *more = run["words"]
    if script != MODULE:
        return Path(run["folder"]) / script
    found = importlib.util.find_spec(more[0])
    assert found is not None, more[0]
    assert found.origin is not None, more[0]
    return Path(found.origin)


def imports_of(script: Path) -> list[str]:
    """Modules that a script imports at its top. [text]."""
    found = []
    for line in ast.parse(script.read_text()).body:
        if isinstance(line, ast.Import):
            found += [name.name for name in line.names]
        elif isinstance(line, ast.ImportFrom):
            found.append(str(line.module))
    return found


def modeling() -> list[str]:
    """Model code that is imported already, and would hide a late import."""
    found = [n for n in sys.modules if n.startswith(MODELS) and ".modeling_" in n]
    return [name for name in found if not name.startswith(OTHERS)]


def main() -> None:
    runs = [json.loads(line) for line in Path(sys.argv[1]).read_text().splitlines()]
    for name in sys.argv[2:]:
        importlib.import_module(name)
    for name in imports_of(source_of(runs[0])):
        importlib.import_module(name)
    if modeling():
        sys.exit(f"forked.py: imported before the scripts could: {modeling()}")
    for run in runs:
        port = free_port()
        ranks = [rank(run, number, port) for number in range(run["ranks"])]
        codes = ended(ranks)
        sys.stdout.write(json.dumps({"folder": run["folder"], "codes": codes}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
