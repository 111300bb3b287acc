"""The jobs that are searched, ours and those that only a benchmark wants."""

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OWN = Path(__file__).resolve().parent / "jobs"
FOLDERS = (ROOT / "configs" / "jobs", OWN)
SPACES = {
    "default": ("search.space=default",),
    "full": ("search.space=full",),
    "Calculon's axes": (
        "search.space=full",
        "search.offload=true",
        "search.cp=1",
        "search.schedule=[1f1b, interleaved]",
    ),
}
"""Each space of the page with the assignments that ask for it. [text]"""
CHEAP = (
    "gpt3-175b-512-a100",
    "gpt3-175b-4096-a100",
    "llama-3.1-405b-16k-h100",
    "llama-3.1-405b-128k-16k-h100",
    "deepseek-v3-2048-h800",
)
"""Jobs of a plain run: seconds each in the default space."""
JOBS = (
    *CHEAP,
    "mt-nlg-530b-5120-a100",
    "dense-2t-100k-gb200",
    "moe-2t-100k-gb200",
)
"""All jobs of the default and the full space, smaller clusters first."""
FLEETS = ("llama-3.1-70b-512-h100-256-a100", "llama-3.1-70b-five-kinds")
"""Jobs on pools of two and of five kinds of GPU, in the default space."""
BESIDE_CALCULON = "gpt3-175b-512-a100-tp32"
"""The job whose full space is held against Calculon's."""
BOTH = ("full", "Calculon's axes")
"""Spaces of that job: without offload; with offload, on the axes of Calculon."""


@dataclass(frozen=True)
class Case:
    """One job in one space, as one process searches it."""

    job: str
    space: str
    path: Path
    assignments: tuple[str, ...]
    """Assignments as the command line's ``--set`` takes them. [text]"""


def case(name: str, space: str) -> Case:
    """A job in a space.

    Args:
        name: Name of a job's file. [text]
        space: A key of ``SPACES``. [text]

    Returns:
        The case to run.

    Raises:
        SystemExit: No folder has the job.
    """
    return Case(name, space, path_of(name), SPACES[space])


def of_the_page() -> tuple[Case, ...]:
    """Every case that the page is to show, in the page's order."""
    plain = [case(name, space) for name in JOBS for space in ("default", "full")]
    fleets = [case(name, "default") for name in FLEETS]
    beside = [case(BESIDE_CALCULON, space) for space in BOTH]
    return (*plain, *fleets, *beside)


def path_of(name: str) -> Path:
    """Find a job.

    Args:
        name: Name of a file in one of the folders, without its suffix. [text]

    Returns:
        The file.

    Raises:
        SystemExit: No folder has the file.
    """
    for folder in FOLDERS:
        if (folder / f"{name}.yaml").exists():
            return folder / f"{name}.yaml"
    known = sorted(path.stem for folder in FOLDERS for path in folder.glob("*.yaml"))
    raise SystemExit(f"no job {name}; known: {', '.join(known)}")
