"""Words of earlier releases are read under today's names, or cost nothing."""

import pytest

from planner.errors import BadInputError
from planner.frameworks.accelerate.launch.known import (
    READ,
    UNPRICED,
    earlier,
    keys,
)
from planner.launch.importing import read_texts

TRL = """model_name_or_path: Qwen/Qwen2.5-7B
dataset_name: trl-lib/Capybara
dtype: bfloat16
max_length: 4096
use_liger_kernel: true
per_device_train_batch_size: 2
gradient_accumulation_steps: 8
"""
ACCELERATE = """per_device_train_batch_size: 2
gradient_accumulation_steps: 8
output_dir: out
bf16: true
"""


def renamed(text: str) -> str:
    for old, today in earlier().renamed.items():
        text = text.replace(f"{today}:", f"{old}:")
    return text


def test_a_file_of_an_earlier_release_reads_as_one_of_today() -> None:
    assert renamed(TRL) != TRL
    now, then = (read_texts({"a.yaml": t}, None, "a") for t in (TRL, renamed(TRL)))
    assert then == now
    assert not then.unknown
    assert then.training["seq_len"] == 4096


@pytest.mark.parametrize("name", sorted(earlier().harmless))
@pytest.mark.parametrize("text", [TRL, ACCELERATE])
def test_what_a_release_has_dropped_and_cost_nothing_is_set_aside(
    text: str, name: str
) -> None:
    target = None if text is TRL else "accelerate"
    plain = read_texts({"a.yaml": text}, target, "a")
    read = read_texts({"a.yaml": f"{text}{name}: 1\n"}, target, "a")
    assert read.unknown == plain.unknown
    assert f"{name} 1" in read.ignored
    assert (read.layout, read.training) == (plain.layout, plain.training)


def test_two_names_with_two_values_are_refused() -> None:
    with pytest.raises(BadInputError, match="max_seq_length: is given twice"):
        read_texts({"a.yaml": f"{TRL}max_seq_length: 2048\n"}, None, "a")


def test_no_argument_of_today_is_an_earlier_one() -> None:
    its, today = earlier(), keys().training_arguments | keys().sft_config
    assert not (its.harmless | its.renamed.keys()) & today
    assert not its.harmless & (READ | UNPRICED)
    assert not its.harmless & its.renamed.keys()
