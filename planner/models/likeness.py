"""Configs of unknown architectures: the nearest family, and what that leaves out."""

from collections.abc import Iterable, Mapping
from typing import Any

from planner.models.config import FamilyConfig
from planner.models.details import Details
from planner.models.errors import ModelConfigError

PLANNED_AS = "planned_as"
"""Field of ours in a config: family whose blocks stand in for its own. [text]"""
_NO_WORK = frozenset(
    {
        PLANNED_AS,
        "architectures",
        "attention_dropout",
        "auto_map",
        "bos_token_id",
        "dtype",
        "embd_pdrop",
        "eos_token_id",
        "hidden_act",
        "hidden_activation",
        "hidden_dropout",
        "initializer_range",
        "layer_norm_eps",
        "model_type",
        "name",
        "norm_eps",
        "norm_topk_prob",
        "output_router_logits",
        "pad_token_id",
        "pretraining_tp",
        "quantization_config",
        "resid_pdrop",
        "rope_local_base_freq",
        "rotary_dim",
        "router_aux_loss_coef",
        "scoring_func",
        "sep_token_id",
        "topk_method",
        "torch_dtype",
        "transformers_version",
        "unk_token_id",
        "use_cache",
    }
)
"""Fields without weights or work, whatever the family. [text]"""
TOWERS = ("vision_config", "audio_config")
"""Parts of a multi-modal config beside the text model. [text]"""
MOST_TOLD = 20
"""Fields that one sentence names. [1]"""


def not_understood(
    family: type[FamilyConfig], config: Mapping[str, Any]
) -> tuple[str, ...]:
    """Fields that a family does not read, and that may mean weights or work.

    Args:
        family: The family. [-]
        config: Hugging Face fields. [-]

    Returns:
        Names; none of fields that are switched off: null, false, zero or empty. [text]
    """
    read = {*family.model_fields, *family.other_names, *Details.model_fields}
    return tuple(
        key
        for key, value in config.items()
        if value and key not in read | _NO_WORK and not key.startswith("_")
    )


def most_alike(
    families: Iterable[type[FamilyConfig]], config: Mapping[str, Any]
) -> type[FamilyConfig] | None:
    """Family that reads a config and leaves the fewest of its fields aside.

    Args:
        families: The families. [-]
        config: Hugging Face fields of an architecture that is not known. [-]

    Returns:
        The family, of several the first; None where the fields make none. [-]
    """
    able = [family for family in families if _reads(family, config)]
    return min(able, key=lambda one: len(not_understood(one, config)), default=None)


def _reads(family: type[FamilyConfig], config: Mapping[str, Any]) -> bool:
    """Tell if a family can read the fields of a config."""
    try:
        family.read(config, "")
    except ModelConfigError:
        return False
    return True


def told(fields: tuple[str, ...]) -> str:
    """Name fields in a sentence.

    Returns:
        The names, and how many more there are. [text]
    """
    more = len(fields) - MOST_TOLD
    listed = ", ".join(fields[:MOST_TOLD])
    return f"{listed} and {more} more" if more > 0 else listed


def left_out(
    family: type[FamilyConfig], text: Mapping[str, Any], whole: Mapping[str, Any]
) -> tuple[str, ...]:
    """Say what of a config no plan will hold.

    Args:
        family: Family that is planned. [-]
        text: Fields of the text model. [-]
        whole: Fields of the whole model. [-]

    Returns:
        Sentences, none for a text model of a known family. [text]
    """
    said = []
    if PLANNED_AS in whole or PLANNED_AS in text:
        lost = not_understood(
            family, {k: v for k, v in text.items() if k != PLANNED_AS}
        )
        said.append(
            f"planned as {family.family}, whose blocks stand in for the model's own; "
            f"not understood and left out: {told(lost) or 'nothing'}"
        )
    towers = tuple(name for name in TOWERS if isinstance(whole.get(name), Mapping))
    if towers:
        said.append(
            f"the text model alone is planned: weights and work of {told(towers)} are "
            "left out"
        )
    return tuple(said)
