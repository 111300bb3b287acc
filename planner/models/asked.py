"""The parts of a job that the writers of launch files are asked about."""

from collections.abc import Mapping
from dataclasses import dataclass

from planner.models.architecture import Architecture
from planner.specs.training import TrainingSpec


@dataclass(frozen=True)
class Asked:
    """Parts of a job that decide if a target has words for it, the layout apart.

    Attributes:
        framework: Framework of the job or of its plan. [text]
        fields: Hugging Face fields of the model. [-]
        model: The model as layers that know their sizes. [-]
        training: The training block. [-]
        words: The stack block as the user gave it. [-]
        stack: The software that is priced, by key of its profile. [-]
        archs: Architectures of the GPUs. [text]
        gpus_per_node: Ranks of one whole node; of pools that differ, the most that
            whole nodes of each are multiples of. [1]
    """

    framework: str
    fields: Mapping[str, object]
    model: Architecture
    training: TrainingSpec
    words: Mapping[str, object]
    stack: Mapping[str, object]
    archs: frozenset[str]
    gpus_per_node: int

    @property
    def model_type(self) -> str:
        """Model type of transformers; the family where the fields name none."""
        return str(self.fields.get("model_type") or self.model.family)
