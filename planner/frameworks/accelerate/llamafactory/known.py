"""Arguments that LLaMA-Factory's parser accepts; any other argument stops a run."""

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from planner.frameworks.accelerate.launch.known import earlier

VERSION = "0.9.5"
"""Release of LLaMA-Factory that files are written for. [text]"""
TRANSFORMERS, ACCELERATE, PEFT, DEEPSPEED = "5.6.0", "1.11.0", "0.18.1", "0.18.4"
"""Newest releases of the other libraries that the release allows. [text]"""
FILE = Path(__file__).with_name(f"arguments-{VERSION}.json")


class Arguments(BaseModel):
    """Arguments by the dataclass that holds them.

    Attributes:
        source: Files that the names are from. [text]
        model: Fields of ModelArguments. [text]
        data: Fields of DataArguments. [text]
        training: Fields of TrainingArguments beyond those of transformers. [text]
        finetuning: Fields of FinetuningArguments. [text]
        generating: Fields of GeneratingArguments. [text]
        trainer: Fields of Seq2SeqTrainingArguments of transformers. [text]
        models: Model types of transformers with a causal language model. [text]
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    source: str
    model: frozenset[str]
    data: frozenset[str]
    training: frozenset[str]
    finetuning: frozenset[str]
    generating: frozenset[str]
    trainer: frozenset[str]
    models: frozenset[str]


@cache
def known() -> Arguments:
    """Read the arguments and the model types. [-]."""
    return Arguments.model_validate_json(FILE.read_text())


@cache
def arguments() -> frozenset[str]:
    """Every argument that the parser accepts. [text]."""
    its = known()
    own = its.model | its.data | its.training | its.finetuning | its.generating
    return own | its.trainer


def unknown_arguments(given: Mapping[str, object]) -> Iterator[str]:
    """Arguments that LLaMA-Factory refuses."""
    known = arguments() | earlier().harmless
    yield from (str(name) for name in given if name not in known)
