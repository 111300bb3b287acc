"""The software stack that prices a job, every constant of it."""

from planner.cost.kernels import attention_kernel
from planner.cost.pricing import Pricing
from planner.cost.workload import Workload


def set_by_hand(workload: Workload) -> tuple[str, ...]:
    """Fields of the stack that are the job's, not its framework's default."""
    framework = workload.framework
    if not framework.by_hand:
        return ()
    fields = ", ".join(framework.by_hand)
    return (f"stack set by the job, in place of {framework.name}'s: {fields}",)


def stack_in_force(pricing: Pricing) -> dict[str, object]:
    """Name everything about the stack that moves a prediction."""
    profile = pricing.profile.model_dump(exclude={"source"})
    recipe, by_hand = pricing.recipe, pricing.framework.by_hand
    replayed = {"replay": recipe.replay, "loss": recipe.loss}
    own = [f"{name} {width:g} B" for name, width in recipe.formats_kept.items()]
    return {
        "framework": pricing.framework.name,
        **profile,
        "attention_kernel": attention_kernel(pricing),
        "precision": pricing.training.precision,
        "optimizer": pricing.training.optimizer,
        "recompute": sorted(recipe.kinds),
        "recompute_scope": pricing.framework.limits.recompute_scope,
        "gradient_bytes": recipe.gradient_bytes,
        "gather_bytes": recipe.gather_bytes,
        "logits_bytes": recipe.logits_bytes,
        "dropout_bytes": recipe.dropout_bytes,
        "keeps_fp8": recipe.keeps_fp8,
        "fp8_primary": recipe.fp8_primary,
        **({"formats_kept": own} if own else {}),
        "gradients_freed": recipe.gradients_freed,
        "optimizer_kernel": recipe.optimizer_kernel,
        "resume_copies": recipe.resume_copies,
        "checkpoint": recipe.checkpoint,
        "method": pricing.training.method,
        "accumulates_unsharded": recipe.accumulates_unsharded,
        "gradients_reduced_per_group": recipe.gradients_reduced_per_group,
        **(replayed if recipe.replay != "none" else {}),
        **({"set_by_hand": list(by_hand)} if by_hand else {}),
    }
