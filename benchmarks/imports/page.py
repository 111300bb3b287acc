"""The page of the imported configurations."""

from benchmarks.imports.cases import ROOT, Case, cases, priced, reading_of
from planner.errors import BadInputError
from planner.specs.answer.result import RankedPlan
from planner.specs.layouts.layout_text import degrees_text

PAGE = ROOT / "docs" / "imports.md"
HEAD = """# Public configurations, read back

Launch files of the frameworks' own repositories, re-created by their values in
`tests/golden/import/`, as `planner import` reads them and `planner predict` prices
them. Nobody measured these runs here: the figures are predictions, with the interval
that holds 90 % of measured runs. The model and the hardware are named where the files
do not say them. Made by `python -m benchmarks.imports --write`.

| run | files | layout | step | model TFLOP/s per GPU | fullest GPU |
| --- | --- | --- | --- | --- | --- |
"""


def line(name: str, case: Case) -> str:
    """One row of the table.

    Args:
        name: Path of the case's folder. [text]
        case: The case. [-]

    Returns:
        Markdown. [text]
    """
    head = (case.title, f"`{name}`: {case.source}")
    try:
        cells = figures(priced(name, case))
    except BadInputError as error:
        cells = (f"refused: {error}", "", "", "")
    return "| " + " | ".join((*head, *cells)) + " |"


def figures(plan: RankedPlan) -> tuple[str, ...]:
    """Layout, time, rate and memory of a prediction.

    Args:
        plan: The prediction. [-]

    Returns:
        Cells. [text]
    """
    its = plan.estimate
    step, memory = its.step_time_s, its.memory
    return (
        degrees_text(plan.layout).replace(",", ", "),
        f"{step.value:.2f} s ({step.low:.2f} to {step.high:.2f})",
        f"{its.model_tflops_per_gpu.full_attention:.0f}",
        f"{memory.peak_device_gib.value:.0f} of {memory.capacity_gib:.0f} GiB: "
        f"{memory.verdict}",
    )


def page() -> str:
    """The whole page.

    Returns:
        Markdown. [text]
    """
    rows, notes = [], []
    for name, case in cases().items():
        rows.append(line(name, case))
        notes += [
            f"- `{name}`: {word}"
            for word in reading_of(name, case).unknown
            if not word.ranks
        ]
    left = "\n## Not priced\n\n" + "\n".join(notes) + "\n" if notes else ""
    return HEAD + "\n".join(rows) + "\n" + left
