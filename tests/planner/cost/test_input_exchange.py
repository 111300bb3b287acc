"""The exchange of a layer's input over the tensor ranks is priced in one place."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def all_reduces(path: Path) -> Iterator[ast.Call]:
    """Calls that price an all-reduce over the tensor group of a context."""
    text = path.read_text()
    nodes = ast.walk(ast.parse(text if "all_reduce_time" in text else ""))
    for call in (node for node in nodes if isinstance(node, ast.Call)):
        over = list(map(ast.unparse, call.args))
        if "all_reduce_time" in ast.unparse(call.func) and "context.tensor" in over:
            yield call


def test_one_call_prices_the_all_reduce_over_the_tensor_ranks() -> None:
    paths = sorted(ROOT.glob("planner/**/*.py"))
    names = [path.name for path in paths for _ in all_reduces(path)]
    assert names == ["exchange.py"]
