"""Arguments of Hugging Face's Trainer, from any of the files."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from planner.errors import BadInputError
from planner.frameworks.accelerate.harmless import harmless
from planner.frameworks.accelerate.launch.known import (
    ACCELERATOR,
    FILES,
    LOSSES,
    NAMES_ONLY,
    OF_SCRIPTS,
    RANKS,
    READ,
    STARTERS,
    SWITCHES,
    UNPRICED,
    earlier,
    trainer_arguments,
    unknown_arguments,
)
from planner.frameworks.accelerate.switches import true
from planner.frameworks.accelerate.together import refuse_together
from planner.frameworks.accelerate.variants import asked_for
from planner.launch.shell.runs import launch_of
from planner.launch.shell.settings import scalar
from planner.launch.shell.values import fill_words, refuse_unset, unset
from planner.launch.unknown import CHANGES, Unknown, absent, unjudged

BATCH = "_batch_size"
EVALUATES = frozenset(
    {"do_eval", "eval_strategy", "evaluation_strategy", "eval_on_start"}
    | {"evals_per_epoch", "test_datasets", "val_set_size"}
)
"""Arguments of Trainer and axolotl that start evaluations. [text]"""
OFF = ("no", "false", "none", "0", "0.0", "")
"""Values that start none. [text]"""


@dataclass(frozen=True)
class Options:
    """Options of the launch scripts among the files.

    Attributes:
        given: Values by name of the options that are read. [-]
        strange: Options that no known program has, as written. [text]
        unset: Options whose value is a variable that no file sets, as written. [text]
        missing: Options with the names of files that are not given. [text]
    """

    given: Mapping[str, Any] = field(default_factory=dict)
    strange: tuple[str, ...] = ()
    unset: tuple[str, ...] = ()
    missing: tuple[tuple[str, str], ...] = ()


def options_of(
    files: Mapping[str, str],
    launchers: frozenset[str],
    words: Sequence[str] | None = None,
) -> Options:
    """Read the command lines of launch scripts.

    Args:
        files: Text by name; only scripts are read. [text]
        launchers: Options of a launcher that are read too. [text]
        words: Words of the command whose options are read; None for all. [text]

    Raises:
        BadInputError: An option that decides the price takes a variable that no file
            sets.
    """
    its, strange, open_ones = dict[str, Any](), list[str](), list[str]()
    missing = list[tuple[str, str]]()
    launch = launch_of(files)
    for option, value in _pairs(launch.words if words is None else words, launchers):
        shown = f"--{option} {value}".strip()
        if unset(shown):
            if option in (READ | launchers) - RANKS:
                refuse_unset(f"--{option}", value, file=launch.file)
            open_ones.append(shown)
        elif option in known_arguments() | launchers:
            its[option] = scalar(value or "true")
        elif option in FILES and value and value.rpartition("/")[2] not in files:
            missing.append((option, value))
        elif option not in STARTERS | NAMES_ONLY:
            strange.append(shown)
    return Options(its, tuple(strange), tuple(open_ones), tuple(missing))


def known_arguments() -> frozenset[str]:
    """Arguments of the trainers, and options of scripts. [-]."""
    its = trainer_arguments() | OF_SCRIPTS | UNPRICED
    return its | earlier().harmless | earlier().renamed.keys()


def _pairs(
    words: Sequence[str], launchers: frozenset[str]
) -> Iterator[tuple[str, str]]:
    """Options without dashes, each with the words up to the next option."""
    option, values, single = "", list[str](), _SINGLE | launchers
    for word in (*words, "--"):
        if not word.startswith("--"):
            values.append(word)
            continue
        if option:
            kept = values[:1] if option in single else values
            takes = option not in SWITCHES or kept in (["true"], ["false"])
            yield option, " ".join(kept) if takes else ""
        option, equals, inside = word.removeprefix("--").partition("=")
        option, values = option.replace("-", "_"), [inside] if equals else []


_SINGLE = STARTERS | (READ - {"fsdp", "lora_target_modules", "lora_modules_to_save"})
"""Options with one value; further words belong to the program. [text]"""


def told(given: Mapping[str, Any], options: Options) -> Iterator[Unknown]:
    """Settings that change the price, or may, and are not read."""
    for name in sorted(UNPRICED & given.keys()):
        if given[name] not in (None, False, 0, "no", "", "random"):
            yield Unknown(name, given[name], CHANGES)
    yield from _of_accelerator(given.get("accelerator_config"))
    yield from evaluated(given)
    if given.get("ddp_backend") not in (None, "nccl"):
        yield Unknown("ddp_backend", given["ddp_backend"], CHANGES)
    losses = given.get("loss_type") or "nll"
    for loss in losses if isinstance(losses, list) else [losses]:
        if loss not in LOSSES:
            yield Unknown("loss_type", loss, CHANGES)
    for name in unknown_arguments(given):
        if name not in OF_SCRIPTS | UNPRICED | NAMES_ONLY:
            yield Unknown(name, why="no argument of Trainer, SFTTrainer or DPOTrainer")
    judged = READ | UNPRICED | harmless("trainer")
    yield from unjudged(given, trainer_arguments(), judged)
    yield from _of_scripts(options)


def evaluated(
    given: Mapping[str, Any],
    batch: str = f"per_device_eval{BATCH}",
    trained: str = f"per_device_train{BATCH}",
) -> Iterator[Unknown]:
    """A batch of evaluation, above that of training, whose logits are not priced.

    Logits of evaluation are whole, in fp32, whatever loss training has.

    Args:
        given: Arguments of the trainer. [-]
        batch: Name of the sequences of a forward of evaluation. [text]
        trained: Name of the sequences of a forward of training. [text]

    References:
        transformers 5.23.0 trainer.py, evaluation_loop and prediction_step.
    """
    many, micro = (given.get(name) for name in (batch, trained))
    starts = (name for name in EVALUATES if str(given.get(name, "")).lower() not in OFF)
    on = any(starts) and given.get("eval_strategy") != "no"
    if on and isinstance(many, int) and many > (micro if isinstance(micro, int) else 8):
        yield Unknown(batch, many, f"above {trained}, in evaluation, is not priced")


def _of_accelerator(given: object) -> Iterator[Unknown]:
    """Keys of accelerator_config that are not read, or its file."""
    if isinstance(given, str) and given:
        yield absent("accelerator_config", given)
    for name, value in given.items() if isinstance(given, Mapping) else ():
        if name not in ACCELERATOR and value not in (None, False):
            yield Unknown(f"accelerator_config.{name}", value, CHANGES)


def with_num_steps(given: Mapping[str, Any], file: str) -> Mapping[str, Any]:
    """Arguments with the accumulation that accelerator_config asks for.

    Raises:
        BadInputError: Two settings say the accumulation.

    References:
        transformers 5.23.0 trainer.py, create_accelerator_and_postprocess.
    """
    its = given.get("accelerator_config")
    kwargs = its.get("gradient_accumulation_kwargs") if isinstance(its, Mapping) else {}
    steps = kwargs.get("num_steps") if isinstance(kwargs, Mapping) else None
    if steps is None:
        return given
    name = "gradient_accumulation_steps"
    if given.get(name, 1) not in (1, "1"):
        raise BadInputError(
            f"is said beside {name}",
            file=file,
            field="num_steps",
            value=steps,
            allowed="one of the two",
        )
    return {**given, name: steps}


def _of_scripts(options: Options) -> Iterator[Unknown]:
    """Options of launch scripts that are not read, and those that nobody sets."""
    for option, file in options.missing:
        yield absent(option, file)
    for shown in options.strange:
        yield Unknown(shown.split()[0], why="no option that is known")
    for shown in options.unset:
        if shown.removeprefix("--").split()[0] in RANKS:
            option, _, word = shown.partition(" ")
            yield Unknown(
                option,
                word,
                f"is set by no file; {fill_words(unset(shown))}",
                ranks=True,
            )


def ignored(given: Mapping[str, Any], options: Options) -> Iterator[str]:
    """Settings that change no layout, time or memory."""
    its = (harmless("trainer") | earlier().harmless | NAMES_ONLY) - READ - UNPRICED
    yield from (f"{name} {value}" for name, value in given.items() if name in its)
    yield from options.unset


def adapters_of(given: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Adapters and frozen weights that options of TRL's scripts ask for.

    Returns:
        Fields of LoraConfig, and of BitsAndBytesConfig; both empty without adapters.
        [-]

    References:
        trl/trainer/model_config.py and trl/trainer/utils.py, get_peft_config and
        get_quantization_config; the alignment handbook has options of these names.
    """
    if not true(given, "use_peft"):
        return {}, {}
    lora = {
        "r": given.get("lora_r", 16),
        "target_modules": given.get("lora_target_modules", "all-linear"),
        "lora_dropout": given.get("lora_dropout", 0.05),
        "modules_to_save": given.get("lora_modules_to_save"),
    }
    names = ("target_modules", "modules_to_save")
    lora |= {n: str(lora[n]).split() for n in names if _several(lora[n])}
    return lora | asked_for(given), _frozen(given)


def by_trl(given: Mapping[str, Any], length: object) -> dict[str, str]:
    """Way to fill rows by arguments of SFTTrainer.

    Args:
        given: Values by argument. [-]
        length: Tokens of the longest row. [token]

    Returns:
        Field of a training block; none where the arguments do not say, or cut texts
        into whole rows. [-]
    """
    if given.get("packing") is None:
        return {}
    if not true(given, "packing"):
        whole = given.get("pad_to_multiple_of") in (length, str(length))
        return {"padding": "max" if whole else "longest"}
    apart = given.get("packing_strategy", "bfd") != "wrapped"
    return {"padding": "packed"} if apart else {}


def _several(value: object) -> bool:
    return isinstance(value, str) and value != "all-linear"


def _frozen(given: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of BitsAndBytesConfig; empty where the weights stay in 16 bits."""
    if true(given, "load_in_8bit"):
        return {"load_in_8bit": True}
    if not true(given, "load_in_4bit"):
        return {}
    return {
        "load_in_4bit": True,
        "bnb_4bit_quant_type": given.get("bnb_4bit_quant_type", "nf4"),
        "bnb_4bit_use_double_quant": true(given, "use_bnb_nested_quant"),
    }


def refuse_quantised(given: Mapping[str, Any], file: str) -> None:
    """Refuse 4-bit or 8-bit weights without adapters, which cannot train.

    Raises:
        BadInputError: Weights are quantised, and no adapter is asked for; or in two
            formats, which trl/trainer/model_config.py refuses too.
    """
    refuse_together(given, (("load_in_8bit", "load_in_4bit"),), file)
    for name in ("load_in_4bit", "load_in_8bit"):
        if true(given, name) and not true(given, "use_peft"):
            raise BadInputError(
                "quantised weights train only beside adapters",
                file=file,
                field=name,
                value=given[name],
                allowed="use_peft: true with it",
            )
