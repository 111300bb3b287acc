"""Dense masks that Megatron-LM's loader makes unless it is told not to."""

from dataclasses import replace

import pytest
from strategies import framework, small_job

from planner.cost.meshes import Meshes
from planner.cost.pricing import Pricing
from planner.cost.time.columns import Context
from planner.cost.time.ends import embedding_end, head_end
from planner.models import preset
from planner.planning.prediction.predict import predict
from planner.specs.layouts.layout import PartialLayout
from planner.specs.search import SearchSpec
from planner.specs.training import TrainingSpec

GIB = 2**30
LONG = 131_072


def job(*, loads: bool) -> Pricing:
    room = framework("megatron")
    profile = room.profile.model_copy(update={"loads_masks": loads})
    training = TrainingSpec.model_validate({"seq_len": LONG, "global_batch": 8})
    return replace(
        small_job(SearchSpec(), nodes=1, node="dgx-h100"),
        model=preset("llama-3-8b"),
        training=training,
        framework=replace(room, profile=profile),
    )


def ends(*, loads: bool, cp: int, pp: int) -> list[float]:
    """Bytes held and loaded, and the wait, of embedding and head."""
    meshes = Meshes.from_rows([(1, 0, pp, cp, 0, 1, 1, 1, cp, 1, 1, 1, 8, 0)])
    context = Context.of(job(loads=loads), meshes)
    first, last = embedding_end(context), head_end(context)
    columns = (first.saved, last.saved, first.transient, first.forward.total)
    return [float(column[0]) for column in columns]


@pytest.mark.parametrize(("cp", "pp"), [(1, 1), (1, 2), (4, 2)])
def test_masks_of_128k_tokens_take_16_gib_on_both_ends(cp: int, pp: int) -> None:
    """A byte for each pair of tokens; of the whole, a context rank keeps its rows."""
    pairs = zip(
        ends(loads=True, cp=cp, pp=pp), ends(loads=False, cp=cp, pp=pp), strict=True
    )
    first, last, loaded, wait = (ours - plain for ours, plain in pairs)
    assert first == pytest.approx(16 * GIB / cp)
    assert last == pytest.approx(16 * GIB / cp * (pp > 1))
    assert loaded == pytest.approx(16 * GIB * (cp > 1))
    assert 0.2 < wait < 1.0  # over PCIe, at 17 to 86 GB/s


def test_loaders_of_128k_tokens_take_128_gib_each() -> None:
    """Two processes of every rank hold fp32 ones and their triangle, 64 GiB each."""
    partial = PartialLayout.model_validate(
        {"cp": 2, "zero_stage": 1, "micro_batch": 1, "recompute": "full"}
    )
    made = {}
    for loads in (False, True):
        workload = job(loads=loads)
        made[loads] = predict(workload, partial).estimate.memory.host
    assert made[False] is None
    assert made[True] is not None
    assert made[True].needed_gib == pytest.approx(8 * 2 * 2 * 64)
