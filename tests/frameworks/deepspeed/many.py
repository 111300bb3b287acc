"""Starts emitted training scripts one after the other, with one import for all.

Run in the environment of DeepSpeed with a file of runs, one JSON line each: the
folder, the number of ranks, and the words that launch.sh gives the launcher. What the
launcher does for a rank is done here: its number in the environment, the script with
its words. Ranks are forked from a process that has imported what they import, and
write what they say into `rank-N.log` of the folder.
"""

import json
import os
import runpy
import sys
from pathlib import Path
from typing import Any

os.environ["DS_ACCELERATOR"] = "cpu"
os.environ["DEEPSPEED_LOG_LEVEL"] = "info"

import deepspeed
import deepspeed.pipe
import deepspeed.runtime.sequence_parallel.ulysses_sp
import transformers.models.llama.modeling_llama
import transformers.models.mixtral.modeling_mixtral  # noqa: F401  # for the forks

SCRIPT = "train.py"


def rank(run: dict[str, Any], number: int, port: int) -> int:
    """Fork one rank; its process. [1]."""
    child = os.fork()
    if child:
        return child
    os.chdir(run["folder"])
    place = {"RANK": number, "LOCAL_RANK": number, "WORLD_SIZE": run["ranks"]}
    place |= {"MASTER_ADDR": "localhost", "MASTER_PORT": port}
    os.environ.update({name: str(value) for name, value in place.items()})
    log = os.open(f"rank-{number}.log", os.O_WRONLY | os.O_CREAT)
    os.dup2(log, 1)
    os.dup2(log, 2)
    words = run["words"]
    sys.argv = words[words.index(SCRIPT) :]
    failed = 1
    try:
        runpy.run_path(SCRIPT, run_name="__main__")
        failed = 0
    except BaseException:  # noqa: BLE001  # whatever it is, the log has to say it
        sys.excepthook(*sys.exc_info())
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(failed)


def main() -> None:
    runs = [json.loads(line) for line in Path(sys.argv[1]).read_text().splitlines()]
    port = int(sys.argv[2])
    for at, run in enumerate(runs):
        ranks = [rank(run, number, port + at) for number in range(run["ranks"])]
        codes = [os.waitstatus_to_exitcode(os.waitpid(one, 0)[1]) for one in ranks]
        sys.stdout.write(f"{deepspeed.__version__} {run['folder']} {codes}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
