"""Keys that accelerate, transformers, TRL and PEFT read; nested ones pass unread."""

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from planner.errors import BadInputError
from planner.hardware.reading.yaml_text import parse_yaml

VERSION = "1.15.0"
"""Release of accelerate that files are written for. [text]"""
TRANSFORMERS, TRL, PEFT, DEEPSPEED = "5.23.0", "1.16.0", "0.21.2", "0.19.8"
"""Releases of the other libraries that files are written for. [text]"""
FILE = Path(__file__).with_name(f"keys-{VERSION}.json")
PREFIXES = {
    "fsdp_config": "fsdp_",
    "parallelism_config": "parallelism_config_",
    "fp8_config": "fp8_",
    "dynamo_config": "dynamo_",
}
"""Prefix that a key may omit, by block of accelerate.yaml. [text]"""


LENGTHS = (
    "max_length",
    "max_seq_length",
    "model_max_length",
    "cutoff_len",
    "block_size",
)
"""Names of the sequence length; block_size is that of run_clm.py. [text]

Source: transformers 5.23.0 examples/pytorch/language-modeling/run_clm.py, whose
group_texts joins texts and cuts the stream into whole rows."""
ADAPTERS = frozenset(
    {
        "use_peft",
        "lora_r",
        "lora_alpha",
        "lora_dropout",
        "lora_target_modules",
        "lora_modules_to_save",
        "load_in_4bit",
        "load_in_8bit",
        "bnb_4bit_quant_type",
        "use_bnb_nested_quant",
        "use_dora",
        "use_rslora",
    }
)
"""Options of TRL's scripts that adapters and frozen weights are read from. [text]

Source: trl/trainer/model_config.py, ModelConfig."""
OF_SCRIPTS = frozenset({"attn_implementation", *ADAPTERS, *LENGTHS})
"""Options of TRL's and transformers' own scripts that are read. [text]"""
READ = frozenset(
    {
        "per_device_train_batch_size",
        "gradient_accumulation_steps",
        "bf16",
        "fp16",
        "tf32",
        "optim",
        "optim_args",
        "gradient_checkpointing",
        "activation_checkpointing",
        "activation_offloading",
        "fsdp",
        "fsdp_config",
        "deepspeed",
        "use_liger_kernel",
        "liger_kernel_config",
        "accelerator_config",
        "packing",
        "packing_strategy",
        "loss_type",
        "pad_to_multiple_of",
        "precompute_ref_log_probs",
        *OF_SCRIPTS,
    }
)
"""Arguments that a layout, a training block or a stack is read from. [text]"""
UNPRICED = frozenset(
    {
        "activation_checkpointing_kwargs",
        "auto_find_batch_size",
        "ddp_bucket_cap_mb",
        "ddp_find_unused_parameters",
        "ddp_static_graph",
        "debug",
        "full_determinism",
        "group_by_length",
        "is_encoder_decoder",
        "label_smoothing_factor",
        "model_init_kwargs",
        "mp_parameters",
        "neftune_noise_alpha",
        "optim_target_modules",
        "padding_free",
        "parallelism_config",
        "split_batches",
        "torch_compile",
        "torch_compile_backend",
        "torch_compile_mode",
        "torch_empty_cache_steps",
        "force_use_ref_model",
        "ref_adapter_name",
        "ref_model_init_kwargs",
        "sync_ref_model",
        "train_sampling_strategy",
        "use_cache",
        "use_cpu",
        "use_liger_loss",
        "use_logits_to_keep",
        "use_mps_device",
        "use_num_logits_to_keep",
        "use_weighting",
    }
)
"""Arguments that change time or memory in a way that is not read. [text]

Source: transformers 5.23.0 training_args.py, trl 1.16.0 sft_config.py."""
ACCELERATOR = frozenset(
    {
        "dispatch_batches",
        "even_batches",
        "gradient_accumulation_kwargs",
        "non_blocking",
        "use_configured_state",
        "use_seedable_sampler",
    }
)
"""Keys of accelerator_config that are read, or change no layout, time or memory. [text]

Source: transformers 5.23.0 trainer_pt_utils.py, AcceleratorConfig."""
LOSSES = frozenset(
    {"aot", "aot_pair", "aot_unpaired", "apo_down", "apo_zero", "bco_pair", "discopop"}
    | {"exo_pair", "hinge", "ipo", "kto_pair", "nca_pair", "robust", "sft"}
    | {"sigmoid", "sigmoid_norm", "sppo_hard"}
    | {"chunked_nll", "nll"}
)
"""Losses of DPO, which differ in formulas on the same log-probabilities, and of SFT
that are priced. [text]

Source: trl 1.16.0 dpo_config.py and sft_config.py; 0.8 to 0.24 for older names."""
NAMES_ONLY = frozenset(
    {
        "base_model",
        "model_name_or_path",
        "model_revision",
        "model_id",
        "tokenizer_name",
        "tokenizer_name_or_path",
        "trust_remote_code",
        "use_fast_tokenizer",
        "cache_dir",
        "config_name",
        "chat_template",
        "config",
        "dataset_name",
        "dataset_config",
        "dataset_config_name",
        "dataset_mixer",
        "dataset_splits",
        "dataset_train_split",
        "dataset_test_split",
        "checkpoints",
        "data",
        "data_path",
        "model",
        "steps",
        "train_file",
        "validation_file",
        "preprocessing_num_workers",
        "validation_split_percentage",
        "overwrite_cache",
        "keep_linebreaks",
        "max_train_samples",
        "max_eval_samples",
        "lora_task_type",
        "model_code_revision",
    }
)
"""Options of scripts that name models and data, and cost nothing. [text]"""
STARTERS = frozenset(
    {
        "accelerate_config",
        "config_file",
        "hostfile",
        "include",
        "exclude",
        "launcher",
        "local_rank",
        "log_dir",
        "machine_rank",
        "main_process_ip",
        "main_process_port",
        "main_training_function",
        "master_addr",
        "master_port",
        "max_restarts",
        "module",
        "multi_gpu",
        "nnodes",
        "node_rank",
        "no_local_rank",
        "no_ssh",
        "no_python",
        "nproc_per_node",
        "num_gpus",
        "num_machines",
        "num_nodes",
        "num_processes",
        "rdzv_backend",
        "rdzv_conf",
        "rdzv_endpoint",
        "rdzv_id",
        "role",
        "same_network",
        "standalone",
        "tee",
        "use_deepspeed",
        "use_fsdp",
    }
)
"""Options of torchrun and of the launchers of DeepSpeed and accelerate. [text]"""
SWITCHES = frozenset(
    {"module", "multi_gpu", "no_local_rank", "no_python", "no_ssh", "same_network"}
    | {"standalone", "use_cpu", "use_deepspeed", "use_fsdp", "use_megatron_lm"}
)
"""Options of launchers without a value: the word behind one is the program. [text]"""
FILES = frozenset({"accelerate_config", "config_file"})
"""Options that name a file of accelerate's. [text]"""
RANKS = frozenset(
    {"num_gpus", "nproc_per_node", "num_processes", "num_nodes", "nnodes"}
)
"""Options that count ranks or nodes, which a user says beside the files. [text]"""


class Keys(BaseModel):
    """Every key by the class that reads it.

    tests/frameworks/accelerate/keys.py makes the file.

    Attributes:
        versions: Releases of the libraries. [text]
        accelerate: Keys of accelerate.yaml by block; the empty name is the top. [text]
        training_arguments: Arguments of transformers' Trainer. [text]
        sft_config: Arguments of TRL's SFTTrainer. [text]
        dpo_config: Arguments of TRL's DPOTrainer. [text]
        of_weights: Fields of TRL's ModelConfig. [text]
        of_script: Fields of TRL's ScriptArguments. [text]
        of_mixture: Fields of TRL's DatasetMixtureConfig. [text]
        lora_config: Fields of PEFT's LoraConfig. [text]
        quantization: Fields of transformers' BitsAndBytesConfig. [text]
        distributed: Fields of transformers' DistributedConfig. [text]
        models: Model types with a causal language model. [text]
        split_models: Model types with a plan for tensor ranks. [text]
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    versions: dict[str, str]
    accelerate: dict[str, frozenset[str]]
    training_arguments: frozenset[str] = Field(alias="TrainingArguments")
    sft_config: frozenset[str] = Field(alias="SFTConfig")
    dpo_config: frozenset[str] = Field(alias="DPOConfig")
    of_weights: frozenset[str] = Field(alias="ModelConfig")
    of_script: frozenset[str] = Field(alias="ScriptArguments")
    of_mixture: frozenset[str] = Field(alias="DatasetMixtureConfig")
    lora_config: frozenset[str] = Field(alias="LoraConfig")
    quantization: frozenset[str] = Field(alias="BitsAndBytesConfig")
    distributed: frozenset[str] = Field(alias="DistributedConfig")
    models: frozenset[str]
    split_models: frozenset[str]


class Earlier(BaseModel):
    """Arguments that earlier releases had, and today's have not.

    Attributes:
        source: Releases that the names are from. [text]
        renamed: Name of today, by the earlier one. [text]
        harmless: Arguments that change no layout, time or memory. [text]
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    source: str
    renamed: dict[str, str]
    harmless: frozenset[str]


@cache
def earlier() -> Earlier:
    """Read the arguments of earlier releases. [-]."""
    text = Path(__file__).with_name("earlier.yaml").read_text()
    return Earlier.model_validate(parse_yaml(text))


def under_todays_names(given: Mapping[str, Any], file: str) -> dict[str, Any]:
    """Arguments under the names that today's releases have.

    Raises:
        BadInputError: An argument stands under both names, with two values.
    """
    its: dict[str, Any] = {}
    for name, value in given.items():
        today = earlier().renamed.get(str(name), str(name))
        if its.setdefault(today, value) != value:
            raise BadInputError(
                "is given twice, under its earlier name too",
                file=file,
                field=name,
                value=value,
                allowed=f"{today} alone",
            )
    return its


@cache
def keys() -> Keys:
    """Read the keys that the parsers of the libraries accept. [-]."""
    return Keys.model_validate_json(FILE.read_text())


OLDER_OF_PAIRS = frozenset(
    {
        "base_model_attribute_name",
        "force_use_ref_model",
        "generate_during_eval",
        "is_encoder_decoder",
        "label_pad_token_id",
        "max_completion_length",
        "max_prompt_length",
        "max_target_length",
        "model_adapter_name",
        "padding_value",
        "ref_adapter_name",
        "ref_model_init_kwargs",
        "reference_free",
        "rpo_alpha",
        "tools",
        "use_liger_loss",
        "use_logits_to_keep",
        "use_num_logits_to_keep",
    }
)
"""Arguments of DPOTrainer in earlier releases. [text]

Source: trl 0.9 to 0.29, trl/trainer/dpo_config.py."""


def trainer_arguments() -> frozenset[str]:
    """Arguments of Trainer, SFTTrainer and DPOTrainer. [text]."""
    its = keys()
    of_trl = its.sft_config | its.dpo_config | OLDER_OF_PAIRS
    return its.training_arguments | of_trl


def unknown_keys(settings: Mapping[str, object]) -> Iterator[str]:
    """Keys of accelerate.yaml that accelerate refuses, or passes over in a block.

    References:
        accelerate 1.15.0 commands/launch.py, _validate_launch_command: a key of a
        block becomes an attribute that nobody reads where no option has its name.
    """
    known = keys().accelerate
    for name, value in settings.items():
        if name not in known[""]:
            yield str(name)
        elif name in known and isinstance(value, Mapping):
            prefix = PREFIXES.get(name, "")
            for key in map(str, value):
                full = key if key.startswith(prefix) else prefix + key
                if full not in known[name]:
                    yield f"{name}.{key}"


def unknown_arguments(given: Mapping[str, object]) -> Iterator[str]:
    """Arguments that no trainer has."""
    known = trainer_arguments() | earlier().harmless
    yield from (str(name) for name in given if name not in known)
