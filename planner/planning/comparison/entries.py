"""Candidates as the files have them, before any name is looked up."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from planner.errors import BadInputError, did_you_mean
from planner.hardware.reading.documents import (
    absence,
    beside,
    is_file,
    is_there,
    yaml_files,
)
from planner.hardware.reading.files import Catalog
from planner.hardware.reading.shipped import shipped
from planner.planning.comparison.purchase import CandidateSpec
from planner.specs.reading.read import (
    Fields,
    assigned,
    cluster_fields,
    known_jobs,
    locate,
    read_mapping,
)


@dataclass(frozen=True)
class Entry:
    """A candidate before its names are looked up.

    Attributes:
        name: Name of the candidate. [text]
        job: Fields of the candidate's job, cluster and price put in. [-]
        file: The user's file. [text]
        base: Folder that relative paths start from. [-]
        field: Place of the candidate in the file. [text]
        fixed: Nodes, where the user gives their number. [1]
        most: Nodes that can be had. [1]
        source: Source of the price. [text]
        has_layout: True where the job has a layout, which is not compared. [-]
    """

    name: str
    job: Fields
    file: str
    base: Path
    field: str = ""
    fixed: int | None = None
    most: int | None = None
    source: str = ""
    has_layout: bool = False


def purchases() -> dict[str, Path]:
    """Purchase files that come with planner, by name."""
    every = (shipped("configs") / "purchases").glob("*.yaml")
    return {path.stem: path for path in every}


def located(path: Path) -> Path:
    """A file by its path, or by the name of a purchase or a job."""
    known = purchases()
    if is_there(path) or str(path) not in known:
        try:
            return locate(path)
        except BadInputError as error:
            names = [*known, *known_jobs(), *yaml_files(path.parent)]
            near = did_you_mean(str(path), names)
            raise BadInputError(
                f"{absence(path, 'no such file, purchase or job')}; {near}",
                file=str(path),
            ) from error
    return known[str(path)]


def entry_of_job(
    path: Path,
    file: Path,
    fields: Fields,
    assignments: Sequence[str],
    catalog: Catalog,
    *,
    free: bool,
) -> Entry:
    """A job on its own cluster, whose nodes a budget or a deadline may change.

    Args:
        path: The job file as the user named it. [-]
        file: Path of the job file. [-]
        fields: Fields of the job file. [-]
        assignments: `a.b.c=value` each. [text]
        catalog: Files of facts. [-]
        free: True where the nodes may change. [-]
    """
    spec = assigned(fields, assignments, file.parent, str(path), catalog)
    cluster = _cluster(spec.cluster, file.parent, catalog)
    plain = spec.model_dump(mode="json", by_alias=True, exclude_unset=True)
    plain.pop("layout", None)
    nodes = None if free and not cluster.get("pools") else int(cluster["nodes"])
    return Entry(
        name=file.stem,
        job={**plain, "cluster": cluster},
        file=str(path),
        base=file.parent,
        fixed=nodes,
        has_layout=bool(spec.layout.given()),
    )


def _cluster(given: str | dict[str, object], base: Path, catalog: Catalog) -> Fields:
    """Fields of a cluster; inline fields without a name take their node's name."""
    if isinstance(given, str):
        fields = cluster_fields(given, base, catalog)
    else:
        fields = dict(given)
    return {"name": str(fields.get("node", "cluster")), **fields}


def placed(entry: Entry, file: str, where: str) -> Entry:
    """A candidate with the file and the place that it stands in."""
    return replace(entry, file=file, field=where)


def job_of(given: str | Fields, file: Path, name: str) -> tuple[Fields, Path]:
    """Fields of a purchase's job, and the folder that its paths start from."""
    if not isinstance(given, str):
        return dict(given), file.parent
    try:
        named = beside(file.parent, given)
        its = named if is_file(named) else locate(Path(given))
    except BadInputError as error:
        error.file, error.field, error.value = name, "job", given
        raise
    return read_mapping(its), its.parent


def entry_of(
    candidate: CandidateSpec,
    job: Fields,
    base: Path,
    file: Path,
    catalog: Catalog,
    *,
    free: bool,
) -> Entry:
    """A candidate with the job put on its cluster, at its price.

    Args:
        candidate: The candidate as the purchase file has it. [-]
        job: Fields of the job. [-]
        base: Folder that the job's paths start from. [-]
        file: The purchase file. [-]
        catalog: Files of facts. [-]
        free: True where a budget or a deadline decides the nodes. [-]

    Raises:
        BadInputError: Nothing says how many nodes, or a name is unknown.
    """
    cluster = _cluster(candidate.cluster, file.parent, catalog)
    fixed = candidate.nodes
    if fixed is None and (not free or cluster.get("pools")):
        fixed = cluster.get("nodes")
        if fixed is None:
            raise BadInputError(
                "nothing says how many nodes",
                field="nodes",
                allowed="nodes: N, or a budget or a deadline to derive them from",
            )
    wanted = dict(job)
    layout = wanted.pop("layout", None)
    for name in ("framework", "stack"):
        if (own := getattr(candidate, name)) is not None:
            wanted[name] = own
    wanted["cluster"] = _resized(cluster, fixed)
    if candidate.price is not None:
        economics = dict(wanted.get("economics") or {})
        wanted["economics"] = {**economics, "price": str(candidate.price)}
    return Entry(
        name=candidate.name or str(cluster["name"]),
        job=wanted,
        file="",
        base=base,
        fixed=fixed,
        most=candidate.most_nodes,
        source=candidate.source,
        has_layout=bool(layout),
    )


def _resized(cluster: Fields, nodes: int | None) -> Fields:
    """A cluster of the given number of nodes; without a number of its own, else 1."""
    if nodes is None:
        return {"nodes": 1, **cluster}
    if nodes == cluster.get("nodes"):
        return cluster
    return {**cluster, "nodes": nodes, "out_of_service": 0, "tiers": _even(cluster)}


def _even(cluster: Fields) -> list[Any]:
    """Tiers without units of their own sizes."""
    tiers = cluster.get("tiers") or []
    return [{**tier, "units": ()} if "units" in tier else tier for tier in tiers]


def refuse_twins(entries: Sequence[Entry]) -> None:
    """Refuse two candidates of one name, which could not be told apart."""
    seen: set[str] = set()
    for entry in entries:
        if entry.name in seen:
            raise BadInputError(
                "two candidates have this name",
                file=entry.file,
                field=f"{entry.field}.name",
                value=entry.name,
                allowed="a name of its own for each",
            )
        seen.add(entry.name)


@contextmanager
def within(file: str, where: str) -> Iterator[None]:
    """Name the candidate in every complaint about the candidate's fields.

    Args:
        file: The purchase file. [text]
        where: Place of the candidate in the file; empty for a job file. [text]
    """
    try:
        yield
    except BadInputError as error:
        named = error.field or ""
        inside = named.startswith(("cluster", "nodes", "framework", "stack"))
        priced = named.removeprefix("economics.")
        if where and (inside or priced.startswith("price")):
            error.field = f"{where}.{priced}"
        error.file = error.file or file
        raise
