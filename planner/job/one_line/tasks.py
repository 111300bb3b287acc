"""Sequence, batch and framework of a task, where the user does not say."""

from functools import cache
from importlib.resources import files

from pydantic import BaseModel, ConfigDict

from planner.hardware.reading.files import read
from planner.hardware.reading.numbers import PositiveInt
from planner.specs.training import Method


class Task(BaseModel):
    """Assumptions for jobs of one purpose.

    Attributes:
        name: Words for the purpose. [text]
        methods: Methods that the task is for. [text]
        most_gpus: GPUs of the largest such job. [1]
        most_tokens: Tokens of the longest such run. [token]
        seq_len: Tokens of a sequence. [token]
        global_batch: Least sequences of a step; one for each GPU if more. [sequence]
        global_batch_tokens: Least tokens of a step, in place of sequences. [token]
        tokens_per_gpu: Tokens of a step for each GPU, if more. [token]
        frameworks: Frameworks by preference. [text]
        why: Sources and reasons. [text]
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    methods: tuple[Method, ...]
    most_gpus: PositiveInt | None = None
    most_tokens: float | None = None
    seq_len: PositiveInt
    global_batch: PositiveInt = 1
    global_batch_tokens: PositiveInt | None = None
    tokens_per_gpu: PositiveInt | None = None
    frameworks: tuple[str, ...]
    why: str

    def covers(self, method: Method, gpus: int, tokens: float) -> bool:
        """Tell if a job is of this task.

        Args:
            method: Method of training. [text]
            gpus: GPUs of the job. [1]
            tokens: Tokens of the run, 0 where the user does not say. [token]

        Returns:
            True where method, GPUs and tokens are those of the task.
        """
        small = self.most_gpus is None or gpus <= self.most_gpus
        short = self.most_tokens is None or tokens <= self.most_tokens
        return method in self.methods and small and short

    def batch(self, gpus: int, seq_len: int) -> int:
        """Sequences of a step that GPUs share evenly.

        The batch is a multiple of the GPUs, or of their half, quarter, ... where that
        is the largest that does not exceed the least batch.

        Args:
            gpus: GPUs of the job. [1]
            seq_len: Tokens of a sequence. [token]

        Returns:
            Global batch. [sequence]
        """
        if self.global_batch_tokens is None:
            least = max(self.global_batch, gpus)
        else:
            tokens = max(self.global_batch_tokens, (self.tokens_per_gpu or 0) * gpus)
            least = max(tokens // seq_len, 1)
        share = gpus
        while share > least and share % 2 == 0:
            share //= 2
        return -(-least // share) * share


class _Tasks(BaseModel):
    """Content of `tasks.yaml`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    tasks: tuple[Task, ...]


@cache
def tasks() -> tuple[Task, ...]:
    """Tasks in order.

    Returns:
        Content of the file, shape (tasks,). [-]
    """
    return read(files("planner.job.one_line") / "tasks.yaml", _Tasks).tasks


def task_of(
    method: Method, gpus: int, tokens: float, purpose: str | None = None
) -> Task:
    """The first task that a job is of.

    Args:
        method: Method of training. [text]
        gpus: GPUs of the job. [1]
        tokens: Tokens of the run, 0 where the user does not say. [token]
        purpose: Name of the task, where it is known. [text]
    """
    if purpose is not None:
        return task_named(purpose)
    return next(task for task in tasks() if task.covers(method, gpus, tokens))


def task_named(name: str) -> Task:
    """A task by its name."""
    return next(task for task in tasks() if task.name == name)
