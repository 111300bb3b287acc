"""Memory by rules of thumb, and the same quantities by our code."""

from dataclasses import dataclass, replace

import numpy as np

from benchmarks.memory.jobs import A100, RTX_4090, job
from planner.cost.estimate.checkpoint import saved_bytes
from planner.cost.inference.estimate import serving_memory
from planner.cost.inference.formats import formats
from planner.cost.inference.weights import weight_bytes
from planner.cost.meshes import Meshes
from planner.cost.parameters.rank_parameters import layer_owned
from planner.cost.parameters.states import state_bytes
from planner.cost.pricing import Pricing
from planner.models import preset, preset_sizes
from planner.planning.capacity.alternatives import largest_model
from planner.planning.capacity.leanest import fewest_gpus, leanest, weigh
from planner.specs.inference import InferenceSpec
from planner.specs.layouts.layout import Layout, RecomputeRange, Stage

GB, GIB = 1e9, 2.0**30
LLAMAS = ("llama-2-7b", "llama-2-13b", "llama-2-70b")
BILLIONS = {"llama-2-7b": 7, "llama-2-13b": 13, "llama-2-70b": 70}
"""Parameters as the names round them. [1e9]"""
RULE_BYTES = {"fp32": 4.0, "fp16": 2.0, "int8": 1.0, "int4": 0.5}
"""Bytes of a weight by the rule. [B]"""
OCTOCODER = {"bf16": (31.0, 29.03), "int8": (15.0, 15.22), "fp4": (9.5, 9.54)}
"""The guide's figure, and the peak that the guide measured. [GB] and [GiB]"""
PURE_BF16 = {
    "recipe": {"states": {z: {"weights": 2, "gradients": 2} for z in range(4)}}
}
"""Weights in bf16 and no master copy, under any ZeRO stage."""


@dataclass(frozen=True)
class Bytes:
    """Bytes of a trained parameter by category. [B]."""

    weights: float
    gradients: float
    optimizer: float

    @property
    def total(self) -> float:
        """Sum of all three categories. [B]."""
        return self.weights + self.gradients + self.optimizer


def bytes_per_parameter(pricing: Pricing) -> Bytes:
    """States of a layer on one rank over its parameters.

    Args:
        pricing: The job: recipe, precision, optimizer. [-]

    Returns:
        Bytes of a parameter, with gradients that stay between micro-batches. [B]
    """
    zero = max(pricing.framework.limits.zero_stages)
    if pricing.training.precision == "fp16":
        zero = max(pricing.recipe.fp16_states or pricing.recipe.states)
    alone = Meshes.of_layout(Layout(zero_stage=zero, grad_accum=2))
    owned = layer_owned(pricing, pricing.kinds[0], alone)
    states = state_bytes(pricing, owned, alone)
    each = (states.weights, states.gradients, states.optimizer)
    return Bytes(*(float(np.asarray(part / owned.dense)[0]) for part in each))


def whole(pricing: Pricing, *, recompute: str = "none", micro_batch: int = 1) -> Layout:
    """A job on one GPU, in one piece.

    Args:
        pricing: A job on one GPU. [-]
        recompute: Kind for every layer. [text]
        micro_batch: Sequences. [sequence]

    Returns:
        The layout. [-]
    """
    layers = pricing.model.layers
    ranges = (RecomputeRange(start=0, stop=layers, kind=recompute),)
    accum = pricing.sequences // micro_batch
    stage = Stage(layers=layers, recompute=ranges)
    zero = pricing.framework.limits.default_zero_stage
    return Layout(
        micro_batch=micro_batch, grad_accum=accum, zero_stage=zero, stages=(stage,)
    )


@dataclass(frozen=True)
class OneGpu:
    """A job on one GPU, whatever its memory. [GB]."""

    states: float
    activations: float
    allocated: float


def on_one_gpu(
    pricing: Pricing, *, recompute: str = "none", micro_batch: int = 1
) -> OneGpu:
    """Memory of a job on one GPU, if the GPU were large enough.

    Args:
        pricing: A job on one GPU. [-]
        recompute: Kind for every layer. [text]
        micro_batch: Sequences. [sequence]

    Returns:
        Memory; activations are all the rest beside the states, logits included. [GB]
    """
    layout = whole(pricing, recompute=recompute, micro_batch=micro_batch)
    (stage,) = weigh(pricing, layout).stages
    states = stage.weights + stage.gradients + stage.optimizer
    scale = GIB / GB
    return OneGpu(
        states * scale, (stage.allocated - states) * scale, stage.allocated * scale
    )


def weights_gb(model: str, form: str) -> float:
    """Weights of a preset in a format.

    Args:
        model: Name of a preset. [-]
        form: Name of a format. [text]

    Returns:
        Memory. [GB]
    """
    return weight_bytes(preset(model), formats().weights[form]) / GB


def octocoder_peak(form: str) -> float:
    """Peak of allocated memory of OctoCoder that answers a short prompt.

    Args:
        form: Name of a format. [text]

    Returns:
        Memory. [GiB]
    """
    asked = InferenceSpec.model_validate({"weights": form, "context": 100})
    return serving_memory(preset("octocoder"), asked, "prefill").allocated


def states_gb(model: str, **changes: object) -> float:
    """States of a whole model at 16 bytes a parameter, in fp32 shards of FSDP2.

    Args:
        model: Name of a preset. [-]
        changes: Fields of the job. [-]

    Returns:
        Memory of all ranks together. [GB]
    """
    workload = job(model, **changes)  # type: ignore[arg-type]
    each = bytes_per_parameter(workload).total
    return each * workload.model.parameters / GB


def fewest_a100(model: str) -> int:
    """Fewest A100 with 80 GB for a full fine-tuning with Adam, sequences of 4,096.

    Args:
        model: Name of a preset. [-]

    Returns:
        GPUs, part of a node allowed; ZeRO-3 alone, without tensor or pipeline
        parallelism. [1]
    """
    found = job(model, global_batch=5040)
    cluster = found.topology.cluster
    spec = cluster.spec.model_copy(update={"partial": True})
    topology = type(found.topology)(replace(cluster, spec=spec))
    axes = {"tp": 1, "pp": 1, "cp": 1, "zero_stage": 3}
    search = found.search.model_copy(update=axes)
    held = fewest_gpus(replace(found, topology=topology, search=search))
    assert held is not None, model
    return held.layout.gpus


def checkpoint_gb(model: str, **changes: object) -> float:
    """A checkpoint of a whole training state.

    Args:
        model: Name of a preset. [-]
        changes: Fields of the job. [-]

    Returns:
        Size. [GB]
    """
    found = job(model, **changes)  # type: ignore[arg-type]
    return saved_bytes(found, found.framework.limits.default_zero_stage).total / GB


@dataclass(frozen=True)
class Largest:
    """The largest preset that one GPU trains, by two ways to count."""

    states_alone: str
    priced: str


def largest_on(cluster: str) -> Largest:
    """The largest preset that one GPU trains with Adam in mixed precision.

    Args:
        cluster: Name of a cluster with such GPUs. [-]

    Returns:
        Presets: by 16 bytes a parameter alone; and priced, one sequence of 2,048
        tokens at a time, every layer recomputed. [text]
    """
    one = job("llama-2-7b", cluster=cluster, gpus=1, seq_len=2048)
    priced = largest_model(one, lambda w: leanest(w, enough=True))
    assert priced is not None
    sizes = {name: size for name, size in preset_sizes().items() if size}
    room = one.gpu.memory_capacity / 16
    return Largest(max((s, n) for n, s in sizes.items() if s <= room)[1], priced)


def gpt2_by_zero() -> float:
    """ZeRO's rule for the activations of GPT-2 1.5B: ``12 h b s L`` numbers of 2 B.

    Returns:
        1,024 tokens, batch 32. [GB]
    """
    model = preset("gpt2-xl")
    return 12 * model.hidden * 32 * 1024 * model.layers * 2 / GB


def gpt2_by_korthikanti() -> float:
    """GPT-2's activations by ``s b h L (34 + 5 a s / h)``, explicit scores and dropout.

    Returns:
        1,024 tokens, batch 32. [GB]
    """
    model, tokens = preset("gpt2-xl"), 32 * 1024
    heads = model.kinds[0].attention.heads
    each = 34 + 5 * heads * 1024 / model.hidden
    return tokens * model.hidden * model.layers * each / GB


def gpt2_activations(stack: str, *, recompute: str = "none") -> float:
    """Activations of GPT-2 1.5B as priced on one GPU.

    Args:
        stack: Name of a stack of Megatron-LM. [text]
        recompute: Kind for every layer. [text]

    Returns:
        Memory at the peak beside the states. [GB]
    """
    one = job(
        "gpt2-xl",
        framework="megatron",
        stack={"name": stack},
        gpus=1,
        seq_len=1024,
        global_batch=64,
        precision="fp16",
    )
    return on_one_gpu(one, recompute=recompute, micro_batch=32).activations


CARDS = {"24 GB": RTX_4090, "80 GB": A100}
"""Memory on the label to a cluster with such GPUs."""
