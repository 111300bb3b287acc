"""Reads arguments of Megatron-LM into a layout, a training block and a model."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import yaml

from planner.errors import BadInputError
from planner.frameworks.megatron.launch.known import (
    VERSIONS,
    deciding,
    declared,
    given,
    is_harmless,
    reason,
)
from planner.hardware.reading.yaml_text import parse_yaml
from planner.launch.brief import Reading
from planner.launch.shell.runs import launch_of
from planner.launch.sizes import MEGATRON, sizes_of
from planner.launch.targets.megatron.checks.defaults import costs_of, unpriced
from planner.launch.targets.megatron.checks.refused import refuse_contradictions
from planner.launch.targets.megatron.described import (
    OTHERS,
    SIZES,
    described,
    padded_rows,
    positions,
    stated,
)
from planner.launch.targets.megatron.placed import USED, copies_of, placed
from planner.launch.targets.megatron.variables import (
    filled,
    option_of,
    plain,
    takes_value,
    uncounted,
    untaken,
)
from planner.launch.unknown import CHANGES, NOT_PRICED, Unknown

Given = Mapping[str, Any]
STACK = {"blockwise": "blockwise", "tensorwise": "current", "delayed": "delayed"}
"""The stack's fp8 recipe by --fp8-recipe; mxfp8 is a precision. [text]"""
KERNELS = {"flash": "fa2", "unfused": "unfused", "local": "unfused"}
"""Kernel of attention by --attention-backend; the others choose by GPU. [text]"""
MOMENTS = {"bf16": 16, "fp16": 16, "fp8": 8}
"""Width of the moments by --exp-avg-dtype. [bit]"""
IMPLEMENTATION = "cross_entropy_fusion_impl"
"""Argument of the kernels of a fused loss: Megatron's own or TransformerEngine's."""
TRAINED = frozenset(
    {
        "global_batch_size",
        "seq_length",
        "fp16",
        "bf16",
        "fp8",
        "fp8_recipe",
        "fp4",
        "optimizer",
        "sgd_momentum",
        "exp_avg_dtype",
        "exp_avg_sq_dtype",
        "use_precision_aware_optimizer",
        "overlap_grad_reduce",
        "overlap_param_gather",
        "tp_comm_overlap",
        "cross_entropy_loss_fusion",
        IMPLEMENTATION,
        "overlap_moe_expert_parallel_comm",
        "moe_token_dispatcher_type",
        "moe_flex_dispatcher_backend",
        "moe_enable_deepep",
        "reuse_grad_buf_for_mxfp8_param_ag",
        "moe_grouped_gemm",
        "create_attention_mask_in_dataloader",
        "attention_backend",
        "hidden_dropout",
        "main_grads_dtype",
        "accumulate_allreduce_grads_in_fp32",
    }
)
"""Arguments that a training block or a stack is read from. [text]"""


def reads(files: Mapping[str, str]) -> bool:
    """Tell if a file looks like arguments of Megatron-LM.

    Returns:
        True where a file holds two options of: tensor degree, micro-batch, layers.
    """
    marks = ("--tensor-model-parallel-size", "--micro-batch-size", "--num-layers")
    return any(sum(mark in text for mark in marks) > 1 for text in files.values())


def read(files: Mapping[str, str]) -> Reading:
    """Read a script, an argument list or a model_config.yaml.

    Raises:
        BadInputError: No file has arguments of Megatron, or a value is wrong.
    """
    name, words = _words(files)
    reading, gpus = read_words(name, words), ranks_of(files)
    left = () if gpus else uncounted(files)
    return replace(reading, gpus=gpus, unknown=(*reading.unknown, *left))


def read_words(name: str, words: Sequence[str]) -> Reading:
    """Read words of a command line of Megatron-LM."""
    more = list(untaken(words, file=name))
    words, open_ones = filled(words, READ | deciding(), file=name)
    version, its = _given(name, words)
    its = _grouped(its)
    refuse_contradictions(its, name)
    unknown = [w for w in words if w.startswith("--") and not _known(w, version)]
    starter = [w for w in unknown if plain(w) in _STARTER]
    others = its.keys() - READ
    harmless = {name for name in others if is_harmless(name, its[name])}
    why = f"no argument of Megatron-LM {version}"
    unread = [Unknown(w, why=why) for w in dict.fromkeys(unknown) if w not in starter]
    refused = list(_shown(its, others - harmless))
    named = {each.name for each in refused}
    return Reading(
        target="megatron",
        framework="megatron",
        layout=placed(its, name),
        training=training_of(its),
        model=described(its),
        stack=stack_of(its) | costs_of(its),
        ignored=(*(each.setting for each in _shown(its, harmless)), *open_ones),
        unknown=(
            *unread,
            *(each for each in more if each.name not in named),
            *refused,
            *_unplaced(its),
            *unpriced(its),
        ),
        sizes=(
            *sizes_of(its, MEGATRON, file=name, spelled=option_of),
            *stated(its, name),
        ),
        per_replica=None
        if its.get("global_batch_size")
        else its.get("micro_batch_size"),
        copies=copies_of(its, "--num-distributed-optimizer-instances"),
    )


def _grouped(its: Given) -> dict[str, Any]:
    """Values with the groups of queries that Megatron-LM makes of them.

    Source: megatron/training/arguments.py, core_transformer_config_from_args: no
    groups without --group-query-attention.
    """
    name = "num_query_groups"
    if its.get("group_query_attention") or name not in its:
        return dict(its)
    return {**its, name: its.get("num_attention_heads")}


READ = USED | TRAINED | OTHERS | set(SIZES)
"""Arguments that a layout, a training block, a stack or a model is read from. [text]"""
_STARTER = frozenset(
    {
        "nnodes",
        "node_rank",
        "nproc_per_node",
        "master_addr",
        "master_port",
        "rdzv_backend",
        "rdzv_endpoint",
        "rdzv_id",
        "max_restarts",
        "tee",
        "log_dir",
        "standalone",
        "role",
    }
)
"""Options of torchrun, which starts the ranks. [text]"""


def _shown(its: Given, names: Iterable[str]) -> Iterator[Unknown]:
    """Settings as a user would write them."""
    for name in sorted(names):
        value = its[name]
        shown = " ".join(map(str, value)) if isinstance(value, list) else value
        switch = isinstance(value, bool)
        yield Unknown(
            option_of(name), None if switch else shown, reason(name) or CHANGES
        )


def _unplaced(its: Given) -> Iterator[Unknown]:
    """Settings that were seen and cannot be expressed in a layout or a model."""
    rows = its.get("padded_vocab_size")
    if rows and rows != padded_rows(its):
        why = f"is priced as the {padded_rows(its)} that a vocabulary is padded to"
        yield Unknown("--padded-vocab-size", rows, why)
    if positions(its) == "relative":
        yield Unknown("--position-embedding-type", "relative", NOT_PRICED)
    text = str(its.get("pipeline_model_parallel_layout") or "")
    if "m" in text and "m" not in text.rsplit("|", maxsplit=1)[-1]:
        yield Unknown(
            "--pipeline-model-parallel-layout",
            text,
            "has prediction layers on a stage of their own, which is not priced",
        )


def _words(files: Mapping[str, str]) -> tuple[str, list[str]]:
    """Words of the file with most arguments; a script is taken before its YAML twin."""
    launch = launch_of(files)
    best = launch.file, list(launch.words)
    for name in sorted(n for n in files if n.endswith((".yaml", ".yml"))):
        words = _yaml_words(files[name]) or []
        if sum(map(_is_option, words)) > sum(map(_is_option, best[1])):
            best = (name, words)
    if not best[1]:
        raise BadInputError(
            "has no arguments of Megatron-LM",
            file=", ".join(files),
            allowed="a script, or YAML with MODEL_ARGS",
        )
    return best


def _is_option(word: str) -> bool:
    return any(_known(word, version) for version in VERSIONS)


def _known(word: str, version: str) -> bool:
    return word.split("=", maxsplit=1)[0] in declared(version)


def ranks_of(files: Mapping[str, str]) -> int | None:
    """Ranks that the files start.

    Returns:
        Ranks; None where no file says them. [1]
    """
    return launch_of(files).ranks


def _yaml_words(text: str) -> list[str] | None:
    """MODEL_ARGS of a model_config.yaml as words."""
    try:
        its = parse_yaml(text)
    except (yaml.YAMLError, ValueError):
        return None
    arguments = its.get("MODEL_ARGS") if isinstance(its, dict) else None
    if not isinstance(arguments, dict):
        return None
    words: list[str] = []
    for option, value in arguments.items():
        if value is False and not takes_value(str(option)):
            continue
        # An empty list is a value, which argparse refuses behind a switch.
        values = value if isinstance(value, list) and value else [value]
        words += [str(option), *(str(v) for v in values if value is not True)]
    return words


def _given(name: str, words: Sequence[str]) -> tuple[str, dict[str, Any]]:
    """Values under the release that knows most of the options."""
    counts = {v: sum(_known(word, v) for word in words) for v in VERSIONS}
    version = max(VERSIONS, key=lambda v: counts[v])
    usable = [
        word for word in words if not word.startswith("--") or _known(word, version)
    ]
    try:
        return version, given(usable, version)
    except ValueError as error:
        raise BadInputError(
            f"is not what Megatron-LM {version} accepts: {error}", file=name
        ) from error


def training_of(its: Given) -> dict[str, Any]:
    """Fields of a training block."""
    found: dict[str, Any] = {}
    if its.get("seq_length"):
        found["seq_len"] = its["seq_length"]
    if its.get("global_batch_size"):
        found["global_batch"] = its["global_batch_size"]
    found["precision"] = _precision(its)
    found["optimizer"] = _optimizer(its)
    bits = MOMENTS.get(str(its.get("exp_avg_dtype")))
    return found | ({"state_bits": bits} if bits else {})


def _precision(its: Given) -> str:
    if its.get("fp4"):
        return "nvfp4"
    if its.get("fp8"):
        return "mxfp8" if its.get("fp8_recipe") == "mxfp8" else "fp8"
    if its.get("fp16"):
        return "fp16"
    return "bf16" if its.get("bf16") else "fp32"


def _optimizer(its: Given) -> str:
    name = str(its.get("optimizer", "adam"))
    momentum = its.get("sgd_momentum", 0.9)
    plain = "sgd-momentum" if momentum else "sgd"
    return {"adam": "adamw", "sgd": plain, "dist_muon": "muon"}.get(name, name)


def stack_of(its: Given) -> dict[str, Any]:
    """Overrides of the software stack."""
    found: dict[str, Any] = {}
    for name in ("overlap_grad_reduce", "overlap_param_gather"):
        found[name] = bool(its.get(name))
    recipe = STACK.get(str(its.get("fp8_recipe", "delayed")))
    if its.get("fp8") and recipe:
        found["fp8_recipe"] = recipe
    if kernel := KERNELS.get(str(its.get("attention_backend"))):
        found["attention"] = kernel
    if its.get("tp_comm_overlap"):
        found["tp_overlap"] = True
    if its.get("overlap_moe_expert_parallel_comm"):
        found["ep_overlap"] = True
    if its.get("cross_entropy_loss_fusion") and its.get(IMPLEMENTATION) != "te":
        found["loss"] = "fused"
    if its.get("moe_enable_deepep") or its.get("moe_token_dispatcher_type") == "flex":
        found["expert_dispatch"] = "deduplicated"
    return found
