"""Settings of ds_config.json as DeepSpeed reads them."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)
from pydantic_core import PydanticCustomError

from planner.errors import BadInputError

COPIES_AT = 3
"""ZeRO stage with a second copy of the weights (runtime/zero/stage3.py). [1]"""
OPTIMIZERS = {
    "adamw": "adamw",
    "adam": "adamw",
    "sgd": "sgd",
    "lamb": "lamb",
    "lion": "lion",
    "muon": "muon",
    "adamw_torch": "adamw",
    "adamw_torch_fused": "adamw",
    "adafactor": "adafactor",
}
"""The planner's name of an optimizer by optimizer.type, or Trainer's optim. [text]"""
AUTO = "auto"
"""Value that Trainer's DeepSpeed plugin fills in from Trainer's arguments. [text]"""


def _number(value: object) -> object:
    """Refuse text and truth values, which DeepSpeed cannot compare with 0."""
    if isinstance(value, bool | str):
        raise PydanticCustomError("number", "is no number")
    return value


def _block(value: object) -> object:
    """The block of a bare truth value: true is stage 1, false stage 0."""
    return {"stage": int(value)} if isinstance(value, bool) else value


Count = Annotated[int, Field(gt=0), BeforeValidator(_number)] | None


class _Settings(BaseModel):
    model_config = ConfigDict(extra="allow")


class _Offload(_Settings):
    device: Literal["none", "cpu", "nvme"] = "none"
    ratio: float = Field(1.0, ge=0, le=1)
    pin_memory: bool = False


class _Zero(_Settings):
    stage: int = Field(0, ge=0, le=3)
    overlap_comm: bool | None = None
    contiguous_gradients: bool = True
    cpu_offload: bool | None = None
    cpu_offload_param: bool | None = None
    offload_param: _Offload | None = None
    offload_optimizer: _Offload | None = None
    zero_hpz_partition_size: int = Field(1, ge=0)
    zero_quantized_weights: bool = False
    zero_quantized_gradients: bool = False

    @model_validator(mode="after")
    def _share_of_stage(self) -> "_Zero":
        where = self.offload_optimizer
        if where and where.device != "none" and where.ratio < 1 and self.stage != 3:
            raise ValueError("offload_optimizer.ratio below 1 needs stage 3")
        return self


class _Format(_Settings):
    enabled: bool = False


class _File(_Settings):
    """Blocks of ds_config.json that are read, in pydantic's lax words."""

    train_batch_size: Count = None
    train_micro_batch_size_per_gpu: Count = None
    gradient_accumulation_steps: Count = None
    zero_optimization: Annotated[_Zero, BeforeValidator(_block)] = _Zero()
    bf16: _Format = _Format()
    fp16: _Format = _Format()
    expert_parallel: _Format = _Format()

    @model_validator(mode="after")
    def _one_format(self) -> "_File":
        if self.bf16.enabled and self.fp16.enabled:
            raise ValueError("bf16 and fp16 are both enabled")
        return self


def as_read(given: Mapping[str, Any], file: str) -> dict[str, Any]:
    """Read settings with the values that DeepSpeed makes of them.

    Truth values take 0 and 1, true and false, yes and no, on and off; numbers take
    text. `zero_optimization: true` is stage 1. `bfloat16` is the old name of `bf16`.

    Returns:
        Settings; `auto` stays where it is, and null counts are left out. [-]

    References:
        DeepSpeed 0.19.8 runtime/config.py, runtime/config_utils.py,
        runtime/zero/config.py, runtime/precision_config.py.
    """
    its = {key: value for key, value in given.items() if key != "bfloat16"}
    if "bfloat16" in given:
        its.setdefault("bf16", given["bfloat16"])
    try:
        read = _File.model_validate(_without_auto(its)).model_dump(exclude_unset=True)
    except ValidationError as error:
        raise _refused(error, file) from error
    counts = ("train_batch_size", *_COUNTS)
    return {
        key: value
        for key, value in _merged(its, read).items()
        if key not in counts or value is not None
    }


_COUNTS = ("train_micro_batch_size_per_gpu", "gradient_accumulation_steps")


def _without_auto(its: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: _without_auto(value) if isinstance(value, Mapping) else value
        for key, value in its.items()
        if value != AUTO
    }


def _merged(given: Mapping[str, Any], read: Mapping[str, Any]) -> dict[str, Any]:
    """Settings with the values that were read in place of the given ones."""
    found = dict(given)
    for key, value in read.items():
        old = given.get(key)
        if isinstance(old, Mapping) and isinstance(value, Mapping):
            found[key] = _merged(old, value)
        else:
            found[key] = value
    return found


def _refused(error: ValidationError, file: str) -> BadInputError:
    """The first complaint, with the path of the setting."""
    first = error.errors()[0]
    path = [str(part) for part in first["loc"] if "function-" not in str(part)]
    return BadInputError(
        f"is refused by DeepSpeed: {first['msg'].removeprefix('Value error, ')}",
        file=file,
        field=".".join(path) or None,
        value=first["input"] if path and not isinstance(first["input"], dict) else None,
    )


def unused_copies(zero: Mapping[str, Any]) -> Iterator[str]:
    """Ranks of a second copy of the weights where the ZeRO stage has none."""
    size = zero.get("zero_hpz_partition_size", 1)
    if size not in (0, 1) and zero.get("stage", 0) != COPIES_AT:
        yield f"zero_optimization.zero_hpz_partition_size {size}"


def wire(its: Mapping[str, Any]) -> dict[str, Any]:
    """Format that gradients travel in, where the file gives one that a layout has."""
    given = its.get("communication_data_type")
    return {"comm_dtype": {"gradients": given}} if given in ("fp32", "bf16") else {}


def overlap(its: Mapping[str, Any]) -> dict[str, bool]:
    """Reduction of gradients that a file puts behind the last backward.

    Stage 3 is priced with its exchanges beside the layers.
    """
    block = its.get("zero_optimization")
    zero = block if isinstance(block, Mapping) else {}
    behind = zero.get("overlap_comm") is False and zero.get("stage") in (1, 2)
    return {"overlap_grad_reduce": False} if behind else {}


def optimizer(its: Mapping[str, Any]) -> dict[str, str]:
    """Optimizer that DeepSpeed makes."""
    kind, momentum = optimizer_named(its)
    if kind not in OPTIMIZERS:
        return {}
    name = OPTIMIZERS[kind]
    return {"optimizer": f"{name}-momentum" if name == "sgd" and momentum else name}


def refuse_two_optimizers(
    its: Mapping[str, Any], optim: object, names: Mapping[str, str]
) -> None:
    """Refuse a trainer's optimizer beside another one of DeepSpeed's own.

    Args:
        its: Settings of a ds_config.json. [-]
        optim: The trainer's word; None without one. [text]
        names: The planner's name by the trainer's word. [text]

    Raises:
        BadInputError: They differ; DeepSpeed's would run, and the trainer's be dropped.
    """
    kind, _ = optimizer_named(its)
    if not kind or optim is None:
        return
    if names.get(str(optim), str(optim)) != OPTIMIZERS.get(kind, kind):
        raise BadInputError(
            f"is {kind} as optimizer.type of DeepSpeed's file",
            field="optim",
            value=optim,
            allowed="one of the two alone",
        )


def optimizer_named(its: Mapping[str, Any]) -> tuple[str, object]:
    """Type of the optimizer that DeepSpeed makes, and its momentum.

    Returns:
        Type in lower case, empty without one; momentum, None without one. [-]
    """
    block = its.get("optimizer")
    given = block if isinstance(block, Mapping) else {}
    params = given.get("params")
    momentum = params.get("momentum") if isinstance(params, Mapping) else None
    return str(given.get("type", "")).lower(), momentum
