"""Models of transformers as a case describes them, on whatever device is current."""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from fake_nf4 import quantise

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
recomputation = pytest.importorskip("torch.utils.checkpoint")

MASKS = ("create_causal_mask", "create_sliding_window_causal_mask")
ADAPTED = ["q_proj", "k_proj", "v_proj", "o_proj"]
KEPT_BY_SELECTIVE = (
    "mm",
    "addmm",
    "_scaled_dot_product_flash_attention",
    "_scaled_dot_product_efficient_attention",
)
"""Operators whose outputs selective recompute keeps: torchtitan's list."""


def weights_dtype(case: Any) -> Any:
    """Dtype in which parameters are made and stored."""
    sharded_in_fp32 = case.zero and case.mp
    wide = case.precision in {"fp32", "amp_bf16"} or sharded_in_fp32
    return torch.float32 if wide else torch.bfloat16


def built(case: Any) -> Any:
    """Model of a case, whole, in training."""
    fields = dict(case.model)
    family = fields.pop("family", "llama")
    if family == "llama":
        fields.setdefault("max_position_embeddings", max(8192, case.seq))
    config = transformers.AutoConfig.for_model(family, use_cache=False, **fields)
    options = {"attn_implementation": case.attention, "dtype": weights_dtype(case)}
    if case.experts_implementation:
        options["experts_implementation"] = case.experts_implementation
    model = transformers.AutoModelForCausalLM.from_config(config, **options)
    return model.train()


def decoder_layers(model: Any) -> Any:
    """List of the model's blocks."""
    for module in model.modules():
        if isinstance(module, torch.nn.ModuleList) and len(module):
            return module
    raise LookupError("no list of blocks")


def cut_to_stage(model: Any, case: Any) -> None:
    """Leave what one pipeline stage holds: its blocks, and an end where it has one."""
    core = model.model
    held = len(core.layers) // case.pp
    core.layers = torch.nn.ModuleList(list(core.layers)[:held])
    model.config.num_hidden_layers = held
    if case.stage > 0:
        core.embed_tokens = None
    if case.stage < case.pp - 1:
        model.lm_head = torch.nn.Identity()
        core.norm = torch.nn.Identity()


def recompute(model: Any, how: str) -> None:
    """Recompute blocks in backward: nothing, all of them, or all but products."""
    if how == "none":
        return
    options: dict[str, Any] = {"use_reentrant": False}
    if how == "selective":
        options["context_fn"] = _keep_products
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs=options)


def _keep_products() -> Any:
    kept = {getattr(torch.ops.aten, name).default for name in KEPT_BY_SELECTIVE}
    kept.add(torch.ops._c10d_functional.reduce_scatter_tensor.default)
    policy = recomputation.CheckpointPolicy

    def decide(_: Any, operator: Any, *_args: Any, **_kwargs: Any) -> Any:
        return policy.MUST_SAVE if operator in kept else policy.PREFER_RECOMPUTE

    return recomputation.create_selective_checkpoint_contexts(decide)


def adapted(model: Any, case: Any) -> Any:
    """Model with low-rank adapters, its own weights frozen."""
    peft = pytest.importorskip("peft")
    tuners = pytest.importorskip("peft.tuners.tuners_utils")
    lora = dict(case.lora)
    if lora.get("quant") == "nf4":
        quantise(decoder_layers(model))
    config = peft.LoraConfig(
        r=lora["r"],
        lora_alpha=16,
        lora_dropout=lora.get("dropout", 0.0),
        target_modules=list(lora.get("targets", ADAPTED)),
        use_dora=lora.get("dora", False),
    )
    dtype = torch.float32 if lora.get("fp32") else weights_dtype(case)
    with pytest.MonkeyPatch.context() as patch:
        # Adapters are made where they belong; fake tensors cannot be moved in place.
        move = "_move_adapter_to_device_of_base_layer"
        patch.setattr(tuners.BaseTunerLayer, move, lambda *_, **__: None)
        patch.setattr(torch.nn.Module, "to", lambda self, *_, **__: self)
        if lora.get("dora"):
            _with_magnitudes(pytest.importorskip("peft.tuners.lora.dora"))
        with default_dtype(dtype):
            model = peft.get_peft_model(model, config, autocast_adapter_dtype=False)
    if case.recompute != "none":
        model.enable_input_require_grads()
    return model


def _with_magnitudes(dora: Any) -> None:
    """Let DoRA unpack fake 4-bit layers, and free its unit matrices when they go.

    Under fake tensors a unit matrix is left in a cycle of references, until Python
    collects it; a real one goes when the product that is made of it goes.
    """
    layer, plain = dora.DoraLinearLayer, dora.dequantize_module_weight
    if getattr(layer, "collects", False):
        return
    run = layer.forward

    def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
        out = run(self, *args, **kwargs)
        gc.collect()
        return out

    def unpacked(base: Any) -> Any:
        return base.unpacked() if hasattr(base, "unpacked") else plain(base)

    layer.forward, layer.collects = forward, True
    dora.dequantize_module_weight = unpacked


@contextmanager
def default_dtype(dtype: Any) -> Iterator[None]:
    """Make new tensors in a dtype, for a while."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


@contextmanager
def without_masks(model: Any, case: Any) -> Iterator[None]:
    """Pass no mask where no token is padding.

    transformers takes fake tensors for tracing and then always builds the mask,
    which real training without padding does not.
    """
    with pytest.MonkeyPatch.context() as patch:
        if case.attention == "sdpa" and not case.padding:
            base = model.get_base_model() if case.lora else model
            code = sys.modules[type(base).__module__]
            for name in MASKS:
                patch.setattr(code, name, lambda **_: None, raising=False)
        yield
