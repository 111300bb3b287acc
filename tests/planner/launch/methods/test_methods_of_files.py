"""A run is priced by the method that its tool trains with, or the method is named."""

import re
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from planner.errors import BadInputError
from planner.launch.brief import Reading
from planner.launch.importing import UserOverrides, read_texts, settled
from planner.launch.methods.table import table
from planner.launch.registry import TARGETS

TITLES = {name: method.title for name, method in table().methods.items()}
TRAINER = {
    "model_name_or_path": "meta-llama/Meta-Llama-3-8B",
    "per_device_train_batch_size": 2,
    "gradient_accumulation_steps": 4,
    "bf16": True,
    "max_length": 1024,
}
FACTORY = {
    "model_name_or_path": "meta-llama/Meta-Llama-3-8B",
    "finetuning_type": "lora",
    "lora_target": "all",
    "cutoff_len": 1024,
    "per_device_train_batch_size": 2,
    "gradient_accumulation_steps": 4,
    "bf16": True,
}
AXOLOTL = {
    "base_model": "meta-llama/Meta-Llama-3-8B",
    "sequence_len": 1024,
    "micro_batch_size": 2,
    "gradient_accumulation_steps": 4,
    "optimizer": "adamw_torch",
    "bf16": True,
    "adapter": "lora",
    "lora_r": 8,
    "lora_alpha": 16,
    "lora_dropout": 0.0,
    "lora_target_linear": True,
    "datasets": [{"path": "mine"}],
    "learning_rate": 1e-4,
}
TUNE = {
    "model": {
        "_component_": "torchtune.models.llama3_1.lora_llama3_1_8b",
        "lora_attn_modules": ["q_proj", "v_proj"],
        "lora_rank": 8,
    },
    "tokenizer": {"max_seq_len": 1024},
    "batch_size": 2,
    "gradient_accumulation_steps": 4,
    "optimizer": {"_component_": "torch.optim.AdamW"},
    "dtype": "bf16",
    "fsdp_cpu_offload": False,
}
SAID: dict[str, dict[str, dict[str, Any]]] = {
    "llamafactory": {
        "sft": {"stage": "sft"},
        "dpo": {"stage": "dpo"},
        "kto": {"stage": "kto"},
        "orpo": {"stage": "dpo", "pref_loss": "orpo"},
        "simpo": {"stage": "dpo", "pref_loss": "simpo"},
        "ppo": {"stage": "ppo"},
        "reward": {"stage": "rm"},
    },
    "axolotl": {
        "sft": {},
        "dpo": {"rl": "dpo"},
        "kto": {"rl": "kto"},
        "orpo": {"rl": "orpo"},
        "simpo": {"rl": "simpo"},
        "grpo": {"rl": "grpo"},
        "reward": {"reward_model": True},
        "qat": {"qat": {"weight_dtype": "int4"}},
        "distillation": {"plugins": ["axolotl.integrations.kd.KDPlugin"]},
    },
}
"""Settings of a tool that say a method, by method."""
OF_TRL = ("sft", "dpo", "kto", "orpo", "cpo", "grpo", "rloo", "reward")
RECIPES = {
    "lora_finetune_distributed": "sft",
    "lora_dpo_distributed": "dpo",
    "knowledge_distillation_distributed": "distillation",
    "qat_distributed": "qat",
    "ppo_full_finetune_single_device": "ppo",
    "dev/grpo_full_finetune_distributed": "grpo",
}
BASES = {"llamafactory": FACTORY, "axolotl": AXOLOTL}
PROGRAMS = {
    "llamafactory": ("llamafactory-cli train", "python src/train.py"),
    "axolotl": ("axolotl train", "accelerate launch -m axolotl.cli.train"),
}
FORMS = ("file", "changed", "arguments")


def options(given: dict[str, Any], form: str = "--{}={}") -> str:
    return " ".join(
        form.format(name, yaml.safe_dump(value, default_flow_style=True).split("\n")[0])
        for name, value in given.items()
    )


def files_of(
    tool: str, said: dict[str, Any], form: str, program: str
) -> dict[str, str]:
    """Files that say settings in a YAML, in words beside it, or in words alone."""
    base = BASES[tool]
    if form == "file":
        return {"x.yaml": yaml.safe_dump({**base, **said})}
    word = "{}={}" if tool == "llamafactory" else "--{}={}"
    if form == "changed" or tool == "axolotl":
        plain = {n: v for n, v in said.items() if not isinstance(v, dict | list)}
        rest = {n: v for n, v in said.items() if n not in plain}
        return {
            "x.yaml": yaml.safe_dump({**base, **rest}),
            "run.sh": f"{program} x.yaml {options(plain, word)}\n",
        }
    return {"run.sh": f"{program} {options({**base, **said})}\n"}


def outcome(files: dict[str, str], ignore: tuple[str, ...] = ()) -> Reading | str:
    """Reading of files, or what refuses them."""
    try:
        reading = read_texts(files, None, "the files")
        named = {its.name for its in reading.unknown}
        aside = tuple(name for name in ignore if name in named)
        return settled(reading, UserOverrides(ignore=aside, model="llama-3-8b"))
    except BadInputError as error:
        return str(error)


def check(files: dict[str, str], method: str, ignore: tuple[str, ...] = ()) -> None:
    found, its = outcome(files, ignore), table().methods[method]
    if its.why:
        assert isinstance(found, str), (method, found)
        assert its.title in found
        return
    assert isinstance(found, Reading), found
    micro = 4 if its.pairs else 2
    assert ("reference" in found.training, found.layout["micro_batch"]) == (
        its.pairs,
        micro,
    )


@given(data=st.data())
def test_a_method_is_read_or_named(data: st.DataObject) -> None:
    tool = data.draw(st.sampled_from(sorted(SAID)))
    method = data.draw(st.sampled_from(sorted(SAID[tool])))
    form = data.draw(st.sampled_from(FORMS))
    program = data.draw(st.sampled_from(PROGRAMS[tool]))
    said = SAID[tool][method]
    ignore = tuple(said) if data.draw(st.booleans()) else ()
    check(files_of(tool, said, form, program), method, ignore)


@given(data=st.data())
def test_a_program_of_trl_says_the_method(data: st.DataObject) -> None:
    method = data.draw(st.sampled_from(OF_TRL))
    program = data.draw(
        st.sampled_from(
            [
                f"trl {method}",
                f"python -m trl.scripts.{method}",
                f"accelerate launch --num_processes 8 scripts/run_{method}.py",
                f"python {method}.py",
            ]
        )
    )
    preference = {"beta": 0.1} if method in ("dpo", "kto", "orpo", "cpo") else {}
    if data.draw(st.booleans()):
        files = {"run.sh": f"{program} {options(TRAINER | preference, '--{} {}')}\n"}
    else:
        given = TRAINER | preference | {"dtype": "bfloat16", "dataset_name": "a/b"}
        files = {
            "x.yaml": yaml.safe_dump(given),
            "run.sh": f"{program} --config x.yaml",
        }
    check(files, method, ("beta", "num_generations"))


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("changed", ["", " gradient_accumulation_steps=4"])
def test_a_recipe_of_torchtune_says_the_method(recipe: str, changed: str) -> None:
    run = f"tune run --nproc-per-node 8 {recipe} --config x.yaml{changed}\n"
    check({"x.yaml": yaml.safe_dump(TUNE), "run.sh": run}, RECIPES[recipe])


@pytest.mark.parametrize(
    ("word", "method"),
    [
        ("beta: 0.1", ""),
        ("max_prompt_length: 512", ""),
        ("loss_type: kto", "kto"),
        ("num_generations: 8", "grpo"),
        ("loss_type: [robust, sft]\nbeta: 0.1", "dpo"),
        ("loss_type: sigmoid\nloss_weights: [1.0]", "dpo"),
    ],
)
def test_arguments_that_several_trainers_have_say_no_method(
    word: str, method: str
) -> None:
    text = yaml.safe_dump(TRAINER | {"dataset_name": "a/b"}) + word + "\n"
    if method:
        check({"x.yaml": text}, method)
    else:
        found = outcome({"x.yaml": text}, (word.partition(":")[0],))
        assert "DPO" in str(found)
        assert "KTO" in str(found)
        assert "no file says which" in str(found)


def test_two_methods_at_once_are_refused() -> None:
    text = yaml.safe_dump(AXOLOTL | {"rl": "dpo", "reward_model": True})
    assert "and rl of DPO" in str(outcome({"x.yaml": text}))


def test_an_unknown_stage_is_no_method() -> None:
    found = outcome({"x.yaml": yaml.safe_dump(FACTORY | {"stage": "sfft"})}, ("stage",))
    assert "stage: says no method that is known" in str(found)


def test_settings_of_the_command_win_over_the_file() -> None:
    """LLaMA-Factory, axolotl and torchtune take name=value behind their file."""
    for target, base, command, name in (
        ("llamafactory", FACTORY, "llamafactory-cli train x.yaml", "cutoff_len"),
        ("axolotl", AXOLOTL, "axolotl train x.yaml", "--sequence-len"),
        (
            "torchtune",
            TUNE,
            "tune run lora_finetune_distributed --config x.yaml",
            "tokenizer.max_seq_len",
        ),
    ):
        files = {"x.yaml": yaml.safe_dump(base), "run.sh": f"{command} {name}=512\n"}
        reading = read_texts(files, None, "the files")
        assert (reading.target, reading.training["seq_len"]) == (target, 512)


def test_a_command_without_its_file_asks_for_the_file() -> None:
    found = outcome({"run.sh": "llamafactory-cli train mine/x.yaml stage=sft\n"})
    assert "mine/x.yaml" in str(found)


def test_every_target_has_its_words() -> None:
    targets = [name for tool in table().tools for name in tool.targets]
    assert sorted(targets) == sorted(target.name for target in TARGETS)


def test_every_word_leaves_methods_of_the_table() -> None:
    for tool in table().tools:
        named = [*tool.words.values()]
        named += [m for values in tool.settings.values() for m in values.values()]
        assert {name for names in named for name in names} <= TITLES.keys()
        for expression in tool.commands:
            assert re.compile(expression).groups == 1


@pytest.mark.parametrize("stage", ["kto", "ppo", "rm"])
def test_the_word_that_decides_is_named_with_its_line(stage: str) -> None:
    text = f"finetuning_type: lora\ntemplate: llama3\nstage: {stage}\n"
    with pytest.raises(BadInputError, match=r"a\.yaml:3: stage: this trains by"):
        read_texts({"a.yaml": text}, None, "a")
