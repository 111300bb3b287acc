"""A launch folder is there whole, or not at all."""

from pathlib import Path

import pytest

from planner.errors import BadInputError
from planner.launch import check_folder, write_folder
from planner.launch.brief import LaunchFile

FILES = (
    LaunchFile("a.sh", "echo a\n", executable=True),
    LaunchFile("b/c.yaml", "x: 1\n"),
)


def test_files_are_written_with_their_modes(tmp_path: Path) -> None:
    out = tmp_path / "new" / "folder"
    write_folder(out, FILES, force=False)
    assert (out / "a.sh").read_text() == "echo a\n"
    assert (out / "a.sh").stat().st_mode & 0o111
    assert not (out / "b" / "c.yaml").stat().st_mode & 0o111
    assert [path.name for path in out.parent.iterdir()] == ["folder"]


def test_a_folder_that_holds_something_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("keep")
    with pytest.raises(BadInputError, match="not empty"):
        check_folder(tmp_path, force=False)
    with pytest.raises(BadInputError, match="--force"):
        write_folder(tmp_path, FILES, force=False)
    assert (tmp_path / "mine.txt").read_text() == "keep"


def ours(out: Path) -> None:
    """A folder as planner left it, with a file that somebody added."""
    out.mkdir()
    (out / "old.txt").write_text("old")
    (out / "plan.json").write_text('{"schema": "planner/plan@1"}')


def test_force_replaces_all_of_it(tmp_path: Path) -> None:
    out = tmp_path / "out"
    ours(out)
    write_folder(out, FILES, force=True)
    assert sorted(path.name for path in out.iterdir()) == ["a.sh", "b"]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_what_cannot_be_written_leaves_the_old_folder(tmp_path: Path) -> None:
    out = tmp_path / "out"
    ours(out)
    broken = (*FILES, LaunchFile("a.sh/inside", "no folder\n"))
    with pytest.raises(BadInputError, match="cannot be written"):
        write_folder(out, broken, force=True)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert sorted(path.name for path in out.iterdir()) == ["old.txt", "plan.json"]


@pytest.mark.parametrize(
    "plan",
    [
        None,
        "",
        "{}",
        "[1]",
        "no JSON",
        '{"schema": "planner/result@1"}',
        '{"schema": ["planner/plan@1"]}',
        "[" * 100_000,
    ],
    ids=lambda text: str(text)[:20],
)
def test_force_deletes_only_what_planner_wrote(tmp_path: Path, plan: str) -> None:
    out = tmp_path / "home"
    out.mkdir()
    (out / "thesis.tex").write_text("ten years")
    if plan is not None:
        (out / "plan.json").write_text(plan)
    for refuse in (check_folder, lambda o, force: write_folder(o, FILES, force=force)):
        with pytest.raises(BadInputError, match="does not delete it") as refused:
            refuse(out, force=True)
        assert str(out) in str(refused.value)
    assert (out / "thesis.tex").read_text() == "ten years"
    assert [path.name for path in tmp_path.iterdir()] == ["home"]


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInputError, match="no folder"):
        check_folder(tmp_path / "file", force=True)
