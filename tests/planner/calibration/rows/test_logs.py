"""Logs become time and memory; the lines below are written as each framework does."""

from pathlib import Path

import pytest
import yaml

from planner.calibration.rows.logs import Log, parse_log, read_log
from planner.calibration.rows.skeleton import skeleton, skeleton_text
from planner.errors import BadInputError

MEGATRON = """
------------------------ arguments ------------------------
  bf16 ............................................ True
  context_parallel_size ........................... 1
  data_parallel_size .............................. 4
  ffn_hidden_size ................................. 14336
  fp16 ............................................ False
  fp8 ............................................. None
  global_batch_size ............................... 128
  group_query_attention ........................... True
  hidden_size ..................................... 4096
  micro_batch_size ................................ 1
  num_attention_heads ............................. 32
  num_layers ...................................... 32
  num_query_groups ................................ 8
  pipeline_model_parallel_size .................... 2
  recompute_granularity ........................... None
  seq_length ...................................... 8192
  sequence_parallel ............................... True
  swiglu .......................................... True
  tensor_model_parallel_size ...................... 2
  use_distributed_optimizer ....................... True
  world_size ...................................... 16
-------------------- end of arguments ---------------------
 [2026-01-01 10:00:00] iteration        1/     100 | consumed samples:          128 | \
elapsed time per iteration (ms): 45210.9 | throughput per GPU (TFLOP/s/GPU): 9.9 | \
learning rate: 1.0E-06 | global batch size:   128 | lm loss: 1.1E+01 |
[Rank 0] (after 1 iterations) memory (MB) | allocated: 20480.0 | \
max allocated: 51200.0 | reserved: 60000.0 | max reserved: 61440.0
 [2026-01-01 10:00:06] iteration        2/     100 | consumed samples:          256 | \
elapsed time per iteration (ms): 6020.0 | throughput per GPU (TFLOP/s/GPU): 410.1 |
 [2026-01-01 10:00:12] iteration        3/     100 | consumed samples:          384 | \
elapsed time per iteration (ms): 6000.0 | throughput per GPU (TFLOP/s/GPU): 412.3 |
[Rank 1] (after 3 iterations) memory (MB) | allocated: 20480.0 | \
max allocated: 52224.0 | reserved: 60000.0 | max reserved: 61440.0
 [2026-01-01 10:00:18] iteration        4/     100 | consumed samples:          512 | \
elapsed time per iteration (ms): 6010.0 | throughput per GPU (TFLOP/s/GPU): 411.2 |
"""
BIGSCIENCE = """
 iteration        1/  100 | consumed samples: 2048 | elapsed time per iteration (s): \
210.50 | learning rate: 1.0E-06 | samples per second: 9.7 | TFLOPs: 85.0 |
 iteration        2/  100 | consumed samples: 4096 | elapsed time per iteration (s): \
105.25 | learning rate: 1.0E-06 | samples per second: 19.5 | TFLOPs: 151.0 |
"""
TITAN = """
\x1b[31m[titan] 2026-01-01 10:00:00,000 - root - INFO - step:  1  loss: 12.2  \
memory: 33.10GiB(41.80%)  tps: 512  tflops: 26.7  mfu: 2.70%\x1b[39m
[titan] 2026-01-01 10:00:09,000 - root - INFO - step: 10  loss:  9.1  \
grad_norm:  1.9  memory: 47.46GiB(60.07%)  tps: 6,400  tflops: 333.6  mfu: 33.73%
[titan] 2026-01-01 10:00:19,000 - root - INFO - step: 20  loss:  8.1  \
grad_norm:  1.8  memory: 47.40GiB(60.00%)  tps: 6,600  tflops: 343.6  mfu: 34.73%
"""
DEEPSPEED = """
[2026-01-01 10:00:00,000] [INFO] [timer.py:260:stop] epoch=0/micro_step=10/\
global_step=10, RunningAvgSamplesPerSec=11.0, CurrSamplesPerSec=8.0, \
MemAllocated=11.2GB, MaxMemAllocated=21.8GB
[2026-01-01 10:00:10,000] [INFO] [timer.py:260:stop] epoch=0/micro_step=20/\
global_step=20, RunningAvgSamplesPerSec=14.0, CurrSamplesPerSec=16.0, \
MemAllocated=11.2GB, MaxMemAllocated=22.5GB
"""
OLD_DEEPSPEED = "[INFO] 0/20, SamplesPerSec=32.5, MemAllocated=1.0GB"
TRAINER = """
***** Running training *****
  Num examples = 12,800
  Total optimization steps = 1,000
{'loss': 1.2, 'grad_norm': 0.4, 'learning_rate': 1e-05, 'epoch': 0.5}
{'train_runtime': 2500.0, 'train_samples_per_second': 5.12, \
'train_steps_per_second': 0.4, 'train_loss': 1.1, 'epoch': 1.0}
"""
STEP_TIMES = """
{'loss': 1.3, 'step_time': 9.0, 'memory/max_mem_allocated(gib)': 30.5}
{"loss": 1.2, "step_time": 2.0, "memory/max_mem_allocated(gib)": 31.5}
{"loss": 1.1, "step_time": 2.2, "memory/max_mem_allocated(gib)": 31.5}
"""


def parsed(text: str) -> Log:
    log = parse_log(text)
    assert log is not None
    return log


def test_megatron_states_time_and_memory_after_its_warm_up() -> None:
    log = parsed(MEGATRON)
    assert (log.framework, log.readings) == ("Megatron-LM", 3)
    assert log.step_s == pytest.approx(6.010)
    assert (log.memory_gib, log.memory_counter) == (51.0, "allocated")


def test_the_forks_seconds_are_seconds() -> None:
    log = parsed(BIGSCIENCE)
    assert (log.framework, log.step_s) == ("Megatron-DeepSpeed", 105.25)
    assert log.memory_gib is None


def test_torchtitan_states_tokens_of_one_gpu_and_reserved_memory() -> None:
    log = parsed(TITAN)
    assert (log.framework, log.tokens_per_s_per_gpu) == ("torchtitan", 6500)
    assert (log.memory_gib, log.memory_counter) == (47.46, "reserved")
    step = log.step_time(global_batch=13, seq_len=8000, gpus=8)
    assert step == pytest.approx(13 * 8000 / (8 * 6500))


def test_deepspeed_states_samples_of_the_job() -> None:
    log = parsed(DEEPSPEED)
    assert (log.framework, log.samples_per_s, log.memory_gib) == ("DeepSpeed", 16, 22.5)
    assert log.step_time(global_batch=64, seq_len=1, gpus=8) == pytest.approx(4)
    assert parsed(OLD_DEEPSPEED).samples_per_s == 32.5


def test_the_trainer_sums_up_at_its_end() -> None:
    log = parsed(TRAINER)
    assert (log.framework, log.step_s) == ("Hugging Face Trainer", 2.5)
    assert log.samples_per_s == 5.12


def test_without_its_number_of_steps_the_trainers_samples_count() -> None:
    log = parsed(TRAINER.replace("Total optimization steps", "Steps"))
    assert log.step_s is None
    assert log.step_time(global_batch=16, seq_len=1, gpus=1) == pytest.approx(3.125)


def test_the_trainers_rate_serves_where_nothing_else_does() -> None:
    assert parsed("train_steps_per_second = 0.5").step_s == 2.0


def test_numbers_in_quotes_are_numbers() -> None:
    """The Trainer of transformers 5 prints them so."""
    text = """
{'loss': '5.569', 'step_time': '9.0', 'max_allocated (GiB)': '30.5'}
{'loss': '4.298', 'step_time': '2.0', 'max_allocated (GiB)': '31.5'}
{'loss': '3.505', 'step_time': '2.2', 'max_allocated (GiB)': '31.0'}
{'train_runtime': '13.2', 'train_samples_per_second': '46.21'}
"""
    log = parsed(text)
    assert log.step_s == pytest.approx(2.1)
    assert log.memory_gib == pytest.approx(31.5)
    assert log.samples_per_s == pytest.approx(46.21)


def test_step_times_of_a_trainer_are_read_line_by_line() -> None:
    log = parsed(STEP_TIMES)
    assert (log.step_s, log.readings) == (pytest.approx(2.1), 2)
    assert (log.memory_gib, log.memory_counter) == (31.5, "allocated")


def test_one_reading_is_not_thrown_away() -> None:
    assert parsed(BIGSCIENCE.strip().splitlines()[0]).step_s == 210.5


@pytest.mark.parametrize("share", [5, 20, 100])
def test_a_tenth_of_the_readings_is_warm_up(share: int) -> None:
    line = "elapsed time per iteration (ms): {}"
    text = "\n".join(line.format(i + 1) for i in range(share))
    assert parsed(text).readings == share - max(1, share // 10)


def test_a_text_without_readings_is_refused_with_what_is_known(tmp_path: Path) -> None:
    assert parse_log("tps and step: are only words here") is None
    file = tmp_path / "train.log"
    file.write_text("nothing of use")
    with pytest.raises(BadInputError, match=r"train\.log.*Megatron-LM.*torchtitan"):
        read_log(file)
    with pytest.raises(BadInputError, match="cannot be read"):
        read_log(tmp_path / "absent.log")


def test_a_row_takes_what_megatron_prints_of_its_arguments() -> None:
    row = skeleton(parsed(MEGATRON), "run")
    assert row["model"] == {
        "name": None,
        "layers": 32,
        "hidden": 4096,
        "heads": 32,
        "kv_heads": 8,
        "ffn_hidden": 14336,
        "vocab": None,
        "gated_mlp": True,
    }
    assert row["hardware"]["gpus"] == 16
    assert row["job"] == {
        "seq_len": 8192,
        "global_batch": 128,
        "precision": "bf16",
        "optimizer": None,
        "framework": "Megatron-LM",
    }
    assert row["layout"] == {
        "tp": 2,
        "sp": True,
        "pp": 2,
        "cp": 1,
        "dp": 4,
        "micro_batch": 1,
        "zero_stage": 1,
        "recompute": "none",
    }
    assert row["measured"] == {
        "step_time_s": 6.01,
        "peak_memory_gb": 51.0,
        "memory_kind": "GiB, allocated",
    }


def test_a_row_is_yaml_with_nothing_invented() -> None:
    text = skeleton_text(parsed(TITAN), "run")
    (row,) = yaml.safe_load(text)
    assert text.startswith("# From 2 readings of a log of torchtitan.")
    assert row["measured"]["tokens_per_s_per_gpu"] == 6500
    assert set(row["layout"].values()) == {None}
    assert row["job"]["framework"] == "torchtitan"
