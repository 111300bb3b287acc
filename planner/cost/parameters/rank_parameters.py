"""Parameters of one unit, a layer, the embedding or the head, on a rank."""

from dataclasses import dataclass, replace

import numpy as np

from planner.cost.meshes import Floats, Meshes
from planner.cost.parameters.adapters import adapter_parameters, adapter_sums, is_frozen
from planner.cost.parameters.quantised import HALF, quantised_savings, scale_bytes
from planner.cost.parameters.shapes import factored_elements, projected_elements
from planner.cost.parameters.weights import (
    largest_matrix,
    linear_weights,
    newton_schulz_flops,
)
from planner.cost.parameters.whole_tensors import tensors_of
from planner.cost.pricing import Pricing
from planner.cost.workload import Workload
from planner.models.layers.blocks import LayerKind
from planner.specs.training import PROJECTED


@dataclass(frozen=True)
class Owned:
    """Parameters of one unit (a layer, the embedding, the head) on one rank."""

    dense: Floats
    """Parameters divided by tp, or replicated. [1], shape (meshes,)"""
    expert: Floats
    """Parameters of the local experts. [1], shape (meshes,)"""
    frozen: Floats | float = 0.0
    """Dense parameters that are held but never updated. [1], shape (meshes,)"""
    frozen_expert: Floats | float = 0.0
    """Expert parameters that are held but never updated. [1], shape (meshes,)"""
    quantised: Floats | float = 0.0
    """Weights of linears, of which a quantised form may be kept. [1]"""
    matrices: bool = True
    """True where Muon updates the weights; embedding and head are left to Adam."""
    orthogonal: Floats | float = 0.0
    """Work of Newton-Schulz iterations; 0 but for Muon. [FLOP], shape (meshes,)"""
    tensors: int = 1
    """Tensors that states are divided by where they stay whole. [1]"""
    largest: tuple[Floats | float, Floats | float] = (0.0, 0.0)
    """Shorter and longer side of the largest matrix. [1], shape (meshes,) each"""
    saved: Floats | float = 0.0
    """Bytes that quantisation saves over 16 bits, dense. [B], shape (meshes,)"""
    saved_expert: Floats | float = 0.0
    """Bytes that quantisation saves over 16 bits, experts. [B], shape (meshes,)"""
    scales: Floats | float = 0.0
    """Bytes of the scales of quantised weights. [B]"""
    factored: Floats | float = 0.0
    """Rows, columns and vectors of dense weights that train; of a layer only for
    Adafactor. [1], shape (meshes,)"""
    factored_expert: Floats | float = 0.0
    """Rows, columns and vectors of local experts that train. [1], shape (meshes,)"""
    projected: tuple[Floats | float, Floats | float] = (0.0, 0.0)
    """Moments and projections of a low-rank Adam, dense and of experts. [1]"""
    passes_back: bool = True
    """True where a backward passes, and needs the parameters again."""

    @property
    def packed(self) -> tuple[Floats | float, Floats | float]:
        """Frozen parameters, dense and of experts, by what 16 bits would hold. [1]."""
        return self.frozen - self.saved / HALF, (
            self.frozen_expert - self.saved_expert / HALF
        )


def layer_owned(workload: Workload, layer: LayerKind, meshes: Meshes) -> Owned:
    """Parameters of one layer on a rank: ``P_s / t + P_r`` and ``P_e / (e x)``.

    With adapters the parameters of the layer are frozen, and the adapters train.
    """
    dense = layer.sharded_parameters / meshes.tp + layer.replicated_parameters
    expert = layer.expert_parameters / (meshes.ep * meshes.etp)
    linears = linear_weights(layer, meshes)
    largest = largest_matrix(layer, meshes)
    if is_frozen(workload, layer):
        saved = quantised_savings(workload, layer, meshes)
        sums = _sums(workload, layer, meshes, adapters=True)
        return Owned(
            *adapter_parameters(workload, layer, meshes),
            dense,
            expert,
            linears,
            saved=saved[0],
            saved_expert=saved[1],
            scales=scale_bytes(workload, layer, meshes),
            factored=sums[0],
            factored_expert=sums[1],
            passes_back=layer.role != "below",
            largest=largest,
        )
    muon = workload.training.optimizer == "muon"
    sums = _sums(workload, layer, meshes)
    return Owned(
        dense,
        expert,
        quantised=linears,
        orthogonal=newton_schulz_flops(layer, meshes) if muon else 0.0,
        tensors=tensors_of(layer),
        factored=sums[0],
        factored_expert=sums[1],
        largest=largest,
        projected=_projected(workload, layer, meshes),
    )


def _sums(
    workload: Workload, layer: LayerKind, meshes: Meshes, *, adapters: bool = False
) -> tuple[Floats | float, Floats | float]:
    """Sums that Adafactor keeps of a layer, 0 under other optimizers. [1]."""
    if workload.training.optimizer != "adafactor":
        return 0.0, 0.0
    if adapters:
        return adapter_sums(workload, layer, meshes)
    return factored_elements(layer, meshes)


def _projected(
    workload: Workload, layer: LayerKind, meshes: Meshes
) -> tuple[Floats | float, Floats | float]:
    """Elements that a low-rank Adam keeps of a layer, 0 under other optimizers. [1]."""
    training = workload.training
    if training.optimizer not in PROJECTED:
        return 0.0, 0.0
    return projected_elements(layer, meshes, training.projection_rank)


def _unlayered(
    workload: Workload, table: Floats, vectors: float, *, trains: bool
) -> Owned:
    """Parameters of a table and the vectors beside it, frozen or not.

    With adapters a table that trains is a copy of the frozen one, and the vectors
    stay frozen (peft, ModulesToSaveWrapper).
    """
    none, hidden = np.zeros(len(table)), workload.model.hidden
    sums = np.where(table > 0, table / hidden + hidden, 0.0)
    sides = (np.minimum(hidden, table / hidden), np.maximum(hidden, table / hidden))
    kept = table + vectors
    if not trains:
        return Owned(none, none, kept, none, matrices=False, largest=sides)
    if workload.training.frozen:
        return Owned(
            table, none, kept, none, matrices=False, factored=sums, largest=sides
        )
    return Owned(kept, none, matrices=False, factored=sums + vectors, largest=sides)


def padded_vocab(pricing: Pricing, meshes: Meshes) -> Floats:
    """Rows of the embedding: V rounded up to the framework's multiple times tp.

    Returns:
        Rows over all tensor ranks. [1], shape (meshes,)

    References:
        Megatron-LM ``--make-vocab-size-divisible-by`` 128.
    """
    multiple = pricing.recipe.vocab_multiple * meshes.tp
    vocab = pricing.model.vocab
    if pricing.recipe.vocab_multiple == 1:
        return np.full(len(meshes), float(vocab))
    padded: Floats = np.ceil(vocab / multiple) * multiple
    return padded


def embedding_owned(pricing: Pricing, meshes: Meshes) -> Owned:
    """Parameters of the embedding on a rank: ``V h / t``, positions, layers' inputs.

    The table of the layers' own embeddings is split like the vocabulary; what stands
    outside layers beside it is on every tensor rank.
    """
    model = pricing.model
    table = padded_vocab(pricing, meshes) * model.hidden / meshes.tp
    table = table + model.input_table / meshes.tp
    others = model.position_parameters + model.outer_weights + model.outer_vectors
    trains = pricing.training.trains_embedding
    return _unlayered(pricing, table + others, 0.0, trains=trains)


def head_owned(pricing: Pricing, meshes: Meshes) -> Owned:
    """Parameters of final norm, head and MTP modules on a rank.

    A tied head costs a second copy of the table where it lies on another stage.
    """
    model = pricing.model
    copies = np.where((meshes.pp > 1) | (not model.tied_embeddings), 1.0, 0.0)
    table = copies * padded_vocab(pricing, meshes) * model.hidden / meshes.tp
    vectors, trains = model.final_norm_parameters, pricing.training.trains_head
    head = _unlayered(pricing, table, vectors, trains=trains)
    return _with_modules(pricing, head, meshes) if model.mtp_layers else head


def _with_modules(workload: Workload, head: Owned, meshes: Meshes) -> Owned:
    """The head with the modules of multi-token prediction beside it."""
    model = workload.model
    module, depth = model.mtp_kind, model.mtp_layers
    module_size = module.sharded_parameters / meshes.tp + module.replicated_parameters
    projection = 2.0 * model.hidden**2 / meshes.tp + 3 * model.final_norm_parameters
    dense = depth * (module_size + projection)
    expert = depth * module.expert_parameters / (meshes.ep * meshes.etp)
    linears = depth * linear_weights(module, meshes)
    if workload.training.frozen:
        saved = [depth * s for s in quantised_savings(workload, module, meshes)]
        return replace(
            head,
            frozen=head.frozen + dense,
            frozen_expert=expert,
            quantised=linears,
            saved=saved[0],
            saved_expert=saved[1],
        )
    sums = [depth * s for s in _sums(workload, module, meshes)]
    return replace(
        head,
        dense=head.dense + dense,
        expert=expert,
        quantised=linears,
        factored=head.factored + sums[0],
        factored_expert=sums[1],
    )
