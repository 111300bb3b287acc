"""Linear layers under the names of transformers: shapes, and adapters on them."""

import pytest
from each import each

from planner.models import preset, preset_names
from planner.models.layers.linears import linear_names, linears, split_widths
from planner.models.registry import FAMILIES

NO_LINEAR = ("router", "expert", "hyper", "adapter")
"""Products whose weights are parameters and no linear layers. [text]"""


@pytest.mark.parametrize(
    ("model", "rank", "names", "trainable"),
    [
        ("llama-2-7b", 8, ("q_proj", "v_proj"), 4_194_304),
        ("llama-3-8b", 16, ("q_proj", "k_proj", "v_proj", "o_proj"), 13_631_488),
        ("llama-3-8b", 16, linear_names("llama"), 41_943_040),
        ("llama-3-8b", 64, linear_names("llama"), 167_772_160),
        ("mistral-7b", 8, ("q_proj", "v_proj"), 3_407_872),
        ("gpt2", 8, ("c_attn",), 294_912),
        ("bloom-7.1b", 8, ("query_key_value",), 3_932_160),
        ("falcon-7b", 8, ("query_key_value",), 2_359_296),
        ("opt-6.7b", 16, ("q_proj", "v_proj"), 8_388_608),
    ],
)
def test_adapters_have_the_parameters_that_peft_prints(
    model: str, rank: int, names: tuple[str, ...], trainable: int
) -> None:
    """``print_trainable_parameters`` of peft's examples: rank (i + o) each."""
    known = preset(model)
    counted = sum(
        layers * rank * (linear.inputs + linear.outputs)
        for kind, layers in known.runs
        for linear in linears(kind, known.family)
        if linear.name in names
    )
    assert counted == trainable


def test_every_family_has_its_names() -> None:
    assert all(linear_names(family.family) for family in FAMILIES)


@each("name", preset_names())
def test_linear_layers_are_the_gemms_apart(name: str) -> None:
    """Names stand for all weights of a block but routers' and routed experts'."""
    model = preset(name)
    for kind in model.kinds:
        named = sum(linear.weights for linear in linears(kind, model.family))
        weights = sum(
            gemm.weights for gemm in kind.gemms() if not gemm.name.startswith(NO_LINEAR)
        )
        grouped = model.family in {"dbrx", "mixtral", "gpt_oss", "grok-1"}
        assert named == weights or (grouped and named < weights)
        for gemm in kind.gemms():
            assert sum(split_widths(kind)[gemm.name]) == gemm.outputs


def test_a_plain_mlp_has_no_gate() -> None:
    model = preset("gpt2")
    names = [linear.name for linear in linears(model.kinds[0], model.family)]
    assert names == ["c_attn", "c_proj", "c_proj", "c_fc"]
