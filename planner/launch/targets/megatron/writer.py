"""Writes a plan as launch files of Megatron-LM's pretrain_gpt.py."""

from collections.abc import Iterator, Sequence
from itertools import chain

from planner.frameworks.megatron.launch.known import VERSION
from planner.hardware.reading.escape import shell_words, yaml_text
from planner.launch.brief import BY_TORCHRUN, Brief, LaunchFile, Program, Variable
from planner.launch.sizes import rounded
from planner.launch.targets.megatron.arguments import Group, arguments, words
from planner.launch.targets.megatron.model import rows_of
from planner.launch.targets.megatron.rotation import base_of
from planner.launch.text.rates import RATE, learning_rate

TO_HOPPER = {"volta", "turing", "ampere", "ada", "hopper"}
"""Architectures on which Megatron asks for one hardware queue. [text]"""
SCRIPT, YAML_FILE = "arguments.sh", "arguments.yaml"


def write(brief: Brief) -> Program:
    """Write the program: pretrain_gpt.py with every argument of the plan.

    Returns:
        The arguments as a bash array and as YAML, and the words that start them. [-]
    """
    groups = arguments(brief)
    return Program(
        files=(
            LaunchFile(SCRIPT, _script(groups, brief)),
            LaunchFile(YAML_FILE, _yaml(groups)),
        ),
        starter=BY_TORCHRUN,
        words=(
            '"$MEGATRON_PATH/pretrain_gpt.py"',
            '"${ARGUMENTS[@]}" "${DATA[@]}"',
            f'--train-iters "$TRAIN_STEPS" --lr {RATE}',
        ),
        check=(
            "--train-iters 20",
            "--exit-interval 20",
            "--log-interval 1",
            "--eval-iters 0",
            "--save-interval 1000000",
        ),
        versions=_VERSIONS,
        environment=tuple(core_environment(brief)),
        blanks=_blanks(brief),
        first=_first(brief),
        sources=(SCRIPT,),
    )


_VERSIONS = (
    f"Megatron-LM core_v{VERSION} (git tag; its pretrain_gpt.py is not on PyPI)",
    f"megatron-core=={VERSION}",
    "transformer-engine[pytorch]>=2.9",
)
_FIRST = (
    "Megatron prints every argument at start: compare `data_parallel_size`, "
    "`tensor_model_parallel_size` and `pipeline_model_parallel_size` with the plan.",
    "`elapsed time per iteration (ms)` of steps 10 to 20 is the step time; the first "
    "steps compile and connect.",
)


def _first(brief: Brief) -> tuple[str, ...]:
    """Outputs to look at first, and the rotary base where the model gives none."""
    rotates = not brief.architecture.learned_positions
    if base_of(brief) is not None or not rotates:
        return _FIRST
    return (
        *_FIRST,
        "The model's description gives no `rope_theta`: compare `--rotary-base` with "
        "the model's own before you load its weights.",
    )


def _blanks(brief: Brief) -> tuple[Variable, ...]:
    return (
        Variable("MEGATRON_PATH", "./Megatron-LM", "A checkout of Megatron-LM."),
        Variable(
            "DATA_PATH", "", "Prefix of your tokenised data; empty trains on mock data."
        ),
        Variable("TOKENIZER", "", "Hugging Face tokenizer, with DATA_PATH."),
        learning_rate(brief, anew=True),
        Variable("CHECKPOINTS", "", "Folder for checkpoints; empty writes none."),
        Variable("TRAIN_STEPS", str(brief.training_steps), "Optimizer steps."),
    )


def core_environment(brief: Brief) -> Iterator[Variable]:
    """Variables that Megatron-Core asks for."""
    layout = brief.layout
    archs = {its.cluster.gpu.arch for its in brief.placement}
    if archs & TO_HOPPER and layout.tp * layout.cp > 1:
        yield Variable(
            "CUDA_DEVICE_MAX_CONNECTIONS",
            "1",
            "one hardware queue keeps tensor- and context-parallel exchanges ahead of "
            "the GEMMs that wait for them; Megatron refuses to start without it",
        )
    if layout.offload.optimizer:
        yield Variable("CUDA_MODULE_LOADING", "LAZY", "leaves room for pinned buffers")


_DATA = """
if [ -n "$DATA_PATH" ]; then
  # The model's own rows of the embedding, more than its tokenizer has tokens.
  DATA=(--data-path "$DATA_PATH" --tokenizer-type HuggingFaceTokenizer
        --tokenizer-model "$TOKENIZER" --split "99,1,0"
        --padded-vocab-size {rows})
else
  DATA=(--mock-data --tokenizer-type NullTokenizer --vocab-size {vocabulary})
fi
if [ -n "$CHECKPOINTS" ]; then
  DATA+=(--save "$CHECKPOINTS" --load "$CHECKPOINTS")
fi
"""


def _script(groups: Sequence[Group], brief: Brief) -> str:
    lines = [
        "# Arguments of Megatron-LM's pretrain_gpt.py; launch.sh reads this file.",
        "# shellcheck shell=bash disable=SC2034  # launch.sh uses the arrays",
        "ARGUMENTS=(",
    ]
    for title, given in groups:
        lines += [f"  # {title}"] if given else []
        lines += ["  " + shell_words(words(argument)) for argument in given]
    # NullTokenizer adds a token of its own to those that it is given.
    vocab = brief.architecture.vocab
    rows = rounded(vocab, rows_of(brief) * brief.layout.tp)
    data = _DATA.replace("{vocabulary}", str(vocab - 1)).replace("{rows}", str(rows))
    return "\n".join([*lines, ")"]) + "\n" + data


def _yaml(groups: Sequence[Group]) -> str:
    every = chain.from_iterable(given for _, given in groups)
    head = (
        "The same arguments as YAML, the form of Megatron-LM's own "
        "model_config.yaml files."
    )
    return yaml_text({"MODEL_ARGS": dict(every)}, [head])
