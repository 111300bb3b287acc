"""What a GPU reaches of its host: copies over their link, memory behind it."""

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict

from hardware.files import UnknownNameError, find, read, remembered
from hardware.measured import Fraction, Measured
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


class _HostFile(BaseModel):
    """Host link to its calibration."""

    model_config = ConfigDict(frozen=True, extra="forbid")

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
    links = read(find("calibration", "host"), _HostFile).links
    if link not in links:
        raise UnknownNameError(f"no host link {link!r}; known are {', '.join(links)}")
    return links[link]
