"""Makes one virtual environment per framework: `make_environments.py [NAME...]`.

They lie in the folder that PLANNER_ENVIRONMENTS names, `.environments` in the
repository unless it is set; one that is there with the same pins is kept.
"""

import json
import os
import subprocess
import sys
import venv
from pathlib import Path

import yaml

HERE = Path(__file__).resolve().parent
PINS = HERE / "environments.yaml"
FOLDER = Path(
    os.environ.get("PLANNER_ENVIRONMENTS", HERE.parents[1] / ".environments")
).resolve()


def pins() -> dict[str, list[str]]:
    """Requirements of every environment, by framework. [text]."""
    every = yaml.safe_load(PINS.read_text())
    return {name: list(one["requires"]) for name, one in every.items()}


def python_of(name: str) -> Path:
    """The interpreter of a framework's environment, whether it is there or not.

    Args:
        name: A framework of environments.yaml. [text]

    Returns:
        A path. [-]
    """
    return FOLDER / name / "bin" / "python"


def make(name: str, requires: list[str]) -> None:
    """Make an environment; do nothing where it is there with these pins.

    Args:
        name: A framework. [text]
        requires: Requirements, as pip reads them. [text]

    Raises:
        subprocess.CalledProcessError: pip cannot install one.
    """
    stamp = FOLDER / name / "pins.json"
    wanted = json.dumps(requires)
    if stamp.exists() and stamp.read_text() == wanted:
        return
    venv.create(FOLDER / name, with_pip=True, clear=True)
    pip = [str(python_of(name)), "-m", "pip", "install", "-q", *requires]
    subprocess.run(pip, check=True)
    stamp.write_text(wanted)


def main() -> None:
    """Make the environments that the command line names, or all."""
    every = pins()
    for name in sys.argv[1:] or every:
        print(f"{name}: {', '.join(every[name])}", flush=True)  # noqa: T201  # a script
        make(name, every[name])


if __name__ == "__main__":
    main()
