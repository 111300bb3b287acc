"""Looks up every name of a job: model, cluster, frameworks, stack, measurements."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from hardware.calibration import GpuCalibration
from hardware.catalog import Cluster
from hardware.topology import ClusterTopology
from planner.calibrated import with_deviation, with_uncertainty
from planner.calibration_file import CalibrationFile
from planner.cost.kernels import attention_curve, is_unfused
from planner.cost.tokens import with_tokens
from planner.cost.workload import Workload
from planner.errors import BadInputError, did_you_mean
from planner.expressible import refuse_unknown_words
from planner.fleets import cluster_named, measured_of, mixed_fleet, with_pods
from planner.frameworks import FRAMEWORKS
from planner.frameworks.by_hand import ALIASES, by_hand
from planner.frameworks.stacks import stack_names, with_stack
from planner.frameworks.torchtitan.loss import filled
from planner.frameworks.transformers import with_attention
from planner.methods import check_method, frozen_model
from planner.models import (
    Architecture,
    from_config,
    load_model,
    preset_names,
    read_config,
    read_preset,
)
from planner.specs.framework import Framework, Recipe, RecipeOverrides
from planner.specs.invalid import explained
from planner.specs.job import JobSpec
from planner.specs.profile import Profile
from planner.specs.read import Fields
from planner.specs.training import TrainingSpec
from planner.variants import trainings

PRICED_PRECISIONS = ("bf16", "fp16", "fp8", "mxfp8", "nvfp4")
"""Compute formats that the cost model has rates for."""

_NOT_SETTABLE = {"name", "source"}
_EAGER = "-eager"
"""End of the name of a stack that runs blocks without compilation."""

T = TypeVar("T")


def resolve(
    spec: JobSpec,
    *,
    file: str,
    base: Path,
    calibration: CalibrationFile | None = None,
) -> tuple[Workload, ...]:
    """A job with everything looked up, once for each framework it may run under.

    Args:
        spec: The job. [-]
        file: File of the job, for messages. [text]
        base: Folder that relative paths in the job start from. [-]
        calibration: The user's measurements, laid over the published ones. [-]

    Returns:
        One workload, or all of them for framework `any`, shape (frameworks,). [-]

    Raises:
        BadInputError: A name is unknown, a file is broken, or a part is not priced.
    """
    with about(file):
        return _resolve(spec, file, base, calibration)


@contextmanager
def about(file: str) -> Iterator[None]:
    """Names the job's file in every complaint that names no file itself.

    Args:
        file: File as the user named it. [text]

    Yields:
        Nothing.
    """
    try:
        yield
    except BadInputError as error:
        error.file = error.file or file
        raise


def _resolve(
    spec: JobSpec, file: str, base: Path, own: CalibrationFile | None
) -> tuple[Workload, ...]:
    _training(spec)
    refuse_unknown_words(spec.search)
    model, cluster = look_up(spec, file=file, base=base)
    on_pools = [
        _on_cluster(spec, model, pool, file, own) for pool in cluster.pools or [cluster]
    ]
    if not cluster.pools:
        return tuple(map(with_pods, on_pools[0]))
    return tuple(mixed_fleet(cluster, e) for e in zip(*on_pools, strict=True))


def _on_cluster(
    spec: JobSpec,
    model: Architecture,
    cluster: Cluster,
    file: str,
    own: CalibrationFile | None,
) -> tuple[Workload, ...]:
    """A job on nodes of one kind, once for each framework it may run under."""
    training, gpu = with_tokens(_training(spec), model), cluster.gpu
    measured = _told("cluster", lambda: measured_of(gpu.name, own))
    for wanted in trainings(training, spec.search):
        chosen = "search" if spec.search.choices("precision") else "training"
        _check_priced(wanted, cluster, measured, f"{chosen}.precision")
        check_method(wanted, model, gpu)
    workloads = tuple(
        with_uncertainty(
            Workload(
                model=frozen_model(training, model),
                training=training,
                framework=_with_stack(
                    framework,
                    with_attention(framework.name, spec.stack, model.family),
                    _defaults(framework, spec.stack, model, training),
                    file,
                    lambda on: with_deviation(on, gpu, own),
                ),
                topology=ClusterTopology(cluster),
                calibration=measured,
                search=spec.search,
            ),
            own,
        )
        for framework in _frameworks(spec.framework)
    )
    for workload in workloads:
        _check_attention(workload)
    return workloads


def _training(spec: JobSpec) -> TrainingSpec:
    """The training block; refuses an inference job, which has none."""
    if spec.training is None:
        raise BadInputError(
            "an inference job trains nothing: planner memory says what it holds",
            field="inference",
            allowed="a training block in its place",
        )
    return spec.training


def look_up(spec: JobSpec, *, file: str, base: Path) -> tuple[Architecture, Cluster]:
    """The model and the cluster that a job names.

    Args:
        spec: The job, of training or inference. [-]
        file: File of the job, for messages. [text]
        base: Folder that relative paths in the job start from. [-]

    Returns:
        The model, and the cluster with its node, GPU and links. [-]

    Raises:
        BadInputError: A name is unknown, or a file is broken.
    """
    with about(file):
        cluster = _cluster(spec, base)
        return _model(spec, file, base), cluster


def _told(field: str, look_up: Callable[[], T], strip: str = "") -> T:
    """A look-up whose errors become messages to the user."""
    try:
        return look_up()
    except (ValueError, OSError) as error:
        raise BadInputError(str(error).removeprefix(strip), field=field) from error


def _model(spec: JobSpec, file: str, base: Path) -> Architecture:
    """The model by name or path, or from inline Hugging Face fields."""
    given = spec.model
    if isinstance(given, str):
        return _told("model", lambda: load_model(given, base))
    config: Fields = dict(given)
    name = str(config.pop("name", "inline model"))
    return _told(
        "model", lambda: from_config(config, source=file, name=name), f"{file}: "
    )


def _cluster(spec: JobSpec, base: Path) -> Cluster:
    """The cluster by name or path, or from inline fields."""
    return _told("cluster", lambda: cluster_named(spec.cluster, base))


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


def _defaults(
    framework: Framework, stack: Fields, model: Architecture, training: TrainingSpec
) -> Fields:
    """Words of a framework's default stack that depend on the job."""
    depth, tokens = model.mtp_layers, training.seq_len
    return filled(framework.name, stack, mtp_layers=depth, tokens=tokens)


def _with_stack(
    framework: Framework,
    stack: Fields,
    defaults: Fields,
    file: str,
    measured: Callable[[Framework], Framework],
) -> Framework:
    """The named stack of a framework as measured, the job's overrides on top."""
    usual, framework = framework, measured(_named_stack(framework, stack))
    framework = replace(framework, by_hand=tuple(by_hand(usual, framework, stack)))
    stack = {**defaults, **stack}
    framework, rest = _with_options(framework, stack)
    given = {ALIASES.get(key, key): value for key, value in rest.items()}
    given.pop("name", None)
    recipe = _recipe(framework.recipe, given.pop("recipe", None) or {}, file)
    settable = Profile.model_fields.keys() - _NOT_SETTABLE
    for key in given.keys() - settable:
        known = [*settable, *ALIASES, *framework.options, "name", "recipe"]
        near = did_you_mean(str(key), known)
        raise BadInputError(
            f"no such key; {near}", field=f"stack.{key}", value=given[key]
        )
    merged = framework.profile.model_dump() | given
    try:
        stacked = Profile.model_validate(merged)
    except ValidationError as error:
        raise explained(error, Profile, file=file, inside="stack") from error
    return replace(framework, profile=stacked, recipe=recipe, words=dict(stack))


def _named_stack(framework: Framework, given: Fields) -> Framework:
    """The stack that a job names, or the eager one if it turns compilation off."""
    if "name" in given:
        return with_stack(framework, str(given["name"]))
    if given.get("compile") is not False or not framework.profile.compile:
        return framework
    eager = [name for name in stack_names(framework.name) if name.endswith(_EAGER)]
    if not eager:
        raise BadInputError(
            f"{framework.name} has no eager stack",
            field="stack.compile",
            value=False,
            allowed="true",
        )
    return with_stack(framework, eager[0])


def _with_options(framework: Framework, stack: Fields) -> tuple[Framework, Fields]:
    """A framework with its options set, and keys left; an alias may have any word."""
    rest = dict(stack)
    for name in framework.options.keys() & stack.keys():
        words, word = framework.options[name], rest.pop(name)
        if isinstance(word, str) and word in words:
            option = words[word]
            framework = replace(
                framework,
                profile=framework.profile.model_copy(update=option.profile),
                recipe=option.recipe.on(framework.recipe),
            )
        elif name in ALIASES:
            rest[name] = word
        else:
            near = did_you_mean(str(word), words)
            raise BadInputError(
                f"{framework.name} has no such {name}; {near}",
                field=f"stack.{name}",
                value=word,
                allowed=", ".join(words),
            )
    return framework, rest


def _recipe(recipe: Recipe, given: Any, file: str) -> Recipe:
    """A recipe with the job's overrides."""
    try:
        overrides = RecipeOverrides.model_validate(given)
    except ValidationError as error:
        raise explained(
            error, RecipeOverrides, file=file, inside="stack.recipe"
        ) from error
    return overrides.on(recipe)


def _check_priced(
    training: TrainingSpec, cluster: Cluster, measured: GpuCalibration, field: str
) -> None:
    """Refuse what the cost model has no numbers for."""
    _priced(field, training.precision, PRICED_PRECISIONS)
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


def _priced(field: str, value: str, priced: Iterable[str]) -> None:
    if value not in priced:
        raise BadInputError(
            "is not priced yet", field=field, value=value, allowed=", ".join(priced)
        )


def _check_attention(workload: Workload) -> None:
    """Refuse an attention kernel without a measurement on this GPU."""
    if is_unfused(workload):
        return
    # A missing head size takes the nearest, so only the kernel can be missing.
    _told("stack.attention_kernel", lambda: attention_curve(workload, head_dim=1))


def cautions(workload: Workload) -> tuple[str, ...]:
    """Warn of legal input that is rarely meant.

    Args:
        workload: The job. [-]

    Returns:
        Sentences, maybe none. [text]
    """
    longest, given = workload.model.max_position, workload.training.seq_len
    if longest is None or given <= longest:
        return ()
    name = workload.model.name
    return (f"seq_len {given:,} is beyond the {longest:,} positions of {name}",)


def resolved_spec(
    spec: JobSpec, workload: Workload, *, base: Path
) -> dict[str, object]:
    """A job that stands on its own: its names and paths replaced by their content.

    Args:
        spec: The job as read. [-]
        workload: The job, resolved under one framework. [-]
        base: Folder that relative paths in the spec start from. [-]

    Returns:
        Fields of a JobSpec, ready for JSON. [-]
    """
    plain = spec.model_dump(mode="json", by_alias=True, exclude_none=True)
    its_cluster = workload.topology.cluster.spec
    for name in ("economics", "phases"):  # left out where they say nothing
        if getattr(spec, name) == JobSpec.model_fields[name].default:
            plain.pop(name)
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
