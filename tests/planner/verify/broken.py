"""Layouts that break one rule each, and the sentence of the rule."""

from typing import Any

from layouts import (
    ACCELERATE,
    DENSE,
    FSDP,
    INTERLEAVED,
    MOE,
    PLAIN,
    kept,
)

from planner.specs.layouts.layout import RecomputeRange, Stage

ONE_PLAN = DENSE | {"stages": (kept(7, (7, "full")), kept(6, (6, "none")))}
BROKEN: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "product": (
        DENSE | {"pp": 4, "stages": (4, 3, 3, 3)},
        {},
        "tp * pp * cp * dp = 2 * 4 * 1 * 4 = 32 is more than the cluster's 16 GPUs in "
        "service",
    ),
    "heads": (
        DENSE | {"tp": 3, "dp": 4},
        {"nodes": 3, "model": "heads16", "seq_len": 6144},
        "tp 3 does not divide the 16 heads of dense",
    ),
    "kv heads": (
        DENSE | {"tp": 3},
        {"nodes": 3, "model": "kv4", "seq_len": 6144},
        "tp 3 neither divides nor is a multiple of the 4 KV heads of dense",
    ),
    "ffn": (
        DENSE | {"tp": 3},
        {"nodes": 3, "model": "ffn8192", "seq_len": 6144},
        "tp 3 does not divide the ffn width 8192 of dense",
    ),
    "sequence": (
        DENSE | {"cp": 3, "dp": 4, "dp_shard": 12},
        {"nodes": 6},
        "a sequence of 4096 tokens does not split into 12 chunks",
    ),
    "batch": (
        DENSE | {"grad_accum": 5},
        {},
        "dp * micro_batch * grad_accum = 4 * 2 * 5 = 40 is not the batch of 32 "
        "sequences",
    ),
    "shards do not divide": (
        DENSE | {"dp_shard": 3},
        {},
        "dp_shard 3 does not divide dp * cp = 4",
    ),
    "shards split a context group": (
        DENSE | {"cp": 2, "dp": 2, "dp_shard": 1, "grad_accum": 8},
        {},
        "dp_shard 1 is not a multiple of cp 2",
    ),
    "shards at ZeRO 0": (
        DENSE | {"zero_stage": 0, "dp_shard": 2},
        {},
        "dp_shard 2 under dp * cp = 4 shards nothing at ZeRO 0",
    ),
    "hybrid shards": (
        DENSE | {"dp_shard": 2},
        {"limits": {"hybrid_sharding": False}},
        "megatron shards over all 4 ranks, not 2",
    ),
    "copies in unequal groups": (
        DENSE | {"hpz": 3, "zero_stage": 3},
        {"limits": {"hpz": True, "zero_stages": (1, 3)}},
        "hpz 3 does not divide dp * cp = 4",
    ),
    "copies of whole weights": (
        DENSE | {"hpz": 2},
        {"limits": {"hpz": True}},
        "hpz 2 copies the weights that ZeRO 3 shards, not ZeRO 1's",
    ),
    "no copies": (
        DENSE | {"hpz": 2, "zero_stage": 3},
        {"limits": {"zero_stages": (1, 3)}},
        "megatron at tp 2 has hpz 1, not 2",
    ),
    "zero stage": (
        DENSE | {"zero_stage": 3},
        {},
        "megatron at tp 2 has zero_stage 0, 1, not 3",
    ),
    "schedule": (
        DENSE | {"schedule": "gpipe"},
        {},
        "megatron at tp 2 has schedule 1f1b, interleaved, not gpipe",
    ),
    "order": (
        DENSE | {"order": "tp-cp-ep-pp-dp"},
        {"limits": {"orders": ("tp-cp-ep-dp-pp",)}},
        "megatron at tp 2 has order tp-cp-ep-dp-pp, not tp-cp-ep-pp-dp",
    ),
    "sp without tp": (
        DENSE | {"tp": 1, "dp": 8, "dp_shard": 8, "micro_batch": 1},
        {},
        "megatron at tp 1 has sp False, not True",
    ),
    "sp": (
        DENSE | {"sp": False},
        {"limits": {"sequence_parallel": (True,)}},
        "megatron at tp 2 has sp True, not False",
    ),
    "cp kind": (
        DENSE | {"cp": 2, "dp": 2, "grad_accum": 8, "cp_kind": "ulysses"},
        {"limits": {"cp_kinds": ("ring", "all-gather")}},
        "megatron at tp 2 has cp_kind ring, all-gather, not ulysses",
    ),
    "ulysses of keys": (
        DENSE
        | {"tp": 2, "cp": 8, "dp": 2, "dp_shard": 16, "grad_accum": 8}
        | {"cp_kind": "ulysses"},
        {"nodes": 8},
        "ulysses needs 4 heads of keys to divide by tp * 8 = 16",
    ),
    "ulysses in a ring": (
        DENSE
        | {"tp": 1, "sp": False, "cp": 8, "dp": 4, "dp_shard": 32, "grad_accum": 4}
        | {"cp_kind": "ulysses8+ring"},
        {"nodes": 8, "limits": {"ulysses_copies_keys": True}},
        "ulysses8+ring needs groups of 8 that divide cp 8, and two or more",
    ),
    "ulysses": (
        DENSE
        | {"tp": 8, "cp": 4, "dp": 1, "dp_shard": 4, "grad_accum": 16}
        | {"cp_kind": "ulysses"},
        {"nodes": 8, "limits": {"cp_kinds": ("ulysses",)}},
        "ulysses needs 16 heads to divide by tp * 4 = 32",
    ),
    "expert tensor": (
        MOE | {"zero_stage": 2, "etp": 2},
        {"framework": "torchtitan", "model": "moe"},
        "torchtitan at tp 2 has etp 1, not 2",
    ),
    "no pipeline": (
        DENSE | {"zero_stage": 3, "sp": False},
        ACCELERATE,
        "accelerate at tp 2 has pp 1, not 2",
    ),
    "no experts": (
        FSDP | {"ep": 2, "stages": (8,)},
        ACCELERATE | {"model": "moe"},
        "accelerate at tp 2 has ep 1, not 2",
    ),
    "shards of one rank": (
        PLAIN | {"tp": 1, "dp": 16, "dp_shard": 1, "zero_stage": 3, "grad_accum": 2},
        ACCELERATE,
        "accelerate has ZeRO 3 only where two or more ranks share the states",
    ),
    "split replicas": (
        PLAIN | {"zero_stage": 0, "dp_shard": 8},
        ACCELERATE,
        "accelerate shards the replicas of a model that tp or cp splits",
    ),
    "cp without shards": (
        PLAIN
        | {"tp": 1, "cp": 16, "dp": 1, "zero_stage": 0, "dp_shard": 16}
        | {"grad_accum": 32, "cp_kind": "ring"},
        ACCELERATE,
        "accelerate has cp 16 at ZeRO 2 and 3 only, not 0",
    ),
    "apart": (
        PLAIN
        | {"pp": 2, "dp": 4, "dp_shard": 4, "zero_stage": 1}
        | {"grad_accum": 8, "stages": (7, 6)},
        {"framework": "deepspeed"},
        "deepspeed has no pp 2 with tp 2",
    ),
    "recompute kind": (
        DENSE | {"stages": (kept(7, (7, "ful")), kept(6, (6, "ful")))},
        {},
        "recompute kind 'ful' is none of none, selective, full, full:1 and on, or "
        "core_attn, mlp with + between them",
    ),
    "recompute scope": (
        ONE_PLAN,
        {},
        "megatron has one recompute kind per plan, this has 2: full, none",
    ),
    "chunks without the schedule": (
        INTERLEAVED | {"schedule": "1f1b"},
        {},
        "vpp 2 needs the schedule interleaved, not 1f1b",
    ),
    "the schedule without chunks": (
        DENSE | {"schedule": "interleaved"},
        {},
        "the schedule interleaved needs vpp > 1, here vpp is 1",
    ),
    "chunks without a pipeline": (
        INTERLEAVED
        | {"pp": 1, "dp": 8, "dp_shard": 8, "grad_accum": 2}
        | {"stages": (7, 6)},
        {},
        "vpp 2 interleaves over pp > 1, here pp is 1",
    ),
    "ragged groups of micro-batches": (
        INTERLEAVED | {"micro_batch": 1, "grad_accum": 5},
        {"batch": 20},
        "vpp 2 needs grad_accum % pp == 0, not 5 % 2 = 1",
    ),
    "too few stages": (
        DENSE | {"stages": (13,)},
        {},
        "1 stages are given, pp * vpp = 2 are needed",
    ),
    "a lost layer": (
        DENSE | {"stages": (6, 6)},
        {},
        "the stages hold 12 layers, the model has 13",
    ),
    "an empty stage": (
        INTERLEAVED | {"stages": (4, 0, 4, 5)},
        {},
        "virtual stage 1 of 4 holds 0 layers",
    ),
    "ranges that do not tile": (
        DENSE
        | {
            "stages": (
                Stage.model_construct(
                    layers=7,
                    recompute=(
                        RecomputeRange(start=0, stop=2, kind="full"),
                        RecomputeRange(start=3, stop=7, kind="full"),
                    ),
                ),
                kept(6, (6, "full")),
            )
        },
        {},
        "recompute ranges 0-2, 3-7 do not tile 7 layers of virtual stage 0",
    ),
    "experts of a dense model": (
        DENSE | {"ep": 2},
        {},
        "ep 2 and etp 1 on a model without experts",
    ),
    "experts": (
        MOE | {"ep": 3, "dp": 6, "dp_shard": 6},
        {"model": "moe", "nodes": 3, "batch": 48},
        "ep 3 does not divide 8 experts",
    ),
    "expert width": (
        MOE | {"ep": 1, "etp": 3, "dp": 6, "dp_shard": 6},
        {"model": "moe", "nodes": 3, "batch": 48},
        "etp 3 does not divide the expert width 3584",
    ),
    "expert ranks": (
        MOE | {"ep": 8, "etp": 2},
        {"model": "moe"},
        "ep * etp = 16 does not divide tp * cp * dp = 8",
    ),
    "experts with the pipeline inside data": (
        MOE | {"ep": 4, "order": "tp-cp-ep-pp-dp"},
        {"model": "moe"},
        "order tp-cp-ep-pp-dp needs ep * etp = 4 to be tp * cp = 2",
    ),
    "experts with tp but no sp": (
        MOE | {"sp": False},
        {"model": "moe"},
        "ep 2 with tp 2 needs sp",
    ),
}
