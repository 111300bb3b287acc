"""Answers, for every train.yaml on a line of JSON, whether torchtune takes it.

A line is `{"train.yaml": {...}}`; the answer is one line of JSON with `accepted`,
`why`, and the parameters of the model that torchtune builds, all and trained.
"""

import json
import sys
from typing import Any

import torch
from omegaconf import OmegaConf
from torchtune import config
from torchtune.modules.peft import get_adapter_params


def answered(given: dict[str, Any]) -> dict[str, Any]:
    """What torchtune makes of one file."""
    its = OmegaConf.create(given)
    config.validate(its)
    for name in ("optimizer", "loss", "lr_scheduler", "metric_logger"):
        if name in its and not its[name]["_component_"].startswith("bitsandbytes"):
            config.validate(OmegaConf.create({name: its[name]}))
    # Weights in nf4 have values, and a large model's would take memory here.
    if "quantize_base" in its.model:
        its.model.quantize_base = False
    with torch.device("meta"):
        model = config.instantiate(its.model)
    trained = get_adapter_params(model)
    return {
        "layers": len(model.layers),
        "parameters": sum(p.numel() for p in model.parameters()),
        "trained": sum(p.numel() for p in trained.values()),
        "recipe": its.model["_component_"],
    }


def main() -> None:
    """Answer every line."""
    for line in sys.stdin:
        try:
            said = answered(json.loads(line)["train.yaml"])
        except Exception as error:  # noqa: BLE001  # refusals
            said = {"accepted": False, "why": f"{type(error).__name__}: {error}"}
        else:
            said |= {"accepted": True, "why": ""}
        print("ANSWER " + json.dumps(said), flush=True)  # noqa: T201  # a script


if __name__ == "__main__":
    main()
