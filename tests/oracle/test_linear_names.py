"""Linear layers of every block are those that transformers builds, name by name."""

from collections import Counter

import pytest
from hugging_face import NAMES, ours, small, theirs, torch

from planner.models import preset
from planner.models.layers.linears import linears

pytestmark = pytest.mark.oracle

ROUTERS = {"router", "layer", "wg", "proj", "shared_expert_gate"}
"""Routers that are linear layers: Llama 4, DBRX, Hunyuan, Gemma 4, a column beside."""
OF_GPT2 = "Conv1D"
"""A linear layer that keeps its weight the other way round. [text]"""
FAMILIES = {preset(name).family: name for name in reversed(NAMES)}
"""A preset of each family."""


@pytest.mark.parametrize("family", FAMILIES)
def test_names_and_shapes_are_those_of_transformers(family: str) -> None:
    """Every nn.Linear inside a block, with its inputs and outputs; no other."""
    name = FAMILIES[family]
    config = small(name)
    model = ours(name, config)
    told = Counter(
        (linear.name, linear.inputs * linear.outputs)
        for kind, layers in model.runs
        for _ in range(layers)
        for linear in linears(kind, model.family)
    )
    assert told == _built(name, config)


def _built(name: str, config: dict[str, object]) -> Counter[tuple[str, int]]:
    """Linear layers of a model of transformers, by name and weights."""
    found: Counter[tuple[str, int]] = Counter()
    for path, module in theirs(name, config, "meta").named_modules():
        last, depth = path.split(".")[-1], path.count(".")
        plain = isinstance(module, torch.nn.Linear)
        if last.isdigit():  # Gemma 3n's projections of copies, outside blocks
            continue
        if (plain or type(module).__name__ == OF_GPT2) and depth > 1:
            found[last, module.weight.numel()] += last not in ROUTERS
    return +found
