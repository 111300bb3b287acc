"""A spec is its file with the assignments of the command line on top."""

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from planner.cli.schema import SCHEMAS, schema_text
from planner.errors import BadInputError
from planner.specs.layouts.layout import Offload, PartialLayout
from planner.specs.reading.layout_line import read_layout
from planner.specs.reading.read import locate, read_spec
from planner.specs.training import LoraSpec

CONFIGS = Path(__file__).resolve().parents[4] / "configs"
JOBS = sorted((CONFIGS / "jobs").glob("*.yaml"))


def test_an_assignment_replaces_a_field() -> None:
    spec = read_spec(JOBS[0], ["training.seq_len=1024", "search.tp=[1, 2]"])
    assert spec.training.seq_len == 1024
    assert spec.search.tp == (1, 2)


@given(st.integers(1, 1000))
def test_one_batch_clears_the_other(sequences: int) -> None:
    spec = read_spec(locate(Path("llama-3-8b-8-a100")))
    tokens = sequences * spec.training.seq_len
    changed = read_spec(
        locate(Path("llama-3-8b-8-a100")), [f"training.global_batch_tokens={tokens}"]
    )
    assert changed.training.global_batch is None
    assert changed.training.sequences == sequences


def test_a_named_cluster_can_be_changed_and_says_so() -> None:
    spec = read_spec(Path("llama-3-8b-8-a100"), ["cluster.nodes=4"])
    assert isinstance(spec.cluster, dict)
    assert spec.cluster["nodes"] == 4
    assert spec.cluster["node"] == "dgx-a100-80gb"
    assert spec.cluster["name"] == "dgx-a100-1-node (changed)"


def test_a_cluster_file_can_be_changed_too(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("{name: mine, node: dgx-h100, nodes: 2}")
    job = yaml.safe_load(JOBS[0].read_text()) | {"cluster": "mine.yaml"}
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(job))
    spec = read_spec(tmp_path / "job.yaml", ["cluster.nodes=3"])
    assert spec.cluster == {"name": "mine (changed)", "node": "dgx-h100", "nodes": 3}


def test_an_empty_block_is_an_absent_block(tmp_path: Path) -> None:
    text = (CONFIGS / "jobs" / "llama-3-8b-8-a100.yaml").read_text()
    (tmp_path / "job.yaml").write_text(text + "search:\nlayout:\nstack:\n")
    plain = read_spec(Path("llama-3-8b-8-a100"))
    assert read_spec(tmp_path / "job.yaml") == plain


LAYOUTS = st.fixed_dictionaries(
    {},
    optional={
        "tp": st.integers(1, 64),
        "sp": st.booleans(),
        "pp": st.integers(1, 64),
        "zero_stage": st.integers(0, 3),
        "schedule": st.sampled_from(["1f1b", "interleaved"]),
        "order": st.sampled_from(["tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp"]),
        "stages": st.just("even"),
        "recompute": st.sampled_from(["none", "full"]),
    },
)


@given(LAYOUTS)
def test_a_layout_in_its_short_form_is_the_same_layout(
    fields: dict[str, object],
) -> None:
    text = ",".join(f"{key}={value}" for key, value in fields.items())
    assert read_layout(text) == PartialLayout.model_validate(fields)


@pytest.mark.parametrize("stem", SCHEMAS)
def test_a_schema_file_is_current(stem: str) -> None:
    """`python -m planner.cli.schema` writes it again."""
    assert (CONFIGS / "schema" / f"{stem}.json").read_text() == schema_text(stem)


def test_a_dot_leads_into_a_block_of_the_layout() -> None:
    """`offload.optimizer=1` is what a layout block says on two lines."""
    short = read_layout("dp=8,offload.optimizer=1,offload.parameters=0.5")
    assert short.offload == Offload(optimizer=1.0, parameters=0.5)


@pytest.mark.parametrize(
    "text",
    ["offload.optimizer=1,offload.optimizer=1", "dp=8,dp.x=1", "offload.optimizr=1"],
)
def test_a_dotted_key_twice_or_misspelt_is_refused(text: str) -> None:
    with pytest.raises(BadInputError):
        read_layout(text)


def test_another_method_drops_what_the_file_gave_its_own(tmp_path: Path) -> None:
    """`--set training.method=full` on a job with adapters asks about a job without."""
    job = tmp_path / "job.yaml"
    job.write_text(
        "{model: llama-2-7b, cluster: rtx-4090-1, training: {seq_len: 8, "
        "global_batch: 1, method: qlora, quantization: nf4, lora: {rank: 4}}}"
    )

    full = read_spec(job, ["training.method=full"]).training
    lora = read_spec(job, ["training.method=lora"]).training
    assert (full.method, full.lora) == ("full", LoraSpec())
    assert (lora.quantization, lora.lora.rank) == (None, 4)
    with pytest.raises(BadInputError, match="method full has no adapters"):
        read_spec(job, ["training.method=full", "training.lora.rank=8"])


def test_a_wrong_number_is_told_by_its_field_alone(tmp_path: Path) -> None:
    """No part of the path is a name of pydantic's for a kind of number."""
    file = tmp_path / "job.yaml"
    file.write_text(
        "model: llama-2-7b\ncluster: {name: one, node: dgx-h100, nodes: 1}\n"
        "training: {seq_len: 4096, global_batch: 8, tokens: 300B}\n"
        "framework: megatron\n"
    )
    with pytest.raises(BadInputError, match=r"training\.tokens: not a legal value"):
        read_spec(file)
