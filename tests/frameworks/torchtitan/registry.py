"""What the installed torchtitan's own registry holds, as one JSON object.

`flavours`: sizes by module and name; `configurations`: settings of those named on the
command line; `stages`: layers by stage as its pipelines are cut, by layers and stages.
"""

import contextlib
import importlib
import json
import sys
from typing import Any

from accepts import described
from torchtitan.components.quantization import float8, mx
from torchtitan.distributed.pipeline_parallel import _generate_llm_fqn_per_model_part

Json = dict[str, Any]
TABLES = {
    "llama3": "llama3_configs",
    "qwen3": "qwen3_configs",
    "deepseek_v3": "deepseekv3_configs",
}
CUTS = [(32, 4, 1, 1), (32, 4, 2, 2), (80, 8, 1, 1), (61, 16, 0, 1), (126, 16, 1, 0)]


def flavours() -> Json:
    """Sizes of every flavour but those for debugging."""
    found = {}
    for module, table in TABLES.items():
        package = importlib.import_module(f"torchtitan.models.{module}")
        names = [n for n in getattr(package, table) if not n.startswith("debug")]
        specs = {name: package.model_registry(name).model for name in names}
        found[module] = {name: described(model) for name, model in specs.items()}
    return found


def configuration(name: str) -> Json:
    """Settings of a configuration of the package's own."""
    module = next(module for module in TABLES if name.startswith(module))
    registry = importlib.import_module(f"torchtitan.models.{module}.config_registry")
    its = getattr(registry, name)()
    parallelism = its.parallelism
    policy = type(its.activation_checkpoint).__qualname__
    return {
        "flavour": its.model_spec.flavor,
        "local_batch_size": its.training.local_batch_size,
        "global_batch_size": its.training.global_batch_size,
        "seq_len": its.training.seq_len,
        "checkpointing": policy.removesuffix("AC.Config").lower(),
        "loss": type(its.loss).__qualname__.partition(".")[0],
        "tensor": parallelism.tensor_parallel_degree,
        "expert": parallelism.expert_parallel_degree,
        "schedule": parallelism.pipeline_parallel_schedule,
        "compiled": its.compile.enable and "model" in its.compile.components,
    }


def cut(layers: int, stages: int, first: int, last: int) -> list[int]:
    """Layers of every stage, as the package cuts a model."""
    parts = _generate_llm_fqn_per_model_part(stages, layers, first, last)
    return [sum(name.startswith("layers.") for name in part) for part in parts]


def main() -> None:
    """Answer for the configurations that are named."""
    for module in (float8, mx):
        module.has_cuda_capability = lambda *_: True
    with contextlib.redirect_stdout(sys.stderr):
        found = {
            "flavours": flavours(),
            "configurations": {name: configuration(name) for name in sys.argv[1:]},
            "stages": [[*key, cut(*key)] for key in CUTS],
        }
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
