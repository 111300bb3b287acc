"""Property tests are the same on every machine unless asked to explore."""

import gc
import os

import pytest
from examples import examples
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

from planner.cli.app import YOUNG

gc.disable()  # until all tests are collected: nothing of theirs is garbage
# Numbers in our own code are no examples: draws would depend on the modules that a
# process has loaded, and every process would parse all of them.
providers._get_local_constants = lambda: providers._local_constants
SLOW_DRAWS = [
    HealthCheck.too_slow,
    HealthCheck.data_too_large,
    HealthCheck.filter_too_much,
]
"""Whole jobs are large, and those with too many plans are drawn again."""
LONG = (
    "test_the_best_of_two_thousand_jobs",
    "test_five_thousand_inner_problems",
    "test_all_rows_are_priced_as_the_shipped_figures_say",
)
"""Tests of a minute and more: they start first, so that workers end together. [text]"""
for name in ("fast", "gate", "thorough"):
    settings.register_profile(
        name,
        deadline=None,
        derandomize=True,
        max_examples=examples(100),
        suppress_health_check=SLOW_DRAWS,
    )
settings.register_profile("explore", deadline=None, suppress_health_check=SLOW_DRAWS)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fast"))


def pytest_addoption(parser: pytest.Parser) -> None:
    """One flag writes goldens and shown outputs anew, with `-n0`."""
    parser.addoption("--rewrite-goldens", action="store_true", default=False)


@pytest.fixture
def rewriting(request: pytest.FixtureRequest) -> bool:
    """True where goldens are written rather than compared."""
    return bool(request.config.getoption("--rewrite-goldens"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long tests first; the others stay in their order."""
    items.sort(key=lambda item: not item.name.startswith(LONG))


def pytest_collection_finish() -> None:
    """Look for garbage among what tests make alone."""
    gc.enable()
    gc.freeze()
    gc.set_threshold(YOUNG)
