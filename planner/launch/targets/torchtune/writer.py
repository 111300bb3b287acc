"""A plan as the YAML of a torchtune recipe."""

import json
from collections.abc import Iterator
from typing import Any

from planner.frameworks.accelerate.rows import first_steps
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
from planner.hardware.reading.escape import yaml_text
from planner.launch.brief import Brief, LaunchFile, Program, Starter, Variable
from planner.launch.targets.accelerate.plan import recompute
from planner.launch.text.rates import RATE, learning_rate

TRAIN, MODEL = "train.yaml", "config.json"
HEAD = "Settings of `tune run {}`; name=value after it changes one."
ATTENTION = {"o_proj": "output_proj"}
"""torchtune's name of a linear layer of attention, where it differs. [text]"""
EVERY = ("q_proj", "k_proj", "v_proj", "o_proj")
"""Linear layers of attention. [text]"""


def write(brief: Brief) -> Program:
    """Write the program: torchtune's YAML and the model."""
    return Program(
        files=tuple(_files(brief)),
        starter=_starter(brief),
        words=(
            f'--config {TRAIN} checkpointer.checkpoint_dir="$MODEL"',
            "checkpointer.checkpoint_files.max_filename=\"'$SHARDS'\"",
            'output_dir="$CHECKPOINTS" dataset.data_files="$DATASET"',
            'max_steps_per_epoch="$TRAIN_STEPS"',
            f"optimizer.lr={RATE}",
        ),
        check=("max_steps_per_epoch=20", "log_every_n_steps=1"),
        versions=tuple(_versions(brief)),
        blanks=tuple(_blanks(brief)),
        first=first_steps(brief.training, *_FIRST),
    )


_FIRST = (
    "`tokens_per_second_per_gpu` of the log is the speed, and "
    "`peak_memory_alloc` the peak.",
    "packed: True fills sequences with several texts, each apart; attention over whole "
    "sequences is priced, the most that they take.",
)


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


def _files(brief: Brief) -> Iterator[LaunchFile]:
    head = HEAD.format(_recipe(brief))
    yield LaunchFile(TRAIN, yaml_text(arguments(brief), [head]))
    fields = {k: v for k, v in brief.model.items() if k != "name"}
    yield LaunchFile(MODEL, json.dumps(fields, indent=2) + "\n")


def arguments(brief: Brief) -> dict[str, Any]:
    """Content of train.yaml."""
    family = family_of(brief.model)
    assert family is not None, "a model without a builder is a gap"
    its = brief.layout
    found: dict[str, Any] = {
        "output_dir": "checkpoints",
        "model": _model(brief, family),
        "tokenizer": _tokenizer(brief, family),
        "checkpointer": _checkpointer(family),
        "resume_from_checkpoint": False,
        "dataset": _dataset(brief),
        "seed": 0,
        "shuffle": True,
        "batch_size": its.micro_batch,
        "gradient_accumulation_steps": its.grad_accum,
        "epochs": 1,
        "max_steps_per_epoch": brief.training_steps,
        "optimizer": _optimizer(brief),
        "loss": {"_component_": LOSSES[option(brief.asked, "loss", "hf")]},
        "clip_grad_norm": 1.0,
        "compile": False,
        "device": "cuda",
        "dtype": "bf16",
        "enable_activation_checkpointing": recompute(its) == "full",
        "enable_activation_offloading": False,
    }
    return found | _of_recipe(brief) | _log()


def _model(brief: Brief, family: Family) -> dict[str, Any]:
    lora, method = brief.training.lora, brief.training.method
    name = family.builder if method == "full" else f"lora_{family.builder}"
    found = {"_component_": f"{PACKAGE}.{family.builder}.{name}"}
    found |= sizes(brief.model, family)
    if method == "full":
        return found
    asked = targets(brief.asked)
    names = [*EVERY, *MLP] if asked == "all-linear" else list(asked)
    return found | {
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
    found: dict[str, Any] = {"_component_": OPTIMIZERS[name]}
    if name == "adamw":
        found["fused"] = True
    if name == "sgd-momentum":
        found["momentum"] = 0.9
    return found


def _of_recipe(brief: Brief) -> dict[str, Any]:
    """Settings that one recipe has and another has not."""
    its, full = brief.layout, brief.training.method == "full"
    found: dict[str, Any] = {"optimizer_in_bwd": False} if full else {}
    if not full:
        found["lr_scheduler"] = {
            "_component_": "torchtune.training.lr_schedulers."
            "get_cosine_schedule_with_warmup",
            "num_warmup_steps": 20,
        }
    if its.gpus > 1:
        tied = brief.model.get("tie_word_embeddings")
        tables = ["tok_embeddings"] if tied else ["tok_embeddings", "output"]
        found["custom_sharded_layers"] = tables
        found["fsdp_cpu_offload"] = its.offload.parameters > 0
        found["fsdp_reshard_after_forward"] = its.zero_stage == 3
    return found


def _log() -> dict[str, Any]:
    return {
        "metric_logger": {
            "_component_": "torchtune.training.metric_logging.StdoutLogger"
        },
        "log_every_n_steps": 10,
        "log_peak_memory_stats": True,
    }


def _versions(brief: Brief) -> Iterator[str]:
    yield f"torchtune=={VERSION}"
    yield "torch==2.13.0"
    yield "torchao==0.13.0"
    if OPTIMIZERS[brief.training.optimizer].startswith("bitsandbytes"):
        yield "bitsandbytes==0.50.2"


def _blanks(brief: Brief) -> Iterator[Variable]:
    named = f", of {brief.weights}" if brief.weights else ""
    why = f"Folder of the weights{named}, as `tune download` makes it; no spaces."
    yield Variable("MODEL", "", why, required=True)
    why = "Number of the last safetensors file, with five digits, as 00004."
    yield Variable("SHARDS", "", why, required=True)
    why = "Texts, JSON lines with the key text; no spaces."
    yield Variable("DATASET", "texts.jsonl", why)
    yield learning_rate(brief, anew=False)
    yield Variable("CHECKPOINTS", "checkpoints", "Folder for checkpoints; no spaces.")
    yield Variable("TRAIN_STEPS", str(brief.training_steps), "Optimizer steps.")
