"""The environments of the frameworks, and how a test runs something in one."""

import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from make_environments import extensions_of, python_of

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def run_in() -> Run:
    """Runs Python in a framework's environment.

    ``run_in("deepspeed", ["-m", "x"], timeout=60, env={...}, cwd=...)`` gives the
    finished process with its output as text; a framework without an environment
    fails the test and says how to make it.
    """

    def run(
        name: str,
        words: Sequence[str],
        *,
        timeout: float = 120.0,
        env: dict[str, str] | None = None,
        cwd: Path | None = None,
        stdin: str | None = None,
    ) -> subprocess.CompletedProcess[str]:
        python = python_of(name)
        if not python.exists():
            pytest.fail(f"run tests/frameworks/make_environments.py {name} first")
        clean = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        path = f"{python.parent}{os.pathsep}{clean['PATH']}"
        own = {
            "PATH": path,
            "OMP_NUM_THREADS": "1",
            "TORCH_EXTENSIONS_DIR": str(extensions_of(name)),
        }
        return subprocess.run(
            [str(python), *words],
            capture_output=True,
            input=stdin,
            text=True,
            timeout=timeout,
            cwd=cwd,
            env={**clean, **own, **(env or {})},
            check=False,
        )

    return run
