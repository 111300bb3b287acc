"""Formats that contradict each other, and keys of accelerate.yaml without a price."""

import pytest

from planner.errors import BadInputError
from planner.launch.importing import read_texts

TRAINER = "per_device_train_batch_size: 2\nbf16: true\nmax_length: 2048\n"
PLACES = """distributed_type: FSDP
mixed_precision: {mixed}
num_processes: 8
fsdp_config: {{fsdp_version: 1, fsdp_sharding_strategy: FULL_SHARD{more}}}
{last}
"""


def files(
    mixed: str = "bf16", more: str = "", last: str = "", trainer: str = TRAINER
) -> dict[str, str]:
    places = PLACES.format(mixed=mixed, more=more, last=last)
    return {"a.yaml": places, "t.yaml": trainer}


@pytest.mark.parametrize(
    ("mixed", "trainer"),
    [
        ("fp16", TRAINER),
        ("bf16", TRAINER.replace("bf16", "fp16")),
        ("'no'", f"{TRAINER}fp16: true\n"),
    ],
)
def test_two_half_formats_are_refused(mixed: str, trainer: str) -> None:
    with pytest.raises(BadInputError, match="is said beside another format"):
        read_texts(files(mixed, trainer=trainer), "accelerate", "a")


@pytest.mark.parametrize(
    ("more", "last", "name"),
    [
        (
            ", fsdp_auto_wrap_policy: NO_WRAP",
            "",
            "fsdp_config.fsdp_auto_wrap_policy",
        ),
        (
            ", fsdp_backward_prefetch: NO_PREFETCH",
            "",
            "fsdp_config.fsdp_backward_prefetch",
        ),
        (
            "",
            "dynamo_config: {dynamo_backend: INDUCTOR}",
            "dynamo_config.dynamo_backend",
        ),
    ],
)
def test_units_and_compilers_that_are_not_priced_are_told(
    more: str, last: str, name: str
) -> None:
    said = read_texts(files(more=more, last=last), "accelerate", "a").unknown
    assert [each.name for each in said] == [name]


def test_what_is_priced_is_not_told() -> None:
    more = ", fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP"
    more += ", fsdp_backward_prefetch: BACKWARD_PRE"
    assert not read_texts(files(more=more), "accelerate", "a").unknown


@pytest.mark.parametrize(
    ("zero", "field"),
    [
        ('"train_micro_batch_size_per_gpu": 4', "per_device_train_batch_size"),
        ('"gradient_accumulation_steps": 8', "gradient_accumulation_steps"),
    ],
)
def test_two_batches_are_refused_as_transformers_refuses_them(
    zero: str, field: str
) -> None:
    trainer = f"{TRAINER}gradient_accumulation_steps: 2\ndeepspeed: ds.json\n"
    text = '{"zero_optimization": {"stage": 3}, "bf16": {"enabled": true}, %s}'
    own = {"ds.json": text % zero, "t.yaml": trainer}
    with pytest.raises(BadInputError, match=f"{field}: is . as"):
        read_texts(own, "accelerate", "a")
    same = text % '"train_micro_batch_size_per_gpu": "auto"'
    layout = read_texts(own | {"ds.json": same}, "accelerate", "a").layout
    assert layout["micro_batch"] == 2
