"""The training block: what belongs together, and what is refused."""

import pytest
from pydantic import ValidationError

from planner.specs.training import FreezeSpec, LoraSpec, TrainingSpec

STEP = {"seq_len": 512, "global_batch": 8}


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"lora": {"rank": 8}}, "method full has no adapters"),
        ({"quantization": "nf4"}, "goes with method qlora"),
        ({"method": "lora", "quantization": "int8"}, "goes with method qlora"),
        ({"method": "lora", "quantized_experts": True}, "goes with method qlora"),
        ({"method": "lora", "lora": {"targets": ["q_prj"]}}, "targets"),
        ({"method": "lora", "lora": {"dropout": 1.0}}, "less than 1"),
        ({"method": "qlora", "quantization": "int4"}, "'nf4', 'fp4' or 'int8'"),
        ({"freeze": {"layers": -1}}, "greater than or equal to 0"),
    ],
)
def test_what_the_method_lacks_is_refused(given: dict[str, object], told: str) -> None:
    with pytest.raises(ValidationError, match=told):
        TrainingSpec.model_validate({**STEP, **given})


@pytest.mark.parametrize(
    ("given", "form"),
    [
        ({}, None),
        ({"method": "lora"}, None),
        ({"method": "qlora"}, "nf4"),
        ({"method": "qlora", "quantization": "int8"}, "int8"),
    ],
)
def test_only_qlora_quantises_its_base(
    given: dict[str, object], form: str | None
) -> None:
    assert TrainingSpec.model_validate({**STEP, **given}).weight_format == form


def test_a_block_that_says_nothing_is_legal_with_every_method() -> None:
    """A job that is written out in full can be read again."""
    spec = TrainingSpec.model_validate(STEP)
    assert TrainingSpec.model_validate(spec.model_dump(mode="json")) == spec
    assert (spec.lora, spec.freeze) == (LoraSpec(), FreezeSpec())


@pytest.mark.parametrize("optimizer", ["paged-adamw", "paged-adamw-8bit"])
def test_paged_optimizers_say_so(optimizer: str) -> None:
    spec = TrainingSpec.model_validate({**STEP, "optimizer": optimizer})
    assert spec.paged
    assert not TrainingSpec.model_validate(STEP).paged
