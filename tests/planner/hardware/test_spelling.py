"""People's spelling of GPUs and networks, and what is refused by its name."""

from pathlib import Path

import pytest
from each import each

from planner.hardware import catalog
from planner.hardware.catalog import resolve_cluster
from planner.hardware.fleets import ClusterSpec
from planner.hardware.overlay import laid_over
from planner.hardware.reading import files
from planner.hardware.reading.files import SHIPPED
from planner.hardware.specs import GpuSpec
from planner.hardware.spelling import SpellingError, read_fleet
from planner.hardware.spelling.gpus import gpu_called
from planner.hardware.spelling.networks import network_called
from planner.hardware.spelling.words import words

READ = {
    "8xH100": ("1 x dgx-h100", 8),
    "64 H100s": ("8 x dgx-h100", 64),
    "8 H100 SXM": ("1 x dgx-h100", 8),
    "H100:8": ("1 x dgx-h100", 8),
    "2x8xh100": ("2 x dgx-h100", 16),
    "64 x MI300X": ("8 x hgx-mi300x", 64),
    "8 x AMD Instinct MI355X": ("1 x hgx-mi355x", 8),
    "4x4090": ("1 x workstation-rtx-4090-4", 4),
    "4090 x 2": ("1 x workstation-rtx-4090-2", 2),
    "1x RTX4090 24GB": ("1 x workstation-rtx-4090-1", 1),
    "8xa100-80gb": ("1 x dgx-a100-80gb", 8),
    "8xNVIDIA-A100-SXM4-40GB": ("1 x dgx-a100-40gb", 8),
    "2 nodes of 8 A100-40 over 25 GbE": ("2 x dgx-a100-40gb over ethernet-25", 16),
    "16,384 x h100": ("2048 x dgx-h100", 16384),
    "1000xh100": ("125 x dgx-h100", 1000),
    "8xgb200": ("2 x gb200-nvl72", 8),
    "2 x gb200-nvl72": ("36 x gb200-nvl72", 144),
    "512 Gaudi 2": ("64 x hls-gaudi2", 512),
    "8xh100 pcie": ("2 x h100-pcie-4", 8),
    "4 dgx-h100": ("4 x dgx-h100", 32),
    "llama3-h100-16k": ("llama3-h100-16k", 16384),
    "4xh100": ("1 x dgx-h100, 4 of 8 GPUs", 4),
    "4xT4": ("1 x server-t4-4", 4),
    "2x 2080 Ti": ("1 x workstation-rtx-2080-ti-4, 2 of 4 GPUs", 2),
    "p5.48xlarge x 2": ("2 x aws-p5.48xlarge", 16),
    "4 x Standard_ND96isr_H100_v5": ("4 x azure-nd96isr-h100-v5", 32),
    "12xh100": ("2 x dgx-h100, 6 of 8 GPUs", 12),
}
"""Text to the name of the cluster and its GPUs. [1]"""
REFUSED = {
    "m3 max": "a Mac .* nearest: rtx-4090",
    "4xTPU v5e": "a TPU .* nearest: h100-sxm5-80gb",
    "v5p-128": "a TPU",
    "16xtrn2": "Trainium",
    "8xP100": "'P100' is a GPU that is too old .* nearest: v100",
    "4xgtx1080ti": "too old .* nearest: v100",
    "2x rtx 2080": "a Turing GPU .* nearest: rtx-2080-ti",
    "2x 7900 XTX": "a Radeon RX .* nearest: mi210",
    "1 x DGX Spark": "shares its memory .* nearest: rtx-4090",
    "1.5xh100": "no count of GPUs",
    "-8xh100": "no count of GPUs",
    "8xmi250x": "count GCDs",
    "8xh1000": "nearest: h100",
    "8x rtx 6000": "any of rtx-6000-ada, rtx-pro-6000-blackwell",
    "h100": "no count of GPUs and no cluster; say how many, as 8xh100",
    "8x" + 200 * "x": "'8xx.*is longer than 120 characters",
    "0xh100": "a count is 1 to",
    "20xh100": "nearest: 16x or 24x, .* '4 nodes of 5'",
    "2 nodes of 16 h100": "has 8 GPUs; given 16",
    "llama3-h100-15k": "nearest clusters: llama3-h100-16k",
}
NETWORKS = {
    "25 GbE": ("ethernet-25", 1),
    "10gbe": ("ethernet-10", 1),
    "NDR": ("ib-ndr", None),
    "HDR InfiniBand": ("ib-hdr", None),
    "400G IB": ("ib-ndr", None),
    "4 x 100G RoCE": ("roce-100", 4),
    "EFA 400": ("efa-400", None),
    "Omni-Path": ("omni-path-100", None),
}
"""Text to a link, and to NICs of a node where the text says. [1]"""
GPUS = [catalog.gpu(name, SHIPPED) for name in SHIPPED.names("gpus")]


@each("text", READ)
def test_a_count_is_read(text: str) -> None:
    fleet = read_fleet(text, SHIPPED)
    name = fleet.cluster if isinstance(fleet.cluster, str) else fleet.cluster["name"]
    assert (name, fleet.gpus) == READ[text]


@each("text", REFUSED)
def test_what_cannot_be_read_is_refused_with_what_is_nearest(text: str) -> None:
    with pytest.raises(SpellingError, match=REFUSED[text]):
        read_fleet(text, SHIPPED)


@each("text", NETWORKS)
def test_a_network_is_read(text: str) -> None:
    found = network_called(text, SHIPPED)
    assert (found.nic, found.nics) == NETWORKS[text]


@pytest.mark.parametrize("text", ["400 Gb/s", "1 GbE", "carrier pigeon"])
def test_a_network_that_is_none_or_several_is_refused(text: str) -> None:
    with pytest.raises(SpellingError, match=r"roce-400|ethernet-10"):
        network_called(text, SHIPPED)


def test_a_network_is_given_once() -> None:
    with pytest.raises(SpellingError, match="given twice"):
        read_fleet("16xh100 over NDR", SHIPPED, "25 GbE")


@each("gpu", GPUS)
def test_names_of_a_gpu_mean_it_alone(gpu: GpuSpec) -> None:
    assert all(gpu_called(name, SHIPPED) == gpu for name in (gpu.name, *gpu.called))


@each("gpu", GPUS)
def test_usual_nodes_have_the_gpu_and_grow(gpu: GpuSpec) -> None:
    nodes = [catalog.node(name, SHIPPED) for name in gpu.usual_nodes]
    assert {node.gpu for node in nodes} <= {gpu.name}
    sizes = [node.gpus_per_node for node in nodes]
    assert sizes == sorted(set(sizes))


@each("gpu", GPUS)
def test_every_gpu_is_named_by_a_count(gpu: GpuSpec) -> None:
    fleet = read_fleet(f"2x{gpu.name}", SHIPPED)
    assert (fleet.gpu, fleet.gpus) == (gpu.name, 2)


def test_what_is_nearest_to_refused_hardware_is_in_the_catalog() -> None:
    assert {one.nearest for one in words().refused} <= {gpu.name for gpu in GPUS}


def test_a_gpu_of_one_s_own_without_a_node_is_refused(tmp_path: Path) -> None:
    lines = (files.folder("gpus") / "a30-24gb.yaml").read_text().splitlines()
    own = [line for line in lines if "usual_nodes" not in line]
    own = ["name: mine-24gb" if line.startswith("name:") else line for line in own]
    (tmp_path / "gpus").mkdir()
    (tmp_path / "gpus" / "mine-24gb.yaml").write_text("\n".join(own))
    with pytest.raises(SpellingError, match="no usual node of mine-24gb"):
        read_fleet("8xmine-24gb", laid_over(tmp_path))


def test_gpus_without_a_usual_node_are_in_no_node() -> None:
    lone = {gpu.name for gpu in GPUS if not gpu.usual_nodes}
    assert not lone & {
        catalog.node(name, SHIPPED).gpu for name in SHIPPED.names("nodes")
    }


def test_what_is_nearest_to_the_refused_is_there() -> None:
    assert {r.nearest for r in words().refused} <= set(SHIPPED.names("gpus"))


def test_part_of_a_node_has_its_share_of_the_node() -> None:
    """Four of eight GPUs: half the NICs, half the host's memory, a domain of four."""
    spec = ClusterSpec(name="half", node="dgx-h100", nodes=2, gpus_per_node=4)
    half, whole = resolve_cluster(spec, SHIPPED).node, catalog.node("dgx-h100", SHIPPED)
    assert (half.gpus_per_node, half.scale_up_domain, half.nics_per_node) == (4, 4, 4)
    assert half.host_memory == (whole.host_memory or 0) / 2
    assert resolve_cluster(spec, SHIPPED).gpus == 8
    assert ClusterSpec.model_validate_json(spec.model_dump_json()) == spec


def test_a_cluster_may_have_other_nics_than_its_nodes() -> None:
    changed = {"nic": "ethernet-25", "nics_per_node": 1}
    spec = ClusterSpec(name="slow", node="dgx-h100", nodes=2, **changed)
    assert resolve_cluster(spec, SHIPPED).nic_share == 25e9 / 8 / 8
    assert "nic" not in ClusterSpec(name="x", node="dgx-h100", nodes=2).model_dump()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"gpus_per_node": 16}, "a dgx-h100 has 8 GPUs; given 16"),
        ({"nic": "nvlink4"}, "a scale-out link is needed"),
    ],
)
def test_what_a_node_cannot_have_is_refused(
    changed: dict[str, object], message: str
) -> None:
    spec = ClusterSpec.model_validate(
        {"name": "x", "node": "dgx-h100", "nodes": 2, **changed}
    )
    with pytest.raises(ValueError, match=message):
        resolve_cluster(spec, SHIPPED)
