"""The loss of torchtitan's default stack is the one that its release runs."""

from pathlib import Path

import pytest

from planner.cost.workload import Workload
from planner.frameworks.stacks import with_stack
from planner.frameworks.torchtitan import FRAMEWORK
from planner.frameworks.torchtitan.loss import loss_of
from planner.job.resolve import resolve
from planner.specs.job import JobSpec
from planner.specs.reading.read import read_spec

JOBS = sorted((Path(__file__).resolve().parents[3] / "configs/jobs").glob("*.yaml"))
WIDTHS = {"whole": 12, "compiled": 4, "chunked": 1.5}


def on_torchtitan(spec: JobSpec, folder: Path, **stack: object) -> Workload:
    its = spec.model_copy(update={"framework": "torchtitan", "stack": stack})
    (workload,) = resolve(its, file="job.yaml", base=folder)
    return workload


@pytest.mark.parametrize("path", JOBS, ids=lambda path: path.stem)
def test_every_job_is_priced_with_the_loss_of_the_release(path: Path) -> None:
    """In chunks, as the registry's configurations; compiled where that cannot be."""
    spec = read_spec(path, ())
    if spec.training is None:
        pytest.skip("an inference job has no loss")
    usual = on_torchtitan(spec, path.parent)
    able = not usual.model.mtp_layers and usual.training.seq_len % 8 == 0
    assert loss_of(usual.asked) == ("chunked" if able else "compiled")
    assert usual.framework.recipe.logits_bytes == WIDTHS[loss_of(usual.asked)]
    assert usual.framework.by_hand == ()
    for word, width in WIDTHS.items():
        assert (
            on_torchtitan(spec, path.parent, loss=word).framework.recipe.logits_bytes
            == width
        )


@pytest.mark.parametrize(
    ("name", "width"),
    [("torchtitan", 12), ("pax", 12), ("pax-2023", 12), ("torchtitan-eager", 14)],
)
def test_a_named_stack_keeps_its_own_loss(name: str, width: float) -> None:
    """Measured runs are of releases before 0.3.0, and of other programs."""
    assert with_stack(FRAMEWORK, name).recipe.logits_bytes == width
    spec = read_spec(JOBS[0].parent / "llama-2-7b-4-rtx-4090.yaml", ())
    named = on_torchtitan(spec, JOBS[0].parent, name=name)
    assert named.framework.recipe.logits_bytes == width
    by_hand = on_torchtitan(spec, JOBS[0].parent, recipe={"logits_bytes": 6})
    assert (by_hand.framework.recipe.logits_bytes, loss_of(by_hand.asked)) == (
        6,
        "compiled",
    )
