"""Learning rates that launch files start with: a report's, or the user's own."""

from functools import cache
from pathlib import Path

from planner.hardware.reading.yaml_text import parse_yaml
from planner.launch.brief import Brief, Variable

RATE = '"${LEARNING_RATE:-1e-5}"'
"""Word of the learning rate; the second value is for trials on a CPU alone. [text]"""
_OWN = "Peak of the learning rate; "


def learning_rate(brief: Brief, *, anew: bool) -> Variable:
    """Variable of the peak learning rate, without which a run on GPUs does not start.

    Args:
        brief: The plan. [-]
        anew: True where a full run starts from new weights. [-]

    Returns:
        The rate of the model's report for pre-training, with the source; else an empty
        variable for the user. [-]
    """
    found = published().get(str(brief.model.get("name", "")))
    pairs = brief.training.reference is not None
    if found is None or not anew or brief.training.method != "full" or pairs:
        why = f"{_OWN}yours to choose for this model, data and batch."
        return Variable("LEARNING_RATE", "", why, required=True)
    value, source = found
    why = f"{_OWN}that of the model's own pre-training ({source})."
    return Variable("LEARNING_RATE", f"{value:g}", why)


@cache
def published() -> dict[str, tuple[float, str]]:
    """Peak learning rate and its source by name of a model."""
    text = Path(__file__).with_name("rates.yaml").read_text(encoding="utf-8")
    rows = parse_yaml(text)["rates"]
    return {
        name: (float(peak), str(row["source"]))
        for row in rows
        for name, peak in row["peaks"].items()
    }
