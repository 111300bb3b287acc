"""Prints the keys by block that DeepSpeed's own configuration reads, as JSON."""

import dataclasses
import json
import os
import sys
from collections.abc import KeysView
from typing import Any

os.environ["DS_ACCELERATOR"] = "cpu"

from deepspeed.compile.config import CompileConfig  # looks for its device at import
from deepspeed.module_inject.auto_ep_presets.base import AutoEPConfig
from deepspeed.runtime.config import DeepSpeedConfig
from deepspeed.runtime.precision_config import DeepSpeedBF16Config, DeepSpeedFP16Config
from deepspeed.runtime.tensor_parallel.config import TPConfig, TPTrainingConfig
from deepspeed.runtime.zero.config import DeepSpeedZeroConfig
from deepspeed.runtime.zero.offload_config import (
    DeepSpeedZeroOffloadOptimizerConfig,
    DeepSpeedZeroOffloadParamConfig,
)

BLOCKS = {
    "zero_optimization": DeepSpeedZeroConfig,
    "zero_optimization.offload_param": DeepSpeedZeroOffloadParamConfig,
    "zero_optimization.offload_optimizer": DeepSpeedZeroOffloadOptimizerConfig,
    "tensor_parallel": TPTrainingConfig,
    "tensor_parallel.tp": TPConfig,
    "bf16": DeepSpeedBF16Config,
    "fp16": DeepSpeedFP16Config,
    "compile": CompileConfig,
}
SEEN: set[str] = set()


class Names(set[str]):
    """Names of a file, which notes what it is asked for."""

    def __contains__(self, name: object) -> bool:
        SEEN.add(str(name))
        return super().__contains__(name)


class Asked(dict[str, Any]):
    """A file's settings, which note the names that a parser asks for."""

    def get(self, name: str, default: Any = None) -> Any:
        SEEN.add(name)
        return super().get(name, default)

    def __contains__(self, name: object) -> bool:
        SEEN.add(str(name))
        return super().__contains__(name)

    def keys(self) -> KeysView[str]:
        names: Any = Names(super().keys())
        return names


def names(kind: Any) -> list[str]:
    """Fields of a block, under their aliases too."""
    fields = kind.model_fields
    aliases = {its.alias for its in fields.values() if its.alias}
    return sorted(aliases | fields.keys())


def main() -> None:
    DeepSpeedConfig(Asked({"train_batch_size": 1}))
    experts = [f.name for f in dataclasses.fields(AutoEPConfig) if f.init]
    found = {block: names(kind) for block, kind in BLOCKS.items()}
    found |= {"": sorted(SEEN), "expert_parallel": experts}
    sys.stdout.write("KEYS " + json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
