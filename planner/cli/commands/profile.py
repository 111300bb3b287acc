"""`planner profile`: micro-benchmarks on this machine's GPU into a calibration file."""

import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from planner.calibration.profiling.collectives import launch
from planner.calibration.profiling.gpu import catalog_name
from planner.calibration.profiling.profile_file import profile_text
from planner.calibration.profiling.run import FULL, QUICK, Sizes, measure
from planner.calibration.profiling.timings import Timings
from planner.calibration.profiling.torch_kernels import (
    WARM_UP,
    CudaTimer,
    TorchBench,
    device_of,
    find_torch,
)
from planner.cli.guard import guarded
from planner.cli.options import Hardware, TimeLimit
from planner.cli.stopping import this_run
from planner.errors import BadInputError, did_you_mean
from planner.hardware.catalog import gpu as gpu_of
from planner.hardware.reading.files import Catalog
from planner.hardware.reading.yaml_text import parse_yaml
from planner.hardware.specs import Dtype
from planner.job.calibration_file import parse_calibration
from planner.questions.inputs.overlay import catalog_with
from planner.questions.outputs.files import write_whole

EACH = 0.2
"""About how long one kernel is repeated. [s]"""
QUICK_EACH = 0.03
"""About how long one kernel of a quick profile is repeated. [s]"""

Out = Annotated[
    Path,
    typer.Option("--out", metavar="FILE", help="Calibration file to write."),
]
Quick = Annotated[
    bool,
    typer.Option("--quick", help="Fewer sizes, each for a shorter time."),
]
Gpu = Annotated[
    str | None,
    typer.Option(
        "--gpu",
        metavar="NAME",
        help="GPU of the catalog that this one is; default: by the driver's name.",
        show_default=False,
    ),
]
Link = Annotated[
    str | None,
    typer.Option(
        "--link",
        metavar="NAME",
        help="Link that joins this machine's GPUs, where it is not their own.",
        show_default=False,
    ),
]


@guarded
def profile(
    out: Out,
    *,
    quick: Quick = False,
    gpu: Gpu = None,
    link: Link = None,
    hardware: Hardware = None,
    time_limit: TimeLimit = 3600.0,
) -> None:
    """Measure what this machine's GPUs achieve, for `--calibration`.

    Args:
        out: File to write. [-]
        quick: Fewer and shorter measurements. [-]
        gpu: GPU of the catalog, None to find out. [-]
        link: Link that joins the GPUs, None for their own. [-]
        hardware: Folder of hardware laid over ours. [-]
        time_limit: Longest time in all, from the start of the process. [s]

    Raises:
        BadInputError: No PyTorch, no GPU, or a GPU that the catalog lacks.
    """
    this_run().limited(time_limit)
    catalog = catalog_with(hardware)
    for name, kind in ((gpu, "gpus"), (link, "links")):
        _check_known(name, kind, catalog)
    torch = find_torch()
    device = device_of(torch)
    its = gpu_of(gpu or catalog_name(device.name, device.memory, catalog), catalog)
    wanted: tuple[Dtype, ...] = ("bf16", "fp16", "fp8")
    formats = [f for f in wanted if getattr(its, f"peak_{f}")]
    timer = CudaTimer(torch, QUICK_EACH if quick else EACH)
    bench = TorchBench(torch, timer, formats=formats)
    bench.warm_up(WARM_UP)
    sizes = QUICK if quick else FULL
    timings = _with_collectives(measure(bench, sizes, _tell), device.count, sizes)
    today = datetime.now(tz=UTC).date()
    origin = f"measured {today} on {device.name}, {device.software}"
    text = profile_text(its, timings, origin=origin, link=link)
    parse_calibration(parse_yaml(text), file=str(out), catalog=catalog)
    write_whole(out, text)
    print(f"{its.name}: {', '.join(_summary(timings))}; written to {out}")


def _check_known(name: str | None, kind: str, catalog: Catalog) -> None:
    known = catalog.names(kind)
    if name is not None and name not in known:
        raise BadInputError(
            f"no such entry of the catalog; {did_you_mean(name, known)}",
            field=f"--{kind.removesuffix('s')}",
            value=name,
        )


def _with_collectives(timings: Timings, gpus: int, sizes: Sizes) -> Timings:
    """Timings with collectives, where there is more than one GPU."""
    if gpus == 1:
        return replace(timings, skipped=(*timings.skipped, "collectives: one GPU"))
    _tell(f"collectives of {gpus} GPUs")
    return replace(timings, collectives=launch(gpus, sizes.messages))


def _summary(timings: Timings) -> list[str]:
    """Number of timings of each kind, in words."""
    products = sum(map(len, timings.gemm.values()))
    counts = {
        "products": products,
        "grouped products": sum(map(len, timings.grouped.values())),
        "attentions": len(timings.attention),
        "memory-bound operators": len(timings.stream),
        "collectives": len(timings.collectives),
    }
    return [f"{count} {what}" for what, count in counts.items() if count]


def _tell(what: str) -> None:
    print(f"measuring {what} ...", file=sys.stderr)
