"""The catalog as tables: numbers in natural units, unverified numbers marked."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, get_args

from pydantic import BaseModel
from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from planner.errors import BadInputError, did_you_mean
from planner.frameworks import FRAMEWORKS
from planner.hardware.calibration import calibrated, calibration
from planner.hardware.catalog import cluster, gpu, link, node, resolve_cluster
from planner.hardware.fleets import ClusterSpec
from planner.hardware.reading.files import SHIPPED, Catalog
from planner.hardware.reading.units import Quantity
from planner.hardware.specs import Sourced
from planner.launch import target_names
from planner.launch.launchers import LAUNCHERS
from planner.launch.registry import TARGETS
from planner.launch.target import Launcher, Target
from planner.models import preset, preset_names, read_preset
from planner.report.catalog.frameworks import framework_entry, framework_facts
from planner.specs.frameworks.framework import Framework

Entry = dict[str, object]
"""One thing of the catalog as plain data, ready for JSON."""

UNVERIFIED = "?"
"""Stands after a number that was not looked up."""

_SCALES = {
    "B": (2**30, "GiB"),
    "B/s": (1e9, "GB/s"),
    "FLOP/s": (1e12, "TFLOP/s"),
    "W": (1, "W"),
    "s": (1e-6, "us"),
    "Hz": (1e6, "MHz"),
}
"""Base unit to the divisor and name of the unit that people use."""
_TITLES = {
    "gpus": "GPUs",
    "gpus_per_node": "GPUs",
    "scale_up_domain": "domain",
    "nic": "NIC",
    "nics_per_node": "NICs",
    "memory_capacity": "memory",
    "memory_bandwidth": "HBM",
    "peak_bf16": "bf16",
    "peak_fp8": "fp8",
    "rail_optimised": "rails",
    "max_position": "positions",
    "zero_stages": "ZeRO",
}
"""Columns whose field has too long a name for a table."""
_READERS: Mapping[str, Callable[[str, Catalog], Sourced]] = {
    "gpus": gpu,
    "nodes": node,
    "links": link,
    "clusters": cluster,
}
_COLUMNS = {
    "gpus": (
        "arch",
        "memory_capacity",
        "memory_bandwidth",
        "peak_bf16",
        "peak_fp8",
        "tdp",
    ),
    "nodes": (
        "gpu",
        "gpus_per_node",
        "scale_up",
        "scale_up_domain",
        "nic",
        "nics_per_node",
    ),
    "links": ("kind", "fabric", "bandwidth", "links"),
    "clusters": ("node", "nodes", "gpus", "tiers", "rail_optimised"),
    "models": ("family", "layers", "hidden", "parameters", "active", "max_position"),
    "frameworks": ("title", "version", "stacks", "zero_stages", "schedules"),
    "targets": ("title", "version", "framework"),
}
KINDS = tuple(_COLUMNS)
"""Kinds of the catalog, in order of listing."""


def kind_names(kind: str, catalog: Catalog) -> tuple[str, ...]:
    """Names of one kind."""
    if kind not in KINDS:
        raise BadInputError(
            f"no such kind; {did_you_mean(kind, KINDS)}",
            field="catalog",
            value=kind,
            allowed=", ".join(KINDS),
        )
    if kind == "models":
        return preset_names()
    if kind == "frameworks":
        return tuple(framework.name for framework in FRAMEWORKS)
    return target_names() if kind == "targets" else catalog.names(kind)


def entry(kind: str, name: str, catalog: Catalog) -> Entry:
    """One thing of the catalog as plain data.

    Raises:
        BadInputError: No such kind or name; names the nearest.
    """
    known = kind_names(kind, catalog)
    if name not in known:
        raise BadInputError(
            f"no such name; {did_you_mean(name, known)}",
            field=f"catalog {kind}",
            value=name,
        )
    if kind == "models":
        return _model(name)
    if kind == "frameworks":
        return framework_entry(_framework(name))
    if kind == "targets":
        return _target(name)
    return _READERS[kind](name, catalog).model_dump(mode="json")


def _model(name: str) -> Entry:
    """A model: counted sizes, published size, source and config."""
    its, known = preset(name), read_preset(name)
    return {
        "name": name,
        "family": its.family,
        "layers": its.layers,
        "hidden": its.hidden,
        "parameters": its.parameters,
        "active": its.active_parameters,
        "published_parameters": known.published_parameters,
        "max_position": its.max_position,
        "source": known.source,
        "config": known.config,
    }


def _framework(name: str) -> Framework:
    return next(framework for framework in FRAMEWORKS if framework.name == name)


def _target(name: str) -> Entry:
    """A target of `planner emit`; a launcher starts the plan's own framework."""
    every: tuple[Target | Launcher, ...] = (*TARGETS, *LAUNCHERS)
    its = next(one for one in every if one.name == name)
    return {
        "name": name,
        "title": its.title,
        "version": its.version,
        "framework": getattr(its, "framework", "the plan's"),
    }


def overview(catalog: Catalog) -> RenderableType:
    """Every name of every kind."""
    table = _table("kind", "names")
    for kind in KINDS:
        table.add_row(kind, ", ".join(kind_names(kind, catalog)))
    return table


def kind_table(kind: str, catalog: Catalog) -> RenderableType:
    """The main numbers of everything of one kind."""
    names = kind_names(kind, catalog)
    rows = [[name, *_cells(kind, name, catalog)] for name in names]
    table = _table("name", *(_title(kind, column) for column in _COLUMNS[kind]))
    for row in rows:
        table.add_row(*row)
    marked = any(cell.endswith(UNVERIFIED) for row in rows for cell in row)
    note = Text(f"{UNVERIFIED} not verified", style="dim")
    return Group(table, note) if marked else table


def _table(*titles: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for i, title in enumerate(titles):
        # A name is what the reader copies, so it stays in one piece.
        table.add_column(title, no_wrap=i == 0, overflow="fold")
    return table


def _title(kind: str, column: str) -> str:
    """A column's name, with its unit in brackets."""
    words = _TITLES.get(column, column.replace("_", " "))
    if kind not in _READERS or column == "gpus":
        return words
    model = _type_of(kind)
    unit = _unit(model, column) if column in model.model_fields else None
    return f"{words} [{_SCALES[unit][1]}]" if unit else words


def _type_of(kind: str) -> type[Sourced]:
    return type(_READERS[kind](SHIPPED.names(kind)[0], SHIPPED))


def _cells(kind: str, name: str, catalog: Catalog) -> list[str]:
    """Cells of one row, without the name."""
    if kind not in _READERS:
        data = entry(kind, name, catalog)
        return [_plain(data[column], column) for column in _COLUMNS[kind]]
    its = _READERS[kind](name, catalog)
    if isinstance(its, ClusterSpec):
        gpus = f"{resolve_cluster(its, catalog).gpus:,}"
        return [
            gpus if column == "gpus" else _cell(its, column, with_unit=False)
            for column in _COLUMNS[kind]
        ]
    return [_cell(its, column, with_unit=False) for column in _COLUMNS[kind]]


def _cell(its: Sourced, field: str, *, with_unit: bool) -> str:
    """A field in natural units, marked if it was not looked up."""
    if isinstance(its, ClusterSpec) and field == "node" and its.pools:
        return " + ".join(pool.node for pool in its.pools)
    value, unit = getattr(its, field), _unit(type(its), field)
    text = _plain(value, field)
    if unit and value is not None:
        divisor, name = _SCALES[unit]
        text = f"{value / divisor:,.5g}" + (f" {name}" if with_unit else "")
    return text + (f" {UNVERIFIED}" if field in its.unverified else "")


def _unit(model: type[BaseModel], field: str) -> str | None:
    """Base unit of a field, None where it holds no quantity."""
    info = model.model_fields[field]
    for member in (info, *get_args(info.annotation)):
        for note in (*getattr(member, "metadata", ()), *get_args(member)):
            if isinstance(note, Quantity):
                return note.unit
    return None


def _plain(value: Any, field: str) -> str:
    """A value without a unit as text."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if field in {"parameters", "active", "published_parameters"}:
        return f"{value / 1e9:,.4g}B"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, tuple | list):
        return ", ".join(_part(item) for item in value) or "-"
    return str(value)


def _part(item: Any) -> str:
    """One member of a list; a tier is its name, size and oversubscription."""
    if hasattr(item, "oversubscription"):
        return f"{item.name} {item.gpus} GPUs {item.oversubscription:g}:1"
    return str(item)


def entry_table(kind: str, name: str, catalog: Catalog) -> RenderableType:
    """Everything known of one thing, with the source of each field.

    Raises:
        BadInputError: No such kind or name; names the nearest.
    """
    if kind == "frameworks":
        return _framework_table(name, catalog)
    if kind not in _READERS:
        return _plain_entry(entry(kind, name, catalog))
    its = _READERS[kind](name, catalog)
    table = _table("field", "value", "source")
    for row in facts(its):
        table.add_row(*row)
    if kind == "gpus":
        for row in _reached(name, catalog):
            table.add_row(*row)
    note = Text(f"{UNVERIFIED} not verified", style="dim")
    return Group(table, note) if its.unverified else table


def facts(its: Sourced) -> Iterator[tuple[str, str, str]]:
    """Every field of an entry, with value and source.

    Yields:
        Field, value in natural units, source; a name has an empty source. [text]
    """
    for field in type(its).model_fields:
        if field not in {"sources", "unverified", "deviates"}:
            yield field, _cell(its, field, with_unit=True), _source(its, field)


def _reached(name: str, catalog: Catalog) -> Iterator[tuple[str, str, str]]:
    """Measured rates of a GPU, and sections taken from a related GPU."""
    known = name in calibrated(catalog)
    yield "calibrated", "yes" if known else "no", ""
    if not known:
        return
    its = calibration(name, catalog)
    for dtype, gemm in its.gemm.items():
        yield f"reached {dtype}", f"{gemm.efficiency:.1%} of peak", gemm.source
    memory = its.memory
    yield "reached memory", f"{memory.efficiency:.1%} of peak", memory.source
    ring = f"{its.scale_up.ring_bandwidth / 1e9:.4g} GB/s"
    yield "reached ring", ring, its.scale_up.source
    for section, why in its.transferred.items():
        yield f"transferred {section}", "", why


def _source(its: Sourced, field: str) -> str:
    """Source of a fact; names and references to other entries have no source."""
    if field in its.sources:
        return its.sources[field]
    value = getattr(its, field)
    is_fact = isinstance(value, int | float) and not isinstance(value, bool)
    return its.sources.get("*", "") if is_fact else ""


def _plain_entry(data: Entry) -> Table:
    """Fields of a model or a framework, nested ones on rows of their own."""
    table = _table("field", "value")
    for field, value in data.items():
        inner = value.items() if isinstance(value, dict) else [("", value)]
        for key, part in inner:
            label = f"{field}.{key}" if key else field
            table.add_row(label, _plain(part, field))
    return table


def _framework_table(name: str, catalog: Catalog) -> RenderableType:
    """Limits of a framework, then every value of its stacks with its source."""
    data = entry("frameworks", name, catalog)
    limits = {k: v for k, v in data.items() if k not in {"profile", "values"}}
    table = _table("value", "", "source or range")
    for field, value, told in framework_facts(_framework(name)):
        table.add_row(field, _plain(value, field), told)
    return Group(_plain_entry(limits), Text(), table)


def catalog_data(
    kind: str | None, name: str | None, catalog: Catalog
) -> dict[str, object]:
    """The catalog, a kind or one entry of it, as plain data.

    Args:
        kind: One of `KINDS`, or None for all. [-]
        name: One of `kind_names`, or None for all. [-]
        catalog: Files of facts. [-]
    """
    kinds: Sequence[str] = KINDS if kind is None else (kind,)
    found: dict[str, object] = {"schema": "planner/catalog@1"}
    for each in kinds:
        chosen = kind_names(each, catalog) if name is None else (name,)
        found[each] = [entry(each, one, catalog) for one in chosen]
    return found
