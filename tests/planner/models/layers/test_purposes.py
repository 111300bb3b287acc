"""A saved tensor says which half it is of and what for, under whatever name."""

from dataclasses import dataclass, replace

import pytest

from planner.cost.inference.workspace import layer_bytes
from planner.cost.memory.recompute_modules import kept_share
from planner.frameworks import FRAMEWORKS
from planner.models import load_model, preset_names
from planner.models.layers.blocks import LayerKind
from planner.models.layers.feedforward import Mlp
from planner.models.layers.parts import SavedTensor
from planner.specs.frameworks.framework import Framework

NOVEL = SavedTensor("novel", 7, "tensor")


@dataclass(frozen=True)
class MlpOfOneMore(Mlp):
    """A feed-forward half that keeps a tensor of a name that nobody knows."""

    def saved(self) -> tuple[SavedTensor, ...]:
        return (*super().saved(), NOVEL)


def with_one_more() -> tuple[LayerKind, LayerKind]:
    (kind,) = load_model("llama-2-7b").kinds
    assert isinstance(kind.ffn, Mlp)
    more = MlpOfOneMore(kind.hidden, kind.ffn.ffn, gated=True, bias=False)
    return kind, replace(kind, ffn=more)


@pytest.mark.parametrize("name", preset_names())
def test_the_region_of_a_tensor_is_the_half_that_saves_it(name: str) -> None:
    for kind in load_model(name).kinds:
        regions = {tensor.name: tensor.region for tensor in kind.saved()}
        norms = [t.name for t in kind.saved() if t.kept_for == "norm"]
        assert set(norms) <= {"attention_norm_input", "ffn_norm_input"}
        for half in ("attention", "ffn"):
            own = getattr(kind, half).saved()
            assert {regions[tensor.name] for tensor in own if tensor.width} <= {half}


def test_a_tensor_of_an_unknown_name_counts_in_its_half() -> None:
    """The larger half of a layer is its MLP, so every byte more shows."""
    plain, more = with_one_more()
    assert layer_bytes(more, 100, 2.0) == layer_bytes(plain, 100, 2.0) + 100 * 2 * 7


@pytest.mark.parametrize("framework", FRAMEWORKS, ids=lambda its: its.name)
def test_a_tensor_of_an_unknown_name_is_kept_unless_all_is_recomputed(
    framework: Framework,
) -> None:
    _, more = with_one_more()
    recipe = framework.recipe
    assert kept_share(recipe.kind("none"), more, "novel") == 1.0
    assert kept_share(recipe.kind("full"), more, "novel") == 0.0
