"""Commands of trainers: what they start is read as the tool starts it, or refused."""

import pytest

from planner.errors import BadInputError
from planner.launch.importing import read_texts
from planner.launch.importing.fleet import UserOverrides, cluster_of, fleet_told
from planner.launch.importing.spec import import_spec

WORDS = (
    "--model_name_or_path Qwen/Qwen2.5-7B-Instruct --per_device_train_batch_size 2 "
    "--bf16 --max_length 2048"
)
TRL = """dataset_name: trl-lib/Capybara
per_device_train_batch_size: 2
use_peft: true
lora_target_modules: all-linear
dtype: bfloat16
"""
AXOLOTL = "base_model: Qwen/Qwen2.5-7B\nsequence_len: 2048\nmicro_batch_size: 2\n"
TUNE = "model: {_component_: torchtune.models.llama3_1.llama3_1_8b}\nbatch_size: 2\n"
TITAN = '[model]\nname = "llama3"\nflavor = "8B"\n[training]\nseq_len = 2048\n'


@pytest.mark.parametrize(
    ("command", "file", "text"),
    [
        (f"trl sft --config o.yaml {WORDS}", "", ""),
        (f"accelerate launch -m trl.scripts.sft --config o.yaml {WORDS}", "", ""),
        ("trl sft --config=c/o.yaml", "t.yaml", TRL),
        ("accelerate launch --config_file o.yaml s.py --config t.yaml", "t.yaml", TRL),
        ("axolotl train o.yaml", "a.yml", AXOLOTL),
        ("tune run full_finetune_distributed --config o.yaml", "t.yaml", TUNE),
        ("torchrun -m torchtitan.train --job.config_file o.yaml", "t.toml", TITAN),
        ("llamafactory-cli train o.yaml", "", ""),
    ],
)
def test_a_file_of_settings_that_is_not_given_is_told(
    command: str, file: str, text: str
) -> None:
    files = {"go.sh": f"{command}\n"} | ({file: text} if file else {})
    wants = [each.wants for each in read_texts(files, None, "the files").unknown]
    assert [name.rpartition("/")[2] for name in wants if name] == ["o.yaml"]


FACTORY = "llamafactory-cli train --stage sft --cutoff_len 2048 --bf16 true"


@pytest.mark.parametrize(
    ("before", "on", "gpus"),
    [
        ("", "16xh100", 8),
        ("FORCE_TORCHRUN=1", "16xh100", 8),
        ("FORCE_TORCHRUN=1 NNODES=2", "16xh100", 16),
        ("FORCE_TORCHRUN=1 NNODES=2", "8xh100", None),
        ("FORCE_TORCHRUN=1 NNODES=2 NPROC_PER_NODE=4", "16xh100", 8),
    ],
)
def test_llama_factory_starts_on_every_gpu_of_as_many_nodes_as_it_is_told(
    before: str, on: str, gpus: int | None
) -> None:
    reading = read_texts({"go.sh": f"{before} {FACTORY}\n"}, None, "the files")
    if gpus is None:
        with pytest.raises(BadInputError, match="16 ranks on 2 nodes"):
            fleet_told(reading, UserOverrides(on=on))
        return
    its = fleet_told(reading, UserOverrides(on=on))
    assert its is not None
    assert cluster_of(its if isinstance(its, str) else dict(its)).gpus == gpus


@pytest.mark.parametrize(("words", "told"), [("", ["USE_RAY"]), ("8", [])])
def test_ranks_of_ray_are_its_workers(words: str, told: list[str]) -> None:
    more = f" --ray_num_workers {words}" if words else ""
    files = {"go.sh": f"USE_RAY=1 {FACTORY}{more}\n"}
    found = read_texts(files, None, "the files")
    assert [each.name for each in found.unknown] == told


STARTS = [
    "torchrun --nproc_per_node 8 train.py",
    "accelerate launch --num_processes 8 train.py",
    "accelerate launch --multi_gpu train.py",
    "accelerate launch --num_processes 8 --use_fsdp train.py",
    "trl sft",
]


@pytest.mark.parametrize("start", STARTS)
def test_weights_that_the_command_names_are_the_model(start: str) -> None:
    found = read_texts({"go.sh": f"{start} {WORDS}\n"}, None, "the files")
    assert found.unknown == ()
    model = import_spec(found, UserOverrides(on="8xh100"), ())["model"]
    assert isinstance(model, dict)
    assert model["name"] == "Qwen/Qwen2.5-7B-Instruct"
    same = UserOverrides(on="8xh100", model="qwen2.5-7b")
    assert import_spec(found, same, ())["model"] == "qwen2.5-7b"
    other = UserOverrides(on="8xh100", model="llama-3.1-8b")
    with pytest.raises(BadInputError, match="another model than Qwen"):
        import_spec(found, other, ())


@pytest.mark.parametrize(
    ("command", "text", "says"),
    [
        ("llamafactory-cli export a.yml", "stage: sft\ncutoff_len: 9\n", "trains noth"),
        ("axolotl preprocess a.yml", AXOLOTL, "trains nothing"),
        (
            "tune run full_finetune_distributed --config a.yml",
            TUNE.replace("llama3_1_8b", "lora_llama3_1_8b"),
            "has adapters",
        ),
    ],
)
def test_what_the_program_would_not_train_is_refused(
    command: str, text: str, says: str
) -> None:
    with pytest.raises(BadInputError, match=says):
        read_texts({"go.sh": f"{command}\n", "a.yml": text}, None, "the files")


@pytest.mark.parametrize("start", [*STARTS[:3], "deepspeed --num_gpus 8 my/sft.py"])
def test_options_of_trls_model_mark_a_script_as_trls(start: str) -> None:
    lora = f"{WORDS} --use_peft --lora_r 16 --dtype bfloat16"
    found = read_texts({"go.sh": f"{start} {lora}\n"}, None, "the files")
    same = read_texts({"go.sh": f"trl sft {lora}\n"}, None, "the files")
    assert (found.target, found.unknown) == ("trl", ())
    assert found.training["lora"] == same.training["lora"]
    assert found.layout["recompute"] == same.layout["recompute"]
