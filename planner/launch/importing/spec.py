"""A spec from launch files, the user's answers and assignments."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from planner.errors import BadInputError
from planner.hardware.reading.documents import (
    DocumentError,
    plain,
)
from planner.hardware.reading.files import SHIPPED
from planner.job.one_line.models import known_model, model_named
from planner.launch.brief import Reading
from planner.launch.importing.fleet import UserOverrides, cluster_of, fleet_told
from planner.launch.sizes import refuse_other_model
from planner.launch.unknown import refuse_unknown
from planner.models import Architecture
from planner.specs.layouts.axes import MESH
from planner.specs.reading.read import assigned


def settled(reading: Reading, told: UserOverrides) -> Reading:
    """Reading with all settings understood, or set aside by the user.

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
    if told.nodes is not None and not told.node:
        raise BadInputError(
            "counts nodes of --node",
            field="--nodes",
            value=told.nodes,
            allowed="--node with it",
        )


def import_spec(
    reading: Reading, told: UserOverrides, assignments: Sequence[str]
) -> dict[str, object]:
    """Build the spec from the files, the user's answers and assignments.

    Raises:
        BadInputError: Settings that a spec needs are missing (names all of them), or a
            value is not legal.
    """
    if told.model:
        its = model_named(told.model).architecture
        refuse_other_model(reading.sizes, its, told.model)
        _refuse_other_weights(reading.named, its, told.model)
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
    assigned(fields, assignments, Path(), reading.target, SHIPPED)
    return fields


def _refuse_other_weights(named: str, model: Architecture, given: str) -> None:
    """Refuse a model whose layers are not those of the weights that the files name."""
    known = known_model(named) if named else None
    its, other = (
        replace(each, name="", source="", max_position=None)
        for each in (model, known.architecture if known else model)
    )
    if its != other:
        raise BadInputError(
            f"is another model than {named}, whose weights the files name",
            field="--model",
            value=given,
            allowed=f"{named}, or no --model",
        )


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
    gpus = cluster_of(cluster).gpus
    inner = math.prod(int(layout.get(a.name, 1)) for a in MESH if a.name != "dp")
    if gpus % inner:
        return {}
    return {"training": {**training, "global_batch": gpus // inner * each}}


def _shards(fields: Mapping[str, Any], reading: Reading) -> dict[str, Any]:
    """Layout with what the ranks of the run leave: shard group, shares of a batch."""
    settled = reading.copies or reading.shares_batch or reading.on_one_rank
    if not settled or not fields.get("cluster"):
        return {}
    return {"layout": dict(reading.layout_on(cluster_of(fields["cluster"])))}


def _fields(reading: Reading, told: UserOverrides) -> dict[str, Any]:
    """Fields of the spec that are known; unknown fields are absent."""
    model: Any = _given_model(reading, told)
    found: dict[str, Any] = {
        "model": model if isinstance(model, str) else dict(model),
        "cluster": fleet_told(reading, told),
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
