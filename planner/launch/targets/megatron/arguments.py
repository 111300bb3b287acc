"""Arguments of Megatron-LM's pretrain_gpt.py for a plan, by Megatron's groups."""

from collections.abc import Sequence
from itertools import chain

from planner.frameworks.megatron.launch.lacks import MOMENTS, OPTIMIZERS, backend
from planner.frameworks.megatron.limits import CP_TYPES
from planner.launch.brief import Brief
from planner.launch.switches import is_on
from planner.launch.targets.megatron.checks.defaults import DROPOUT
from planner.launch.targets.megatron.model import model_arguments
from planner.launch.targets.megatron.recompute import (
    offload_arguments,
    recompute_arguments,
)
from planner.launch.targets.megatron.rotation import Argument
from planner.launch.targets.megatron.stages import is_even, stage_layout
from planner.specs.layouts.context import MIXED, cp_family, inner_degree
from planner.specs.layouts.layout import Layout

MOMENTUM = {"sgd": 0.0, "sgd-momentum": 0.9}
RECIPES = {"delayed": "delayed", "current": "tensorwise", "blockwise": "blockwise"}
"""--fp8-recipe by the stack's fp8 recipe. [text]"""
Group = tuple[str, list[Argument]]


def arguments(brief: Brief) -> list[Group]:
    """Every argument of a plan, by Megatron's own groups."""
    return [("model", model_arguments(brief)), *run_arguments(brief)]


def run_arguments(brief: Brief) -> list[Group]:
    """Every argument of a plan but those that describe its model."""
    return [
        ("parallelism", parallelism(brief)),
        ("batch", _batch(brief)),
        ("recompute and offload", _memory(brief.layout)),
        ("numbers", _numbers(brief)),
        ("optimizer", _optimizer(brief)),
        ("run", _run(brief)),
    ]


def parallelism(brief: Brief) -> list[Argument]:
    """Degrees, stages, sharding and rank order."""
    its = brief.layout
    found: list[Argument] = [
        ("--tensor-model-parallel-size", its.tp),
        *_flags(
            ("--sequence-parallel", its.sp),
            ("--tp-comm-overlap", is_on(brief, "megatron", "tp_overlap")),
        ),
        ("--pipeline-model-parallel-size", its.pp),
        *_stages(brief),
        *_context(its),
    ]
    if brief.architecture.expert_parameters:
        found += [
            ("--expert-model-parallel-size", its.ep),
            ("--expert-tensor-parallel-size", its.etp),
            *_flags(
                (
                    "--overlap-moe-expert-parallel-comm",
                    is_on(brief, "megatron", "ep_overlap"),
                )
            ),
        ]
    return [*found, *_sharding(brief), *_flags(_mapping(its))]


def _mapping(layout: Layout) -> tuple[str, bool]:
    return "--use-tp-pp-dp-mapping", layout.order == "tp-cp-ep-pp-dp"


def _flags(*pairs: tuple[str, object]) -> list[Argument]:
    return [(option, True) for option, wanted in pairs if wanted]


def _stages(brief: Brief) -> list[Argument]:
    """Virtual stages: a count where all stages are alike, else the layout of stages."""
    its, mtp = brief.layout, brief.architecture.mtp_layers
    if its.pp == 1:
        return []
    if is_even(its) and not mtp:
        return (
            [("--num-virtual-stages-per-pipeline-rank", its.vpp)] if its.vpp > 1 else []
        )
    layout = stage_layout(its.layers_per_stage, mtp)
    return [("--pipeline-model-parallel-layout", layout)]


def _context(layout: Layout) -> list[Argument]:
    if layout.cp == 1:
        return []
    family = cp_family(layout.cp_kind)
    found: list[Argument] = [
        ("--context-parallel-size", layout.cp),
        ("--cp-comm-type", CP_TYPES[family]),
    ]
    if family == MIXED:
        inner = inner_degree(layout.cp_kind, layout.cp)
        sizes = [inner, layout.cp // inner]
        found += [("--hierarchical-context-parallel-sizes", sizes)]
    return found


def _sharding(brief: Brief) -> list[Argument]:
    its = brief.layout
    overlaps = _flags(
        ("--overlap-grad-reduce", is_on(brief, "megatron", "overlap_grad_reduce")),
        ("--overlap-param-gather", is_on(brief, "megatron", "overlap_param_gather")),
    )
    if its.zero_stage == 0:
        return overlaps
    found = _flags(("--use-distributed-optimizer", True))
    copies = its.dp * its.cp // its.dp_shard
    if copies > 1:
        found.append(("--num-distributed-optimizer-instances", copies))
    return [*found, *overlaps]


def _batch(brief: Brief) -> list[Argument]:
    return [
        ("--seq-length", brief.training.seq_len),
        ("--micro-batch-size", brief.layout.micro_batch),
        ("--global-batch-size", brief.training.sequences),
    ]


def _memory(layout: Layout) -> list[Argument]:
    return [*recompute_arguments(layout), *offload_arguments(layout)]


def fp8_recipe(brief: Brief) -> str | None:
    """Scaling recipe of 8-bit tensors.

    Returns:
        A word of --fp8-recipe; None without 8-bit tensors. [text]
    """
    precision = brief.training.precision
    if precision == "mxfp8":
        return "mxfp8"
    if precision != "fp8":
        return None
    return RECIPES[str(brief.stack.get("fp8_recipe", "current"))]


def _numbers(brief: Brief) -> list[Argument]:
    precision, recipe = brief.training.precision, fp8_recipe(brief)
    formats = brief.layout.comm_dtype
    found = _flags(("--fp16", precision == "fp16"), ("--bf16", precision != "fp16"))
    if recipe:
        found += [("--fp8-format", "hybrid"), ("--fp8-recipe", recipe)]
    if precision == "nvfp4":
        found += [("--fp4-format", "e2m1"), ("--fp4-recipe", "nvfp4")]
    kept = bool(recipe) and brief.layout.zero_stage > 0 and _alone(brief)
    gathers = is_on(brief, "megatron", "overlap_param_gather")
    reused = kept and recipe == "mxfp8" and gathers
    return [
        *found,
        *_flags(
            ("--fp8-param-gather", kept),
            ("--reuse-grad-buf-for-mxfp8-param-ag", reused),
            (
                "--grad-reduce-in-bf16",
                formats.gradients == "bf16" and precision != "fp16",
            ),
        ),
        *_loss(brief),
    ]


def _loss(brief: Brief) -> list[Argument]:
    """Options of the loss that is compiled into few kernels."""
    if brief.spec.stack.get("loss") != "fused":
        return []
    option = "--cross-entropy-loss-fusion"
    return [(option, True), ("--cross-entropy-fusion-impl", "native")]


def _alone(brief: Brief) -> bool:
    """Tell if the weights of linear layers are kept in fp8 alone."""
    stack = brief.framework == "megatron" and bool(brief.stack.get("fp8_primary"))
    return stack or brief.layout.comm_dtype.parameters == "fp8"


def _optimizer(brief: Brief) -> list[Argument]:
    name = brief.training.optimizer
    found: list[Argument] = [("--optimizer", OPTIMIZERS[name])]
    if name in MOMENTUM:
        found.append(("--sgd-momentum", MOMENTUM[name]))
    return [
        *found,
        *_moments(brief),
        ("--min-lr", 0.0),
        ("--lr-decay-style", "cosine"),
        ("--lr-warmup-fraction", 0.01),
        ("--weight-decay", 0.1),
        ("--clip-grad", 1.0),
        ("--adam-beta1", 0.9),
        ("--adam-beta2", 0.95),
        ("--attention-dropout", 0.0),
        ("--hidden-dropout", DROPOUT if _drops(brief) else 0.0),
        ("--init-method-std", 0.02),
    ]


def _drops(brief: Brief) -> bool:
    """Tell if the masks of dropouts are priced, as the framework's own."""
    return brief.framework == "megatron" and bool(brief.stack.get("dropout_bytes"))


def _moments(brief: Brief) -> list[Argument]:
    """Options of moments narrower than 32 bits; offload already names the optimizer."""
    dtype = MOMENTS[brief.training.state_bits]
    if dtype is None:
        return []
    aware = _flags(
        ("--use-precision-aware-optimizer", not brief.layout.offload.optimizer)
    )
    return [*aware, ("--exp-avg-dtype", dtype), ("--exp-avg-sq-dtype", dtype)]


def _run(brief: Brief) -> list[Argument]:
    masks = brief.framework == "megatron" and bool(brief.stack.get("loads_masks"))
    return [
        *_flags(("--no-create-attention-mask-in-dataloader", not masks)),
        ("--use-mcore-models", True),
        ("--transformer-impl", "transformer_engine"),
        ("--attention-backend", str(backend(brief.asked))),
        ("--distributed-timeout-minutes", 30),
        ("--log-interval", 10),
        ("--log-throughput", True),
        ("--log-device-memory-used", True),
        ("--eval-interval", 1000),
        ("--eval-iters", 10),
        ("--save-interval", 1000),
        ("--ckpt-format", "torch_dist"),
        ("--manual-gc", True),
    ]


def words(argument: Argument) -> list[str]:
    """An argument as words of a command line.

    Args:
        argument: (option, value); True for a flag. [-]
    """
    option, value = argument
    if value is True:
        return [option]
    values = value if isinstance(value, list) else [value]
    return [option, *map(str, values)]


def command_line(groups: Sequence[Group]) -> list[str]:
    """All arguments as words."""
    every = chain.from_iterable(given for _, given in groups)
    return [word for argument in every for word in words(argument)]
