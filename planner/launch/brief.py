"""Input and output of the writers and readers of launch files."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import gcd

from planner.hardware.catalog import Cluster
from planner.launch.copies import Copies, shard_group, shared_out
from planner.launch.placement import Nodes, placed
from planner.launch.sizes import Size
from planner.launch.unknown import Unknown
from planner.models.architecture import Architecture
from planner.models.asked import Asked
from planner.models.presets import weights_of
from planner.specs.answer.estimate import Estimate
from planner.specs.job import JobSpec
from planner.specs.layouts.layout import Layout
from planner.specs.training import TrainingSpec


@dataclass(frozen=True)
class Starter:
    """Command that starts the ranks of a node.

    Attributes:
        words: Words of the command, already quoted for a shell; may use the variables
            of launch.sh: NNODES, NODE_RANK, GPUS_PER_NODE, MASTER_ADDR, MASTER_PORT.
            [text]
    """

    words: tuple[str, ...]


BY_TORCHRUN = Starter(
    (
        'torchrun --nnodes "$NNODES" --node-rank "$NODE_RANK"',
        '--nproc-per-node "$GPUS_PER_NODE"',
        '--master-addr "$MASTER_ADDR" --master-port "$MASTER_PORT"',
    )
)
"""PyTorch's own launcher."""
"""Program that starts the ranks of a node."""


@dataclass(frozen=True)
class Brief:
    """A plan with its names looked up: all that a writer sees.

    Attributes:
        job: Short name of files and runs, safe in a shell. [text]
        spec: The job. [-]
        model: Hugging Face fields of the model. [-]
        architecture: Layers of the model, with sizes. [-]
        training: Training block of the job. [-]
        cluster: Nodes, GPUs and fabric. [-]
        layout: The complete layout. [-]
        estimate: Prediction for the layout. [-]
        stack: Software that the prediction assumes, by key. [-]
        versions: Versions of planner and the solver. [text]
        told: Remarks on the prediction. [text]
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
        """Parts of a plan, apart from the layout, by which a target checks the plan."""
        places = self.cluster.pools or (self.cluster,)
        return Asked(
            framework=self.spec.framework,
            fields=self.model,
            model=self.architecture,
            training=self.training,
            words=self.spec.stack,
            stack=self.stack,
            archs=frozenset(place.gpu.arch for place in places),
            gpus_per_node=gcd(*(place.node.gpus_per_node for place in places)),
        )

    @property
    def framework(self) -> str:
        """The room that the plan was made for. [text]."""
        return self.spec.framework

    @property
    def placement(self) -> tuple[Nodes, ...]:
        """Nodes that the layout fills, pool by pool in the order of ranks. [-]."""
        return placed(self.cluster, self.layout)

    @property
    def gpus_per_node(self) -> int:
        """Ranks of one node, of the first pool where pools differ. [1]."""
        return self.placement[0].gpus

    @property
    def nodes(self) -> int:
        """Nodes that the layout fills. [1]."""
        return sum(its.count for its in self.placement)

    @property
    def weights(self) -> str:
        """Hub id or folder of the model's weights; empty where unknown. [text]."""
        fields = {k: v for k, v in self.model.items() if k != "name"}
        return weights_of(fields, str(self.model.get("name", "")))

    @property
    def training_steps(self) -> int:
        """Optimizer steps of the job's tokens; 1000 without a number of tokens. [1]."""
        step = self.training.step_tokens
        tokens = self.training.run_tokens
        return max(round(tokens / step), 1) if tokens else 1000


@dataclass(frozen=True)
class LaunchFile:
    """One file of a launch folder.

    Attributes:
        name: Path relative to the folder. [text]
        text: Content of the file. [text]
        executable: True where a shell may run the file. [-]
    """

    name: str
    text: str
    executable: bool = False


@dataclass(frozen=True)
class Variable:
    """A variable of the environment, with a reason.

    Attributes:
        name: Name of the variable. [text]
        value: Value of the variable; the user's own setting wins. [text]
        why: Reason, in one sentence. [text]
        required: True where a run needs a value, except a trial on a CPU. [-]
    """

    name: str
    value: str
    why: str
    required: bool = False


@dataclass(frozen=True)
class Gap:
    """A feature of a plan that a target cannot express.

    Attributes:
        feature: Feature that the target lacks, as half a sentence. [text]
        field: Field of the feature, as a path below `layout` or `spec`. [text]
        value: Value of that field in the plan. [-]
        allowed: Values that the target has in place of that value. [text]
    """

    feature: str
    field: str
    value: object
    allowed: str


@dataclass(frozen=True)
class Program:
    """Command that every node runs, and the files that the command reads.

    Attributes:
        files: Configuration, and a script where the framework has none. [-]
        starter: Command that starts the ranks of a node. [-]
        words: Arguments of the starter, already quoted for a shell; may use
            variables of `blanks`. [text]
        check: Words added for a run of 20 steps. [text]
        versions: Pinned requirements, as pip reads them. [text]
        environment: Variables to set. [-]
        blanks: Variables that only the user can fill in, with a default that runs
            without data. [-]
        first: Outputs to look at first, one sentence each. [text]
        starter_words: Options of the starter itself. [text]
        sources: Files that launch.sh reads before it starts the ranks. [text]
        also: Starters that may replace `starter`, without `starter_words`. [-]
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
    """Settings of a launch configuration that were understood, and the others.

    Attributes:
        target: Target that the files are for. [text]
        framework: Framework that prices the run. [text]
        layout: Fields of a layout that the files fix. [-]
        training: Fields of a training block. [-]
        model: Hugging Face fields, or the name of a preset; empty where the files
            have neither. [-]
        stack: Overrides of the software stack. [-]
        ignored: Settings that change no layout, time or memory. [text]
        unknown: Settings that were not understood. [-]
        gpus: Ranks of the run where the files give a number, else None. [1]
        nodes: Nodes of these ranks where the files give a number, else None. [1]
        sizes: Sizes of the model that the files state. [-]
        per_replica: Sequences of a step that each data-parallel rank takes, where no
            file says the global batch. [sequence]
        named: Hub id or folder of the weights that the files name. [text]
        copies: Copies of the states, where the ranks of the run give the group that
            shares them. [-]
        shares_batch: Setting of a global batch that DeepSpeed shares out over the
            replicas; empty where another tool does. [text]
        on_one_rank: Fields of a layout that a run of one rank has in place. [-]
        shares_gpus: True where one process trains, and takes every GPU that it sees.
            [-]
    """

    target: str
    framework: str
    layout: Mapping[str, object]
    training: Mapping[str, object]
    model: Mapping[str, object] | str = ""
    stack: Mapping[str, object] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()
    unknown: tuple[Unknown, ...] = ()
    gpus: int | None = None
    nodes: int | None = None
    sizes: tuple[Size, ...] = ()
    per_replica: int | None = None
    named: str = ""
    copies: Copies | None = None
    shares_batch: str = ""
    on_one_rank: Mapping[str, object] = field(default_factory=dict)
    shares_gpus: bool = False

    def layout_on(self, cluster: Cluster) -> Mapping[str, object]:
        """Fields of a layout that the files fix on a cluster.

        Returns:
            Values by field; those of one rank where the run has one, the shard group
            too, where the files count copies, and the shares of a batch that DeepSpeed
            shares out. [-]

        Raises:
            BadInputError: The ranks do not divide into copies, or the batch does not.
        """
        found, ranks = dict(self.layout), self.gpus or cluster.gpus
        if ranks == 1:
            found |= self.on_one_rank
        if self.copies is not None:
            group = shard_group(self.copies, self.layout, cluster, self.gpus)
            found["dp_shard"] = group
        total = self.training.get("global_batch")
        if self.shares_batch and isinstance(total, int):
            found |= shared_out(self.layout, total, self.shares_batch, ranks)
        return found
