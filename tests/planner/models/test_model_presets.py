"""Presets and files: what is found by name, by path, and what is said if it is not."""

import json
from pathlib import Path

import pytest
from each import each

from planner.hardware.reading import shipped as shipping
from planner.models import (
    ModelConfigError,
    dense_names,
    load_model,
    preset,
    preset_names,
    presets,
    read_preset,
)

CONFIGS = Path(__file__).parents[3] / "configs" / "models"
SCHEMA = "# yaml-language-server: $schema=../schema/model.json"
EXPECTED = """
deepseek-v2 deepseek-v3 gpt2 gpt2-xl gpt3-175b llama-2-13b llama-2-70b llama-2-7b
llama-3-70b llama-3-8b llama-3.1-405b llama-3.1-70b llama-3.1-8b llama-3.2-1b
llama-3.2-3b megatron-gpt-1.7b megatron-gpt-145b megatron-gpt-175b megatron-gpt-18b
megatron-gpt-1t megatron-gpt-22b megatron-gpt-3.6b megatron-gpt-310b megatron-gpt-39b
megatron-gpt-530b megatron-gpt-7.5b megatron-gpt-76b mistral-7b mixtral-8x22b
mixtral-8x7b
"""


def test_presets_are_these() -> None:
    assert set(EXPECTED.split()) <= set(preset_names())


@each("name", preset_names())
def test_preset_file_has_a_schema_line_and_its_source_reaches_the_model(
    name: str,
) -> None:
    assert (CONFIGS / f"{name}.yaml").read_text("utf-8").splitlines()[0] == SCHEMA
    assert preset(name).source == read_preset(name).source
    assert preset(name).name == name


def test_dense_models_are_plain_ones_by_size() -> None:
    """No experts, few kinds of layers, and positions enough for the task."""
    names = dense_names(8192)
    sizes = [preset(name).parameters for name in names]
    assert sizes == sorted(sizes)
    assert {"gemma-3-27b", "llama-3-70b", "llama-3.1-405b"} <= set(names)
    others = {"llama-3.3-nemotron-super-49b", "nemotron-h-8b", "mixtral-8x7b"}
    assert others <= set(preset_names())
    short = {"llama-2-70b"}
    assert not (others | short) & set(names)


def test_unknown_preset_names_the_nearest() -> None:
    with pytest.raises(ModelConfigError, match=r"'Llama-3\.1-405'.*llama-3\.1-405b"):
        preset("Llama-3.1-405")


def test_a_name_like_nothing_lists_some_and_says_where_all_are() -> None:
    with pytest.raises(ModelConfigError, match=r"known: bloom.*, dbrx.*catalog models"):
        preset("zzz")


def test_a_preset_name_is_no_path() -> None:
    with pytest.raises(ModelConfigError, match="no model is named"):
        preset("../models/gpt2")


def test_malformed_preset_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A preset without a source is an error that names file and field."""
    folder = tmp_path / "shipped" / "configs" / "models"
    folder.mkdir(parents=True)
    (folder / "odd.yaml").write_text("published_parameters: 1\nconfig: {}\n")
    monkeypatch.setattr(shipping, "_PACKAGE", tmp_path)
    with pytest.raises(ModelConfigError, match=r"odd\.yaml(.|\n)*source"):
        preset("odd")


def test_wheel_folder_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Inside the package first, then beside it."""
    package = tmp_path / "planner"
    (tmp_path / "configs" / "models").mkdir(parents=True)
    package.mkdir()
    monkeypatch.setattr(shipping, "_PACKAGE", package)
    assert presets._directory() == tmp_path / "configs" / "models"
    inside = package / "shipped" / "configs" / "models"
    inside.mkdir(parents=True)
    assert presets._directory() == inside


def _write(folder: Path) -> Path:
    file = folder / "config.json"
    file.write_text(json.dumps(read_preset("llama-3-8b").config))
    return file


def test_preset_name_file_and_folder_load_the_same_counts(tmp_path: Path) -> None:
    file = _write(tmp_path)
    expected = preset("llama-3-8b").runs
    assert load_model("llama-3-8b").runs == expected
    assert load_model(str(file)).runs == expected
    assert load_model(str(tmp_path)).runs == expected


def test_model_from_a_file_is_named_after_its_folder(tmp_path: Path) -> None:
    file = _write(tmp_path)
    model = load_model(str(tmp_path))
    assert model.name == tmp_path.name
    assert model.source == str(file)


def test_relative_path_starts_at_the_base(tmp_path: Path) -> None:
    _write(tmp_path)
    assert load_model("config.json", tmp_path).layers == 32


def test_reference_that_is_nothing(tmp_path: Path) -> None:
    with pytest.raises(ModelConfigError, match=r"neither a preset nor a file.*gpt2"):
        load_model("gpt22", tmp_path)


def test_folder_without_config_json(tmp_path: Path) -> None:
    with pytest.raises(ModelConfigError, match=r"config\.json does not exist"):
        load_model(str(tmp_path))


def test_broken_json(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"a": ')
    with pytest.raises(ModelConfigError, match="is no JSON"):
        load_model(str(tmp_path))


def test_json_that_is_no_object(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("[1]")
    with pytest.raises(ModelConfigError, match="holds a list"):
        load_model(str(tmp_path))
