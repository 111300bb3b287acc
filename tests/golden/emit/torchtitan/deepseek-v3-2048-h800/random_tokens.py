"""Random tokens for runs without data, few of them frequent, as in a language."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from torchtitan.components.dataloader import BaseDataLoader
from torchtitan.components.tokenizer import BaseTokenizer

Batch = tuple[dict[str, torch.Tensor], torch.Tensor]


class RandomTokens(BaseDataLoader):
    """Sequences of random tokens, others on every data-parallel rank."""

    @dataclass(kw_only=True, slots=True)
    class Config(BaseDataLoader.Config):
        """How many tokens there are to draw from."""

        vocabulary: int

    def __init__(
        self,
        config: Config,
        *,
        dp_rank: int,
        seq_len: int,
        local_batch_size: int,
        **_: Any,
    ) -> None:
        self.vocabulary, self.shape = config.vocabulary, (local_batch_size, seq_len + 1)
        self.generator = torch.Generator().manual_seed(dp_rank)

    def __iter__(self) -> Iterator[Batch]:
        while True:
            drawn = torch.rand(self.shape, generator=self.generator)
            tokens = (drawn**4 * self.vocabulary).long()
            positions = torch.arange(self.shape[1] - 1).expand(self.shape[0], -1)
            inputs = {"input": tokens[:, :-1], "positions": positions}
            yield inputs, tokens[:, 1:].contiguous()

    def state_dict(self) -> dict[str, Any]:
        return {"generator": self.generator.get_state()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.generator.set_state(state_dict["generator"])


class NoTokenizer(BaseTokenizer):
    """Random tokens need none."""

    @dataclass(kw_only=True, slots=True)
    class Config(BaseTokenizer.Config):
        """Nothing to choose."""

    def __init__(self, config: Config, *, tokenizer_path: str = "") -> None:
        super().__init__()

    def encode(self, *args: Any, **kwargs: Any) -> list[int]:
        return []

    def decode(self, *args: Any, **kwargs: Any) -> str:
        return ""

    def get_vocab_size(self) -> int:
        return 0
