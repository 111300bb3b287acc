"""Jobs to explain: small ones, and twelve that cannot be, each for known reasons."""

from pathlib import Path

from planner.hardware.reading.files import SHIPPED
from planner.job.case import Case
from planner.specs.job import JobSpec


def case(search: dict[str, object], **fields: object) -> Case:
    own = {k: v for k, v in fields.items() if k in JobSpec.model_fields}
    step = {k: v for k, v in fields.items() if k not in own}
    plain = {
        "model": "llama-3.2-1b",
        "cluster": "a100-pcie-4",
        "framework": "torchtitan",
        **own,
        "training": {"seq_len": 2048, "global_batch": 64, **step},
        "search": search,
    }
    return Case(JobSpec.model_validate(plain), "a test", Path(), catalog=SHIPPED)


ILLEGAL = {
    # 32 heads have no third, on any machine and under any framework.
    "tp that divides no heads": (case({"tp": 3}), {"search.tp"}),
    # The full space has tensor groups over two domains of eight.
    "tp over two domains": (
        case({"tp": 16}, cluster="dgx-a100-4-nodes", framework="megatron"),
        {"search.space", "search.tp"},
    ),
    # 3 does not divide 4 GPUs; it divides 12, with a batch of 72.
    "dp that divides no GPUs": (case({"dp": 3}), {"cluster.nodes", "search.dp"}),
    # 3 does not divide 64 sequences, however many replicas there are.
    "micro-batch that divides no batch": (
        case({"micro_batch": 3}),
        {"training.global_batch", "search.micro_batch"},
    ),
    # Ring attention cuts a sequence in 2 cp = 8 parts; 2,050 tokens have none.
    "cp that divides no sequence": (
        case({"cp": 4}, seq_len=2050, framework="megatron"),
        {"training.seq_len", "search.cp"},
    ),
    # transformers runs no pipeline schedule.
    "pp without pipelines": (
        case({"pp": 2}, framework="accelerate"),
        {"framework", "search.pp"},
    ),
    # Megatron's distributed optimizer is ZeRO-1.
    "ZeRO-3 under Megatron": (
        case({"zero_stage": 3}, framework="megatron"),
        {"framework", "search.zero_stage"},
    ),
}
"""Jobs without a legal layout, with the fields of the smallest conflict."""

TOO_LARGE = {
    # 6.7e9 parameters at 18 bytes, whole on every GPU: 113 GiB and activations.
    "states whole on every GPU": (
        case(
            {"tp": 1, "pp": 1, "cp": 1, "zero_stage": 0},
            model="llama-2-7b",
            framework="megatron",
        ),
        {
            "framework",
            "training.method",
            "search.tp",
            "search.pp",
            "search.zero_stage",
            "gpu.memory_capacity",
        },
    ),
    # 8e9 parameters at 8 bytes and more on one card of 24 GiB; offload is refused
    # by this framework's limits, and adapters or more cards would do.
    "full training on one card": (
        case(
            {"offload": False},
            model="llama-3.1-8b",
            cluster="rtx-4090-1",
            framework="accelerate",
            global_batch=8,
        ),
        {"training.method", "cluster.nodes", "gpu.memory_capacity"},
    ),
    # 70e9 parameters at 16 bytes are 1,043 GiB, eight GPUs have 634; moments of 8
    # bits leave 10 bytes, still too many; a Trainer in pure bf16 has 8.
    "70B on one node": (
        case(
            {},
            model="llama-3.1-70b",
            cluster="dgx-a100-1-node",
            framework="megatron",
        ),
        {
            "framework",
            "training.method",
            "cluster.nodes",
            "search.offload",
            "gpu.memory_capacity",
        },
    ),
    # Quantised already, everything allowed: only its 65,536 tokens are left, which no
    # more GPUs can share, since adapters see whole sequences.
    "a long sequence on one card": (
        case(
            {"recompute": ["none", "selective"], "offload": True},
            model="llama-3.1-8b",
            cluster="rtx-4090-1",
            framework="any",
            seq_len=65536,
            global_batch=8,
            method="qlora",
            optimizer="adamw-8bit",
        ),
        {"gpu.memory_capacity"},
    ),
    # 16 layers keep some 34 bytes of 65,536 x 2,048 activations each: 68 GiB, and
    # the logits; recomputed, on the host, or split over any axis, they would fit.
    "nothing recomputed, nothing split": (
        case(
            {"recompute": "none", "tp": 1, "cp": 1, "pp": 1},
            seq_len=65536,
            framework="megatron",
        ),
        {
            "search.offload",
            "search.recompute",
            "search.tp",
            "search.cp",
            "search.pp",
            "gpu.memory_capacity",
        },
    ),
}
"""Jobs of which nothing fits, with the fields of the smallest conflict."""
