"""A job of one line: its model, its assumptions, and what is refused."""

import json
import re
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest
from reworded import reword

from planner.errors import BadInputError
from planner.frameworks import FRAMEWORKS
from planner.hardware.reading.files import SHIPPED
from planner.job.one_line import job_of
from planner.job.one_line.models import model_named
from planner.job.one_line.said import read_tokens
from planner.job.one_line.tasks import task_of, tasks
from planner.models import (
    ModelConfigError,
    preset_hub_ids,
    preset_names,
    read_preset,
    weights_of,
)
from planner.specs.job import JobSpec


def test_adapters_of_a_hub_model_on_one_node() -> None:
    line = job_of("Qwen/Qwen2.5-7B", "8xh100", method="lora", catalog=SHIPPED)
    spec = JobSpec.model_validate(line.fields)
    assert (spec.model, spec.framework) == ("qwen2.5-7b", "accelerate")
    assert spec.training is not None
    assert (spec.training.seq_len, spec.training.global_batch) == (2048, 64)
    assert spec.training.lora.targets == "all-linear"
    assert "sequences of 2,048 tokens" in line.told()
    assert "1 x dgx-h100" in line.told()


def test_what_is_said_is_not_assumed() -> None:
    line = job_of(
        "llama-3-8b",
        "8xh100",
        seq_len=1024,
        global_batch=8,
        framework="megatron",
        catalog=SHIPPED,
    )
    assert line.told() == ("1 x dgx-h100", "bf16", "adamw")
    assert line.told(["cluster.nodes=2"]) == ("bf16", "adamw")


def test_a_run_of_many_gpus_or_tokens_is_pretraining() -> None:
    """Llama 3: 8,192 tokens a sequence, 16M tokens a step on 16,384 GPUs."""
    large = job_of("llama-3.1-405b", "16384xh100", catalog=SHIPPED).fields
    assert large["framework"] == "megatron"
    assert large["training"]["seq_len"] * large["training"]["global_batch"] == 2**24
    assert task_of("full", 8, 1e12).name == "pretraining"
    assert task_of("full", 8, 0).name == "fine-tuning"


def test_a_sequence_is_no_longer_than_the_model() -> None:
    assert (
        job_of("gpt2", "8xh100", catalog=SHIPPED).fields["training"]["seq_len"] == 1024
    )


def test_a_gpu_without_bf16_trains_in_fp16() -> None:
    assert (
        job_of("gpt2", "8xv100", catalog=SHIPPED).fields["training"]["precision"]
        == "fp16"
    )


@pytest.mark.parametrize("gpus", [1, 3, 8, 12, 48, 1000, 1013, 16384])
def test_gpus_share_a_batch_evenly(gpus: int) -> None:
    for task in tasks():
        odd = gpus // (gpus & -gpus)
        batch = task.batch(gpus, task.seq_len)
        assert batch % odd == 0
        assert task.global_batch_tokens or batch % gpus == 0 or gpus > batch


def test_frameworks_of_tasks_are_ours() -> None:
    names = {framework.name for framework in FRAMEWORKS}
    assert {name for task in tasks() for name in task.frameworks} <= names
    assert {m for task in tasks() for m in task.methods} == {"full", "lora", "qlora"}


def test_ids_of_presets_are_read_as_the_presets_say() -> None:
    said = {read_preset(name).hub_id.lower(): name for name in preset_names()}
    assert preset_hub_ids() == {key: name for key, name in said.items() if key}


@pytest.mark.parametrize(
    ("reference", "same"),
    [
        ("Qwen/Qwen2.5-7B-Instruct", "qwen2.5-7b"),
        ("meta-llama/Llama-2-7b-chat-hf", "llama-2-7b"),
        ("google/gemma-3-12b-it", "gemma-3-12b"),
    ],
)
def test_a_tuned_model_has_blocks_of_its_base_and_weights_of_its_own(
    reference: str, same: str
) -> None:
    given = model_named(reference).given
    assert isinstance(given, dict)
    assert given == {"name": reference, **read_preset(same).config}
    assert weights_of(given, reference) == reference


def test_a_model_of_the_hub_is_asked_for_where_the_hub_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "config.json"
    file.write_text(json.dumps(read_preset("qwen3-8b").config))
    fake = SimpleNamespace(
        hf_hub_download=lambda _repo, _file: str(file),
        hf_hub_url="{}/{}".format,
        get_hf_file_metadata=lambda _url, timeout: timeout,
    )
    monkeypatch.setitem(sys.modules, "huggingface_hub", fake)
    fields = job_of("owner/model", "8xh100", catalog=SHIPPED).fields
    assert fields["model"] == "owner/model"


def test_a_cluster_may_be_a_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("{name: mine, node: dgx-h100, nodes: 3, gpus_per_node: 2}")
    fields = job_of("gpt2", str(file), catalog=SHIPPED).fields
    assert fields["cluster"] == str(file)
    assert fields["training"]["global_batch"] == 66


def test_a_file_is_named_by_its_whole_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "config.json"
    file.write_text(json.dumps(read_preset("qwen2.5-7b").config))
    monkeypatch.chdir(tmp_path)
    assert model_named("config.json").given == str(file)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"model": "qwen2.5-8b"}, "--model: .* did you mean qwen2.5-7b"),
        ({"model": "Qwen/Qwen2.5-8B"}, "--model: .* did you mean qwen/qwen2.5-7b"),
        ({"on": "8xh1000"}, "--on: .* nearest: h100.*allowed: COUNTxGPU"),
        ({"network": "25 GbF"}, "--network: .*allowed: fabric and rate"),
        ({"tokens": "many"}, "--tokens: .*15T"),
        ({"seq_len": "eight"}, "--seq-len: .*8192 or 8k"),
        ({"seq_len": "1e12"}, "--seq-len: .*8192 or 8k"),
        ({"seq_len": "0"}, "--seq-len: .*8192 or 8k"),
        ({"global_batch": "4M"}, "--global-batch: .*global_batch_tokens"),
        ({"method": "loras"}, "--method: .*did you mean lora.*allowed: full, lora"),
        ({"framework": "FSDP"}, "--framework: .*allowed: .*torchtitan"),
    ],
)
def test_bad_input_is_refused_with_an_example(
    arguments: dict[str, str], message: str
) -> None:
    given = {"model": "qwen2.5-7b", "on": "8xh100"} | arguments
    with pytest.raises(BadInputError) as refused:
        job_of(**given, catalog=SHIPPED)
    refused.match(message)


def test_tokens_are_read_as_people_write_them() -> None:
    assert read_tokens("15.6T") == 15.6e12
    assert read_tokens("300b") == read_tokens("3e11") == read_tokens("300,000M")
    assert read_tokens("1.5 trillion tokens") == read_tokens("1_500_000M") == 1.5e12
    assert read_tokens("2 million") == 2e6
    assert read_tokens("compute-optimal") == "compute-optimal"


def test_options_are_read_as_people_write_them() -> None:
    """8k tokens of a sequence are 8,192, as in names of contexts."""
    line = job_of(
        "Llama3.1:8B",
        "8xh100",
        method="LoRA",
        seq_len="8k",
        global_batch="1,024",
        framework="TorchTitan",
        catalog=SHIPPED,
    )
    training = line.fields["training"]
    assert (line.fields["model"], line.fields["framework"]) == (
        "llama-3.1-8b",
        "torchtitan",
    )
    assert (training["method"], training["seq_len"]) == ("lora", 8192)
    assert training["global_batch"] == 1024


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("Llama 3.1 8B", "llama-3.1-8b"),
        ("llama3.1:70b", "llama-3.1-70b"),
        ("LLAMA3-8B", "llama-3-8b"),
        ("Qwen 2.5 7B Instruct", "qwen2.5-7b"),
        ("mixtral 8x7b", "mixtral-8x7b"),
        ("DeepSeek_V3", "deepseek-v3"),
    ],
)
def test_a_preset_is_known_in_people_s_spelling(spelling: str, name: str) -> None:
    assert model_named(spelling).given == name


def test_a_spelling_of_two_presets_is_refused() -> None:
    """`opt-1.3b` and `opt-13b` differ by a mark alone; with it each is known."""
    bare = Counter(re.sub(r"[^a-z0-9]", "", name) for name in preset_names())
    (twice,) = [name for name, count in bare.items() if count > 1]
    with pytest.raises(BadInputError, match="did you mean"):
        model_named(twice)
    assert model_named("OPT 1.3B").given == "opt-1.3b"


UNSUPPORTED = {"architectures": ["NobodysModel"], "model_type": "nobodys"}


def test_what_is_nearest_to_a_model_does_not_hang_on_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An unknown name is told the nearest; an unknown architecture is not."""
    file = tmp_path / "config.json"
    file.write_text(json.dumps(UNSUPPORTED))
    reword(monkeypatch, ModelConfigError)
    with pytest.raises(BadInputError) as unknown:
        model_named("qwen2.5-8b")
    assert unknown.value.message.startswith("x; did you mean qwen2.5-7b")
    with pytest.raises(BadInputError) as unsupported:
        model_named(str(file))
    assert unsupported.value.message == "x"
    assert unknown.value.field == unsupported.value.field == "--model"
