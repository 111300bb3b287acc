"""From a case to a model: family, adapters, recomputation."""

from __future__ import annotations

from collections.abc import Sequence

from planner.eager.case import EagerCase, Unsupported
from planner.eager.dora import DoraLinear
from planner.eager.engine.storage import BF16, F32
from planner.eager.engine.tape import Tape
from planner.eager.lora import LoraLinear, adapt
from planner.eager.models.decoder import CausalModel, Decoder, Setting
from planner.eager.models.families import Architecture
from planner.eager.models.gpt2 import Gpt2Block, Gpt2Decoder
from planner.eager.models.gpt_neox import NeoxBlock, NeoxDecoder
from planner.eager.models.moe import check
from planner.eager.models.opt import OptBlock, OptDecoder
from planner.eager.modules import Embedding, Linear, UnitRowsLinear
from planner.eager.variants import EMBEDDINGS, block

OWN_BLOCKS = {"gpt2": Gpt2Block, "opt": OptBlock, "gpt_neox": NeoxBlock}
OWN_DECODERS = {"gpt2": Gpt2Decoder, "opt": OptDecoder, "gpt_neox": NeoxDecoder}


def weight_type(case: EagerCase) -> str:
    """Type of the weights that the model is made with.

    Args:
        case: The case. [case]

    Returns:
        fp32 for fp32, autocast and FSDP2's mixed precision; else bf16. [name]
    """
    if case.precision in {"fp32", "amp_bf16"} or (case.zero and case.mp):
        return F32
    return BF16


def build(
    case: EagerCase, arch: Architecture, tape: Tape, depths: Sequence[int] | None = None
) -> CausalModel:
    """Make the model of a case on one GPU.

    Args:
        case: The case. [case]
        arch: Sizes and traits of the model. [architecture]
        tape: Tape that the model is made on. [tape]
        depths: Numbers of the blocks to make, from 0; all when left out. [1]

    Returns:
        The model with its parameters. [module]

    Raises:
        Unsupported: When an attention or expert kernel has no counterpart here.
    """
    dtype = weight_type(case)
    setting = Setting(tape, arch, dtype, case.attention, padding=case.padding)
    _check(case, setting)
    model = _decoder(setting, range(arch.layers) if depths is None else depths)
    model.recompute = case.recompute
    kind = UnitRowsLinear if arch.traits.unit_head else Linear
    head = kind(tape, arch.h, arch.vocabulary, dtype)
    if arch.tied:
        assert isinstance(model.embed_tokens, Embedding)
        head.weight = model.embed_tokens.weight
    cap = arch.fields.get("final_logit_softcapping") is not None
    whole = CausalModel(model, head, final_cap=cap)
    whole.scaled = arch.traits.scaled == "by_number"
    if case.lora is not None:
        adapter = DoraLinear if case.lora.dora else LoraLinear
        adapt(whole, model.layers, case.lora, dtype, adapter)
        model.grad_inputs = case.recompute != "none"
    return whole


def _check(case: EagerCase, setting: Setting) -> None:
    arch = setting.arch
    if arch.traits.softcaps and case.attention == "sdpa":
        raise Unsupported(f"{arch.family} has no sdpa attention: it caps its scores")
    if arch.traits.unit_head and case.lora is None:
        raise Unsupported(f"{arch.family}'s head where it trains")
    if arch.family == "opt":
        _check_opt(arch)
    if arch.traits.experts is not None:
        gathered = case.zero and case.mp
        check(BF16 if gathered else setting.dtype, case.experts_implementation)


def _check_opt(arch: Architecture) -> None:
    """Refuse the two small OPT models that are built in another way."""
    if arch.fields["word_embed_proj_dim"] not in {None, arch.h}:
        raise Unsupported("OPT with projected embeddings")
    if not arch.fields["do_layer_norm_before"] or not arch.fields["enable_bias"]:
        raise Unsupported("OPT with norms after its layers, or without biases")


def _decoder(setting: Setting, depths: Sequence[int]) -> Decoder:
    """Embedding, blocks and norm of a family."""
    tape, arch, dtype = setting.tape, setting.arch, setting.dtype
    embedding = EMBEDDINGS[arch.traits.scaled](tape, arch.vocabulary, arch.h, dtype)
    own = OWN_BLOCKS.get(arch.family)
    layers = [block(setting, i) if own is None else own(setting) for i in depths]
    decoder = OWN_DECODERS.get(arch.family, Decoder)
    return decoder(setting, embedding, layers, setting.norm(arch.h))
