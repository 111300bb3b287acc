"""Parameters of one unit, a layer, the embedding or the head, on a rank."""

from dataclasses import dataclass

import numpy as np

from planner.cost.adapters import adapter_parameters
from planner.cost.meshes import Floats, Meshes
from planner.cost.owners import tensors_of
from planner.cost.weights import largest_matrix, linear_weights, newton_schulz_flops
from planner.cost.workload import Workload
from planner.models.blocks import LayerKind


@dataclass(frozen=True)
class Owned:
    """Parameters of one unit (a layer, the embedding, the head) on one rank."""

    dense: Floats
    """Divided by tp, or replicated. [1], shape (meshes,)"""
    expert: Floats
    """Of the local experts. [1], shape (meshes,)"""
    frozen: Floats | float = 0.0
    """Dense parameters that are held but never updated. [1], shape (meshes,)"""
    frozen_expert: Floats | float = 0.0
    """The same of the local experts. [1], shape (meshes,)"""
    quantised: Floats | float = 0.0
    """Weights of linears, of which a quantised form may be kept. [1]"""
    matrices: bool = True
    """Whether Muon updates them; embedding and head are left to Adam."""
    orthogonal: Floats | float = 0.0
    """Work of Muon's Newton-Schulz iterations. [FLOP], shape (meshes,)"""
    tensors: int = 1
    """Tensors that states are divided by where they stay whole. [1]"""
    largest: tuple[Floats | float, Floats | float] = (0.0, 0.0)
    """Shorter and longer side of the largest matrix. [1], shape (meshes,) each"""


def layer_owned(workload: Workload, layer: LayerKind, meshes: Meshes) -> Owned:
    """Parameters of one layer on a rank: ``P_s / t + P_r`` and ``P_e / (e x)``.

    With adapters those are frozen, and the adapters train.

    Args:
        workload: The job.
        layer: Kind of layer.
        meshes: Any meshes.

    Returns:
        Parameters. [1], shape (meshes,)
    """
    dense = layer.sharded_parameters / meshes.tp + layer.replicated_parameters
    expert = layer.expert_parameters / (meshes.ep * meshes.etp)
    linears = linear_weights(layer, meshes)
    largest = largest_matrix(layer, meshes)
    if workload.training.frozen:
        trained = adapter_parameters(workload, layer, meshes)
        return Owned(
            *trained,
            frozen=dense,
            frozen_expert=expert,
            quantised=linears,
            largest=largest,
        )
    return Owned(
        dense,
        expert,
        quantised=linears,
        orthogonal=newton_schulz_flops(layer, meshes),
        tensors=tensors_of(layer),
        largest=largest,
    )


def _unlayered(
    workload: Workload,
    dense: Floats,
    expert: Floats,
    table: Floats,
    linears: "Floats | float" = 0.0,
) -> Owned:
    """Parameters outside the layers: frozen when only adapters train."""
    hidden = float(workload.model.hidden)
    sides = np.minimum(hidden, table / hidden), np.maximum(hidden, table / hidden)
    if not workload.training.frozen:
        return Owned(dense, expert, quantised=linears, matrices=False, largest=sides)
    none = np.zeros(len(dense))
    return Owned(none, none, dense, expert, linears, matrices=False, largest=sides)


def padded_vocab(workload: Workload, meshes: Meshes) -> Floats:
    """Rows of the embedding: V rounded up to the framework's multiple times tp.

    Args:
        workload: The job.
        meshes: Any meshes.

    Returns:
        Rows over all tensor ranks. [1], shape (meshes,)

    References:
        Megatron-LM ``--make-vocab-size-divisible-by`` 128.
    """
    multiple = workload.recipe.vocab_multiple * meshes.tp
    vocab = workload.model.vocab
    if workload.recipe.vocab_multiple == 1:
        return np.full(len(meshes), float(vocab))
    padded: Floats = np.ceil(vocab / multiple) * multiple
    return padded


def embedding_owned(workload: Workload, meshes: Meshes) -> Owned:
    """Parameters of the embedding on a rank: ``V h / t`` and the positions.

    Args:
        workload: The job.
        meshes: Any meshes.

    Returns:
        Parameters. [1], shape (meshes,)
    """
    model = workload.model
    table = padded_vocab(workload, meshes) * model.hidden / meshes.tp
    dense = table + model.position_parameters
    return _unlayered(workload, dense, np.zeros(len(meshes)), table)


def head_owned(workload: Workload, meshes: Meshes) -> Owned:
    """Parameters of final norm, head and MTP modules on a rank.

    A tied head costs a second copy of the table where it lies on another stage.

    Args:
        workload: The job.
        meshes: Any meshes.

    Returns:
        Parameters. [1], shape (meshes,)
    """
    model = workload.model
    copies = np.where((meshes.pp > 1) | (not model.tied_embeddings), 1.0, 0.0)
    table = copies * padded_vocab(workload, meshes) * model.hidden / meshes.tp
    dense = table + model.final_norm_parameters
    expert = np.zeros(len(meshes))
    if model.mtp_layers:
        module, depth = model.mtp_kind, model.mtp_layers
        each = module.sharded_parameters / meshes.tp + module.replicated_parameters
        projection = 2.0 * model.hidden**2 / meshes.tp + 3 * model.final_norm_parameters
        dense = dense + depth * (each + projection)
        expert = depth * module.expert_parameters / (meshes.ep * meshes.etp)
        linears = depth * linear_weights(module, meshes)
        return _unlayered(workload, dense, expert, table, linears)
    return _unlayered(workload, dense, expert, table)
