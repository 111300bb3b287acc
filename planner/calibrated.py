"""Corrects the documented profile of a stack by constants of measured runs."""

from dataclasses import replace
from math import exp, log

from hardware.specs import GpuSpec
from planner.calibration_file import CalibrationFile, StackFit
from planner.cost.workload import Workload
from planner.frameworks import FRAMEWORKS
from planner.frameworks.fitted import fitted, uncertainty
from planner.frameworks.stacks import with_stack
from planner.specs.deviation import SECONDS, Deviation
from planner.specs.framework import Framework
from planner.specs.profile import Profile
from planner.specs.uncertainty import Band, Uncertainty

MEDIAN_TO_90 = 2.44
"""90 % half width of a normal error over its median size: 1.645 / 0.674. [1]"""
SHIPPED_WEIGHT = 4.0
"""Weight of the shipped interval, in rows of the user beyond the first. [1]"""


def shipped_profile(room: str, stack: str, arch: str) -> Profile:
    """Profile of a named stack with the constants that published runs fitted.

    Args:
        room: Name of the framework. [text]
        stack: Name of the stack. [text]
        arch: Architecture of the GPU. [text]

    Returns:
        The defaults that `planner calibrate` starts from. [-]
    """
    framework = next(one for one in FRAMEWORKS if one.name == room)
    documented = with_stack(framework, stack).profile
    return fitted().deviation(arch, stack).of(documented)


def deviation_of(
    framework: Framework, gpu: GpuSpec, own: CalibrationFile | None = None
) -> Deviation:
    """Deviation of a stack on a GPU from the documented profile of the stack.

    Args:
        framework: A framework on one of its stacks. [-]
        gpu: The GPU. [-]
        own: The user's fits, or None. [-]

    Returns:
        The shipped deviation; a constant that the user fitted goes first. [-]
    """
    stack = framework.profile.name
    shipped = fitted().deviation(gpu.arch, stack)
    fit = own and own.fit(gpu.name, framework.name, stack)
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


def with_deviation(
    framework: Framework, gpu: GpuSpec, own: CalibrationFile | None = None
) -> Framework:
    """A framework with the constants that measured runs gave its stack.

    Args:
        framework: A framework on one of its stacks, as documented. [-]
        gpu: The GPU. [-]
        own: The user's fits, or None. [-]

    Returns:
        The framework with a corrected profile. [-]
    """
    moved = deviation_of(framework, gpu, own).of(framework.profile)
    fit = own and own.fit(gpu.name, framework.name, framework.profile.name)
    if fit:
        moved = moved.model_copy(update={"step_factor": fit.step_factor})
    return replace(framework, profile=moved)


def with_uncertainty(
    workload: Workload, own: CalibrationFile | None = None
) -> Workload:
    """A workload with the uncertainty of its predictions.

    Args:
        workload: The job. [-]
        own: The user's fits, or None. [-]

    Returns:
        The workload with bands from the nearest measured group. [-]
    """
    stack = workload.framework.profile.name
    bands = uncertainty(
        arch=workload.gpu.arch,
        stack=stack,
        moe=workload.model.expert_parameters > 0,
        borrowed="gemm" in workload.calibration.borrowed,
    )
    fit = own and own.fit(workload.gpu.name, workload.framework.name, stack)
    return replace(workload, uncertainty=_narrowed(bands, fit) if fit else bands)


def _narrowed(bands: Uncertainty, fit: StackFit) -> Uncertainty:
    """The shipped band of the step time, averaged with the residual of user rows.

    The first row sets the factor and leaves no residual, so it narrows nothing.
    """
    left, beyond = MEDIAN_TO_90 * fit.residual, fit.rows - 1
    share = beyond / (beyond + SHIPPED_WEIGHT)
    low = share * left - (1 - share) * log(bands.time.low)
    high = share * left + (1 - share) * log(bands.time.high)
    return bands.model_copy(
        update={
            "time": Band(low=exp(-low), high=exp(high)),
            "why": f"calibrated on {fit.rows} runs of your own ({fit.residual:.1%} "
            f"median error left); before that: {bands.why}",
        }
    )


def calibrated(workload: Workload, own: CalibrationFile | None = None) -> Workload:
    """A documented workload with the corrections of measured runs.

    Args:
        workload: The job on a documented stack. [-]
        own: The user's measurements, or None. [-]

    Returns:
        The workload with corrected constants, and bands of uncertainty. [-]

    Raises:
        CatalogError: A section of the user's file is wrong; names the field.
    """
    framework = with_deviation(workload.framework, workload.gpu, own)
    kernels = own.kernels(workload.calibration) if own else workload.calibration
    moved = replace(workload, framework=framework, calibration=kernels)
    return with_uncertainty(moved, own)
