"""Refuses an imported job that `predict` would refuse, by the line that decides."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from planner.errors import BadInputError
from planner.hardware.reading.files import SHIPPED
from planner.job.resolve import resolve
from planner.job.variants import runnable
from planner.launch.importing.files import texts_of
from planner.launch.unknown import placed
from planner.specs.job import JobSpec

QUANTISED = ("load_in_4bit", "quantization_bit", "adapter")
SAID = {
    "training.precision": ("bf16", "fp16", "mixed_precision", "dtype", "torch_dtype"),
    "training.lora.precision": QUANTISED,
    "training.quantization": QUANTISED,
    "training.reference": ("rl", "stage", "loss_type", "beta"),
}
"""Names that settings of tools have for a field of a job. [text]"""


def refuse_unpriced(fields: Mapping[str, object], paths: Sequence[Path]) -> None:
    """Refuse a job that no command prices, where the files say what decides.

    Args:
        fields: Fields of the job. [-]
        paths: Files or folders that it was read from. [path]

    Raises:
        BadInputError: The job cannot be priced; has the file and line of the setting.
    """
    given = {name: value for name, value in fields.items() if value is not None}
    try:
        spec = JobSpec.model_validate(given)
        runnable(resolve(spec, file="", base=Path(), catalog=SHIPPED))
    except BadInputError as error:
        field = error.field or ""
        error.file = next(_places(field, paths), ", ".join(map(str, paths)))
        if field and error.allowed:
            error.allowed += f"; --set {field}=VALUE gives another"
        raise


def _places(field: str, paths: Sequence[Path]) -> Iterator[str]:
    """Lines of the files that say a field."""
    files = texts_of(paths)
    for name in SAID.get(field, ()):
        if place := placed(files, name):
            yield place
