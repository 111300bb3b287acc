"""A config.json as transformers saves it reads as the preset it was made from."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hugging_face import NAMES, described

from planner.models import load_model, preset

pytestmark = pytest.mark.oracle


@pytest.mark.parametrize("name", NAMES)
def test_saved_config_is_read_back(name: str, tmp_path: Path) -> None:
    """None of the many foreign keys is taken for a misspelt field."""
    described(name).save_pretrained(tmp_path)
    read = load_model(str(tmp_path))
    expected = preset(name)
    assert replace(read, name=name, source=expected.source) == expected


@pytest.mark.parametrize("name", ["gemma-3-27b", "llama-4-scout", "mistral-small-24b"])
def test_text_part_of_a_multi_modal_config_is_read(name: str, tmp_path: Path) -> None:
    """Vision models nest the fields of their text part under text_config."""
    text = described(name).to_dict()
    whole = {"architectures": ["AnyForConditionalGeneration"], "text_config": text}
    (tmp_path / "config.json").write_text(json.dumps(whole))
    assert load_model(str(tmp_path)).runs == preset(name).runs
