"""Targets that plans are written for, as the frameworks' rooms register them."""

from planner.frameworks import FRAMEWORKS
from planner.launch.target import Target

TARGETS: tuple[Target, ...] = tuple(
    Target(framework.name, writer)
    for framework in FRAMEWORKS
    for writer in framework.writers
)
"""Every target, in order of listing."""
