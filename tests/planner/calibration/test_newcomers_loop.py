"""Config, plan, launch files, log, calibration, prediction: each takes the last's word.

A log is written as each framework writes it, of a run with a known step; after the
loop the prediction is that step.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from planner.cli.app import app

CONFIG = """{
  "architectures": ["LlamaForCausalLM"], "model_type": "llama",
  "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16,
  "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 64,
  "hidden_act": "silu", "vocab_size": 128256, "max_position_embeddings": 131072,
  "rms_norm_eps": 0.00001, "rope_theta": 500000.0, "tie_word_embeddings": true,
  "attention_bias": false, "mlp_bias": false, "torch_dtype": "bfloat16"
}
"""
GPUS, BATCH, TOKENS, STEPS = 8, 64, 4096, 6
SLOWER = 1.23
"""The run over what was predicted of it. [1]"""


def megatron(step_s: float) -> str:
    ms = step_s * 1e3
    return (
        "".join(
            f" [2026-01-02 03:04:05] iteration {n:8d}/ 100 | consumed samples: 64 "
            f"| elapsed time per iteration (ms): {ms * (3 if n == 1 else 1):.3f} | "
            "learning rate: 1.0E-04 | global batch size: 64 | lm loss: 9.1E+00 |\n"
            for n in range(1, STEPS)
        )
        + "[Rank 0] (after 2 iterations) memory (MB) | max allocated: 30000.5 |\n"
    )


def torchtitan(step_s: float) -> str:
    speed = BATCH * TOKENS / (GPUS * step_s)
    return "".join(
        f"[titan] \x1b[31mstep: {n:2d}  \x1b[32mloss:  8.10  grad_norm: 1.2  "
        f"\x1b[33mmemory: 40.28GiB(50.9%)  \x1b[34mtps: "
        f"{speed / (9 if n == 1 else 1):,.1f}"
        "  tflops: 200.1  mfu: 40.1%\x1b[39m\n"
        for n in range(1, STEPS)
    )


def trainer(step_s: float) -> str:
    """The sum at the end of transformers' Trainer."""
    samples = BATCH / step_s
    return (
        "{'loss': 2.1, 'grad_norm': 1.5, 'learning_rate': 5e-05, 'epoch': 0.1}\n"
        f"{{'train_runtime': '{step_s * STEPS:.2f}', 'train_samples_per_second': "
        f"'{samples:.3f}', 'train_steps_per_second': '{1 / step_s:.3f}', "
        "'train_loss': '2.1', 'epoch': '1.0'}\n"
    )


def by_step(step_s: float) -> str:
    """The lines of the emitted train.py, one a step."""
    return "".join(
        f"{{'loss': '2.1', 'step_time': '{step_s * (4 if n == 0 else 1):.4f}', "
        "'max_allocated (GiB)': '31.5'}\n"
        for n in range(STEPS)
    )


def deepspeed(step_s: float) -> str:
    samples = BATCH / step_s
    return "".join(
        f"[2026-01-02 03:04:05,678] [INFO] [timer.py:264:stop] epoch=0/micro_step={n}/"
        f"global_step={n}, RunningAvgSamplesPerSec={samples}, CurrSamplesPerSec="
        f"{samples}, MemAllocated=3.5GB, MaxMemAllocated=31.25GB\n"
        for n in range(1, STEPS)
    )


LOOPS: list[tuple[str, Callable[[float], str]]] = [
    ("megatron", megatron),
    ("torchtitan", torchtitan),
    ("accelerate", trainer),
    ("accelerate", by_step),
    ("deepspeed", deepspeed),
]
LONG = [each for each in LOOPS if each[1] not in (megatron, by_step)]
"""Logs that `test_logs.py` reads too, whose whole loop is for the gate."""


def run(*words: str) -> str:
    done = CliRunner().invoke(app, list(words))
    assert done.exit_code == 0, done.stderr
    return done.stdout


def predicted(job: Path, layout: dict[str, Any], *words: str) -> float:
    """Step of the job under a layout. [s]."""
    fields = yaml.safe_load(job.read_text()) | {"layout": layout}
    given = job.with_name("with-layout.yaml")
    given.write_text(yaml.safe_dump(fields))
    answer = json.loads(run("predict", str(given), *words, "--json", "-"))
    step: float = answer["estimate"]["step_time_s"]["value"]
    return step


@pytest.mark.parametrize(
    ("framework", "log"),
    [pytest.param(*each, marks=[pytest.mark.slow] * (each in LONG)) for each in LOOPS],
    ids=lambda one: getattr(one, "__name__", one),
)
def test_the_loop_ends_at_the_step_of_the_log(
    framework: str, log: Callable[[float], str], tmp_path: Path
) -> None:
    (tmp_path / "config.json").write_text(CONFIG)
    job = tmp_path / "job.yaml"
    job.write_text(
        yaml.safe_dump(
            {
                "model": "config.json",
                "cluster": "dgx-a100-1-node",
                "training": {"seq_len": TOKENS, "global_batch": BATCH},
                "framework": framework,
                "search": {"tp": 1, "pp": 1, "cp": 1, "micro_batch": [1, 2]},
            }
        )
    )
    plan, folder = tmp_path / "result.json", tmp_path / "run"
    run("plan", str(job), "--json", str(plan))
    run("emit", str(plan), "--target", framework, "--out", str(folder))
    first = json.loads((folder / "plan.json").read_text())
    said = first["estimate"]["step_time_s"]["value"]
    layout = {k: v for k, v in first["layout"].items() if v is not None}
    assert predicted(job, layout) == pytest.approx(said)
    truth = SLOWER * said
    (folder / "run.log").write_text(log(truth))
    answer = json.loads(
        run("validate", "--log", str(folder / "run.log"), "--json", "-")
    )
    (row,) = answer["rows"]
    assert row["measured"]["step_time_s"] == pytest.approx(truth, rel=0.003)
    assert row["predicted"]["step_time_s"] == pytest.approx(said)
    mine = tmp_path / "mine.yaml"
    run("calibrate", str(folder / "run.row.yaml"), "--out", str(mine))
    own = ("--calibration", str(mine))
    assert predicted(job, layout, *own) == pytest.approx(truth, rel=0.01)
    again = json.loads(
        run("validate", str(folder / "run.row.yaml"), *own, "--json", "-")
    )
    (row,) = again["rows"]
    assert row["error"]["step_time"] == pytest.approx(0, abs=0.005)
    beside = run("validate", "--log", str(folder / "run.log"), *own, "--json", "-")
    (row,) = json.loads(beside)["rows"]
    assert row["predicted"]["step_time_s"] == pytest.approx(truth, rel=0.01)
