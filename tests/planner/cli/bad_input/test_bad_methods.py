"""A method that the model, the GPU or the host cannot do: exit 2, one message."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from planner.cli import app

JOB = """
model: {model}
cluster: {{name: mine, node: {node}, nodes: 1}}
framework: torchtitan
stack: {{name: deepspeed-zero3}}
training: {{seq_len: 2048, global_batch: 8, {training}}}
layout: {{zero_stage: 3, recompute: full, stages: even{layout}}}
"""


def job(
    training: str = "",
    *,
    model: str = "llama-3.1-8b",
    node: str = "dgx-a100-80gb",
    layout: str = "",
) -> str:
    return JOB.format(model=model, node=node, training=training, layout=layout)


CASES = {
    "adapters of a full training": (
        job("lora: {rank: 8}"),
        ["training", "method full has no adapters"],
    ),
    "a misspelt target": (
        job("method: lora, lora: {targets: [q_prj]}"),
        ["training.lora.targets", "'q_prj'", "did you mean q_proj?"],
    ),
    "a target of another model": (
        job("method: lora, lora: {targets: [c_attn]}"),
        ["training.lora.targets", "'c_attn'", "allowed: q_proj, k_proj, v_proj"],
    ),
    "a rank above every width": (
        job("method: lora, lora: {rank: 4097}"),
        ["training.lora.rank", "4097", "allowed: 1 to 4,096"],
    ),
    "a rank above the width of the only target": (
        job("method: lora, lora: {rank: 2000, targets: [k_proj]}"),
        ["training.lora.rank", "2000", "allowed: 1 to 1,024"],
    ),
    "quantisation without its method": (
        job("method: lora, quantization: nf4"),
        ["training", "quantization goes with method qlora"],
    ),
    "experts of a dense model": (
        job("method: qlora, quantized_experts: true"),
        ["training.quantized_experts", "has no routed experts"],
    ),
    "more frozen layers than there are": (
        job("freeze: {layers: 40}"),
        ["training.freeze.layers", "40", "has 32 layers", "allowed: 0 to 32"],
    ),
    "int8 on a GPU without its products": (
        job("precision: fp16, method: qlora, quantization: int8", node="dgx-2"),
        ["training.quantization", "v100-sxm2-32gb cannot train", "allowed: nf4, fp4"],
    ),
    "8-bit moments without a library": (
        job("optimizer: adamw-8bit", node="hls-gaudi2"),
        ["training.optimizer", "gaudi2 has no 8-bit optimizers"],
    ),
    "a host that is too small": (
        job(
            model="llama-3.1-70b",
            node="server-rtx-4090-8",
            layout=", offload: {optimizer: 1.0}",
        ).replace("torchtitan\nstack: {name: deepspeed-zero3}", "deepspeed"),
        ["layout.offload", "host memory", "GiB a node needed", "512 GiB there"],
    ),
    "drives that get nothing": (
        job(layout=", offload: {device: nvme}"),
        ["layout.offload", "device nvme takes optimizer states and parameters"],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_method_that_cannot_be_is_explained(tmp_path: Path, case: str) -> None:
    text, fragments = CASES[case]
    file = tmp_path / "job.yaml"
    file.write_text(text)
    done = CliRunner().invoke(app, ["predict", str(file)])
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith("error: ")
    assert "Traceback" not in done.stderr
    assert [f for f in [str(file), *fragments] if f not in done.stderr] == []


@pytest.mark.parametrize(
    "training",
    [
        "method: lora, lora: {targets: all-linear, dropout: 0.05}",
        "method: qlora, optimizer: paged-adamw-8bit",
        "freeze: {embedding: true, layers: 31}",
    ],
)
def test_a_method_that_can_be_is_priced(tmp_path: Path, training: str) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(job(training))
    done = CliRunner().invoke(app, ["predict", str(file)])
    assert done.exit_code == 0, done.output
    assert "fits" in done.stdout


def test_what_does_not_fit_the_gpu_is_an_answer(tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(job(model="llama-3.1-70b", node="workstation-rtx-4090-1"))
    done = CliRunner().invoke(app, ["predict", str(file)])
    assert done.exit_code == 0, done.output
    assert "does not fit" in done.stdout


@pytest.mark.parametrize("command", ["plan", "memory"])
def test_adapters_in_fp16_are_refused_with_the_reason(command: str) -> None:
    line = ["--model", "llama-3.2-1b", "--on", "1xv100", "--method", "qlora"]
    bad = ["--set", "training.lora.precision=bf16"]
    done = CliRunner().invoke(app, [command, *line, *bad])
    assert (done.exit_code, done.stdout) == (2, "")
    assert "fp16 gradients of fp16 adapters cannot be scaled" in done.stderr
