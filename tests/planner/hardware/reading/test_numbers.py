"""A number is written one way: neither a switch, nor one that YAML reads two ways."""

from collections.abc import Iterator
from typing import Annotated, Any, get_args

import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError

from planner.hardware.fleets import ClusterSpec
from planner.hardware.reading.yaml_text import NumberError, parse_yaml
from planner.hardware.specs import GpuSpec, LinkSpec, NodeSpec
from planner.specs.job import JobSpec


def models(of: Any, seen: set[type]) -> Iterator[type[BaseModel]]:
    """A model and every model in its fields."""
    for inner in get_args(of):
        yield from models(inner, seen)
    if isinstance(of, type) and issubclass(of, BaseModel) and of not in seen:
        seen.add(of)
        yield of
        for field in of.model_fields.values():
            yield from models(field.annotation, seen)


def numbers() -> Iterator[tuple[str, Any]]:
    """Every field of a user's file that is a number."""
    seen: set[type] = set()
    for start in (JobSpec, ClusterSpec, NodeSpec, GpuSpec, LinkSpec):
        for model in models(start, seen):
            for name, field in model.model_fields.items():
                own: Any = field.annotation
                for each in field.metadata:
                    own = Annotated[own, each]
                yield f"{model.__name__}.{name}", TypeAdapter(own)


FIELDS = dict(numbers())
SWITCH: Any = True


@pytest.mark.parametrize("field", FIELDS)
def test_no_switch_is_a_number(field: str) -> None:
    """`nodes: true` was one node."""
    try:
        found = FIELDS[field].validate_python(SWITCH)
    except ValidationError:
        return
    assert found is True or not isinstance(found, int | float)


@pytest.mark.parametrize("text", ["010", "-017", "0b11", "1:30", "2:10:20", "1_0:30"])
def test_numbers_that_releases_of_yaml_read_differently_are_refused(text: str) -> None:
    with pytest.raises(NumberError, match="another number") as refused:
        parse_yaml(f"a: 1\nnodes: {text}\n")
    assert refused.value.problem_mark.line == 1
    assert parse_yaml(f'nodes: "{text}"') == {"nodes": text}


@pytest.mark.parametrize(
    ("text", "number"),
    [("0", 0), ("0x10", 16), ("10", 10), ("0.5", 0.5), ("1e3", "1e3")],
)
def test_other_numbers_are_read(text: str, number: object) -> None:
    assert parse_yaml(f"a: {text}") == {"a": number}


@pytest.mark.parametrize("field", [name for name in FIELDS if "bandwidth" in name])
def test_no_bandwidth_is_zero(field: str) -> None:
    """`join: {bandwidth: 0}` ended in a division."""
    with pytest.raises(ValidationError):
        FIELDS[field].validate_python("0 GB/s")
