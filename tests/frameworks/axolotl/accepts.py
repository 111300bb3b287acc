"""Answers, for every train.yaml on a line of JSON, whether axolotl's schema takes it.

A line is `{"train.yaml": {...}, "gpus": n}`; the answer is one line of JSON with
`accepted`, `why`, and what the schema makes of the file.
"""

import json
import sys
from typing import Any

from axolotl.utils.config import validate_config
from axolotl.utils.dict import DictDefault

KEPT = (
    "micro_batch_size",
    "gradient_accumulation_steps",
    "sequence_len",
    "lora_r",
    "lora_qkv_kernel",
    "fsdp_config",
    "sample_packing",
)


def answered(question: dict[str, Any]) -> dict[str, Any]:
    """What the schema makes of one file, for GPUs that have every format."""
    gpus = {
        "bf16": True,
        "fp8": True,
        "tf32": True,
        "n_gpu": question["gpus"],
        "n_node": 1,
        "compute_capability": "sm_90",
    }
    made = validate_config(
        DictDefault(question["train.yaml"]),
        capabilities=gpus,
        env_capabilities={"torch_version": "2.13.0"},
    )
    return {name: made[name] for name in KEPT}


def main() -> None:
    """Answer every line."""
    for line in sys.stdin:
        try:
            said = answered(json.loads(line))
        except Exception as error:  # noqa: BLE001  # refusals
            said = {"accepted": False, "why": f"{type(error).__name__}: {error}"}
        else:
            said |= {"accepted": True, "why": ""}
        print("ANSWER " + json.dumps(said), flush=True)  # noqa: T201  # a script


if __name__ == "__main__":
    main()
