"""Runs and times kernels with PyTorch, which is imported only when it is asked for."""

import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from planner.calibration.profiling.timings import HostTiming
from planner.errors import BadInputError
from planner.hardware.reading.quantities import Bytes
from planner.hardware.specs import Dtype

COLD = 256 * 2**20
"""Bytes of operands that a kernel cycles through, beyond any cache. [B]"""
COPIES = 64
"""Most sets of operands that a kernel cycles through. [1]"""
COPY = 2**28
"""Bytes of a copy between host and GPU. [B]"""
WARM_UP = 2.0
"""Seconds of products before the first is timed: clocks fall under load. [s]"""
_BACKENDS = {"cudnn9": "CUDNN_ATTENTION", "fa2": "FLASH_ATTENTION"}
"""Attention kernel to PyTorch's name of the kernel."""
_FALLBACK = {"sdpa": "EFFICIENT_ATTENTION"}
"""Attention kernel where no backend above runs, to PyTorch's name."""

Kernel = Callable[[int], object]
"""Runs once, on one of the sets of operands."""


def find_torch() -> Any:
    """PyTorch, on a machine where it sees a GPU.

    Raises:
        BadInputError: No PyTorch, or no GPU that it can use.
    """
    try:
        torch = import_module("torch")
    except ImportError as error:
        raise BadInputError(
            "profile runs kernels with PyTorch, which is not installed here",
            allowed="pip install torch, on a machine with a GPU",
        ) from error
    if not torch.cuda.is_available():
        raise BadInputError(
            f"PyTorch {torch.__version__} sees no GPU on this machine, so there is "
            "nothing to profile"
        )
    return torch


@dataclass(frozen=True)
class Device:
    """The GPU of this machine, as its driver describes it.

    Attributes:
        name: The driver's name of the GPU. [text]
        memory: Memory of the GPU. [B]
        count: GPUs of the machine. [1]
        software: Driver and PyTorch. [text]
    """

    name: str
    memory: Bytes
    count: int
    software: str


def device_of(torch: Any) -> Device:
    """Describe the first GPU that PyTorch sees.

    Raises:
        BadInputError: The machine has GPUs of several kinds.
    """
    count = torch.cuda.device_count()
    names = {torch.cuda.get_device_properties(i).name for i in range(count)}
    if len(names) > 1:
        raise BadInputError(
            "this machine has GPUs of several kinds",
            value=", ".join(sorted(names)),
            allowed="CUDA_VISIBLE_DEVICES with GPUs of one kind",
        )
    first = torch.cuda.get_device_properties(0)
    software = f"driver {driver()}, torch {torch.__version__}"
    return Device(first.name, Bytes(first.total_memory), count, software)


def driver() -> str:
    """Version of the GPU's driver."""
    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        told = subprocess.run(query, capture_output=True, text=True, check=True)  # noqa: S603
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return (told.stdout.split() or ["unknown"])[0]


class CudaTimer:
    """Times a kernel on the GPU's own clock, launches in a row.

    Args:
        torch: The module. [-]
        seconds: Approximate time that each kernel is repeated. [s]
    """

    def __init__(self, torch: Any, seconds: float) -> None:
        self.torch, self.seconds = torch, seconds

    def __call__(self, kernel: Kernel) -> float:
        """Mean time of one run. [s]."""
        once = self._row(kernel, 3)
        return self._row(kernel, max(3, min(int(self.seconds / once), 2000)))

    def _row(self, kernel: Kernel, runs: int) -> float:
        cuda = self.torch.cuda
        start, end = (cuda.Event(enable_timing=True) for _ in range(2))
        kernel(0)
        cuda.synchronize()
        start.record()
        for i in range(runs):
            kernel(i)
        end.record()
        cuda.synchronize()
        return float(start.elapsed_time(end)) / 1e3 / runs


class TorchBench:
    """A bench of PyTorch's kernels on one device.

    Args:
        torch: The module. [-]
        timer: From a kernel to its time. [s]
        device: PyTorch's name of the device. [-]
        cold: Bytes that a kernel cycles through. [B]
    """

    def __init__(
        self,
        torch: Any,
        timer: Callable[[Kernel], float],
        *,
        formats: Sequence[Dtype],
        device: str = "cuda",
        cold: int = COLD,
    ) -> None:
        self.torch, self.timer, self.device, self.cold = torch, timer, device, cold
        self.formats = tuple(f for f in formats if self.gemm(f, 64, 64, 64))
        half = self.formats[0] if self.formats else "fp16"
        self._half = torch.bfloat16 if half == "bf16" else torch.float16
        named = [k for k in _BACKENDS if self.attention(k, 64, 1, 256)]
        self.kernels = tuple(
            named or [k for k in _FALLBACK if self.attention(k, 64, 1, 256)]
        )

    def warm_up(self, seconds: float) -> None:
        """Keep the GPU busy until its clock has settled.

        Args:
            seconds: Time to keep the GPU busy. [s]
        """
        until = time.monotonic() + seconds
        while self.formats and time.monotonic() < until:
            self.gemm(self.formats[0], 4096, 4096, 4096)

    def gemm(
        self, dtype: Dtype, rows: int, outputs: int, inputs: int, experts: int = 1
    ) -> float | None:
        """Time of a product, or of one grouped launch. [s]."""
        size = 1 if dtype == "fp8" else 2
        moved = size * (rows * inputs + experts * inputs * outputs)

        def make() -> Callable[[], object]:
            if experts > 1:
                return self._grouped(dtype, rows, outputs, inputs, experts)
            if dtype == "fp8":
                return self._scaled(rows, outputs, inputs)
            return self._plain(dtype, rows, outputs, inputs)

        return self._timed(make, moved)

    def _timed(
        self, make: Callable[[], Callable[[], object]], moved: int
    ) -> float | None:
        """Time of a kernel over sets of operands that no cache holds."""
        sets = max(1, min(-(-self.cold // moved), COPIES))
        try:
            kernels = [make() for _ in range(sets)]
            return self.timer(lambda i: kernels[i % sets]())
        except (RuntimeError, NotImplementedError, AttributeError, ValueError):
            # This GPU, or this PyTorch, does not have the kernel.
            return None

    def _normal(self, *shape: int, dtype: Any = None) -> Any:
        """Random operands: zeros would draw less power and run faster."""
        drawn = self.torch.randn(*shape, device=self.device)
        return drawn.to(dtype or self._half)

    def _plain(self, dtype: Dtype, m: int, n: int, k: int) -> Callable[[], object]:
        kind = getattr(self.torch, {"bf16": "bfloat16", "fp16": "float16"}[dtype])
        a, b = self._normal(m, k, dtype=kind), self._normal(n, k, dtype=kind).t()
        return lambda: self.torch.mm(a, b)

    def _scaled(self, m: int, n: int, k: int) -> Callable[[], object]:
        torch = self.torch
        a = self._normal(m, k, dtype=torch.float8_e4m3fn)
        b = self._normal(n, k, dtype=torch.float8_e4m3fn).t()
        one = torch.ones((), device=self.device)
        return lambda: torch._scaled_mm(  # noqa: SLF001
            a, b, scale_a=one, scale_b=one, out_dtype=torch.bfloat16
        )

    def _grouped(
        self, dtype: Dtype, rows: int, n: int, k: int, experts: int
    ) -> Callable[[], object]:
        if dtype != "bf16":
            raise NotImplementedError(dtype)
        torch = self.torch
        a = self._normal(rows, k, dtype=torch.bfloat16)
        b = self._normal(experts, n, k, dtype=torch.bfloat16).transpose(-2, -1)
        each = rows // experts
        ends = torch.arange(each, rows + 1, each, device=self.device)
        offsets = ends.to(torch.int32)
        return lambda: torch._grouped_mm(a, b, offs=offsets)  # noqa: SLF001

    def attention(
        self, kernel: str, head_dim: int, heads: int, seq_len: int
    ) -> tuple[float, float] | None:
        """Times of a causal forward and of its backward. [s]."""
        backend = (_BACKENDS | _FALLBACK)[kernel]
        shape = (1, heads, seq_len, head_dim)
        moved = 8 * heads * seq_len * head_dim
        forward = self._timed(lambda: self._core(backend, shape), moved)
        both = self._timed(lambda: self._core(backend, shape, backward=True), moved)
        if forward is None or both is None or both <= forward:
            return None
        return forward, both - forward

    def _core(
        self, backend: str, shape: tuple[int, ...], *, backward: bool = False
    ) -> Callable[[], object]:
        """Attention of one backend alone, forward or forward and backward."""
        torch = self.torch
        q, k, v = (self._normal(*shape).requires_grad_(backward) for _ in range(3))
        above = self._normal(*shape)
        only = import_module("torch.nn.attention")
        chosen = getattr(only.SDPBackend, backend)

        def run() -> object:
            with only.sdpa_kernel(chosen):
                out = torch.nn.functional.scaled_dot_product_attention(
                    q, k, v, is_causal=True
                )
            if not backward:
                return out
            return torch.autograd.grad(out, (q, k, v), above)

        return run

    def stream(self, moved: int) -> float | None:
        """Time of an operator that reads twice and writes once. [s]."""
        elements = moved // 6

        def make() -> Callable[[], object]:
            a, b, out = (self._normal(elements) for _ in range(3))
            return lambda: self.torch.add(a, b, out=out)

        return self._timed(make, moved)

    def host(self) -> HostTiming:
        """Time of a launch, and rates of copies."""
        small = self._normal(64)
        launch = self.timer(lambda _: small.add_(1))
        here = self.torch.empty(
            COPY, dtype=self.torch.uint8, pin_memory=self.device != "cpu"
        )
        there = here.to(self.device, copy=True)
        to_device = self.timer(lambda _: there.copy_(here, non_blocking=True))
        to_host = self.timer(lambda _: here.copy_(there, non_blocking=True))
        return HostTiming(launch, COPY / to_device, COPY / to_host)
