"""Corrects the documented profile of a stack by constants of measured runs."""

from dataclasses import replace
from math import exp, log, sqrt

from planner.cost.workload import Workload
from planner.frameworks import FRAMEWORKS
from planner.frameworks.fitted import fitted, uncertainty
from planner.frameworks.stacks import with_stack
from planner.hardware.calibration import GpuCalibration
from planner.hardware.calibration import calibration as published
from planner.hardware.catalog import Cluster
from planner.hardware.kernels.power import held, rate_held
from planner.hardware.specs import GpuSpec
from planner.job.calibration_file import CalibrationFile, Factors, StackFit
from planner.models.architecture import Architecture
from planner.specs.answer.uncertainty import Band, Uncertainty
from planner.specs.frameworks.deviation import SECONDS, Deviation
from planner.specs.frameworks.framework import Framework
from planner.specs.frameworks.profile import Profile

MEDIAN_TO_90 = 2.44
"""90 % half width of a normal error over its median size: 1.645 / 0.674. [1]"""
SHIPPED_WEIGHT = 4.0
"""Weight of the shipped interval, in rows of the user beyond the first. [1]"""


def shipped_profile(room: str, stack: str, arch: str) -> Profile:
    """Profile of a named stack with the constants that published runs fitted."""
    framework = next(one for one in FRAMEWORKS if one.name == room)
    documented = with_stack(framework, stack).profile
    return fitted().deviation(arch, stack).of(documented)


def measured_of(cluster: Cluster, own: CalibrationFile | None) -> GpuCalibration:
    """Calibration of a cluster's GPU at its power, with the user's measurements.

    Args:
        cluster: The cluster, whose nodes may limit the power of a GPU. [-]
        own: The user's measurements, which were made under that limit, or None. [-]
    """
    rate = rate_held(cluster.gpu, cluster.node)
    known = held(published(cluster.gpu.name, cluster.catalog), rate)
    return known if own is None else own.kernels(known)


def shape_of(model: Architecture) -> str:
    """Shape of a model, by which a calibration knows the jobs that were measured."""
    kind = " with experts" if model.expert_parameters else ""
    return f"{model.layers} layers of {model.hidden}{kind}"


def calibrated(
    workload: Workload, own: CalibrationFile | None = None, campaign: str = ""
) -> Workload:
    """A documented workload with the corrections of measured runs.

    Args:
        workload: The job on a documented stack. [-]
        own: The user's measurements, or None. [-]
        campaign: State of the cluster that ran the job; empty for any. [text]

    Raises:
        CatalogError: A section of the user's file is wrong; names the field.
    """
    kernels = own.kernels(workload.calibration) if own else workload.calibration
    return with_fit(replace(workload, calibration=kernels), own, campaign)


def with_fit(
    workload: Workload, own: CalibrationFile | None = None, campaign: str = ""
) -> Workload:
    """A workload with the constants and the errors that runs on its stack had.

    Args:
        workload: The job on a documented stack, its kernels as measured. [-]
        own: The user's fits, or None. [-]
        campaign: State of the cluster that ran the job; empty for any. [text]

    Returns:
        The workload with a corrected profile, and bands from the nearest measured
        group. [-]
    """
    framework, gpu = workload.framework, workload.gpu
    stack = framework.profile.name
    fit = own.fit(gpu.name, framework.name, stack) if own else None
    profile = _deviation(framework, gpu, fit).of(framework.profile)
    bands = uncertainty(
        framework=framework.name,
        stack=stack,
        arch=gpu.arch,
        borrowed="gemm" in workload.calibration.borrowed,
    )
    if fit:
        job = fit.of(shape_of(workload.model), campaign)
        profile = profile.model_copy(update=_factors(profile, job))
        bands = _narrowed(bands, job) if job is not fit or not fit.jobs else bands
    framework = replace(framework, profile=profile)
    return replace(workload, framework=framework, uncertainty=bands)


def _deviation(framework: Framework, gpu: GpuSpec, fit: StackFit | None) -> Deviation:
    """Shipped deviation of a stack on a GPU, then the constants of the user's fit."""
    stack = framework.profile.name
    shipped = fitted().deviation(gpu.arch, stack)
    if not fit:
        return shipped
    default = shipped_profile(framework.name, stack, gpu.arch)
    further = {
        name: value - default.step_overhead
        if name == SECONDS
        else value / getattr(default, name)
        for name, value in fit.constants.items()
    }
    return shipped.then(Deviation.model_validate(further))


def _factors(profile: Profile, fit: Factors) -> dict[str, float]:
    """Factors of the user's own runs, as constants of a profile. [1]."""
    return {
        "step_factor": fit.step_factor,
        "memory_factor": fit.memory_factor,
        "fragmentation": min(profile.fragmentation / fit.reserved_factor, 1.0),
        "reserved_factor": fit.reserved_factor,
    }


def _narrowed(bands: Uncertainty, fit: Factors) -> Uncertainty:
    """The shipped band of the step time, narrowed by the user's own rows.

    A shipped half width h holds what sources differ by, b, and what the runs of one
    source differ by, w: ``h^2 = b^2 + w^2``. The user's rows take w towards the error
    that they leave, and their mean tells b::

        h_n^2 = w^2 + 1 / (1 / b^2 + n / w^2)
    """
    left, beyond = MEDIAN_TO_90 * fit.residual, fit.rows - 1
    share = beyond / (beyond + SHIPPED_WEIGHT)

    def narrowed(half: float) -> float:
        own = share * left**2 + (1 - share) * (bands.within * half) ** 2
        between = (1 - bands.within**2) * half**2
        together = fit.rows * between + own
        return sqrt(own + (between * own / together if together else 0.0))

    low, high = narrowed(-log(bands.time.low)), narrowed(log(bands.time.high))
    return bands.model_copy(
        update={
            "time": Band(low=exp(-low), high=exp(high)),
            "why": f"calibrated on {fit.rows} runs of your own ({fit.residual:.1%} "
            f"median error left); before that: {bands.why}",
        }
    )
