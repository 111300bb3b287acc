"""Writes what PyTorch's own allocator answers to the traces.

    python -m benchmarks.memory.allocator TORCH CUDA

TORCH is the folder ``torch`` of a CUDA wheel of PyTorch 2.13 (lib and include), CUDA a
folder of CUDA's headers. ``libc10_cuda.so`` runs on a made-up runtime of one GPU, so no
GPU is needed.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.memory.allocator.traces import (
    CAPACITY,
    DRAWN,
    REPLAYED,
    Event,
    drawn,
    key,
    replayed,
    reports,
    settings,
    words,
)
from planner.eager.allocator.allocator import UNLIMITED, Settings

HERE = Path(__file__).parent
GOLDEN = HERE.parents[2] / "tests" / "golden" / "allocator.json"
GLUE = ("libcudart.so.13", "libnvidia-ml.so.1")


def build(torch: Path, cuda: Path, folder: Path) -> None:
    """Compile runtime and driver beside the allocator of a wheel."""
    lib, text = torch / "lib", (HERE / "runtime.cpp").read_text()
    listed = _out("nm", "-D", "--undefined-only", str(lib / "libc10_cuda.so"))
    wanted = set(re.findall(r" U (cuda\w+)@", listed))
    lacking = [name for name in sorted(wanted) if not re.search(rf"\b{name}\(", text)]
    others = "".join(f'extern "C" int {name}() {{ return 0; }}\n' for name in lacking)
    (folder / "others.inc").write_text(others)
    (folder / "versions").write_text("libcudart.so.13 { global: *; };\n")
    flags = ["-O1", "-std=c++20", f"-I{cuda}", f"-I{torch / 'include'}", f"-I{folder}"]
    runtime = [str(HERE / "runtime.cpp"), "-shared", "-fPIC"]
    script = f"-Wl,--version-script={folder / 'versions'}"
    for name, more in zip(GLUE, ([script], []), strict=True):
        named = [f"-Wl,-soname,{name}", *more, "-o", str(folder / name)]
        _out("g++", *flags, *runtime, *named)
    linked = [f"-L{lib}", "-lc10_cuda", "-lc10", str(folder / GLUE[0])]
    paths = [f"-Wl,-rpath,{lib}", "-o", str(folder / "drive")]
    _out("g++", *flags, str(HERE / "drive.cpp"), *linked, *paths)


def _out(*command: str) -> str:
    return subprocess.check_output(command, text=True)  # noqa: S603  own commands


def judge(folder: Path, given: Settings, events: Iterable[Event]) -> list[list[int]]:
    """Peaks of reserved and allocated memory that PyTorch's allocator reports. [B]."""
    room = CAPACITY if given.capacity == UNLIMITED else given.capacity
    part = ["0.5"] if given.limited else []
    own = {
        "JUDGE_CAPACITY": str(room * (2 if given.limited else 1)),
        "PYTORCH_CUDA_ALLOC_CONF": words(given),
        "LD_LIBRARY_PATH": str(folder),
        "LD_PRELOAD": ":".join(str(folder / name) for name in GLUE),
    }
    command = [str(folder / "drive"), *part]
    text = "".join(_line(at, event) for at, event in enumerate(events, 1)) + "r\n"
    found = subprocess.run(  # noqa: S603  own command
        command,
        check=True,
        input=text,
        env=os.environ | own,
        text=True,
        capture_output=True,
    )
    lines = found.stdout.splitlines()
    return [[int(word) for word in line.split()] for line in lines if line != "oom"]


def _line(at: int, event: Event) -> str:
    verb = f"a {event.number} {event.size} {event.stream}"
    verb = verb if event.size else f"f {event.number}"
    return f"{verb}\n" + ("r\n" if reports(at) else "")


def main(words_given: Sequence[str]) -> None:
    """Build the judge, ask it and write its answers."""
    torch, cuda = (Path(word).resolve() for word in words_given)
    with TemporaryDirectory() as name:
        folder = Path(name)
        build(torch, cuda, folder)
        found = {
            f"drawn {seed}": judge(folder, settings(seed), drawn(seed))
            for seed in range(DRAWN)
        }
        for case, given in REPLAYED:
            events = replayed(case)
            found[key(case, given)] = judge(folder, given, events)[-1:]
    GOLDEN.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
