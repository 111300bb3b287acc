"""What of a plan accelerate, Trainer, TRL and PEFT cannot say."""

from collections.abc import Iterator

from planner.errors import did_you_mean
from planner.launch.accelerate.arguments import optim
from planner.launch.accelerate.known import keys
from planner.launch.accelerate.plan import (
    STACKS,
    attention,
    deepspeed,
    fsdp,
    mixed_precision,
    own_mesh,
    recompute,
    routed,
    shards,
    stack,
    with_trl,
)
from planner.launch.accelerate.run import targets, weights
from planner.launch.attention import attention_gaps
from planner.launch.brief import Brief, Gap

PRECISIONS = ("bf16", "fp16", "fp8", "fp32", "tf32")


def gaps(brief: Brief) -> tuple[Gap, ...]:
    """What of a plan the files cannot say.

    Args:
        brief: The plan. [-]

    Returns:
        One gap for each, none where all of it can be said. [-]
    """
    return (
        *_model_gaps(brief),
        *_training_gaps(brief),
        *_number_gaps(brief),
        *_method_gaps(brief),
        *_mesh_gaps(brief),
        *_split_gaps(brief),
        *_zero_gaps(brief),
    )


def _model_gaps(brief: Brief) -> Iterator[Gap]:
    kind = str(brief.model.get("model_type", brief.architecture.family))
    if kind not in keys().models:
        near = did_you_mean(kind, sorted(keys().models))
        yield Gap("transformers has no such model", "spec.model", kind, near)
    yield from attention_gaps(brief, "accelerate")
    if brief.architecture.mtp_layers:
        what = f"{brief.architecture.mtp_layers} layers"
        yield Gap("no multi-token prediction", "spec.model", what, "none")
    if stack(brief) not in STACKS:
        allowed = ", ".join(STACKS)
        yield Gap("its loader is its own", "spec.stack", stack(brief), allowed)


def _training_gaps(brief: Brief) -> Iterator[Gap]:
    its, where = brief.training, "spec.training."
    if its.state_bits is not None:
        yield Gap("moments have one width", f"{where}state_bits", its.state_bits, "")
    if its.optimizer_in_backward:
        yield Gap("no step in backward", f"{where}optimizer_in_backward", "true", "")
    if its.freeze != type(its.freeze)():
        yield Gap("nothing is frozen", f"{where}freeze", "parts of the model", "")
    flash = attention(brief) == "flash_attention_2"
    if its.document and not (with_trl(brief) and flash):
        allowed = "adapters with stack.attention flash_attention_2, which TRL packs"
        yield Gap("no packed documents", f"{where}document", its.document, allowed)
    if optim(brief) is None:
        what = "no such optimizer"
        if shards(brief):
            what += " over shards of FSDP2"
        allowed = "adamw, adamw-8bit, sgd, sgd-momentum, adafactor"
        yield Gap(what, f"{where}optimizer", its.optimizer, allowed)


def _number_gaps(brief: Brief) -> Iterator[Gap]:
    its, where = brief.training.precision, "spec.training.precision"
    if its not in PRECISIONS:
        yield Gap("no such format", where, its, ", ".join(PRECISIONS))
    if its == "fp8" and (deepspeed(brief) or own_mesh(brief)):
        yield Gap("no fp8 beside DeepSpeed or tensor ranks", where, its, "bf16, fp16")
    half = mixed_precision(brief) == "fp16" and weights(brief) == "float16"
    if half and not (fsdp(brief) or deepspeed(brief)):
        what = "fp16 gradients of fp16 weights cannot be scaled"
        yield Gap(what, where, its, "bf16; ZeRO 2 or 3; stack hf-amp")


def _method_gaps(brief: Brief) -> Iterator[Gap]:
    its = brief.training
    if its.method == "full":
        return
    where = "spec.training.lora"
    found = targets(brief)
    if not found:
        yield Gap("no such linear layers here", where, its.lora.targets, "all-linear")
    if routed(brief) and found != "all-linear" and {"fc1", "fc2"} & {*its.lora.modules}:
        what = "routed experts are no linear layers, and carry no adapters"
        yield Gap(what, where, its.lora.targets, "attention, all-linear")
    if its.quantized_experts:
        what = "routed experts are not quantised"
        yield Gap(what, "spec.training.quantized_experts", "true", "false")
    if brief.layout.tp > 1:
        yield Gap("no adapters beside tensor ranks", "layout.tp", brief.layout.tp, "1")
    if its.method == "qlora" and deepspeed(brief) and brief.layout.zero_stage == 3:
        what = "quantised weights are not sharded by DeepSpeed"
        yield Gap(what, "layout.zero_stage", 3, "0 to 2, or stack hf-fsdp2")


def _mesh_gaps(brief: Brief) -> Iterator[Gap]:
    its = brief.layout
    kind = recompute(its)
    if kind not in ("none", "full"):
        what = "blocks are checkpointed all or none"
        yield Gap(what, "layout.stages.recompute", kind, "none, full")
    if its.pools:
        yield Gap("one kind of node alone", "layout.pools", "several", "none")
    if its.gpus % brief.gpus_per_node:
        yield Gap("nodes are filled whole", "layout.dp", its.dp, "")
    flash = attention(brief)
    if its.cp > 1 and not deepspeed(brief) and flash != "sdpa":
        yield Gap("context ranks need sdpa", "spec.stack.attention", flash, "sdpa")
    if its.cp > 1 and with_trl(brief):
        what = "adapters, TRL's loss and its offload see whole sequences"
        yield Gap(what, "layout.cp", its.cp, "1")


def _split_gaps(brief: Brief) -> Iterator[Gap]:
    """Tensor ranks, which transformers or DeepSpeed's AutoTP lay out."""
    its = brief.layout
    if its.tp == 1:
        return
    if its.cp > 1:
        yield Gap("tensor ranks go with no context ranks", "layout.cp", its.cp, "1")
    kind = str(brief.model.get("model_type", brief.architecture.family))
    if own_mesh(brief) and kind not in keys().split_models:
        yield Gap("the model has no plan for tensor ranks", "layout.tp", its.tp, "1")
    if with_trl(brief) and brief.training.method == "full":
        what = "TRL's loss and its offload go with no tensor ranks"
        yield Gap(what, "layout.tp", its.tp, "1")


def _zero_gaps(brief: Brief) -> Iterator[Gap]:
    its = brief.layout
    if not deepspeed(brief):
        return
    if its.dp_shard < its.dp * its.cp and its.zero_stage in (1, 2):
        what = "shard groups are ZeRO 3's (zero_hpz_partition_size)"
        yield Gap(what, "layout.dp_shard", its.dp_shard, str(its.dp * its.cp))
    if its.cp > 1 and its.zero_stage < 2:
        what = "Ulysses trains under ZeRO 2 and 3"
        yield Gap(what, "layout.zero_stage", its.zero_stage, "2, 3")
    if its.offload.optimizer and brief.training.optimizer != "adamw":
        name = brief.training.optimizer
        yield Gap("the host updates AdamW", "spec.training.optimizer", name, "adamw")
    if its.offload.optimizer and its.zero_stage == 0:
        yield Gap("ZeRO 0 offloads nothing", "layout.offload", "optimizer", "ZeRO 1-3")
