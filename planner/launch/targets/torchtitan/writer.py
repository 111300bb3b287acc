"""Writes a plan as a module of torchtitan's configuration registry."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from planner.frameworks.torchtitan.families import VERSION
from planner.frameworks.torchtitan.launch.lacks import (
    MOMENTS,
    SCHEDULES,
    compiled,
    dispatcher,
    has_experts,
)
from planner.frameworks.torchtitan.loss import CHUNKED, COMPILED, loss_of
from planner.launch.brief import BY_TORCHRUN, Brief, LaunchFile, Program, Variable
from planner.launch.switches import is_on
from planner.launch.targets.torchtitan.code import Code, Keywords, call
from planner.launch.targets.torchtitan.model import Named, Own, model_of
from planner.launch.text.rates import learning_rate
from planner.launch.text.render import render
from planner.specs.layouts.layout import Layout

CONFIG, DATA, MODEL = "plan_config.py", "random_tokens.py", "own_model.py"
KINDS = {"none": "None", "selective": "SelectiveAC.Config()", "full": "FullAC.Config()"}
"""Activation checkpointing by kind of recompute. [text]"""
OUTERMOST = "tp-cp-ep-dp-pp"
"""Rank order of torchtitan's own mesh: stages outermost. [text]"""


def write(brief: Brief) -> Program:
    """Write the program: torchtitan.train with a configuration of the plan's own."""
    model = model_of(brief)
    files = [
        LaunchFile(CONFIG, _config(brief, model)),
        LaunchFile(DATA, render("random_tokens.py.j2", __package__)),
    ]
    if isinstance(model, Own):
        text = render(
            "own_model.py.j2", __package__, version=VERSION, module=model.module
        )
        files.append(LaunchFile(MODEL, text))
    return Program(
        files=tuple(files),
        starter=BY_TORCHRUN,
        words=("-m torchtitan.train", "--module plan_config", "--config train"),
        check=("--training.steps=20", "--metrics.log-freq=1"),
        versions=tuple(_versions(brief)),
        blanks=_blanks(brief),
        first=tuple(_first(brief)),
        starter_words=_shown(brief),
    )


def _shown(brief: Brief) -> tuple[str, ...]:
    """Options to show lines of a node's first rank, and of a rank with the loss.

    Only the last stage of a pipeline knows the loss.
    """
    *before, its = brief.placement
    last = (last_stage(brief.layout) - sum(n.ranks for n in before)) % its.gpus
    ranks = ",".join(map(str, sorted({0, last})))
    return (f"--role rank --tee 3 --local-ranks-filter {ranks}",)


def last_stage(layout: Layout) -> int:
    """First process of the last stage, in the order in which processes are started."""
    inner = layout.tp * layout.cp
    beside = inner if layout.order != OUTERMOST else inner * layout.dp
    return beside * (layout.pp - 1)


def _versions(brief: Brief) -> Iterator[str]:
    yield f"torchtitan=={VERSION}"
    if brief.layout.pp > 1:
        yield (
            "torch, a nightly build after 2.13: torchtitan hands micro-batches to a "
            "schedule in a way that 2.13.0 does not take"
        )
    else:
        yield "torch==2.13.0, CUDA build"
    if brief.training.precision != "bf16":
        yield "torchao>=0.15"


def _first(brief: Brief) -> Iterator[str]:
    its = brief.layout
    yield (
        "`Building device mesh with parallelism` at start: compare "
        f"pp={its.pp}, dp_replicate={_replicas(its)}, dp_shard={_shards(its)}, "
        f"cp={its.cp}, tp={its.tp}, ep={its.ep}."
    )
    yield (
        "`tps` of steps 10 to 20 is tokens a second of one GPU; the first steps "
        "compile and connect. `memory` is what PyTorch's allocator holds, without "
        "the context of CUDA and NCCL."
    )
    if its.pp > 1:
        yield "The loss is printed by the ranks of the last stage; others print -1."


def _blanks(brief: Brief) -> tuple[Variable, ...]:
    return (
        Variable(
            "DATASET", "", "A data set of torchtitan, such as c4; empty: random tokens."
        ),
        Variable("DATASET_PATH", "", "Where it lies; empty: the Hugging Face hub."),
        Variable("HF_ASSETS", "assets", "Folder with the model's tokenizer."),
        learning_rate(brief, anew=True),
        Variable("WARMUP_STEPS", "200", "Steps until it is reached."),
        Variable("CHECKPOINTS", "", "Folder for checkpoints; empty writes none."),
        Variable("TRAIN_STEPS", str(brief.training_steps), "Optimizer steps."),
    )


def _replicas(layout: Layout) -> int:
    return layout.dp * layout.cp // layout.dp_shard


def _shards(layout: Layout) -> int:
    """Data ranks that share states; the plan counts context ranks among them."""
    return layout.dp_shard // layout.cp


def _config(brief: Brief, model: Named | Own) -> str:
    its = brief.layout
    turned = its.order != OUTERMOST and min(its.pp, its.dp) > 1
    return render(
        "config.py.j2",
        __package__,
        title=brief.job,
        version=VERSION,
        replaces=MOMENTS[brief.training.state_bits] != "fused",
        imports=list(_imports(brief, model)),
        order=its.order if turned else "",
        replicas=its.dp,
        stages=its.pp,
        inner=its.tp * its.cp,
        counts=_counts(its.layers_per_stage) if its.pp > 1 else "",
        model=_model(brief, model),
        sections=list(_sections(brief)),
    )


def _counts(layers: Sequence[int]) -> str:
    """Layers by stage as a sum of lists, with equal neighbours written once."""
    runs = [(count, len(list(run))) for count, run in groupby(layers)]
    if len(runs) > len(layers) // 2:
        return str(list(layers))
    return " + ".join(f"[{count}] * {times}" for count, times in runs)


def _imports(brief: Brief, model: Named | Own) -> Iterator[str]:
    """Imports of the module, sorted as Python's tools sort them."""
    kinds = {part.kind for s in brief.layout.stages for part in s.recompute}
    checkpointing = sorted(
        KINDS[kind].partition(".")[0] for kind in kinds if kind != "none"
    )
    source = (
        f"torchtitan.models.{model.module} import model_registry"
        if isinstance(model, Named)
        else f"own_model import {model.module}"
    )
    wrapper = "ChunkedLossWrapper, " if _is_chunked(brief) else ""
    found = {
        "random_tokens import NoTokenizer, RandomTokens",
        "torchtitan.components.checkpoint import CheckpointManager",
        "torchtitan.components.dataloader import BaseDataLoader",
        "torchtitan.components.metrics import MetricsProcessor",
        "torchtitan.components.optimizer import LRSchedulersContainer, default_adamw",
        "torchtitan.components.tokenizer import BaseTokenizer, HuggingFaceTokenizer",
        "torchtitan.config import CompileConfig, ParallelismConfig, TrainingConfig",
        "torchtitan.hf_datasets.text_datasets import HuggingFaceTextDataLoader",
        "torchtitan.models.common.config_utils import decoder_vocab_size",
        "torchtitan.trainer import Trainer",
        source,
    }
    if brief.architecture.mtp_layers:
        found.add("torchtitan.models.deepseek_v3 import MTPLoss")
    else:
        found.add(f"torchtitan.components.loss import {wrapper}CrossEntropyLoss")
    if checkpointing:
        names = ", ".join(checkpointing)
        found.add(f"torchtitan.distributed.activation_checkpoint import {names}")
    converters = sorted(name for name, _ in _converters(brief))
    if converters:
        found.add(f"torchtitan.components.quantization import {', '.join(converters)}")
    return (f"from {line}" for line in sorted(found))


def _converters(brief: Brief) -> Iterator[tuple[str, Keywords]]:
    """Converters of linear layers and of experts to the plan's number format."""
    precision = brief.training.precision
    prefix = {"fp8": "Float8", "mxfp8": "MXFP8"}.get(precision)
    if prefix is None:
        return
    common: Keywords = {"model_compile_enabled": compiled(brief.asked)}
    which: Keywords = (
        {"filter_fqns": ["lm_head", "router.gate"]}
        if precision == "fp8"
        else {"fqns": ["attention.", "feed_forward.", "shared_experts."]}
    )
    yield f"{prefix}LinearConverter", {**which, **common}
    if has_experts(brief.asked):
        yield f"{prefix}GroupedExpertsConverter", common


def _model(brief: Brief, model: Named | Own) -> str:
    more: dict[str, object] = {}
    if has_experts(brief.asked):
        more["moe_comm_backend"] = dispatcher(brief.asked, brief.layout.ep)
    if brief.architecture.mtp_layers:
        more["num_mtp_layers"] = brief.architecture.mtp_layers
    converters = [
        " " * 12 + call(f"{name}.Config", keywords, 12) + ","
        for name, keywords in _converters(brief)
    ]
    if converters:
        more["converters"] = Code("\n".join(["[", *converters, "        ]"]))
    if isinstance(model, Own):
        return call(model.module, {**model.keywords, **more}, 4)
    if not more:
        return f'model_registry("{model.flavour}")'
    return call("model_registry", {"flavor": model.flavour, **more}, 4)


def _sections(brief: Brief) -> Iterator[tuple[str, str]]:
    """Sections of Trainer.Config, as code."""
    yield "loss", _loss(brief)
    yield "hf_assets_path", _from_environment("HF_ASSETS", "assets")
    yield "tokenizer", "tokenizer()"
    yield "dataloader", "data(decoder_vocab_size(model_spec))"
    yield "optimizer", _optimizer(brief)
    warm = Code(f"int({_from_environment('WARMUP_STEPS', '200')})")
    yield "lr_scheduler", call("LRSchedulersContainer.Config", {"warmup_steps": warm})
    yield "training", call("TrainingConfig", _training(brief))
    yield "parallelism", call("ParallelismConfig", _parallelism(brief))
    yield "activation_checkpoint", KINDS[_recompute(brief.layout)]
    yield "compile", _compile(brief)
    folder: Keywords = {
        "enable": Code('bool(os.environ.get("CHECKPOINTS"))'),
        "folder": Code('os.environ.get("CHECKPOINTS") or "checkpoint"'),
    }
    yield "checkpoint", call("CheckpointManager.Config", folder)
    yield "metrics", "MetricsProcessor.Config(log_freq=10)"


def _compile(brief: Brief) -> str:
    beside = is_on(brief, "torchtitan", "tp_overlap")
    more = ", enable_async_tensor_parallel=True" if beside else ""
    blocks, loss = compiled(brief.asked), loss_of(brief.asked)
    if blocks == (loss == COMPILED) or loss == CHUNKED:
        return f"CompileConfig(enable={blocks}{more})"
    part = "model" if blocks else "loss"
    return f'CompileConfig(enable=True, components=["{part}"]{more})'


def _loss(brief: Brief) -> str:
    name = "MTPLoss" if brief.architecture.mtp_layers else "CrossEntropyLoss"
    vocabulary = Code("decoder_vocab_size(model_spec)")
    plain = call(f"{name}.Config", {"global_vocab_size": vocabulary})
    if not _is_chunked(brief):
        return plain
    return call("ChunkedLossWrapper.Config", {"loss_fn": Code(plain)})


def _is_chunked(brief: Brief) -> bool:
    """Tell if the head and the loss run in chunks of the tokens."""
    return loss_of(brief.asked) == CHUNKED and not brief.architecture.mtp_layers


def _from_environment(name: str, default: str) -> str:
    return f'os.environ.get("{name}", "{default}")'


def _optimizer(brief: Brief) -> str:
    # Empty on a trial on a CPU alone.
    rate = 'default_adamw(lr=float(os.environ.get("LEARNING_RATE") or "1e-5"))'
    implementation = MOMENTS[brief.training.state_bits]
    if implementation == "fused":
        return rate
    return f'replace({rate}, implementation="{implementation}")'


def _recompute(layout: Layout) -> str:
    """Recompute kind of all layers."""
    kinds = {part.kind for stage in layout.stages for part in stage.recompute}
    return kinds.pop() if kinds else "none"


def _training(brief: Brief) -> Keywords:
    its = brief.layout
    local = its.micro_batch * (its.grad_accum if its.pp > 1 else 1)
    steps = _from_environment("TRAIN_STEPS", str(brief.training_steps))
    found: dict[str, object] = {
        "local_batch_size": local,
        "global_batch_size": brief.training.sequences,
        "seq_len": brief.training.seq_len,
        "steps": Code(f"int({steps})"),
    }
    if its.offload.parameters:
        found["enable_cpu_offload"] = True
    return {**found, "disable_cuda_graphs": True}


def _parallelism(brief: Brief) -> Keywords:
    its = brief.layout
    found: dict[str, object] = {
        "data_parallel_replicate_degree": _replicas(its),
        "data_parallel_shard_degree": _shards(its),
        "fsdp_reshard_after_forward": _reshards(its),
        "tensor_parallel_degree": its.tp,
        "enable_sequence_parallel": its.sp,
        "pipeline_parallel_degree": its.pp,
        "context_parallel_degree": its.cp,
        "expert_parallel_degree": its.ep,
        "spmd_backend": "partial_dtensor",
    }
    if its.pp > 1:
        found |= {
            "pipeline_parallel_schedule": SCHEDULES[its.schedule],
            "pipeline_parallel_microbatch_size": its.micro_batch,
            "module_fqns_per_model_part": Code("parts(LAYERS)"),
        }
    return found


def _reshards(layout: Layout) -> str:
    """Word of fsdp_reshard_after_forward: `always` for ZeRO-3, `never` for ZeRO-2.

    `default` frees gathered parameters after the forward, except under a pipeline.
    """
    usual = 3 if layout.pp == 1 else 2
    if layout.zero_stage == usual:
        return "default"
    return "always" if layout.zero_stage == 3 else "never"
