"""A plan as the YAML of a torchtune recipe."""

from typing import Any

from planner.frameworks.accelerate.stack import option
from planner.frameworks.accelerate.torchtune.known import (
    PACKAGE,
    Family,
    family_of,
    sizes,
)
from planner.frameworks.accelerate.torchtune.lacks import (
    LOSSES,
    MLP,
    OPTIMIZERS,
    VERSION,
)
from planner.frameworks.adapted import targets
from planner.launch.brief import Brief, Program, Starter
from planner.launch.targets.accelerate.plan import recompute
from planner.launch.targets.trainers.writer import program

ATTENTION = {"o_proj": "output_proj"}
"""torchtune's name of a linear layer of attention, where it differs. [text]"""
EVERY = ("q_proj", "k_proj", "v_proj", "o_proj")
"""Linear layers of attention. [text]"""


def _recipe(brief: Brief) -> str:
    kind = "full" if brief.training.method == "full" else "lora"
    place = "distributed" if brief.layout.gpus > 1 else "single_device"
    return f"{kind}_finetune_{place}"


def _starter(brief: Brief) -> Starter:
    """torchtune's command line, which starts torchrun where a recipe has ranks."""
    if brief.layout.gpus == 1:
        return Starter((f"tune run {_recipe(brief)}",))
    return Starter(
        (
            'tune run --nnodes "$NNODES" --node-rank "$NODE_RANK"',
            '--nproc-per-node "$GPUS_PER_NODE"',
            '--master-addr "$MASTER_ADDR" --master-port "$MASTER_PORT"',
            _recipe(brief),
        )
    )


def write(brief: Brief) -> Program:
    """Write the program: torchtune's YAML and the model."""
    releases, recipe = {"VERSION": VERSION}, _recipe(brief)
    return program(
        "torchtune", brief, arguments(brief), _starter(brief), releases, recipe
    )


def arguments(brief: Brief) -> dict[str, Any]:
    """Content of train.yaml."""
    family = family_of(brief.model)
    assert family is not None, "a model without a builder is a gap"
    layout = brief.layout
    settings: dict[str, Any] = {
        "output_dir": "checkpoints",
        "model": _model(brief, family),
        "tokenizer": _tokenizer(brief, family),
        "checkpointer": _checkpointer(family),
        "resume_from_checkpoint": False,
        "dataset": _dataset(brief),
        "seed": 0,
        "shuffle": True,
        "batch_size": layout.micro_batch,
        "gradient_accumulation_steps": layout.grad_accum,
        "epochs": 1,
        "max_steps_per_epoch": brief.training_steps,
        "optimizer": _optimizer(brief),
        "loss": {"_component_": LOSSES[option(brief.asked, "loss", "hf")]},
        "clip_grad_norm": 1.0,
        "compile": False,
        "device": "cuda",
        "dtype": "bf16",
        "enable_activation_checkpointing": recompute(layout) == "full",
        "enable_activation_offloading": False,
    }
    return settings | _of_recipe(brief) | _log()


def _model(brief: Brief, family: Family) -> dict[str, Any]:
    lora, method = brief.training.lora, brief.training.method
    name = family.builder if method == "full" else f"lora_{family.builder}"
    settings = {"_component_": f"{PACKAGE}.{family.builder}.{name}"}
    settings |= sizes(brief.model, family)
    if method == "full":
        return settings
    asked = targets(brief.asked)
    names = [*EVERY, *MLP] if asked == "all-linear" else list(asked)
    return settings | {
        "lora_attn_modules": [ATTENTION.get(n, n) for n in EVERY if n in names],
        "apply_lora_to_mlp": bool(MLP.intersection(names)),
        "apply_lora_to_output": False,
        "lora_rank": lora.rank,
        "lora_alpha": 2 * lora.rank,
        "lora_dropout": lora.dropout,
        "quantize_base": method == "qlora",
    }


def _tokenizer(brief: Brief, family: Family) -> dict[str, Any]:
    folder = "${checkpointer.checkpoint_dir}"
    return {
        "_component_": f"{PACKAGE}.{family.tokenizer}",
        **{name: f"{folder}/{file}" for name, file in family.files.items()},
        "max_seq_len": brief.training.seq_len,
    }


def _checkpointer(family: Family) -> dict[str, Any]:
    return {
        "_component_": "torchtune.training.FullModelHFCheckpointer",
        "checkpoint_dir": "model",
        "checkpoint_files": {
            "filename_format": "model-{}-of-{}.safetensors",
            "max_filename": "00001",
        },
        "recipe_checkpoint": None,
        "output_dir": "${output_dir}",
        "model_type": family.kind,
    }


def _dataset(brief: Brief) -> dict[str, Any]:
    return {
        "_component_": "torchtune.datasets.text_completion_dataset",
        "source": "json",
        "data_files": "texts.jsonl",
        "column": "text",
        "split": "train",
        "packed": brief.training.rows != "longest",
    }


def _optimizer(brief: Brief) -> dict[str, Any]:
    name = brief.training.optimizer
    settings: dict[str, Any] = {"_component_": OPTIMIZERS[name]}
    if name == "adamw":
        settings["fused"] = True
    if name == "sgd-momentum":
        settings["momentum"] = 0.9
    return settings


def _of_recipe(brief: Brief) -> dict[str, Any]:
    """Settings that one recipe has and another has not."""
    layout, full = brief.layout, brief.training.method == "full"
    settings: dict[str, Any] = {"optimizer_in_bwd": False} if full else {}
    if not full:
        settings["lr_scheduler"] = {
            "_component_": "torchtune.training.lr_schedulers."
            "get_cosine_schedule_with_warmup",
            "num_warmup_steps": 20,
        }
    if layout.gpus > 1:
        tied = brief.model.get("tie_word_embeddings")
        tables = ["tok_embeddings"] if tied else ["tok_embeddings", "output"]
        settings["custom_sharded_layers"] = tables
        settings["fsdp_cpu_offload"] = layout.offload.parameters > 0
        settings["fsdp_reshard_after_forward"] = layout.zero_stage == 3
    return settings


def _log() -> dict[str, Any]:
    return {
        "metric_logger": {
            "_component_": "torchtune.training.metric_logging.StdoutLogger"
        },
        "log_every_n_steps": 10,
        "log_peak_memory_stats": True,
    }
