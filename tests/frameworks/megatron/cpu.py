"""megatron-core on a machine without a GPU: the CPU answers for CUDA.

Devices are probed, streams waited for and random states kept in many places of
megatron-core; each of them is redirected here. Nothing of schedules, communication or
arithmetic is changed.
"""

import os
from collections.abc import Callable
from functools import cache
from typing import Any, Self

import torch

MAKERS = ("arange", "zeros", "ones", "empty", "full", "tensor", "rand", "randn")
MAKERS_LIKE = ("randint", "zeros_like", "empty_like", "ones_like", "full_like")


class _Nothing:
    """A stream or event that is always done."""

    def __init__(self, *_: object, **__: object) -> None: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...

    def __getattr__(self, _: str) -> Callable[..., None]:
        return lambda *_, **__: None


def _cpu(value: Any) -> Any:
    named = isinstance(value, (str, torch.device))
    return "cpu" if named and str(value).startswith("cuda") else value


def _on_cpu(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        if "device" in kwargs:
            kwargs["device"] = _cpu(kwargs["device"])
        return function(*map(_cpu, args), **kwargs)

    return call


def _answers(value: Any) -> Callable[..., Any]:
    """A function of its own that gives the value, whatever it is asked."""

    def answer(*_: object, **__: object) -> Any:
        return value() if callable(value) else value

    return answer


def _ranks_here() -> int:
    return int(os.environ.get("LOCAL_WORLD_SIZE", "1"))


ANSWERS = {
    "current_device": "cpu",
    "device_count": _ranks_here,
    "set_device": None,
    "synchronize": None,
    "empty_cache": None,
    "get_device_capability": (9, 0),
    "is_current_stream_capturing": False,
    "memory_allocated": 0,
    "max_memory_allocated": 0,
    "current_stream": _Nothing,
    "stream": _Nothing,
}
"""What torch.cuda says of a device; dynamo wants a function of its own for each."""


def _devices() -> None:
    cuda: Any = torch.cuda
    for name, value in ANSWERS.items():
        setattr(cuda, name, _answers(value))
    cuda.nvtx.range_push, cuda.nvtx.range_pop = _answers(None), _answers(None)
    cuda.Stream = cuda.Event = _Nothing
    for name in ("FloatTensor", "IntTensor", "LongTensor", "DoubleTensor"):
        setattr(cuda, name, getattr(torch, name))


def _tensors() -> None:
    kinds: Any = (torch.Tensor, torch.nn.Module)
    for kind in kinds:
        kind.cuda = lambda self, *_, **__: self
    move: Any = torch.Tensor
    move.to = _on_cpu(torch.Tensor.to)
    for name in (*MAKERS, *MAKERS_LIKE):
        setattr(torch, name, _on_cpu(getattr(torch, name)))


def _seeded(seed: int) -> None:
    torch.manual_seed(seed)


def _randomness() -> None:
    cuda: Any = torch.cuda
    cuda.get_rng_state = lambda *_, **__: torch.get_rng_state()
    cuda.set_rng_state = lambda state, *_, **__: torch.set_rng_state(state)
    cuda.manual_seed = _seeded
    cuda._lazy_call = lambda call, **_: call()  # what it is called

    import megatron.core.tensor_parallel.random as states  # noqa: PLC0415  # after

    every: Any = states
    every._set_cuda_rng_state = lambda state, *_, **__: torch.set_rng_state(state)
    every._get_cuda_rng_state = lambda *_, **__: torch.get_rng_state()


@cache
def without_gpu() -> None:
    """Answer for CUDA from here on; once, also where a fork asks again."""
    _devices()
    _tensors()
    _randomness()
