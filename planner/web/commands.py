"""The command line that gives the answer of a page."""

import shlex
from collections.abc import Iterator

from planner.web.fields import ANY, FORMS, Form, limited

COMMANDS = {"what-if": "plan"}
"""Page to the command of another name."""


def command_of(form: Form) -> str:
    """Write the command line of a form.

    Args:
        form: The form, filled in. [-]

    Returns:
        A line for a shell; of a comparison, the line for its purchase file. [text]
    """
    if form.kind == "compare":
        return "planner compare purchase.yaml"
    if form.kind != "rows":
        return shlex.join(
            ["planner", COMMANDS.get(form.kind, form.kind), *_words(form)]
        )
    if form.values.get("is") != "log":
        return (
            "planner validate rows.yaml && planner calibrate rows.yaml --out fit.yaml"
        )
    job = shlex.join(["planner", "predict", *_words(form), "--save", "job.yaml"])
    return f"{job} && planner validate job.yaml --log run.log"


def _words(form: Form) -> Iterator[str]:
    """Options that give the fields of a form."""
    asked = dict(form.asked)
    options = {f.name: f.option for f in FORMS[form.kind] if f.option}
    for name, option in {"model": "--model", "on": "--on", **options}.items():
        usual = name == "method" and asked.get(name) == "full"
        if asked.get(name) and not usual:
            yield option
            yield asked[name]
    if risk := asked.get("risk"):
        yield from ("--robust", risk) if risk == ANY else ("--set", limited(risk))
