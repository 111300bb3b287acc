"""Kernels of Liger that a trainer's arguments ask for."""

from collections.abc import Mapping
from typing import Any

from planner.frameworks.accelerate.switches import true

FUSED_LOSS = "fused_linear_cross_entropy"
"""Loss that is fused with the head. [text]"""
LIGER = frozenset({"rope", "rms_norm", "swiglu", FUSED_LOSS})
"""Kernels that are on unless they are switched off. [text]

Source: linkedin/Liger-Kernel, src/liger_kernel/transformers/monkey_patch.py."""
LIGER_STACK = "hf-liger"
"""The stack with these kernels. [text]"""


def liger(training: Mapping[str, Any]) -> frozenset[str]:
    """Kernels that use_liger_kernel and liger_kernel_config ask for.

    Returns:
        Names of kernels; empty without any. [text]

    Raises:
        BadInputError: A switch is neither on nor off.
    """
    if not true(training, "use_liger_kernel"):
        return frozenset()
    given = training.get("liger_kernel_config")
    said = given if isinstance(given, Mapping) else {}
    every = {**dict.fromkeys(LIGER, True), **said}
    return frozenset(name for name in every if true(every, name))
