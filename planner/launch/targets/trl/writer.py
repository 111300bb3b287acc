"""A plan as the YAML of `trl sft`, or of `trl dpo` for pairs with a reference."""

from typing import Any

from planner.frameworks.accelerate.launch.known import (
    DEEPSPEED,
    PEFT,
    TRANSFORMERS,
    TRL,
    VERSION,
)
from planner.frameworks.accelerate.variants import written
from planner.frameworks.adapted import targets
from planner.launch.brief import Brief, Program, Starter
from planner.launch.targets.accelerate.arguments import arguments as of_trainer
from planner.launch.targets.accelerate.plan import (
    attention,
    deepspeed,
    fsdp,
    recompute,
)
from planner.launch.targets.accelerate.run import weights
from planner.launch.targets.accelerate.writer import PLACES
from planner.launch.targets.trainers.writer import TRAIN, program
from planner.models.layers.blocks import Moe

RELEASES = {
    "TRL": TRL,
    "VERSION": VERSION,
    "TRANSFORMERS": TRANSFORMERS,
    "PEFT": PEFT,
    "DEEPSPEED": DEEPSPEED,
}
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
    return program(
        "trl", brief, arguments(brief), starter(brief), RELEASES, script(brief)
    )


def arguments(brief: Brief) -> dict[str, Any]:
    """Content of train.yaml."""
    settings: dict[str, Any] = {
        "dataset_train_split": "train",
        "dtype": weights(brief),
        "attn_implementation": attention(brief),
        "use_peft": brief.training.method != "full",
    }
    if brief.weights:
        settings["model_name_or_path"] = brief.weights
    return settings | _adapters(brief) | _quantized(brief) | _trainer(brief)


def _trainer(brief: Brief) -> dict[str, Any]:
    """Arguments of SFTTrainer, as accelerate's own files have them."""
    settings = of_trainer(brief)
    if brief.training.reference is not None:
        settings = _pairs(brief, settings)
    zero3 = deepspeed(brief) and brief.layout.zero_stage == 3
    if zero3 and brief.training.method != "full" and recompute(brief.layout) == "full":
        # SFTTrainer sets this itself, with a warning.
        settings["gradient_checkpointing_kwargs"] = {"use_reentrant": True}
    if any(isinstance(kind.ffn, Moe) for kind in brief.architecture.kinds):
        # Routing is priced without the loss that balances it.
        settings["router_aux_loss_coef"] = 0.0
    return settings


def _pairs(brief: Brief, settings: dict[str, Any]) -> dict[str, Any]:
    """Arguments of DPOTrainer, which counts pairs where the plan counts sequences."""
    kept = {name: value for name, value in settings.items() if name not in OF_PACKING}
    return kept | {
        "per_device_train_batch_size": brief.layout.micro_batch // 2,
        "precompute_ref_log_probs": brief.training.reference == "precomputed",
        "beta": 0.1,
    }


def _adapters(brief: Brief) -> dict[str, Any]:
    if brief.training.method == "full":
        return {}
    lora, names = brief.training.lora, targets(brief.asked)
    return {
        "lora_r": lora.rank,
        "lora_alpha": 2 * lora.rank,
        "lora_dropout": lora.dropout,
        "lora_target_modules": [names] if isinstance(names, str) else names,
        **written(lora),
    }


def _quantized(brief: Brief) -> dict[str, Any]:
    training = brief.training
    if training.method != "qlora":
        return {}
    if training.weight_format == "int8":
        return {"load_in_8bit": True}
    settings: dict[str, Any] = {
        "load_in_4bit": True,
        "bnb_4bit_quant_type": training.weight_format,
        "use_bnb_nested_quant": training.double_quantization,
    }
    # Shards need weights stored in the format of all others.
    return settings | (
        {"bnb_4bit_quant_storage": weights(brief)} if fsdp(brief) else {}
    )
