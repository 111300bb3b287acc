"""Settings of axolotl that change the price and are not read, in words."""

from collections.abc import Iterator, Mapping
from typing import Any

from planner.frameworks.accelerate.axolotl.known import VERSION, known, unknown_keys
from planner.frameworks.accelerate.harmless import harmless
from planner.frameworks.accelerate.switches import true
from planner.frameworks.accelerate.together import on
from planner.frameworks.transformers import FLASH, strange_attention
from planner.hardware.kernels.attention import attention_word
from planner.launch.targets.accelerate.files import block
from planner.launch.targets.accelerate.trainer import evaluated
from planner.launch.unknown import CHANGES, NOT_PRICED, Unknown, unjudged

SWITCHES = {
    "flash_attention": "flash_attention_2",
    "sdp_attention": "sdpa",
    "eager_attention": "eager",
}
"""attn_implementation by the switches of releases before 0.13. [text]"""
ALONE = "without attn_implementation does not keep texts apart, which is not priced"
"""Why packed rows are refused beside no kernel: axolotl warns, and takes sdpa. [text]

Source: axolotl 0.19.0 utils/schemas/validation.py,
check_sample_packing_without_attention."""
TOGETHER = "does not keep packed texts apart, which is not priced"
"""Why attention is refused that packed rows are not priced with. [text]"""
READ = frozenset(
    {
        "accelerator_config",
        "adapter",
        "attn_implementation",
        "batch_size",
        "bf16",
        "bfloat16",
        "bnb_config_kwargs",
        "context_parallel_size",
        "deepspeed",
        "dp_replicate_size",
        "dp_shard_size",
        "eager_attention",
        "flash_attention",
        "fp16",
        "fsdp",
        "fsdp_config",
        "fsdp_version",
        "gradient_accumulation_steps",
        "gradient_checkpointing",
        "gradient_checkpointing_kwargs",
        "liger_fused_linear_cross_entropy",
        "load_in_4bit",
        "load_in_8bit",
        "lora_dropout",
        "lora_modules_to_save",
        "lora_r",
        "lora_target_linear",
        "lora_target_modules",
        "loraplus_lr_ratio",
        "micro_batch_size",
        "optim_args",
        "optimizer",
        "pad_to_sequence_len",
        "peft_autocast_adapter_dtype",
        "peft_use_dora",
        "peft_use_rslora",
        "plugins",
        "precompute_ref_log_probs",
        "ray_num_workers",
        "rl",
        "sample_packing",
        "sdp_attention",
        "sequence_len",
        "tensor_parallel_size",
        "tf32",
        "use_ray",
    }
)
"""Keys that a layout, a training block or a stack is read from. [text]"""
UNPRICED = frozenset(
    {
        "activation_offloading",
        "auto_find_batch_size",
        "batch_flattening",
        "chunked_cross_entropy",
        "ddp_bucket_cap_mb",
        "ddp_find_unused_parameters",
        "deepcompile",
        "device",
        "device_map",
        "dpo_padding_free",
        "dpo_use_liger_kernel",
        "dpo_use_logits_to_keep",
        "dpo_use_weighting",
        "ebft",
        "embeddings_skip_upcast",
        "expert_parallel_size",
        "experts_implementation",
        "flash_attn_cross_entropy",
        "flash_attn_d512",
        "flash_attn_fuse_mlp",
        "flash_attn_rms_norm",
        "flash_optimum",
        "flex_attention",
        "float16",
        "float32",
        "fp32_norm_classes",
        "fp32_norms",
        "fp8",
        "fp8_config",
        "fp8_enable_fsdp_float8_all_gather",
        "freeze_mm_modules",
        "fused_attn_kernel",
        "gc_collect_steps",
        "gc_steps",
        "gemma4_hybrid_attn_impl",
        "gpu_memory_limit",
        "gptq",
        "group_by_length",
        "heads_k_stride",
        "large_head_attention",
        "layer_offloading",
        "liger_cross_entropy",
        "liger_glu_activation",
        "liger_layer_norm",
        "liger_kernel_impl",
        "liger_rms_norm",
        "liger_rms_norm_gated",
        "liger_rope",
        "liger_swiglu",
        "lisa_n_layers",
        "llama4_linearized_experts",
        "lora_embedding_kernel",
        "lora_mlp_kernel",
        "lora_model_dir",
        "lora_o_kernel",
        "lora_qkv_kernel",
        "lora_rank_pattern",
        "lora_target_parameters",
        "max_memory",
        "max_packed_sequence_len",
        "model_config",
        "model_kwargs",
        "model_quantization_config",
        "neftune_noise_alpha",
        "noisy_embedding_alpha",
        "optim_target_modules",
        "overrides_of_model_config",
        "overrides_of_model_kwargs",
        "peft_layer_replication",
        "peft_layers_pattern",
        "peft_layers_to_transform",
        "peft_trainable_token_indices",
        "ple_cpu_offload",
        "processor_type",
        "quantize_moe_experts",
        "relora",
        "ring_attn_func",
        "s2_attention",
        "sage_attention",
        "scaling_softmax",
        "sdpa_varlen",
        "selective_checkpointing",
        "sequence_parallel_degree",
        "shrink_embeddings",
        "tiled_mlp",
        "torch_compile",
        "torch_compile_backend",
        "torch_compile_mode",
        "torch_empty_cache_steps",
        "trainer_cls",
        "unfrozen_parameters",
        "use_eaft",
        "use_kernels",
        "use_onebitllms",
        "use_pose",
        "xformers_attention",
    }
)
"""Keys that change time or memory in a way that is not read. [text]"""


def told(given: Mapping[str, Any]) -> Iterator[Unknown]:
    """Settings that are not read, and settings that are not priced."""
    for name in unknown_keys(given):
        yield Unknown(name, why=f"no key of axolotl {VERSION}")
    its = known()
    judged = READ | UNPRICED | harmless("axolotl")
    yield from unjudged(given, its.axolotl | its.liger, judged)
    for name in sorted(UNPRICED & given.keys()):
        if given[name] not in (None, False, 0):
            yield Unknown(name, given[name], CHANGES)
    yield from _otherwise(given)
    yield from evaluated(given, "eval_batch_size", "micro_batch_size")
    yield from _of_plugins(given)


def _otherwise(given: Mapping[str, Any]) -> Iterator[Unknown]:
    """Settings with a value that is not priced."""
    kernel = given.get("attn_implementation")
    if strange_attention(kernel):
        yield Unknown("attn_implementation", kernel, NOT_PRICED)
    yield from _packed(given)
    if given.get("adapter") not in (None, "", "lora", "qlora"):
        yield Unknown("adapter", given["adapter"], NOT_PRICED)
    policy = block(given, "fsdp_config", "fsdp_").get("mixed_precision_policy")
    if policy:
        yield Unknown("fsdp_config.mixed_precision_policy", policy, NOT_PRICED)
    if str(given.get("gradient_checkpointing")).startswith("offload"):
        yield Unknown("gradient_checkpointing", "offload", NOT_PRICED)
    for name in ("context_parallel_size", "tensor_parallel_size"):
        if given.get(name) not in (None, 1) and not given.get("fsdp_config"):
            yield Unknown(name, given[name], "is not priced without fsdp_config")


def _packed(given: Mapping[str, Any]) -> Iterator[Unknown]:
    """Packed rows beside a kernel that does not keep their texts apart."""
    if not true(given, "sample_packing"):
        return
    kernel = given.get("attn_implementation")
    words = {"attn_implementation": kernel, **SWITCHES}
    named = [name for name in words if on(given, name)]
    if not named:
        yield Unknown("sample_packing", given["sample_packing"], ALONE)
    for name in named:
        if attention_word(words[name]) != FLASH and not strange_attention(kernel):
            yield Unknown(name, given[name], TOGETHER)


def _of_plugins(given: Mapping[str, Any]) -> Iterator[Unknown]:
    """Plugins other than Liger's, and Liger's kernels without their plugin."""
    named = given.get("plugins")
    plugins = list(map(str, named)) if isinstance(named, list) else []
    others = [plugin for plugin in plugins if "liger" not in plugin.lower()]
    yield from (Unknown("plugins", plugin, CHANGES) for plugin in others)
    if len(others) == len(plugins):
        for name in sorted(known().liger & given.keys()):
            if given[name]:
                why = "does nothing without axolotl.integrations.liger.LigerPlugin"
                yield Unknown(name, given[name], why)
