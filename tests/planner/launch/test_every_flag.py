"""Every flag of a launch file is read, told, or known to cost nothing."""

import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml
from each import each
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.errors import BadInputError
from planner.frameworks.accelerate.launch.known import (
    OF_SCRIPTS,
    READ,
    UNPRICED,
    keys,
)
from planner.frameworks.megatron.launch.known import VERSIONS, declared, is_harmless
from planner.launch.brief import Reading
from planner.launch.importing import UserOverrides, import_spec, read_launch, read_texts
from planner.launch.sizes import (
    HUGGING_FACE,
    refuse_other_model,
    sizes_of,
)
from planner.launch.targets.accelerate.reader import read as read_accelerate
from planner.launch.targets.deepspeed.reader import read as read_deepspeed
from planner.launch.targets.megatron.reader import READ as MEGATRON_READS
from planner.launch.targets.megatron.reader import read as read_megatron
from planner.launch.targets.megatron.variables import option_of
from planner.models import preset, preset_names, read_preset

ZERO = '{"zero_optimization": {"stage": 2}, "train_micro_batch_size_per_gpu": "auto"}'
PLACES = "distributed_type: MULTI_GPU\nnum_processes: 8\nmixed_precision: 'no'\n"
BASE: dict[str, Any] = {"per_device_train_batch_size": 2}
ARGUMENTS = sorted(keys().training_arguments | keys().sft_config | OF_SCRIPTS)
VALUES: dict[str, Any] = {
    "block_size": 512,
    "per_device_train_batch_size": 3,
    "gradient_accumulation_steps": 5,
    "optim": "adafactor",
    "optim_args": "momentum=0.9",
    "fsdp": "full_shard",
    "attn_implementation": "eager",
    "lora_r": 7,
    "lora_dropout": 0.3,
    "lora_target_modules": "q_proj",
    "bnb_4bit_quant_type": "fp4",
    **dict.fromkeys(("max_length", "max_seq_length", "cutoff_len"), 768),
    "model_max_length": 768,
    "packing_strategy": "wrapped",
    "pad_to_multiple_of": 768,
}
"""A value of each argument that is no switch."""
TOGETHER = {
    "optim_args": {"optim": "sgd"},
    "packing_strategy": {"packing": True},
    "pad_to_multiple_of": {"packing": False, "max_length": 768},
    "load_in_4bit": {"use_peft": True},
    "load_in_8bit": {"use_peft": True},
    "use_dora": {"use_peft": True},
    "use_rslora": {"use_peft": True},
    "bnb_4bit_quant_type": {"use_peft": True, "load_in_4bit": True},
    "use_bnb_nested_quant": {"use_peft": True, "load_in_4bit": True},
    **{n: {"use_peft": True} for n in OF_SCRIPTS if n.startswith("lora_")},
}
"""What an argument needs beside it to mean anything."""
INERT = {"lora_alpha", "liger_kernel_config", "accelerator_config", "fsdp_config"}
"""Read with another argument, or a scale that costs nothing."""


def script(given: dict[str, Any], program: str) -> str:
    words = [f"--{name} {shlex.quote(str(value))}" for name, value in given.items()]
    return " \\\n  ".join([program, *words]) + "\n"


def by_deepspeed(given: dict[str, Any], *, as_script: bool) -> Reading:
    files = {"ds_config.json": ZERO}
    if as_script:
        files["run.sh"] = script(given, "deepspeed --num_gpus 8 train.py")
    else:
        files |= {"args.yaml": yaml.safe_dump(given), "hostfile": "a slots=8\n"}
    return read_deepspeed(files)


def by_accelerate(given: dict[str, Any], *, as_script: bool) -> Reading:
    files = {"accelerate.yaml": PLACES}
    if as_script:
        start = "accelerate launch --config_file accelerate.yaml train.py"
        files["run.sh"] = script(given, start)
    else:
        files["args.yaml"] = yaml.safe_dump(given)
    return read_accelerate(files)


def price(reading: Reading) -> tuple[Any, ...]:
    parts = (reading.layout, reading.training, reading.stack)
    return *(dict(part) for part in parts), reading.gpus


def told(reading: Reading) -> tuple[str, ...]:
    return tuple(map(str, reading.unknown))


def said(reading: Reading, name: str) -> bool:
    return any(name in word for word in (*told(reading), *reading.ignored))


READERS = {"deepspeed": by_deepspeed, "accelerate": by_accelerate}


@each("reader", READERS)
@each("name", ARGUMENTS)
def test_no_argument_of_trainer_is_dropped(reader: str, name: str) -> None:
    """By script or by file the same; read, or told, or listed as costing nothing."""
    read = READERS[reader]
    base = BASE | TOGETHER.get(name, {})
    given = base | {name: VALUES.get(name, True)}
    found = read(given, as_script=True)
    assert price(found) == price(read(given, as_script=False))
    plain = read(base, as_script=True)
    changed = price(found) != price(plain)
    named = any(name in word for word in told(found))
    assert changed or said(found, name) or name in READ, name
    if name in UNPRICED:
        assert named, name
    if reader == "accelerate" and name in READ - INERT - {"deepspeed", "tf32"}:
        assert changed or named, name


@pytest.mark.parametrize("reader", READERS)
@given(chosen=st.sets(st.sampled_from(sorted(READ - {"deepspeed"})), max_size=6))
@settings(max_examples=examples(25), deadline=None)
def test_flags_of_a_script_are_those_of_a_file(reader: str, chosen: set[str]) -> None:
    given = dict(BASE)
    for name in sorted(chosen):
        given |= TOGETHER.get(name, {}) | {name: VALUES.get(name, True)}
    read = READERS[reader]
    try:
        by_file = read(given, as_script=False)
    except BadInputError:
        with pytest.raises(BadInputError):
            read(given, as_script=True)
        return
    assert price(read(given, as_script=True)) == price(by_file)


def test_recompute_of_a_script_beside_deepspeed_is_read() -> None:
    given = {"bf16": True, "gradient_checkpointing": True, "model_max_length": 2048}
    found = by_deepspeed(BASE | given, as_script=True)
    assert found.layout["recompute"] == "full"
    assert found.layout["micro_batch"] == 2
    assert found.training["precision"] == "bf16"
    assert found.training["seq_len"] == 2048
    assert found.training["global_batch"] == 16


@pytest.mark.parametrize("reader", READERS)
def test_an_option_that_nobody_knows_is_told(reader: str) -> None:
    found = READERS[reader](BASE | {"use_magic": True}, as_script=True)
    assert any("use_magic" in word for word in told(found))


QLORA = """
model_name_or_path: mistralai/Mistral-7B-v0.1
torch_dtype: bfloat16
attn_implementation: flash_attention_2
load_in_4bit: true
use_peft: true
lora_r: 16
lora_target_modules: [q_proj, v_proj]
bf16: true
gradient_accumulation_steps: 2
gradient_checkpointing: true
max_seq_length: 2048
per_device_train_batch_size: 4
"""


def test_weights_in_4_bits_beside_adapters_are_qlora() -> None:
    """The alignment handbook's config_qlora.yaml of zephyr-7b-sft, by its keys."""
    found = read_accelerate({"config_qlora.yaml": QLORA, "a.yaml": PLACES})
    assert found.training["method"] == "qlora"
    assert found.training["quantization"] == "nf4"
    assert found.training["double_quantization"] is False
    lora = found.training["lora"]
    assert (lora["rank"], lora["targets"]) == (16, ["q_proj", "v_proj"])


def test_weights_in_4_bits_that_train_are_refused() -> None:
    text = QLORA.replace("use_peft: true\n", "")
    with pytest.raises(BadInputError, match="load_in_4bit"):
        read_accelerate({"c.yaml": text, "a.yaml": PLACES})


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
def test_every_argument_of_megatron_is_read_told_or_harmless(version: str) -> None:
    base = ["--num-layers 8", "--hidden-size 512", "--micro-batch-size 2"]
    plain = read_megatron({"a.sh": " ".join(["run", *base])})
    for option, one in declared(version).items():
        if f"{option} " in " ".join(base):
            continue
        values = one["choices"] or ["2"]
        count = {None: 1, "+": 1, "*": 1}.get(one["nargs"], one["nargs"])
        words = " ".join([option, *([str(values[-1])] * count)])
        try:
            found = read_megatron({"a.sh": " ".join(["run", *base, words])})
        except BadInputError as error:
            assert option in str(error)  # noqa: PT017
            continue
        every = (declared(v)[option]["dest"] for v in VERSIONS if option in declared(v))
        dests = set(every)
        spelled = {option, *(option_of(name) for name in dests)}
        settings = (*(its.setting for its in found.unknown), *found.ignored)
        listed = any(word.split()[0] in spelled for word in settings)
        assert listed or price(found) != price(plain) or dests & MEGATRON_READS, option
        harmless = is_harmless(one["dest"], "no such value")
        if not harmless and not dests & MEGATRON_READS:
            assert listed, option


MEGATRON = (
    "torchrun --nproc_per_node 8 --nnodes 2 pretrain_gpt.py --num-layers 80 \\\n"
    "  --hidden-size 8192 --num-attention-heads 64 --seq-length 4096 --bf16 \\\n"
    "  --position-embedding-type rope \\\n"
    "  --tensor-model-parallel-size 8 --data-path $DATA --train-iters $STEPS"
)
NODES = UserOverrides(model="llama-2-70b", node="dgx-h100", nodes=4)


@pytest.mark.parametrize(
    ("option", "names"),
    [
        ("--micro-batch-size $MBS", ["MBS"]),
        ("--micro-batch-size ${MBS}", ["MBS"]),
        ("--global-batch-size $((MBS * DP))", []),
        ("--pipeline-model-parallel-size=$PP", ["PP"]),
    ],
)
def test_a_variable_that_decides_is_named_with_what_fills_it(
    option: str, names: list[str]
) -> None:
    with pytest.raises(BadInputError) as raised:
        read_texts({"run.sh": f"{MEGATRON} {option}\n"}, "megatron", "run.sh")
    assert option.split("=", maxsplit=1)[0].split(maxsplit=1)[0] in str(raised.value)
    for name in names:
        assert f"--env {name}=VALUE" in str(raised.value)


def test_a_variable_of_the_command_line_fills_a_script(tmp_path: Path) -> None:
    file = tmp_path / "run.sh"
    file.write_text(
        f"{MEGATRON} --micro-batch-size ${{MBS:-4}} --global-batch-size $((MBS * 64))\n"
    )
    found = read_launch([file], "megatron", {"MBS": "2"})
    assert found.layout["micro_batch"] == 2
    assert found.training["global_batch"] == 128
    assert not any("DATA" in word or "STEPS" in word for word in told(found))


@pytest.mark.parametrize("reader", READERS)
def test_a_variable_of_trainer_is_named(reader: str) -> None:
    with pytest.raises(BadInputError, match="--env BATCH=VALUE"):
        READERS[reader]({"per_device_train_batch_size": "$BATCH"}, as_script=True)


def test_a_layout_escaped_for_a_shell_is_that_layout() -> None:
    found = []
    for layout in ("'Et*4|t*4L'", '"Et*4\\|t*4L"', "Et\\*4\\|t\\*4L", '"Et*4|t*4L"'):
        text = (
            "run --num-layers 8 --micro-batch-size 1 --pipeline-model-parallel-size 2 "
            f"--pipeline-model-parallel-layout {layout}\n"
        )
        found.append(read_megatron({"a.sh": text}).layout)
    assert all(layout == found[1] for layout in found)


@pytest.mark.parametrize("steps", [1, 4])
def test_a_batch_follows_from_its_parts(steps: int) -> None:
    given = BASE | {"gradient_accumulation_steps": steps, "bf16": True}
    text = {"args.yaml": yaml.safe_dump(given | {"max_length": 2048})}
    reading = read_texts(text, "accelerate", "args.yaml")
    told = UserOverrides(model="llama-2-7b", node="dgx-h100", nodes=4)
    fields = import_spec(reading, told, ())
    assert fields["training"]["global_batch"] == 2 * steps * 32
    said_so = import_spec(reading, told, ("training.global_batch=512",))
    assert said_so["training"]["global_batch"] == 512


def test_megatron_takes_one_micro_batch_where_no_batch_is_given() -> None:
    text = f"{MEGATRON.replace('--train-iters $STEPS', '')} --micro-batch-size 2\n"
    fields = import_spec(read_texts({"run.sh": text}, "megatron", ""), NODES, ())
    assert fields["training"]["global_batch"] == 2 * 16 // 8


WHOLE = (
    "torchrun pretrain_gpt.py --num-layers 32 --hidden-size 4096 --swiglu "
    "--ffn-hidden-size 14336 --num-attention-heads 32 --normalization RMSNorm "
    "--disable-bias-linear --position-embedding-type rope --seq-length 4096 "
    "--micro-batch-size 1 --global-batch-size 64 --bf16 "
)


def test_a_model_without_its_vocabulary_asks_for_that_alone() -> None:
    told = UserOverrides(node="dgx-h100", nodes=4)
    reading = read_texts({"run.sh": WHOLE}, "megatron", "run.sh")
    with pytest.raises(BadInputError) as raised:
        import_spec(reading, told, ())
    assert "do not say the vocabulary (--set model.vocab_size=N" in str(raised.value)
    assert "nor" not in str(raised.value)
    fields = import_spec(reading, told, ("model.vocab_size=128256",))
    assert fields["model"]["num_hidden_layers"] == 32
    padded = read_texts({"run.sh": WHOLE + "--padded-vocab-size 512"}, "megatron", "")
    assert import_spec(padded, told, ())["model"]["vocab_size"] == 512


def test_another_model_than_that_of_the_files_is_refused() -> None:
    text = f"{MEGATRON} --micro-batch-size 1 --global-batch-size 8\n"
    reading = read_texts({"run.sh": text}, "megatron", "run.sh")
    assert import_spec(reading, NODES, ())["model"] == "llama-2-70b"
    told = UserOverrides(model="llama-2-7b", node="dgx-h100", nodes=4)
    with pytest.raises(BadInputError) as raised:
        import_spec(reading, told, ())
    for part in ("run.sh", "--num-layers", "80", "32", "llama-2-7b"):
        assert part in str(raised.value)


@given(
    mine=st.sampled_from(sorted(preset_names())),
    other=st.sampled_from(sorted(preset_names())),
)
@settings(max_examples=examples(40), deadline=None)
def test_only_the_model_of_a_config_passes(mine: str, other: str) -> None:
    sizes = sizes_of(read_preset(mine).config, HUGGING_FACE, file="config.json")
    refuse_other_model(sizes, preset(mine), mine)
    differs = (preset(mine).layers, preset(mine).hidden) != (
        preset(other).layers,
        preset(other).hidden,
    )
    assert sizes
    if differs:
        with pytest.raises(BadInputError, match=r"config\.json"):
            refuse_other_model(sizes, preset(other), other)
