"""Which schedules a space holds, and on which meshes."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from strategies import small_job

from planner.search.space.space import Space, enumerate_space
from planner.specs.search import SearchSpec


def space_of(name: str, **limits: object) -> Space:
    """A space of small pipelines."""
    search = SearchSpec.model_validate({"tp": 1, "cp": 1} | limits)
    return enumerate_space(small_job(search, name=name))


def names(space: Space) -> Counter[str]:
    return Counter(space.schedule(at) for at in range(len(space)))


def test_the_default_space_has_no_gpipe() -> None:
    assert set(names(space_of("torchtitan"))) == {"1f1b", "interleaved"}


@pytest.mark.parametrize("limits", [{"space": "full"}, {"schedule": ["1f1b", "gpipe"]}])
def test_gpipe_is_there_in_full_or_where_it_is_named(limits: dict[str, object]) -> None:
    """On every mesh with a pipeline and two micro-batches, beside 1F1B."""
    space = space_of("torchtitan", **limits)
    held = space.meshes.take(space.mesh)
    once = [space.schedule(at) == "gpipe" for at in range(len(space))]
    plain = [space.schedule(at) == "1f1b" for at in range(len(space))]
    differs = (held.pp > 1) & (held.micro_batches > 1)
    assert 0 < sum(once) == sum(plain & differs) < sum(plain)
    assert all(differs[once])
    assert all(space.vpp[once] == 1)


def test_gpipe_alone_leaves_only_pipelines() -> None:
    space = space_of("torchtitan", schedule="gpipe")
    assert set(names(space)) == {"gpipe"}
    assert space.meshes.pp[space.mesh].min() > 1
    assert space.removed["limit:vpp or schedule"] == len(space.meshes)


def test_a_framework_without_gpipe_has_none() -> None:
    assert "gpipe" not in names(space_of("megatron", space="full"))
    assert len(space_of("megatron", schedule="gpipe")) == 0


def test_long_steps_are_in_the_space_but_gpipe() -> None:
    """A million micro-batches: 1F1B repeats itself, GPipe does not."""
    job = small_job(SearchSpec(tp=1, cp=1, space="full"), name="torchtitan")
    training = job.training.model_copy(update={"global_batch": 2**20})
    space = enumerate_space(replace(job, training=training))
    held = space.meshes.take(space.mesh)
    count = 2 * held.pp * space.vpp * held.micro_batches
    long = {space.schedule(at) for at in np.flatnonzero(count > 2**20).tolist()}
    assert {"1f1b", "interleaved"} <= long
    assert "gpipe" not in long
    rule = "a step too long to simulate, in which nothing repeats"
    assert space.removed[rule] > 0
