"""The page of memory facts has each fact, with its source and its motives' rows."""

import pytest

from benchmarks.accuracy.memory_ablation import FACTS, HERE, PAGE, Fact, page


@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: fact.name)
def test_a_fact_is_on_the_page_with_its_source(fact: Fact) -> None:
    text = PAGE.read_text()
    assert f"## {fact.name}\n\nSource: {fact.source}." in text
    assert all((HERE / "rows" / f"{name}.yaml").is_file() for name in fact.motives)


def test_sources_that_a_fact_moves_are_listed_and_its_motives_marked() -> None:
    (motive, *_) = FACTS[0].motives
    whole = {motive: 0.01, "other": 0.02, "third": 0.03}
    moved = {motive: 0.05, "other": 0.02, "third": 0.04}
    first = page(whole, [moved] + [whole] * (len(FACTS) - 1)).split("\n## ")[1]
    assert f"| {motive}* | 1.0% | 5.0% |" in first
    assert "| third | 3.0% | 4.0% |" in first
    assert "| other" not in first
    assert "| average of all sources | 2.0% | 3.7% |" in first
