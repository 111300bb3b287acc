"""A plan as the YAML of `trl sft`, or of `trl dpo` for pairs with a reference."""

import json
from collections.abc import Iterator
from typing import Any

from planner.frameworks.accelerate.launch.known import (
    DEEPSPEED,
    PEFT,
    TRANSFORMERS,
    TRL,
    VERSION,
)
from planner.frameworks.accelerate.rows import first_steps
from planner.frameworks.accelerate.variants import written
from planner.frameworks.adapted import targets
from planner.hardware.reading.escape import yaml_text
from planner.launch.brief import Brief, LaunchFile, Program, Starter, Variable
from planner.launch.targets.accelerate.arguments import arguments as of_trainer
from planner.launch.targets.accelerate.placement import DS_FILE, placement, zero
from planner.launch.targets.accelerate.plan import (
    attention,
    deepspeed,
    fsdp,
    of_attention,
    recompute,
)
from planner.launch.targets.accelerate.run import weights
from planner.launch.targets.accelerate.writer import HEADS, PLACES, environment
from planner.launch.text.rates import RATE, learning_rate
from planner.models.layers.blocks import Moe

TRAIN, MODEL = "train.yaml", "config.json"
HEAD = "Arguments of `trl {} --config`; --NAME VALUE behind the file changes one."
OF_PACKING = ("packing", "packing_strategy")
"""Arguments that DPO's trainer lacks: pairs are not packed. [text]"""


def starter(brief: Brief) -> Starter:
    """TRL's command line, which starts accelerate's launcher."""
    return Starter(
        (
            f"trl {script(brief)} --config {TRAIN} --accelerate_config {PLACES}",
            '--num_machines "$NNODES" --machine_rank "$NODE_RANK"',
            '--num_processes "$((NNODES * GPUS_PER_NODE))"',
            '--main_process_ip "$MASTER_ADDR" --main_process_port "$MASTER_PORT"',
        )
    )


def script(brief: Brief) -> str:
    """Script of TRL that trains the plan."""
    return "sft" if brief.training.reference is None else "dpo"


def write(brief: Brief) -> Program:
    """Write the program: TRL's YAML, accelerate's YAML and the model."""
    return Program(
        files=tuple(_files(brief)),
        starter=starter(brief),
        words=(
            '--model_name_or_path "$MODEL" --dataset_name "$DATASET"',
            '--output_dir "$CHECKPOINTS" --max_steps "$TRAIN_STEPS"',
            f"--learning_rate {RATE}",
        ),
        check=("--max_steps 20", "--logging_steps 1", "--save_strategy no"),
        versions=tuple(_versions(brief)),
        environment=tuple(environment(brief)),
        blanks=tuple(_blanks(brief)),
        first=first_steps(brief.training, *_FIRST),
    )


_FIRST = (
    "`train_runtime` over the steps is the step, with the first steps in it.",
    "packing_strategy wrapped cuts texts into whole sequences, as priced; bfd keeps "
    "texts whole, and apart.",
)


def _files(brief: Brief) -> Iterator[LaunchFile]:
    yield LaunchFile(TRAIN, yaml_text(arguments(brief), [HEAD.format(script(brief))]))
    yield LaunchFile(PLACES, yaml_text(placement(brief), [HEADS[PLACES]]))
    fields = {k: v for k, v in brief.model.items() if k != "name"}
    yield LaunchFile(MODEL, json.dumps(fields, indent=2) + "\n")
    if deepspeed(brief):
        yield LaunchFile(DS_FILE, json.dumps(zero(brief), indent=2) + "\n")


def arguments(brief: Brief) -> dict[str, Any]:
    """Content of train.yaml."""
    found: dict[str, Any] = {
        "dataset_train_split": "train",
        "dtype": weights(brief),
        "attn_implementation": attention(brief),
        "use_peft": brief.training.method != "full",
    }
    if brief.weights:
        found["model_name_or_path"] = brief.weights
    return found | _adapters(brief) | _quantized(brief) | _trainer(brief)


def _trainer(brief: Brief) -> dict[str, Any]:
    """Arguments of SFTTrainer, as accelerate's own files have them."""
    found = of_trainer(brief)
    if brief.training.reference is not None:
        found = _pairs(brief, found)
    zero3 = deepspeed(brief) and brief.layout.zero_stage == 3
    if zero3 and brief.training.method != "full" and recompute(brief.layout) == "full":
        # SFTTrainer sets this itself, with a warning.
        found["gradient_checkpointing_kwargs"] = {"use_reentrant": True}
    if any(isinstance(kind.ffn, Moe) for kind in brief.architecture.kinds):
        # Routing is priced without the loss that balances it.
        found["router_aux_loss_coef"] = 0.0
    return found


def _pairs(brief: Brief, found: dict[str, Any]) -> dict[str, Any]:
    """Arguments of DPOTrainer, which counts pairs where the plan counts sequences."""
    kept = {name: its for name, its in found.items() if name not in OF_PACKING}
    return kept | {
        "per_device_train_batch_size": brief.layout.micro_batch // 2,
        "precompute_ref_log_probs": brief.training.reference == "precomputed",
        "beta": 0.1,
    }


def _adapters(brief: Brief) -> dict[str, Any]:
    if brief.training.method == "full":
        return {}
    its, names = brief.training.lora, targets(brief.asked)
    return {
        "lora_r": its.rank,
        "lora_alpha": 2 * its.rank,
        "lora_dropout": its.dropout,
        "lora_target_modules": [names] if isinstance(names, str) else names,
        **written(its),
    }


def _quantized(brief: Brief) -> dict[str, Any]:
    its = brief.training
    if its.method != "qlora":
        return {}
    if its.weight_format == "int8":
        return {"load_in_8bit": True}
    found: dict[str, Any] = {
        "load_in_4bit": True,
        "bnb_4bit_quant_type": its.weight_format,
        "use_bnb_nested_quant": its.double_quantization,
    }
    # Shards need weights stored in the format of all others.
    return found | ({"bnb_4bit_quant_storage": weights(brief)} if fsdp(brief) else {})


def _versions(brief: Brief) -> Iterator[str]:
    yield "torch==2.13.0"
    yield f"trl=={TRL}"
    yield f"accelerate=={VERSION}"
    yield f"transformers=={TRANSFORMERS}"
    if brief.training.method != "full":
        yield f"peft=={PEFT}"
    if deepspeed(brief):
        yield f"deepspeed=={DEEPSPEED}"
    words = str(of_trainer(brief)["optim"])
    if brief.training.method == "qlora" or "bnb" in words or "paged" in words:
        yield "bitsandbytes==0.50.2"
    if brief.training.precision == "fp8" or words == "adamw_torch_8bit":
        yield "torchao, a release for torch 2.13"
    yield from of_attention(brief, "flash-attn")


def _blanks(brief: Brief) -> Iterator[Variable]:
    why = "Hugging Face name or folder of the weights and a tokenizer."
    yield Variable("MODEL", brief.weights, why, required=True)
    why = "Hugging Face name or folder of texts (column text) or messages."
    yield Variable("DATASET", "", why, required=True)
    yield learning_rate(brief, anew=False)
    yield Variable("CHECKPOINTS", "checkpoints", "Folder for checkpoints.")
    yield Variable("TRAIN_STEPS", str(brief.training_steps), "Optimizer steps.")
