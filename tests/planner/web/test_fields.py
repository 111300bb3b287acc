"""Forms: values are kept, faults stand at their field, no path gets through."""

import inspect
import shlex
from importlib import import_module

import pytest
from hostile import PAYLOADS
from hypothesis import given
from hypothesis import strategies as st

from planner.web.answers.line import is_robust, line_of
from planner.web.commands import USUAL, command_of
from planner.web.fields import FORMS, PATHLIKE, read_form
from planner.web.question import Question
from planner.web.store import Store

JOB = [("model", "llama-3.1-8b"), ("on", "8xh100")]


def test_a_form_keeps_every_value_and_marks_the_wrong_ones() -> None:
    form = read_form("plan", [*JOB, ("seq_len", "many"), ("method", "magic")])
    assert form.values["seq_len"] == "many"
    assert sorted(form.faults) == ["method", "seq_len"]
    assert not form.ready


@pytest.mark.parametrize(
    "path",
    ["/etc/passwd", "~/job.yaml", "../config.json", "./x", "a\\b", "http://host/x"],
)
@pytest.mark.parametrize("field", ["model", "on", "network", "layout"])
def test_a_path_is_no_name(field: str, path: str) -> None:
    given = dict(JOB) | {field: path}
    assert field in read_form("memory", list(given.items())).faults


def test_names_of_people_are_no_paths() -> None:
    names = ("Qwen/Qwen2.5-7B", "2 nodes of 8 A100-40 over 25 GbE", "64 x MI300X")
    assert [name for name in names if PATHLIKE.search(name)] == []


@given(st.text(max_size=30))
def test_any_text_is_read_again_from_its_own_address(text: str) -> None:
    """What the user wrote comes back from the address, whatever it is."""
    from urllib.parse import parse_qsl  # noqa: PLC0415

    form = read_form("plan", [*JOB, ("tokens", text)])
    again = read_form("plan", parse_qsl(form.query, keep_blank_values=True))
    assert again == form


def test_a_form_says_its_command() -> None:
    more = [("method", "lora"), ("seq_len", "2048"), ("network", "25 GbE")]
    words = shlex.split(command_of(read_form("plan", [*JOB, *more])))
    assert words[:6] == ["planner", "plan", "--model", "llama-3.1-8b", "--on", "8xh100"]
    assert words[6:10] == ["--method", "lora", "--seq-len", "2048"]
    assert words[10:] == ["--network", "25 GbE"]


def test_a_command_has_the_time_limit_of_the_server_where_it_is_not_its_own() -> None:
    plan = read_form("plan", JOB)
    assert command_of(plan, 120.0) == command_of(plan)
    assert command_of(plan, 5.0).endswith(" --time-limit 5")
    assert command_of(read_form("what-if", JOB), 1.0) == command_of(plan).replace(
        "8xh100", "8xh100-sxm5-80gb"
    )
    compare = read_form("compare", [*JOB, ("tokens", "1B")])
    line = "planner compare purchase.yaml --time-limit 120"
    assert command_of(compare, 120.0) == line


def test_the_usual_time_limits_are_those_of_the_commands() -> None:
    for name, usual in USUAL.items():
        command = getattr(import_module(f"planner.cli.commands.{name}"), name)
        assert inspect.signature(command).parameters["time_limit"].default == usual


def test_a_risk_is_a_limit_of_the_job_and_any_risk_is_an_option() -> None:
    """The job of a knob is that of its command line."""
    limited = read_form("what-if", [*JOB, ("risk", "0.01")])
    words = shlex.split(command_of(limited))
    assert words[-2:] == ["--set", "search.memory_risk=0.01"]
    question = Question("what-if", limited.asked, 1.0, "1 GB")
    assert line_of(question).spec.search.memory_risk == 0.01
    assert is_robust(question)
    every = read_form("what-if", [*JOB, ("risk", "off")])
    assert shlex.split(command_of(every))[-2:] == ["--robust", "off"]
    assert not is_robust(Question("what-if", every.asked, 1.0, "1 GB"))
    assert "risk" in read_form("what-if", [*JOB, ("risk", "2")]).faults


@pytest.mark.parametrize("text", PAYLOADS)
def test_a_command_is_one_word_for_each_value(text: str) -> None:
    form = read_form("plan", [("model", text), ("on", "8xh100")])
    if form.ready:
        assert form.values["model"] in shlex.split(command_of(form))


def test_knobs_take_over_the_gpus_of_other_pages() -> None:
    form = read_form("what-if", JOB)
    assert (form.values["count"], form.values["gpu"][:4]) == ("8", "h100")
    assert ("on", f"8x{form.values['gpu']}") in form.asked


@pytest.mark.parametrize(
    ("on", "count", "gpu"),
    [
        ("2 nodes of 8 A100-40 over 25 GbE", "16", "a100-sxm4-40gb"),
        ("64 x MI300X", "64", "mi300x"),
        ("llama3-h100-16k", "16384", "h100-sxm5-80gb"),
        ("no gpus", "", ""),
        ("/etc/passwd", "", ""),
    ],
)
def test_knobs_read_gpus_in_any_spelling(on: str, count: str, gpu: str) -> None:
    values = read_form("what-if", [("model", "gpt2"), ("on", on)]).values
    assert (values["count"], values["gpu"]) == (count, gpu)


def test_a_comparison_keeps_prices_with_their_clusters() -> None:
    given = [("model", "llama-3.1-8b"), ("on", "8xh100"), ("price", "")]
    given += [("on", "8xh200"), ("price", "3 USD/GPU-h")]
    form = read_form("compare", given)
    assert form.ready
    assert form.clusters == (("8xh100", ""), ("8xh200", "3 USD/GPU-h"))
    assert "on0" in read_form("compare", [("model", "llama-3.1-8b")]).faults


def test_every_option_of_a_form_is_one_of_its_command() -> None:
    import typer  # noqa: PLC0415

    from planner.cli import app  # noqa: PLC0415

    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    named = {
        "plan": "plan",
        "what-if": "plan",
        "memory": "memory",
        "explain": "explain",
    }
    for kind, command in named.items():
        known = {word for p in commands[command].params for word in p.opts}
        assert {f.option for f in FORMS[kind] if f.option} <= known


def test_a_store_drops_what_was_not_asked_for_longest() -> None:
    store = Store[int](2)
    store.put("a", 1)
    store.put("b", 2)
    assert store.get("a") == 1
    store.put("c", 3)
    assert [store.get(key) for key in "abc"] == [1, None, 3]
