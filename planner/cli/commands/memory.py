"""`planner memory`: memory alone, of training and of inference."""

from typing import Annotated

import typer

from planner.cli.guard import guarded
from planner.cli.options import TO_PRICE, JsonTo, TimeLimit
from planner.cli.output import check_writable, deliver
from planner.cli.sources import Source, sourced, with_assumed
from planner.cli.stopping import this_run
from planner.cli.verdicts import Failing, fail_over, failing_risk
from planner.document.terminal import report
from planner.questions.memory import Memory

LayoutText = Annotated[
    str | None,
    typer.Option(
        "--layout",
        metavar="TP=8,PP=16,...",
        help="The layout, in place of the spec's; without any, the most frugal one.",
        show_default=False,
    ),
]


@guarded
@sourced
def memory(
    source: Source,
    *,
    layout: LayoutText = None,
    time_limit: TimeLimit = TO_PRICE,
    json_to: JsonTo = None,
    fail_on: Failing = None,
) -> None:
    """Print what a job holds in memory, and the most that fits.

    Args:
        source: The job, of training or of inference. [-]
        layout: Layout in its short form. [text]
        time_limit: Longest time in all, from the start of the process. [s]
        json_to: File for JSON, or `-` for stdout. [-]
        fail_on: Risk that makes the exit code 3. [text]

    Raises:
        BadInputError: The layout is not legal, or a name is not known.
        TimeLimitError: The memory was not known in time.
        Exit: With 3, for a risk over that of `--fail-on`.
    """
    risk = failing_risk(fail_on)
    check_writable(json=json_to, save=source.save)
    asked = source.read(layout)
    stop = this_run().limited(time_limit)
    found = Memory(asked.unasked()).answer(stop)
    asked.save()
    answer = found.answer
    text = answer.model_dump_json(by_alias=True, indent=2)
    deliver(with_assumed(report(found.page()), asked.assumed), text, json_to)
    fail_over(risk, [answer.memory])
