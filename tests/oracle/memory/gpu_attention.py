"""Scaled dot-product attention by the kernel that CUDA would choose.

A PyTorch built without CUDA knows no kernel but the plain one, which keeps
seq x seq scores. Rules: sdp_utils.cpp of aten/native/transformers/cuda.
"""

from typing import Any

import pytest

torch = pytest.importorskip("torch")

plain = torch.nn.functional.scaled_dot_product_attention
HALF = (torch.float16, torch.bfloat16)
FLASH_HEAD = 256
"""Largest head that flash attention takes."""


def chosen_attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,  # noqa: FBT001, FBT002 -- PyTorch's own signature
    scale: float | None = None,
    enable_gqa: bool = False,  # noqa: FBT001, FBT002 -- PyTorch's own signature
) -> Any:
    """Attention with the operator that CUDA runs for these tensors.

    Flash for half precision without a mask; else the memory-efficient kernel;
    but that one has no grouped heads, and they go the plain way.
    """
    query, key, value = _autocast(query, key, value)
    if query.dtype in HALF and attn_mask is None and query.shape[-1] <= FLASH_HEAD:
        flash = torch.ops.aten._scaled_dot_product_flash_attention
        args = (dropout_p, is_causal, False)
        return flash(query, key, value, *args, scale=scale)[0]
    if enable_gqa and query.shape[1] != key.shape[1]:
        kw = {"scale": scale, "enable_gqa": True}
        return plain(query, key, value, attn_mask, dropout_p, is_causal, **kw)
    bias = None if attn_mask is None else _bias(attn_mask, query, key)
    efficient = torch.ops.aten._scaled_dot_product_efficient_attention
    args = (bias, True, dropout_p, is_causal)
    return efficient(query, key, value, *args, scale=scale)[0]


def _autocast(*tensors: Any) -> tuple[Any, ...]:
    device = tensors[0].device.type
    if device != "cuda" or not torch.is_autocast_enabled(device):
        return tensors
    dtype = torch.get_autocast_dtype(device)
    return tuple(tensor.to(dtype) for tensor in tensors)


def _bias(mask: Any, query: Any, key: Any) -> Any:
    """Additive mask over all heads; a mask of booleans becomes one of -inf first."""
    if mask.dtype == torch.bool:
        zeros = torch.zeros_like(mask, dtype=query.dtype)
        mask = zeros.masked_fill_(~mask, float("-inf"))
    return mask.expand(*query.shape[:3], key.shape[2])
