"""The command line that gives the answer of a page."""

import shlex
from collections.abc import Iterator

from planner.web.fields import ANY, FORMS, Form, limited

COMMANDS = {"what-if": "plan"}
"""Page to the command of another name."""


USUAL = {"plan": 120.0, "explain": 60.0}
"""Time limit that a command has where none is given. [s]"""


def command_of(form: Form, seconds: float = 0.0) -> str:
    """Write the command line of a form.

    Args:
        form: The form, filled in. [-]
        seconds: Limit on the time of the search; 0 for the command's own. [s]
    """
    timed = form.kind in {*USUAL, "compare"} and seconds
    usual = seconds == USUAL.get(form.kind)
    limit = ["--time-limit", f"{seconds:g}"] if timed and not usual else []
    if form.kind == "compare":
        return shlex.join(["planner", "compare", "purchase.yaml", *limit])
    if form.kind != "rows":
        command = COMMANDS.get(form.kind, form.kind)
        return shlex.join(["planner", command, *_words(form), *limit])
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
