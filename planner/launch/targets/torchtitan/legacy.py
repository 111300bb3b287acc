"""Reads TOML files of torchtitan before 0.3 into settings of 0.3."""

import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

from planner.errors import BadInputError
from planner.launch.targets.torchtitan.settings import Values, renamed

SECTIONS = ("model", "training", "parallelism", "activation_checkpoint", "job")
FLOAT8 = ("quantize.linear.float8", "quantize.dense.float8", "float8")
"""Sections of the settings of float8, by release. [text]"""
MX = ("quantize.linear.mx", "quantize.dense.mx", "mx")
"""Sections of the settings of MX formats, by release. [text]"""


def is_legacy(text: str) -> bool:
    """Tell if a file is a configuration of torchtitan before 0.3.

    Returns:
        True where the file is TOML with at least two of `SECTIONS`.
    """
    try:
        found = tomllib.loads(text)
    except (ValueError, RecursionError):
        return False
    return sum(section in found for section in SECTIONS) > 1


def from_toml(name: str, text: str) -> Values:
    """Settings of a TOML file, by section and name as it writes them. [-]."""
    try:
        tree = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadInputError(f"is no TOML: {error}", file=name) from error
    return dict(_leaves(tree, ""))


def _leaves(tree: Mapping[str, Any], path: str) -> Iterator[tuple[str, Any]]:
    for key, value in tree.items():
        at = f"{path}{key}"
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{at}.")
        else:
            yield at, value


def modern(values: Values) -> Values:
    """Settings of any release under the names of 0.3.0.

    Args:
        values: Values by section and name. [-]
    """
    found = {renamed(name): value for name, value in values.items()}
    found |= _model(found) | _checkpointing(found) | _precision(found)
    backend = found.pop("parallelism.expert_parallel_comm_backend", None)
    return found | ({"dispatcher": backend} if backend else {})


def _model(values: Values) -> Values:
    """Model by name and flavour; a flavour without a name stays a setting."""
    if not {"model.name", "model.flavor"} <= values.keys():
        return {}
    name, flavour = (values.pop(f"model.{key}") for key in ("name", "flavor"))
    return {"model": ("flavour", name, flavour)}


def _checkpointing(values: Values) -> Values:
    """Recompute mode as one word, with the option of a selective mode."""
    mode = values.pop("activation_checkpoint.mode", None)
    if mode is None:
        return {}
    option = str(values.pop("activation_checkpoint.selective_ac_option", "op"))
    if mode == "selective" and option != "op":
        return {"activation_checkpoint": f"selective {option}"}
    return {"activation_checkpoint": mode}


def _precision(values: Values) -> Values:
    """Number format by converter, or by float8's switch in the oldest releases."""
    converters = values.pop("model.converters", [])
    listed = converters.split(",") if isinstance(converters, str) else converters
    switched = values.pop("float8.enable_float8_linear", False)
    inside = {name: values.pop(name) for name in list(values) if _of(name, *FLOAT8)}
    for name in [name for name in values if _of(name, *MX)]:
        values.pop(name)
    words = " ".join(map(str, listed))
    if "float8" in words or switched:
        gathered = any(
            name.endswith("enable_fsdp_float8_all_gather") and value
            for name, value in inside.items()
        )
        return {"precision": "fp8"} | ({"gathers": "fp8"} if gathered else {})
    return {"precision": "mxfp8"} if "mx" in words.split() else {}


def _of(name: str, *prefixes: str) -> bool:
    return any(name.startswith(f"{prefix}.") for prefix in prefixes)
