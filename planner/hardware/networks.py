"""Efficiencies of traffic between scale-up domains, per kind of fabric."""

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict

from planner.hardware.measured import Fraction, Measured, Positive
from planner.hardware.reading.files import Catalog, UnknownNameError, parse, remembered
from planner.hardware.specs import FabricKind


class NetworkCalibration(Measured):
    """Parts of the NIC line rate that traffic between domains reaches.

    Attributes:
        efficiency: Large all-gather and reduce-scatter rings. [1]
        all_to_all_efficiency: Even all-to-all. [1]
        p2p_efficiency: One rank to another. [1]
        latency_factor: Latency of a hop over NCCL's latency for InfiniBand. [1]
        source: Source of the numbers. [-]
    """

    efficiency: Fraction
    all_to_all_efficiency: Fraction
    p2p_efficiency: Fraction
    latency_factor: Positive = 1.0


class _NetworkFile(BaseModel):
    """Fabric kind to its calibration."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    fabrics: Mapping[FabricKind, NetworkCalibration]


@remembered
def networks(catalog: Catalog) -> Mapping[str, NetworkCalibration]:
    """Calibrations of all kinds of fabric.

    Raises:
        CatalogError: The file is wrong; names the field.
    """
    file = catalog.find("calibration", "network")
    fabrics = parse(file.path, file.content(), _NetworkFile).fabrics
    return {str(kind): facts for kind, facts in fabrics.items()}


def network(kind: str | None, catalog: Catalog) -> NetworkCalibration:
    """Calibration of traffic between domains on a kind of fabric.

    Args:
        kind: `infiniband`, `roce`, `efa` or another of `planner.hardware.specs`; None,
            for a link without a fabric, is refused. [-]

    Raises:
        UnknownNameError: No such kind; lists the known kinds.
    """
    fabrics = networks(catalog)
    if kind is None or kind not in fabrics:
        raise UnknownNameError(f"no fabric {kind!r}; fabrics are {', '.join(fabrics)}")
    return fabrics[kind]
