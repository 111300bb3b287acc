"""Times collectives among the GPUs of a machine, one process for each.

Started as ``torchrun --nproc-per-node N -m
planner.calibration.profiling.collectives FILE BYTES ...``; rank 0 writes the measured
times to the file, as JSON.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any

from planner.calibration.profiling.timings import Collective, CollectiveTiming
from planner.errors import BadInputError

SECONDS = 0.2
"""Approximate time that each message is repeated. [s]"""
LIMIT = 1800.0
"""Seconds after which the processes are given up. [s]"""
KINDS: tuple[Collective, ...] = (
    "all_reduce",
    "all_gather",
    "reduce_scatter",
    "all_to_all",
)


def launch(gpus: int, messages: Sequence[int]) -> tuple[CollectiveTiming, ...]:
    """Start one process for each GPU and collect the measured times.

    Args:
        gpus: GPUs of this machine. [1]
        messages: Sizes to go through. [B]

    Raises:
        BadInputError: The processes failed; gives the last line of their errors.
    """
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "timings.json"
        try:
            done = subprocess.run(  # noqa: S603
                command(gpus, out, messages),
                capture_output=True,
                text=True,
                timeout=LIMIT,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise BadInputError(f"collectives took over {LIMIT:g} s") from error
        if done.returncode or not out.exists():
            last = (done.stderr.strip() or "nothing").splitlines()[-1]
            raise BadInputError(f"collectives of {gpus} GPUs failed: {last}")
        return read_timings(out.read_text(encoding="utf-8"))


def command(gpus: int, out: Path, messages: Sequence[int]) -> list[str]:
    """The command that starts the processes.

    Args:
        gpus: GPUs of this machine. [1]
        out: File that rank 0 writes. [-]
        messages: Sizes to go through. [B]
    """
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    module = ["--nproc-per-node", str(gpus), "-m", __name__]
    return [*torchrun, *module, str(out), *map(str, messages)]


def read_timings(text: str) -> tuple[CollectiveTiming, ...]:
    """Times that rank 0 wrote."""
    return tuple(CollectiveTiming(**fields) for fields in json.loads(text))


def main(arguments: Sequence[str]) -> None:
    """One process of the group: run all collectives, rank 0 writes."""
    out, *sizes = arguments
    torch: Any = import_module("torch")
    dist = torch.distributed
    on_gpu = torch.cuda.is_available()
    dist.init_process_group("nccl" if on_gpu else "gloo")
    if on_gpu:
        torch.cuda.set_device(dist.get_rank() % torch.cuda.device_count())
    timings = [
        timed(torch, kind, int(size), "cuda" if on_gpu else "cpu")
        for kind in KINDS
        for size in sizes
    ]
    if dist.get_rank() == 0:
        text = json.dumps([asdict(t) for t in timings])
        Path(out).write_text(text, encoding="utf-8")
    dist.destroy_process_group()


def timed(torch: Any, kind: Collective, message: int, device: str) -> CollectiveTiming:
    """Time of one collective, on the slowest rank.

    Args:
        torch: The module, its process group initialised. [-]
        kind: Collective to time. [-]
        message: The whole tensor. [B]
        device: `cuda` or `cpu`. [-]
    """
    ranks = torch.distributed.get_world_size()
    part = max(message // 2 // ranks, 1)
    run = _collective(torch, kind, part, device)
    once = _seconds(torch, run, 3, device)
    runs = max(3, min(int(SECONDS / once), 500))
    seconds = _seconds(torch, run, runs, device)
    return CollectiveTiming(kind, ranks, 2.0 * part * ranks, seconds)


def _collective(
    torch: Any, kind: Collective, part: int, device: str
) -> Callable[[], object]:
    """A collective of bf16 numbers, `part` of them from or to each rank."""
    dist = torch.distributed
    ranks = dist.get_world_size()
    small = torch.ones(part, dtype=torch.bfloat16, device=device)
    whole = torch.ones(part * ranks, dtype=torch.bfloat16, device=device)
    if kind == "all_reduce":
        return lambda: dist.all_reduce(whole)
    if kind == "all_gather":
        return lambda: dist.all_gather_into_tensor(whole, small)
    if kind == "reduce_scatter":
        return lambda: dist.reduce_scatter_tensor(small, whole)
    other = torch.empty_like(whole)
    return lambda: dist.all_to_all_single(other, whole)


def _seconds(torch: Any, run: Callable[[], object], runs: int, device: str) -> float:
    """Mean time of a row of runs, the longest over the ranks."""
    wait = torch.cuda.synchronize if device == "cuda" else (lambda: None)
    run()
    wait()
    torch.distributed.barrier()
    start = time.perf_counter()
    for _ in range(runs):
        run()
    wait()
    mean = (time.perf_counter() - start) / runs
    slowest = torch.tensor([mean], dtype=torch.float64, device=device)
    torch.distributed.all_reduce(slowest, op=torch.distributed.ReduceOp.MAX)
    return float(slowest.item())


if __name__ == "__main__":
    main(sys.argv[1:])
