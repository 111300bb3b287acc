"""What real bash gives the launcher is what is read, or the script is refused."""

import re
from pathlib import Path
from typing import Any

import pytest
from drawn_scripts import by_bash, drawn

from planner.errors import BadInputError
from planner.launch.importing import read_texts
from planner.launch.shell.runs import alternatives

CASES = Path(__file__).parent / "cases"
"""Small scripts of the kinds that people post, with names replaced; the Megatron one
has the values of NVIDIA/Megatron-LM core_v0.16.1, examples/llama."""
CHUNK = 25
SEEDS = [pytest.param(start) for start in range(0, 4 * CHUNK, CHUNK)]
SEEDS += [
    pytest.param(start, marks=pytest.mark.slow)
    for start in range(4 * CHUNK, 40 * CHUNK, CHUNK)
]
MOST_REFUSED = 0.04
"""Share of scripts whose variables are all set that may be refused. [1]"""


def read(script: str, **variables: str) -> list[list[str]]:
    """GPUs and arguments of torchrun, of every way that a script can be meant."""
    found = alternatives({"run.sh": script}, variables)
    return [
        [its.launch.environment.get("CUDA_VISIBLE_DEVICES", ""), *its.launch.words[1:]]
        for its in found
        if its.launch.words[0] == "torchrun"
    ]


@pytest.mark.parametrize("start", SEEDS)
def test_drawn_scripts_give_the_arguments_of_real_bash(
    start: int, tmp_path: Path
) -> None:
    refused = 0
    for seed in range(start, start + CHUNK):
        script = drawn(seed)
        try:
            found = read(script)
        except BadInputError as error:
            assert "run.sh" in str(error), script  # noqa: PT017
            refused += 1
            continue
        assert found == by_bash(script, tmp_path), script
    assert refused <= MOST_REFUSED * CHUNK


RARE_SEEDS = [pytest.param(start) for start in range(0, 8 * CHUNK, CHUNK)]
RARE_SEEDS += [
    pytest.param(start, marks=pytest.mark.slow)
    for start in range(8 * CHUNK, 120 * CHUNK, CHUNK)
]


@pytest.mark.parametrize("start", RARE_SEEDS)
def test_rare_constructs_are_read_as_bash_reads_them_or_refused(
    start: int, tmp_path: Path
) -> None:
    read_ones = 0
    for seed in range(start, start + CHUNK):
        script = drawn(seed, rare=True)
        try:
            found = read(script)
        except BadInputError as error:
            assert "run.sh" in str(error), script  # noqa: PT017
            continue
        if any("$" in word for words in found for word in words):
            continue  # An unknown value, which is asked for.
        runs = by_bash(script, tmp_path)
        assert found == runs or (len(found) > 1 and runs[0] in found), script
        read_ones += 1
    assert read_ones > CHUNK // 4


OPEN = (
    'if [ -n "$DEBUG" ]; then TP=8; fi',
    '[ -n "$DEBUG" ] && TP=8',
    "if [[ $DEBUG == yes ]]; then TP=8; else TP=2; fi",
    "case $DEBUG in yes) TP=8 ;; no) TP=2 ;; esac",
    "TP=${DEBUG:+8}1",
    "if [ $DEBUG ]; then ARGS+=(--more 1); fi",
    "for word in $DEBUG; do TP=8; done",
    'while [ -n "$DEBUG" ]; do DEBUG=; TP=8; done',
    'f() { [ -z "$DEBUG" ] || TP=8; }\nf',
    'TP=$([ -n "$DEBUG" ] && echo 8 || echo 4)',
)


@pytest.mark.parametrize("statement", OPEN)
def test_what_an_open_variable_decides_is_asked_for(
    statement: str, tmp_path: Path
) -> None:
    """Without a value there are several ways or none; with it, the one of bash."""
    script = (
        f"TP=4\nARGS=(--base)\n{statement}\n"
        "torchrun --nproc_per_node 8 --nnodes 4 pretrain_gpt.py --num-layers 8 "
        '--micro-batch-size 1 --tensor-model-parallel-size "$TP" "${ARGS[@]}"\n'
    )
    with pytest.raises(BadInputError) as raised:
        read_texts({"run.sh": script}, "megatron", "run.sh")
    assert "run.sh:" in str(raised.value)
    for value in ("", "yes"):
        found = read(script, DEBUG=value)
        assert found == by_bash(script, tmp_path, DEBUG=value), value


def given(words: list[str]) -> dict[str, Any]:
    """Degrees and format that Megatron's parser takes: the last of each option."""
    its = dict(re.findall(r"--(\S+) (\d+)", " ".join(words)))
    fp8 = any(word.startswith("--fp8-format") for word in words)
    return {
        "tp": int(its.get("tensor-model-parallel-size", 1)),
        "pp": int(its.get("pipeline-model-parallel-size", 1)),
        "micro_batch": int(its["micro-batch-size"]),
        "precision": "fp8" if fp8 else "bf16" if "--bf16" in words else "fp32",
    }


@pytest.mark.parametrize("file", sorted(CASES.iterdir()), ids=lambda file: file.stem)
def test_public_kinds_of_scripts_are_read_as_bash_reads_them(
    file: Path, tmp_path: Path
) -> None:
    script = file.read_text()
    (words,) = by_bash(script, tmp_path)
    variables = {"DEBUG": ""} if "$DEBUG" in script else {}
    reading = read_texts({file.name: script}, "megatron", file.name, variables)
    layout = reading.layout
    found = {name: layout[name] for name in ("tp", "pp", "micro_batch")}
    assert found | {"precision": reading.training["precision"]} == given(words)


def test_a_script_with_an_open_condition_asks_for_its_variable() -> None:
    script = (CASES / "import-how-if-extra.sh").read_text()
    with pytest.raises(BadInputError, match=r"run.sh:6.*--env DEBUG=VALUE"):
        read_texts({"run.sh": script}, "megatron", "run.sh")


def test_megatrons_own_example_is_read_as_bf16() -> None:
    script = (CASES / "import-megatron-example-dtype-bf16.sh").read_text()
    reading = read_texts({"run.sh": script}, "megatron", "run.sh")
    assert reading.training["precision"] == "bf16"
    assert reading.gpus == 8


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("TP=$A\necho torchrun --tp $TP | bash\n", "${A}"),
        ("echo torchrun --tp $A | cat | sh -s\n", "${A}"),
        ("cat > a.yaml <<E && torchrun --tp 2\nx: 1\nE\n", "2"),
    ],
)
def test_a_launch_behind_a_pipe_or_a_mark_is_seen(script: str, words: str) -> None:
    assert read(script) == [["", "--tp", words]]


def test_a_here_document_through_a_pipe_is_refused() -> None:
    with pytest.raises(BadInputError, match="through a pipe, which is not followed"):
        read("cat <<E | bash\ntorchrun --tp 2\nE\n")
