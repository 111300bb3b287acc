"""Settings of a job's stack block: a named stack, options, profile and recipe."""

from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from planner.errors import BadInputError, did_you_mean
from planner.frameworks.by_hand import ALIASES, NAMES, by_hand
from planner.frameworks.releases import as_released
from planner.frameworks.stacks import stack_names, with_stack
from planner.specs.frameworks.framework import Framework, Recipe, RecipeOverrides
from planner.specs.frameworks.profile import Profile
from planner.specs.reading.invalid import explained
from planner.specs.reading.read import Fields

_NOT_SETTABLE = {*NAMES, "source"}
_EAGER = "-eager"
"""End of the name of a stack that runs blocks without compilation."""


def named_stack(framework: Framework, given: Fields) -> Framework:
    """Put a framework on the stack and the release that a job names.

    Raises:
        BadInputError: No such stack, no eager stack, or no such release.
    """
    stacked = _stacked(framework, given)
    return as_released(stacked, given["version"]) if "version" in given else stacked


def _stacked(framework: Framework, given: Fields) -> Framework:
    """The framework on the stack that a job names, or turns compilation off for."""
    if "name" in given:
        return with_stack(framework, str(given["name"]))
    if given.get("compile") is not False or not framework.profile.compile:
        return framework
    eager = [name for name in stack_names(framework.name) if name.endswith(_EAGER)]
    if not eager:
        raise BadInputError(
            f"{framework.name} has no eager stack",
            field="stack.compile",
            value=False,
            allowed="true",
        )
    return with_stack(framework, eager[0])


def set_by_job(
    framework: Framework, usual: Framework, stack: Fields, filled: Fields
) -> Framework:
    """Put the settings of a job's stack block on a framework."""
    words = {**filled, **stack}
    chosen, rest = _with_options(framework, words)
    given = {ALIASES.get(key, key): value for key, value in rest.items()}
    for name in NAMES:
        given.pop(name, None)
    recipe = _recipe(chosen.recipe, given.pop("recipe", None) or {})
    return replace(
        chosen,
        profile=_profile(chosen, given),
        recipe=recipe,
        words=words,
        by_hand=tuple(by_hand(usual, framework, stack)),
    )


def _with_options(framework: Framework, stack: Fields) -> tuple[Framework, Fields]:
    """A framework with its options set, and keys left; an alias may have any word."""
    rest = dict(stack)
    for name in framework.options.keys() & stack.keys():
        words, word = framework.options[name], rest.pop(name)
        if isinstance(word, str) and word in words:
            option = words[word]
            framework = replace(
                framework,
                profile=framework.profile.model_copy(update=option.profile),
                recipe=option.recipe.on(framework.recipe),
            )
        elif name in ALIASES:
            rest[name] = word
        else:
            near = did_you_mean(str(word), words)
            raise BadInputError(
                f"{framework.name} has no such {name}; {near}",
                field=f"stack.{name}",
                value=word,
                allowed=", ".join(words),
            )
    return framework, rest


def _recipe(recipe: Recipe, given: Any) -> Recipe:
    """A recipe with the job's overrides."""
    try:
        overrides = RecipeOverrides.model_validate(given)
    except ValidationError as error:
        raise explained(
            error, RecipeOverrides, file="", inside="stack.recipe"
        ) from error
    return overrides.on(recipe)


def _profile(framework: Framework, given: Fields) -> Profile:
    """A profile with the job's overrides."""
    settable = Profile.model_fields.keys() - _NOT_SETTABLE
    for key in given.keys() - settable:
        known = [*settable, *ALIASES, *framework.options, *NAMES, "recipe"]
        near = did_you_mean(str(key), known)
        raise BadInputError(
            f"no such key; {near}", field=f"stack.{key}", value=given[key]
        )
    try:
        return Profile.model_validate(framework.profile.model_dump() | given)
    except ValidationError as error:
        raise explained(error, Profile, file="", inside="stack") from error
