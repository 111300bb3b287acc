"""Settings of torchtune's recipes by their use, and presets by builder."""

READ = frozenset(
    {
        "batch_size",
        "custom_sharded_layers",
        "dataset",
        "dtype",
        "enable_activation_checkpointing",
        "enable_activation_offloading",
        "fsdp_cpu_offload",
        "fsdp_reshard_after_forward",
        "gradient_accumulation_steps",
        "loss",
        "model",
        "optimizer",
        "optimizer_in_bwd",
        "tensor_parallel_dim",
        "tokenizer",
    }
)
"""Settings that a layout, a training block or a stack is read from. [text]"""
UNPRICED = frozenset(
    {"ac_mode", "ac_option", "compile", "low_cpu_ram", "tensor_parallel_plan"}
)
"""Settings that change time or memory in a way that is not read. [text]"""
HARMLESS = frozenset(
    {
        "base_model",
        "base_model_path",
        "batch_size_val",
        "checkpoint_dir",
        "checkpointer",
        "clip_grad_norm",
        "collate_fn",
        "cudnn_deterministic_mode",
        "dataset_val",
        "device",
        "enable_async_checkpointing",
        "epochs",
        "log_every_n_steps",
        "log_level",
        "log_peak_memory_stats",
        "lr_scheduler",
        "max_steps_per_epoch",
        "metric_logger",
        "model_dir",
        "output_dir",
        "profiler",
        "ref_checkpointer",
        "resume_from_checkpoint",
        "run_val_every_n_steps",
        "save_adapter_weights_only",
        "seed",
        "shuffle",
    }
)
"""Settings that change no layout, time or memory of a step. [text]

Source: torchtune 0.6.1 and main of 2025-08 recipes/, every read of cfg."""
LOSSES = {
    **dict.fromkeys(("CrossEntropyLoss", "DPOLoss", "RSOLoss"), "hf"),
    "CEWithChunkedOutputLoss": "chunked_logits",
    "LinearCrossEntropyLoss": "chunked_head",
}
"""Word of the stack block by class of a loss. [text]"""
PIECES = 8
"""Pieces of the tokens that a loss in chunks has by default, and is priced with. [1]"""
PRESETS = {
    "gemma_2b": "gemma-2b",
    "gemma_7b": "gemma-7b",
    "llama2_7b": "llama-2-7b",
    "llama2_13b": "llama-2-13b",
    "llama2_70b": "llama-2-70b",
    "llama3_8b": "llama-3-8b",
    "llama3_70b": "llama-3-70b",
    "llama3_1_8b": "llama-3.1-8b",
    "llama3_1_70b": "llama-3.1-70b",
    "llama3_1_405b": "llama-3.1-405b",
    "llama3_2_1b": "llama-3.2-1b",
    "llama3_2_3b": "llama-3.2-3b",
    "llama3_3_70b": "llama-3.1-70b",
    "mistral_7b": "mistral-7b",
    "phi3_mini": "phi-3-mini",
    "phi4_14b": "phi-4",
    "qwen2_0_5b": "qwen2.5-0.5b",
    "qwen2_1_5b": "qwen2.5-1.5b",
    "qwen2_7b": "qwen2-7b",
    "qwen2_5_0_5b": "qwen2.5-0.5b",
    "qwen2_5_1_5b_base": "qwen2.5-1.5b",
    "qwen2_5_1_5b_instruct": "qwen2.5-1.5b",
    "qwen2_5_3b": "qwen2.5-3b",
    "qwen2_5_7b_base": "qwen2.5-7b",
    "qwen2_5_7b_instruct": "qwen2.5-7b",
    "qwen2_5_14b_base": "qwen2.5-14b",
    "qwen2_5_14b_instruct": "qwen2.5-14b",
    "qwen2_5_32b_base": "qwen2.5-32b",
    "qwen2_5_32b_instruct": "qwen2.5-32b",
    "qwen2_5_72b_base": "qwen2.5-72b",
    "qwen2_5_72b_instruct": "qwen2.5-72b",
    **{
        f"qwen3_{size.replace('.', '_')}{kind}": f"qwen3-{size}"
        for size in ("0.6b", "1.7b", "4b", "8b", "14b", "32b")
        for kind in ("", "_base", "_instruct")
    },
}
"""Preset by builder, which fixes every size of a model. [text]

Source: torchtune 0.6.1 models/*/_model_builders.py; main of 2025-08 for Qwen3."""
FUSED = {
    "q_proj": "qkv_proj",
    "k_proj": "qkv_proj",
    "v_proj": "qkv_proj",
    "gate_proj": "gate_up_proj",
    "up_proj": "gate_up_proj",
}
"""Layers that torchtune splits and a checkpoint of Phi-3 has as one. [text]

As many heads of keys as of queries: adapters of q and v have as many parameters as one
of the fused layer. Source: torchtune 0.6.1 models/phi3/_convert_weights.py."""
