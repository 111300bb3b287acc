"""Measurements on the user's own machines, read from a YAML file.

::

    schema: planner/calibration@1
    gpus:                       # kernels, as `planner profile` measures them
      h200-sxm-141gb: {gemm: {bf16: {...}}, memory: {...}}
    stacks:                     # steps, as `planner calibrate` fits them
      - {gpu: h200-sxm-141gb, framework: megatron, stack: megatron-2024,
         step_factor: 1.02, constants: {clock: 0.93}, rows: 5, residual: 0.02,
         jobs: [{model: 32 layers of 4096, campaign: may, step_factor: 1.08,
                 memory_factor: 1.03, rows: 5, residual: 0.02}]}
"""

from collections.abc import Collection, Mapping
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from planner.errors import BadInputError, did_you_mean
from planner.frameworks import FRAMEWORKS
from planner.frameworks.stacks import stack_names
from planner.hardware.calibration import GpuCalibration, calibration
from planner.hardware.reading.files import Catalog, CatalogError
from planner.hardware.reading.numbers import PositiveInt
from planner.hardware.remeasured import remeasured
from planner.specs.frameworks.deviation import SECONDS, Constant
from planner.specs.frameworks.profile import Profile
from planner.specs.reading.invalid import explained
from planner.specs.reading.read import read_mapping

SCHEMA: Literal["planner/calibration@1"] = "planner/calibration@1"
"""Name and version of the file's format."""
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]


Job = tuple[str, str]
"""Shape of a model, and the campaign that ran it. [text]"""
Factor = Annotated[float, Field(ge=0.1, le=10, allow_inf_nan=False)]
SLOWEST, FASTEST = 1e-3, 1e3
"""Ends of what a fitted factor can mean. [1]"""
LONGEST_OVERHEAD = 3600.0
"""Host work of one optimizer step beyond which a file is wrong. [s]"""


class Factors(BaseModel):
    """Measured over predicted, of some runs.

    Attributes:
        step_factor: Of the step, with the stack's constants in force. [1]
        memory_factor: Of allocated memory. [1]
        reserved_factor: Of reserved over allocated memory. [1]
        rows: Measured runs that the factors rest on. [1]
        residual: Median relative error of the step that remains. [1]
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    step_factor: Factor = 1.0
    memory_factor: Factor = 1.0
    reserved_factor: Factor = 1.0
    rows: PositiveInt
    residual: NotNegative


class _OfJob(BaseModel):
    model: str
    campaign: str = ""


class _OfStack(BaseModel):
    gpu: str
    framework: str = ""
    stack: str


class JobFit(Factors, _OfJob):
    """Factors of the jobs that were measured, of one model in one campaign.

    Attributes:
        model: Shape of the model, as `shape_of` names it. [text]
        campaign: State of the cluster that ran them; empty where none is told. [text]
    """


class StackFit(Factors, _OfStack):
    """Factors and constants that measured runs give one software stack on one GPU.

    The factors beside `jobs` are those of every other job; without `jobs` those of all.

    Attributes:
        gpu: Name of the GPU. [-]
        framework: Name of the framework; empty where the stack's name is enough. [-]
        stack: Name of the stack. [-]
        constants: Constant to its fitted value; `step_overhead` in seconds, the
            others are factors. [1] or [s]
        jobs: Factors of the models that were measured, shape (jobs,). [-]
    """

    constants: dict[Constant, NotNegative] = {}
    jobs: tuple[JobFit, ...] = ()

    @model_validator(mode="after")
    def _check_factors(self) -> Self:
        """Refuse a factor of 0, and a value outside the sensible range."""
        for name, value in self.constants.items():
            if name == SECONDS:
                if value > LONGEST_OVERHEAD:
                    raise ValueError(f"{name} of {value:g} s is over an hour")
            elif value == 0:
                raise ValueError(f"{name} is a factor, and not 0")
            elif not SLOWEST <= value <= most(name):
                raise ValueError(
                    f"{name} of {value:g} is not between {SLOWEST:g} and {most(name):g}"
                )
        return self

    def of(self, model: str, campaign: str = "") -> Factors:
        """Factors of a job.

        Args:
            model: Shape of the job's model. [text]
            campaign: State of the cluster; empty for any. [text]

        Returns:
            Those of the model, of most rows where several campaigns ran it; else
            those of every other job. [-]
        """
        found = [
            job
            for job in self.jobs
            if job.model == model and (not campaign or job.campaign in ("", campaign))
        ]
        return max(found, key=lambda job: job.rows) if found else self


def most(name: Constant) -> float:
    """Largest value of a constant that a profile may have.

    Returns:
        Upper end of the constant. [1] or [s]
    """
    ends = (getattr(m, "le", None) for m in Profile.model_fields[name].metadata)
    return next((float(end) for end in ends if end is not None), FASTEST)


class CalibrationFile(BaseModel):
    """Content of a calibration file; either part may be absent.

    Attributes:
        schema_name: Format of the file, key `schema`. [-]
        gpus: Name of a GPU to the sections measured on it. [-]
        stacks: Fits, at most one per GPU and stack, shape (fits,). [-]
    """

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    schema_name: Literal["planner/calibration@1"] = Field(
        default=SCHEMA, alias="schema"
    )
    gpus: Mapping[str, dict[str, Any]] = Field(default_factory=dict)
    stacks: tuple[StackFit, ...] = ()

    @model_validator(mode="after")
    def _check_content(self) -> Self:
        """Refuse an empty file, and a fit that is given twice."""
        if not self.gpus and not self.stacks:
            raise ValueError("has neither gpus nor stacks")
        fits = [(fit.gpu, fit.framework, fit.stack) for fit in self.stacks]
        for gpu, framework, stack in fits:
            if fits.count((gpu, framework, stack)) > 1:
                raise ValueError(f"stacks: {stack} on {gpu} is given twice")
        return self

    @property
    def measured(self) -> frozenset[str]:
        """Names of the GPUs that the file has kernels or a fit for. [-]."""
        return frozenset({*self.gpus, *(fit.gpu for fit in self.stacks)})

    def kernels(self, its: GpuCalibration) -> GpuCalibration:
        """A GPU's calibration with the measurements of this file.

        Raises:
            CatalogError: A section is wrong; names the field.
        """
        sections = self.gpus.get(its.name)
        if sections is None:
            return its
        return remeasured(its, sections, where=f"gpus.{its.name}")

    def fit(self, gpu: str, framework: str, stack: str) -> StackFit | None:
        """The fit of a stack on a GPU."""
        found = {
            f.framework: f for f in self.stacks if (f.gpu, f.stack) == (gpu, stack)
        }
        return found.get(framework, found.get(""))


def read_calibration(path: Path, catalog: Catalog) -> CalibrationFile:
    """Read a calibration file and check all of it.

    Raises:
        BadInputError: The file is unreadable, a field is wrong, or a GPU, framework
            or stack is not known.
    """
    return parse_calibration(read_mapping(path), file=str(path), catalog=catalog)


def parse_calibration(
    fields: Mapping[str, Any], *, file: str, catalog: Catalog
) -> CalibrationFile:
    """Check the content of a calibration file.

    Raises:
        BadInputError: A field is wrong, or a GPU, framework or stack is not known.
    """
    given = {key: value for key, value in fields.items() if value is not None}
    try:
        held = CalibrationFile.model_validate(given)
    except ValidationError as error:
        raise explained(error, CalibrationFile, file=file) from error
    known = catalog.names("gpus")
    for index, fit in enumerate(held.stacks):
        _check_gpu(fit.gpu, f"stacks.{index}.gpu", file, known)
        _check_stack(fit, f"stacks.{index}", file)
    for name in held.gpus:
        _check_gpu(name, f"gpus.{name}", file, known)
        try:
            held.kernels(calibration(name, catalog))
        except CatalogError as error:
            raise BadInputError(str(error), file=file) from error
    return held


def _check_gpu(name: str, field: str, file: str, known: Collection[str]) -> None:
    if name not in known:
        raise BadInputError(
            f"no such GPU; {did_you_mean(name, known)}",
            file=file,
            field=field,
            value=name,
        )


def _check_stack(fit: StackFit, field: str, file: str) -> None:
    """Refuse an unknown framework or stack, which would silently change nothing."""
    rooms = {room.name: stack_names(room.name) for room in FRAMEWORKS}
    if fit.framework and fit.framework not in rooms:
        raise BadInputError(
            f"no such framework; {did_you_mean(fit.framework, rooms)}",
            file=file,
            field=f"{field}.framework",
            value=fit.framework,
        )
    known = rooms.get(fit.framework, tuple(chain(*rooms.values())))
    if fit.stack not in known:
        raise BadInputError(
            f"no such stack; {did_you_mean(fit.stack, known)}",
            file=file,
            field=f"{field}.stack",
            value=fit.stack,
        )
