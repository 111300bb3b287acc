"""A layout is priced if and only if a search that it alone is left to could find it."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from examples import examples
from hypothesis import event, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import planner
from planner.cli import app
from planner.errors import BadInputError
from planner.hardware.reading.files import SHIPPED
from planner.job.variants import runnable, variants
from planner.questions.inputs.given import job_given
from planner.search.emptiness import has_legal
from planner.specs.layouts.context import FAMILIES

FRAMEWORKS = ("megatron", "torchtitan", "deepspeed", "accelerate")
MODELS = ("llama-3.1-8b", "mixtral-8x7b")
NODES = ("dgx-h100", "dgx-a100-80gb", "server-l40s-8")
JOB: dict[str, Any] = {
    "model": "llama-3.1-8b",
    "framework": "megatron",
    "cluster": {"node": "dgx-h100", "nodes": 1},
    "training": {"seq_len": 4096, "global_batch": 64},
}
LAYOUT: dict[str, Any] = {"tp": 4, "micro_batch": 1}


@st.composite
def jobs(draw: st.DrawFn) -> dict[str, Any]:
    """A job on one or two nodes, some of whose settings no writer has words for."""
    nodes, node = draw(st.sampled_from([1, 2])), draw(st.sampled_from(NODES))
    training: dict[str, Any] = {
        "seq_len": draw(st.sampled_from([2048, 4096])),
        "global_batch": draw(st.sampled_from([16, 32, 48])),
        "optimizer": draw(st.sampled_from(["adamw", "adamw", "adamw", "muon"])),
        "method": draw(st.sampled_from(["full", "full", "full", "lora"])),
    }
    if draw(st.integers(0, 7)) == 0:
        training["padding"] = draw(st.sampled_from(["packed", "longest", "max"]))
    stack = {"attention": "sdpa"} if draw(st.integers(0, 3)) == 0 else {}
    framework = draw(st.sampled_from(FRAMEWORKS))
    return {
        "model": draw(st.sampled_from(MODELS)),
        "framework": framework,
        "stack": stack if framework == "accelerate" else {},
        "cluster": {"node": node, "nodes": nodes},
        "training": training,
    }


@st.composite
def layouts(draw: st.DrawFn, gpus: int) -> dict[str, Any]:
    """Every axis of a layout on all GPUs where its degrees divide them."""
    degrees = [1, 1, 2, 4, 8], [1, 1, 1, 2], [1, 1, 1, 2, 3]
    tp, cp, pp = (draw(st.sampled_from(each)) for each in degrees)
    dp = max(gpus // (tp * cp * pp), 1)
    vpp = draw(st.sampled_from([1, 1, 1, 2]))
    return {
        "tp": tp,
        "pp": pp,
        "vpp": vpp,
        "cp": cp,
        "ep": draw(st.sampled_from([1, 1, 1, 2, 8])),
        "etp": 1,
        "dp": dp,
        "dp_shard": dp * cp,
        "zero_stage": draw(st.integers(0, 3)),
        "micro_batch": draw(st.sampled_from([1, 1, 2, 3])),
        "schedule": "interleaved" if vpp > 1 else "1f1b",
        "recompute": draw(st.sampled_from(["none", "full", "full", "selective"])),
        **({"sp": draw(st.booleans())} if tp > 1 else {}),
        **({"cp_kind": draw(st.sampled_from(FAMILIES))} if cp > 1 else {}),
    }


def is_found(job: dict[str, Any], layout: dict[str, Any]) -> bool:
    """Whether a search has the layout, written by hand where no writer has words."""
    used = layout["tp"] * layout["cp"] * layout["pp"] * layout["dp"]
    limits = {"space": "full", "gpus": used, **layout}
    try:
        workloads = job_given(job | {"search": limits}, None, SHIPPED, None).workloads
        return has_legal(variants([each.unwritten() for each in runnable(workloads)]))
    except BadInputError:
        return False


@settings(max_examples=examples(3200), deadline=None)
@given(st.data())
def test_a_layout_is_priced_if_and_only_if_a_search_could_find_it(
    data: st.DataObject,
) -> None:
    job = data.draw(jobs())
    layout = data.draw(layouts(8 * job["cluster"]["nodes"]))
    found = is_found(job, layout)
    event("found" if found else "not found")
    refused = "priced"
    try:
        planner.predict(job, layout={**layout, "stages": "even"})
    except planner.PlannerError as error:
        refused = f"exit {error.exit_code}"
    assert refused == ("priced" if found else "exit 2")


PACKED = {
    "model": "qwen2.5-7b",
    "cluster": {"node": "server-l40s-8", "nodes": 1},
    "training": {"seq_len": 4096, "global_batch": 16, "padding": "packed"},
    "framework": "accelerate",
    "stack": {"attention": "sdpa"},
    "layout": {"zero_stage": 3, "micro_batch": 1, "recompute": "full"},
}


def test_a_job_that_nothing_can_run_is_refused_by_all_commands_in_equal_words() -> None:
    """Texts of one row are kept apart by FlashAttention alone."""
    told = set()
    for ask in (planner.predict, planner.plan, planner.explain, planner.memory):
        with pytest.raises(planner.PlannerError, match="flash_attention_2") as refused:
            ask(PACKED)
        told.add((str(refused.value), refused.value.exit_code))
    assert len(told) == 1


@pytest.mark.parametrize(
    ("limit", "value", "path", "found"),
    [
        ("offload", "optimizer", "offload.optimizer", 1.0),
        ("gradient_dtype", "bf16", "comm_dtype.gradients", "bf16"),
        ("zero_stage", [0], "zero_stage", 0),
        ("cp", {"min": 2, "max": 2}, "cp", 2),
        ("sp", False, "sp", False),
    ],
)
def test_what_the_search_block_says_is_in_the_layout(
    limit: str, value: object, path: str, found: object
) -> None:
    plain = planner.predict(JOB, layout=LAYOUT).layout.model_dump()
    asked = planner.predict(JOB | {"search": {limit: value}}, layout=LAYOUT)
    *outer, name = path.split(".")
    ours, theirs = asked.layout.model_dump(), plain
    for key in outer:
        ours, theirs = ours[key], theirs[key]
    assert ours[name] == found != theirs[name]


@pytest.mark.parametrize(
    ("limit", "value", "words"),
    [
        ("tp", 8, "limits tp to 8: 4"),
        ("gpus", 4, "4 GPUs are not whole nodes"),
        ("offload", "parameters", "can offload this"),
        ("schedule", "zb-v", "cannot express"),
    ],
)
def test_a_layout_outside_the_limits_is_refused_with_both(
    limit: str, value: object, words: str
) -> None:
    job = JOB | {"search": {limit: value}}
    with pytest.raises(planner.PlannerError, match=words) as refused:
        planner.predict(job, layout=LAYOUT)
    assert refused.value.exit_code == 2


def test_no_better_layout_is_promised_where_none_can_be_planned(tmp_path: Path) -> None:
    """Three chunks a rank, the job's limit, are not in the default space."""
    file = tmp_path / "job.yaml"
    file.write_text(yaml.safe_dump(JOB | {"search": {"vpp": 3, "pp": 2}}))
    words = ["predict", str(file), "--layout", "tp=4,micro_batch=1"]
    told = CliRunner().invoke(app, words)
    assert told.exit_code == 0, told.output
    assert "searches for a better layout" not in told.stdout
    assert "planner explain" in told.stdout
