"""Gemma 3n: copies of the stream, inputs of each layer's own, shared keys."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self

from pydantic import model_validator

from planner.hardware.reading.numbers import NonNegativeInt, PositiveInt
from planner.models.architecture import Architecture
from planner.models.config import require_at_most
from planner.models.families.gemma import Gemma3Config
from planner.models.layers.blocks import AlternatingUpdates, Attention, LayerKind

_NORMS_OF_STREAM = 3
"""Norms of the copies' weights, the residual branch and the layer's inputs. [1]"""


class Gemma3nConfig(Gemma3Config):
    """Fields of the text part of a Gemma 3n config: one global layer in five.

    The last num_kv_shared_layers take the keys and values of an earlier layer.

    Left out: the towers; activations that the first layers set to zero, which no kernel
    skips. Left out, and refused: layers whose MLPs differ in width.
    Source: transformers 5.23, models/gemma3n/modeling_gemma3n.py.
    """

    family: ClassVar[str] = "gemma3n_text"
    hf_class: ClassVar[str] = "Gemma3nForCausalLM"

    sliding_window_pattern: PositiveInt = 5
    num_kv_shared_layers: NonNegativeInt = 15
    hidden_size_per_layer_input: PositiveInt = 256
    vocab_size_per_layer_input: PositiveInt = 262_144
    altup_num_inputs: PositiveInt = 4
    laurel_rank: PositiveInt = 64

    @classmethod
    def _own_names(cls, config: Mapping[str, Any]) -> dict[str, Any]:
        named = super()._own_names(config)
        widths = named.get("intermediate_size")
        if isinstance(widths, list) and len(set(map(str, widths))) == 1:
            named["intermediate_size"] = widths[0]
        return named

    @model_validator(mode="after")
    def _check_shared(self) -> Self:
        require_at_most(self, "num_kv_shared_layers", "num_hidden_layers")
        return self

    def architecture(self, name: str, source: str) -> Architecture:
        """Architecture of these layers, with the table of their own inputs.

        Args:
            name: Name for the model.
            source: Citation, URL or path of the fields.
        """
        found, h = super().architecture(name, source), self.hidden_size
        columns = self.hidden_size_per_layer_input * self.num_hidden_layers
        copies = 2 * (self.altup_num_inputs - 1)
        return replace(
            found,
            input_table=self.vocab_size_per_layer_input * columns,
            outer_weights=h * columns + copies * h * h,
            outer_vectors=self.hidden_size_per_layer_input,
        )

    def _layers(self) -> Iterable[LayerKind]:
        first_shared = self.num_hidden_layers - self.num_kv_shared_layers
        for layer, kind in enumerate(super()._layers()):
            norms = kind.norms + _NORMS_OF_STREAM
            with_stream = replace(kind, norms=norms, stream=self._stream())
            yield with_stream if layer < first_shared else _sharing(with_stream)

    def _stream(self) -> AlternatingUpdates:
        return AlternatingUpdates(
            self.hidden_size,
            self.hidden_size_per_layer_input,
            self.altup_num_inputs,
            self.laurel_rank,
        )


def _sharing(kind: LayerKind) -> LayerKind:
    """The kind with keys and values of an earlier layer."""
    assert isinstance(kind.attention, Attention)
    attention = replace(kind.attention, key_matrices=0)
    return replace(kind, name=f"{kind.name}-shared", attention=attention)
