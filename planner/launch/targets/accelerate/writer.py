"""A plan as the files of an accelerate run: Trainer's or TRL's."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from planner.frameworks.accelerate.launch.known import (
    DEEPSPEED,
    PEFT,
    TRANSFORMERS,
    TRL,
    VERSION,
)
from planner.hardware.reading.escape import yaml_text
from planner.launch.brief import (
    BY_TORCHRUN,
    Brief,
    LaunchFile,
    Program,
    Starter,
    Variable,
)
from planner.launch.targets.accelerate.arguments import arguments
from planner.launch.targets.accelerate.placement import DS_FILE, placement, zero
from planner.launch.targets.accelerate.plan import (
    deepspeed,
    fsdp,
    of_attention,
    option,
    own_mesh,
    with_trl,
)
from planner.launch.targets.accelerate.run import run
from planner.launch.text.rates import RATE, learning_rate
from planner.launch.text.render import render

SCRIPT, PLACES = "train.py", "accelerate.yaml"
TRAINING, RUN, MODEL = "training.yaml", "run.yaml", "config.json"
STARTER = Starter(
    (
        'accelerate launch --num_machines "$NNODES" --machine_rank "$NODE_RANK"',
        '--num_processes "$((NNODES * GPUS_PER_NODE))"',
        '--main_process_ip "$MASTER_ADDR" --main_process_port "$MASTER_PORT"',
    )
)
"""accelerate's own launcher."""
HEADS = {
    PLACES: "How many ranks, and how they lie: `accelerate launch --config_file`.",
    TRAINING: "Arguments of the trainer; train.py takes changes on its command line.",
    RUN: "What train.py does beside them: weights, attention, loss, adapters.",
}


def write(brief: Brief) -> Program:
    """Write the program: a training script, its configuration and the model."""
    return Program(
        files=tuple(_files(brief)),
        starter=STARTER,
        starter_words=(f"--config_file {PLACES}",),
        words=(SCRIPT, f'--max_steps "$TRAIN_STEPS" --learning_rate {RATE}'),
        check=("--max_steps 20", "--logging_steps 1", "--save_strategy no"),
        also=frozenset({BY_TORCHRUN}),
        versions=tuple(_versions(brief)),
        environment=tuple(environment(brief)),
        blanks=tuple(_blanks(brief)),
        first=tuple(_first(brief)),
    )


def _files(brief: Brief) -> Iterator[LaunchFile]:
    yield LaunchFile(PLACES, _yaml(PLACES, placement(brief)))
    yield LaunchFile(TRAINING, _yaml(TRAINING, arguments(brief)))
    yield LaunchFile(RUN, _yaml(RUN, run(brief)))
    fields = {k: v for k, v in brief.model.items() if k != "name"}
    yield LaunchFile(MODEL, json.dumps(fields, indent=2) + "\n")
    if deepspeed(brief):
        yield LaunchFile(DS_FILE, json.dumps(zero(brief), indent=2) + "\n")
    yield LaunchFile(SCRIPT, render("train.py.j2", __package__))


def _yaml(name: str, content: Mapping[str, Any]) -> str:
    return yaml_text(dict(content), [HEADS[name]])


def _versions(brief: Brief) -> Iterator[str]:
    yield "torch==2.13.0"
    yield f"accelerate=={VERSION}"
    yield f"transformers=={TRANSFORMERS}"
    if with_trl(brief):
        yield f"trl=={TRL}"
    if brief.training.method != "full":
        yield f"peft=={PEFT}"
    if deepspeed(brief):
        yield f"deepspeed=={DEEPSPEED}"
    words = str(arguments(brief)["optim"])
    if brief.training.method == "qlora" or "bnb" in words or "paged" in words:
        yield "bitsandbytes==0.50.2"
    if brief.training.precision == "fp8" or words == "adamw_torch_8bit":
        yield "torchao, a release for torch 2.13"
    if option(brief, "loss", "hf") == "liger":
        yield "liger-kernel"
    yield from of_attention(brief, "flash-attn")


def environment(brief: Brief) -> Iterator[Variable]:
    """Variables that a run on accelerate needs."""
    why = "Tokenizers fork no threads of their own in the data loader's processes."
    yield Variable("TOKENIZERS_PARALLELISM", "false", why)
    if brief.cluster.gpu.name.startswith("rtx-40"):
        why = "accelerate stops on RTX 4000 cards that would try it: they have none."
        yield Variable("NCCL_P2P_DISABLE", "1", why)
        yield Variable("NCCL_IB_DISABLE", "1", why)


def _blanks(brief: Brief) -> Iterator[Variable]:
    tuned = brief.training.method != "full"
    model = "Hugging Face name or folder of the weights; empty: new ones."
    if tuned:
        model = "Hugging Face name or folder of the weights that adapters lie beside."
    data = "Your tokens, a .npy file; empty: made-up ones."
    if with_trl(brief):
        data = "Your texts or messages, JSON lines, or tokens, .npy; empty: made up."
    # A full run starts anew; adapters beside new weights would learn nothing.
    yield Variable("MODEL", brief.weights if tuned else "", model, required=tuned)
    yield Variable("DATA_PATH", "", data)
    yield learning_rate(brief, anew=True)
    yield Variable("CHECKPOINTS", "", "Folder for checkpoints; empty: none.")
    yield Variable("TRAIN_STEPS", str(brief.training_steps), "Optimizer steps.")
    yield Variable("DEVICE", "gpu", "cpu: train a small model without a GPU, in fp32.")


def _first(brief: Brief) -> Iterator[str]:
    yield (
        "train.py prints a line `LAYOUT` for every rank at the start: ranks, mesh and "
        "what each holds. A run that accelerate takes for single processes shows "
        "`world` 1 and falling losses all the same."
    )
    yield (
        "`step_time` of steps 10 to 20 is the step; `max_allocated (GiB)` is rank 0's "
        "peak."
    )
    if fsdp(brief):
        yield (
            "The weights are read on rank 0 and handed out: its host needs room for "
            "all of them."
        )
    if own_mesh(brief):
        yield (
            "Tensor ranks are transformers' own (DistributedConfig in run.yaml). "
            "Their gradients are reduced in fp32, the plan's in 16 bits; and "
            "without MODEL every rank makes all weights before it splits them."
        )
    if brief.layout.cp > 1:
        yield "Context ranks need a GPU: PyTorch divides no attention on CPUs."
