"""Answers, for every folder on a line of JSON, whether the libraries' parsers take it.

A line is `{"files": {name: content}}`; the answer is one line of JSON with
`accepted`, `why`, and what accelerate's launcher makes of the files.
"""

import json
import os
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import yaml
from accelerate.commands import launch
from accelerate.parallelism_config import ParallelismConfig
from accelerate.utils import DeepSpeedPlugin, DistributedType
from accelerate.utils import launch as variables
from deepspeed.runtime.zero.config import DeepSpeedZeroConfig
from peft import LoraConfig
from transformers import (
    AutoConfig,
    BitsAndBytesConfig,
    HfArgumentParser,
    TrainingArguments,
)
from transformers.distributed import DistributedConfig
from trl import SFTConfig

PLACES = "accelerate.yaml"


def launcher(folder: Path) -> dict[str, str]:
    """Variables that accelerate sets for the ranks, by its own launcher."""
    words = ["--config_file", str(folder / PLACES), "train.py"]
    parsed = launch.launch_command_parser().parse_args(words)
    args, defaults, mixed = launch._validate_launch_command(parsed)
    args.num_machines, args.main_process_port = 1, 0
    if args.use_deepspeed:
        # As launch_command does it.
        given = [*defaults.deepspeed_config, *(["mixed_precision"] if mixed else [])]
        args.deepspeed_fields_from_accelerate_config = ",".join(given)
        return dict(variables.prepare_deepspeed_cmd_env(args)[1])
    return variables.prepare_multi_gpu_env(args)


def mesh(places: dict[str, Any]) -> None:
    """The mesh's own checks, as an Accelerator of these processes makes them."""
    sizes = {
        key.removeprefix("parallelism_config_"): value
        for key, value in (places.get("parallelism_config") or {}).items()
        if key.endswith("_size")
    }
    if not sizes:
        return
    kind = DistributedType(places["distributed_type"])
    ParallelismConfig(**sizes)._validate_accelerator(
        SimpleNamespace(
            num_processes=places["num_processes"],
            multi_device=kind == DistributedType.MULTI_GPU,
            is_fsdp2=kind == DistributedType.FSDP,
            is_main_process=True,
            distributed_type=kind,
        )
    )


def trainer(given: dict[str, Any], run: dict[str, Any]) -> Any:
    """The trainer's arguments; without a GPU they have to say so."""
    kind = SFTConfig if run["trainer"] == "trl" else TrainingArguments
    its = {**given, "output_dir": "output", "use_cpu": True}
    if its.pop("tf32", None):
        its["tf32"] = None
    return HfArgumentParser(kind).parse_dict(its, allow_extra_keys=False)[0]


def run_settings(run: dict[str, Any]) -> None:
    """Adapters, number formats and transformers' own mesh."""
    if "adapters" in run:
        LoraConfig(**run["adapters"])
    if "quantization" in run:
        BitsAndBytesConfig(**run["quantization"])
    if "distributed" in run:
        DistributedConfig(**run["distributed"])


def zero(its: dict[str, Any] | None, folder: Path) -> int | None:
    """DeepSpeed's plugin and the block that it checks strictly."""
    if its is None:
        return None
    DeepSpeedZeroConfig(**its["zero_optimization"])
    plugin = DeepSpeedPlugin(hf_ds_config=str(folder / "ds_config.json"))
    return int(plugin.zero_stage)


def answered(files: dict[str, Any], folder: Path) -> dict[str, Any]:
    """What the libraries make of one folder."""
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content))
    places, run = files[PLACES], files["run.yaml"]
    environment = launcher(folder)
    mesh(places)
    run_settings(run)
    AutoConfig.from_pretrained(folder)
    os.environ["ACCELERATE_CONFIG_DS_FIELDS"] = environment.get(
        "ACCELERATE_CONFIG_DS_FIELDS", ""
    )
    args = trainer(yaml.safe_load(json.dumps(files["training.yaml"])), run)
    return {
        "stage": zero(files.get("ds_config.json"), folder),
        "reshard": environment.get("FSDP_RESHARD_AFTER_FORWARD"),
        "fsdp": environment.get("ACCELERATE_USE_FSDP") == "true",
        "cp": environment.get("PARALLELISM_CONFIG_CP_COMM_STRATEGY"),
        "micro_batch": args.per_device_train_batch_size,
        "accumulation": args.gradient_accumulation_steps,
    }


def main() -> None:
    """Answer every line."""
    for line in sys.stdin:
        with tempfile.TemporaryDirectory() as scratch:
            try:
                said = answered(json.loads(line)["files"], Path(scratch))
            except (Exception, SystemExit) as error:  # noqa: BLE001  # refusals
                said = {"accepted": False, "why": f"{type(error).__name__}: {error}"}
            else:
                said |= {"accepted": True, "why": ""}
        print("ANSWER " + json.dumps(said), flush=True)  # noqa: T201  # a script


if __name__ == "__main__":
    main()
