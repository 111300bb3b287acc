"""Reads launch files of a framework into a spec with a layout."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml

from hardware.catalog import Cluster
from hardware.reading.documents import (
    DocumentError,
    is_file,
    is_folder,
    is_there,
    plain,
)
from hardware.reading.files import SUFFIXES
from hardware.reading.yaml_text import DuplicateKeyError, parse_yaml
from planner.errors import BadInputError, did_you_mean
from planner.job.fleets import cluster_named
from planner.job.one_line import fleet_of
from planner.job.one_line.models import known_model, model_named
from planner.job.resolve import about
from planner.launch.brief import Reading
from planner.launch.launchers import slurm, torchrun
from planner.launch.other_tools.recognise import refuse_others
from planner.launch.registry import TARGETS
from planner.launch.shell.runs import (
    DATA,
    Alternative,
    alternatives,
    refuse_alternatives,
)
from planner.launch.shell.values import UnsetError
from planner.launch.sizes import refuse_other_model
from planner.launch.target import Files, Target
from planner.launch.text.nodes import NODES, PLACE, pools_of, ranks_of
from planner.launch.unknown import lines_of, placed, refuse_unknown
from planner.specs.layouts.axes import MESH
from planner.specs.reading.escape import comment, yaml_text
from planner.specs.reading.read import assigned, given_twice, user_text

DEEPEST = 4
"""Files that name each other in a row. [1]"""
LARGEST = 1 << 20
"""Size above which a file is no configuration. [B]"""


@dataclass(frozen=True)
class UserOverrides:
    """Answers of the user on what the files do not hold.

    Attributes:
        model: Name of a preset, or a path of a config.json; empty to take the
            model of the files. [text]
        cluster: Name or path of a cluster; empty for node and nodes. [text]
        on: Count of GPUs in any spelling; empty for cluster or node. [text]
        node: Name of a node, for a cluster of `nodes` such nodes. [text]
        nodes: Number of nodes; None to follow from the ranks of the files. [1]
        ignore: Settings that were not understood, and change nothing. [text]
    """

    model: str = ""
    cluster: str = ""
    on: str = ""
    node: str = ""
    nodes: int | None = None
    ignore: tuple[str, ...] = ()

    @property
    def ranks(self) -> bool:
        """Tell if the answers hold the number of ranks. [-]."""
        return bool(self.cluster or self.on or (self.node and self.nodes))


def read_launch(
    paths: Sequence[Path],
    name: str | None,
    variables: Mapping[str, str] = MappingProxyType({}),
) -> Reading:
    """Read the launch files of a run.

    Args:
        paths: Files, or folders of them. [-]
        name: Target of the files; None to recognise the target. [text]
        variables: Variables of the environment that scripts run in. [text]

    Returns:
        Settings that the files give. [-]

    Raises:
        BadInputError: A file cannot be read, or no target fits the files.
    """
    texts = dict(_texts(paths))
    nodes = texts.pop(NODES, "")
    given = {**ranks_of(nodes), **variables}
    files = {file: _with(given, file, text) for file, text in texts.items()}
    if nodes:
        files[PLACE] = ""
    reading = _followed(files, name, paths, given)
    pools = pools_of(nodes, int(str(reading.layout.get("pp", 1))))
    layout = {**reading.layout, **({"pools": pools} if pools else {})}
    return replace(reading, layout=layout)


def _followed(
    files: dict[str, str],
    name: str | None,
    paths: Sequence[Path],
    given: Mapping[str, str],
) -> Reading:
    """Read files, and the files that their settings name, where these lie near."""
    where = ", ".join(map(str, paths))
    for _ in range(DEEPEST):
        reading = read_texts(files, name, where, given)
        wanted = [its.wants for its in reading.unknown if its.wants]
        near = [path for text in wanted if (path := _near(text, paths))]
        new = {path.name: user_text(path) for path in near if path.name not in files}
        if not new:
            break
        files |= {file: _with(given, file, text) for file, text in new.items()}
    return reading


def _near(text: str, paths: Sequence[Path]) -> Path | None:
    """A file by a path that starts from a given file's folder, or from one above."""
    folders = [path if is_folder(path) else path.parent for path in paths]
    above = [up for folder in folders for up in (folder, *folder.resolve().parents)]
    every = (*(up / text for up in above), Path(text))
    every = (*every, *(folder / Path(text).name for folder in folders))
    return next((path for path in every if is_file(path)), None)


def _with(variables: Mapping[str, str], name: str, text: str) -> str:
    """Set variables within the text of settings; a script's are its environment."""
    if name.rpartition(".")[2] not in DATA:
        return text

    def value(match: re.Match[str]) -> str:
        return variables.get(match[1] or match[2], match[0])

    return re.sub(r"\$\{(\w+)\}|\$(\w+)\b", value, text)


def read_texts(
    files: Files,
    name: str | None,
    where: str,
    variables: Mapping[str, str] = MappingProxyType({}),
) -> Reading:
    """Read launch files from texts.

    Args:
        files: Text by name. [text]
        name: Target of the files; None to recognise the target. [text]
        where: Name of the files in messages. [text]
        variables: Variables of the environment that scripts run in. [text]

    Returns:
        Settings that the files give. [-]

    Raises:
        BadInputError: No target fits the files, or several targets do; or scripts can
            be meant in ways that are different jobs.
    """
    with about(where), lines_of(files):
        reading = _meant(files, name, variables)
    unknown = (
        replace(its, place=placed(files, its.name) or where) for its in reading.unknown
    )
    copies = reading.copies
    if copies:
        copies = replace(copies, place=placed(files, copies.name) or where)
    return replace(reading, unknown=tuple(unknown), copies=copies)


def _meant(files: Files, name: str | None, variables: Mapping[str, str]) -> Reading:
    """Reading of the run that scripts start, the same however they can be meant."""
    found = alternatives(files, variables)
    if not found:
        return _read(files, name)
    first, *others = found
    reading = _placed(first, name)
    for other in others:
        if replace(_placed(other, name), ignored=()) != replace(reading, ignored=()):
            refuse_alternatives(first, other)
    return reading


def _placed(its: Alternative, name: str | None) -> Reading:
    """Reading of a run; a variable that no file sets is refused with its line."""
    try:
        return _read(its.files, name)
    except UnsetError as error:
        known = (its.lines[n] for n in error.names if n in its.lines)
        error.file = next(known, f"{its.launch.file}:{its.launch.line}")
        raise


def _read(files: Files, name: str | None) -> Reading:
    """Read files by the target that is named, or by the only target that fits."""
    if name is not None:
        return _target_named(name).read(files)
    refuse_others(files)
    able = [target for target in TARGETS if target.reads(files)]
    held = frozenset[str]().union(*(target.holds for target in able))
    able = [target for target in able if target.name not in held]
    if len(able) == 1:
        return able[0].read(files)
    found = "several" if able else "none"
    raise BadInputError(
        f"{found} of the known targets write files like these; say which",
        field="--target",
        allowed=", ".join(target.name for target in able or TARGETS),
    )


def _target_named(name: str) -> Target:
    known = {target.name: target for target in TARGETS}
    if name not in known:
        raise BadInputError(
            f"no such target; {did_you_mean(name, known)}",
            field="--target",
            value=name,
            allowed=", ".join(known),
        )
    return known[name]


def _texts(paths: Sequence[Path]) -> Files:
    """Text by name; of a folder the files that can hold settings."""
    texts: dict[str, str] = {}
    for path in paths:
        if not is_there(path):
            raise BadInputError("no such file", file=str(path))
        for file in _read_of(path) if path.is_dir() else [path]:
            texts[file.name] = user_text(file)
            _refuse_twins(file, texts[file.name])
    return texts


def _read_of(folder: Path) -> list[Path]:
    """Files of a folder that hold settings; of planner's own no launcher's script."""
    every = _inside(folder)
    ours = any(file.name == "plan.json" for file in every)
    launchers = (slurm.SCRIPT, torchrun.SCRIPT) if ours else ()
    return [file for file in every if _may_be(file) and file.name not in launchers]


def _inside(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError as error:
        reason = error.strerror or str(error)
        raise BadInputError(f"cannot be read: {reason}", file=str(folder)) from error


def _may_be(file: Path) -> bool:
    """Tell if a file can hold settings: small, and no file of planner without any."""
    ours = file.name in ("plan.json", "README.md", "check.sh", PLACE)
    return not ours and is_file(file) and file.stat().st_size < LARGEST


def _refuse_twins(file: Path, text: str) -> None:
    """Refuse YAML or JSON with a repeated key; the target judges other files."""
    if file.suffix not in (*SUFFIXES, ".json"):
        return
    try:
        # JSON may be indented by tabs, which YAML refuses.
        parse_yaml(text.expandtabs() if file.suffix == ".json" else text)
    except DuplicateKeyError as error:
        raise given_twice(error, str(file)) from error
    except (yaml.YAMLError, ValueError, RecursionError):
        return


def settled(reading: Reading, told: UserOverrides) -> Reading:
    """Reading with all settings understood, or set aside by the user.

    Args:
        reading: Settings that the files give. [-]
        told: Answers of the user. [-]

    Returns:
        The reading; its unknown settings are those that the user set aside. [-]

    Raises:
        BadInputError: A setting was neither understood nor set aside.
    """
    _refuse_two_clusters(told)
    left = [its for its in reading.unknown if not (its.ranks and told.ranks)]
    refuse_unknown(left, told.ignore)
    return replace(reading, unknown=tuple(left))


def _refuse_two_clusters(told: UserOverrides) -> None:
    """Refuse hardware that is given twice."""
    ways = {"--cluster": told.cluster, "--on": told.on, "--node": told.node}
    given = [option for option, value in ways.items() if value]
    if len(given) > 1:
        raise BadInputError(
            "the hardware is given twice",
            field=" and ".join(given),
            allowed="one of them",
        )


def import_spec(
    reading: Reading, told: UserOverrides, assignments: Sequence[str]
) -> dict[str, object]:
    """Build the spec from the files, the user's answers and assignments.

    Args:
        reading: Settings that the files give. [-]
        told: Answers of the user. [-]
        assignments: `a.b.c=value` each. [text]

    Returns:
        Fields of a JobSpec that was checked, in the order of writing. [-]

    Raises:
        BadInputError: Settings that a spec needs are missing (names all of them), or a
            value is not legal.
    """
    if told.model:
        its = model_named(told.model).architecture
        refuse_other_model(reading.sizes, its, told.model)
    fields = _fields(reading, told)
    if any(name.startswith("training.global_batch") for name in assignments):
        reading = replace(reading, shares_batch="")
    else:
        fields |= _batch(fields, reading)
    if not any(name.startswith("layout.dp_shard") for name in assignments):
        fields |= _shards(fields, reading)
    for name in assignments:
        fields.setdefault(name.partition(".")[0].partition("=")[0], {})
    _require(fields, assignments, reading.named)
    _refuse_strange(fields)
    assigned(fields, assignments, Path(), reading.target)
    return fields


def _given_model(reading: Reading, told: UserOverrides) -> object:
    """Model of the user, of the files, or of the weights that the files name. [-]."""
    if told.model:
        return model_named(told.model).given
    if reading.model or not reading.named:
        return reading.model
    known = known_model(reading.named)
    return known.given if known else ""


def _refuse_strange(fields: dict[str, Any]) -> None:
    """Refuse values that a spec cannot hold, such as numbers beyond 64 bits."""
    try:
        plain(fields)
    except DocumentError as error:
        raise BadInputError(
            f"the files give what cannot be used: {error.problem}", field=error.field
        ) from error


def _batch(fields: Mapping[str, Any], reading: Reading) -> dict[str, Any]:
    """Global batch that follows from each replica's sequences and the cluster.

    ``global = local x GPUs / (tp pp cp)``; local counts gradient accumulation.
    """
    training, layout = fields.get("training", {}), fields.get("layout", {})
    each, cluster = reading.per_replica, fields.get("cluster")
    batches = {"global_batch", "global_batch_tokens"}
    if not (each and cluster) or batches & training.keys():
        return {}
    gpus = _cluster(cluster).gpus
    inner = math.prod(int(layout.get(a.name, 1)) for a in MESH if a.name != "dp")
    if gpus % inner:
        return {}
    return {"training": {**training, "global_batch": gpus // inner * each}}


def _shards(fields: Mapping[str, Any], reading: Reading) -> dict[str, Any]:
    """Layout with what the ranks of the run leave: shard group, shares of a batch."""
    settled = reading.copies or reading.shares_batch
    if not settled or not fields.get("cluster"):
        return {}
    return {"layout": dict(reading.layout_on(_cluster(fields["cluster"])))}


def _cluster(given: str | dict[str, Any]) -> Cluster:
    """Cluster by name, by file or in place."""
    try:
        return cluster_named(given, Path())
    except ValueError as error:
        raise BadInputError(str(error), field="--cluster") from error


def _fields(reading: Reading, told: UserOverrides) -> dict[str, Any]:
    """Fields of the spec that are known; unknown fields are absent."""
    model: Any = _given_model(reading, told)
    found: dict[str, Any] = {
        "model": model if isinstance(model, str) else dict(model),
        "cluster": told.cluster or _inline_cluster(reading, told),
        "training": dict(reading.training),
        "framework": reading.framework,
        "stack": dict(reading.stack),
        "layout": dict(reading.layout),
    }
    return {name: value for name, value in found.items() if value}


def _require(fields: Mapping[str, Any], assignments: Sequence[str], named: str) -> None:
    """Refuse a spec with missing settings, and name all of them at once."""
    training = fields.get("training", {})
    batch = training.keys() & {"global_batch", "global_batch_tokens"}
    said = {a.partition("=")[0].strip() for a in assignments}
    missing = [
        words
        for there, words in (
            (fields.get("model"), "the model (--model NAME or config.json)"),
            (
                _has_vocabulary(fields.get("model")) or "model.vocab_size" in said,
                "the vocabulary (--set model.vocab_size=N, or --model NAME)",
            ),
            (
                fields.get("cluster"),
                "the hardware (--on COUNTxGPU, --cluster NAME, or --node and --nodes)",
            ),
            (
                "seq_len" in training or "training.seq_len" in said,
                "the sequence length (--set training.seq_len=N)",
            ),
            (
                batch or any(name.startswith("training.global_batch") for name in said),
                "the global batch (--set training.global_batch=N)",
            ),
        )
        if not there
    ]
    if missing and named and not fields.get("model"):
        missing[0] += f", since {named} is no preset's hub id"
    if missing:
        raise BadInputError("the files do not say " + "; nor ".join(missing))


def _has_vocabulary(model: object) -> bool:
    """Tell if a model says its vocabulary; one by name does, and so does none."""
    if not isinstance(model, Mapping):
        return True
    parts = (model, *(part for part in model.values() if isinstance(part, Mapping)))
    return any("vocab_size" in part for part in parts)


def _inline_cluster(
    reading: Reading, told: UserOverrides
) -> str | Mapping[str, object] | None:
    """Nodes below one leaf, where the user counts GPUs or names the node alone."""
    if told.on:
        given = fleet_of(told.on, None).cluster
        return given if isinstance(given, str) else dict(given)
    if not told.node:
        return None
    from hardware.catalog import node  # noqa: PLC0415  # only where it is asked for

    try:
        per_node = node(told.node).gpus_per_node
    except ValueError as error:
        raise BadInputError(str(error), field="--node") from error
    nodes = told.nodes or (reading.gpus // per_node if reading.gpus else None)
    if nodes is None:
        raise BadInputError(
            "the files do not say how many nodes", field="--nodes", allowed="1 or more"
        )
    return {"name": f"{told.node}-{nodes}", "node": told.node, "nodes": max(nodes, 1)}


def spec_text(fields: Mapping[str, object], reading: Reading) -> str:
    """Write the spec as YAML, headed by the settings that were not understood.

    Args:
        fields: Fields of a JobSpec. [-]
        reading: Settings that the files give. [-]

    Returns:
        YAML with comments. [text]
    """
    head = [f"Read from {reading.target} files by `planner import`."]
    for title, words in (
        ("Set aside by --ignore", tuple(map(str, reading.unknown))),
        ("Changes no layout, time or memory", reading.ignored),
    ):
        if words:
            head += [f"{title}:", *(f"  {comment(word)}" for word in words)]
    return yaml_text(dict(fields), head)


def _worked_out(reading: Reading, fields: Mapping[str, Any]) -> list[str]:
    """Line on the origin of a global batch that no file gives."""
    batch, each = fields.get("training", {}).get("global_batch"), reading.per_replica
    if not (batch and each) or "global_batch" in reading.training or batch % each:
        return []
    return [
        f"  global batch: {batch:,}, {each:,} for each of {batch // each:,} replicas"
    ]


def report(reading: Reading, fields: Mapping[str, object], out: str) -> str:
    """Report on the settings that were understood, and on those that were not.

    Args:
        reading: Settings that the files give. [-]
        fields: Fields of the spec. [-]
        out: File that holds the spec. [text]

    Returns:
        Lines of the report. [text]
    """
    layout = fields.get("layout")
    shown = layout if isinstance(layout, dict) else {}
    degrees = [f"{k}={v}" for k, v in shown.items() if isinstance(v, int | str)]
    lines = [f"{out}: a job for {reading.framework}", "  layout: " + ", ".join(degrees)]
    lines += _worked_out(reading, fields)
    if reading.unknown:
        lines += ["  set aside by --ignore:"]
        lines += [f"    {comment(str(word))}" for word in reading.unknown]
    if reading.ignored:
        lines.append(
            f"  {len(reading.ignored)} settings change no layout, time or memory"
        )
    lines.append(f"  next: planner predict {out}")
    return "\n".join(lines)
