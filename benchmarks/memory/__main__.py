"""Writes the worked examples: ``python -m benchmarks.memory``.

``--check`` writes nothing but prints the page.
"""

import argparse
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from string import Template

from benchmarks.memory import rules
from benchmarks.memory.checked import measured_rows, tracked_rows
from benchmarks.memory.jobs import job
from planner.cost.inference.estimate import cache_bytes_per_token
from planner.cost.pricing import Pricing
from planner.models import preset
from planner.specs.inference import InferenceSpec

HERE = Path(__file__).parent
ZERO_RULES = {"llama-2-7b": (112, 2), "llama-2-70b": (1120, 14)}
"""Preset to the rule's states and A100s. [GB] and [1]"""
LARGEST_RULES = {"24 GB": "1.5 B", "80 GB": "5 B"}
"""Memory to parameters at 16 bytes each. [text]"""
DEEPSPEED = {"name": "deepspeed-zero3"}


def main() -> None:
    """Write, or print, the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing")
    if parser.parse_args().check:
        print(page(), end="")
        return
    (HERE / "README.md").write_text(page(), encoding="utf-8")


def page() -> str:
    """The whole page.

    Returns:
        Markdown. [text]
    """
    template = Template((HERE / "template.md").read_text(encoding="utf-8"))
    return template.substitute(
        _states()
        | _inference()
        | _octocoder()
        | _training()
        | _activations()
        | _checked()
    )


def _checked() -> dict[str, str]:
    """Agreement with PyTorch's trackers and with measured GPUs."""
    return {
        "tracked_table": _table(
            ("cases", "number", "within 0.1 %", "within 1 %", "largest error"),
            tracked_rows(),
        ),
        "measured_table": _table(
            ("GPUs", "runs", "median error", "mean", "largest"), measured_rows()
        ),
    }


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def _states() -> dict[str, str]:
    """Bytes of a parameter, by framework and by optimizer."""
    counted = [
        ("ZeRO's own: DeepSpeed, fp16", _job(DEEPSPEED, precision="fp16")),
        ("FSDP2, fp32 shards, bf16 compute", _job()),
        ("Megatron-Core, bf16, fp32 gradients", _job(framework="megatron")),
        ("bf16 weights and gradients, no master", _job(rules.PURE_BF16)),
    ]
    optimizers = [("adamw", 12), ("adamw-8bit", 6), ("sgd-momentum", 8)]
    head = ("framework", "weights", "gradients", "optimizer", "planner: sum [B]")
    one = job("llama-2-7b", gpus=1)
    none, full = (rules.on_one_gpu(one, recompute=kind) for kind in ("none", "full"))
    return {
        "bytes_table": _table(head, [(name, *_bytes(w)) for name, w in counted]),
        "limits_table": _table(
            ("recompute", "states [GB]", "beside [GB]", "planner: peak [GB]", "[B/P]"),
            [_limit("none", none), _limit("full", full)],
        ),
        "none_extra": f"{none.activations:.1f}",
        "full_extra": f"{full.activations:.1f}",
        "optimizer_table": _table(
            ("optimizer", "rule [B]", "planner [B]"),
            [(name, rule, _optimizer(name)) for name, rule in optimizers],
        ),
    }


def _job(
    stack: Mapping[str, object] | None = None,
    *,
    framework: str = "torchtitan",
    precision: str = "bf16",
) -> Pricing:
    return job("llama-2-7b", framework=framework, stack=stack, precision=precision)


def _bytes(pricing: Pricing) -> tuple[str, ...]:
    each = rules.bytes_per_parameter(pricing)
    parts = (each.weights, each.gradients, each.optimizer, each.total)
    return tuple(f"{part:g}" for part in parts)


def _limit(kind: str, held: rules.OneGpu) -> tuple[str, ...]:
    parameters = preset("llama-2-7b").parameters / rules.GB
    numbers = (held.states, held.activations, held.allocated)
    each = f"{held.allocated / parameters:.1f}"
    return kind, *(f"{number:.1f}" for number in numbers), each


def _optimizer(name: str) -> str:
    workload = job("llama-2-7b", framework="megatron", optimizer=name)
    return f"{rules.bytes_per_parameter(workload).optimizer:.2f}"


def _inference() -> dict[str, str]:
    """Weights of Llama 2, and the cache."""
    small = preset("llama-2-7b").parameters / rules.GB
    over = {
        form: rules.weights_gb("llama-2-7b", form) / small / rules.RULE_BYTES[form] - 1
        for form in ("int8", "int4")
    }
    forms = list(rules.RULE_BYTES)
    head = ("model", *(f"{f}: rule" for f in forms), *(f"planner: {f}" for f in forms))
    return {
        "llama_table": _table(head, map(_llama, rules.LLAMAS)),
        "int8_over": f"{over['int8']:.1%}",
        "int4_over": f"{over['int4']:.1%}",
        "int4_gb": f"{rules.weights_gb('llama-2-7b', 'int4') - 3.5:.2f}",
        "llama7_cache": f"{_cache_kib('llama-2-7b'):.0f}",
        "llama8_cache": f"{_cache_kib('llama-3-8b'):.0f}",
        "gpt3": f"{rules.weights_gb('gpt3-175b', 'bf16'):.1f}",
        "gpt3_cache": f"{_cache_kib('gpt3-175b') * 2**10 * 2048 / rules.GB:.1f}",
    }


def _llama(name: str) -> tuple[str, ...]:
    rule = (f"{rules.BILLIONS[name] * each:g}" for each in rules.RULE_BYTES.values())
    ours = (f"{rules.weights_gb(name, form):.2f} GB" for form in rules.RULE_BYTES)
    return name, *rule, *ours


def _cache_kib(name: str) -> float:
    return cache_bytes_per_token(preset(name), InferenceSpec(context=1)) / 2**10


def _octocoder() -> dict[str, str]:
    peaks = {form: rules.octocoder_peak(form) for form in rules.OCTOCODER}
    rows = [
        (form, rule, measured, *_peak(peaks[form], measured))
        for form, (rule, measured) in rules.OCTOCODER.items()
    ]
    head = (
        "weights",
        "guide [GB]",
        "measured [GiB]",
        "planner [GiB]",
        "[GB]",
        "error",
    )
    weights = rules.weights_gb("octocoder", "fp4") * rules.GB / rules.GIB
    return {
        "octocoder_table": _table(head, rows),
        "octo_int8": f"{rules.OCTOCODER['int8'][1] - peaks['int8']:.2f}",
        "fp4_weights": f"{weights:.2f}",
    }


def _peak(peak: float, measured: float) -> tuple[str, ...]:
    """A peak in both units, and its relative error to the measured peak."""
    in_gb = peak * rules.GIB / rules.GB
    return f"{peak:.2f}", f"{in_gb:.2f}", f"{peak / measured - 1:+.1%}"


def _training() -> dict[str, str]:
    """ZeRO-3, checkpoints, the largest models."""
    zero = [
        (m, f"{gb:,}", f"{rules.states_gb(m):,.1f}", n, rules.fewest_a100(m))
        for m, (gb, n) in ZERO_RULES.items()
    ]
    pure = rules.checkpoint_gb("llama-2-70b", stack=rules.PURE_BF16)
    master = rules.checkpoint_gb("llama-2-70b", framework="megatron")
    fsdp = rules.checkpoint_gb("llama-2-70b")
    saved = [
        ("bf16 weights and fp32 moments, no master", 10, f"{pure:.1f}"),
        ("FSDP2: fp32 weights and moments", 12, f"{fsdp:.1f}"),
        ("Megatron-Core: bf16 weights, fp32 master and moments", 14, f"{master:.1f}"),
    ]
    return {
        "zero_table": _table(
            ("model", "rule [GB]", "planner [GB]", "rule: A100-80", "planner: A100-80"),
            zero,
        ),
        "checkpoint_table": _table(("saved", "[B/P]", "planner: 70 B [GB]"), saved),
        "master_gb": f"{master:.0f}",
        "fsdp_gb": f"{fsdp:.0f}",
        "largest_table": _table(
            ("GPU", "rule", "planner: states alone", "planner: with activations"),
            [_largest(card, cluster) for card, cluster in rules.CARDS.items()],
        ),
    }


def _largest(card: str, cluster: str) -> tuple[str, ...]:
    found = rules.largest_on(cluster)
    named = (
        f"{name} ({preset(name).parameters / rules.GB:.2f} B)"
        for name in (found.states_alone, found.priced)
    )
    return card, LARGEST_RULES[card], *named


def _activations() -> dict[str, str]:
    """The GPT-2 figure."""
    rule, formula = rules.gpt2_by_zero(), rules.gpt2_by_korthikanti()
    then = rules.gpt2_activations("megatron-2021")
    now = rules.gpt2_activations("megatron-2026")
    full = rules.gpt2_activations("megatron-2021", recompute="full")
    rows = [
        ("ZeRO's rule, 12 h b s L numbers of 2 B", f"{rule:.1f}"),
        ("s b h L (34 + 5 a s / h) bytes", f"{formula:.1f}"),
        ("planner, kernels of 2021 (explicit scores), with logits", f"{then:.1f}"),
        ("planner, today's fused kernels, with logits", f"{now:.1f}"),
        ("planner, kernels of 2021, every layer recomputed", f"{full:.1f}"),
    ]
    return {
        "gpt2_table": _table(("activations of GPT-2 1.5B", "[GB]"), rows),
        "gpt2_then": f"{then / rule:.1f}",
        "gpt2_now": f"{now / rule:.1f}",
        "gpt2_full": f"{full:.0f}",
    }


if __name__ == "__main__":
    main()
