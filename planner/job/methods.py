"""Checks that a model and a GPU can do a fine-tuning method."""

from collections import Counter
from collections.abc import Iterable, Iterator

from planner.cost.parameters.adapters import MEGATRON_TARGETS
from planner.errors import BadInputError, did_you_mean
from planner.hardware.formats import FormatUse, block_format
from planner.hardware.specs import GpuSpec
from planner.models.architecture import Architecture
from planner.models.layers.blocks import Role
from planner.models.layers.linears import linears
from planner.specs.training import PROJECTED, Quantization, TrainingSpec

FORMATS: tuple[Quantization, ...] = ("nf4", "fp4", "int8")
"""Formats of a quantised base."""


def check_method(training: TrainingSpec, model: Architecture, gpu: GpuSpec) -> None:
    """Refuse a method that the model or the GPU cannot do.

    Raises:
        BadInputError: A target or frozen part that the model lacks, a rank above every
            width, nothing left to train, or a format without kernels for the GPU.
    """
    _check_frozen(training, model)
    _check_projected(training)
    if training.frozen:
        _check_targets(training, model)
        _check_rank(training, model)
    if training.quantized_experts and not model.expert_parameters:
        raise BadInputError(
            f"{model.name} has no routed experts",
            field="training.quantized_experts",
            value=True,
            allowed="false",
        )
    _check_formats(training, gpu)


def frozen_model(training: TrainingSpec, model: Architecture) -> Architecture:
    """The model with the layers that the job freezes as kinds of their own.

    Returns:
        The model, unchanged where nothing is frozen. Frozen layers have no backward
        where the embedding does not train either. [-]
    """
    role: Role = "passed" if training.trains_embedding else "below"
    return model.thawed().with_frozen(training.freeze.layers, role)


def _check_frozen(training: TrainingSpec, model: Architecture) -> None:
    """Refuse frozen layers that do not exist, a half-frozen table, and no training."""
    freeze, adapted = training.freeze, training.frozen
    if freeze.layers > model.layers:
        raise BadInputError(
            f"{model.name} has {model.layers} layers",
            field="training.freeze.layers",
            value=freeze.layers,
            allowed=f"0 to {model.layers}",
        )
    if freeze.layers and model.shares_weights:
        raise BadInputError(
            f"layers of {model.name} share weights, which freeze in all or in none",
            field="training.freeze.layers",
            value=freeze.layers,
            allowed="0",
        )
    if model.tied_embeddings and training.trains_embedding != training.trains_head:
        block = "lora.modules_to_save" if adapted else "freeze"
        raise BadInputError(
            f"embedding and head of {model.name} are one table",
            field=f"training.{block}",
            value=training.lora.modules_to_save if adapted else None,
            allowed="both of them, or neither",
        )
    ends = adapted or (freeze.embedding and freeze.head)
    if ends and freeze.layers == model.layers:
        raise BadInputError(
            "nothing is left to train",
            field="training.freeze.layers",
            value=freeze.layers,
            allowed=f"0 to {model.layers - 1}",
        )


def _check_projected(training: TrainingSpec) -> None:
    """Refuse projected gradients of adapters, which are narrow already."""
    if training.frozen and training.optimizer in PROJECTED:
        raise BadInputError(
            "projects gradients of whole matrices, not of adapters",
            field="training.optimizer",
            value=training.optimizer,
            allowed="method full, or another optimizer",
        )


def _check_targets(training: TrainingSpec, model: Architecture) -> None:
    """Check that every target exists, and that no weight has two adapters."""
    known = list(_linear_names(model))
    targets = training.lora.targets
    if targets == "all-linear" and not known:
        raise BadInputError(
            f"linear layers of {model.family} models are not known by name",
            field="training.lora.targets",
            value=targets,
            allowed=f"{', '.join(MEGATRON_TARGETS)}, attention or all",
        )
    for name in training.lora.modules:
        if name not in [*MEGATRON_TARGETS, *known]:
            raise BadInputError(
                f"{model.name} has no such linear layer; {did_you_mean(name, known)}",
                field="training.lora.targets",
                value=name,
                allowed=", ".join([*known, *MEGATRON_TARGETS]),
            )
    _check_once(training, model)


def _check_rank(training: TrainingSpec, model: Architecture) -> None:
    """Refuse a rank above the narrower side of every layer that carries an adapter.

    A product of two factors has at most the rank of its narrower side.
    """
    most = max(_ranks(training, model), default=model.hidden)
    if training.lora.rank > most:
        raise BadInputError(
            f"no linear layer of {model.name} that carries an adapter has such a rank",
            field="training.lora.rank",
            value=training.lora.rank,
            allowed=f"1 to {most:,}",
        )


def _ranks(training: TrainingSpec, model: Architecture) -> Iterator[int]:
    """Ranks of the linear layers that carry adapters, by their narrower side. [1]."""
    names = training.lora.modules
    fused = {gemm for n in names for gemm in MEGATRON_TARGETS.get(n, ())}
    for kind in model.kinds:
        for linear in linears(kind, model.family):
            if not names or linear.name in names or linear.gemm in fused:
                yield min(linear.inputs, linear.outputs)


def _check_once(training: TrainingSpec, model: Architecture) -> None:
    """Check that each weight carries one adapter, under one of its names."""
    names = training.lora.modules
    twice = [name for name, count in Counter(names).items() if count > 1]
    for kind in model.kinds:
        fused = {gemm for n in names for gemm in MEGATRON_TARGETS.get(n, ())}
        twice += [
            linear.name
            for linear in linears(kind, model.family)
            if linear.name in names
            and linear.name not in MEGATRON_TARGETS
            and linear.gemm in fused
        ]
    if twice:
        raise BadInputError(
            "this weight would carry two adapters",
            field="training.lora.targets",
            value=twice[0],
            allowed="each weight under one name",
        )


def _linear_names(model: Architecture) -> Iterable[str]:
    """Names of the linear layers that some block of a model has, in order."""
    return dict.fromkeys(
        linear.name for kind in model.kinds for linear in linears(kind, model.family)
    )


def _check_formats(training: TrainingSpec, gpu: GpuSpec) -> None:
    """Check that the libraries of block-wise formats have kernels for the GPU."""
    wanted = training.weight_format
    if wanted is not None and gpu.arch not in _runs_on("weights", wanted):
        runs = [name for name in FORMATS if gpu.arch in _runs_on("weights", name)]
        raise BadInputError(
            f"{gpu.name} cannot train on {wanted} weights",
            field="training.quantization",
            value=wanted,
            allowed=", ".join(runs) or "none; method full or lora",
        )
    for name in _moment_formats(training):
        if gpu.arch not in _runs_on("moments", name):
            raise BadInputError(
                f"{gpu.name} has no {name} optimizers",
                field="training.optimizer",
                value=training.optimizer,
                allowed="adamw, lamb, lion, sgd, sgd-momentum, adafactor or muon",
            )


def _runs_on(use: FormatUse, name: str) -> tuple[str, ...]:
    """GPU architectures that run a format."""
    return block_format(use, name).architectures


def _moment_formats(training: TrainingSpec) -> Iterator[str]:
    """Formats of moments that an optimizer needs kernels for."""
    if training.optimizer.endswith("-8bit"):
        yield "8-bit"
    if training.paged:
        yield "paged"
