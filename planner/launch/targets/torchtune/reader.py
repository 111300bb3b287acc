"""Reads the YAML of a torchtune recipe into a layout and training."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from planner.errors import BadInputError
from planner.frameworks.accelerate.stack import BF16_STACK
from planner.frameworks.accelerate.switches import true
from planner.frameworks.accelerate.torchtune.lacks import MLP, OPTIMIZERS, VERSION
from planner.launch.brief import Reading
from planner.launch.shell.runs import launch_of
from planner.launch.shell.started import Started, changed
from planner.launch.sizes import HUGGING_FACE, sizes_of
from planner.launch.targets.accelerate.files import (
    block,
    parsed,
    part,
    whole,
)
from planner.launch.targets.torchtune.contradictions import (
    refuse_contradictions,
)
from planner.launch.targets.torchtune.references import resolved
from planner.launch.targets.torchtune.words import FUSED, LOSSES, PIECES, presets
from planner.launch.targets.trainers.reader import (
    Files,
    Run,
    Settings,
    TrainerReader,
)
from planner.launch.unknown import CHANGES, NOT_PRICED, Unknown

OF_SHARDS = ("custom_sharded_layers", "fsdp_cpu_offload", "fsdp_reshard_after_forward")
"""Settings that recipes with shards alone have. [text]"""
NAMES = {
    **{kind.rpartition(".")[2]: ours for ours, kind in OPTIMIZERS.items()},
    "SGD": "sgd",
    "AdamW8bit": "adamw-8bit",
}
"""The planner's name of an optimizer by its class. [text]"""
_BUILDER = re.compile(r"(?:q?lora_)?(.+)")
_RUN = re.compile(
    r"tune\s+run\b[^\n]*?\b(\w+_(?:distributed|single_device))\b", re.DOTALL
)


class _Reader(TrainerReader):
    def marked(self, files: Files) -> str | None:
        """Name of the first file that builds a model of torchtune."""
        for name, text in files.items():
            if name.endswith((".yaml", ".yml")):
                component = block(parsed(text), "model").get("_component_")
                if str(component).startswith("torchtune."):
                    return name
        return None

    def settings(self, own: Settings, command: Started, file: str) -> dict[str, Any]:
        said = command.given.items()
        spelled = {_spelled(own, name, value): value for name, value in said}
        return resolved(changed(own, spelled), file)

    def refuse(self, run: Run) -> None:
        refuse_contradictions(run.settings, run.file)
        _refuse_adapters(run)

    def reading(self, run: Run) -> Reading:
        settings, model = run.settings, run.others.model
        layout = _layout(run)
        return Reading(
            target=self.target,
            framework="accelerate",
            layout=layout,
            training=_training(run),
            model={"name": "imported", **model} if model else {},
            stack=_stack(settings),
            ignored=tuple(self.ignored(settings)),
            unknown=tuple(self.unknown(run)),
            sizes=sizes_of(model, HUGGING_FACE, file="config.json"),
            per_replica=layout["micro_batch"] * layout["grad_accum"],
            on_one_rank={} if _says_recipe(run) else {"zero_stage": 0},
            named=presets().get(_builder(settings), ""),
        )

    def strange(self, settings: Settings) -> Iterator[Unknown]:
        every = self.dialect.read | self.dialect.unpriced | self.harmless()
        for name in (name for name in map(str, settings) if name not in every):
            yield Unknown(name, why=f"no setting of a recipe of torchtune {VERSION}")

    def otherwise(self, run: Run) -> Iterator[Unknown]:
        yield from _otherwise(run.settings)
        if not _says_recipe(run):
            why = "is named by no file: one rank has one of its own, several shard"
            yield Unknown("recipe", why=why, ranks=True)


_READER = _Reader("torchtune")
reads, read = _READER.reads, _READER.read


def _spelled(own: Settings, name: str, value: object) -> str:
    """Name of a setting that a command changes: of a block with a component, that.

    Source: torchtune 0.6.1 config/_utils.py, _merge_yaml_and_cli_args.
    """
    built = isinstance(value, str) and "_component_" in block(own, name)
    return f"{name}._component_" if built else name


def _recipe_of(files: Files) -> str:
    """Recipe that a launch script names; empty without one."""
    match = _RUN.search(" ".join(launch_of(files).words))
    return match[1] if match else ""


def _builder(settings: Settings) -> str:
    """Builder of the model, without the mark of its adapters."""
    component = str(block(settings, "model").get("_component_", ""))
    match = _BUILDER.fullmatch(component.rpartition(".")[2])
    return match[1] if match else ""


def _says_recipe(run: Run) -> bool:
    of_shards = any(name in run.settings for name in OF_SHARDS)
    return of_shards or bool(_recipe_of(run.files))


def _refuse_adapters(run: Run) -> None:
    """Refuse adapters of a model whose recipe trains all its weights."""
    component = str(block(run.settings, "model").get("_component_"))
    recipe = _recipe_of(run.files)
    if "lora_" in component.rpartition(".")[2] and recipe.startswith("full_"):
        raise BadInputError(
            f"has adapters, and {recipe} trains every weight",
            file=run.file,
            field="model._component_",
            value=component,
            allowed=f"{recipe.replace('full_', 'lora_', 1)}, or a model without",
        )


def _layout(run: Run) -> dict[str, Any]:
    settings = run.settings
    after = true(settings, "fsdp_reshard_after_forward", absent=True)
    sharded = not _recipe_of(run.files).endswith("_single_device")
    layout: dict[str, Any] = {
        "pp": 1,
        "ep": 1,
        "tp": whole(settings, "tensor_parallel_dim", run.file),
        "cp": 1,
        "zero_stage": (3 if after else 2) if sharded else 0,
        "micro_batch": whole(settings, "batch_size", run.file),
        "grad_accum": whole(settings, "gradient_accumulation_steps", run.file),
    }
    full = true(settings, "enable_activation_checkpointing")
    layout["recompute"] = "full" if full else "none"
    if true(settings, "fsdp_cpu_offload"):
        kept = ("optimizer", "parameters", "gradients")
        layout["offload"] = dict.fromkeys(kept, 1.0)
    if true(settings, "enable_activation_offloading"):
        layout["offload"] = {**layout.get("offload", {}), "activations": 1.0}
    return layout


def _training(run: Run) -> dict[str, Any]:
    training: dict[str, Any] = {"precision": str(run.settings.get("dtype", "bf16"))}
    name = _optimizer(run.settings)
    if name:
        training["optimizer"] = NAMES.get(name, name)
    if block(run.settings, "optimizer").get("momentum") and name == "SGD":
        training["optimizer"] = "sgd-momentum"
    tokenizer = block(run.settings, "tokenizer")
    if tokenizer.get("max_seq_len") is not None:
        training["seq_len"] = whole(tokenizer, "max_seq_len", run.file)
    if true(run.settings, "optimizer_in_bwd"):
        training["optimizer_in_backward"] = True
    training["padding"] = "packed" if _packs(run) else "longest"
    return training | _adapters(run)


def _packs(run: Run) -> bool:
    """Tell if the texts of a row are packed, of one dataset or of a list alike.

    Source: torchtune 0.6.1 datasets/_concat.py takes packed datasets alone, or others.
    """
    dataset = run.settings.get("dataset")
    every = dataset if isinstance(dataset, list) else [dataset]
    packs = {isinstance(texts, Mapping) and true(texts, "packed") for texts in every}
    if len(packs) > 1:
        raise BadInputError(
            "is a list of packed datasets and of others",
            file=run.file,
            field="dataset",
            allowed="packed: true for all, or for none",
        )
    return packs == {True}


def _optimizer(settings: Settings) -> str:
    component = block(settings, "optimizer").get("_component_")
    return str(component).rpartition(".")[2] if component else ""


def _adapters(run: Run) -> dict[str, Any]:
    model = block(run.settings, "model")
    name = str(model["_component_"]).rpartition(".")[2]
    if not name.startswith(("lora_", "qlora_")):
        return {}
    lora: dict[str, Any] = {
        "rank": whole(model, "lora_rank", run.file, 8),
        "targets": _targets(model, run.file),
        "dropout": part(model, "lora_dropout", run.file, 0.0),
    }
    if name.startswith("qlora_") or true(model, "quantize_base"):
        bits = {"quantization": "nf4", "double_quantization": True}
        return {"method": "qlora", "lora": lora, **bits}
    return {"method": "lora", "lora": lora}


def _targets(model: Mapping[str, Any], file: str) -> str | list[str]:
    named = model.get("lora_attn_modules", [])
    if not isinstance(named, list):
        raise BadInputError(
            "is no list of linear layers",
            file=file,
            field="lora_attn_modules",
            value=named,
            allowed="q_proj, k_proj, v_proj, output_proj",
        )
    names = ["o_proj" if name == "output_proj" else str(name) for name in named]
    mlp = true(model, "apply_lora_to_mlp")
    if mlp and len(set(names)) == 4:
        return "all-linear"
    every = names + (sorted(MLP) if mlp else [])
    fused = FUSED if ".phi3." in str(model["_component_"]) else {}
    return list(dict.fromkeys(fused.get(name, name) for name in every))


def _stack(settings: Settings) -> dict[str, Any]:
    """Stack, and words of the stack block, that differ from accelerate's defaults."""
    stack: dict[str, Any] = {}
    if str(settings.get("dtype", "bf16")) == "bf16":
        stack["name"] = BF16_STACK
    word = LOSSES.get(_loss(settings), "hf")
    return stack if word == "hf" else stack | {"loss": word}


def _loss(settings: Settings) -> str:
    """Class of the loss; that of a recipe without one is PyTorch's."""
    component = block(settings, "loss").get("_component_", "CrossEntropyLoss")
    return str(component).rpartition(".")[2]


def _otherwise(settings: Settings) -> Iterator[Unknown]:
    """Settings with a value that is not priced."""
    name = _optimizer(settings)
    if name and name not in NAMES:
        yield Unknown("optimizer", name, NOT_PRICED)
    if _loss(settings) not in LOSSES:
        yield Unknown("loss", _loss(settings), CHANGES)
    pieces = block(settings, "loss").get("num_output_chunks", PIECES)
    if pieces != PIECES:
        yield Unknown("loss.num_output_chunks", pieces, CHANGES)
    for key in ("use_dora", "apply_lora_to_output"):
        if true(block(settings, "model"), key):
            yield Unknown(f"model.{key}", "true", CHANGES)
