"""Every mutant of the gate's mutation tests fails a test of the fast suite, too."""

import re
from collections import Counter
from pathlib import Path

import test_order_mutations as orders
import test_pool_mutations as pools
import test_price_mutations as prices
import test_pruning_mutations as pruning
import test_risk_mutations as risks
import test_search_mutations as search
import test_space_mutations as space
import test_split_backward as split
from cases import cases

PAGE = Path(__file__).resolve().parents[4] / "docs" / "proof.md"
BY_CASE = (
    pools.MUTATIONS,
    pruning.INNER,
    pruning.OUTER,
    pruning.STOPPED,
    search.INNER,
    search.BOXES,
    search.CORNERS,
    search.FIRST_TIER,
    search.JOBS,
    split.BROKEN,
)
"""Each breaks the check of one case, which the fast suite makes in `test_cases.py`."""
BY_TEST = (space.MUTATIONS, prices.MUTATIONS, risks.BROKEN, orders.BROKEN)
"""Each breaks a fast test: of spaces, of prices by hand, of the limit on the risk,
of what orders of pools share."""


def test_every_mutant_has_one_case_and_every_case_a_mutant() -> None:
    mutants = Counter(name for table in BY_CASE for name in table)
    assert mutants == Counter(name for case in cases() for name in case.shows)
    assert set(mutants.values()) == {1}


def test_the_page_counts_them() -> None:
    (said,) = re.findall(r"^The (\d+) mistakes", PAGE.read_text(), re.MULTILINE)
    assert int(said) == sum(map(len, BY_CASE + BY_TEST))
