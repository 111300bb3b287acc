"""Tests mirror the rooms, and a page says what each folder protects."""

from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "tests" / "README.md").read_text()


def folders(path: str) -> set[str]:
    """Names of the packages or folders of tests in a folder."""
    inside = (ROOT / path).iterdir()
    return {each.name for each in inside if any(each.glob("**/*.py"))}


def test_every_room_has_its_tests() -> None:
    assert folders("tests/planner") == folders("planner")


def test_the_page_names_every_folder() -> None:
    wanted = {f"`{name}/`" for name in folders("tests") - {"planner"}}
    wanted |= {f"`planner/{name}/`" for name in folders("tests/planner")}
    assert [name for name in sorted(wanted) if name not in PAGE] == []
