"""A layout that ran, as evidence of how far memory is off.

What is not counted of a job's memory is off by a factor, whose logarithm is normal. Of
its variance the share ``w^2`` differs between runs of one source, the rest is common
to all of them; so the factors of two layouts of one job and stack have the
correlation ``1 - w^2`` (``memory.within`` of frameworks/intervals.yaml, from measured
runs). That a layout ran says that its own factor was within the room of its fullest
rank; factors of the job's other layouts are then those on that condition
(:meth:`planner.specs.answer.uncertainty.Uncertainty.beyond`).
"""

from dataclasses import replace

from planner.cost.estimate.estimate import times_fitting
from planner.cost.pricing import Pricing
from planner.cost.workload import Workload
from planner.errors import BadInputError
from planner.job.loading import Job, workload_of_one
from planner.job.resolve import about
from planner.planning.prediction.predict import predict
from planner.specs.answer.estimate import Interval, MemoryEstimate
from planner.specs.answer.result import RankedPlan
from planner.specs.layouts.layout import Layout, PartialLayout


def with_ran(job: Job) -> Job:
    """Narrow the memory of a job whose layout ran.

    Returns:
        The job, its memory on the condition that the layout fitted; unchanged where no
        layout is said to have run, and on fleets of several kinds of GPUs.

    Raises:
        BadInputError: The layout is said to have run, and is absent, illegal, or
            larger than the memory by what is counted alone; or the job names several
            frameworks.
    """
    given = job.spec.layout
    if not given.ran:
        return job
    if not given.given():
        raise BadInputError(
            "a layout that ran is said, and none is given",
            file=job.file,
            field="layout.ran",
            allowed="the layout beside it",
        )
    workload = workload_of_one(job)
    with about(job.file):
        plan = predict(workload, given)
        room = fitting(workload, plan.layout, plan.estimate.memory)
    if workload.pools:
        return job
    return job.edited(lambda one: _known_to_fit(one, room))


def fitting(workload: Workload, layout: Layout, memory: MemoryEstimate) -> float:
    """Multiple of its uncertain memory that a layout that ran had room for.

    Returns:
        The multiple; 1 on fleets of several kinds of GPUs, which tell nothing. [1]

    Raises:
        BadInputError: Parameters times bytes alone exceed the memory.
    """
    pricing = Pricing.of(workload, layout)
    if pricing.pools:
        return 1.0
    room = times_fitting(pricing, memory.stages)
    if room <= 0:
        counted = max(stage.counted for stage in memory.stages)
        raise BadInputError(
            f"the layout cannot have run: weights, gradients and optimizer alone take "
            f"{counted:.1f} of {memory.capacity_gib:.1f} GiB",
            field="layout.ran",
            value=True,
            allowed="the GPU, optimizer, method and stack that it ran with",
        )
    return room


def _known_to_fit(workload: Workload, room: float) -> Workload:
    bands = workload.uncertainty.model_copy(update={"ran_within": room})
    return replace(workload, uncertainty=bands)


def predicted(workload: Workload, given: PartialLayout) -> RankedPlan:
    """Price one given layout; one that ran fits.

    Raises:
        BadInputError: The layout is illegal, or it cannot have run as is said.
    """
    return as_ran(workload, given, predict(workload, given))


def as_ran(workload: Workload, given: PartialLayout, plan: RankedPlan) -> RankedPlan:
    """A priced layout, whose memory fits where it is said that the layout ran."""
    if not given.ran:
        return plan
    memory = ran_memory(workload, plan.layout, plan.estimate.memory)
    its = plan.estimate.model_copy(update={"memory": memory})
    return plan.model_copy(update={"estimate": its})


def ran_memory(
    workload: Workload, layout: Layout, memory: MemoryEstimate
) -> MemoryEstimate:
    """Memory of a layout that ran: no more than there is.

    Raises:
        BadInputError: Parameters times bytes alone exceed the memory.
    """
    fitting(workload, layout, memory)
    peak, most = memory.peak_device_gib, memory.capacity_gib
    ends = {name: min(value, most) for name, value in dict(peak).items()}
    return memory.model_copy(
        update={
            "peak_device_gib": Interval(**ends),
            "oom_probability": 0.0,
            "verdict": "fits",
        }
    )
