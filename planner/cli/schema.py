"""Writes configs/schema: `python -m planner.cli.schema` after a change of a spec."""

import json
from pathlib import Path

from pydantic import BaseModel

from planner.hardware.fleets import ClusterSpec
from planner.models import Preset
from planner.planning.comparison.purchase import PurchaseSpec
from planner.specs.job import JobSpec

SCHEMAS: dict[str, type[BaseModel]] = {
    "job": JobSpec,
    "cluster": ClusterSpec,
    "model": Preset,
    "purchase": PurchaseSpec,
}
"""Stem of a schema file to the type that it describes."""


def schema_text(stem: str) -> str:
    """The JSON schema of a kind of config file."""
    schema = SCHEMAS[stem].model_json_schema()
    return json.dumps(schema, indent=2, sort_keys=True) + "\n"


def write_schemas(folder: Path) -> None:
    """Write every schema file."""
    for stem in SCHEMAS:
        (folder / f"{stem}.json").write_text(schema_text(stem), encoding="utf-8")


if __name__ == "__main__":
    write_schemas(Path(__file__).resolve().parents[2] / "configs" / "schema")
