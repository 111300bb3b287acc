"""Makes one virtual environment per framework: `make_environments.py [NAME...]`.

They lie in the folder that PLANNER_ENVIRONMENTS names, `.environments` in the
repository unless it is set; one that is there with the same pins is kept.
"""

import json
import os
import subprocess
import sys
import venv
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import yaml

HERE = Path(__file__).resolve().parent
PINS = HERE / "environments.yaml"
FOLDER = Path(
    os.environ.get("PLANNER_ENVIRONMENTS", HERE.parents[1] / ".environments")
).resolve()


def pins() -> dict[str, dict[str, list[str]]]:
    """Requirements of every environment, and packages without theirs. [text]."""
    every: dict[str, dict[str, list[str]]] = yaml.safe_load(PINS.read_text())
    return every


def python_of(name: str) -> Path:
    """The interpreter of a framework's environment, whether it is there or not.

    Args:
        name: A framework of environments.yaml. [text]

    Returns:
        A path. [-]
    """
    return FOLDER / name / "bin" / "python"


def extensions_of(name: str) -> Path:
    """Folder for a framework's operators, which all of its processes build once.

    Args:
        name: A framework of environments.yaml. [text]

    Returns:
        A path; another environment's flags would have operators built anew. [-]
    """
    return FOLDER / name / "extensions"


def make(name: str, wanted: dict[str, list[str]]) -> None:
    """Make an environment; do nothing where it is there with these pins.

    Args:
        name: A framework. [text]
        wanted: Requirements, as pip reads them, by `requires` and `alone`. [text]

    Raises:
        subprocess.CalledProcessError: pip cannot install one.
    """
    stamp = FOLDER / name / "pins.json"
    said = json.dumps(wanted)
    if stamp.exists() and stamp.read_text() == said:
        return
    venv.create(FOLDER / name, with_pip=True, clear=True)
    # What is imported is compiled then: a small part of what is installed.
    pip = [str(python_of(name)), "-m", "pip", "install", "-q", "--no-compile"]
    subprocess.run([*pip, *wanted["requires"]], check=True)
    if "alone" in wanted:
        subprocess.run([*pip, "--no-deps", *wanted["alone"]], check=True)
    stamp.write_text(said)


def main() -> None:
    """Make the environments that the command line names, or all."""
    every = pins()
    names = sys.argv[1:] or list(every)
    for name in names:
        words = (word for these in every[name].values() for word in these)
        print(f"{name}: {', '.join(words)}", flush=True)  # noqa: T201  # a script
    with ThreadPoolExecutor(max_workers=2) as pool:
        list(pool.map(make, names, [every[name] for name in names]))


if __name__ == "__main__":
    main()
