"""DeepSeek-V2 to -V3.2 and GLM-5: latent attention, dense layers, fine experts."""

from typing import ClassVar, Literal, Self

from pydantic import model_validator

from planner.hardware.reading.numbers import NonNegativeInt, PositiveInt
from planner.models.architecture import Architecture, runs_of
from planner.models.config import FamilyConfig, require_at_most, require_divisible
from planner.models.layers.blocks import (
    LatentAttention,
    LayerKind,
    Mlp,
    Moe,
    SparseLatentAttention,
)


class DeepseekV2Config(FamilyConfig):
    """Fields of a DeepSeek-V2 config.

    Layer i is MoE if i >= first_k_dense_replace and moe_layer_freq divides i.
    Without q_lora_rank (V2-Lite: null) queries are projected directly. The experts of
    a token come from topk_group of n_group groups, any for the method greedy.
    Left out, and refused: attention_bias.
    """

    family: ClassVar[str] = "deepseek_v2"
    hf_class: ClassVar[str] = "DeepseekV2ForCausalLM"
    router_bias: ClassVar[bool] = False

    hidden_size: PositiveInt
    intermediate_size: PositiveInt
    moe_intermediate_size: PositiveInt
    num_hidden_layers: PositiveInt
    num_attention_heads: PositiveInt
    vocab_size: PositiveInt
    q_lora_rank: PositiveInt | None
    kv_lora_rank: PositiveInt
    qk_nope_head_dim: PositiveInt
    qk_rope_head_dim: PositiveInt
    v_head_dim: PositiveInt
    n_routed_experts: PositiveInt
    num_experts_per_tok: PositiveInt
    n_shared_experts: NonNegativeInt | None
    first_k_dense_replace: NonNegativeInt
    moe_layer_freq: PositiveInt = 1
    num_nextn_predict_layers: NonNegativeInt = 0
    n_group: PositiveInt | None = None
    topk_group: PositiveInt | None = None
    topk_method: str | None = None
    attention_bias: Literal[False] = False
    max_position_embeddings: PositiveInt | None = None
    tie_word_embeddings: bool = False

    @model_validator(mode="after")
    def _check(self) -> Self:
        require_at_most(self, "num_experts_per_tok", "n_routed_experts")
        require_at_most(self, "first_k_dense_replace", "num_hidden_layers")
        self._check_groups()
        return self

    def _check_groups(self) -> None:
        """Check that groups are equal, and that chosen groups hold enough experts."""
        if None in (self.n_group, self.topk_group):
            return
        require_divisible(self, "n_routed_experts", "n_group")
        require_at_most(self, "topk_group", "n_group")
        groups, chosen = self._groups()
        held = chosen * self.n_routed_experts // groups
        if self.num_experts_per_tok > held:
            raise ValueError(
                f"num_experts_per_tok {self.num_experts_per_tok} is more than the "
                f"{held} experts in {chosen} of {groups} groups"
            )

    def architecture(self, name: str, source: str) -> Architecture:
        """Architecture of dense layers, then MoE layers, then MTP modules.

        Args:
            name: Name for the model.
            source: Citation, URL or path of the fields.
        """
        return Architecture(
            name=name,
            family=self.family,
            hidden=self.hidden_size,
            vocab=self.vocab_size,
            runs=self._runs(),
            tied_embeddings=self.tie_word_embeddings,
            learned_positions=0,
            norm="rmsnorm",
            mtp_layers=self.num_nextn_predict_layers,
            source=source,
            max_position=self.max_position_embeddings,
        )

    def _runs(self) -> tuple[tuple[LayerKind, int], ...]:
        attention = self._attention()
        dense_mlp = Mlp(self.hidden_size, self.intermediate_size, gated=True)
        dense = LayerKind("dense", attention, dense_mlp, "rmsnorm")
        moe = LayerKind("moe", attention, self._moe(), "rmsnorm")
        return runs_of(moe if self._is_moe(i) else dense for i in self._indices())

    def _indices(self) -> range:
        return range(self.num_hidden_layers)

    def _is_moe(self, layer: int) -> bool:
        return layer >= self.first_k_dense_replace and layer % self.moe_layer_freq == 0

    def _attention(self) -> LatentAttention:
        return LatentAttention(
            hidden=self.hidden_size,
            heads=self.num_attention_heads,
            q_rank=self.q_lora_rank,
            kv_rank=self.kv_lora_rank,
            nope_dim=self.qk_nope_head_dim,
            rope_dim=self.qk_rope_head_dim,
            value_dim=self.v_head_dim,
        )

    def _moe(self) -> Moe:
        return Moe(
            hidden=self.hidden_size,
            experts=self.n_routed_experts,
            top_k=self.num_experts_per_tok,
            ffn=self.moe_intermediate_size,
            shared_ffn=(self.n_shared_experts or 0) * self.moe_intermediate_size,
            router_bias=self.router_bias,
            groups=self._groups()[0],
            top_groups=self._groups()[1],
        )

    def _groups(self) -> tuple[int, int]:
        """Groups of experts, and groups chosen for a token; both 1 for free routing."""
        free = self.n_group is None or self.topk_group is None
        if free or self.topk_method == "greedy":
            return 1, 1
        assert self.n_group is not None
        assert self.topk_group is not None
        return self.n_group, self.topk_group


class DeepseekV3Config(DeepseekV2Config):
    """Fields of a DeepSeek-V3 config: V2's, with a bias per expert in the router.

    Kimi K2 has the same blocks.

    Source: DeepSeek-V3, arXiv 2412.19437, section 2.1.2.
    """

    family: ClassVar[str] = "deepseek_v3"
    hf_class: ClassVar[str] = "DeepseekV3ForCausalLM"
    aliases: ClassVar[tuple[str, ...]] = ("kimi_k2",)
    router_bias: ClassVar[bool] = True


class DeepseekV32Config(DeepseekV3Config):
    """Fields of a DeepSeek-V3.2 config: V3's, with an indexer in every layer."""

    family: ClassVar[str] = "deepseek_v32"
    hf_class: ClassVar[str] = "DeepseekV32ForCausalLM"
    aliases: ClassVar[tuple[str, ...]] = ()

    q_lora_rank: PositiveInt
    index_n_heads: PositiveInt
    index_head_dim: PositiveInt
    index_topk: PositiveInt

    def _attention(self) -> LatentAttention:
        return SparseLatentAttention(
            **vars(super()._attention()),
            index_heads=self.index_n_heads,
            index_dim=self.index_head_dim,
            top_k=self.index_topk,
        )


class GlmMoeDsaConfig(DeepseekV32Config):
    """Fields of a GLM-5 config: the blocks of DeepSeek-V3.2.

    Left out, and refused: layers that share the index of the layer before.
    """

    family: ClassVar[str] = "glm_moe_dsa"
    hf_class: ClassVar[str] = "GlmMoeDsaForCausalLM"

    index_topk_freq: Literal[1] = 1
    index_topk_pattern: None = None
