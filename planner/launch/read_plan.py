"""Plan with all that a writer needs, from a search or from a checked file."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from planner.cost.pricing import Pricing
from planner.cost.workload import Workload
from planner.errors import BadInputError
from planner.hardware.reading.documents import DocumentError, plain_json
from planner.hardware.reading.files import SHIPPED, Catalog
from planner.job.calibration_file import CalibrationFile
from planner.job.resolve import resolve
from planner.launch.brief import Brief
from planner.specs.answer.result import Plan
from planner.specs.job import JobSpec
from planner.specs.layouts.layout import Layout, PartialLayout
from planner.specs.reading.invalid import explained
from planner.specs.reading.read import user_text
from planner.verify.legality import rule_violations

PLAN, RESULT = "planner/plan@1", "planner/result@1"


@dataclass(frozen=True)
class PlanFile:
    """A plan to be written, with the file that messages name.

    Attributes:
        path: File of the plan, or of the job that was planned. [text]
        text: Content of the plan's file; empty for a plan without a file. [text]
        plan: The plan. [-]
        spec: Job of the plan. [-]
        workload: The job, resolved. [-]
        calibration: Measurements of the user, or None. [-]
        told: Remarks on the prediction. [text]
    """

    path: str
    text: str
    plan: Plan
    spec: JobSpec
    pricing: Pricing
    calibration: CalibrationFile | None = None
    told: tuple[str, ...] = ()

    @property
    def brief(self) -> Brief:
        """Parts of the plan that a writer sees. [-]."""
        training = self.pricing.training
        model = self.plan.spec["model"]
        assert isinstance(model, Mapping)
        return Brief(
            job=_slug(str(model.get("name", "model"))),
            spec=self.spec,
            model=dict(model),
            architecture=self.pricing.model,
            training=training,
            cluster=self.pricing.topology.cluster,
            layout=self.plan.layout,
            estimate=self.plan.estimate,
            stack=dict(self.plan.estimate.stack),
            versions=dict(self.plan.versions),
            told=self.told,
        )

    def line_of(self, field: str) -> int | None:
        """Line that holds a field: each part of the path lies below the part before.

        Returns:
            Line, from 1; None where the file does not spell the field out. [1]
        """
        parts = field.split(".")
        for number, line in enumerate(self.text.splitlines(), start=1):
            if f'"{parts[0]}":' in line:
                parts = parts[1:]
            if not parts:
                return number
        return None


def plan_file(
    plan: Plan, workload: Workload, file: str, calibration: CalibrationFile | None
) -> PlanFile:
    """Take a plan that was found, without a file between search and writer.

    Args:
        plan: The plan. [-]
        workload: Job that was planned, under the plan's framework and settings. [-]
        file: File of the job, for messages. [text]
        calibration: Measurements of the user, or None. [-]
    """
    spec, its = _spec(plan, file), Pricing.of(workload, plan.layout)
    return PlanFile(file, "", plan, spec, its, calibration)


def read_plan(
    path: Path,
    catalog: Catalog = SHIPPED,
    calibration: CalibrationFile | None = None,
) -> PlanFile:
    """Read a plan, or the first plan of a result, and check that it is legal.

    Raises:
        BadInputError: No such file, another schema, or a layout that its job, its
            cluster or its framework does not allow.
    """
    text = user_text(path, pipes=True)
    plan = _plan(_fields(text, path), path)
    spec = _spec(plan, str(path))
    (workload,) = resolve(
        spec,
        file=str(path),
        base=path.parent,
        catalog=catalog,
        calibration=calibration,
    )
    its = Pricing.of(workload, plan.layout)
    found = PlanFile(str(path), text, plan, spec, its, calibration)
    _refuse_illegal(found)
    return found


def _fields(text: str, path: Path) -> dict[str, Any]:
    """Read the file as a JSON object of a known schema."""
    try:
        fields = plain_json(text)
    except DocumentError as error:
        raise BadInputError(
            error.problem, file=str(path), field=error.field or None
        ) from error
    schema = fields.get("schema") if isinstance(fields, dict) else None
    if schema not in [PLAN, RESULT]:
        raise BadInputError(
            "is no plan of this version",
            file=str(path),
            field="schema",
            value=schema,
            allowed=f"{PLAN} or {RESULT}, as `planner plan --out` and --json write",
        )
    checked: dict[str, Any] = fields
    return checked


def _plan(fields: dict[str, Any], path: Path) -> Plan:
    """Build the plan, or the first plan of a result."""
    if fields["schema"] == RESULT:
        first = _first(fields.get("plans"), path)
        fields = {
            "schema": PLAN,
            "spec": fields.get("spec", {}),
            "layout": first.get("layout"),
            "estimate": first.get("estimate"),
            "versions": fields.get("versions", {}),
        }
    try:
        return Plan.model_validate(fields)
    except ValidationError as error:
        raise explained(error, Plan, file=str(path), inside="") from error


def _first(plans: object, path: Path) -> dict[str, Any]:
    """The first plan of a result."""
    if not isinstance(plans, list):
        raise BadInputError(
            "is no list of plans", file=str(path), field="plans", value=plans
        )
    if not plans:
        raise BadInputError("has no plan in it", file=str(path), field="plans")
    first = plans[0]
    if not isinstance(first, dict):
        raise BadInputError(
            "is no plan",
            file=str(path),
            field="plans.0",
            value=first,
            allowed="a block with layout and estimate",
        )
    return first


def _spec(plan: Plan, file: str) -> JobSpec:
    try:
        return JobSpec.model_validate(plan.spec)
    except ValidationError as error:
        raise explained(error, JobSpec, file=file, inside="spec") from error


def _refuse_illegal(found: PlanFile) -> None:
    """Refuse a layout that is not legal, such as a plan edited by hand."""
    wrong = rule_violations(found.pricing.unwritten(), found.plan.layout)
    if wrong:
        said = "; ".join(breach.sentence for breach in wrong[:3])
        raise BadInputError(
            f"the layout is not legal: {said}",
            file=found.path,
            field="layout",
        )


def partial_of(layout: Layout) -> PartialLayout:
    """Turn a complete layout into a partial layout, which a spec may hold."""
    return PartialLayout.model_validate(layout.model_dump(mode="json", by_alias=True))


def _slug(name: str) -> str:
    """Name that is legal in a shell, a path and a Kubernetes object."""
    kept = [c if c.isascii() and c.isalnum() else "-" for c in name.lower()]
    return "-".join("".join(kept).split("-")).strip("-")[:50] or "model"
