"""What DeepSpeed's own parser says of configurations, one JSON line in, one out.

Run in the environment of DeepSpeed with a file of questions. A fake process group
stands for the ranks: without one the parser takes the world for one rank.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

os.environ["DS_ACCELERATOR"] = "cpu"

import deepspeed  # looks for its device where it is imported
import torch.distributed as dist
from deepspeed.runtime.config import DeepSpeedConfig
from torch.testing._internal.distributed.fake_pg import FakeStore

Json = dict[str, Any]


class Pipeline:
    """The grid of a PipelineModule, as the parser asks for it."""

    def __init__(self, replicas: int) -> None:
        self.replicas = replicas

    def get_data_parallel_world_size(self) -> int:
        return self.replicas


class Sequence:
    """Ulysses' groups, as the parser asks for them."""

    def __init__(self, ranks: int) -> None:
        self.ranks = ranks

    def get_sequence_parallel_world_size(self) -> int:
        return self.ranks


def answer(question: Json) -> Json:
    """What the parser says for so many ranks."""
    dist.init_process_group(
        "fake", store=FakeStore(), rank=0, world_size=question["world"]
    )
    try:
        deepspeed.init_distributed(dist_backend="fake", auto_mpi_discovery=False)
        return said(question)
    finally:
        dist.destroy_process_group()


def said(question: Json) -> Json:
    pp, cp = question.get("pp", 1), question.get("cp", 1)
    mpu = Pipeline(question["world"] // pp) if pp > 1 else None
    mpu = Sequence(cp) if cp > 1 else mpu
    try:
        its = DeepSpeedConfig(question["config"], mpu=mpu)
    except Exception as error:  # noqa: BLE001  # whatever it raises is a refusal
        return {"accepted": False, "why": f"{type(error).__name__}: {error}"[:300]}
    zero = its.zero_config
    optimizer, parameters = zero.offload_optimizer, zero.offload_param
    return {
        "accepted": True,
        "batch": int(its.train_batch_size),
        "micro_batch": its.train_micro_batch_size_per_gpu,
        "grad_accum": its.gradient_accumulation_steps,
        "zero_stage": int(its.zero_optimization_stage),
        "hpz": zero.zero_hpz_partition_size,
        "tp": its.tensor_parallel_config.autotp_size,
        "ep": its.expert_parallel_config.autoep_size if question.get("ep") else 1,
        "optimizer": optimizer.ratio if device(optimizer) != "none" else 0.0,
        "device": device(optimizer),
        "parameters": float(device(parameters) != "none"),
        "interval": its.pipeline["activation_checkpoint_interval"],
        "bf16": its.bfloat16_config.enabled,
    }


def device(block: Any) -> str:
    """Where a block of offload_* puts things; it is a word where it is the default."""
    where = block.device if block else "none"
    return str(getattr(where, "value", where))


def main() -> None:
    for line in Path(sys.argv[1]).read_text().splitlines():
        sys.stdout.write("ANSWER " + json.dumps(answer(json.loads(line))) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
