"""Releases of a framework, and what changed a run's time or memory between them."""

from dataclasses import replace
from datetime import date, timedelta
from functools import lru_cache
from importlib.resources import files

from pydantic import BaseModel, ConfigDict

from planner.errors import BadInputError, did_you_mean
from planner.frameworks.stacks import with_stack
from planner.hardware.reading.yaml_text import parse_yaml
from planner.specs.frameworks.framework import Framework, RecipeOverrides
from planner.specs.reading.read import Fields

_FIELD = "stack.version"
_YEAR = 365.25


class Fact(BaseModel):
    """A habit of the releases between two dates.

    Attributes:
        since: First date of the code. [-]
        until: First date of the code that no longer has the habit. [-]
        compiled: The habit is that of compiled blocks alone. [-]
        recipe: Memory habits that differ from the newest release's. [-]
        words: Settings that a job leaves open, in those releases. [text]
        source: Commits or issues that show the habit. [text]
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    since: date = date.min
    until: date
    compiled: bool = False
    recipe: RecipeOverrides = RecipeOverrides()
    words: dict[str, str] = {}
    source: str


class Dated(BaseModel):
    """A stack that stands for the releases before a date.

    Attributes:
        until: First date of the code that it no longer stands for. [-]
        stack: Name of the stack. [text]
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    until: date
    stack: str


class Releases(BaseModel):
    """Releases of a framework, with the facts that held at their dates.

    Attributes:
        stacks: Stacks that the facts hold for; the default stack the first. [text]
        versions: Date of each release; none for the newest, which the room's own files
            describe. [-]
        facts: Habits of older releases. [-]
        dated: Stacks of older releases that differ in most, the oldest first. [-]
        source: Source of the dates. [text]
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    stacks: tuple[str, ...]
    versions: dict[str, date | None]
    facts: tuple[Fact, ...] = ()
    dated: tuple[Dated, ...] = ()
    source: str

    def stack_at(self, day: date) -> str:
        """Stack that stands for the code of a day."""
        older = (each.stack for each in self.dated if day < each.until)
        return next(older, self.stacks[0])

    def at(self, day: date, *, compiled: bool) -> tuple[Fact, ...]:
        """Facts that held on a day.

        Args:
            day: Date of the code. [-]
            compiled: True where blocks are compiled. [-]
        """
        there = (fact for fact in self.facts if fact.since <= day < fact.until)
        return tuple(fact for fact in there if compiled or not fact.compiled)


@lru_cache
def releases(room: str) -> Releases | None:
    """Read ``planner/frameworks/<room>/releases.yaml``."""
    path = files("planner.frameworks") / room / "releases.yaml"
    if not path.is_file():
        return None
    return Releases.model_validate(parse_yaml(path.read_text("utf-8")))


def release_date(framework: Framework, version: object) -> date:
    """Date of a framework's code that a job names by its version or by the date.

    Raises:
        BadInputError: Neither; names the known versions.
    """
    known = releases(framework.name)
    if known is None or framework.profile.name not in known.stacks:
        raise BadInputError(
            f"the stack {framework.profile.name} of {framework.name} has no releases",
            field=_FIELD,
            value=str(version),
            allowed="a stack.name for other years",
        )
    if str(version) in known.versions:
        return known.versions[str(version)] or date.max
    try:
        return date.fromisoformat(str(version))
    except ValueError:
        near = did_you_mean(str(version), known.versions)
        raise BadInputError(
            f"{framework.name} has no such release; {near}",
            field=_FIELD,
            value=str(version),
            allowed=", ".join((*known.versions, 'a date such as "2025-06-30"')),
        ) from None


def as_released(framework: Framework, version: object) -> Framework:
    """Put a framework on one of its releases.

    Returns:
        The framework as it was. No launch files are written for a release whose habits
        are facts of its own.
    """
    day = release_date(framework, version)
    dated = _at(framework, day)
    if dated != framework.profile.name:
        return _labelled(with_stack(framework, dated), version)
    older = with_facts(_labelled(framework, version), day)
    known = releases(framework.name)
    if day == date.max or not (known and known.facts and framework.writers):
        return older
    return replace(older, writers=(), nearest_target=framework.writers[0].target)


def _at(framework: Framework, day: date) -> str:
    """Stack for a day: the framework's own where no other stands for it. [text]."""
    known = releases(framework.name)
    return known.stack_at(day) if known and known.dated else framework.profile.name


def _labelled(framework: Framework, version: object) -> Framework:
    """A framework whose profile is named by a release."""
    profile = framework.profile.model_copy(update={"version": str(version)})
    return replace(framework, profile=profile)


def with_facts(framework: Framework, day: date) -> Framework:
    """Give a framework the memory habits that its code had on a day."""
    recipe = framework.recipe
    for fact in _facts(framework, day):
        recipe = fact.recipe.on(recipe)
    return replace(framework, recipe=recipe)


def _facts(framework: Framework, day: date) -> tuple[Fact, ...]:
    known = releases(framework.name)
    return known.at(day, compiled=framework.profile.compile) if known else ()


def open_words(framework: Framework, version: object) -> Fields:
    """Words of a release's settings where a job leaves them open."""
    words: Fields = {}
    for fact in _facts(framework, release_date(framework, version)):
        words = {**words, **fact.words}
    return words


def stack_of_year(room: str, year: float) -> str:
    """Stack that stands for a framework's code of a year.

    Args:
        room: Name of a framework with dated stacks. [text]
        year: For example 2024.5. [year]
    """
    known = releases(room)
    assert known is not None
    return known.stack_at(day_of(year))


def day_of(year: float) -> date:
    """Day of a year with its fraction.

    Args:
        year: For example 2024.5. [year]
    """
    whole = int(year)
    return date(whole, 1, 1) + timedelta(days=int((year - whole) * _YEAR))
