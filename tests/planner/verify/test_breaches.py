"""A breach is a record: its field is the one to change, whatever the sentence says."""

from collections.abc import Callable
from typing import Any

import pytest
from broken import BROKEN
from layouts import layout
from reworded import reword

from planner.specs.frameworks.lacks import View
from planner.verify.breach import Breach
from planner.verify.legality import rule_violations

FIELDS = {
    "product": "dp",
    "kv heads": "tp",
    "sequence": "cp",
    "batch": "grad_accum",
    "shards split a context group": "dp_shard",
    "hybrid shards": "dp_shard",
    "copies of whole weights": "hpz",
    "zero stage": "zero_stage",
    "ulysses": "cp_kind",
    "cp without shards": "zero_stage",
    "shards of one rank": "dp_shard",
    "apart": "tp",
    "recompute scope": "stages.recompute",
    "chunks without the schedule": "schedule",
    "ragged groups of micro-batches": "grad_accum",
    "a lost layer": "stages",
    "experts of a dense model": "ep",
    "expert ranks": "ep",
    "experts with the pipeline inside data": "order",
    "experts with tp but no sp": "sp",
}
"""Fields of a layout that mend a breach, by the name of the broken rule. [text]"""


def breaches(name: str, workload_of: Callable[..., Any]) -> list[Breach]:
    fields, job, _ = BROKEN[name]
    return rule_violations(workload_of(**job).unwritten(), layout(fields))


@pytest.mark.parametrize("name", FIELDS)
def test_a_breach_names_the_field_to_change(
    name: str, workload_of: Callable[..., Any]
) -> None:
    (breach,) = breaches(name, workload_of)
    assert breach.field == f"layout.{FIELDS[name]}"


@pytest.mark.parametrize("name", BROKEN)
def test_fields_and_values_are_those_of_the_layout_in_any_words(
    name: str, workload_of: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    reword(monkeypatch, Breach)
    view = View(layout(BROKEN[name][0]))
    found = breaches(name, workload_of)
    assert found
    for breach in found:
        assert breach.sentence == "x"
        if breach.field.startswith("layout."):
            assert breach.value == view.value(breach.field.removeprefix("layout."))


def test_a_limit_says_what_it_allows(workload_of: Callable[..., Any]) -> None:
    (breach,) = breaches("zero stage", workload_of)
    assert (breach.value, breach.allowed) == (3, "0, 1")
