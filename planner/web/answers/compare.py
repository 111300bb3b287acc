"""Answer of the page that compares clusters."""

import json
from typing import Any

from planner.errors import BadInputError
from planner.hardware.reading.escape import yaml_text
from planner.questions.compare import compare
from planner.report.comparison import comparison_document
from planner.web.answers.line import Line, line_of
from planner.web.answers.plan import Tell
from planner.web.question import Answered, Counting, Question


def compare_answer(question: Question, tell: Tell) -> Answered:
    """Plan a job on several clusters, and hold them side by side.

    Returns:
        Candidates with time, cost and energy; the job file is a purchase. [-]

    Raises:
        BadInputError: A field is wrong, or nothing holds the budget or the deadline.
    """
    found, line = _purchase(question)
    answer = compare(
        found,
        time_limit=question.seconds,
        memory_limit=question.memory,
        on_progress=lambda done, count: tell(Counting(done, count)),
    )
    return Answered(
        page=comparison_document(answer),
        json=answer.to_json(),
        job=yaml_text(found),
        assumed=line.assumed,
    )


def _purchase(question: Question) -> tuple[dict[str, Any], Line]:
    """The fields of a purchase file, and the job on its first cluster."""
    clusters, prices = question.each("on"), question.each("price")
    lines = []
    for place, cluster in enumerate(clusters):
        try:
            lines.append(line_of(question, cluster))
        except BadInputError as error:
            error.field = f"on{place}" if error.field == "--on" else error.field
            raise
    job = json.loads(lines[0].spec.model_dump_json(by_alias=True, exclude_unset=True))
    candidates = []
    for line, cluster, price in zip(lines, clusters, prices, strict=True):
        fields = json.loads(
            line.spec.model_dump_json(by_alias=True, exclude_unset=True)
        )
        one = {"name": cluster, "cluster": fields["cluster"]}
        candidates.append(one | ({"price": price} if price else {}))
    del job["cluster"]
    asked = {name: question.get(name) for name in ("budget", "deadline")}
    asked = {name: value for name, value in asked.items() if value}
    return {"job": job, **asked, "candidates": candidates}, lines[0]
