"""What the command of the page asks for."""

import pytest

from benchmarks.search.__main__ import chosen, options
from benchmarks.search.cases import CHEAP, of_the_page


def asked(*words: str) -> list[tuple[str, str]]:
    return [(case.job, case.space) for case in chosen(options(words))]


def test_the_command_of_the_page_measures_all_of_it() -> None:
    page = [(case.job, case.space) for case in of_the_page()]
    assert sorted(asked("--all", "--full", "--growth", "--write")) == sorted(page)


def test_a_plain_run_is_cheap() -> None:
    assert asked() == [(job, "default") for job in CHEAP]


def test_full_adds_a_space() -> None:
    job = "llama-3-8b-8-a100"
    assert asked(job, "--full") == [(job, "default"), (job, "full")]


@pytest.mark.parametrize("option", ["--growth", "--nothing"])
def test_growth_and_nothing_measure_no_case(option: str) -> None:
    assert asked(option, "--write") == []


def test_an_unknown_job_names_those_that_there_are() -> None:
    with pytest.raises(SystemExit, match=r"no job gpt5; known: .*llama-3-8b-8-a100"):
        asked("gpt5")
