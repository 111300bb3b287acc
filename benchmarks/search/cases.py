"""The jobs that are searched: ours and those that only a benchmark wants."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = (ROOT / "configs" / "jobs", Path(__file__).resolve().parent / "jobs")
CHEAP = (
    "gpt3-175b-512-a100",
    "gpt3-175b-4096-a100",
    "llama-3.1-405b-16k-h100",
    "llama-3.1-405b-128k-16k-h100",
    "deepseek-v3-2048-h800",
)
"""Cases of a plain run: seconds each in the default space."""
CASES = (
    *CHEAP,
    "mt-nlg-530b-5120-a100",
    "dense-2t-100k-gb200",
    "moe-2t-100k-gb200",
)
"""All cases, smaller clusters first."""


def path_of(name: str) -> Path:
    """Find a job.

    Args:
        name: Of a file in one of the folders, without its suffix. [text]

    Returns:
        The file.

    Raises:
        SystemExit: No folder has it.
    """
    for folder in FOLDERS:
        if (folder / f"{name}.yaml").exists():
            return folder / f"{name}.yaml"
    known = sorted(path.stem for folder in FOLDERS for path in folder.glob("*.yaml"))
    raise SystemExit(f"no job {name}; known: {', '.join(known)}")
