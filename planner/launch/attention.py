"""attn_implementation of a plan whose target trains transformers' own models."""

from planner.frameworks.transformers import implementation, implementations
from planner.launch.brief import Brief, Gap


def attention(brief: Brief, room: str) -> str | None:
    """Word of attn_implementation that runs what was priced.

    Args:
        brief: The plan. [-]
        room: The target's framework. [text]

    Returns:
        The word, None where the model's code has none for it; of a plan for another
        framework the model's own default. [text]
    """
    family = brief.architecture.family
    if brief.framework != room:
        return implementations(family)[0]
    stated = brief.spec.stack.get("attention")
    return implementation(family, brief.stack.get("attention_kernel"), stated)


def attention_gaps(brief: Brief, room: str) -> tuple[Gap, ...]:
    """The attention that was priced, where the model's code has none for it.

    Args:
        brief: The plan. [-]
        room: The target's framework. [text]

    Returns:
        One gap, or none. [-]
    """
    if attention(brief, room) is not None:
        return ()
    priced = brief.stack.get("attention_kernel")
    allowed = ", ".join(implementations(brief.architecture.family))
    return (Gap("no such attention", "spec.stack.attention", priced, allowed),)
