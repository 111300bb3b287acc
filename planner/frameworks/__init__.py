"""One room per training framework; a new framework is registered in this tuple."""

from importlib import import_module

from planner.specs.frameworks.framework import Framework

ROOMS = (
    "megatron",
    "torchtitan",
    "accelerate",
    "deepspeed",
)
"""Folders of the frameworks, in order of listing. [text]"""


def _framework(room: str) -> Framework:
    framework: Framework = import_module(f"{__name__}.{room}").FRAMEWORK
    return framework


FRAMEWORKS: tuple[Framework, ...] = tuple(map(_framework, ROOMS))
"""Every framework that planner knows, in order of listing."""
