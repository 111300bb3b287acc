"""Parameter counts against what the models' authors published."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from each import each

from planner.models import preset, preset_names, read_preset

_FILE = Path(__file__).parents[2] / "golden" / "models.yaml"
GOLDEN: list[dict[str, Any]] = yaml.safe_load(_FILE.read_text("utf-8"))
MOE = [row for row in GOLDEN if "published_active" in row]


def _name(row: dict[str, Any]) -> str:
    return str(row["name"])


@each("row", GOLDEN)
def test_parameters_are_as_published(row: dict[str, Any]) -> None:
    """The count lies within half of the last digit that the source prints."""
    assert abs(preset(row["name"]).parameters - row["published"]) <= row["within"]


@pytest.mark.parametrize("row", MOE, ids=_name)
def test_active_parameters_are_as_published(row: dict[str, Any]) -> None:
    """A token meets as many parameters as the source says."""
    active = preset(row["name"]).active_parameters
    assert abs(active - row["published_active"]) <= row["active_within"]


def test_every_preset_is_in_the_golden_file_with_its_published_count() -> None:
    golden = {row["name"]: row["published"] for row in GOLDEN}
    presets = {name: read_preset(name).published_parameters for name in preset_names()}
    assert golden == presets


@pytest.mark.parametrize(
    ("name", "billions"),
    [
        ("gpt3-175b", 174.604),
        ("megatron-gpt-175b", 174.616),
        ("deepseek-v3", 671.026),
    ],
)
def test_parameters_to_the_million(name: str, billions: float) -> None:
    """GPT-3 with 50257 and with 51200 words; DeepSeek-V3 without MTP."""
    assert preset(name).parameters / 1e9 == pytest.approx(billions, abs=5e-4)


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("gpt2", 124_439_808),
        ("llama-3.2-1b", 1_235_814_400),
        ("mistral-7b", 7_241_732_096),
    ],
)
def test_tied_positional_and_windowed_models_exactly(name: str, count: int) -> None:
    """Pins to the last parameter, where the golden count is rounded."""
    assert preset(name).parameters == count


def test_deepseek_v3_activates_37_55_billion() -> None:
    active = preset("deepseek-v3").active_parameters
    assert active / 1e9 == pytest.approx(37.55, abs=5e-3)


def test_latent_attention_of_deepseek_v3() -> None:
    """One layer's MLA holds 187 107 328 parameters."""
    attention = preset("deepseek-v3").kinds[0].attention
    assert attention.parameters == 187_107_328


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("llama-3-8b", 218_112_000),
        ("llama-3-70b", 855_654_400),
        ("llama-3.1-405b", 3_187_703_808),
    ],
)
def test_parameters_of_one_llama_layer(name: str, count: int) -> None:
    assert preset(name).kinds[0].parameters == count


@pytest.mark.parametrize("name", [n for n in preset_names() if "megatron" in n])
def test_gpt_follows_narayanan_equation_2(name: str) -> None:
    """P = 12 L h^2 (1 + 13 / (12 h) + (V + s) / (12 L h)), plus 2 h of final norm."""
    model = preset(name)
    L, h, V, s = model.layers, model.hidden, model.vocab, model.learned_positions
    equation = 12 * L * h * h + 13 * L * h + (V + s) * h
    assert model.parameters == equation + 2 * h


def test_mtp_of_deepseek_v3_is_outside_the_published_count() -> None:
    """One MTP module: a MoE layer, a 2h x h projection and three norms of h."""
    model = preset("deepseek-v3")
    moe = model.kinds[1]
    h = model.hidden
    assert model.mtp_parameters == moe.parameters + 2 * h * h + 3 * h
    assert model.trained_parameters == model.parameters + model.mtp_parameters


def test_deepseek_v3_runs_three_dense_layers_then_58_of_experts() -> None:
    runs = [(kind.name, count) for kind, count in preset("deepseek-v3").runs]
    assert runs == [("dense", 3), ("moe", 58)]


@each("name", preset_names())
def test_parts_sum_to_the_whole(name: str) -> None:
    """Three classes of parameters, and layers plus outside, each make the total."""
    model = preset(name)
    classes = (
        model.sharded_parameters,
        model.replicated_parameters,
        model.expert_parameters,
    )
    layers = sum(kind.parameters * count for kind, count in model.runs)
    outside = (
        model.embedding_parameters + model.head_parameters + model.final_norm_parameters
    )
    assert model.parameters == sum(classes) == layers + outside
