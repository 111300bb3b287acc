"""Files of tools that are not read are named as theirs, and taken for no other tool."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from planner.cli.app import app
from planner.errors import BadInputError
from planner.launch.importing import read_texts
from planner.launch.other_tools.recognise import refuse_others, tools

ROOT = Path(__file__).resolve().parents[2] / "golden"
OTHERS = {
    "verl": "python3 -m verl.trainer.main_ppo \\\n  data.train_batch_size=1024\n",
    "OpenRLHF": "deepspeed --module openrlhf.cli.train_dpo --micro_train_batch_size 2",
    "slime": "ray job submit -- python3 train.py --tensor-model-parallel-size 2 "
    "--micro-batch-size 1 --rollout-num-gpus 8",
    "MaxText": "python3 -m MaxText.train src/MaxText/configs/base.yml ici_fsdp_"
    "parallelism=8",
    "Unsloth": "from unsloth import FastLanguageModel\n",
    "LLM Foundry (Composer)": "max_seq_len: 2048\ndevice_train_microbatch_size: 8\n",
    "GPT-NeoX": "pipe_parallel_size: 1\nmodel_parallel_size: 2\n"
    "train_micro_batch_size_per_gpu: 4\nzero_optimization: {stage: 1}\n",
    "nanotron": "parallelism:\n  dp: 2\n  pp_engine: 1f1b\n",
    "Megatron-DeepSpeed": "deepspeed pretrain_gpt.py --tensor-model-parallel-size 2 "
    "--micro-batch-size 1 --zero-stage 1 --deepspeed",
    "ms-swift": "NPROC_PER_NODE=2 swift sft --train_type lora --deepspeed zero2 "
    "--per_device_train_batch_size 1\n",
    "NeMo 1": "python examples/nlp/language_modeling/megatron_gpt_pretraining.py "
    "model.tensor_model_parallel_size=2 model.micro_batch_size=1\n",
    "NeMo AutoModel": "model:\n  _target_: nemo_automodel.NeMoAutoModelForCausalLM\n",
}


PICTURES = (
    "base_model: Qwen/Qwen2-VL-7B-Instruct\nsequence_len: 2048\n",
    "model_name_or_path: llava-hf/llava-1.5-7b-hf\nstage: sft\n",
    "model_name_or_path: meta-llama/Llama-3.2-11B-Vision-Instruct\n",
    "accelerate launch sft.py --model_name_or_path=/data/InternVL2-8B --bf16\n",
    "MODEL=Qwen/Qwen2.5-VL-7B\ntrl sft --model_name_or_path $MODEL --bf16\n",
    "accelerate launch examples/scripts/sft_vlm.py --bf16 --dataset_name x\n",
    "model = AutoModelForImageTextToText.from_pretrained(name)\n",
)
TEXTS = (
    "base_model: Qwen/Qwen2-7B\ndatasets: [{path: liuhaotian/LLaVA-Instruct}]\n",
    "trl sft --model_name_or_path /data/vl-team/llama --bf16\n",
    "base_model: google/gemma-3-12b-it\n",
    "model_name: provision-7b\n",
)


@pytest.mark.parametrize("text", PICTURES)
def test_a_model_of_pictures_is_refused_for_every_trainer(text: str) -> None:
    file = "a.sh" if "--" in text else "a.yaml"
    with pytest.raises(BadInputError, match="of a vision-language model"):
        read_texts({file: text}, None, file)


@pytest.mark.parametrize("text", TEXTS)
def test_a_model_of_texts_is_none_of_pictures(text: str) -> None:
    refuse_others({"a": text})


@pytest.mark.parametrize("title", OTHERS)
def test_a_tool_is_named(title: str) -> None:
    with pytest.raises(BadInputError, match="this is a file of") as refused:
        read_texts({"a.sh": OTHERS[title]}, None, "a.sh")
    assert f"a file of {title};" in str(refused.value)


def test_a_comment_names_no_tool() -> None:
    refuse_others({"run.sh": "# unlike verl.trainer.main_ppo\ntorchrun train.py\n"})


def test_no_file_of_ours_is_taken_for_another_tool() -> None:
    for folder in (*ROOT.glob("emit/*/*"), *ROOT.glob("import/*/*")):
        files = {f.name: f.read_text() for f in folder.iterdir() if f.is_file()}
        refuse_others({n: t for n, t in files.items() if n != "README.md"})


def test_every_tool_has_a_mark_of_its_own() -> None:
    titles = [tool.title for tool in tools()]
    assert len(titles) == len(set(titles))
    marks = [mark for tool in tools() for mark in tool.marks]
    assert len(marks) == len(set(marks))


def test_import_takes_gpus_as_the_other_commands_do(tmp_path: Path) -> None:
    file = next(
        (ROOT / "import" / "axolotl" / "llama-3-8b-lora-rtx-4090").glob("*.yml")
    )
    words = ["import", str(file), "--model=llama-3-8b", f"--out={tmp_path}/job.yaml"]
    done = CliRunner().invoke(app, [*words, "--on", "8x3090"])
    assert done.exit_code == 0, done.output
    assert "rtx-3090" in (tmp_path / "job.yaml").read_text()
    twice = CliRunner().invoke(
        app, [*words, "--on", "8x3090", "--cluster", "rtx-4090-1"]
    )
    assert twice.exit_code == 2
    assert "--cluster and --on" in twice.output
