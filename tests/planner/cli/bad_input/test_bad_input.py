"""Every slip ends with exit code 2 and one message that says how to mend it."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from planner.cli import app

GOOD = """
model: llama-3-8b
cluster: dgx-a100-1-node
training: {seq_len: 8192, global_batch: 128}
"""
CASES = {
    "empty file": ("", ["empty"]),
    "a list": ("[1, 2]", ["list", "allowed: a mapping"]),
    "a scalar": ("42", ["single value", "allowed: a mapping"]),
    "a syntax error": ("a: [1\nb: }", ["line 2", "is no YAML"]),
    "a key twice": (
        GOOD + "model: gpt2",
        ["line 5: the key is given twice", "first on line 2", "'model'"],
    ),
    "a key twice in a block": (
        GOOD + "layout: {tp: 8, pp: 1, tp: 4}",
        ["line 5", "'tp'", "allowed: each key once"],
    ),
    "endless nesting": ("model: " + "[" * 100_000, ["line 1", "is no YAML", "inside"]),
    "a date that does not exist": ("a: 2024-99-99", ["is no YAML"]),
    "a misspelt block": (GOOD + "serch: {}", ["serch", "did you mean search"]),
    "a misspelt key": (
        GOOD.replace("seq_len", "seq_length"),
        ["training.seq_length", "8192", "did you mean seq_len or lengths?"],
    ),
    "a misspelt key in a list": (
        GOOD + "layout: {stages: [{layer: 3}]}",
        ["layout.stages.0.layer", "did you mean layers?"],
    ),
    "an answer": (
        "schema: planner/plan@1\nspec: {}",
        ["schema", "not a job", "'planner/plan@1'", "block spec of the answer"],
    ),
    "a switch for a number": (
        GOOD.replace("8192", "true"),
        ["training.seq_len", "given: 'true'", "a whole number"],
    ),
    "a huge number": (
        GOOD.replace("8192", "8" * 40),
        ["training.seq_len", "about 1e39", "64 bits"],
    ),
    "adapters without a method": (
        GOOD.replace("128}", "128, lora: {rank: 16}}"),
        ["training", "without a method; give method: lora or qlora"],
    ),
    "fields of a model that are missing": (
        GOOD.replace("llama-3-8b", "{model_type: llama, hidden_size: 4096}"),
        ["vocab_size are missing; a llama config needs them"],
    ),
    "a missing block": ("model: llama-3-8b", ["missing", "more field"]),
    "a wrong type": (
        GOOD.replace("8192", "long"),
        ["training.seq_len", "'long'", "allowed: a whole number"],
    ),
    "a negative number": (
        GOOD.replace("8192", "-8192"),
        ["training.seq_len", "-8192", "allowed: greater than 0"],
    ),
    "a price without a unit": (
        GOOD + "economics: {price: 2.5}",
        ["economics.price", "2.5", "USD/GPU-h", "for example 2.5 USD/GPU-h"],
    ),
    "a price without a currency": (
        GOOD + "economics: {price: 2.5 /GPU-h}",
        ["economics.price", "no number with currency", "USD/node-h"],
    ),
    "a price in another currency": (
        GOOD + "economics: {price: 2.5 EUR/GPU-h}",
        ["economics.price", "2.5 EUR/GPU-h", "USD/GPU-h"],
    ),
    "a negative rate": (
        GOOD + "economics: {price: -2.5 USD/GPU-h}",
        ["economics.price", "-2.5 USD/GPU-h is negative"],
    ),
    "an hour for nothing": (
        GOOD + "economics: {price: 0 USD/GPU-h}",
        ["economics.price", "more than 0"],
    ),
    "electricity of a rental": (
        GOOD + "economics: {electricity: 0.1 USD/kWh}",
        ["economics", "electricity goes with a purchase", "price: buy"],
    ),
    "electricity per hour": (
        GOOD + "economics: {price: buy, electricity: 0.1 USD/kW}",
        ["economics.electricity", "did you mean USD/kWh?"],
    ),
    "a building that makes power": (
        GOOD + "economics: {pue: 0.9}",
        ["economics.pue", "greater than or equal to 1"],
    ),
    "an objective that the search has not": (
        GOOD + "objective: speed",
        ["objective", "throughput", "cost", "energy", "memory"],
    ),
    "one phase": (
        GOOD + "phases: [{name: all, tokens: 1e12}]",
        ["phases", "two or more"],
    ),
    "phases of a step that does not split": (
        GOOD + "phases: [{name: a, tokens: 1e9}, {name: b, tokens: 1e9, seq_len: 3}]",
        ["phases", "phase b", "give its global_batch"],
    ),
    "tokens beside phases": (
        GOOD.replace("128}", "128, tokens: 1e12}")
        + "phases: [{name: a, tokens: 1e9}, {name: b, tokens: 1e9}]",
        ["phases", "take tokens and compute out of training"],
    ),
    "an unknown word": (
        GOOD.replace("128}", "128, precision: bf61}"),
        ["training.precision", "'bf61'", "did you mean bf16?", "'fp8'"],
    ),
    "two batches": (
        GOOD.replace("128}", "128, global_batch_tokens: 8192}"),
        ["training", "exactly one of global_batch"],
    ),
    "an empty range": (
        GOOD + "search: {tp: {min: 8, max: 2}}",
        ["search.tp", "min 8 exceeds max 2"],
    ),
    "a word for a limit": (
        GOOD + "search: {tp: many}",
        ["search.tp", "'many'", "a whole number or a list or a block"],
    ),
    "an unknown model": (
        GOOD.replace("llama-3-8b", "lama-3-8b"),
        ["model", "'lama-3-8b'", "nearest: llama-3-8b"],
    ),
    "an unknown cluster": (
        GOOD.replace("dgx-a100-1-node", "dgx-a100-one-node"),
        ["cluster", "'dgx-a100-one-node'", "did you mean dgx-a100-1-node"],
    ),
    "an inline cluster without nodes": (
        GOOD.replace("dgx-a100-1-node", "{node: dgx-h100}"),
        ["cluster.nodes", "missing"],
    ),
    "an unknown node": (
        GOOD.replace("dgx-a100-1-node", "{node: dgx-h10, nodes: 1}"),
        ["cluster", "'dgx-h10'", "nearest: dgx-h100"],
    ),
    "an inline model without a family": (
        GOOD.replace("llama-3-8b", "{hidden_size: 64}"),
        ["model", "supported: gpt2, llama"],
    ),
    "an unknown framework": (
        GOOD + "framework: megatrn",
        ["framework", "'megatrn'", "did you mean megatron?"],
    ),
    "a misspelt stack key": (
        GOOD + "stack: {memory_trafic: 1}",
        ["stack.memory_trafic", "memory_traffic"],
    ),
    "a stack value out of range": (
        GOOD + "stack: {clock: 3}",
        ["stack.clock", "3", "less than or equal to 1.5"],
    ),
    "a misspelt recipe key": (
        GOOD + "stack: {recipe: {logit_bytes: 6}}",
        ["stack.recipe.logit_bytes", "did you mean logits_bytes"],
    ),
    "a kernel that the GPU does not run": (
        GOOD + "stack: {attention: flash_attention_4}",
        ["stack.attention", "'fa4'", "does not run on a100", "fa2"],
    ),
    "a kernel that does not exist": (
        GOOD + "stack: {attention: flash_attention_9}",
        ["stack.attention", "did you mean flash_attention_", "cudnn9"],
    ),
    "an eager variant that does not exist": (
        GOOD + "stack: {compile: false}",
        ["stack.compile", "no eager stack"],
    ),
    "fp8 without fp8 units": (
        GOOD.replace("128}", "128, precision: fp8}"),
        ["training.precision", "'fp8'", "allowed: bf16, fp16"],
    ),
    "a format that is not priced": (
        GOOD.replace("128}", "128, precision: fp32}"),
        ["training.precision", "is not priced yet", "allowed: bf16"],
    ),
    "a method that is not known": (
        GOOD.replace("128}", "128, method: lorra}"),
        ["training.method", "lora"],
    ),
    "an optimizer that is not known": (
        GOOD.replace("128}", "128, optimizer: moun}"),
        ["training.optimizer", "muon"],
    ),
    "an adapter on no linear that there is": (
        GOOD.replace("128}", "128, method: lora, lora: {targets: [query]}}"),
        ["training.lora.targets", "query"],
    ),
    "an offload that does not exist": (
        GOOD + "search: {offload: [none, optimiser]}",
        ["search.offload", "'optimiser'", "did you mean optimizer?"],
    ),
    "an offload twice": (
        GOOD + "search: {offload: optimizer+optimizer}",
        ["search.offload", "names a category twice"],
    ),
    "a number for an offload": (
        GOOD + "search: {offload: 3}",
        ["search.offload: not", "3", "true or false or text or a list"],
    ),
    "an empty list of methods": (
        GOOD + "search: {method: []}",
        ["search.method", "leaves nothing to choose from"],
    ),
    "a method to choose that is not known": (
        GOOD + "search: {method: [full, qlorra]}",
        ["search.method", "'qlorra'", "did you mean qlora?"],
    ),
    "an optimizer to choose that is not known": (
        GOOD + "search: {optimizer: adamw8bit}",
        ["search.optimizer", "'adamw8bit'", "adamw-8bit"],
    ),
}


def refused(*arguments: str) -> str:
    """What stderr says of a command that exits with 2 and prints nothing else."""
    done = CliRunner().invoke(app, list(arguments))
    assert done.exit_code == 2, done.output
    assert done.stdout == ""
    assert done.stderr.startswith("error: ")
    assert "Traceback" not in done.stderr
    assert "bug" not in done.stderr
    return done.stderr


@pytest.mark.parametrize("command", ["plan", "predict"])
@pytest.mark.parametrize("case", CASES)
def test_a_bad_spec_is_explained(tmp_path: Path, command: str, case: str) -> None:
    text, fragments = CASES[case]
    file = tmp_path / "job.yaml"
    file.write_text(text)
    message = refused(command, str(file))
    assert [f for f in [str(file), *fragments] if f not in message] == []


def test_an_offload_that_the_framework_cannot_do_is_explained() -> None:
    block = ["--set", "search.offload=[none, parameters]"]
    message = refused("plan", "llama-3-8b-8-a100", *block)
    assert "search.offload" in message
    assert "'parameters'" in message
    assert "allowed: activations, none, optimizer, optimizer+activations" in message


def test_a_missing_file_is_explained_with_what_is_near(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(GOOD)
    message = refused("plan", str(tmp_path / "jib.yaml"))
    assert "no such file" in message
    assert str(tmp_path / "job.yaml") in message


def test_the_name_of_a_job_is_suggested() -> None:
    assert "did you mean llama-3-8b-8-a100" in refused("plan", "llama-3-8b-8-a10")


def test_a_folder_and_a_binary_are_no_specs(tmp_path: Path) -> None:
    assert "cannot be read" in refused("plan", str(tmp_path))
    (tmp_path / "job.yaml").write_bytes(b"\xff\xfe\x00")
    assert "UTF-8" in refused("plan", str(tmp_path / "job.yaml"))


@pytest.mark.parametrize(
    ("assignment", "fragments"),
    [
        ("training.seq_len", ["--set", "a.b.c=value"]),
        ("training.seq_len=[", ["--set training.seq_len", "is no YAML"]),
        ("training.seq_len=-1", ["--set", "training.seq_len", "greater than 0"]),
        ("trainin.seq_len=1", ["trainin", "did you mean training?"]),
        ("model.hidden_size=1", ["--set", "model", "'llama-3-8b'"]),
        ("cluster.nodse=2", ["cluster.nodse", "did you mean node"]),
        ("cluster.nodes=0", ["cluster.nodes", "greater than 0"]),
    ],
)
def test_a_bad_assignment_is_explained(
    tmp_path: Path, assignment: str, fragments: list[str]
) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(GOOD)
    message = refused("plan", str(file), "--set", assignment)
    assert [f for f in fragments if f not in message] == []


@pytest.mark.parametrize(
    ("layout", "fragments"),
    [
        ("tpp=8", ["tpp", "did you mean tp"]),
        ("tp", ["key=value", "'tp'"]),
        ("tp=2,tp=4", ["given twice", "'tp=4'"]),
        ("tp=0", ["tp", "0", "greater than or equal to 1"]),
        ("schedule=interleave", ["schedule", "did you mean interleaved?"]),
        ("", ["layout", "no layout to price", "--layout"]),
    ],
)
def test_a_bad_layout_is_explained(layout: str, fragments: list[str]) -> None:
    message = refused("predict", "llama-3-8b-8-a100", "--layout", layout)
    assert [f for f in fragments if f not in message] == []


def test_a_layout_is_priced_under_one_framework() -> None:
    message = refused(
        "predict", "llama-3-8b-8-a100", "--layout=tp=8", "--set", "framework=any"
    )
    assert "allowed: megatron, torchtitan" in message


def test_a_broken_cluster_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("node: dgx-h100\nnods: 2\n")
    file = tmp_path / "job.yaml"
    file.write_text(GOOD.replace("dgx-a100-1-node", "mine.yaml"))
    message = refused("plan", str(file))
    assert str(tmp_path / "mine.yaml") in message
    assert "cluster.nods" in message
    assert "did you mean nodes" in message


def test_an_output_folder_that_holds_something_is_refused(tmp_path: Path) -> None:
    (tmp_path / "old").write_text("")
    message = refused("plan", "llama-3-8b-8-a100", "--out", str(tmp_path))
    assert "is not empty" in message
    message = refused("plan", "llama-3-8b-8-a100", "--out", str(tmp_path / "old"))
    assert "is no folder" in message


def test_an_unknown_option_is_a_bad_input_too() -> None:
    done = CliRunner().invoke(app, ["plan", "llama-3-8b-8-a100", "--tpo", "3"])
    assert done.exit_code == 2
    assert "--tpo" in done.stderr


TWICE = {
    "a job": (["predict", "job.yaml"], {"job.yaml": GOOD + "model: gpt2\n"}),
    "a cluster": (
        ["predict", "job.yaml"],
        {
            "job.yaml": GOOD.replace("dgx-a100-1-node", "mine.yaml"),
            "mine.yaml": "node: dgx-h100\nnodes: 1\nnode: dgx-a100-80gb\n",
        },
    ),
    "a calibration": (
        ["predict", "job.yaml", "--layout", "tp=8", "--calibration", "mine.yaml"],
        {"job.yaml": GOOD, "mine.yaml": "gpus: {}\nstacks: []\ngpus: {}\n"},
    ),
    "a purchase": (
        ["compare", "mine.yaml"],
        {"mine.yaml": "budget: 1 MUSD\ncandidates: []\nbudget: 2 MUSD\n"},
    ),
    "hardware": (
        ["catalog", "gpus", "--hardware", "hw"],
        {"hw/gpus/mine.yaml": "name: mine\nname: yours\n"},
    ),
    "rows": (
        ["validate", "mine.yaml"],
        {"mine.yaml": "- id: a\n  job: {seq_len: 1}\n  id: b\n"},
    ),
    "launch files": (
        ["import", "mine.yaml", "--out", "out.yaml"],
        {"mine.yaml": "bf16: true\ntp: 1\nbf16: false\n"},
    ),
}


@pytest.mark.parametrize("what", TWICE)
def test_a_key_twice_in_any_yaml_is_told_with_file_and_line(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words, files = TWICE[what]
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, words)
    said = " ".join(done.stderr.split())
    assert done.exit_code == 2, said
    assert "is given twice" in said
    assert "mine.yaml" in said or what == "a job"
    assert "line" in said
