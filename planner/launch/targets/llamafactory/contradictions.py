"""Settings that LLaMA-Factory refuses before the first step."""

from collections.abc import Mapping
from typing import Any

from planner.frameworks.accelerate.switches import true
from planner.frameworks.accelerate.together import on, wrong

OF_LORA = ("loraplus_lr_ratio", "pissa_init", "use_dora", "use_rslora")
OF_ADAPTERS = ("quantization_bit",)
OF_FULL = ("use_apollo", "use_badam", "use_galore")
"""Arguments of one finetuning_type. [text]"""
WHOLE = 3
"""ZeRO stage that shards the weights. [1]"""


def refuse_contradictions(settings: Mapping[str, Any], stage: int, file: str) -> None:
    """Refuse arguments that LLaMA-Factory's parser refuses.

    Args:
        settings: Arguments with their defaults. [-]
        stage: ZeRO stage of DeepSpeed's file; 0 without. [1]
        file: Name of the file. [text]

    Raises:
        BadInputError: Arguments go not together, or nothing is trained.

    References:
        LLaMA-Factory 0.9.5 src/llamafactory/hparams/parser.py, finetuning_args.py and
        train/tuner.py.
    """
    says = settings.get("do_train") is not None or true(settings, "do_predict")
    if says and not true(settings, "do_train"):
        raise wrong(settings, "do_train", "trains nothing", "true", file)
    kind = settings["finetuning_type"]
    for names, kinds in (
        (OF_LORA, ("lora",)),
        (OF_ADAPTERS, ("lora", "oft")),
        (OF_FULL, ("full", "freeze", "oft")),
    ):
        for name in names:
            if on(settings, name) and kind not in kinds:
                allowed = f"finetuning_type {' or '.join(kinds)}"
                what = f"goes not with finetuning_type {kind}"
                raise wrong(settings, name, what, allowed, file)
    if on(settings, "neat_packing") and settings["stage"] != "sft":
        raise wrong(settings, "neat_packing", "is of stage sft", "false", file)
    if on(settings, "pure_bf16") and stage == WHOLE:
        raise wrong(settings, "pure_bf16", "goes not with ZeRO 3", "bf16: true", file)
