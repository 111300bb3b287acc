"""A model: runs of layer kinds between an embedding and a head."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby
from typing import Literal

from planner.models.layers.blocks import NORM_VECTORS, LayerKind, Norm, Role

AttentionConvention = Literal["full", "causal"]

_IS_CAUSAL: dict[AttentionConvention, bool] = {"full": False, "causal": True}


def runs_of(layers: Iterable[LayerKind]) -> tuple[tuple[LayerKind, int], ...]:
    """Layers in model order as runs of like neighbours.

    Args:
        layers: Kind of every layer. [1], shape (layers,)

    Returns:
        (kind, layers) in model order. [1], shape (runs,)
    """
    return tuple((kind, len(list(run))) for kind, run in groupby(layers))


@dataclass(frozen=True)
class Architecture:
    """A decoder-only language model.

    Counts include norms and biases, and exclude multi-token prediction (MTP) unless
    their name says so: published totals exclude it. The vocabulary is not padded.

    Args:
        name: Name of the model.
        family: Hugging Face model type that described it.
        hidden: Model width h. [1]
        vocab: Vocabulary V. [1]
        runs: (kind, layers) in model order. [1], shape (runs,)
        tied_embeddings: The head uses the embedding's weights.
        learned_positions: Rows of the learned position table; 0 for none. [1]
        norm: Kind of the final norm.
        mtp_layers: Depth of multi-token prediction. [1]
        source: Citation, URL or path of the description.
        max_position: Longest sequence the source states; None if it does not. [1]
        embedding_norm: A norm after the embedding.
        logit_cap: Bound of the head's logits, by tanh; None for no bound. [1]
        mtp_layer: Kind of the layer inside an MTP module; None for the last run's.
        input_table: Elements of the table that layers' own embeddings are from. [1]
        outer_weights: Weights of products outside layers and head. [1]
        outer_vectors: Parameters outside layers that are no product's. [1]
        fields: Config that described the model; left out of comparisons. [-]
        left_out: Sentences on parts of the config that no plan holds; left out of
            comparisons. [text]
    """

    name: str
    family: str
    hidden: int
    vocab: int
    runs: tuple[tuple[LayerKind, int], ...]
    tied_embeddings: bool
    learned_positions: int
    norm: Norm
    mtp_layers: int
    source: str
    max_position: int | None
    embedding_norm: bool = False
    logit_cap: float | None = None
    mtp_layer: LayerKind | None = None
    input_table: int = 0
    outer_weights: int = 0
    outer_vectors: int = 0
    fields: Mapping[str, object] = field(default_factory=dict, compare=False)
    left_out: tuple[str, ...] = field(default=(), compare=False)

    @property
    def layers(self) -> int:
        """Decoder layers L, without MTP."""
        return sum(count for _, count in self.runs)

    @cached_property
    def kinds(self) -> tuple[LayerKind, ...]:
        """Distinct layer kinds in order of first use.

        Returns:
            Layer kinds. [1], shape (kinds,)
        """
        return tuple(dict.fromkeys(kind for kind, _ in self.runs))

    @cached_property
    def indexed_runs(self) -> tuple[tuple[int, int], ...]:
        """Runs of layers in model order.

        Returns:
            Index into ``kinds`` and layers of every run. [1]
        """
        places = {kind: place for place, kind in enumerate(self.kinds)}
        return tuple((places[kind], count) for kind, count in self.runs)

    @property
    def shares_weights(self) -> bool:
        """Tell if some layer runs weights that an earlier one holds."""
        return any(kind.is_shared for kind in self.kinds)

    @property
    def mtp_kind(self) -> LayerKind:
        """Kind of the layer of an MTP module: its own, or the last run's; trained."""
        return replace(self.mtp_layer or self.runs[-1][0], role="trained")

    def with_frozen(self, layers: int, role: Role) -> "Architecture":
        """The model with the first layers frozen.

        Args:
            layers: Number of frozen layers. [1]
            role: Role of each frozen layer: "passed" or "below". [-]

        Returns:
            The model; frozen layers are kinds of their own, named after the role. [-]
        """
        if not layers:
            return self
        every = [kind for kind, count in self.runs for _ in range(count)]
        frozen = [
            replace(kind, name=f"{kind.name} {role}", role=role)
            for kind in every[:layers]
        ]
        return replace(self, runs=runs_of([*frozen, *every[layers:]]))

    def thawed(self) -> "Architecture":
        """The model with every layer trained again.

        Returns:
            The model as before :meth:`with_frozen`. [-]
        """
        if all(kind.role == "trained" for kind, _ in self.runs):
            return self
        layers = (
            replace(kind, name=kind.name.removesuffix(f" {kind.role}"), role="trained")
            for kind, count in self.runs
            for _ in range(count)
        )
        return replace(self, runs=runs_of(layers))

    @property
    def position_parameters(self) -> int:
        """Learned position table: positions h."""
        return self.learned_positions * self.hidden

    @property
    def embedding_parameters(self) -> int:
        """Input side: V h + positions h [+ nu h of its norm] [+ layers' own inputs]."""
        table = self.vocab * self.hidden + self.input_parameters
        return table + self.position_parameters + self.embedding_norm_parameters

    @property
    def input_parameters(self) -> int:
        """Table of the layers' own embeddings, and what is outside layers beside it."""
        return self.input_table + self.outer_weights + self.outer_vectors

    @property
    def stream_width(self) -> int:
        """Columns that one layer hands to the next: h for each copy of the stream."""
        return self.hidden * max(kind.copies for kind in self.kinds)

    @property
    def embedding_norm_parameters(self) -> int:
        """Norm after the embedding: nu h, 0 without one."""
        return self.embedding_norm * self.final_norm_parameters

    @property
    def head_parameters(self) -> int:
        """Output side: V h, 0 if tied.

        Left out: the final norm.
        """
        return 0 if self.tied_embeddings else self.vocab * self.hidden

    @property
    def final_norm_parameters(self) -> int:
        """Norm before the head: nu h."""
        return NORM_VECTORS[self.norm] * self.hidden

    @property
    def sharded_parameters(self) -> int:
        """Parameters that the tensor degree divides: layers', embedding, head."""
        layers = sum(kind.sharded_parameters * n for kind, n in self.runs)
        tables = self.vocab * self.hidden + self.input_table
        return layers + tables + self.head_parameters

    @property
    def replicated_parameters(self) -> int:
        """Parameters each tensor rank holds: layers', positions, outer norms."""
        layers = sum(kind.replicated_parameters * n for kind, n in self.runs)
        norms = self.embedding_norm_parameters + self.final_norm_parameters
        outer = self.outer_weights + self.outer_vectors
        return layers + self.position_parameters + norms + outer

    @property
    def expert_parameters(self) -> int:
        """Parameters of all routed experts."""
        return sum(kind.expert_parameters * n for kind, n in self.runs)

    @property
    def outer_parameters(self) -> int:
        """Parameters outside the layers: embedding + head + final norm."""
        return (
            self.embedding_parameters
            + self.head_parameters
            + self.final_norm_parameters
        )

    @property
    def parameters(self) -> int:
        """Parameters of the model without MTP, as published: layers + outer."""
        return self.outer_parameters + sum(k.parameters * n for k, n in self.runs)

    @property
    def active_parameters(self) -> int:
        """Parameters that one token meets, without MTP: k of E experts.

        The convention counts embedding and head in full.
        """
        layers = sum(kind.active_parameters * n for kind, n in self.runs)
        return self.outer_parameters + layers

    @property
    def mtp_parameters(self) -> int:
        """Parameters MTP adds: per depth a layer, a 2h x h projection, three norms.

        Embedding and head are those of the model.
        Source: DeepSeek-V3, arXiv 2412.19437, section 2.2.
        """
        extra = 2 * self.hidden**2 + 3 * self.final_norm_parameters
        return self.mtp_layers * (self.mtp_kind.parameters + extra)

    @property
    def trained_parameters(self) -> int:
        """Parameters that training holds: parameters + MTP."""
        return self.parameters + self.mtp_parameters

    @property
    def matmul_parameters(self) -> int:
        """Weights that one token is multiplied with: layers' N_mm + V h + outer ones.

        Left out: MTP, embedding look-up, norms, biases, experts not chosen.
        """
        layers = sum(kind.matmul_parameters * n for kind, n in self.runs)
        return layers + self.vocab * self.hidden + self.outer_weights

    @property
    def head_flops(self) -> int:
        """Forward FLOPs per token of one pass through the head: 2 h V.

        Returns:
            FLOPs per token. [FLOP]
        """
        return 2 * self.hidden * self.vocab

    def layer_flops(
        self, kind: LayerKind, seq_len: float, attention: AttentionConvention
    ) -> float:
        """Forward FLOPs per token of one layer: 2 N_mm + F_core.

        Args:
            kind: Kind of the layer.
            seq_len: Tokens in a sequence. [1]
            attention: "full" counts every score, "causal" those the mask leaves.

        Returns:
            FLOPs per token. [FLOP]
        """
        return kind.forward_flops(seq_len, causal=_IS_CAUSAL[attention])

    def mtp_flops(self, seq_len: float, attention: AttentionConvention) -> float:
        """Forward FLOPs per token of all MTP depths: layer + 2 (2 h h) + 2 h V each.

        Args:
            seq_len: Tokens in a sequence. [1]
            attention: "full" counts every score, "causal" those the mask leaves.

        Returns:
            FLOPs per token. [FLOP]
        """
        layer = self.layer_flops(self.mtp_kind, seq_len, attention)
        return self.mtp_layers * (layer + 4 * self.hidden**2 + self.head_flops)

    def model_flops_per_token(
        self, seq_len: float, attention: AttentionConvention
    ) -> float:
        """Training FLOPs per token, MTP included: 3 (sum of layers + 2 h V (1 + mtp)).

        Products outside layers and head, where a model has them, count beside.

        Backward is twice forward. Left out: recomputation, and the scores that flash
        attention computes again in backward. Published figures may exclude MTP.

        Args:
            seq_len: Tokens in a sequence. [1]
            attention: "full" counts every score, "causal" those the mask leaves.

        Returns:
            FLOPs per token. [FLOP]
        """
        layers = sum(self.layer_flops(k, seq_len, attention) * n for k, n in self.runs)
        ends = self.head_flops + 2 * self.outer_weights
        return 3 * (layers + ends + self.mtp_flops(seq_len, attention))
