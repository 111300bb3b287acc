"""Files as people post them, cut down and renamed: read right, or refused by name.

Each is a short form of a public file of its tool; the readings are what the tool does.
"""

from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from planner.cli.app import app

FILES = Path(__file__).resolve().parents[2] / "golden" / "cases"
READ: dict[str, tuple[str, tuple[str, ...], dict[str, Any]]] = {
    "llamafactory-zero3-by-path.yaml": (
        "8x4090",
        (),
        {
            "layout.zero_stage": 3,
            "layout.micro_batch": 1,
            "training.precision": "fp16",
            "training.method": None,
        },
    ),
    "llamafactory-dpo.yaml": (
        "1x4090",
        (),
        {
            "training.reference": "adapters",
            "training.method": "lora",
            "training.lora.targets": ["q_proj", "v_proj"],
            "layout.micro_batch": 8,
        },
    ),
    "trl-dpo.yaml": (
        "8xh100",
        (str(FILES / "trl-dpo.sh"),),
        {"training.reference": "copy", "layout.micro_batch": 16},
    ),
    "axolotl-regex-targets.yaml": (
        "1x4090",
        ("--model=gemma-3-4b",),
        {
            "training.method": "qlora",
            "training.lora.targets": [
                "q_proj",
                "k_proj",
                "v_proj",
                "o_proj",
                "gate_proj",
                "up_proj",
                "down_proj",
            ],
        },
    ),
    "torchtune-phi3-lora.yaml": (
        "1xa100",
        (
            "--model=phi-3-mini",
            "--set=training.seq_len=2048",
        ),
        {
            "training.lora.targets": [
                "qkv_proj",
                "o_proj",
                "down_proj",
                "gate_up_proj",
            ]
        },
    ),
}
"""Fields that a file gives, on GPUs and with the answers that it leaves open."""
REFUSED = {
    "llamafactory-arguments.sh": "use_unsloth",
    "trl-grpo.yaml": "by GRPO, RLOO or online DPO; reinforcement learning is not",
    "trl-dpo.yaml": "the script that starts TRL beside the file",
    "swift-sft.sh": "a file of ms-swift",
    "axolotl-gptoss-lora.yaml": "activation_offloading",
    "axolotl-moe-qlora.yaml": "adamw_torch_4bit",
    "llamafactory-vl-lora.yaml": "Qwen/Qwen2.5-VL-7B-Instruct",
}
"""What is named where a file is not read."""


def brought(tmp_path: Path, file: str, on: str, *more: str) -> tuple[int, str, Path]:
    out = tmp_path / "job.yaml"
    words = ["import", str(FILES / file), f"--on={on}", f"--out={out}", *more]
    done = CliRunner().invoke(app, words)
    return done.exit_code, done.output, out


def field(fields: dict[str, Any], path: str) -> Any:
    value: Any = fields
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value


@pytest.mark.parametrize("file", READ)
def test_a_file_is_read_as_its_tool_reads_it(file: str, tmp_path: Path) -> None:
    on, more, wanted = READ[file]
    code, said, out = brought(tmp_path, file, on, *more)
    assert code == 0, said
    fields = yaml.safe_load(out.read_text())
    assert {path: field(fields, path) for path in wanted} == wanted
    priced = CliRunner().invoke(app, ["predict", str(out)])
    assert priced.exit_code == 0, priced.output


@pytest.mark.parametrize("file", REFUSED)
def test_a_file_is_refused_by_name(file: str, tmp_path: Path) -> None:
    code, said, out = brought(tmp_path, file, "8xh100")
    assert code == 2, said
    assert REFUSED[file] in said
    assert not out.exists()
