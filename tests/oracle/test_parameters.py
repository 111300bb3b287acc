"""Parameter counts equal those of transformers on the meta device, to the last one."""

import pytest
from hugging_face import NAMES, NOT_IN_TRANSFORMERS, fields, theirs, transformers

from planner.models import FAMILIES, preset

pytestmark = pytest.mark.oracle

ROUTER_BIAS = "e_score_correction_bias"
"""Trained by a rule of its own, so transformers keeps it as a buffer."""


def test_transformers_has_every_family_but_these() -> None:
    known = transformers.models.auto.configuration_auto.CONFIG_MAPPING
    absent = {f.family for f in FAMILIES if f.family not in known}
    assert absent == NOT_IN_TRANSFORMERS


@pytest.mark.parametrize("name", NAMES)
def test_parameters_equal_those_of_transformers(name: str) -> None:
    """Tied weights count once; the routers' balancing biases count."""
    model = theirs(name, fields(name), "meta")
    unique = {id(weight): weight.numel() for weight in model.parameters()}
    biases = [b for key, b in model.named_buffers() if key.endswith(ROUTER_BIAS)]
    total = sum(unique.values()) + sum(bias.numel() for bias in biases)
    assert preset(name).parameters == total
