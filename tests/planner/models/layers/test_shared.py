"""Blocks whose weights several layers share: held once, run at every one of them."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.errors import BadInputError
from planner.models import ModelConfigError, from_config, preset, read_preset
from planner.models.layers.blocks import Attention, LayerKind, Mlp, SharedBlock
from planner.questions.plan import plan

size = st.integers(1, 64)


@given(size, size, size, size)
def test_a_block_of_an_earlier_layer_costs_work_and_no_weights(
    h: int, heads: int, d: int, f: int
) -> None:
    attention = Attention(h, heads, heads, d, out_bias=True, input_width=2 * h)
    mlp = Mlp(h, f, gated=True, bias=True)
    assert attention.parameters == 2 * h * 3 * heads * d + heads * d * h + h
    for held in (attention, mlp):
        again = replace(held, held=False)
        assert again.parameters == 0
        assert again.matmul_parameters == held.matmul_parameters > 0
        assert again.saved() == held.saved()


@given(size, size, size, st.booleans())
def test_what_is_around_a_shared_block_counts_itself(
    h: int,
    rank: int,
    f: int,
    attends: bool,  # noqa: FBT001  # drawn
) -> None:
    """h^2 + r (h + 2 f) [+ 12 r h], and 3 h of norms where the layer holds it."""
    first = SharedBlock(h, rank, 2 * f, attends)
    own = h * h + rank * (h + 2 * f) + attends * 12 * rank * h
    assert first.matmul_parameters == own
    assert first.parameters == own + 3 * h
    assert replace(first, held=False).parameters == own


def _hybrids(name: str) -> list[LayerKind]:
    runs = preset(name).runs
    return [kind for kind, n in runs for _ in range(n) if kind.name != "mamba"]


def test_the_first_layers_of_zamba_hold_the_blocks_of_all() -> None:
    """Two blocks, 13 layers in turn: each block is held once and priced 13 times."""
    hybrids = _hybrids("zamba2-7b")
    assert [kind.is_shared for kind in hybrids] == [False] * 2 + [True] * 11
    assert len({kind.matmul_parameters for kind in hybrids}) == 1
    first, last = hybrids[0], hybrids[-1]
    block = 7 * 3584 * 7168 + 3 * 3584 * 14336 + 3 * 3584
    assert first.parameters - last.parameters == block


def test_a_first_config_of_zamba_names_its_fields_otherwise() -> None:
    """Letters for layers, ffn_hidden_size, lora_rank, and heads by their width."""
    fields = dict(read_preset("zamba2-2.7b").config)
    words = fields.pop("layers_block_type")
    old = {
        "layers_block_type": ["g" if word == "hybrid" else "m" for word in words],
        "ffn_hidden_size": fields.pop("intermediate_size"),
        "lora_rank": fields.pop("adapter_rank"),
        "state_size": fields.pop("mamba_d_state"),
        "mamba_headdim": 64,
    }
    del fields["n_mamba_heads"]
    assert from_config(fields | old, source="old").runs == preset("zamba2-2.7b").runs


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"layers_block_type": ["mamba"]}, "has 1 entries; num_hidden_layers is 38"),
        ({"layers_block_type": ["moe"] * 38}, "'moe'; allowed: mamba, hybrid"),
        ({"n_mamba_heads": 60}, "n_mamba_heads 60 does not divide 4096"),
        ({"num_key_value_heads": 8}, "num_key_value_heads is 8; adapters"),
    ],
)
def test_a_wrong_field_of_zamba_is_named(
    changed: dict[str, object], problem: str
) -> None:
    fields = read_preset("zamba2-1.2b").config | changed
    with pytest.raises(ModelConfigError, match=re.escape(problem)):
        from_config(fields, source="wrong")


def _job(framework: str, **training: object) -> dict[str, object]:
    return {
        "model": "zamba2-1.2b",
        "cluster": "dgx-h200-8-nodes",
        "training": {"seq_len": 4096, "global_batch": 256, **training},
        "framework": framework,
    }


@pytest.mark.parametrize(("framework", "most"), [("deepspeed", 2), ("accelerate", 0)])
def test_weights_that_layers_share_are_not_sharded(framework: str, most: int) -> None:
    """FSDP has one unit for a weight, and ZeRO-3's gathers at every layer no price."""
    found = plan(_job(framework))
    stages = {one.layout.zero_stage for one in found.plans}
    assert stages
    assert max(stages) <= most


def test_layers_that_share_weights_freeze_in_all_or_in_none() -> None:
    job = _job("accelerate", freeze={"layers": 6})
    with pytest.raises(BadInputError, match="share weights, which freeze in all"):
        plan(job)
