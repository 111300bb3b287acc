"""One word for each kernel of attention, in every framework and on every GPU."""

from pathlib import Path

import pytest

from planner.cost.attention import attention_time
from planner.cost.kernels import attention_kernel, priced_kernel
from planner.cost.pricing import Pricing
from planner.cost.workload import Workload
from planner.errors import BadInputError
from planner.frameworks import FRAMEWORKS
from planner.hardware.calibration import calibrated, calibration
from planner.hardware.kernels.attention import (
    attention_on,
    attention_word,
    attention_words,
    stand_in,
)
from planner.hardware.reading.files import SHIPPED
from planner.job.expressible import refuse_unwritable, unwritable
from planner.job.loading import load
from planner.job.resolve import cautions, resolve
from planner.specs.job import JobSpec

KERNELS = tuple(sorted({*attention_words().values()}))
GPUS = {"v100": "dgx-1-v100", "a100": "dgx-a100-80gb", "h100": "dgx-h100"} | {
    "b200": "dgx-b200",
    "mi300x": "hgx-mi300x",
}


def job(
    node: str, framework: str, model: str = "llama-3.1-8b", **stack: object
) -> Workload:
    half = "fp16" if "v100" in node else "bf16"
    spec = JobSpec.model_validate(
        {
            "model": model,
            "cluster": {"node": node, "nodes": 1},
            "training": {"seq_len": 2048, "global_batch": 16, "precision": half},
            "framework": framework,
            "stack": stack,
        }
    )
    return resolve(spec, file="job", base=Path())[0]


@pytest.mark.parametrize("word", KERNELS)
@pytest.mark.parametrize("node", GPUS.values())
@pytest.mark.parametrize("framework", [f.name for f in FRAMEWORKS])
def test_a_word_is_one_kernel_in_every_framework(
    framework: str, node: str, word: str
) -> None:
    """Every kernel that runs on a GPU is priced there; the others are refused."""
    arch = job(node, framework).gpu.arch
    if word not in attention_on(arch):
        with pytest.raises(BadInputError, match="does not run on") as caught:
            job(node, framework, attention=word)
        assert caught.value.field == "stack.attention"
        return
    try:
        its = job(node, framework, attention=word)
    except BadInputError as error:
        assert "no such attention in transformers" in str(error)  # noqa: PT017
        return
    assert word in (attention_kernel(its), "sdpa")
    also = [name for name, kernel in attention_words().items() if kernel == word]
    for name in also:
        its_own = job(node, framework, attention=name).framework.profile
        assert its_own == its.framework.profile, name


def test_every_kernel_that_is_named_somewhere_is_a_word() -> None:
    measured = {
        c.kernel
        for gpu in calibrated(SHIPPED)
        for c in calibration(gpu, SHIPPED).attention
    }
    assert measured <= {*KERNELS}
    for framework in FRAMEWORKS:
        kernel = framework.profile.attention_kernel
        named = {kernel} if isinstance(kernel, str) else {*kernel.values()}
        assert named <= {*KERNELS}


def test_a_kernel_that_was_not_measured_is_priced_by_the_nearest_and_says_so() -> None:
    """FlashAttention-2 runs on B200, where cuDNN's kernel alone was measured."""
    its = job("dgx-b200", "accelerate", attention="flash_attention_2")
    assert (attention_kernel(its), priced_kernel(its)) == ("fa2", "cudnn9")
    (said,) = cautions(its)
    assert "fa2 was not measured on b200-sxm-180gb: priced as cudnn9" in said
    usual = job("dgx-b200", "accelerate")
    assert cautions(usual) == ()
    work = {"span": 2048, "flops": 1e15, "blocks": 4096.0, "head_dim": 128}
    both = [attention_time(Pricing.candidate(each), **work) for each in (its, usual)]
    assert both[0] == both[1]


def test_the_nearest_kernel_is_the_first_like_it() -> None:
    assert stand_in("fa3", {"fa2", "cudnn9"}) == "fa2"
    assert stand_in("fa4", {"cudnn9"}) == "cudnn9"
    assert stand_in("aiter", {"sdpa"}) is None


@pytest.mark.parametrize("word", ["flash_attention_2", "kernels-community/flash-attn3"])
def test_gpt_oss_runs_the_flash_attention_that_has_sinks(word: str) -> None:
    """transformers puts the kernel with sinks in place of flash_attention_2."""
    its = job("dgx-h100", "accelerate", "gpt-oss-20b", attention=word)
    assert attention_kernel(its) == "fa3"
    assert attention_kernel(job("dgx-h100", "accelerate", "gpt-oss-20b")) == "unfused"


def test_gemma_2_runs_what_its_code_and_the_gpu_have() -> None:
    kernels = {
        gpu: attention_kernel(job(node, "accelerate", "gemma-2-2b"))
        for gpu, node in GPUS.items()
    }
    assert kernels["b200"] == kernels["mi300x"] == kernels["h100"] == "fa2"
    assert kernels["v100"] == "unfused"


@pytest.mark.parametrize("framework", ["deepspeed", "accelerate"])
def test_the_shipped_job_of_405b_has_its_attention_in_every_framework(
    framework: str,
) -> None:
    path = Path("llama-3.1-405b-16k-h100")
    given = load(path, (f"framework={framework}",), catalog=SHIPPED)
    assert unwritable(given.workloads[0]) == ()
    refuse_unwritable(given.workloads)


def test_a_framework_that_cannot_is_not_among_those_that_can() -> None:
    its = job("dgx-h100", "torchtitan", attention="unfused")
    with pytest.raises(BadInputError, match="PyTorch chooses") as caught:
        refuse_unwritable([its])
    able = str(caught.value).partition("frameworks that can: ")[2].partition(" (")[0]
    assert able == "megatron, accelerate, deepspeed"


def test_words_of_no_kernel_are_left_as_they_are() -> None:
    assert attention_word("sage") == "sage"
    assert attention_word(None) is None
