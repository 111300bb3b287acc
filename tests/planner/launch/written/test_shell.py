"""Settings of launch scripts are read without running them."""

import pytest

from planner.launch.shell import Script


def words(text: str) -> list[str]:
    return Script(text).words()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("run --a 1 \\\n  --b '2 3'", ["run", "--a", "1", "--b", "2 3"]),
        ("A=4\nrun --tp $A --pp ${A}", ["run", "--tp", "4", "--pp", "4"]),
        ("A=${B:-7}\nrun $A", ["run", "7"]),
        (': "${B:=9}"\nrun $B', ["run", "9"]),
        (
            "ARGS=(\n  --x 1  # a comment\n  --y\n)\nrun ${ARGS[@]}",
            ["run", "--x", "1", "--y"],
        ),
        ('ARGS="--x 1 --y"\nrun $ARGS', ["run", "--x", "1", "--y"]),
        ("A=(--x)\nA+=(--y 2)\nrun ${A[@]}", ["run", "--x", "--y", "2"]),
        ("export A=1 # why\nrun --n $A", ["run", "--n", "1"]),
        ("run --unknown $NOWHERE", ["run", "--unknown", "$NOWHERE"]),
        ("A=1\nB=$A\nC=${B}x\nrun $C", ["run", "1x"]),
        ('A="${A:-4}"\nrun $A', ["run", "4"]),
        ("A=1\nA=$A,2\nrun $A", ["run", "1,2"]),
        ("WORLD=8 run --a 1", ["run", "--a", "1"]),
    ],
)
def test_words_of_a_script(text: str, expected: list[str]) -> None:
    assert words(text) == expected


def test_an_array_that_no_command_uses_is_read_too() -> None:
    """A file of arguments that another script sources has no command of its own."""
    assert words("ARGUMENTS=(\n  --a 1\n  --b\n)") == ["--a", "1", "--b"]


def test_a_variable_that_names_itself_ends() -> None:
    assert words("A=$A\nrun $A") == ["run", "$A"]
