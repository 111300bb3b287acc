"""A process group of ranks that are not there, for sharding on fake tensors."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

import pytest

torch = pytest.importorskip("torch")
meshes = pytest.importorskip("torch.distributed.device_mesh")
fsdp = pytest.importorskip("torch.distributed.fsdp._fully_shard")
propagation = pytest.importorskip("torch.distributed.tensor._sharding_prop")
fakes = pytest.importorskip("torch._subclasses.fake_tensor")
groups = pytest.importorskip("torch.testing._internal.distributed.fake_pg")


class Stream:
    """A stream on which everything has always finished."""

    def __init__(self, *_: Any, **__: Any) -> None: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...

    def record_event(self, event: Any = None) -> Any:
        return event or Event()

    def wait_stream(self, stream: Any) -> None: ...

    def wait_event(self, event: Any) -> None: ...

    def synchronize(self) -> None: ...


class Event:
    """An event that has always happened."""

    def __init__(self, *_: Any, **__: Any) -> None: ...

    def record(self, *_: Any) -> "Event":
        return self

    def wait(self, *_: Any) -> None: ...

    def synchronize(self) -> None: ...


class Gpu:
    """What FSDP2 and DeviceMesh ask of torch.cuda."""

    Stream = Stream
    Event = Event
    current_stream = stream = staticmethod(Stream)
    current_device = staticmethod(lambda *_: 0)
    set_device = synchronize = staticmethod(lambda *_: None)
    is_available = is_initialized = staticmethod(lambda *_: True)
    device_count = staticmethod(lambda *_: 8)


@contextmanager
def ranks(world: int, tp: int) -> Iterator[Any]:
    """Mesh (dp, tp) of `world` ranks of which this process is the first."""
    dist = torch.distributed
    with pytest.MonkeyPatch.context() as patch:
        _no_gpu_is_asked(patch)
        _shadows_are_not_counted(patch)
        _meshes_hold_real_ranks(patch)
        dist.init_process_group(
            "fake", rank=0, world_size=world, store=groups.FakeStore()
        )
        try:
            shape, names = (world // tp, tp), ("dp", "tp")
            yield meshes.init_device_mesh("cuda", shape, mesh_dim_names=names)
        finally:
            dist.destroy_process_group()


def _no_gpu_is_asked(patch: pytest.MonkeyPatch) -> None:
    names = ("_fsdp_collectives", "_fsdp_init", "_fsdp_param_group", "_fsdp_state")
    for module in (meshes, *(getattr(fsdp, name) for name in names)):
        patch.setattr(module, "_get_device_handle", lambda *_: Gpu, raising=False)
    patch.setattr(torch.cuda, "current_device", lambda: 0)
    patch.setattr(torch.cuda, "current_stream", Stream)
    patch.setattr(torch.cuda, "set_device", lambda *_: None)


def _shadows_are_not_counted(patch: pytest.MonkeyPatch) -> None:
    """Keep DTensor's trial runs on global shapes out of the tracker's sight.

    Sharding propagation runs each operator once on whole tensors; in a fake mode
    of its own the tracker does not count them.
    """
    patch.setattr(propagation, "detect_fake_mode", lambda *_, **__: None)


def _meshes_hold_real_ranks(patch: pytest.MonkeyPatch) -> None:
    """Let FSDP2 join its mesh to that of tensor parallelism while tensors are fake."""
    joined = meshes.DeviceMesh._concatenate

    def concatenate(*args: Any, **kwargs: Any) -> Any:
        with fakes.unset_fake_temporarily(), torch.device("cpu"):
            return joined(*args, **kwargs)

    patch.setattr(meshes.DeviceMesh, "_concatenate", staticmethod(concatenate))
