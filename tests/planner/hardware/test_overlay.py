"""A user's folder over ours: what it adds and replaces, and what is refused."""

import pickle
from pathlib import Path

import pytest

from planner.hardware import catalog
from planner.hardware.calibration import calibrated, calibration, network
from planner.hardware.overlay import laid_over
from planner.hardware.reading import files
from planner.hardware.reading.files import SHIPPED, Catalog

LINK = """
name: my-link
kind: scale-up
bandwidth: 100 GB/s
sources: {'*': measured here}
"""
NODE = """
name: my-node
gpu: h100-sxm5-80gb
gpus_per_node: 8
scale_up: nvlink4
scale_up_domain: 8
nic: ib-ndr
nics_per_node: 8
sources: {'*': our rack}
"""
CLUSTER = """
name: my-cluster
node: my-node
nodes: 4
sources: {'*': our rack}
"""
OUR_H100 = (files.folder("gpus") / "h100-sxm5-80gb.yaml").read_text()


def with_files(where: Path, given: dict[str, str]) -> Catalog:
    for name, text in given.items():
        (where / name).parent.mkdir(exist_ok=True)
        (where / name).write_text(text)
    return laid_over(where)


def test_new_entries_join_ours_in_their_catalog_alone(tmp_path: Path) -> None:
    own = with_files(
        tmp_path, {"nodes/my-node.yaml": NODE, "clusters/my-cluster.yml": CLUSTER}
    )
    cluster = catalog.resolve_cluster(catalog.cluster("my-cluster", own), own)
    assert (cluster.gpus, cluster.catalog) == (32, own)
    assert {"my-node", "dgx-h100"} <= {*own.names("nodes")}
    assert "my-cluster" not in SHIPPED.names("clusters")


def test_a_file_of_the_same_name_replaces_ours(tmp_path: Path) -> None:
    """A power cap: another clock, so another peak."""
    capped = OUR_H100.replace("989 TFLOP/s", "800 TFLOP/s")
    own = with_files(tmp_path, {"gpus/h100-sxm5-80gb.yaml": capped})
    peaks = [
        catalog.resolve_cluster(catalog.cluster("dgx-h100-8-nodes", one), one)
        for one in (SHIPPED, own, SHIPPED)
    ]
    assert [its.gpu.peak_bf16 for its in peaks] == [989e12, 800e12, 989e12]


def test_a_catalog_is_a_value(tmp_path: Path) -> None:
    """Equal where its files are; kept as it was read when they change."""
    own = with_files(tmp_path, {"links/my-link.yaml": LINK})
    again = pickle.loads(pickle.dumps(own))  # noqa: S301  # of this test
    assert (again, hash(again)) == (own, hash(own))
    faster = with_files(tmp_path, {"links/my-link.yaml": LINK.replace("100", "200")})
    rates = [catalog.link("my-link", one).bandwidth for one in (own, faster, again)]
    assert rates == [100e9, 200e9, 100e9]


def test_measurements_are_laid_over_too(tmp_path: Path) -> None:
    source = (files.folder("calibration") / "network.yaml").read_text()
    l40 = """
name: l40
base: h100-sxm5-80gb
transferred: {gemm: a, grouped_gemm: b, attention: c, attention_waves: d,
  memory: e, scale_up: f}
"""
    mine = source.replace("efficiency: 0.92", "efficiency: 0.5")
    given = {"calibration/network.yaml": mine, "calibration/l40.yaml": l40}
    own = with_files(tmp_path, given)
    h100 = calibration("h100-sxm5-80gb", own)
    assert network("infiniband", own).efficiency == 0.5
    assert calibration("l40", own).attention == h100.attention
    assert "l40s" in calibrated(own)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"links/my-link.yaml": LINK.replace("sources: {'*': measured here}", "")},
            r"my-link\.yaml: .*no source for \['bandwidth'",
        ),
        (
            {"links/my-link.yaml": LINK.replace("100 GB/s", "100 GHz")},
            r"my-link\.yaml: bandwidth: GHz is no unit here",
        ),
        (
            {"links/my-link.yaml": LINK, "links/my-link.yml": LINK},
            r"my-link\.yml: name: my-link is also in my-link\.yaml",
        ),
        (
            {"links/my-link.yaml": LINK, "links/other.yaml": LINK},
            r"other\.yaml: name: must be other, as the file",
        ),
        (
            {"links/my-link.yaml": LINK + "links: 3\nper_link: 25 GB/s\n"},
            r"my-link\.yaml: .*bandwidth 100 GB/s contradicts 3 links of 25 GB/s",
        ),
        (
            {"nodes/my-node.yaml": NODE.replace("nvlink4", "nvlink5")},
            r"my-node\.yaml: scale_up: 450 GB/s contradicts nvlink5",
        ),
        (
            {"nodes/my-node.yaml": NODE.replace("nvlink4", "nvlink44")},
            r"my-node\.yaml: scale_up: no 'nvlink44' among links; nearest: nvlink4",
        ),
        (
            {"nodes/my-node.yaml": NODE.replace("ib-ndr", "nvlink4")},
            r"my-node\.yaml: nic: nvlink4 is a scale-up link; a scale-out",
        ),
        (
            {
                "nodes/my-node.yaml": NODE.replace("nvlink4", "pcie5-bus").replace(
                    "domain: 8", "domain: 16"
                )
            },
            r"scale_up_domain: bus pcie5-bus joins at most 8 GPUs here; given 16",
        ),
        (
            {
                "nodes/my-node.yaml": NODE.replace("h100-sxm5-80gb", "mi300x")
                .replace("nvlink4", "xgmi3")
                .replace("domain: 8", "domain: 16")
            },
            r"scale_up_domain: mesh xgmi3 joins at most 8 GPUs here; given 16",
        ),
        (
            {
                "gpus/h100-sxm5-80gb.yaml": OUR_H100.replace(
                    "nvlink_bandwidth: 450", "nvlink_bandwidth: 900"
                )
            },
            r"nvlink_bandwidth: 900 GB/s contradicts nvlink4, which carries 450",
        ),
        (
            {"gpus/h100-sxm5-80gb.yaml": OUR_H100.replace("pcie5-x16", "nvlink4")},
            r"host_link: nvlink4 is a scale-up link; a host link is needed",
        ),
        (
            {"clusters/my-cluster.yaml": CLUSTER},
            r"my-cluster\.yaml: node: no 'my-node' among nodes",
        ),
        (
            {
                "nodes/my-node.yaml": NODE,
                "clusters/my-cluster.yaml": CLUSTER
                + "tiers: [{name: rack, gpus: 12, oversubscription: 1}]\n",
            },
            r"my-cluster\.yaml: tiers: .*not whole scale-up domains of 8",
        ),
        (
            {"calibration/h100-sxm5-80gb.yaml": "name: h100-sxm5-80gb\nbase: h1000"},
            r"h100-sxm5-80gb\.yaml: base: no calibration for 'h1000'",
        ),
        (
            {"calibration/nccl.yaml": "source: me"},
            "NCCL's constants are not replaced",
        ),
        ({"links/my-link.yaml": "name: ["}, r"(?s)my-link\.yaml: .*line 1"),
        (
            {
                "links/nvlink4.yaml": LINK.replace("my-link", "nvlink4").replace(
                    "100", "600"
                )
            },
            r"h\d00-.*yaml: nvlink_bandwidth: 450 GB/s contradicts nvlink4",
        ),
        ({"gpu/my.yaml": LINK}, "no 'gpu' among subfolders; nearest: gpus"),
    ],
)
def test_a_wrong_folder_is_refused_whole_with_file_and_field(
    tmp_path: Path, given: dict[str, str], message: str
) -> None:
    with pytest.raises(files.CatalogError, match=message):
        with_files(tmp_path, given)


def test_a_folder_that_is_none_or_empty_is_refused(tmp_path: Path) -> None:
    with pytest.raises(files.CatalogError, match="no such folder"):
        laid_over(tmp_path / "nowhere")
    with pytest.raises(files.CatalogError, match="has none of the subfolders"):
        laid_over(tmp_path)
