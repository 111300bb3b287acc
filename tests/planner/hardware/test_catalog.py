"""Every file of the catalog loads, is sourced and round-trips; slips are explained."""

from pathlib import Path

import pytest
from each import each

from planner.hardware import catalog
from planner.hardware.fleets import ClusterSpec, TierSpec
from planner.hardware.reading import files
from planner.hardware.reading.files import SHIPPED
from planner.hardware.specs import GpuSpec, LinkSpec, NodeSpec

READERS = {
    "gpus": catalog.gpu,
    "links": catalog.link,
    "nodes": catalog.node,
    "clusters": catalog.cluster,
}
ENTRIES = [(kind, name) for kind in READERS for name in SHIPPED.names(kind)]


@each(("kind", "name"), ENTRIES)
def test_an_entry_loads_is_sourced_and_round_trips(kind: str, name: str) -> None:
    entry = READERS[kind](name, SHIPPED)
    assert entry.name == name
    assert entry.unsourced() == []
    assert type(entry).model_validate_json(entry.model_dump_json()) == entry


@each("name", SHIPPED.names("clusters"))
def test_a_cluster_resolves_to_whole_domains_below_a_fabric(name: str) -> None:
    cluster = catalog.resolve_cluster(catalog.cluster(name, SHIPPED), SHIPPED)
    assert cluster.gpus == cluster.spec.in_service * cluster.node.gpus_per_node
    assert cluster.scale_up.bandwidth > cluster.nic_share > 0
    own = catalog.link(cluster.gpu.nvlink, SHIPPED).bandwidth
    bus = cluster.scale_up.topology == "bus"
    assert bus or cluster.scale_up.bandwidth == own
    assert cluster.host_link.kind == "host"


@each("name", SHIPPED.names("clusters"))
def test_a_cluster_file_names_its_schema_first(name: str) -> None:
    text = (files.folder("clusters") / f"{name}.yaml").read_text()
    first = "# yaml-language-server: $schema=../schema/cluster.json\n"
    assert text.startswith(first)


@pytest.mark.parametrize(
    ("kind", "least"), [("gpus", 45), ("nodes", 40), ("clusters", 10)]
)
def test_the_catalog_is_as_wide_as_promised(kind: str, least: int) -> None:
    assert len(SHIPPED.names(kind)) >= least


@each(("kind", "name"), ENTRIES)
def test_what_is_from_memory_is_marked_unverified(kind: str, name: str) -> None:
    entry = READERS[kind](name, SHIPPED)
    admitted = [f for f, s in entry.sources.items() if "not looked up" in s]
    marked = {*entry.unverified, "*"}
    assert [f for f in admitted if f not in marked] == []


@pytest.mark.parametrize(
    ("name", "gpus"),
    [
        ("gb200-nvl72-64-racks", 4608),
        ("hgx-h800-256-nodes", 2048),
        ("mi300x-8-nodes", 64),
        ("rtx-4090-4", 4),
        ("rtx-4090-1", 1),
        ("a6000-2", 2),
        ("dgx-b200-32-nodes", 256),
        ("dgx-h200-8-nodes", 64),
        ("jean-zay-a100-48-nodes", 384),
        ("selene", 2240),
        ("eos", 4608),
        ("meta-rsc-1", 16000),
    ],
)
def test_reference_clusters_have_their_gpus(name: str, gpus: int) -> None:
    assert catalog.resolve_cluster(catalog.cluster(name, SHIPPED), SHIPPED).gpus == gpus


def test_jean_zay_has_50_gbit_per_gpu() -> None:
    """Four Omni-Path links of 100 Gb/s for eight GPUs."""
    name = "jean-zay-a100-48-nodes"
    assert (
        catalog.resolve_cluster(catalog.cluster(name, SHIPPED), SHIPPED).nic_share
        == 50e9 / 8
    )


def test_a_v100_has_no_bf16() -> None:
    with pytest.raises(ValueError, match="no bf16 units; it has"):
        catalog.gpu("v100-sxm2-32gb", SHIPPED).peak("bf16")


@pytest.mark.parametrize("gib", [70, 81])
def test_memory_that_contradicts_its_label_is_refused(gib: int) -> None:
    """80 GB is 74.5 GiB or 80 GiB, less at most 3 %."""
    entry = catalog.gpu("h100-sxm5-80gb", SHIPPED).model_dump()
    with pytest.raises(ValueError, match=r"memory_label 80 GB, which allows 72\.2"):
        GpuSpec.model_validate(entry | {"memory_capacity": f"{gib} GiB"})


def test_a_gpu_needs_a_16_bit_format() -> None:
    entry = catalog.gpu("gaudi2", SHIPPED).model_dump() | {"peak_bf16": None}
    with pytest.raises(ValueError, match="peak_bf16 and peak_fp16 are both null"):
        GpuSpec.model_validate(entry)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("nvlink4", {"per_link": "20 GB/s"}, "450 GB/s contradicts 18 links of 20"),
        ("nvlink4", {"bandwidth": "400 GB/s"}, "400 GB/s contradicts 18 links of 25"),
        ("xgmi3", {"links": None}, "mesh needs links"),
        ("xgmi3", {"per_link": None}, "mesh needs links"),
        ("nvlink4", {"peer_to_peer": False}, "peer_to_peer false is for a bus"),
        ("pcie4-x16", {"topology": "bus"}, "topology bus is for a scale-up link"),
    ],
)
def test_a_link_that_contradicts_itself_is_refused(
    name: str, change: dict[str, object], message: str
) -> None:
    entry = catalog.link(name, SHIPPED).model_dump() | change
    with pytest.raises(ValueError, match=message):
        LinkSpec.model_validate(entry)


def test_the_llama3_cluster_is_that_of_the_paper() -> None:
    cluster = catalog.resolve_cluster(
        catalog.cluster("llama3-h100-16k", SHIPPED), SHIPPED
    )
    assert cluster.gpus == 16384
    assert cluster.nic_share == 50e9
    assert [(t.gpus, t.oversubscription) for t in cluster.spec.tiers] == [
        (16, 1),
        (3072, 7),
    ]


def test_an_nvl72_rack_is_18_nodes_of_4() -> None:
    node = catalog.node("gb200-nvl72", SHIPPED)
    assert (node.gpus_per_node, node.scale_up_domain) == (4, 72)


def test_memory_is_what_nvidia_smi_shows() -> None:
    assert catalog.gpu("h100-sxm5-80gb", SHIPPED).memory_capacity == 81559 * 2**20


def test_peaks_are_dense_and_by_number_format() -> None:
    gpu = catalog.gpu("h100-sxm5-80gb", SHIPPED)
    assert (gpu.peak("bf16"), gpu.peak("fp8")) == (989e12, 1979e12)
    with pytest.raises(ValueError, match=r"no fp8 units; it has \['bf16', 'fp16'"):
        catalog.gpu("a100-sxm4-80gb", SHIPPED).peak("fp8")


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(files.UnknownNameError, match="nearest: h100-sxm5-80gb"):
        catalog.gpu("h100-sxm-80gb", SHIPPED)


def test_a_wrong_field_is_named_with_its_file(tmp_path: Path) -> None:
    path = tmp_path / "odd.yaml"
    path.write_text("{name: odd, kind: host, bandwidth: 63, sources: {'*': here}}")
    with pytest.raises(files.CatalogError, match=r"odd\.yaml: bandwidth: 63 is not"):
        files.read(path, LinkSpec)


def test_broken_yaml_is_named_with_its_file(tmp_path: Path) -> None:
    path = tmp_path / "odd.yaml"
    path.write_text("name: [")
    with pytest.raises(files.CatalogError, match=r"odd\.yaml"):
        files.read(path, LinkSpec)


def test_a_number_without_a_source_is_refused() -> None:
    entry = catalog.gpu("h100-sxm5-80gb", SHIPPED).model_dump() | {
        "sources": {"tdp": "x"}
    }
    with pytest.raises(ValueError, match=r"no source for .*memory_capacity"):
        GpuSpec.model_validate(entry)


def test_a_source_of_a_field_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match=r"unknown fields \['nods'\]"):
        ClusterSpec(name="a", node="dgx-h100", nodes=1, sources={"nods": "x"})


def test_a_scale_out_link_without_fabric_is_refused() -> None:
    entry = catalog.link("ib-ndr", SHIPPED).model_dump() | {"fabric": None}
    with pytest.raises(ValueError, match="a scale-out link has a fabric"):
        LinkSpec.model_validate(entry)


def test_a_domain_of_half_a_node_is_refused() -> None:
    entry = catalog.node("dgx-h100", SHIPPED).model_dump() | {"scale_up_domain": 12}
    with pytest.raises(ValueError, match="does not hold whole nodes of 8"):
        NodeSpec.model_validate(entry)


def test_oversubscription_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match=r"given 0\.5"):
        TierSpec(name="pod", gpus=64, oversubscription=0.5)


@pytest.mark.parametrize("outer", [32, 16, 80])
def test_tiers_that_do_not_grow_by_whole_units_are_refused(outer: int) -> None:
    tiers = (
        TierSpec(name="leaf", gpus=32, oversubscription=1),
        TierSpec(name="pod", gpus=outer, oversubscription=1),
    )
    with pytest.raises(ValueError, match=f"pod has {outer} GPUs"):
        ClusterSpec(name="a", node="dgx-h100", nodes=20, tiers=tiers)


def test_a_tier_that_splits_a_domain_is_refused() -> None:
    tiers = (TierSpec(name="leaf", gpus=36, oversubscription=1),)
    spec = ClusterSpec(name="a", node="gb200-nvl72", nodes=18, tiers=tiers)
    with pytest.raises(ValueError, match="not whole scale-up domains of 72"):
        catalog.resolve_cluster(spec, SHIPPED)


def test_nodes_must_be_a_positive_count() -> None:
    with pytest.raises(ValueError, match="greater than 0"):
        ClusterSpec(name="a", node="dgx-h100", nodes=0)


@pytest.mark.parametrize(
    ("own", "entry"),
    [
        ("p5.48xlarge", "aws-p5.48xlarge"),
        ("p4d.24xlarge", "aws-p4d.24xlarge"),
        ("Standard_ND96isr_H100_v5", "azure-nd96isr-h100-v5"),
        ("a3-megagpu-8g", "gcp-a3-megagpu-8g"),
        ("BM.GPU.B200.8", "oci-bm.gpu.b200.8"),
        ("dgx-h100", "dgx-h100"),
    ],
)
def test_machines_of_clouds_are_found_by_the_clouds_own_names(
    own: str, entry: str
) -> None:
    assert catalog.node(own, SHIPPED).name == entry
