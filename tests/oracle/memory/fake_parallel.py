"""Tensor parallelism of Llama-like models through DTensor, and FSDP2, as applied."""

from typing import Any

import pytest

torch = pytest.importorskip("torch")
fsdp = pytest.importorskip("torch.distributed.fsdp")
tensors = pytest.importorskip("torch.distributed.tensor")
split = pytest.importorskip("torch.distributed.tensor.parallel")


def split_tensors(model: Any, mesh: Any, case: Any) -> None:
    """Shard every weight product of a Llama-like model over ranks.

    The plan is torchtitan's (models/llama3, parallelize_llama), with tokens
    sharded between products where `case.sp`; a tied head stays tied.
    """
    ends = _ends_by_sequence() if case.sp else _ends()
    block = _block_by_sequence() if case.sp else _block()
    split.parallelize_module(model, mesh, ends)
    for layer in model.model.layers:
        split.parallelize_module(layer, mesh, block)
    if model.config.tie_word_embeddings:
        model.lm_head.weight = model.model.embed_tokens.weight


def _products(row: Any) -> dict[str, Any]:
    first = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj")
    first += ("mlp.gate_proj", "mlp.up_proj")
    plan: dict[str, Any] = {name: split.ColwiseParallel() for name in first}
    return plan | {"self_attn.o_proj": row(), "mlp.down_proj": row()}


def _block() -> dict[str, Any]:
    return _products(split.RowwiseParallel)


def _block_by_sequence() -> dict[str, Any]:
    def row() -> Any:
        return split.RowwiseParallel(output_layouts=tensors.Shard(1))

    def norm() -> Any:
        return split.SequenceParallel(use_local_output=True)

    attention = split.PrepareModuleInput(
        input_kwarg_layouts={"hidden_states": tensors.Shard(1)},
        desired_input_kwarg_layouts={"hidden_states": tensors.Replicate()},
        use_local_output=True,
    )
    mlp = split.PrepareModuleInput(
        input_layouts=(tensors.Shard(1),),
        desired_input_layouts=(tensors.Replicate(),),
        use_local_output=True,
    )
    norms = {"input_layernorm": norm(), "post_attention_layernorm": norm()}
    return _products(row) | norms | {"self_attn": attention, "mlp": mlp}


def _ends() -> dict[str, Any]:
    whole = tensors.Replicate()
    return {
        "model.embed_tokens": split.RowwiseParallel(
            input_layouts=whole, output_layouts=whole
        ),
        "lm_head": split.ColwiseParallel(
            output_layouts=tensors.Shard(-1), use_local_output=False
        ),
    }


def _ends_by_sequence() -> dict[str, Any]:
    return {
        "model.embed_tokens": split.RowwiseParallel(
            input_layouts=tensors.Replicate(), output_layouts=tensors.Shard(1)
        ),
        "model.norm": split.SequenceParallel(use_local_output=True),
        "lm_head": split.ColwiseParallel(
            input_layouts=tensors.Shard(1),
            output_layouts=tensors.Shard(-1),
            use_local_output=False,
        ),
    }


def shard_fully(model: Any, blocks: Any, mesh: Any, case: Any) -> None:
    """Apply FSDP2 to every block, then to the model for what is left."""
    half, single = torch.bfloat16, torch.float32
    mixed = fsdp.MixedPrecisionPolicy(param_dtype=half, reduce_dtype=single)
    options = {
        "mesh": mesh,
        "mp_policy": mixed if case.mp else fsdp.MixedPrecisionPolicy(),
        "reshard_after_forward": case.zero == 3,
    }
    for block in blocks:
        fsdp.fully_shard(block, **options)
    fsdp.fully_shard(model, **options)


def loss_over_ranks(logits: Any, labels: Any, mesh: Any) -> Any:
    """Cross entropy of logits whose vocabulary is sharded."""
    whole = tensors.DTensor.from_local(
        labels, mesh, [tensors.Replicate()], run_check=False
    )
    with split.loss_parallel():
        return torch.nn.functional.cross_entropy(
            logits.float().flatten(0, 1), whole.flatten()
        )
