"""Reads LLaMA-Factory's YAML into a layout and training."""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from planner.frameworks.accelerate.launch.known import earlier, keys
from planner.frameworks.accelerate.llamafactory.known import (
    arguments,
    unknown_arguments,
)
from planner.frameworks.accelerate.switches import true
from planner.frameworks.accelerate.variants import asked_for
from planner.launch.brief import Reading
from planner.launch.shell.runs import launch_of
from planner.launch.shell.started import Started
from planner.launch.targets.accelerate.files import Found, block, whole
from planner.launch.targets.llamafactory import projected
from planner.launch.targets.llamafactory.contradictions import (
    refuse_contradictions,
)
from planner.launch.targets.llamafactory.writer import FLASH
from planner.launch.targets.trainers.reader import (
    Files,
    Run,
    Settings,
    TrainerReader,
    adapted,
    bits_of,
)
from planner.launch.unknown import CHANGES, NOT_PRICED, Unknown

ATTENTIONS = {theirs: ours for ours, theirs in FLASH.items()}
SUBCOMMAND = re.compile(r"(.*/)?(llamafactory-cli|lmf)|llamafactory\.(cli|launcher)")
"""LLaMA-Factory's own program; other tools have a train.py too. [text]"""


class _Reader(TrainerReader):
    def reads(self, files: Files) -> bool:
        marked = self.marked(files) is not None
        return marked or self._by_name(self.command(files))

    def _by_name(self, command: Started) -> bool:
        """Tell if a command is LLaMA-Factory's, by its program or its arguments."""
        own = self.dialect.marks | {"stage"}
        by_cli = any(SUBCOMMAND.fullmatch(word) for word in command.launcher)
        return command.found and (by_cli or bool(own & command.given.keys()))

    def own_file(self, files: Files, command: Started) -> str | None:
        script = launch_of(files).file if command.found else None
        return self.marked(files) or script

    def refuse(self, run: Run) -> None:
        shards = block(run.others.zero, "zero_optimization")
        stage = whole(shards, "stage", run.file, 0, least=0)
        refuse_contradictions(run.settings, stage, run.file)

    def training(self, run: Run) -> dict[str, Any]:
        return {**_rows(run.settings), **_projects(run.settings, run.file)}

    def ranks(self, run: Run) -> int | None:
        return whole(run.settings, "ray_num_workers", run.file, 0, least=0)

    def harmless(self) -> frozenset[str]:
        every = super().harmless() | earlier().harmless
        return every - keys().training_arguments

    def known(self) -> frozenset[str]:
        return arguments() - keys().training_arguments

    def strange(self, settings: Settings) -> Iterator[Unknown]:
        for name in unknown_arguments(settings):
            yield Unknown(name, why="no argument of LLaMA-Factory")

    def otherwise(self, run: Run) -> Iterator[Unknown]:
        yield from _otherwise(run.settings)
        yield from _unpriced(run.settings)
        yield from _by_ray(run.settings, launch_of(run.files).environment)

    def reading(self, run: Run) -> Reading:
        reading = super().reading(run)
        return replace(reading, stack={**reading.stack, **_loss(run.settings)})

    def translated(self, run: Run) -> Found:
        return _translated(run.settings, run.others, run.file)


_READER = _Reader("llamafactory")
reads, read = _READER.reads, _READER.read


def _rows(settings: Settings) -> dict[str, str]:
    """Rows are padded to their longest text unless they are packed.

    Source: LLaMA-Factory 0.9.5 data/loader.py and hparams/data_args.py; pre-training
    packs unless told, and neat_packing keeps the texts of a row apart.
    """
    if true(settings, "neat_packing"):
        return {"padding": "packed"}
    packs = true(settings, "packing", absent=settings["stage"] == "pt")
    return {} if packs else {"padding": "longest"}


def _loss(settings: Settings) -> dict[str, str]:
    """Loss on pairs: whole logits, with Liger's kernels too.

    Source: LLaMA-Factory 0.9.5 train/dpo/trainer.py, concatenated_forward;
    model/model_utils/liger_kernel.py, require_logits.
    """
    return {"loss": "hf"} if settings["stage"] == "dpo" else {}


def _translated(settings: Settings, others: Found, name: str) -> Found:
    """LLaMA-Factory's arguments as the files that accelerate's target writes."""
    known = keys().training_arguments
    training = {key: value for key, value in settings.items() if key in known}
    on = not true(settings, "disable_gradient_checkpointing")
    places = {**others.places, **_autocast(settings)}
    if others.zero:
        places = {"distributed_type": "DEEPSPEED"}
    return replace(
        others,
        places=places,
        training=training | {"gradient_checkpointing": on},
        run=_run(settings, name, by_deepspeed=bool(others.zero)),
        name=name,
    )


def _autocast(settings: Settings) -> dict[str, str]:
    """accelerate.yaml of a run that computes in the format of the weights."""
    mixed = true(settings, "bf16") or true(settings, "fp16")
    return {} if mixed or not true(settings, "pure_bf16") else {"mixed_precision": "no"}


def _run(settings: Settings, name: str, *, by_deepspeed: bool) -> dict[str, Any]:
    """run.yaml of the same run."""
    fields: dict[str, Any] = {
        "seq_len": _length(settings, name),
        "weights": _weights(settings),
        "attention": ATTENTIONS.get(str(settings.get("flash_attn")), "sdpa"),
    }
    if settings["finetuning_type"] != "lora":
        return fields
    kind, double = "quantization_type", "double_quantization"
    bits = bits_of(settings.get("quantization_bit"), settings, kind, double)
    return fields | adapted(_adapters(settings), bits, wide=not by_deepspeed)


def _length(settings: Settings, name: str) -> int:
    """Tokens of a row: packing that is asked for shortens those of stage pt by one.

    Source: LLaMA-Factory 0.9.5 hparams/data_args.py takes one off cutoff_len;
    data/processor/supervised.py fills rows up to one more, pretrain.py does not.
    """
    shorter = 1 if settings["stage"] == "pt" and true(settings, "packing") else 0
    return whole(settings, "cutoff_len", name, least=1 + shorter) - shorter


def _weights(settings: Settings) -> str:
    """Format of the weights: adapters' base stays, other weights are raised to fp32."""
    if settings["finetuning_type"] != "lora" and not true(settings, "pure_bf16"):
        return "float32"
    return "float16" if true(settings, "fp16") else "bfloat16"


def _adapters(settings: Settings) -> dict[str, Any]:
    target = str(settings.get("lora_target", "all"))
    lora: dict[str, Any] = {
        "r": settings.get("lora_rank", 8),
        "lora_dropout": settings.get("lora_dropout", 0.0),
        "target_modules": "all-linear" if target == "all" else _names(target),
    }
    lora |= asked_for(settings)
    saved = settings.get("additional_target")
    return lora | ({"modules_to_save": _names(str(saved))} if saved else {})


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


def _otherwise(settings: Settings) -> Iterator[Unknown]:
    """Settings with a value that is not priced."""
    if settings["stage"] == "dpo" and settings.get("ref_model"):
        # The reference is another model than the policy before training.
        yield Unknown("ref_model", settings["ref_model"], NOT_PRICED)
    folder = settings.get("adapter_name_or_path")
    if folder and not true(settings, "create_new_adapter"):
        why = "says rank and layers of adapters in a folder that is not read"
        yield Unknown("adapter_name_or_path", folder, why)
    for name in ("freeze_vision_tower", "freeze_multi_modal_projector"):
        if settings.get(name) in (False, "false"):
            yield Unknown(name, "false", CHANGES)


def _by_ray(settings: Settings, environment: Files) -> Iterator[Unknown]:
    """Ray, whose workers are the ranks, where no argument counts them.

    Source: LLaMA-Factory 0.9.5 hparams/training_args.py, RayArguments.
    """
    by_ray = environment.get("USE_RAY", "")
    if by_ray.lower() in ("1", "true", "y") and not settings.get("ray_num_workers"):
        yield Unknown("USE_RAY", by_ray, "starts as many ranks as ray_num_workers says")


def _projects(settings: Settings, name: str) -> dict[str, Any]:
    """Optimizer and rank of gradients that are projected; empty without."""
    for ours, word in projected.WORDS.items():
        if true(settings, f"use_{word}"):
            rank = whole(settings, f"{word}_rank", name, projected.RANK)
            return {"optimizer": ours, "projection_rank": rank}
    return {}


def _unpriced(settings: Settings) -> Iterator[Unknown]:
    """Settings of projected gradients that are not priced."""
    for word in projected.WORDS.values():
        if not true(settings, f"use_{word}"):
            continue
        optim = settings.get("optim", projected.OPTIM)
        if optim != projected.OPTIM:
            yield Unknown("optim", optim, f"is not priced under use_{word}")
        if (target := settings.get(f"{word}_target", "all")) != "all":
            yield Unknown(f"{word}_target", target, NOT_PRICED)
        if true(settings, f"{word}_layerwise"):
            yield Unknown(f"{word}_layerwise", why=NOT_PRICED)
