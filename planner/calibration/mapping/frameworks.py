"""The framework of a measured row: its stack, and the row's own settings."""

import re
from dataclasses import dataclass, replace

from planner.calibration.mapping.clusters import Hardware
from planner.calibration.mapping.settings import (
    allocator_setting,
    attention,
    profile_settings,
    recipe_settings,
    released,
    with_compiler,
)
from planner.calibration.mapping.software import StackRule, year_of
from planner.calibration.notes.recompute import MODULES_KIND, module_kind
from planner.calibration.notes.rules import rules
from planner.calibration.rows.rows import Row
from planner.frameworks import FRAMEWORKS
from planner.frameworks.releases import day_of, with_facts
from planner.frameworks.stacks import read_stack, with_stack
from planner.hardware.calibration import GpuCalibration
from planner.hardware.kernels.attention import UNFUSED, stand_in
from planner.hardware.specs import GpuSpec
from planner.specs.frameworks.framework import Framework, Recipe, RecipeOverrides
from planner.specs.frameworks.limits import Limits
from planner.specs.frameworks.profile import Profile
from planner.specs.frameworks.states import StateBytes
from planner.specs.layouts.axes import ORDERS
from planner.specs.layouts.context import FAMILIES

ANY_ZERO = (0, 1, 2, 3)
WIDE_STATES = {
    0: StateBytes(weights=4, gradients=4),
    1: StateBytes(weights=4, gradients=4),
    2: StateBytes(weights=4, sharded_gradients=4),
    3: StateBytes(sharded_weights=4, sharded_gradients=4),
}
"""Training in fp32 needs no copy of the weights. [B]"""


@dataclass(frozen=True)
class Software:
    """A framework as a row ran it."""

    framework: Framework
    flags: tuple[str, ...]
    """Assumptions that the row needed. [text]"""


def software_of(
    row: Row, rule: StackRule, hardware: Hardware, calibration: GpuCalibration
) -> Software:
    """A stack with the row's own settings, and limits that refuse nothing that ran."""
    gpu = hardware.cluster.gpu
    room = next(framework for framework in FRAMEWORKS if framework.name == rule.room)
    software = row.software
    stacked = with_stack(room, rule.stack)
    if rule.released:
        stacked = with_facts(stacked, day_of(year_of(row, gpu.arch)))
    if software.compile is not None:
        stacked = with_compiler(stacked, room, compiled=software.compile)
    stacked = replace(stacked, recipe=_recipe(row, rule, stacked))
    kernel, flags = _kernel(row, room.profile, stacked.profile, gpu, calibration)
    changed = {
        **_overlap(row, rule),
        **_launch(row, rule),
        **_experts(row, hardware.cluster.node.scale_up_domain),
        **_scaling(row),
        **_gates(row, rule),
        **_gathers(rule),
        **profile_settings(software),
        **allocator_setting(software, stacked.profile),
        "attention_kernel": kernel,
    }
    unknown = ("unknown framework",) if rule.unknown else ()
    framework = replace(
        stacked,
        profile=stacked.profile.model_copy(update=changed),
        limits=_widened(stacked.limits, room.limits, stacked.recipe),
    )
    return Software(framework, (*unknown, *flags))


def _widened(limits: Limits, room: Limits, recipe: Recipe) -> Limits:
    """Limits that leave only the laws of arithmetic: what ran was legal."""
    return replace(
        limits,
        zero_stages=ANY_ZERO,
        schedules=tuple(dict.fromkeys((*limits.schedules, *room.schedules))),
        cp_kinds=FAMILIES,
        ulysses_copies_keys=True,
        orders=ORDERS,
        recompute=tuple(recipe.kinds),
        recompute_scope="virtual-stage",
        hybrid_sharding=True,
        sequence_parallel=(True, False),
        expert_tensor=True,
        experts_need_sp=False,
        pipeline=True,
        expert_parallel=True,
        context_parallel=True,
        shards_need_ranks=False,
        split_replicas_need_shards=False,
        apart=(),
    )


def _recipe(row: Row, rule: StackRule, stacked: Framework) -> Recipe:
    """The stack's memory habits, with the row's loss and recomputed modules."""
    words, sharding = row.normalised.recompute, row.normalised.sharding
    recipe = stacked.recipe
    if row.job.loss_fusion and row.software.loss is None:
        recipe = replace(recipe, logits_bytes=rules().fused_loss.logits_bytes)
    recipe = recipe_settings(row.software, replace(stacked, recipe=recipe))
    if sharding and sharding.kind == "zero3":
        recipe = _under_deepspeed(recipe, row.software.bucket_parameters)
    if re.search(r"\bpure\b", row.job.precision.lower()) and rule.room != "megatron":
        recipe = _pure(recipe)
    if is_wide(row):
        recipe = replace(recipe, states=WIDE_STATES, fp16_states=None)
    if words.kind == "selective" and words.modules:
        kind = module_kind(_modules(row))
        recipe = replace(recipe, kinds={**recipe.kinds, MODULES_KIND: kind})
    return recipe


def _modules(row: Row) -> tuple[str, ...]:
    """Modules that a row recomputes; a dense model has one activation, its MLP's."""
    named = tuple(row.normalised.recompute.modules)
    if row.model.moe is not None:
        return named
    return tuple("mlp_act" if name == "moe_act" else name for name in named)


def _gates(row: Row, rule: StackRule) -> dict[str, object]:
    """Bytes of a gated activation where the stack is from before its fusion."""
    gates = rules().gates
    dated = rule.stack in gates.stacks and year_of(row, "") < gates.until
    gated = row.model.gated_mlp
    return {"activation_bytes": gates.activation_bytes} if dated and gated else {}


def _gathers(rule: StackRule) -> dict[str, object]:
    """Gathered inputs of linears, where the row's software differs from its stack."""
    kept = rule.gathered_inputs
    return {} if kept is None else {"gathered_inputs": kept}


def is_wide(row: Row) -> bool:
    """Tell if a row computes in 32 bits, where no fused attention exists.

    Returns:
        True for fp32 and tf32.
    """
    text = row.job.precision.lower()
    return bool(re.search(r"fp32|tf32|float32", text)) and "16" not in text


def _pure(recipe: Recipe) -> Recipe:
    """Weights, gradients and moments in 16 bits, as torchtune keeps them."""
    theirs = read_stack("torchtitan", "torchtune").recipe
    return RecipeOverrides(
        states=theirs.states,
        state_bits=theirs.state_bits,
        gradient_bytes=theirs.gradient_bytes,
    ).on(recipe)


def _under_deepspeed(recipe: Recipe, bucket: float | None) -> Recipe:
    """Recipe with the parameters that DeepSpeed's ZeRO-3 has whole at one time.

    Its bucket of gradients has the size that the row states, else DeepSpeed's own.
    """
    theirs = read_stack("torchtitan", "deepspeed-zero3").recipe
    return RecipeOverrides(
        live_parameters=theirs.live_parameters,
        reduced_parameters=bucket or theirs.reduced_parameters,
        head_stays_whole=theirs.head_stays_whole,
    ).on(recipe)


def _overlap(row: Row, rule: StackRule) -> dict[str, object]:
    """Settings of the overlap of communication with compute, as the row has them."""
    lay = row.layout
    said: dict[str, object] = {}
    sharding = row.normalised.sharding
    deepspeed = rules().deepspeed_zero3
    if sharding and sharding.kind == "zero3" and rule.stack not in deepspeed.own:
        said["overlap_contention"] = deepspeed.overlap_contention
        said["fragmentation"] = deepspeed.fragmentation
    if row.normalised.schedule.overlap == "none":
        said |= {"hidden_tp": 0.0, "hidden_regather": 0.0, "tp_overlap": False}
        said |= {"overlap_grad_reduce": False, "overlap_param_gather": False}
    if rules().finetuning.holds(rule.stack, row.job.task):
        said["tp_overlap"] = False
    stated = {
        "overlap_grad_reduce": lay.overlap_grad_reduce,
        "overlap_param_gather": lay.overlap_param_gather,
        "tp_overlap": lay.tp_comm_overlap,
    }
    return {**said, **{key: v for key, v in stated.items() if v is not None}}


def _launch(row: Row, rule: StackRule) -> dict[str, object]:
    """CUDA graphs, stated or taken unasked, and gradient buckets, where stated."""
    said: dict[str, object] = {}
    since = rules().graphs.unasked_since.get(rule.stack or "", float("inf"))
    unasked = "layer" if year_of(row, "") >= since else ""
    if graphs := row.software.cuda_graphs or row.layout.text("cuda_graph") or unasked:
        said["cuda_graphs"] = _graphs(row, graphs)
    try:
        said["bucket_parameters"] = float(row.layout.bucket or "")
    except ValueError:
        return said
    return said


def _graphs(row: Row, graphs: str) -> str:
    """Part that is launched as a graph; attention alone is a part of a dense layer."""
    if graphs in {"none", "false", "off"}:
        return "none"
    if _steers_experts(row, graphs):
        return "router" if graphs == "router" else "dense"
    if graphs in {"attention", "router"}:
        return "none"
    return "full" if "full" in graphs else "layer"


def _steers_experts(row: Row, graphs: str) -> bool:
    """True where graphs leave the experts, whose token counts vary, to the host.

    Padded experts have counts that never vary, and are part of their layer's graph
    (Megatron-Core 0.14, permute of moe_utils.py and CudaGraphManager).
    """
    if row.model.moe is None or (_padded(row) and graphs == "layer"):
        return False
    sizes_on_device = year_of(row, "") >= rules().graphs.experts_since
    return "full" not in graphs or not sizes_on_device


def _padded(row: Row) -> bool:
    """True where the host knows how many tokens each expert gets."""
    return row.software.routing == "padded"


def _experts(row: Row, domain: int) -> dict[str, object]:
    """Dispatch of tokens to experts, where stated, and its overlap.

    Recipes overlap dispatch that leaves a domain; inside one, where a row says so.
    """
    said: dict[str, object] = {"expert_wait": 0.0} if _padded(row) else {}
    ranks = row.layout.ep or 1
    if ranks > 1 and domain % ranks == 0:
        said["ep_overlap"] = False
    if dispatcher := row.layout.text("moe_dispatcher"):
        once = bool(re.search(r"deepep|hybridep|flex", dispatcher))
        said["expert_dispatch"] = "deduplicated" if once else "all-to-all"
        said |= {"ep_overlap": False} if once else {}
    if "dualpipe" in row.layout.text("schedule"):
        said["ep_overlap"] = True
    return said


def _detail(row: Row) -> str:
    return row.job.text("precision_detail")


def _scaling(row: Row) -> dict[str, object]:
    """Scaling of fp8 inputs, where stated."""
    text = _detail(row)
    words = {
        "delayed": r"delayed|fp8[-_]ds",
        "current": r"current|tensorwise|per[- ]tensor|fp8[-_]cs",
        "blockwise": r"block|1x128|rowwise|fp8[-_]sc",
    }
    said = [word for word, pattern in words.items() if re.search(pattern, text)]
    return {"fp8_recipe": said[0]} if said else {}


def _named_kernel(
    row: Row, default: Profile, stacked: Profile, gpu: GpuSpec
) -> str | dict[str, str]:
    """Attention kernel that ran; on long sequences one that keeps no scores."""
    if stated := attention(row.software, gpu.arch):
        return stated
    rule = rules().long_attention
    long = row.job.seq_len >= rule.tokens and year_of(row, gpu.arch) >= rule.since
    explicit = stacked.attention_kernel == UNFUSED
    return default.attention_kernel if long and explicit else stacked.attention_kernel


def _kernel(
    row: Row,
    default: Profile,
    stacked: Profile,
    gpu: GpuSpec,
    calibration: GpuCalibration,
) -> tuple[str, tuple[str, ...]]:
    """The attention kernel that ran, or the nearest that is measured."""
    named = _named_kernel(row, default, stacked, gpu)
    flash, backend = row.job.flash_attention, row.job.text("attention_backend")
    wide = is_wide(row)
    if wide or flash is False or backend in {UNFUSED, "local", "math", "eager"}:
        return UNFUSED, ()
    if named == UNFUSED and (flash or "flash" in backend):
        named = default.attention_kernel
    wanted = named if isinstance(named, str) else named.get(gpu.arch, "")
    wanted = released(wanted, row.software, gpu.arch, year_of(row, gpu.arch))
    measured = sorted({c.kernel for c in calibration.attention if c.causal})
    if wanted == UNFUSED or wanted in measured:
        return wanted, ()
    nearest = stand_in(wanted, measured) or next(iter(measured), UNFUSED)
    known = isinstance(named, str) or gpu.arch in named
    return nearest, ((f"attention {wanted} priced as {nearest}",) if known else ())
