"""A plan as ds_config.json with the script that it configures."""

import json
from collections.abc import Iterator
from itertools import chain
from typing import Any

from planner.frameworks.deepspeed.launch.known import VERSION
from planner.frameworks.deepspeed.launch.lacks import OPTIMIZERS, PRESETS
from planner.frameworks.transformers import attention
from planner.launch.brief import Brief, LaunchFile, Program, Starter, Variable
from planner.launch.switches import is_on
from planner.launch.text.rates import RATE, learning_rate
from planner.launch.text.render import render
from planner.specs.layouts.layout import Layout

CONFIG, MODEL, HOSTS, SCRIPT = "ds_config.json", "config.json", "hostfile", "train.py"
DRIVES = "/local_nvme"
STARTER = Starter(
    (
        "deepspeed --hostfile hostfile --no_ssh",
        '--node_rank "$NODE_RANK"',
        '--master_addr "$MASTER_ADDR" --master_port "$MASTER_PORT"',
    )
)
"""DeepSpeed's own launcher."""


def write(brief: Brief) -> Program:
    """Write the program: a training script, ds_config.json, the model and the hosts."""
    settings = json.dumps(configuration(brief), indent=2) + "\n"
    fields = {k: v for k, v in brief.model.items() if k != "name"}
    return Program(
        files=(
            LaunchFile(CONFIG, settings),
            LaunchFile(MODEL, json.dumps(fields, indent=2) + "\n"),
            LaunchFile(HOSTS, hostfile(brief)),
            LaunchFile(SCRIPT, render("train.py.j2", __package__)),
        ),
        starter=STARTER,
        words=(
            f"{SCRIPT} --config {CONFIG} --model {MODEL}",
            f"--seq-length {brief.training.seq_len}",
            f"--attention {attention(brief.asked, 'deepspeed')} --learning-rate {RATE}",
            '--steps "$TRAIN_STEPS" --data "$DATA_PATH" --checkpoints "$CHECKPOINTS"',
        ),
        check=("--steps 20",),
        versions=_VERSIONS,
        environment=(),
        blanks=tuple(_blanks(brief)),
        first=tuple(_first(brief)),
    )


_VERSIONS = (
    f"deepspeed=={VERSION}",
    "torch==2.13.0",
    "transformers==5.23.0",
    "accelerate==1.15.0",
)


def hostfile(brief: Brief) -> str:
    """Hostfile with one line per node; users may change the names of nodes."""
    head = "# Nodes in the order of their ranks; give them their names for pdsh.\n"
    slots = chain.from_iterable([its.gpus] * its.count for its in brief.placement)
    return head + "".join(f"node-{n} slots={each}\n" for n, each in enumerate(slots))


def _blanks(brief: Brief) -> Iterator[Variable]:
    steps = brief.training_steps
    yield Variable(
        "DATA_PATH", "", "Tokens, a .npy file; empty trains on made-up ones."
    )
    yield learning_rate(brief, anew=True)
    yield Variable("CHECKPOINTS", "", "Folder for checkpoints; empty writes none.")
    yield Variable("TRAIN_STEPS", str(steps), "Optimizer steps of the run.")
    if brief.layout.offload.device == "nvme":
        yield Variable("NVME_PATH", DRIVES, "Folder on the node's own drives.")


def _first(brief: Brief) -> Iterator[str]:
    yield (
        "train.py prints `LAYOUT` with the degrees that DeepSpeed built and `HELD` "
        "with what every rank holds: compare both with the plan."
    )
    yield (
        "`SamplesPerSec` and `MaxMemAllocated` of steps 10 to 20 are speed and memory; "
        "the first steps compile and connect."
    )
    if brief.layout.tp > 1:
        yield (
            "ds_config.json gives no train_batch_size: under AutoTP DeepSpeed takes it "
            "for the whole world's. The embedding stays whole on every tensor rank "
            "where the plan divides it, so a rank holds a little more than predicted."
        )


def configuration(brief: Brief) -> dict[str, Any]:
    """Settings of ds_config.json."""
    its = brief.layout
    return {
        **_batch(its),
        "steps_per_print": 10,
        "gradient_clipping": 1.0,
        **_format(brief),
        "zero_optimization": _zero(brief),
        **_axes(brief),
        **_recompute(brief),
        **_optimizer(brief),
    }


def _batch(its: Layout) -> dict[str, Any]:
    """Batch sizes; AutoTP takes tensor ranks for replicas, and gets no global batch."""
    found: dict[str, Any] = {
        "train_micro_batch_size_per_gpu": its.micro_batch,
        "gradient_accumulation_steps": its.grad_accum,
    }
    if its.tp == 1:
        total = its.dp * its.micro_batch * its.grad_accum
        found = {"train_batch_size": total, **found}
    return found


def _format(brief: Brief) -> dict[str, Any]:
    precision = brief.training.precision
    if precision == "fp32":
        return {}
    wire = {"communication_data_type": brief.layout.comm_dtype.gradients}
    if precision == "fp16":
        return {**wire, "fp16": {"enabled": True, "initial_scale_power": 16}}
    found: dict[str, Any] = {**wire, "bf16": {"enabled": True}}
    if brief.layout.zero_stage:
        found["data_types"] = {"grad_accum_dtype": "fp32"}
    return found


def _zero(brief: Brief) -> dict[str, Any]:
    its = brief.layout
    found: dict[str, Any] = {"stage": its.zero_stage}
    if its.zero_stage:
        # Stage 3 gathers and reduces beside its layers, in the price as here.
        beside = its.zero_stage == 3 or is_on(brief, "deepspeed", "overlap_grad_reduce")
        found |= {"overlap_comm": beside, "contiguous_gradients": True}
    if its.hpz > 1:
        found["zero_hpz_partition_size"] = its.hpz
    return found | _offload(its)


def _offload(its: Layout) -> dict[str, Any]:
    where = its.offload
    block: dict[str, Any] = {"device": where.device, "pin_memory": True}
    if where.device == "nvme":
        block["nvme_path"] = DRIVES
    found: dict[str, Any] = {}
    if where.optimizer:
        ratio = {"ratio": where.optimizer} if where.optimizer < 1 else {}
        found["offload_optimizer"] = block | ratio
    if where.parameters:
        found["offload_param"] = dict(block)
    return found


def _axes(brief: Brief) -> dict[str, Any]:
    its = brief.layout
    found: dict[str, Any] = {}
    if its.tp > 1:
        found["tensor_parallel"] = {"autotp_size": its.tp}
    if its.cp > 1:
        found["sequence_parallel_size"] = its.cp
    if its.ep > 1:
        found["expert_parallel"] = {
            "enabled": True,
            "autoep_size": its.ep,
            "preset_model": PRESETS.get(brief.asked.model_type),
        }
    if its.pp > 1:
        found["pipeline"] = {
            "stages": its.pp,
            "partition": list(its.layers_per_stage),
            "activation_checkpoint_interval": int(_full(its)),
        }
    return found


def _full(its: Layout) -> bool:
    return any(part.kind == "full" for stage in its.stages for part in stage.recompute)


def _recompute(brief: Brief) -> dict[str, Any]:
    if not _full(brief.layout) or brief.layout.pp > 1:
        return {}
    layers = brief.architecture.layers
    return {
        "activation_checkpointing": {
            "partition_activations": False,
            "cpu_checkpointing": False,
            "number_checkpoints": layers,
        }
    }


def _optimizer(brief: Brief) -> dict[str, Any]:
    name = brief.training.optimizer
    rate: dict[str, Any] = {}
    if name == "adamw":
        rate |= {"betas": [0.9, 0.95], "eps": 1e-8, "weight_decay": 0.1}
    if name == "sgd-momentum":
        rate["momentum"] = 0.9
    found = {"optimizer": {"type": OPTIMIZERS[name], "params": rate}}
    if name != "adamw" and brief.layout.zero_stage:
        return {**found, "zero_allow_untested_optimizer": True}
    return found
