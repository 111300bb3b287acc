"""CUDA tensors without storage that autograd accepts in a PyTorch built without CUDA.

Two things are missing in such a build. Autograd asks c10's table of device guards
for CUDA's and finds none; and it asks which accelerator there is and hears none.
Both are answered here in place, through ctypes. Slots are those of torch 2.13.0
(c10/core/impl/DeviceGuardImplInterface.h, aten/src/ATen/detail/CUDAHooksInterface.h).
"""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

GUARD_TABLE = "_ZN3c104impl26device_guard_impl_registryE"
CUDA_HOOKS = "_ZN2at6detail12getCUDAHooksEv"
CUDA = 1
"""CUDA's number among device types, hence its place in the guards' table."""
IS_BUILT = 2
"""Place of CUDAHooksInterface::isBuilt; two destructors come before it."""
HAS_CONTEXT = 4
"""Place of CUDAHooksInterface::hasPrimaryContext."""
METHODS = 64
"""As many virtual methods as we copy, no fewer than either interface has."""

_kept: list[object] = []
"""What C++ points at must outlive this module's functions."""


def _library(name: str) -> ctypes.CDLL:
    return ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / name))


def give_autograd_a_guard() -> None:
    """Put PyTorch's own guard that does nothing in CUDA's place.

    PyTorch replaces a guard that counts no devices by the one that does nothing
    (torch._C._ensureCUDADeviceGuardSet), but there has to be one to replace: an
    object whose every method answers zero is put there first.

    Raises:
        RuntimeError: PyTorch left that object where it was.
    """
    table = (ctypes.c_void_p * (CUDA + 1)).in_dll(_library("libc10.so"), GUARD_TABLE)
    if table[CUDA]:
        return
    zero = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(lambda _: 0)
    methods = (ctypes.c_void_p * METHODS)(
        *[ctypes.cast(zero, ctypes.c_void_p).value] * METHODS
    )
    guard = (ctypes.c_void_p * 1)(ctypes.addressof(methods))
    table[CUDA] = ctypes.addressof(guard)
    torch._C._ensureCUDADeviceGuardSet()
    if table[CUDA] == ctypes.addressof(guard):
        table[CUDA] = None
        raise RuntimeError("PyTorch kept the guard it should have replaced")


@contextmanager
def cuda_named_as_accelerator() -> Iterator[None]:
    """Let PyTorch name CUDA as the accelerator it was built for, for a while."""
    hooks_of = getattr(_library("libtorch_cpu.so"), CUDA_HOOKS)
    hooks_of.restype = ctypes.c_void_p
    hooks = ctypes.cast(hooks_of(), ctypes.POINTER(ctypes.c_void_p))
    before = hooks[0]
    methods = _methods_of_a_built_cuda(before)
    hooks[0] = ctypes.addressof(methods)
    try:
        yield
    finally:
        hooks[0] = before


def _methods_of_a_built_cuda(address: int) -> ctypes.Array[ctypes.c_void_p]:
    """Copy of a table of methods; it says built, and no device in use."""
    old = ctypes.cast(address, ctypes.POINTER(ctypes.c_void_p))
    methods = (ctypes.c_void_p * METHODS)(*old[:METHODS])
    built = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p)(lambda _: True)
    context = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p, ctypes.c_int8)(
        lambda *_: False
    )
    methods[IS_BUILT] = ctypes.cast(built, ctypes.c_void_p).value
    methods[HAS_CONTEXT] = ctypes.cast(context, ctypes.c_void_p).value
    _kept.extend((methods, built, context))
    return methods


@contextmanager
def fake_cuda() -> Iterator[None]:
    """Let fake CUDA tensors run forward, backward and autocast as on a Hopper GPU."""
    if torch.cuda.is_available():
        yield
        return
    give_autograd_a_guard()
    with cuda_named_as_accelerator(), pytest.MonkeyPatch.context() as patch:
        # Autocast switches itself off where it finds no GPU, with a warning only.
        known = "amp_definitely_not_available"
        patch.setattr(torch.cuda.amp.common, known, lambda: False)
        patch.setattr(torch.cuda, "is_bf16_supported", lambda *_, **__: True)
        # Grouped matrix products of experts ask for it.
        patch.setattr(torch.cuda, "get_device_capability", lambda *_, **__: (9, 0))
        yield
