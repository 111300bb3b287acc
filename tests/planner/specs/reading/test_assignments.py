"""Every `--set` of a known field is in the job, or is refused."""

from collections.abc import Iterator
from copy import deepcopy
from functools import cache, reduce
from typing import Any

from examples import examples
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from planner.errors import BadInputError
from planner.hardware.reading.files import SHIPPED
from planner.questions.inputs.given import job_given
from planner.specs.job import JobSpec
from planner.specs.reading.layout_line import read_layout

JOB: dict[str, Any] = {
    "model": "llama-3.1-8b",
    "cluster": {"name": "own", "node": "dgx-h100", "nodes": 1},
    "training": {"seq_len": 4096, "global_batch": 64},
}
LINE = "tp=4,micro_batch=1,comm_dtype.gradients=fp32"
Place = tuple[str, dict[str, Any]]


@cache
def schema() -> dict[str, Any]:
    return JobSpec.model_json_schema(by_alias=True)


def places(node: dict[str, Any], path: str = "") -> Iterator[Place]:
    """Every field of the schema, blocks and what is in them, with its schema."""
    for each in options(node):
        for name, inner in each.get("properties", {}).items():
            at = f"{path}.{name}".lstrip(".")
            yield at, inner
            yield from places(inner, at)


def options(node: dict[str, Any]) -> list[dict[str, Any]]:
    """A schema with its references followed, one for each kind of value."""
    if "$ref" in node:
        return options(schema()["$defs"][node["$ref"].rpartition("/")[2]])
    if "anyOf" in node:
        return [each for one in node["anyOf"] for each in options(one)]
    return [node]


def values(node: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Values that a field may hold; what validators refuse is among them."""
    return st.one_of([_values(each) for each in options(node)])


def _values(node: dict[str, Any]) -> st.SearchStrategy[Any]:
    if "const" in node or "enum" in node:
        return st.sampled_from(node.get("enum") or [node["const"]])
    if node.get("type") == "array":
        return st.lists(values(node.get("items", {})), min_size=1, max_size=2)
    if node.get("type") == "object":
        inner = node.get("properties", {})
        return st.fixed_dictionaries(
            {}, optional={name: values(each) for name, each in inner.items()}
        )
    return {
        "boolean": st.booleans(),
        "integer": st.integers(1, 16),
        "number": st.sampled_from([0.0, 0.25, 1, 2.5]),
        "null": st.none(),
    }.get(node.get("type", ""), st.sampled_from(["none", "full", "bf16", "80 GB"]))


PLACES = dict(places(JobSpec.model_json_schema(by_alias=True)))


def at(fields: dict[str, Any], path: str) -> Any:
    """What a job holds at a place; None where it has no such block."""
    return reduce(
        lambda block, key: block.get(key) if isinstance(block, dict) else None,
        path.split("."),
        fields,
    )


def read(changes: dict[str, object], line: str | None) -> JobSpec:
    return job_given(deepcopy(JOB), changes, SHIPPED, None, line).spec


@given(st.data(), st.sampled_from(sorted(PLACES)), st.sampled_from([None, LINE]))
@settings(max_examples=examples(6000))
def test_a_known_field_is_in_the_job_or_is_refused(
    data: st.DataObject, path: str, line: str | None
) -> None:
    value = data.draw(values(PLACES[path]))
    assume(value is not None)  # an empty value is the field's absence
    before = read({}, line)
    try:
        after = read({path: value}, line)
    except BadInputError:
        event("refused")
        return
    event("taken")
    held = at(after.model_dump(mode="json", by_alias=True), path)
    there = at(before.model_dump(mode="json", by_alias=True), path)
    assert after != before or held == there
    fresh = JobSpec.model_validate(_with(deepcopy(JOB), path, value, line))
    assert held == at(fresh.model_dump(mode="json", by_alias=True), path)


def _with(job: dict[str, Any], path: str, value: object, line: str | None) -> Any:
    """The job as a file says it that has the value, and the layout, in their places."""
    if line is not None:
        own = read_layout(line).model_dump(mode="json", exclude_unset=True)
        job["layout"] = own
    *blocks, name = path.split(".")
    block = job
    for key in blocks:
        block = block.setdefault(key, {})
    block[name] = value
    return job
