"""Attention of every family is what transformers' own classes say."""

import pytest
from hugging_face import NAMES, transformers

from planner.frameworks.transformers import implementations
from planner.models import preset

pytestmark = pytest.mark.oracle
FAMILIES = sorted({preset(name).family for name in NAMES})


@pytest.mark.parametrize("family", FAMILIES)
def test_attention_is_what_the_class_supports(family: str) -> None:
    auto = transformers.models.auto
    config = auto.configuration_auto.CONFIG_MAPPING[family]
    kind = transformers.MODEL_FOR_CAUSAL_LM_MAPPING[config]
    others = kind._compatible_flash_implementations or ()
    flash = kind._supports_flash_attn and not others
    able = {"sdpa": kind._supports_sdpa, "flash_attention_2": flash, "eager": True}
    able |= {"flash_attention_3": flash}
    its_own = kind._supports_flash_attn and others[:1]
    expected = tuple(word for word, has in able.items() if has)
    assert implementations(family) == (*expected, *(its_own or ()))
