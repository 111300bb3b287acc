"""The thin part on PyTorch: its plumbing with a false torch, its refusals."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from planner.calibration.profiling import torch_kernels as profile_torch
from planner.calibration.profiling.collectives import command, launch, read_timings
from planner.calibration.profiling.timings import HostTiming
from planner.calibration.profiling.torch_kernels import (
    CudaTimer,
    device_of,
    find_torch,
)
from planner.cli import app
from planner.errors import BadInputError


class Event:
    """A CUDA event that reads the false clock when it is recorded."""

    now = 0.0

    def __init__(self, *, enable_timing: bool) -> None:
        assert enable_timing
        self.at = 0.0

    def record(self) -> None:
        self.at = Event.now

    def elapsed_time(self, other: "Event") -> float:
        return (other.at - self.at) * 1e3


def false_torch(*names: str, memory: float = 150e9) -> Any:
    def properties(i: int) -> Any:
        return SimpleNamespace(name=names[i], total_memory=memory)

    cuda = SimpleNamespace(
        is_available=lambda: bool(names),
        device_count=lambda: len(names),
        get_device_properties=properties,
        Event=Event,
        synchronize=lambda: None,
    )
    return SimpleNamespace(__version__="9.9", cuda=cuda)


def test_the_mean_of_a_row_is_timed_on_the_gpus_clock() -> None:
    ran: list[int] = []

    def kernel(i: int) -> None:
        ran.append(i)
        Event.now += 0.01

    assert CudaTimer(false_torch("x"), 0.1)(kernel) == pytest.approx(0.01)
    assert len(ran) == (1 + 3) + (1 + 10)


def test_no_torch_is_one_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(BadInputError, match="PyTorch, which is not installed here"):
        find_torch()


def test_no_gpu_is_one_message(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "torch", false_torch())
    out = tmp_path / "mine.yaml"
    done = CliRunner().invoke(app, ["profile", "--out", str(out)])
    assert done.exit_code == 2
    assert done.stderr.startswith("error: PyTorch 9.9 sees no GPU on this machine")
    assert len(done.stderr.splitlines()) == 1
    assert not out.exists()


@pytest.mark.parametrize("option", ["gpu", "link"])
def test_a_name_that_is_not_known_is_refused_first(tmp_path: Path, option: str) -> None:
    out = ["profile", "--out", str(tmp_path / "mine.yaml")]
    done = CliRunner().invoke(app, [*out, f"--{option}", "h100-sxm"])
    assert done.exit_code == 2
    assert f"--{option}: no such entry of the catalog" in done.stderr


def test_the_gpu_is_described(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profile_torch, "driver", lambda: "570")
    device = device_of(false_torch("NVIDIA H200", "NVIDIA H200"))
    assert (device.name, device.count) == ("NVIDIA H200", 2)
    assert device.software == "driver 570, torch 9.9"


def test_gpus_of_several_kinds_are_refused() -> None:
    with pytest.raises(BadInputError, match=r"several kinds .*A100, NVIDIA H200"):
        device_of(false_torch("NVIDIA H200", "NVIDIA A100"))


def test_collectives_are_started_one_process_for_each_gpu() -> None:
    out = Path("timings.json")
    given = command(8, out, (1024, 2048))
    assert given[1:3] == ["-m", "torch.distributed.run"]
    assert given[-4:] == [
        "planner.calibration.profiling.collectives",
        str(out),
        "1024",
        "2048",
    ]
    assert given[given.index("--nproc-per-node") + 1] == "8"


def test_what_the_processes_wrote_is_read() -> None:
    fields = {"collective": "all_gather", "ranks": 2, "message": 8.0, "seconds": 2.0}
    (timing,) = read_timings(json.dumps([fields]))
    assert timing.bus_bandwidth == 2.0


def test_processes_that_fail_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = [sys.executable, "-c", "raise SystemExit('no network')"]
    module = sys.modules["planner.calibration.profiling.collectives"]
    monkeypatch.setattr(module, "command", lambda *_: wrong)
    with pytest.raises(BadInputError, match="collectives of 2 GPUs failed: no network"):
        launch(2, (1024,))


class Machine:
    """A bench on which every product, operator and copy takes its time."""

    formats, kernels = ("bf16",), ()

    def __init__(self, *_: object, **__: object) -> None:
        self.warm = 0.0

    def warm_up(self, seconds: float) -> None:
        self.warm = seconds

    def gemm(self, _: str, m: int, n: int, k: int, experts: int = 1) -> float | None:
        return None if experts > 1 else 2.0 * m * n * k / 700e12 + 3e-6

    def attention(self, *_: object) -> None:
        raise AssertionError("it has no kernel")

    def stream(self, moved: int) -> float | None:
        return moved / 4e12 + 1e-6

    def host(self) -> HostTiming:
        return HostTiming(2e-6, 50e9, 50e9)


def test_a_profile_is_written_and_taken_by_predict(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    module = sys.modules["planner.cli.commands.profile"]
    monkeypatch.setattr(module, "find_torch", lambda: false_torch("NVIDIA H100 NVL"))
    monkeypatch.setattr(module, "TorchBench", Machine)
    out = tmp_path / "deep" / "mine.yaml"
    options = ["--quick", "--gpu", "h100-sxm5-80gb", "--out", str(out)]
    done = CliRunner().invoke(app, ["profile", *options])
    assert done.exit_code == 0, done.stderr
    assert done.stdout.startswith("h100-sxm5-80gb: ")
    assert "# not measured: collectives: one GPU" in out.read_text()
    job = ["predict", "llama-3.1-405b-16k-h100", "--json", "-", "--calibration"]
    ours = CliRunner().invoke(app, job[:-1])
    theirs = CliRunner().invoke(app, [*job, str(out)])
    assert theirs.exit_code == 0, theirs.stderr
    steps = [
        json.loads(text)["estimate"]["step_time_s"]["value"]
        for text in (ours.stdout, theirs.stdout)
    ]
    assert steps[0] != steps[1]
    assert "memory of h100-sxm5-80gb" in ours.stdout
    assert "memory of h100-sxm5-80gb" not in theirs.stdout


def test_a_calibration_of_another_gpu_is_told(tmp_path: Path) -> None:
    out = tmp_path / "mine.yaml"
    out.write_text(
        "gpus: {l4: {memory: {efficiency: 0.5, op_latency: 1 us, source: me}}}"
    )
    job = ["predict", "llama-3.1-405b-16k-h100", "--calibration", str(out)]
    done = CliRunner().invoke(app, job)
    assert done.exit_code == 0, done.stderr
    assert "has nothing of h100-sxm5-80gb" in " ".join(done.stdout.split())
