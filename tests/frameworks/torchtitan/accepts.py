"""What torchtitan's own parser says of emitted folders, one question a line.

A question is {"folder", "world", "words"}; an answer has `accepted` and, where it is,
the mesh and the batch, or the reason where it is not. Of the formats that only newer
GPUs have, the check of the GPU alone is left out.
"""

import contextlib
import dataclasses
import json
import os
import sys
from typing import Any

from torch.distributed.pipelining.schedules import (
    PipelineScheduleMulti,
    PipelineScheduleSingle,
    get_schedule_class,
)
from torchtitan.components.quantization import float8, mx
from torchtitan.config import ConfigManager
from torchtitan.distributed import ParallelDims

Json = dict[str, Any]
OURS = ("plan_config", "own_model", "random_tokens")


def parsed(question: Json) -> Any:
    """The configuration of a folder, as torchtitan.train reads it."""
    for name in OURS:
        sys.modules.pop(name, None)
    sys.path.insert(0, question["folder"])
    try:
        words = ["--module", "plan_config", "--config", "train", *question["words"]]
        return ConfigManager().parse_args(words)
    finally:
        sys.path.pop(0)


def checked(config: Any, world: int) -> tuple[ParallelDims, list[int] | None]:
    """What the trainer asserts before it builds a model, in its own words."""
    dims = ParallelDims.from_config(config.parallelism, world)
    its = config.training
    batch = its.local_batch_size * dims.dp_replicate * dims.dp_shard
    assert its.global_batch_size % batch == 0, "global batch"
    sequence = dims.tp if config.parallelism.enable_sequence_parallel else 1
    assert its.seq_len % (sequence * (2 * dims.cp if dims.cp > 1 else 1)) == 0
    assert dims.dp_shard * dims.cp * dims.tp % dims.ep == 0, "expert ranks"
    config.model_spec.model.update_from_config(config=config)
    return dims, stages(config, dims)


def stages(config: Any, dims: ParallelDims) -> list[int] | None:
    """Layers of every stage, after the checks that only the build makes."""
    if dims.pp == 1:
        return None
    schedule = get_schedule_class(config.parallelism.pipeline_parallel_schedule)
    parts = config.parallelism.module_fqns_per_model_part
    single = issubclass(schedule, PipelineScheduleSingle)
    assert single or issubclass(schedule, PipelineScheduleMulti)
    each, rest = divmod(len(parts), dims.pp)
    assert rest == 0, "stages over ranks"
    assert each == 1 if single else each > 1, "stages of a rank"
    names = [name for part in parts for name in part]
    layers = [f"layers.{i}" for i in range(len(config.model_spec.model.layers))]
    assert names == ["tok_embeddings", *layers, "norm", "lm_head"], "modules"
    return [sum(name.startswith("layers.") for name in part) for part in parts]


def answer(question: Json) -> Json:
    """One answer; whatever is raised is a refusal."""
    try:
        config = parsed(question)
        dims, layers = checked(config, question["world"])
    except (Exception, SystemExit) as error:  # noqa: BLE001  # a refusal is the answer
        return {"accepted": False, "why": f"{type(error).__name__}: {error}"}
    names = ("dp_replicate", "dp_shard", "cp", "tp", "pp", "ep")
    its = config.training
    policy = config.activation_checkpoint
    return {
        "accepted": True,
        "mesh": {name: getattr(dims, name) for name in names},
        "local": its.local_batch_size,
        "global": its.global_batch_size,
        "micro": config.parallelism.pipeline_parallel_microbatch_size,
        "stages": layers,
        "schedule": config.parallelism.pipeline_parallel_schedule,
        "sequence": config.parallelism.enable_sequence_parallel,
        "reshard": config.parallelism.fsdp_reshard_after_forward,
        "checkpointing": type(policy).__qualname__ if policy else None,
        "offload": its.enable_cpu_offload,
        "compile": config.compile.enable,
        "optimizer": config.optimizer.implementation,
        "flavour": config.model_spec.flavor,
        "model": described(config.model_spec.model),
    }


def described(model: Any) -> Json:
    """Sizes of a model as its own configuration has them."""
    layer = model.layers[-1]
    moe = getattr(layer, "moe", None)
    dense = next((o.feed_forward for o in model.layers if o.feed_forward), None)
    attention = layer.attention
    rope = dataclasses.asdict(attention.rope)
    return {
        "layers": len(model.layers),
        "dim": model.dim,
        "vocab": model.vocab_size,
        "tied": model.enable_weight_tying,
        "heads": attention.n_heads,
        "kv_heads": getattr(attention, "n_kv_heads", None),
        "head_dim": getattr(attention, "head_dim", None),
        "kv_rank": getattr(attention, "kv_lora_rank", None),
        "qk_norm": getattr(attention, "qk_norm", None) is not None,
        "theta": rope["theta"],
        "scaling": rope["scaling"],
        "ffn": dense.w1.out_features if dense else None,
        "experts": moe.num_experts if moe else None,
        "top_k": moe.router.top_k if moe else None,
        "expert_ffn": moe.routed_experts.inner_experts.hidden_dim if moe else None,
        "score": moe.router.score_func if moe else None,
        "scale": moe.router.route_scale if moe else None,
    }


def main() -> None:
    """Answer every line of the standard input."""
    for module in (float8, mx):
        module.has_cuda_capability = lambda *_: True
    os.environ["WANDB_MODE"] = "disabled"
    for line in sys.stdin:
        # Parsers that refuse print why; the answers are lines of JSON.
        with contextlib.redirect_stdout(sys.stderr):
            said = answer(json.loads(line))
        sys.stdout.write(json.dumps(said) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
