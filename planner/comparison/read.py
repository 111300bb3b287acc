"""From files to tasks: jobs on clusters of their own, or a purchase file."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from hardware.money import Price
from planner.calibration_file import CalibrationFile
from planner.comparison.answer import Effort, Question
from planner.comparison.counts import counts_up_to, domain_nodes
from planner.comparison.purchase import CandidateSpec, ChangeName, PurchaseSpec
from planner.comparison.task import Task
from planner.cost.workload import Workload
from planner.errors import BadInputError, did_you_mean
from planner.resolve import resolve, resolved_spec
from planner.specs.invalid import explained
from planner.specs.job import JobSpec
from planner.specs.read import (
    Fields,
    assigned,
    cluster_fields,
    known_jobs,
    locate,
    read_mapping,
)

MOST_GPUS = 32_768
"""GPUs of the largest cluster that is looked at, unless a candidate says. [1]"""
ASSUMED_TOKENS = 1e12
"""Tokens of a run whose job does not say. [token]"""


@dataclass(frozen=True)
class Asking:
    """What the command line adds to the files.

    Attributes:
        assignments: `a.b.c=value` each, for every job. [text]
        budget_usd: In place of the file's. [USD]
        deadline_s: In place of the file's. [s]
        effort: How hard to search. [-]
        calibration: What the user measured. [-]
        hardware: Folder of hardware of the user's. [-]
    """

    effort: Effort
    assignments: Sequence[str] = ()
    budget_usd: float | None = None
    deadline_s: float | None = None
    calibration: CalibrationFile | None = None
    hardware: Path | None = None


@dataclass(frozen=True)
class Sweep:
    """What is to be planned.

    Attributes:
        tasks: One for each candidate. [-]
        question: That all of them answer. [-]
        effort: How hard to search. [-]
        title: The job in a line. [text]
        changes: Prices of better hardware. [-]
        warnings: What is legal but rarely meant. [text]
    """

    tasks: tuple[Task, ...]
    question: Question
    effort: Effort
    title: str
    changes: Mapping[ChangeName, Price] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Entry:
    """A candidate before its names are looked up.

    Attributes:
        name: What it is called. [text]
        job: Fields of its job, cluster and price put in. [-]
        file: The user's file. [text]
        base: Folder that relative paths start from. [-]
        field: Where it stands in the file. [text]
        fixed: Nodes, where the user gives their number. [1]
        most: Nodes that can be had. [1]
        source: Of its price. [text]
    """

    name: str
    job: Fields
    file: str
    base: Path
    field: str = ""
    fixed: int | None = None
    most: int | None = None
    source: str = ""


def read_sweep(paths: Sequence[Path], asking: Asking) -> Sweep:
    """What the user wants compared.

    Args:
        paths: One purchase file, or one or more jobs. [-]
        asking: What the command line adds. [-]

    Returns:
        Tasks that stand on their own. [-]

    Raises:
        BadInputError: A file, a field or a name is wrong.
    """
    files = [_locate(path) for path in paths]
    mappings = [read_mapping(file) for file in files]
    purchases = ["candidates" in mapping for mapping in mappings]
    if not any(purchases):
        entries = [
            _of_job(path, file, fields, asking)
            for path, file, fields in zip(paths, files, mappings, strict=True)
        ]
        return _sweep(entries, asking, PurchaseQuestion())
    if len(paths) > 1:
        raise BadInputError(
            "a purchase file stands alone",
            file=str(paths[purchases.index(True)]),
            allowed="one purchase file, or job files",
        )
    return _of_purchase(str(paths[0]), files[0], mappings[0], asking)


@dataclass(frozen=True)
class PurchaseQuestion:
    """What a purchase file asks beside its candidates."""

    budget_usd: float | None = None
    deadline_s: float | None = None
    changes: Mapping[ChangeName, Price] = field(default_factory=dict)


def purchases() -> dict[str, Path]:
    """Purchase files that come with planner, by name.

    Returns:
        Stem to path. [-]
    """
    package = Path(__file__).resolve().parents[1]
    inside = package / "configs" / "purchases"
    beside = package.parent / "configs" / "purchases"
    folder = inside if inside.is_dir() else beside
    return {path.stem: path for path in folder.glob("*.yaml")}


def _locate(path: Path) -> Path:
    """A file by its path, or by the name of a purchase or a job."""
    known = purchases()
    if path.exists() or str(path) not in known:
        try:
            return locate(path)
        except BadInputError as error:
            names = [*known, *known_jobs(), *map(str, path.parent.glob("*.y*ml"))]
            near = did_you_mean(str(path), names)
            raise BadInputError(
                f"no such file, purchase or job; {near}", file=str(path)
            ) from error
    return known[str(path)]


def _of_job(path: Path, file: Path, fields: Fields, asking: Asking) -> Entry:
    """A job on its own cluster, whose nodes a budget or a deadline may change."""
    spec = assigned(fields, asking.assignments, file.parent, str(path))
    free = asking.budget_usd is not None or asking.deadline_s is not None
    cluster = _cluster(spec.cluster, file.parent)
    plain = spec.model_dump(mode="json", by_alias=True, exclude_unset=True)
    plain.pop("layout", None)
    nodes = None if free and not cluster.get("pools") else int(cluster["nodes"])
    return Entry(
        name=file.stem,
        job={**plain, "cluster": cluster},
        file=str(path),
        base=file.parent,
        fixed=nodes,
    )


def _cluster(given: str | dict[str, object], base: Path) -> Fields:
    """Fields of a cluster, those inline without a name named after their node."""
    fields: Fields = (
        cluster_fields(given, base) if isinstance(given, str) else dict(given)
    )
    return {"name": str(fields.get("node", "cluster")), **fields}


def _of_purchase(name: str, file: Path, fields: Fields, asking: Asking) -> Sweep:
    """A job on every candidate of a purchase file."""
    try:
        spec = PurchaseSpec.model_validate(fields)
    except ValidationError as error:
        raise explained(error, PurchaseSpec, file=name) from error
    job, base = _job(spec.job, file, name)
    asks = PurchaseQuestion(spec.budget, spec.deadline, spec.changes)
    held = (asking.budget_usd, asking.deadline_s, spec.budget, spec.deadline)
    free = any(limit is not None for limit in held)
    entries = []
    for at, candidate in enumerate(spec.candidates):
        where = f"candidates.{at}"
        with _within(name, where):
            entries.append(_entry(candidate, job, base, file, free=free))
        entries[-1] = _placed(entries[-1], name, where)
    _refuse_twins(entries)
    return _sweep(entries, asking, asks)


def _placed(entry: Entry, file: str, where: str) -> Entry:
    return Entry(**{**entry.__dict__, "file": file, "field": where})


def _job(given: str | Fields, file: Path, name: str) -> tuple[Fields, Path]:
    """Fields of the job, and the folder that its paths start from."""
    if not isinstance(given, str):
        return dict(given), file.parent
    try:
        beside = file.parent / given
        its = beside if beside.is_file() else locate(Path(given))
    except BadInputError as error:
        error.file, error.field, error.value = name, "job", given
        raise
    return read_mapping(its), its.parent


def _entry(
    candidate: CandidateSpec, job: Fields, base: Path, file: Path, *, free: bool
) -> Entry:
    """A candidate with the job put on its cluster, at its price."""
    cluster = _cluster(candidate.cluster, file.parent)
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
    wanted.pop("layout", None)
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
    )


def _resized(cluster: Fields, nodes: int | None) -> Fields:
    """A cluster of the given number of nodes, or of any where they are free."""
    if nodes is None:
        return {"nodes": 1, **cluster}
    if nodes == cluster.get("nodes"):
        return cluster
    return {**cluster, "nodes": nodes, "out_of_service": 0, "tiers": _even(cluster)}


def _even(cluster: Fields) -> list[Any]:
    """Tiers without units of their own sizes."""
    tiers = cluster.get("tiers") or []
    return [{**tier, "units": ()} if "units" in tier else tier for tier in tiers]


def _refuse_twins(entries: Sequence[Entry]) -> None:
    """Two candidates of one name could not be told apart."""
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
def _within(file: str, where: str) -> Iterator[None]:
    """Names the candidate in every complaint about its fields."""
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


def _sweep(entries: Sequence[Entry], asking: Asking, asks: PurchaseQuestion) -> Sweep:
    """Tasks of all candidates under one question."""
    budget = asks.budget_usd if asking.budget_usd is None else asking.budget_usd
    deadline = asks.deadline_s if asking.deadline_s is None else asking.deadline_s
    looked_up = [_looked_up(entry, asking) for entry in entries]
    tokens = [_tokens(*job) for job in looked_up]
    known = [count for count in tokens if count is not None]
    question = Question(
        tokens=known[0] if known else ASSUMED_TOKENS,
        budget_usd=budget,
        deadline_s=deadline,
    )
    tasks = tuple(
        _task(entry, spec, workload, question, asking)
        for entry, (spec, workload) in zip(entries, looked_up, strict=True)
    )
    workloads = [workload for _, workload in looked_up]
    return Sweep(
        tasks=_named_apart(tasks),
        question=question,
        effort=asking.effort,
        title=_title(workloads[0], question.tokens),
        changes=asks.changes,
        warnings=(*_assumed(known), *_differing(looked_up)),
    )


def _looked_up(entry: Entry, asking: Asking) -> tuple[JobSpec, Workload]:
    """A candidate's job, checked and with its names looked up."""
    with _within(entry.file, entry.field):
        spec = assigned(
            dict(entry.job),
            asking.assignments if entry.field else (),
            entry.base,
            entry.file,
        )
        workloads = resolve(
            spec, file=entry.file, base=entry.base, calibration=asking.calibration
        )
    return spec, workloads[0]


def _tokens(spec: JobSpec, workload: Workload) -> float | None:
    """Tokens of the whole run, of all phases together."""
    if spec.phases:
        return sum(phase.tokens for phase in spec.phases)
    return workload.training.run_tokens


def _task(
    entry: Entry, spec: JobSpec, workload: Workload, question: Question, asking: Asking
) -> Task:
    whole = resolved_spec(spec, workload, base=entry.base)
    if _tokens(spec, workload) is None:
        training = dict(whole["training"])  # type: ignore[call-overload]
        whole["training"] = {**training, "tokens": question.tokens}
    if spec.phases:
        assert spec.training is not None
        shared = spec.training.model_dump(mode="json", by_alias=True, exclude_none=True)
        whole["training"] = shared
    return Task(
        name=entry.name,
        # A search may choose the framework, so it stays as the user named it.
        job={**whole, "framework": spec.framework},
        counts=_counts(entry, workload),
        question=question,
        effort=asking.effort,
        file=entry.file,
        source=entry.source,
        calibration=asking.calibration,
        hardware=asking.hardware,
    )


def _counts(entry: Entry, workload: Workload) -> tuple[int, ...]:
    """Node counts that a candidate may have."""
    if entry.fixed is not None:
        return (entry.fixed,)
    node = workload.topology.cluster.node
    unit = domain_nodes(workload)
    most = entry.most or MOST_GPUS // node.gpus_per_node
    counts = counts_up_to(workload, most)
    if not counts:
        raise BadInputError(
            f"one scale-up domain of {node.name} is {unit} nodes",
            file=entry.file,
            field=f"{entry.field}.most_nodes",
            value=most,
            allowed=f"{unit} or more",
        )
    return counts


def _named_apart(tasks: Sequence[Task]) -> tuple[Task, ...]:
    """Jobs of one stem in several folders get a number."""
    seen: dict[str, int] = {}
    apart = []
    for task in tasks:
        seen[task.name] = seen.get(task.name, 0) + 1
        times = seen[task.name]
        name = task.name if times == 1 else f"{task.name} ({times})"
        apart.append(Task(**{**task.__dict__, "name": name}))
    return tuple(apart)


def _title(workload: Workload, tokens: float) -> str:
    training = workload.training
    return (
        f"{workload.model.name}, {tokens / 1e12:,.4g} T tokens, "
        f"{training.sequences:,} sequences of {training.seq_len:,} tokens a step, "
        f"{training.precision}, {training.optimizer}"
    )


def _assumed(known: Sequence[float]) -> tuple[str, ...]:
    if known:
        return ()
    return (
        "training.tokens is not given: time, cost and energy are those of 1 T tokens",
    )


_SAME: tuple[tuple[str, Callable[[JobSpec, Workload], object]], ...] = (
    ("model", lambda _, workload: workload.model.name),
    ("sequences a step", lambda _, workload: workload.training.sequences),
    ("seq_len", lambda _, workload: workload.training.seq_len),
    ("precision", lambda _, workload: workload.training.precision),
    ("tokens", _tokens),
)
"""What makes two jobs the same. [-]"""


def _differing(jobs: Sequence[tuple[JobSpec, Workload]]) -> tuple[str, ...]:
    """Fields in which the jobs are not the same."""
    said = []
    for name, of in _SAME:
        values = dict.fromkeys(str(of(*job)) for job in jobs)
        if len(values) > 1:
            said.append(f"the jobs differ in {name}: {', '.join(values)}")
    return tuple(said)
