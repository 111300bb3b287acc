"""The module that is written is Python, and nothing from a plan becomes code."""

import ast
from typing import Any

import pytest
from golden_folders import ROOT, cases
from test_torchtitan_gaps import brief, with_layout, with_model, with_training

from planner.launch import emit, read_plan
from planner.launch.targets.torchtitan.writer import CONFIG, last_stage, write

NASTY = '"); import os; os.system("true")  # \\ \n'


def text_of(program: Any, name: str = CONFIG) -> str:
    (text,) = (file.text for file in program.files if file.name == name)
    return str(text)


def keywords(text: str, call: str) -> dict[str, Any]:
    """Literal values that a call in a module is given."""
    (node,) = (
        node
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == call
    )
    pairs = ((one.arg or "**", one.value) for one in node.keywords)
    return {
        k: ast.literal_eval(v)
        for k, v in pairs
        if not isinstance(v, ast.Call | ast.Name)
    }


@pytest.mark.parametrize("case", [c for target, c in cases() if target == "torchtitan"])
def test_every_module_is_python(case: str) -> None:
    found = read_plan(ROOT / "torchtitan" / case / "plan.json")
    modules = [f for f in emit(found, "torchtitan") if f.name.endswith(".py")]
    assert len(modules) in (2, 3)
    for module in modules:
        assert ast.parse(module.text).body


def test_text_of_a_model_stays_text() -> None:
    its = with_model(brief(), "deepseek-v2", scoring_func=NASTY)
    text = text_of(write(its))
    assert keywords(text, "deepseek_v3")["score"] == NASTY


def test_a_size_without_a_name_gets_a_model_of_its_own() -> None:
    named = write(with_model(brief(), "llama-3.1-8b"))
    assert 'model_registry("8B")' in text_of(named)
    shorter = write(with_model(brief(), "llama-3-8b"))
    given = keywords(text_of(shorter), "llama3")
    assert (given["layers"], given["dim"], given["scaling"]) == (32, 4096, {})
    assert "def llama3(" in text_of(shorter, "own_model.py")


def test_positions_grow_with_the_sequence() -> None:
    long = with_training(with_model(brief(), "llama-3.1-8b"), seq_len=262144)
    assert keywords(text_of(write(long)), "llama3")["positions"] == 262144


def test_zero_stages_by_what_is_given_back() -> None:
    policies = {
        (pp, zero): keywords(
            text_of(write(with_layout(brief(), pp=pp, zero_stage=zero))),
            "ParallelismConfig",
        )["fsdp_reshard_after_forward"]
        for pp in (1, 2)
        for zero in (2, 3)
    }
    assert policies == {
        (1, 2): "never",
        (1, 3): "default",
        (2, 2): "default",
        (2, 3): "always",
    }


def test_the_rank_that_knows_the_loss_is_shown() -> None:
    its = with_layout(brief(), tp=1, sp=False, pp=4, dp=2, dp_shard=2)
    assert last_stage(its.layout) == 6
    turned = with_layout(its, order="tp-cp-ep-pp-dp")
    assert last_stage(turned.layout) == 3
    assert write(turned).starter_words[0].endswith("--local-ranks-filter 0,3")


def test_processes_are_renumbered_where_the_order_is_another() -> None:
    its = with_layout(brief(), tp=2, pp=2, dp=8, dp_shard=8, order="tp-cp-ep-pp-dp")
    text = text_of(write(its))
    place = text[text.index("def place") : text.index("LAYERS = ")]
    scope: dict[str, Any] = {}
    ranks = []
    for process in range(32):
        scope["os"] = _Os(process)
        exec(place, scope)  # noqa: S102  # the emitted function itself
        scope["place"](replicas=8, stages=2, inner=2)
        scope["place"](replicas=8, stages=2, inner=2)
        ranks.append(int(scope["os"].environ["RANK"]))
    assert sorted(ranks) == list(range(32))
    # torchtitan: ((stage * replicas + replica) * tensor ranks) + tensor rank.
    assert ranks[:6] == [0, 1, 16, 17, 2, 3]


class _Os:
    def __init__(self, rank: int) -> None:
        self.environ = {"RANK": str(rank)}
