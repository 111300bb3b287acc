"""Prints the keys that axolotl's schema has, as one JSON object."""

import json
import sys
from importlib.metadata import version

from axolotl.integrations.liger.args import LigerArgs
from axolotl.utils.schemas.config import AxolotlInputConfig
from axolotl.utils.schemas.fsdp import FSDPConfig
from pydantic import AliasChoices, BaseModel
from transformers.models.auto import modeling_auto


def names(schema: type[BaseModel]) -> list[str]:
    """Names that a schema takes for its fields, second names among them."""
    found = set(schema.model_fields)
    for field in schema.model_fields.values():
        other = field.validation_alias
        choices = other.choices if isinstance(other, AliasChoices) else [other]
        found |= {name for name in (field.alias, *choices) if isinstance(name, str)}
    return sorted(found)


def main() -> None:
    """Print all of them."""
    json.dump(
        {
            "source": f"axolotl {version('axolotl')}, utils/schemas/config.py",
            "axolotl": names(AxolotlInputConfig),
            "liger": names(LigerArgs),
            "fsdp": names(FSDPConfig),
            "models": sorted(modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES),
        },
        sys.stdout,
    )


if __name__ == "__main__":
    main()
