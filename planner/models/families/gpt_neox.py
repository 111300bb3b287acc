"""GPT-NeoX and Pythia: halves in parallel with a norm each, biases, no gate."""

from dataclasses import replace
from typing import ClassVar

from planner.models.layers.blocks import Attention, LayerKind, Mlp, Moe, ScanBlock
from planner.models.layers.fourfold import FourfoldConfig


class GptNeoxConfig(FourfoldConfig):
    """Fields of a GPT-NeoX config; attention_bias leaves the MLP's biases."""

    family: ClassVar[str] = "gpt_neox"
    hf_class: ClassVar[str] = "GPTNeoXForCausalLM"

    attention_bias: bool = True
    use_parallel_residual: bool = True

    def _attention(self) -> Attention:
        bias = self.attention_bias
        return replace(super()._attention(), qkv_bias=bias, out_bias=bias)

    def _ffn(self) -> Mlp:
        return Mlp(self.hidden_size, self.intermediate_size, gated=False, bias=True)

    def _layer(
        self, attention: Attention | ScanBlock, ffn: Mlp | Moe, prefix: str = ""
    ) -> LayerKind:
        layer = super()._layer(attention, ffn, prefix)
        return replace(layer, parallel=self.use_parallel_residual)
