"""Reads Hugging Face fields: what a family needs, and errors that name the field."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from planner.errors import short
from planner.hardware.reading.nearest import nearest
from planner.models.architecture import Architecture
from planner.models.details import Details
from planner.models.errors import ModelConfigError
from planner.specs.layouts.layout import MOST_LAYERS

# Similarity from which a key counts as a misspelling of an absent field. Real configs
# hold many foreign keys, and none in the supported families is this close.
_MISSPELT = 0.9


LARGEST_SIZE = (1 << 31) - 1
"""Most rows, columns or heads of a layer, as a kernel's 32-bit index holds them. [1]"""


class FamilyConfig(BaseModel, ABC):
    """Fields of a config.json that a model family reads; other keys are ignored.

    A subclass is one family: it declares the fields, checks them against each
    other, and builds the architecture. Types are strict: "12" and true are no
    integers. `aliases` are further model types and classes of the same blocks,
    `other_names` further names of fields.
    """

    model_config = ConfigDict(
        strict=True,
        extra="ignore",
        frozen=True,
        defer_build=True,  # a job needs one family of all
    )

    family: ClassVar[str]
    hf_class: ClassVar[str]
    aliases: ClassVar[tuple[str, ...]] = ()
    other_names: ClassVar[Mapping[str, str]] = {}

    @abstractmethod
    def architecture(self, name: str, source: str) -> Architecture:
        """Architecture that these fields describe.

        Args:
            name: Name for the model.
            source: Citation, URL or path of the fields.
        """

    @classmethod
    def read(cls, config: Mapping[str, Any], source: str) -> Self:
        """Fields of a config, checked.

        Args:
            config: Hugging Face config; foreign keys are ignored.
            source: Citation, URL or path of the config, for errors.

        Returns:
            The family's fields.

        Raises:
            ModelConfigError: A field is missing, misspelt, of the wrong type, out of
                range, or contradicts another.
        """
        named = cls._own_names(config)
        cls._refuse_misspelt(named, source)
        cls._refuse_absurd(named, source)
        try:
            Details.model_validate(named)
            return cls.model_validate(named)
        except ValidationError as error:
            problems = cls._problems(error.errors(), named)
        raise ModelConfigError(f"{source}: {'; '.join(problems)}")

    @classmethod
    def required_fields(cls) -> list[str]:
        """Names of the fields without a default.

        Returns:
            Field names. [1], shape (fields,)
        """
        return [n for n, field in cls.model_fields.items() if field.is_required()]

    @classmethod
    def _own_names(cls, config: Mapping[str, Any]) -> dict[str, Any]:
        """Config with every field under the name that the family reads."""
        own = {cls.other_names[k]: v for k, v in config.items() if k in cls.other_names}
        rest = {k: v for k, v in config.items() if k not in cls.other_names}
        return own | rest

    @classmethod
    def _refuse_misspelt(cls, config: Mapping[str, Any], source: str) -> None:
        absent = [name for name in cls.model_fields if name not in config]
        for key in config:
            if key in cls.model_fields:
                continue
            if meant := nearest(str(key), absent, _MISSPELT):
                raise ModelConfigError(
                    f"{source}: {key!r} is not a field of a {cls.family} config; "
                    f"did you mean {meant!r}?"
                )

    @classmethod
    def _refuse_absurd(cls, config: Mapping[str, Any], source: str) -> None:
        """Refuse sizes beyond those of tensors, and more layers than can be listed."""
        for name in cls.model_fields:
            value = config.get(name)
            counts = "layer" in name and "size" not in name
            most = MOST_LAYERS if counts else LARGEST_SIZE
            if isinstance(value, int) and value > most:
                raise ModelConfigError(
                    f"{source}: {name} is {value}; at most {most:,} is read"
                )

    @classmethod
    def _problems(
        cls, errors: Sequence[ErrorDetails], config: Mapping[str, Any]
    ) -> list[str]:
        """Sentences about the fields, one for several that are missing."""
        missing = [str(each["loc"][-1]) for each in errors if each["type"] == "missing"]
        told = [each for each in errors if each["type"] != "missing"]
        if len(missing) < 2:
            return [cls._explain(each, config) for each in errors]
        every = f"{', '.join(missing)} are missing; a {cls.family} config needs them"
        return [every, *(cls._explain(each, config) for each in told)]

    @classmethod
    def _explain(cls, item: ErrorDetails, config: Mapping[str, Any]) -> str:
        field = ".".join(str(part) for part in item["loc"])
        if item["type"] == "value_error":
            return str(item["ctx"]["error"])
        if item["type"] == "missing":
            foreign = [str(key) for key in config if key not in cls.model_fields]
            near = nearest(field, foreign)
            hint = f" (did {near!r} mean it?)" if near else ""
            return f"{field} is missing{hint}; a {cls.family} config needs it"
        return f"{field} is {short(item['input'])}: {item['msg']}"


def require_divisible(config: BaseModel, field: str, by: str, else_: str = "") -> None:
    """Check that one field is a multiple of another.

    Args:
        config: Config that holds both.
        field: Name of the multiple.
        by: Name of the divisor.
        else_: Advice to the user, to end the message with.

    Raises:
        ValueError: The field is no multiple; the message holds both fields and values.
    """
    value, divisor = getattr(config, field), getattr(config, by)
    if value % divisor:
        raise ValueError(f"{field} {value} is not a multiple of {by} {divisor}{else_}")


def require_words(config: BaseModel, field: str, allowed: Sequence[str]) -> None:
    """Check that a field has one known word for each layer.

    Args:
        config: Config that holds the field and num_hidden_layers.
        field: Name of the list of words.
        allowed: Words that a layer may have. [text]

    Raises:
        ValueError: The list is too short or too long, or has another word.
    """
    words: Sequence[str] = getattr(config, field)
    layers: int = getattr(config, "num_hidden_layers")  # noqa: B009
    if len(words) != layers:
        raise ValueError(
            f"{field} has {len(words)} entries; num_hidden_layers is {layers}"
        )
    for word in words:
        if word not in allowed:
            raise ValueError(f"{field} has {word!r}; allowed: {', '.join(allowed)}")


def require_at_most(config: BaseModel, field: str, limit: str) -> None:
    """Check that one field is no greater than another.

    Args:
        config: Config that holds both.
        field: Name of the bounded field.
        limit: Name of the field that bounds it.

    Raises:
        ValueError: The field is greater; the message holds both fields and values.
    """
    value, bound = getattr(config, field), getattr(config, limit)
    if value > bound:
        raise ValueError(f"{field} {value} is more than {limit} {bound}")
