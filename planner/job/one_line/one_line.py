"""A job from one line, with everything that it assumes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from planner.errors import BadInputError
from planner.hardware.catalog import gpu
from planner.hardware.reading.documents import is_file
from planner.hardware.reading.files import Catalog, UnknownNameError
from planner.hardware.spelling import (
    EXAMPLES,
    Fleet,
    SpellingError,
    UnknownNetworkError,
    read_fleet,
)
from planner.job.expressible import refuse_unwritable
from planner.job.fleets import cluster_named
from planner.job.one_line.models import Named, model_named
from planner.job.one_line.said import (
    read_batch,
    read_framework,
    read_length,
    read_method,
    read_tokens,
)
from planner.job.one_line.tasks import Task, task_of
from planner.job.resolve import resolve
from planner.specs.job import JobSpec
from planner.specs.reading.read import Fields

ORIGIN = "--model, --on"
"""Origin of such a job, in place of a file in messages. [text]"""


@dataclass(frozen=True)
class OneLine:
    """A job that one line describes.

    Attributes:
        fields: Fields of a JobSpec. [-]
        assumed: Dotted path of a field that was assumed, to words for it. [text]
    """

    fields: Fields
    assumed: Mapping[str, str]

    def told(self, assignments: Sequence[str] = ()) -> tuple[str, ...]:
        """Words for the assumptions that hold."""
        given = [assignment.partition("=")[0].strip() for assignment in assignments]
        return tuple(
            words
            for path, words in self.assumed.items()
            if not any(_inside(path, name) or _inside(name, path) for name in given)
        )


def job_of(
    model: str,
    on: str,
    catalog: Catalog,
    *,
    method: str = "full",
    seq_len: int | str | None = None,
    global_batch: int | str | None = None,
    framework: str | None = None,
    tokens: float | str | None = None,
    network: str | None = None,
    purpose: str | None = None,
    family: str | None = None,
) -> OneLine:
    """Make the job of a model on a count of GPUs; the rest is assumed by task.

    Args:
        model: Preset, hub id, config.json or its folder. [text]
        on: Count of GPUs in any spelling, or the name or file of a cluster. [text]
        catalog: Files of facts. [-]
        method: Method of training, in any case. [text]
        seq_len: Tokens of a sequence, as 8192 or 8k. [token]
        global_batch: Sequences of a step. [sequence]
        framework: Framework by name, or `any`. [text]
        tokens: Tokens of the run, as `15T`. [token]
        network: Network between nodes, as `25 GbE`. [text]
        purpose: Name of a task; None for the first that such a job is of. [text]
        family: Family whose blocks stand in for the model's own, if any. [text]

    Raises:
        BadInputError: Model, GPUs, network or tokens are unknown.
    """
    method = read_method(method)
    seq_len = None if seq_len is None else read_length(seq_len)
    global_batch = None if global_batch is None else read_batch(global_batch)
    framework = None if framework is None else read_framework(framework)
    run = None if tokens is None else read_tokens(str(tokens))
    named, fleet = model_named(model, family), fleet_of(on, network, catalog)
    count = run if isinstance(run, float) else 0.0
    task = task_of(method, fleet.gpus, count, purpose)
    longest = named.architecture.max_position or task.seq_len
    length = seq_len or min(task.seq_len, longest)
    batch = global_batch or task.batch(fleet.gpus, length)
    training: Fields = {"seq_len": length, "global_batch": batch}
    training |= _of_hardware(fleet, catalog) | {"optimizer": "adamw", "method": method}
    if method != "full":
        training["lora"] = {"rank": 16, "targets": "all-linear"}
    if method != "full" and training["precision"] == "fp16":
        # GradScaler refuses gradients in fp16, and PEFT makes adapters in fp32.
        training["lora"] |= {"precision": "fp32"}
    if run is not None:
        training["tokens"] = run
    fields: Fields = {"model": named.given, "cluster": fleet.cluster}
    fields |= {"training": training}
    fields["framework"] = framework or _first_able(fields, task, catalog)
    given = {"training.seq_len": seq_len, "training.global_batch": global_batch}
    words = _words(named, fleet, fields, given | {"framework": framework})
    return OneLine(fields, words)


def _inside(path: str, block: str) -> bool:
    """True where a dotted path is that of a block, or leads into it."""
    return path == block or path.startswith(f"{block}.")


def fleet_of(on: str, network: str | None, catalog: Catalog) -> Fleet:
    """The cluster of a count of GPUs.

    Args:
        on: Count of GPUs in any spelling, or the name or file of a cluster. [text]
        network: Network between nodes; None for the usual one. [text]
        catalog: Files of facts. [-]

    Raises:
        BadInputError: GPUs or network are unknown; shows how a count is written.
    """
    if network is None and is_file(Path(on)):
        whole = str(Path(on).resolve())
        cluster = cluster_named(whole, Path(), catalog)
        return Fleet(whole, "", cluster.gpus, cluster.gpu.name)
    try:
        return read_fleet(on, catalog, network)
    except UnknownNetworkError as error:
        field = "--on" if network is None else "--network"
        allowed = "fabric and rate of a NIC, as 25 GbE, 400G InfiniBand or 4 x HDR"
        raise BadInputError(str(error), field=field, allowed=allowed) from error
    except (SpellingError, UnknownNameError) as error:
        allowed = f"COUNTxGPU or a cluster, as {EXAMPLES}"
        raise BadInputError(str(error), field="--on", allowed=allowed) from error


def _of_hardware(fleet: Fleet, catalog: Catalog) -> Fields:
    """Compute format that the GPU has."""
    has_bf16 = gpu(fleet.gpu, catalog).peak_bf16 is not None
    return {"precision": "bf16" if has_bf16 else "fp16"}


def _first_able(fields: Fields, task: Task, catalog: Catalog) -> str:
    """The first framework of a task that trains the model, else the first of all."""
    for name in task.frameworks[:-1]:
        spec = JobSpec.model_validate(fields | {"framework": name})
        try:
            refuse_unwritable(resolve(spec, file=ORIGIN, base=Path(), catalog=catalog))
        except BadInputError:
            continue
        return name
    return task.frameworks[-1]


def _words(
    named: Named, fleet: Fleet, fields: Fields, given: Mapping[str, object]
) -> dict[str, str]:
    """Words for what the user left open."""
    training = fields["training"]
    kept = " in fp32" if "precision" in training.get("lora", {}) else ""
    every = {
        "model": named.told,
        "cluster": fleet.words,
        "training.seq_len": f"sequences of {training['seq_len']:,} tokens",
        "training.global_batch": f"{training['global_batch']:,} sequences a step",
        "framework": str(fields["framework"]),
        "training.precision": training["precision"],
        "training.optimizer": "adamw",
        "training.lora": f"adapters of rank 16{kept} on all linear layers",
    }
    if "lora" not in training:
        del every["training.lora"]
    return {path: text for path, text in every.items() if text and not given.get(path)}
