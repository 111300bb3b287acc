"""Bytes of eager PyTorch, replayed operator by operator, in place of formulas.

A recipe may name a precision policy to replay. Then ``planner.eager`` gives the saved
and the transient bytes of a block, and of the ends. A mesh or a model that the replay
has no operators for keeps the formulas.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from planner.cost.kernels import is_unfused
from planner.cost.meshes import Floats, Meshes
from planner.cost.parameters.adapters import MEGATRON_TARGETS
from planner.cost.pricing import Pricing
from planner.cost.workload import Workload
from planner.eager import (
    BlockMemory,
    EagerCase,
    EndsMemory,
    Unsupported,
    block_memory,
    ends_memory,
)
from planner.eager.models.families import families
from planner.models.layers.blocks import Attention, LayerKind, Mlp
from planner.models.layers.linears import linears
from planner.specs.training import FreezeSpec

NOTHING = "none"
"""Recompute kind that keeps everything, and policy that replays nothing. [text]"""
REPLAYED_KINDS = frozenset({"none", "full", "selective"})
"""Recompute kinds that the replay has. [text]"""
HALF = ("bf16", "fp16")
"""Compute formats of 16 bits, whose tensors are of one size. [text]"""
SHIFTED = ("upcast", "half")
"""Losses that take the logits of every sequence but the last. [text]"""
UNKNOWN = float("nan")
"""Bytes of a mesh where the formulas count. [B]"""


@dataclass(frozen=True)
class EagerEnds:
    """Bytes of the two ends. [B], shape (meshes,); nan where formulas count."""

    constants: Floats
    """Bytes kept once for all blocks: angles, masks. [B]"""
    loss: Floats
    """Most bytes that norm, head and loss have at one time. [B]"""


def replayed_block(
    pricing: Pricing, layer: LayerKind, kind: str, meshes: Meshes
) -> tuple[Floats, Floats]:
    """Saved and transient bytes of one block.

    Gradients are taken off the transient bytes. Gradients may appear late, in the room
    of the activations that go. Then all gradients that the block leaves are taken off:
    the moments add them. Elsewhere the gradients made by the time of the peak are.

    Returns:
        Saved and transient, nan where formulas count. [B], shape (meshes,) each

    As a GPU runs it: SiLU in one kernel, sums in place, flash attention with its own
    scratch.
    """
    saved, transient = (np.full(len(meshes), UNKNOWN) for _ in range(2))
    index = _index(pricing, layer)
    if index is None or kind not in REPLAYED_KINDS:
        return saved, transient
    for case, rows in replayed_cases(pricing, kind, meshes):
        block = _block(case.model_dump_json(), index)
        if block is None:
            continue
        copies = _copies_beyond(pricing, case)
        late = pricing.recipe.gradients_freed & (meshes.zero[rows] == 0)
        late = late & (meshes.micro_batches[rows] == 1)
        saved[rows] = block.saved + copies / pricing.model.layers
        transient[rows] = np.where(late, block.transient, block.working)
    return saved, transient


def replayed_ends(pricing: Pricing, meshes: Meshes) -> EagerEnds:
    """Bytes of embedding, norm, head and loss outside the blocks.

    Returns:
        The ends, nan where formulas count. [B]
    """
    constants, loss = (np.full(len(meshes), UNKNOWN) for _ in range(2))
    for case, rows in replayed_cases(pricing, NOTHING, meshes):
        ends = _ends(case.model_dump_json())
        if ends is not None:
            # Angles and masks are those of one sequence. Below zero is a first block
            # that keeps less than the others: bounds know of no end that takes less
            # than nothing, so it is counted as they are.
            several = meshes.micro_batch[rows] / case.mbs
            constants[rows] = max(ends.constants, 0) / several
            loss[rows] = ends.saved + _most(ends)
    return EagerEnds(constants, loss)


def _copies_beyond(workload: Workload, case: EagerCase) -> int:
    """Bytes that autocast's weight copies add to the loss at its fullest. [B].

    Blocks that are recomputed keep no copy for their backward, but the forward has
    all of them until it ends. The copies are booked with the blocks, evenly.
    """
    if case.precision != "amp_bf16":
        return 0
    text = case.model_dump_json()
    blocks = [(_block(text, start), count) for start, count in _starts(workload)]
    copies = sum(count * block.cached for block, count in blocks if block)
    ends = _ends(text)
    beyond = 0 if ends is None else ends.forward + copies - _most(ends)
    return max(beyond, 0)


def _most(ends: EndsMemory) -> int:
    """Most bytes of head and loss beside what they keep, forward or backward. [B]."""
    return max(ends.head_transient, ends.forward)


def _starts(workload: Workload) -> Iterator[tuple[int, int]]:
    """First block and number of blocks of every run."""
    start = 0
    for _, count in workload.model.runs:
        yield start, count
        start += count


@cache
def _block(case: str, index: int) -> BlockMemory | None:
    """Memory of one block of a case given as JSON; None where it is unsupported."""
    try:
        return block_memory(EagerCase.model_validate_json(case), index, tracked=False)
    except Unsupported:
        return None


@cache
def _ends(case: str) -> EndsMemory | None:
    """Memory of the ends of a case given as JSON; None where it is unsupported."""
    try:
        return ends_memory(EagerCase.model_validate_json(case), tracked=False)
    except Unsupported:
        return None


def _index(workload: Workload, layer: LayerKind) -> int | None:
    """First block of a kind of layer that trains; None outside the model. [1]."""
    if layer.role != "trained":
        return None
    starts = zip(workload.model.runs, _starts(workload), strict=True)
    return next((start for (kind, _), (start, _) in starts if kind == layer), None)


def replayed_cases(
    pricing: Pricing, kind: str, meshes: Meshes
) -> Iterator[tuple[EagerCase, npt.NDArray[np.int64]]]:
    """Distinct cases of the meshes that can be replayed, each with its rows.

    Yields:
        A case of one micro-batch without optimizer, and the meshes' rows. [1]
    """
    eager, legal = is_unfused(pricing), _may_replay(pricing, meshes)
    if not legal.any():
        return
    # FSDP2 computes in bf16 whatever its shards are kept in.
    cast = (meshes.zero >= 2) | (pricing.replay == "bf16")
    length = pricing.training.longest_row // meshes.cp
    # Only explicit scores and shifted logits know where one sequence ends.
    apart = eager or pricing.recipe.loss in SHIFTED
    rows_of = meshes.micro_batch if apart else np.ones(len(meshes), dtype=np.int64)
    length = meshes.micro_batch * length // rows_of
    columns = np.stack([rows_of, length, cast, meshes.tp, meshes.sp], axis=1)
    columns = columns.astype(np.int64)
    kept = columns[legal]
    for key in np.unique(kept, axis=0) if len(kept) > 1 else kept:
        sequences, tokens, in_bf16, tp, sp = (int(value) for value in key)
        rows = np.flatnonzero(legal & (columns == key).all(axis=1))
        policy = "bf16" if in_bf16 else pricing.replay
        case = EagerCase.model_validate(
            {
                "model": _fields(pricing),
                "seq": tokens,
                "mbs": sequences,
                "tp": tp,
                "world": tp,
                "sp": bool(sp),
                "attention": "eager" if eager else "sdpa",
                "precision": policy,
                "optimizer": NOTHING,
                "recompute": kind,
                "loss": pricing.recipe.loss,
                "keep_outputs": pricing.recipe.keeps_outputs,
                "lora": _lora(pricing),
                "experts_implementation": "grouped_mm",
            }
        )
        yield case, rows


def is_replayed(pricing: Pricing, meshes: Meshes) -> npt.NDArray[np.bool_]:
    """Tell where the replay has policy, formats, family, degrees and operators.

    Returns:
        True where the replay counts, else formulas do. [-], shape (meshes,)
    """
    return ~np.isnan(replayed_ends(pricing, meshes).loss)


def _may_replay(pricing: Pricing, meshes: Meshes) -> npt.NDArray[np.bool_]:
    """Tell where the replay has policy, formats, family and degrees."""
    training, model = pricing.training, pricing.model
    known = pricing.replay != NOTHING and training.precision in HALF
    known = known and model.family in families() and not model.mtp_layers
    known = known and not _special(pricing)
    plain = (meshes.tp == 1) | (not training.frozen)
    whole_sequence = (meshes.cp == 1) | (not is_unfused(pricing))
    return np.asarray(known & plain & whole_sequence)


def _special(workload: Workload) -> bool:
    """Tell if attention, frozen parts, formats or adapters are not in the replay."""
    training = workload.training
    if not all(isinstance(kind.attention, Attention) for kind in workload.kinds):
        return True
    if training.freeze != FreezeSpec():
        return True
    if not training.frozen:
        return False
    if training.lora.modules_to_save or _lora(workload) is None:
        return True
    packed = training.weight_format in (None, "nf4") and training.double_quantization
    return not packed


def _lora(workload: Workload) -> dict[str, object] | None:
    """Adapters under the names of the model's code; None where it has none."""
    training, model = workload.training, workload.model
    if not training.frozen:
        return None
    wanted = set(training.lora.modules)
    names: list[str] = []
    for linear in linears(workload.kinds[0], model.family):
        short = any(linear.gemm in MEGATRON_TARGETS.get(t, ()) for t in wanted)
        if short or linear.name in wanted or not wanted:
            names.append(linear.name)
    if not names or not isinstance(workload.kinds[0].ffn, Mlp):
        return None
    return {
        "r": training.lora.rank,
        "targets": tuple(dict.fromkeys(names)),
        "fp32": training.lora.precision == "fp32",
        "dropout": training.lora.dropout,
        "quant": "nf4" if training.method == "qlora" else None,
        "dora": bool(training.lora.dora),
    }


def _fields(workload: Workload) -> dict[str, object]:
    """The model in the words of a Hugging Face configuration."""
    model, kind = workload.model, workload.kinds[0]
    attention, ffn = kind.attention, kind.ffn
    assert isinstance(attention, Attention)
    plain: dict[str, object] = {
        "family": model.family,
        "hidden_size": model.hidden,
        "num_hidden_layers": model.layers,
        "num_attention_heads": attention.heads,
        "num_key_value_heads": attention.kv_heads,
        "head_dim": attention.head_dim,
        "vocab_size": model.vocab,
        "tie_word_embeddings": model.tied_embeddings,
    }
    if isinstance(ffn, Mlp):
        return plain | {"intermediate_size": ffn.ffn}
    return plain | {
        "intermediate_size": ffn.ffn,
        "moe_intermediate_size": ffn.ffn,
        "num_local_experts": ffn.experts,
        "num_experts": ffn.experts,
        "num_experts_per_tok": ffn.top_k,
        "shared_expert_intermediate_size": ffn.shared_ffn,
    }
