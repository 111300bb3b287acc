"""What a writer of launch files is given, and what it gives back."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from hardware.catalog import Cluster
from planner.launch.sizes import Size
from planner.models.architecture import Architecture
from planner.models.asked import Asked
from planner.models.presets import weights_of
from planner.specs.estimate import Estimate
from planner.specs.job import JobSpec
from planner.specs.layout import Layout
from planner.specs.training import TrainingSpec

Starter = Literal["torchrun", "accelerate", "deepspeed"]
"""What starts the ranks of a node."""


@dataclass(frozen=True)
class Brief:
    """A plan with its names looked up: all that a writer sees.

    Attributes:
        job: Short name of files and runs, safe in a shell. [text]
        spec: The job. [-]
        model: Hugging Face fields of the model. [-]
        architecture: The same as layers that know their sizes. [-]
        training: Its training block. [-]
        cluster: Nodes, GPUs and fabric. [-]
        layout: The complete layout. [-]
        estimate: What was predicted for it. [-]
        stack: The software that the prediction assumes, by key. [-]
        versions: Of planner and its solver. [text]
        told: What there is to say of its prediction. [text]
    """

    job: str
    spec: JobSpec
    model: Mapping[str, object]
    architecture: Architecture
    training: TrainingSpec
    cluster: Cluster
    layout: Layout
    estimate: Estimate
    stack: Mapping[str, object]
    versions: Mapping[str, str]
    told: tuple[str, ...] = ()

    @property
    def asked(self) -> Asked:
        """What decides whether a target has words for the plan, its layout apart."""
        return Asked(
            framework=self.spec.framework,
            fields=self.model,
            model=self.architecture,
            training=self.training,
            words=self.spec.stack,
            stack=self.stack,
            gpus_per_node=self.cluster.node.gpus_per_node,
        )

    @property
    def framework(self) -> str:
        """The room that the plan was made for. [text]."""
        return self.spec.framework

    @property
    def gpus_per_node(self) -> int:
        """Ranks of one node. [1]."""
        return min(self.cluster.node.gpus_per_node, self.layout.gpus)

    @property
    def nodes(self) -> int:
        """Nodes that the layout fills. [1]."""
        return self.layout.gpus // self.gpus_per_node

    @property
    def weights(self) -> str:
        """Hub id or folder of its weights; empty where none is known. [text]."""
        fields = {k: v for k, v in self.model.items() if k != "name"}
        return weights_of(fields, str(self.model.get("name", "")))

    @property
    def training_steps(self) -> int:
        """Optimizer steps of the job's tokens; 1000 where it names none. [1]."""
        step = self.training.sequences * self.training.seq_len
        tokens = self.training.run_tokens
        return max(round(tokens / step), 1) if tokens else 1000


@dataclass(frozen=True)
class LaunchFile:
    """One file of a launch folder.

    Attributes:
        name: Relative to the folder. [text]
        text: Its content. [text]
        executable: Whether a shell may run it. [-]
    """

    name: str
    text: str
    executable: bool = False


@dataclass(frozen=True)
class Variable:
    """A variable of the environment, with the reason for it.

    Attributes:
        name: Of the variable. [text]
        value: What it is set to; the user's own setting wins. [text]
        why: One sentence. [text]
        required: Without a value the run does not start, but to try it on a CPU. [-]
    """

    name: str
    value: str
    why: str
    required: bool = False


@dataclass(frozen=True)
class Gap:
    """Something in a plan that a target has no words for.

    Attributes:
        feature: What the target lacks, as half a sentence. [text]
        field: Where the plan asks for it, as a path below `layout` or `spec`. [text]
        value: What it asks for. [-]
        allowed: What the target has in its place. [text]
    """

    feature: str
    field: str
    value: object
    allowed: str


@dataclass(frozen=True)
class Program:
    """What every node runs, and the files that it reads.

    Attributes:
        files: Configuration, and a script where the framework has none. [-]
        starter: What starts the ranks of a node. [text]
        words: What the starter is given, already quoted for a shell; may use
            variables of `blanks`. [text]
        check: Words added for a run of 20 steps. [text]
        versions: Pinned requirements, as pip reads them. [text]
        environment: Variables to set. [-]
        blanks: Variables that only the user can fill in, with a default that runs
            without data. [-]
        first: What to look at first, one sentence each. [text]
        starter_words: Options of the starter itself. [text]
        sources: Files that launch.sh reads before it starts the ranks. [text]
        also: What may start the same words in place of the starter, without its
            options. [text]
    """

    files: tuple[LaunchFile, ...]
    starter: Starter
    words: tuple[str, ...]
    check: tuple[str, ...]
    versions: tuple[str, ...]
    environment: tuple[Variable, ...] = ()
    blanks: tuple[Variable, ...] = ()
    first: tuple[str, ...] = ()
    starter_words: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    also: frozenset[Starter] = frozenset()


@dataclass(frozen=True)
class Reading:
    """What was understood of a launch configuration, and what was not.

    Attributes:
        target: Whose file it is. [text]
        framework: The room that prices it. [text]
        layout: Fields of a layout that the file fixes. [-]
        training: Fields of a training block. [-]
        model: Hugging Face fields, or the name of a preset; empty where the file
            has neither. [-]
        stack: Overrides of the software stack. [-]
        ignored: Settings that change no layout, time or memory. [text]
        unknown: Settings that were not understood, one each. [text]
        gpus: Ranks of the run where the file says so, else None. [1]
        sizes: Of the model, as far as files state them. [-]
        per_replica: Sequences of a step that each data-parallel rank takes, where no
            file says the global batch. [sequence]
    """

    target: str
    framework: str
    layout: Mapping[str, object]
    training: Mapping[str, object]
    model: Mapping[str, object] | str = ""
    stack: Mapping[str, object] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    gpus: int | None = None
    sizes: tuple[Size, ...] = ()
    per_replica: int | None = None
