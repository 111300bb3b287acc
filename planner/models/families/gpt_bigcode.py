"""GPT-BigCode (SantaCoder, StarCoder, OctoCoder): GPT-2 with one key-value head."""

from typing import ClassVar

from planner.models.families.gpt import Gpt2Config


class GptBigCodeConfig(Gpt2Config):
    """Fields of a GPT-BigCode config: GPT-2's, and whether heads share their keys.

    Source: Li et al. 2023, arXiv 2305.06161, section 5.2; transformers,
    GPTBigCodeConfig.
    """

    family: ClassVar[str] = "gpt_bigcode"
    hf_class: ClassVar[str] = "GPTBigCodeForCausalLM"

    multi_query: bool = True

    def _kv_heads(self) -> int:
        return 1 if self.multi_query else self.n_head
