"""Answers, for every folder on a line of JSON, whether TRL's parser takes train.yaml.

A line is `{"files": {name: content}, "script": "sft" or "dpo"}`; the answer is one
line of JSON with `accepted`, `why`, and what the parsers of TRL and accelerate make of
the files.
"""

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from accepts import launcher, mesh, zero
from peft import LoraConfig
from trl import get_peft_config, get_quantization_config
from trl.scripts import dpo, sft

TRAIN = "train.yaml"
PARSERS = {"dpo": dpo.make_parser, "sft": sft.make_parser}


def answered(files: dict[str, Any], script: str, folder: Path) -> dict[str, Any]:
    """What TRL's and accelerate's parsers make of one folder."""
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content))
    launcher(folder)
    mesh(files["accelerate.yaml"])
    # Without a GPU the arguments have to say so.
    words = ["--config", str(folder / TRAIN), "--use_cpu", "true"]
    _, args, model, *_ = PARSERS[script]().parse_args_and_config(words)
    lora, bits = get_peft_config(model), get_quantization_config(model)
    return {
        "stage": zero(files.get("ds_config.json"), folder),
        "micro_batch": args.per_device_train_batch_size,
        "accumulation": args.gradient_accumulation_steps,
        "length": args.max_length,
        "rank": lora.r if isinstance(lora, LoraConfig) else None,
        "variants": [lora.use_rslora, lora.use_dora] if lora else None,
        "before": getattr(args, "precompute_ref_log_probs", None),
        "targets": lora.target_modules if isinstance(lora, LoraConfig) else None,
        "bits": getattr(bits, "bnb_4bit_quant_type", None),
    }


def main() -> None:
    """Answer every line."""
    for line in sys.stdin:
        with tempfile.TemporaryDirectory() as scratch:
            try:
                asked = json.loads(line)
                said = answered(asked["files"], asked["script"], Path(scratch))
            except (Exception, SystemExit) as error:  # noqa: BLE001  # refusals
                said = {"accepted": False, "why": f"{type(error).__name__}: {error}"}
            else:
                said |= {"accepted": True, "why": ""}
        text = json.dumps(said, default=sorted)
        print("ANSWER " + text, flush=True)  # noqa: T201  # a script


if __name__ == "__main__":
    main()
