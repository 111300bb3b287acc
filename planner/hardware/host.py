"""Bandwidths between a GPU and its host: copies over the link, memory behind it."""

from collections.abc import Mapping
from functools import cache

from pydantic import BaseModel, ConfigDict

from planner.hardware.measured import Fraction, Measured, Positive
from planner.hardware.reading.files import UnknownNameError, read
from planner.hardware.reading.numbers import PositiveInt
from planner.hardware.reading.quantities import BytesPerSecond
from planner.hardware.reading.shipped import shipped


class HostCalibration(Measured):
    """One GPU's share of its host.

    Attributes:
        copy_efficiency: Rate of pinned copies over the rate of the link. [1]
        memory_bandwidth: The host's memory over its GPUs, both directions. [B/s]
        source: Source of the numbers. [-]
    """

    copy_efficiency: Fraction
    memory_bandwidth: BytesPerSecond


class NvmeCalibration(Measured):
    """One local NVMe drive under large reads and writes of pinned memory.

    Attributes:
        read_bandwidth: Rate of reads. [B/s]
        write_bandwidth: Rate of writes. [B/s]
        source: Source of the numbers. [-]
    """

    read_bandwidth: BytesPerSecond
    write_bandwidth: BytesPerSecond


class StagingBuffers(Measured):
    """Pinned buffers of one rank between its GPU and NVMe.

    Attributes:
        optimizer_buffers: Buffers of optimizer states, each of fp32 numbers. [1]
        optimizer_parameters: Most parameters in a buffer of optimizer states. [1]
        parameter_buffers: Buffers of parameters, each of 16-bit numbers. [1]
        parameters: Parameters in a buffer of parameters. [1]
        source: Source of the numbers. [-]
    """

    optimizer_buffers: PositiveInt
    optimizer_parameters: Positive
    parameter_buffers: PositiveInt
    parameters: Positive


class LaunchTimes(Measured):
    """Time of hosts to launch kernels over that of DGX H100's, Xeon 8480C.

    Attributes:
        links: Ratio of the usual hosts on a kind of link. [1]
        source: Source of the numbers. [-]
    """

    links: Mapping[str, Positive]


class _HostFile(BaseModel):
    """Drives, buffers, launches, and host link to its calibration."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    nvme: NvmeCalibration
    staging: StagingBuffers
    launches: LaunchTimes
    links: Mapping[str, HostCalibration]


def host(link: str) -> HostCalibration:
    """Bandwidths between a GPU and its host over a kind of link.

    Raises:
        UnknownNameError: No such link; lists the known links.
    """
    links = _file().links
    if link not in links:
        raise UnknownNameError(f"no host link {link!r}; known are {', '.join(links)}")
    return links[link]


def nvme() -> NvmeCalibration:
    """Rates of one local NVMe drive."""
    return _file().nvme


def staging() -> StagingBuffers:
    """Pinned buffers of a rank whose states lie on NVMe."""
    return _file().staging


def launch_time(link: str) -> float:
    """Time of a host to launch kernels over that of DGX H100's.

    Returns:
        The ratio; 1 for hosts that nobody measured. [1]
    """
    return _file().launches.links.get(link, 1.0)


@cache
def _file() -> _HostFile:
    """The file of constants, read once."""
    return read(shipped("hardware") / "calibration" / "host.yaml", _HostFile)
