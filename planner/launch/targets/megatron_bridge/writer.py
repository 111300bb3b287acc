"""Writes a plan as overrides of a Megatron-Bridge recipe."""

import json
from itertools import chain
from typing import Any

from planner.frameworks.megatron.bridge.known import VERSION
from planner.frameworks.megatron.bridge.lacks import MODULES, architecture_of
from planner.hardware.reading.escape import yaml_text
from planner.launch.brief import BY_TORCHRUN, Brief, LaunchFile, Program, Variable
from planner.launch.targets.megatron.arguments import fp8_recipe, run_arguments
from planner.launch.targets.megatron.model import dispatcher
from planner.launch.targets.megatron.writer import core_environment
from planner.launch.targets.megatron_bridge.paths import paths
from planner.launch.text.rates import RATE, learning_rate
from planner.launch.text.render import render

TRAIN, OVERRIDES, CONFIG = "train.py", "overrides.yaml", "model/config.json"
PRECISIONS = {
    "delayed": "bf16_with_fp8_delayed_scaling_mixed",
    "tensorwise": "bf16_with_fp8_current_scaling_mixed",
    "blockwise": "bf16_with_fp8_subchannel_scaling_mixed",
    "mxfp8": "bf16_with_mxfp8_mixed",
}
"""Recipe of number formats by --fp8-recipe. [text]"""
PLAIN = {"bf16": "bf16_mixed", "fp16": "fp16_mixed", "nvfp4": "bf16_with_nvfp4_mixed"}


def write(brief: Brief) -> Program:
    """Write the program: a recipe of Megatron-Bridge with every override of the plan.

    Returns:
        The script, the overrides, the model's config, and the words that start them.
        [-]
    """
    head = "Overrides of Megatron-Bridge's ConfigContainer; train.py merges them."
    return Program(
        files=(
            LaunchFile(TRAIN, _train(brief)),
            LaunchFile(OVERRIDES, yaml_text(overrides(brief), [head])),
            LaunchFile(CONFIG, _config(brief)),
        ),
        starter=BY_TORCHRUN,
        words=(TRAIN, f'train.train_iters="$TRAIN_STEPS" optimizer.lr={RATE}'),
        check=(
            "train.train_iters=20",
            "logger.log_interval=1",
            "validation.eval_iters=0",
            "checkpoint.save=null",
        ),
        versions=(f"megatron-bridge=={VERSION}", "transformers>=5.8,<=5.12.1"),
        environment=tuple(core_environment(brief)),
        blanks=_blanks(brief),
        first=_FIRST,
    )


_FIRST = (
    "Megatron-Bridge prints its whole configuration at start: compare "
    "`tensor_model_parallel_size` and `data_parallel_size` with the plan. A key of "
    "overrides.yaml that it does not know is skipped with a warning.",
    "`Step Time` of steps 10 to 20 is the step time; the first steps compile.",
)


def _blanks(brief: Brief) -> tuple[Variable, ...]:
    common = (
        learning_rate(brief, anew=True),
        Variable("CHECKPOINTS", "", "Folder for checkpoints; empty: the recipe's."),
        Variable("TRAIN_STEPS", str(brief.training_steps), "Optimizer steps."),
    )
    if brief.training.method == "lora":
        model = "Hugging Face name or folder of the model and its tokenizer."
        base = "Its weights as Megatron-Bridge's convert_checkpoints.py writes them."
        return (
            Variable("HF_MODEL", brief.weights, model, required=True),
            Variable("PRETRAINED", "", base, required=True),
            *common,
        )
    return (
        Variable("HF_MODEL", "./model", "Hugging Face name or folder of the model."),
        Variable("DATA_PATH", "", "Prefix of your tokenised data; empty: mock data."),
        Variable("TOKENIZER", "", "Hugging Face tokenizer, with DATA_PATH."),
        *common,
    )


def _train(brief: Brief) -> str:
    adapters = brief.training.method == "lora"
    return render(
        "train.py.j2",
        __package__,
        title=brief.job,
        what="adapter" if adapters else "pre-training",
        recipe="_peft_common" if adapters else "_pretrain_common",
        adapters=adapters,
        precision=_precision(brief),
        vocabulary=brief.architecture.vocab - 1,
    )


def _precision(brief: Brief) -> str:
    recipe = fp8_recipe(brief)
    return PRECISIONS[recipe] if recipe else PLAIN[brief.training.precision]


def _config(brief: Brief) -> str:
    its = {k: v for k, v in brief.model.items() if k != "name"}
    its.setdefault("architectures", [architecture_of(brief.asked)])
    return json.dumps(its, indent=2) + "\n"


def overrides(brief: Brief) -> dict[str, dict[str, Any]]:
    """Fields of ConfigContainer that a plan sets."""
    groups = [group for _, group in run_arguments(brief)]
    if brief.architecture.expert_parameters:
        groups.append(dispatcher(brief))
    given = dict(chain.from_iterable(groups))
    given["--num-layers"] = brief.architecture.layers
    found: dict[str, dict[str, Any]] = {}
    for option, every in paths().paths.items():
        if option in paths().unwritten:
            continue
        value = given.get(option, False if option in paths().flags else None)
        for path in every if value is not None else ():
            block, _, name = path.partition(".")
            found.setdefault(block, {})[name] = value
    _formats(brief, given, found)
    if brief.training.method == "lora":
        found["peft"] = _adapters(brief)
        found["dataset"]["offline_packing_specs"] = _packing(brief)
    return found


def _formats(
    brief: Brief, given: dict[str, object], found: dict[str, dict[str, Any]]
) -> None:
    """Set fields that follow from absent options, or from several options."""
    whole = "--grad-reduce-in-bf16" not in given
    found["ddp"]["grad_reduce_in_fp32"] = whole
    found["mixed_precision"]["grad_reduce_in_fp32"] = whole
    if fp8_recipe(brief):
        # Recipes of current scaling keep the ends in bf16; the plan does not.
        found["mixed_precision"]["first_last_layers_bf16"] = False
    if brief.layout.offload.activations:
        found["model"]["cpu_offloading"] = True
    if brief.architecture.mtp_layers:
        found["model"]["mtp_num_layers"] = brief.architecture.mtp_layers


def _packing(brief: Brief) -> dict[str, int]:
    """Packing to the plan's sequence length, in place of the recipe's length."""
    cp = brief.layout.cp
    return {
        "packed_sequence_size": brief.training.seq_len,
        "pad_seq_to_mult": 2 * cp if cp > 1 else 1,
    }


def _adapters(brief: Brief) -> dict[str, Any]:
    its = brief.training.lora
    return {
        "target_modules": [MODULES[name] for name in its.modules],
        "dim": its.rank,
        "alpha": 2 * its.rank,
        "dropout": its.dropout,
    }
