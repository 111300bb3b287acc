"""Keys of axolotl's schema; a key beyond them is passed over by a run."""

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict

VERSION = "0.19.0"
"""Release of axolotl that files are written for. [text]"""
OLDER = frozenset({"limit_all_gathers", "sharding_strategy"})
"""Keys of fsdp_config before FSDP 2, which later releases pass on. [text]"""
FILE = Path(__file__).with_name(f"arguments-{VERSION}.json")


class Arguments(BaseModel):
    """Keys by the schema that holds them.

    tests/frameworks/axolotl/keys.py makes the file.

    Attributes:
        source: File that the names are from. [text]
        axolotl: Keys at the top. [text]
        liger: Keys of the plugin for Liger's kernels. [text]
        fsdp: Keys of fsdp_config, which may begin with fsdp_. [text]
        models: Model types of the release's transformers. [text]
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    source: str
    axolotl: frozenset[str]
    liger: frozenset[str]
    fsdp: frozenset[str]
    models: frozenset[str]


@cache
def known() -> Arguments:
    """Read the keys and the model types. [-]."""
    return Arguments.model_validate_json(FILE.read_text())


def unknown_keys(given: Mapping[str, object]) -> Iterator[str]:
    """Keys that axolotl's schema has not."""
    its = known()
    yield from (str(k) for k in given if k not in its.axolotl | its.liger)
    block = given.get("fsdp_config")
    for key in block if isinstance(block, Mapping) else ():
        if not {str(key), str(key).removeprefix("fsdp_")} & (its.fsdp | OLDER):
            yield f"fsdp_config.{key}"
