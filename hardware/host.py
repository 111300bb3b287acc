"""What a GPU reaches of its host: copies over their link, memory behind it."""

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict, PositiveInt

from hardware.files import UnknownNameError, find, read, remembered
from hardware.measured import Fraction, Measured, Positive
from hardware.units import BytesPerSecond


class HostCalibration(Measured):
    """One GPU's share of its host.

    Attributes:
        copy_efficiency: Rate of pinned copies over that of the link. [1]
        memory_bandwidth: The host's memory over its GPUs, both directions. [B/s]
        source: Where the numbers are from. [-]
    """

    copy_efficiency: Fraction
    memory_bandwidth: BytesPerSecond


class NvmeCalibration(Measured):
    """One local NVMe drive under large reads and writes of pinned memory.

    Attributes:
        read_bandwidth: Rate of reads. [B/s]
        write_bandwidth: Rate of writes. [B/s]
        source: Where the numbers are from. [-]
    """

    read_bandwidth: BytesPerSecond
    write_bandwidth: BytesPerSecond


class StagingBuffers(Measured):
    """Pinned buffers of one rank between its GPU and NVMe.

    Attributes:
        optimizer_buffers: Buffers of optimizer states, each of fp32 numbers. [1]
        optimizer_parameters: Most parameters in one. [1]
        parameter_buffers: Buffers of parameters, each of 16-bit numbers. [1]
        parameters: Parameters in one. [1]
        source: Where the numbers are from. [-]
    """

    optimizer_buffers: PositiveInt
    optimizer_parameters: Positive
    parameter_buffers: PositiveInt
    parameters: Positive


class _HostFile(BaseModel):
    """Drives, buffers, and host link to its calibration."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    nvme: NvmeCalibration
    staging: StagingBuffers
    links: Mapping[str, HostCalibration]


@remembered
def host(link: str) -> HostCalibration:
    """What a GPU reaches of its host over a kind of link.

    Args:
        link: Name of the host link, as in a GPU's data sheet. [text]

    Returns:
        Its share of the host. [-]

    Raises:
        UnknownNameError: No such link; lists those there are.
    """
    links = _file("host").links
    if link not in links:
        raise UnknownNameError(f"no host link {link!r}; known are {', '.join(links)}")
    return links[link]


def nvme() -> NvmeCalibration:
    """What one local NVMe drive reaches.

    Returns:
        Its rates. [-]
    """
    return _file("host").nvme


def staging() -> StagingBuffers:
    """Pinned buffers of a rank whose states lie on NVMe.

    Returns:
        How many, and how large. [-]
    """
    return _file("host").staging


@remembered
def _file(name: str) -> _HostFile:
    """The file of constants, read once."""
    return read(find("calibration", name), _HostFile)
