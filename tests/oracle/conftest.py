"""What has to be so before the first test of a process that uses PyTorch."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "memory"))


@pytest.fixture(scope="session", autouse=True)
def gpus_before_the_first_backward() -> None:
    """Autograd makes its queues, one a device, at a process's first backward.

    A test on the CPU may be that first one; fake GPUs that come after it have none.
    """
    from fake_cuda import give_autograd_a_guard  # noqa: PLC0415  # wants torch

    give_autograd_a_guard()
