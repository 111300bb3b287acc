"""Every file of the catalog loads, is sourced and round-trips; slips are explained."""

from pathlib import Path

import pytest

from hardware import catalog
from hardware.specs import ClusterSpec, GpuSpec, LinkSpec, NodeSpec, TierSpec

READERS = {
    "gpus": catalog.gpu,
    "links": catalog.link,
    "nodes": catalog.node,
    "clusters": catalog.cluster,
}
ENTRIES = [(kind, name) for kind in READERS for name in catalog.names(kind)]


@pytest.mark.parametrize(("kind", "name"), ENTRIES)
def test_an_entry_loads_is_sourced_and_round_trips(kind: str, name: str) -> None:
    entry = READERS[kind](name)
    assert entry.name == name
    assert entry.unsourced() == []
    assert type(entry).model_validate_json(entry.model_dump_json()) == entry


@pytest.mark.parametrize("name", catalog.names("clusters"))
def test_a_cluster_resolves_to_whole_domains_below_a_fabric(name: str) -> None:
    cluster = catalog.resolve_cluster(catalog.cluster(name))
    assert cluster.gpus == cluster.spec.nodes * cluster.node.gpus_per_node
    assert cluster.scale_up.bandwidth > cluster.nic_share > 0
    assert cluster.gpu.nvlink == cluster.node.scale_up
    assert cluster.host_link.kind == "host"


@pytest.mark.parametrize("name", catalog.names("clusters"))
def test_a_cluster_file_names_its_schema_first(name: str) -> None:
    text = (catalog.folder("clusters") / f"{name}.yaml").read_text()
    first = "# yaml-language-server: $schema=../schema/cluster.json\n"
    assert text.startswith(first)


def test_the_llama3_cluster_is_that_of_the_paper() -> None:
    cluster = catalog.resolve_cluster(catalog.cluster("llama3-h100-16k"))
    assert cluster.gpus == 16384
    assert cluster.nic_share == 50e9
    assert [(t.gpus, t.oversubscription) for t in cluster.spec.tiers] == [
        (16, 1),
        (3072, 7),
    ]


def test_an_nvl72_rack_is_18_nodes_of_4() -> None:
    node = catalog.node("gb200-nvl72")
    assert (node.gpus_per_node, node.scale_up_domain) == (4, 72)


def test_memory_is_what_nvidia_smi_shows() -> None:
    assert catalog.gpu("h100-sxm5-80gb").memory_capacity == 81559 * 2**20


def test_peaks_are_dense_and_by_number_format() -> None:
    gpu = catalog.gpu("h100-sxm5-80gb")
    assert (gpu.peak("bf16"), gpu.peak("fp8")) == (989e12, 1979e12)
    with pytest.raises(ValueError, match=r"no fp8 units; it has \['bf16', 'fp16'"):
        catalog.gpu("a100-sxm4-80gb").peak("fp8")


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(catalog.UnknownNameError, match="nearest: h100-sxm5-80gb"):
        catalog.gpu("h100-sxm-80gb")


def test_a_wrong_field_is_named_with_its_file(tmp_path: Path) -> None:
    path = tmp_path / "odd.yaml"
    path.write_text("{name: odd, kind: host, bandwidth: 63, sources: {'*': here}}")
    with pytest.raises(catalog.CatalogError, match=r"odd\.yaml: bandwidth: 63 is not"):
        catalog.read(path, LinkSpec)


def test_broken_yaml_is_named_with_its_file(tmp_path: Path) -> None:
    path = tmp_path / "odd.yaml"
    path.write_text("name: [")
    with pytest.raises(catalog.CatalogError, match=r"odd\.yaml"):
        catalog.read(path, LinkSpec)


def test_a_number_without_a_source_is_refused() -> None:
    entry = catalog.gpu("h100-sxm5-80gb").model_dump() | {"sources": {"tdp": "x"}}
    with pytest.raises(ValueError, match=r"no source for .*memory_capacity"):
        GpuSpec.model_validate(entry)


def test_a_source_of_a_field_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match=r"unknown fields \['nods'\]"):
        ClusterSpec(name="a", node="dgx-h100", nodes=1, sources={"nods": "x"})


def test_a_scale_out_link_without_fabric_is_refused() -> None:
    entry = catalog.link("ib-ndr").model_dump() | {"fabric": None}
    with pytest.raises(ValueError, match="a scale-out link has a fabric"):
        LinkSpec.model_validate(entry)


def test_a_domain_of_half_a_node_is_refused() -> None:
    entry = catalog.node("dgx-h100").model_dump() | {"scale_up_domain": 12}
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
        catalog.resolve_cluster(spec)


def test_nodes_must_be_a_positive_count() -> None:
    with pytest.raises(ValueError, match="greater than 0"):
        ClusterSpec(name="a", node="dgx-h100", nodes=0)
