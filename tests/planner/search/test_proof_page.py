"""The page about the proof names every rule, and nothing that is not there."""

import re
from pathlib import Path

import pytest
from examples import examples
from hypothesis import given, seed, settings
from rules_in_code import rules
from whole_jobs import whole_jobs

from planner.cost.pricing import Pricing
from planner.job.variants import variants
from planner.search.best_first import search_all

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "proof.md").read_text()
QUOTED = set(re.findall(r"`([^`]+)`", PAGE))


def pattern(rule: str) -> re.Pattern[str]:
    """A rule whose ellipses stand for any text."""
    return re.compile(".+".join(map(re.escape, rule.split("…"))))


def test_every_rule_of_the_code_is_on_the_page() -> None:
    assert rules() - QUOTED == set()


def test_the_page_has_no_rule_that_the_code_lost() -> None:
    """What is quoted first in a table of rules is a rule."""
    heads = re.findall(r"^\| (`.+?`) \|", PAGE, flags=re.MULTILINE)
    listed = {name for head in heads for name in re.findall(r"`([^`]+)`", head)}
    assert len(listed) > 30
    assert {name for name in listed if not name.endswith(".py")} <= rules()


def test_every_file_and_name_on_the_page_exists() -> None:
    tests = {path.name for path in (ROOT / "tests").rglob("*.py")}
    files = {name for name in QUOTED if name.endswith(".py")}
    assert {name for name in files if "/" not in name} <= tests
    paths = {name.replace("<name>", "megatron") for name in files if "/" in name}
    assert all((ROOT / path).is_file() for path in paths)
    for path, names in re.findall(r"`(planner/[\w/]+\.py)` \(([^)]+)\)", PAGE):
        text = (ROOT / path).read_text()
        for name in re.findall(r"`(\w+)`", names):
            assert re.search(rf"(def|class) {name}\b", text)


@pytest.mark.hypothesis
@pytest.mark.parametrize("name", ["megatron", "torchtitan", "accelerate", "deepspeed"])
def test_what_searches_count_is_on_the_page(name: str) -> None:
    """Rules as they come out, numbers and all."""
    known = [pattern(rule) for rule in rules()]

    @seed(5)
    @settings(max_examples=examples(10), print_blob=False)
    @given(whole_jobs(name, 100))
    def counted(job: Pricing) -> None:
        for outcome in search_all(variants([job]), top=1):
            for rule in outcome.pruned:
                assert any(each.fullmatch(rule) for each in known)

    counted()
