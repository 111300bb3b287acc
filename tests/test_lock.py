"""The lock file is of the dependencies that the project names."""

import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
LOCK = tomllib.loads((ROOT / "uv.lock").read_text())["package"]


def named() -> list[Requirement]:
    """Requirements of the project and of its extras."""
    extras = PROJECT["optional-dependencies"].values()
    texts = [*PROJECT["dependencies"], *(text for extra in extras for text in extra)]
    return [Requirement(text) for text in texts]


def test_every_dependency_is_locked_within_its_limits() -> None:
    versions: dict[str, list[str]] = {}
    for package in LOCK:
        versions.setdefault(package["name"], []).append(package.get("version", ""))
    for wanted in named():
        found = versions[canonicalize_name(wanted.name)]
        assert all(version in wanted.specifier for version in found), wanted


def test_the_lock_names_what_the_project_names() -> None:
    (own,) = (package for package in LOCK if package["name"] == PROJECT["name"])
    locked = {
        (each["name"], each.get("specifier", ""))
        for each in own["metadata"]["requires-dist"]
    }
    assert {(name, frozenset(text.split(","))) for name, text in locked} == {
        (canonicalize_name(each.name), frozenset(str(each.specifier).split(",")))
        for each in named()
    }
