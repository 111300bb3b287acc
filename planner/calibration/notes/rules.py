"""Assumptions where a measured row leaves something open: read from YAML."""

from functools import cache
from importlib.resources import files

from pydantic import BaseModel, ConfigDict, Field

from planner.calibration.rows.vocabulary import ShardingWord
from planner.hardware.reading.numbers import PositiveFloat, PositiveInt
from planner.hardware.reading.yaml_text import parse_yaml
from planner.hardware.specs import FabricKind
from planner.specs.search import SearchSpec


class _Rule(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    source: str


class GpusRule(_Rule):
    """Sizes that are meant where a row names none."""

    usual: tuple[str, ...]


class CustomPart(BaseModel):
    """A GPU that its name does not tell: of one publisher's machines."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    repo: str
    """Pattern of the repository that publishes. [text]"""
    gpu: str
    """Pattern of the GPU's name. [text]"""
    memory_gb: PositiveFloat
    hbm_tb_s: PositiveFloat
    power_w: PositiveFloat


class CustomPartsRule(_Rule):
    """Machines of known publishers whose GPUs differ from the catalogue's."""

    parts: tuple[CustomPart, ...]


class LatentRule(_Rule):
    """Ranks of latent attention that a row does not give. [1]."""

    q_rank: PositiveInt
    kv_rank: PositiveInt
    nope_dim: PositiveInt
    rope_dim: PositiveInt
    value_dim: PositiveInt


class VocabularyRule(_Rule):
    """Entries of a vocabulary that a row does not state. [1]."""

    gated: PositiveInt
    """Entries of a model with gated feed-forward layers, as Llama. [1]"""
    other: PositiveInt
    """Entries of all other models, as GPT. [1]"""


class FabricRule(_Rule):
    """Network that a row does not name."""

    kind: FabricKind
    gbps: dict[str, PositiveFloat]
    """Line rate per GPU by architecture. [Gb/s]"""
    other_gbps: PositiveFloat
    """Line rate per GPU of all other architectures. [Gb/s]"""
    most: dict[str, PositiveFloat]
    """Line rate per GPU that a kind of network does not exceed. [Gb/s]"""


class InterleavingRule(_Rule):
    """Depth of interleaving that a row does not give."""

    layers_per_virtual_stage: PositiveInt
    tuned: tuple[str, ...]
    """Stacks whose runs were interleaved as deep as is fastest. [text]"""


class FinetuningRule(_Rule):
    """Recipes of fine-tuning without overlap, interleaving and recomputation."""

    plain: tuple[str, ...]
    """Stacks. [text]"""

    def holds(self, stack: str, task: str | None) -> bool:
        """Tell if a run took such a recipe.

        Returns:
            True for fine-tuning on one of the stacks.
        """
        return stack in self.plain and task not in {None, "pretrain"}


class ModuleRule(BaseModel):
    """Parts of a layer that run again when one module is recomputed."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    gemms: tuple[str, ...] = ()
    """Products that run again, by name. [text]"""
    drops: tuple[str, ...] = ()
    """Tensors that are not kept, by name. [text]"""
    core: float = Field(default=0, ge=0, le=1)
    memory_ops: float = Field(default=0, ge=0, le=1)
    collectives: float = Field(default=0, ge=0, le=1)


class ModulesRule(_Rule):
    """Selective recomputation, by module."""

    kinds: dict[str, ModuleRule]


class LongAttentionRule(_Rule):
    """Lengths whose scores nobody keeps."""

    tokens: PositiveInt
    since: float
    """Year of the software. [year]"""


class FusedLossRule(_Rule):
    """Memory of a loss that is fused with its projection."""

    logits_bytes: PositiveFloat


class DeepspeedRule(_Rule):
    """Changes by DeepSpeed's ZeRO-3 to the stack of the modelling code."""

    overlap_contention: float = Field(ge=0, le=1)
    fragmentation: float = Field(gt=0, le=1)
    own: tuple[str, ...] = ()
    """Stacks that state these values themselves. [text]"""


class SequenceParallelRule(_Rule):
    """Stacks without sequence parallelism where a row is silent."""

    without: tuple[str, ...]


class UnstatedShardingRule(_Rule):
    """Sharding of states over replicas where a row is silent."""

    kinds: dict[ShardingWord, tuple[str, ...]]
    """Stacks by word of sharding. [text]"""


class ExpertTensorRule(_Rule):
    """Stacks whose experts are whole on every tensor rank where a row is silent."""

    one: tuple[str, ...]


class AdaptersRule(_Rule):
    """Stacks whose adapters sit on QKV alone where a row is silent."""

    qkv: tuple[str, ...]


class GraphsRule(_Rule):
    """First years of graphs that hold experts, and of stacks that take them unasked."""

    experts_since: float
    """Year of the release. [year]"""
    unasked_since: dict[str, float]
    """Year from which on a stack's runs launch layers as graphs, by stack. [year]"""


class GatesRule(_Rule):
    """Last year of a stack whose gated activation is two kernels."""

    stacks: tuple[str, ...]
    until: float
    """Year of the software. [year]"""
    activation_bytes: PositiveFloat
    """Bytes per element that gate and product keep. [B]"""


class PackingRule(_Rule):
    """Stacks whose fine-tuning packs documents that attend to themselves alone."""

    stacks: tuple[str, ...]
    document: int
    """Mean length of a document. [token]"""


class LackRule(_Rule):
    """Choices that the software of some rows lacked, beside the stack's limits."""

    stacks: tuple[str, ...]
    until: PositiveFloat
    """First year of the software that has them. [year]"""
    methods: tuple[str, ...]
    """Methods of training that the lack is of. [text]"""
    search: SearchSpec
    """Search of the choices that there were. [-]"""


class Rules(BaseModel):
    """All rules for what a measured row leaves open."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    gpus: GpusRule
    custom_parts: CustomPartsRule
    latent_attention: LatentRule
    vocabulary: VocabularyRule
    fabric: FabricRule
    interleaving: InterleavingRule
    finetuning: FinetuningRule
    recompute_modules: ModulesRule
    long_attention: LongAttentionRule
    fused_loss: FusedLossRule
    deepspeed_zero3: DeepspeedRule
    sequence_parallel: SequenceParallelRule
    unstated_sharding: UnstatedShardingRule
    expert_tensor: ExpertTensorRule
    adapters: AdaptersRule
    packing: PackingRule
    gates: GatesRule
    graphs: GraphsRule
    lacks: tuple[LackRule, ...]


@cache
def rules() -> Rules:
    """Read ``planner/calibration/notes/rules.yaml``."""
    text = (files("planner.calibration.notes") / "rules.yaml").read_text("utf-8")
    return Rules.model_validate(parse_yaml(text))
