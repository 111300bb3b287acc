"""Charts of time, memory and peak FLOP/s by cause."""

from itertools import accumulate

from planner.document.blocks import Figure, Legend
from planner.report.charts.look import (
    CAUSE_COLOURS,
    ROW,
    axis,
    bars,
    downwards,
    layout,
    rounded,
)
from planner.report.charts.timeline import Timeline, time_by_rank
from planner.report.vocabulary import CATEGORIES
from planner.specs.answer.estimate import (
    WAIT_WORDS,
    Estimate,
    MemoryEstimate,
    StageMemory,
)

SHORT = {
    "compute": "kernels",
    "recompute": "recompute",
    "tp_comm": "tensor parallel",
    "cp_comm": "context parallel",
    "ep_comm": "expert all-to-all",
    "pp_comm": "pipeline sends",
    "dp_comm": "data parallel",
    "optimizer": "optimizer",
    "bubble": "pipeline bubble",
    "straggler": "stragglers",
    "other": "other",
    **WAIT_WORDS,
}
"""Cause of the time breakdown to its name in a chart."""
_OF_RANK = {
    **{cause: (SHORT[cause], CAUSE_COLOURS[cause]) for cause in list(SHORT)[:5]},
    "dp_comm": ("data parallel", "data"),
    **{cause: (name, "other") for cause, name in WAIT_WORDS.items()},
    "pipeline send": ("pipeline sends", "pipeline"),
    "gather parameters": ("gather parameters", "data"),
    "reduce gradients": ("reduce gradients", "data"),
    "optimizer": ("end of step", "end"),
    "bubble": ("bubble", "idle"),
}
"""Cause of time in a rank's step to name and colour."""


def rank_times(step: Timeline) -> tuple[Figure, Legend]:
    """Time of every pipeline rank in a step, by work and waits.

    Returns:
        Stacked bars that all end with the step, and the legend. [s]
    """
    found = time_by_rank(step)
    ranks = [str(rank) for rank in range(step.ranks)]
    shown = [cause for cause in _OF_RANK if cause in found]
    traces = [
        bars(
            ranks,
            rounded(found[cause], 4),
            name=_OF_RANK[cause][0],
            marker={"color": f"@{_OF_RANK[cause][1]}"},
            hovertemplate=f"rank %{{y}}: {_OF_RANK[cause][0]} %{{x:.3f}} s"
            "<extra></extra>",
        )
        for cause in shown
    ]
    high = 70 + max(16, min(ROW, 560 // step.ranks)) * max(step.ranks, 2)
    drawn = layout(
        high,
        barmode="stack",
        xaxis=axis("time [s]", range=[0, step.makespan / 1e9]),
        yaxis=axis("pipeline rank", **downwards(type="category")),
    )
    return {"data": traces, "layout": drawn}, tuple(
        dict.fromkeys(_OF_RANK[cause] for cause in shown)
    )


def memory_stages(memory: MemoryEstimate) -> tuple[Figure, Legend]:
    """Memory of every pipeline rank by category, against the capacity of a GPU.

    Args:
        memory: Peak memory of every stage. [GiB]

    Returns:
        Stacked bars with the limit, and the legend. [GiB]
    """
    names = [str(stage.stage) for stage in memory.stages]
    traces = [
        bars(
            names,
            rounded([getattr(stage, category) for stage in memory.stages], 3),
            name=category,
            marker={"color": f"@m-{category}"},
            customdata=[stage.moment for stage in memory.stages],
            hovertemplate=f"rank %{{y}}: {category} %{{x:.2f}} GiB"
            "<br>fullest at %{customdata}<extra></extra>",
        )
        for category in CATEGORIES
    ]
    limit = {
        "type": "line",
        "x0": memory.capacity_gib,
        "x1": memory.capacity_gib,
        "y0": 0,
        "y1": 1,
        "yref": "paper",
        "line": {"color": "@limit", "width": 1.5, "dash": "dash"},
    }
    most = max(memory.capacity_gib, *(stage.device for stage in memory.stages))
    high = 80 + max(16, min(ROW, 560 // len(names))) * max(len(names), 2)
    drawn = layout(
        high,
        barmode="stack",
        xaxis=axis("device memory [GiB]", range=[0, most * 1.04]),
        yaxis=axis("pipeline rank", **downwards(type="category")),
        shapes=[limit],
    )
    return {"data": traces, "layout": drawn}, (
        *((category, f"m-{category}") for category in CATEGORIES),
        (f"limit, {memory.capacity_gib:.1f} GiB", "limit"),
    )


def memory_moments(stage: StageMemory) -> Figure:
    """Memory of one pipeline rank at every moment of a run, by category.

    Args:
        stage: The rank. [GiB]

    Returns:
        Stacked bars. [GiB]
    """
    names = [moment.moment for moment in stage.moments]
    traces = [
        bars(
            names,
            rounded([max(getattr(m, category), 0.0) for m in stage.moments], 3),
            marker={"color": f"@m-{category}"},
            hovertemplate=f"%{{y}}: {category} %{{x:.2f}} GiB<extra></extra>",
        )
        for category in CATEGORIES
    ]
    drawn = layout(
        80 + ROW * len(names),
        barmode="stack",
        xaxis=axis("device memory [GiB]"),
        yaxis=downwards(),
    )
    return {"data": traces, "layout": drawn}


def spent(estimate: Estimate) -> dict[str, float]:
    """Causes that take any time.

    Returns:
        Cause to time, the kernels first. [s]
    """
    every = estimate.causes_s
    return {cause: every[cause] for cause in SHORT if every.get(cause)}


def waterfall(estimate: Estimate) -> Figure:
    """Peak FLOP/s of a GPU down to the FLOP/s that the model achieves.

    A cause that takes a share of the step takes that share of the peak. Kernels take
    their time beyond the time of the model's FLOPs at peak::

        peak (1 - (compute / step - MFU) - other causes / step) = peak MFU

    Returns:
        Steps of a waterfall. [TFLOP/s]
    """
    achieved = estimate.model_tflops_per_gpu.full_attention
    mfu = estimate.mfu.full_attention
    peak, losses = achieved / mfu, _losses(estimate)
    names = ["peak", *losses, "achieved"]
    values = [peak, *(-peak * share for share in losses.values()), achieved]
    shares = [1.0, *(-share for share in losses.values()), mfu]
    starts = [0.0, *accumulate(values[:-2]), 0.0]
    colours = ["@pipeline" if share > 0 else "@comm" for share in shares[1:-1]]
    trace = bars(
        names,
        rounded(values, 2),
        base=rounded(starts, 2),
        text=[f"{share:.1%}".replace("-0.0%", "0.0%") for share in shares],
        textposition="outside",
        cliponaxis=False,
        customdata=rounded(values, 2),
        hovertemplate="%{y}: %{customdata:.1f} TFLOP/s<extra></extra>",
        marker={"color": ["@compute", *colours, "@compute"]},
    )
    return {
        "data": [trace],
        "layout": layout(
            80 + 28 * len(names),
            xaxis=axis("TFLOP/s per GPU", range=[0, peak * 1.14]),
            yaxis=downwards(),
        ),
    }


def _losses(estimate: Estimate) -> dict[str, float]:
    """Share of the peak that every cause takes. [1]."""
    times = spent(estimate)
    step = sum(times.values())
    shares = {SHORT[cause]: time / step for cause, time in times.items()}
    kernels = shares.pop(SHORT["compute"], 0.0) - estimate.mfu.full_attention
    return {"slower kernels": kernels, **shares}


def step_causes(estimate: Estimate) -> tuple[Figure, Legend]:
    """The step as one stacked bar of its causes.

    Returns:
        The bar, and the legend. [s]
    """
    shown = spent(estimate)
    step = sum(shown.values())
    traces = [
        bars(
            [""],
            [round(time, 4)],
            marker={"color": f"@{CAUSE_COLOURS[cause]}"},
            hovertemplate=f"{SHORT[cause]}: %{{x:.3f}} s, {time / step:.1%}"
            "<extra></extra>",
        )
        for cause, time in shown.items()
    ]
    drawn = layout(
        96,
        barmode="stack",
        bargap=0.1,
        xaxis=axis("time of one step [s]", range=[0, step], showgrid=False),
        yaxis={"showgrid": False},
    )
    return {"data": traces, "layout": drawn}, tuple(
        (f"{SHORT[cause]} {time / step:.1%}", CAUSE_COLOURS[cause])
        for cause, time in shown.items()
    )
