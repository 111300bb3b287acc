"""Networks between nodes by the names that people use."""

import re
from dataclasses import dataclass

from planner.hardware.catalog import link as link_of
from planner.hardware.reading.files import Catalog
from planner.hardware.specs import LinkSpec
from planner.hardware.spelling.words import UnknownNetworkError, words

_COUNTED = re.compile(r"(?P<nics>\d+)\s*[x\u00d7*]\s*(?P<rest>.+)")
_RATE = re.compile(r"\b(\d+)\s*(?:gb/?s|gbps|gbit/?s|g)?(?=e?\b|gbe|ge)")
_BITS = 8e-9
"""Gb/s of one byte a second. [Gb/B]"""


@dataclass(frozen=True)
class Network:
    """A network as a text describes it.

    Attributes:
        nic: Name of the link of one NIC. [-]
        nics: NICs of a node, where the text or the kind of fabric says. [1]
    """

    nic: str
    nics: int | None


def network_called(text: str, catalog: Catalog) -> Network:
    """The network that a text names, as `25 GbE`, `NDR`, `4 x 100G RoCE`.

    Args:
        text: Fabric, rate or generation of one port, maybe after a count. [text]

    Raises:
        UnknownNetworkError: No link, or several; lists them.
    """
    counted = _COUNTED.fullmatch(text.lower().strip())
    asked = _asked(counted["rest"] if counted else text)
    links = [link_of(name, catalog) for name in catalog.names("links")]
    every = [link for link in links if link.kind == "scale-out"]
    answering = [link for link in every if asked and asked <= _words(link)]
    plain = [link for link in answering if _own(link) <= asked | {str(link.fabric)}]
    matches = plain or answering
    if len(matches) != 1:
        choice = [link.name for link in matches or _akin(asked, every)]
        problem = "may be any of" if matches else "is no network here; nearest:"
        raise UnknownNetworkError(f"network {text!r} {problem} {', '.join(choice)}")
    (link,) = matches
    alone = 1 if link.fabric in words().one_nic else None
    return Network(link.name, int(counted["nics"]) if counted else alone)


def _asked(text: str) -> set[str]:
    """Fabric, rate and generation that a text names."""
    plain = re.sub(r"omni[\s-]path", "omnipath", text.lower())
    rates = {match[1] for match in _RATE.finditer(plain)}
    rest = re.sub(r"\b\d+\s*(?:gb/?s|gbps|gbit/?s|g(?=\b))?", " ", plain)
    names = {part for part in re.split(r"[\s_/-]+", rest) if part}
    return rates | {str(words().fabrics.get(name, name)) for name in names}


def _words(link: LinkSpec) -> set[str]:
    """Words that a link answers to."""
    return {str(link.fabric), f"{link.bandwidth * _BITS:g}", *_own(link)}


def _own(link: LinkSpec) -> set[str]:
    """Words of a link's name."""
    return {str(words().fabrics.get(part, part)) for part in link.name.split("-")}


def _akin(asked: set[str], every: list[LinkSpec]) -> list[LinkSpec]:
    """Links with a word in common, or all of them."""
    return [link for link in every if asked & _words(link)] or every
