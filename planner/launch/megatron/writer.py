"""A plan as arguments of Megatron-LM's pretrain_gpt.py."""

import shlex
from collections.abc import Iterator, Sequence
from itertools import chain

import yaml

from planner.launch.brief import Brief, Gap, LaunchFile, Program, Variable
from planner.launch.megatron.known import VERSION
from planner.launch.megatron.model import Argument, model_arguments, model_gaps
from planner.launch.megatron.stages import is_even, stage_layout
from planner.specs.layout import Layout

SCRIPT, YAML_FILE = "arguments.sh", "arguments.yaml"
CP_TYPES = {"ring": "p2p", "all-gather": "all_gather", "ulysses": "a2a"}
"""--cp-comm-type by kind of context parallelism. [text]"""
OPTIMIZERS = {"adamw": "adam", "sgd": "sgd", "sgd-momentum": "sgd", "muon": "muon"}
FP8 = {"fp8": "tensorwise", "mxfp8": "mxfp8"}
"""--fp8-recipe by compute format, unless the stack says another. [text]"""
RECIPES = {"delayed": "delayed", "current": "tensorwise", "blockwise": "blockwise"}
Group = tuple[str, list[Argument]]


def gaps(brief: Brief) -> tuple[Gap, ...]:
    """What of a plan Megatron-LM's arguments cannot say.

    Args:
        brief: The plan. [-]

    Returns:
        One gap for each, none where all of it can be said. [-]
    """
    return (*model_gaps(brief), *_method_gaps(brief), *_layout_gaps(brief.layout))


def _method_gaps(brief: Brief) -> Iterator[Gap]:
    its = brief.training
    if its.method != "full":
        allowed = "full; megatron-bridge and accelerate have adapters"
        yield Gap("no adapters", "spec.training.method", its.method, allowed)
    if its.optimizer not in OPTIMIZERS:
        allowed = ", ".join(OPTIMIZERS)
        yield Gap(
            "no such optimizer", "spec.training.optimizer", its.optimizer, allowed
        )
    if its.precision in ("tf32", "nvfp4", "fp32"):
        allowed = "bf16, fp16, fp8, mxfp8"
        yield Gap("no such format", "spec.training.precision", its.precision, allowed)


def _layout_gaps(layout: Layout) -> Iterator[Gap]:
    offload = layout.offload
    if offload.parameters or offload.gradients:
        what = "parameters" if offload.parameters else "gradients"
        yield Gap(
            "only optimizer states and activations go to the host",
            "layout.offload",
            what,
            "optimizer, activations",
        )
    if offload.device == "nvme":
        yield Gap("nothing goes to drives", "layout.offload", "nvme", "cpu")
    if layout.zero_stage > 1:
        yield Gap(
            "the distributed optimizer shards optimizer states alone",
            "layout.zero_stage",
            layout.zero_stage,
            "0 and 1",
        )
    if layout.schedule not in ("1f1b", "interleaved"):
        yield Gap(
            "no such schedule", "layout.schedule", layout.schedule, "1f1b, interleaved"
        )


def write(brief: Brief) -> Program:
    """The program: pretrain_gpt.py with every argument of the plan.

    Args:
        brief: The plan. [-]

    Returns:
        The arguments as a bash array and as YAML, and how they are started. [-]
    """
    groups = arguments(brief)
    return Program(
        files=(
            LaunchFile(SCRIPT, _script(groups, brief)),
            LaunchFile(YAML_FILE, _yaml(groups, brief)),
        ),
        starter="torchrun",
        words=(
            '"$MEGATRON_PATH/pretrain_gpt.py"',
            '"${ARGUMENTS[@]}" "${DATA[@]}"',
            '--train-iters "$TRAIN_STEPS"',
        ),
        check=(
            "--train-iters 20",
            "--exit-interval 20",
            "--log-interval 1",
            "--eval-iters 0",
            "--save-interval 1000000",
        ),
        versions=_VERSIONS,
        environment=tuple(_environment(brief)),
        blanks=_blanks(brief),
        first=_FIRST,
        sources=(SCRIPT,),
    )


_VERSIONS = (
    f"Megatron-LM core_v{VERSION} (git tag; its pretrain_gpt.py is not on PyPI)",
    f"megatron-core=={VERSION}",
    "transformer-engine[pytorch]>=2.9",
)
_FIRST = (
    "Megatron prints every argument at start: compare `data_parallel_size`, "
    "`tensor_model_parallel_size` and `pipeline_model_parallel_size` with the plan.",
    "`elapsed time per iteration (ms)` of steps 10 to 20 is the step time; the first "
    "steps compile and connect.",
)


def _blanks(brief: Brief) -> tuple[Variable, ...]:
    tokens = brief.training.tokens
    step = brief.training.sequences * brief.training.seq_len
    steps = max(round(tokens / step), 1) if tokens else 1000
    return (
        Variable("MEGATRON_PATH", "./Megatron-LM", "A checkout of Megatron-LM."),
        Variable(
            "DATA_PATH", "", "Prefix of your tokenised data; empty trains on mock data."
        ),
        Variable("TOKENIZER", "", "Hugging Face tokenizer, with DATA_PATH."),
        Variable("CHECKPOINTS", "", "Folder for checkpoints; empty writes none."),
        Variable("TRAIN_STEPS", str(steps), "Optimizer steps of the run."),
    )


def _environment(brief: Brief) -> Iterator[Variable]:
    layout = brief.layout
    hopper = brief.cluster.gpu.arch in ("volta", "ampere", "ada", "hopper")
    if hopper and layout.tp * layout.cp > 1:
        yield Variable(
            "CUDA_DEVICE_MAX_CONNECTIONS",
            "1",
            "one hardware queue keeps tensor- and context-parallel exchanges ahead of "
            "the GEMMs that wait for them; Megatron refuses to start without it",
        )
    if layout.offload.optimizer:
        yield Variable("CUDA_MODULE_LOADING", "LAZY", "leaves room for pinned buffers")


def arguments(brief: Brief) -> list[Group]:
    """Every argument of a plan, by Megatron's own groups.

    Args:
        brief: The plan. [-]

    Returns:
        (title, arguments), in order of writing. [-]
    """
    return [
        ("model", model_arguments(brief)),
        ("parallelism", parallelism(brief)),
        ("batch", _batch(brief)),
        ("recompute and offload", [*_recompute(brief.layout), *_offload(brief.layout)]),
        ("numbers", _numbers(brief)),
        ("optimizer", _optimizer(brief)),
        ("run", _run()),
    ]


def parallelism(brief: Brief) -> list[Argument]:
    """Degrees, stages, sharding and rank order.

    Args:
        brief: The plan. [-]

    Returns:
        (option, value). [-]
    """
    its = brief.layout
    found: list[Argument] = [
        ("--tensor-model-parallel-size", its.tp),
        *_flags(("--sequence-parallel", its.sp)),
        ("--pipeline-model-parallel-size", its.pp),
        *_stages(brief),
        *_context(its),
    ]
    if brief.architecture.expert_parameters:
        found += [
            ("--expert-model-parallel-size", its.ep),
            ("--expert-tensor-parallel-size", its.etp),
        ]
    return [*found, *_sharding(brief), *_flags(_mapping(its))]


def _mapping(layout: Layout) -> tuple[str, bool]:
    return "--use-tp-pp-dp-mapping", layout.order == "tp-cp-ep-pp-dp"


def _flags(*pairs: tuple[str, object]) -> list[Argument]:
    return [(option, True) for option, wanted in pairs if wanted]


def _stages(brief: Brief) -> list[Argument]:
    """A count where all stages are alike, else the layout spelled out."""
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
    found: list[Argument] = [("--context-parallel-size", layout.cp)]
    if layout.cp_kind in CP_TYPES:
        return [*found, ("--cp-comm-type", CP_TYPES[layout.cp_kind])]
    inner = int(layout.cp_kind.removeprefix("ulysses").partition("+")[0])
    sizes = [inner, layout.cp // inner]
    return [
        *found,
        ("--cp-comm-type", "a2a+p2p"),
        ("--hierarchical-context-parallel-sizes", sizes),
    ]


def _sharding(brief: Brief) -> list[Argument]:
    its = brief.layout
    if its.zero_stage == 0:
        return []
    found = _flags(("--use-distributed-optimizer", True))
    copies = its.dp * its.cp // its.dp_shard
    if copies > 1:
        found.append(("--num-distributed-optimizer-instances", copies))
    reduce, gather = (
        brief.stack.get(name)
        for name in ("overlap_grad_reduce", "overlap_param_gather")
    )
    return [
        *found,
        *_flags(
            ("--overlap-grad-reduce", reduce),
            ("--overlap-param-gather", reduce and gather),
        ),
    ]


def _batch(brief: Brief) -> list[Argument]:
    return [
        ("--seq-length", brief.training.seq_len),
        ("--micro-batch-size", brief.layout.micro_batch),
        ("--global-batch-size", brief.training.sequences),
    ]


def recompute_kinds(layout: Layout) -> tuple[str, ...]:
    """Recompute kinds of a plan's layers.

    Args:
        layout: A complete layout. [-]

    Returns:
        Each once, in order of first use. [text]
    """
    found = (part.kind for stage in layout.stages for part in stage.recompute)
    return tuple(dict.fromkeys(found))


def _recompute(layout: Layout) -> list[Argument]:
    """None, modules of every layer, all of it, or the first layers of each stage."""
    kinds = set(recompute_kinds(layout))
    if kinds <= {"none"}:
        return []
    if "full" in kinds:
        block = "none" in kinds
        layers = _first_full(layout) if block else 1
        return [
            ("--recompute-granularity", "full"),
            ("--recompute-method", "block" if block else "uniform"),
            ("--recompute-num-layers", layers),
        ]
    (kind,) = kinds
    modules = ["core_attn"] if kind == "selective" else kind.split("+")
    return [("--recompute-granularity", "selective"), ("--recompute-modules", modules)]


def _first_full(layout: Layout) -> int:
    """Layers at the head of every virtual stage that are recomputed whole. [1]."""
    return max(
        sum(part.stop - part.start for part in stage.recompute if part.kind == "full")
        for stage in layout.stages
    )


def _offload(layout: Layout) -> list[Argument]:
    found: list[Argument] = []
    if layout.offload.optimizer:
        found += [
            ("--optimizer-cpu-offload", True),
            ("--optimizer-offload-fraction", layout.offload.optimizer),
            ("--use-precision-aware-optimizer", True),
        ]
    if layout.offload.activations:
        layers = round(layout.offload.activations * sum(layout.layers_per_stage))
        found.append(("--cpu-offloading-num-layers", layers))
    return found


def _numbers(brief: Brief) -> list[Argument]:
    precision = brief.training.precision
    found = _flags(("--fp16", precision == "fp16"), ("--bf16", precision != "fp16"))
    if precision in FP8:
        recipe = RECIPES.get(str(brief.stack.get("fp8_recipe")), FP8[precision])
        recipe = "mxfp8" if precision == "mxfp8" else recipe
        found += [("--fp8-format", "hybrid"), ("--fp8-recipe", recipe)]
    if brief.layout.comm_dtype.parameters == "fp8":
        found.append(("--fp8-param-gather", True))
    if brief.layout.comm_dtype.gradients == "bf16" and precision != "fp16":
        found.append(("--grad-reduce-in-bf16", True))
    return found


def _optimizer(brief: Brief) -> list[Argument]:
    return [
        ("--optimizer", OPTIMIZERS[brief.training.optimizer]),
        ("--lr", 3.0e-4),
        ("--min-lr", 3.0e-5),
        ("--lr-decay-style", "cosine"),
        ("--lr-warmup-fraction", 0.01),
        ("--weight-decay", 0.1),
        ("--clip-grad", 1.0),
        ("--adam-beta1", 0.9),
        ("--adam-beta2", 0.95),
        ("--attention-dropout", 0.0),
        ("--hidden-dropout", 0.0),
        ("--init-method-std", 0.02),
    ]


def _run() -> list[Argument]:
    return [
        ("--use-mcore-models", True),
        ("--transformer-impl", "transformer_engine"),
        ("--attention-backend", "auto"),
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

    Returns:
        Words, not quoted. [text]
    """
    option, value = argument
    if value is True:
        return [option]
    values = value if isinstance(value, list) else [value]
    return [option, *map(str, values)]


def command_line(groups: Sequence[Group]) -> list[str]:
    """All arguments as words.

    Args:
        groups: As `arguments` gives them. [-]

    Returns:
        Words, not quoted. [text]
    """
    every = chain.from_iterable(given for _, given in groups)
    return [word for argument in every for word in words(argument)]


_DATA = """
if [ -n "$DATA_PATH" ]; then
  DATA=(--data-path "$DATA_PATH" --tokenizer-type HuggingFaceTokenizer
        --tokenizer-model "$TOKENIZER" --split 99,1,0)
else
  DATA=(--mock-data --tokenizer-type NullTokenizer --vocab-size {vocabulary})
fi
if [ -n "$CHECKPOINTS" ]; then
  DATA+=(--save "$CHECKPOINTS" --load "$CHECKPOINTS")
fi
"""


def _script(groups: Sequence[Group], brief: Brief) -> str:
    lines = [
        "# Arguments of Megatron-LM's pretrain_gpt.py; launch.sh reads this file.",
        "# shellcheck shell=bash disable=SC2034  # launch.sh uses the arrays",
        "ARGUMENTS=(",
    ]
    for title, given in groups:
        lines += [f"  # {title}"] if given else []
        lines += ["  " + shlex.join(words(argument)) for argument in given]
    # NullTokenizer adds a token of its own to those that it is given.
    data = _DATA.replace("{vocabulary}", str(brief.architecture.vocab - 1))
    return "\n".join([*lines, ")"]) + "\n" + data


def _yaml(groups: Sequence[Group], brief: Brief) -> str:
    del brief
    every = chain.from_iterable(given for _, given in groups)
    body = {"MODEL_ARGS": dict(every)}
    head = (
        "# The same arguments as YAML, the form of Megatron-LM's own "
        "model_config.yaml files.\n"
    )
    return head + yaml.safe_dump(body, sort_keys=False, width=88)
