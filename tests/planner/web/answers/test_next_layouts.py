"""The page that says why links to the legal neighbours of the best plan."""

from types import SimpleNamespace

from planner.questions.explain import next_layouts
from planner.specs.answer.explanation import Explained, Neighbour
from planner.specs.layouts.layout import Layout


def beside(field: str, value: int | str, *, legal: bool = True) -> Neighbour:
    return Neighbour(change="x", field=field, value=value, effect="x", legal=legal)


def test_legal_neighbours_are_known_by_field_and_value() -> None:
    best = SimpleNamespace(layout=Layout(tp=4, pp=2, micro_batch=2, dp=4, stages=()))
    neighbours = (
        beside("pp", 1),
        beside("tp", 2),
        beside("tp", 8, legal=False),
        beside("micro_batch", 4),
        beside("recompute", "full"),
    )
    answer = Explained.model_construct(best=best, neighbours=neighbours)
    links = dict(next_layouts(answer))
    assert links.keys() == {"tp 2", "pp 1", "micro-batch 4"}
    assert "tp=2" in links["tp 2"].split(",")
