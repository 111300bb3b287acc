"""Looks up every name of a job: model, cluster, frameworks, stack, measurements."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from planner.cost.kernels import (
    attention_curve,
    attention_kernel,
    is_unfused,
    priced_kernel,
)
from planner.cost.workload import Workload
from planner.errors import BadInputError, did_you_mean
from planner.frameworks import FRAMEWORKS
from planner.frameworks.adapted import with_names
from planner.frameworks.releases import open_words
from planner.frameworks.settings import named_stack, set_by_job
from planner.frameworks.torchtitan.loss import filled
from planner.frameworks.transformers import (
    FLASH,
    with_attention,
    with_pairs,
    with_rows,
)
from planner.hardware.calibration import GpuCalibration
from planner.hardware.catalog import Cluster
from planner.hardware.graph.topology import ClusterTopology
from planner.hardware.kernels.attention import attention_on, attention_words
from planner.hardware.reading.documents import beside
from planner.hardware.reading.files import SHIPPED, Catalog
from planner.job.calibrated import measured_of, with_fit
from planner.job.calibration_file import CalibrationFile
from planner.job.expressible import refuse_unknown_words
from planner.job.fleets import cluster_named, mixed_fleet, with_pods
from planner.job.methods import check_method, frozen_model
from planner.job.run_tokens import with_tokens
from planner.job.variants import trainings
from planner.models import (
    Architecture,
    from_config,
    load_model,
    preset_names,
    read_config,
    read_preset,
)
from planner.models.likeness import PLANNED_AS
from planner.specs.frameworks.framework import Framework
from planner.specs.job import JobSpec
from planner.specs.lengths import LengthsFile
from planner.specs.reading.lengths_file import read_lengths
from planner.specs.reading.read import Fields
from planner.specs.training import TrainingSpec

PRICED_PRECISIONS = ("bf16", "fp16", "fp8", "mxfp8", "nvfp4")
"""Compute formats that the cost model has rates for."""

T = TypeVar("T")


def resolve(
    spec: JobSpec,
    *,
    file: str,
    base: Path,
    catalog: Catalog = SHIPPED,
    calibration: CalibrationFile | None = None,
) -> tuple[Workload, ...]:
    """A job with everything looked up, once for each framework it may run under.

    Returns:
        One workload, or all of them for framework `any`, shape (frameworks,). [-]

    Raises:
        BadInputError: A name is unknown, a file is broken, or a part is not priced.
    """
    with about(file):
        return _resolve(spec, file, base, catalog, calibration)


@contextmanager
def about(file: str) -> Iterator[None]:
    """Names the job's file in every complaint that names no file itself."""
    try:
        yield
    except BadInputError as error:
        error.file = error.file or file
        raise


def _resolve(
    spec: JobSpec,
    file: str,
    base: Path,
    catalog: Catalog,
    own: CalibrationFile | None,
) -> tuple[Workload, ...]:
    training = _training(spec, base)
    refuse_unknown_words(spec.search)
    model, cluster = look_up(spec, file=file, base=base, catalog=catalog)
    training = with_tokens(training, model)
    on_pools = [
        _on_cluster(spec, training, model, pool, own)
        for pool in cluster.pools or [cluster]
    ]
    if not cluster.pools:
        return tuple(map(with_pods, on_pools[0]))
    return tuple(mixed_fleet(cluster, each) for each in zip(*on_pools, strict=True))


def _on_cluster(
    spec: JobSpec,
    training: TrainingSpec,
    model: Architecture,
    cluster: Cluster,
    own: CalibrationFile | None,
) -> tuple[Workload, ...]:
    """A job on nodes of one kind, once for each framework it may run under."""
    measured = _looked_up("cluster", lambda: measured_of(cluster, own))
    chosen = "search" if spec.search.choices("precision") else "training"
    for wanted in trainings(training, spec.search):
        _check_priced(wanted, cluster, measured, f"{chosen}.precision")
        check_method(wanted, model, cluster.gpu)
    on_usual_stack = partial(
        Workload,
        model=frozen_model(training, model),
        training=training,
        topology=ClusterTopology(cluster),
        calibration=measured,
        search=spec.search,
    )
    jobs = tuple(
        _on_stack(on_usual_stack(framework=framework), spec.stack, own)
        for framework in _frameworks(spec.framework)
    )
    for job in jobs:
        _check_attention(job)
    return jobs


def _on_stack(job: Workload, stack: Fields, own: CalibrationFile | None) -> Workload:
    """The job on the stack that it names, as measured, with its settings on top."""
    usual, model, tokens = job.framework, job.model, job.training.seq_len
    job = replace(job, training=with_names(usual.name, job.training, model))
    stack = with_attention(usual.name, stack, model.family, job.gpu.arch)
    stack = with_pairs(usual.name, stack, job.training.reference)
    stack = _with_rows(job, stack)
    open_ = filled(usual.name, stack, mtp_layers=model.mtp_layers, tokens=tokens)
    named = replace(job, framework=named_stack(usual, stack))
    if open_ and "version" in stack:
        open_ |= open_words(named.framework, stack["version"])
    fitted = with_fit(named, own)
    settings = set_by_job(fitted.framework, usual, stack, open_)
    return replace(fitted, framework=settings)


def _with_rows(job: Workload, stack: Fields) -> Fields:
    """Stack block of a job, with attention that keeps packed texts apart."""
    flash = FLASH in attention_on(job.gpu.arch)
    return with_rows(job.framework.name, stack, job.training, known=flash)


def _training(spec: JobSpec, base: Path) -> TrainingSpec:
    """The training block with lengths read; refuses an inference job, without one."""
    if spec.training is None:
        raise BadInputError(
            "an inference job trains nothing: planner memory says what it holds",
            field="inference",
            allowed="a training block in its place",
        )
    lengths = spec.training.lengths
    if not isinstance(lengths, LengthsFile):
        return spec.training
    listed = read_lengths(beside(base, lengths.file))
    return spec.training.model_copy(update={"lengths": listed})


def look_up(
    spec: JobSpec, *, file: str, base: Path, catalog: Catalog
) -> tuple[Architecture, Cluster]:
    """The model and the cluster that a job names.

    Raises:
        BadInputError: A name is unknown, or a file is broken.
    """
    with about(file):
        cluster = _cluster(spec, base, catalog)
        return _model(spec, file, base), cluster


def _looked_up(field: str, look_up: Callable[[], T], strip: str = "") -> T:
    """A look-up whose errors become messages to the user."""
    try:
        return look_up()
    except (ValueError, OSError) as error:
        raise BadInputError(str(error).removeprefix(strip), field=field) from error


def _model(spec: JobSpec, file: str, base: Path) -> Architecture:
    """The model by name or path, or from inline Hugging Face fields."""
    given = spec.model
    if isinstance(given, str):
        return _looked_up("model", lambda: load_model(given, base))
    config: Fields = dict(given)
    name = str(config.pop("name", "inline model"))
    return _looked_up(
        "model", lambda: from_config(config, source=file, name=name), f"{file}: "
    )


def _cluster(spec: JobSpec, base: Path, catalog: Catalog) -> Cluster:
    """The cluster by name or path, or from inline fields."""
    return _looked_up("cluster", lambda: cluster_named(spec.cluster, base, catalog))


def _frameworks(name: str) -> tuple[Framework, ...]:
    """The framework of a name, or all of them for `any`."""
    known = {framework.name: framework for framework in FRAMEWORKS}
    if name == "any":
        return FRAMEWORKS
    if name not in known:
        raise BadInputError(
            f"no such framework; {did_you_mean(name, [*known, 'any'])}",
            field="framework",
            value=name,
            allowed=", ".join([*known, "any"]),
        )
    return (known[name],)


def _check_priced(
    training: TrainingSpec, cluster: Cluster, measured: GpuCalibration, field: str
) -> None:
    """Refuse what the cost model has no numbers for."""
    if training.precision not in PRICED_PRECISIONS:
        raise BadInputError(
            "is not priced yet",
            field=field,
            value=training.precision,
            allowed=", ".join(PRICED_PRECISIONS),
        )
    if training.precision == "bf16" and cluster.gpu.peak_bf16 is None:
        raise BadInputError(
            f"{cluster.gpu.name} has no bf16 units",
            field=field,
            value="bf16",
            allowed="fp16",
        )
    narrow = training.precision not in ("bf16", "fp16")
    if narrow and training.precision not in measured.gemm:
        raise BadInputError(
            f"{cluster.gpu.name} has no {training.precision} units or no "
            f"{training.precision} measurement",
            field=field,
            value=training.precision,
            allowed=", ".join(measured.gemm),
        )


def _check_attention(workload: Workload) -> None:
    """Refuse an attention kernel that is unknown, or cannot run on this GPU."""
    kernel, arch = attention_kernel(workload), workload.gpu.arch
    if kernel not in attention_words():
        near = did_you_mean(kernel, attention_words())
        raise BadInputError(
            f"no such kernel of attention; {near}",
            field="stack.attention",
            value=kernel,
            allowed=", ".join(sorted({*attention_words().values()})),
        )
    if kernel not in attention_on(arch):
        raise BadInputError(
            f"does not run on {workload.gpu.name} ({arch})",
            field="stack.attention",
            value=kernel,
            allowed=", ".join(attention_on(arch)),
        )
    if not is_unfused(workload):
        # A missing head size takes the nearest, so only the kernel can be missing.
        check = partial(attention_curve, workload, head_dim=1)
        _looked_up("stack.attention_kernel", check)


def cautions(workload: Workload) -> tuple[str, ...]:
    """Warn of legal input that is rarely meant."""
    longest, given = workload.model.max_position, workload.training.seq_len
    name, said = workload.model.name, (*workload.model.left_out, *_lent(workload))
    if longest is None or given <= longest:
        return said
    return (*said, f"seq_len {given:,} is beyond the {longest:,} positions of {name}")


def _lent(workload: Workload) -> Iterator[str]:
    """Say that a kernel is priced by the rates of another, where it is."""
    kernel = attention_kernel(workload)
    if not is_unfused(workload) and (priced := priced_kernel(workload)) != kernel:
        gpu = workload.gpu.name
        yield f"attention {kernel} was not measured on {gpu}: priced as {priced}"


def planned_as(spec: JobSpec, family: str, base: Path) -> JobSpec:
    """A job whose model is planned as if it were of a family."""
    name = "inline model"
    if isinstance(spec.model, str):
        path = Path(spec.model)
        name = path.parent.name if path.name == "config.json" else path.stem
    fields = _looked_up("model", lambda: _model_fields(spec, name, base))
    return spec.model_copy(update={"model": {**fields, PLANNED_AS: family}})


def resolved_spec(
    spec: JobSpec, workload: Workload, *, base: Path
) -> dict[str, object]:
    """A job that stands on its own: its names and paths replaced by their content."""
    plain = spec.model_dump(mode="json", by_alias=True, exclude_none=True)
    its_cluster = workload.topology.cluster.spec
    for name in ("economics", "phases"):  # left out where they say nothing
        if getattr(spec, name) == JobSpec.model_fields[name].default:
            plain.pop(name)
    stack = _with_rows(workload, spec.stack)
    if stack != spec.stack:
        plain["stack"] = stack
    return plain | {
        "model": _model_fields(spec, workload.model.name, base),
        "cluster": its_cluster.model_dump(mode="json"),
        "training": workload.training.model_dump(
            mode="json", by_alias=True, exclude_none=True
        ),
        "framework": workload.framework.name,
    }


def _model_fields(spec: JobSpec, name: str, base: Path) -> Fields:
    """Hugging Face fields of the job's model, with its name."""
    if not isinstance(spec.model, str):
        return {"name": name, **spec.model}
    if spec.model in preset_names():
        return {"name": name, **read_preset(spec.model).config}
    return {**read_config(spec.model, base), "name": name}
