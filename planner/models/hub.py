"""A config.json from the Hugging Face hub, where huggingface_hub is installed."""

import re
from importlib import import_module
from pathlib import Path
from types import ModuleType

from planner.models.errors import ModelConfigError

_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_CONFIG = "config.json"
PATIENCE = 5.0
"""Longest wait for the hub's word. [s]"""
_FILES = (".json", ".yaml", ".yml")


def is_hub_id(reference: str) -> bool:
    """Tell if a reference looks like an owner and a name, and not like a file.

    Args:
        reference: Reference that the user wrote.

    Returns:
        True where the hub may know the reference.
    """
    named = _ID.fullmatch(reference) is not None
    return named and not reference.endswith(_FILES)


def hub_config(repo: str) -> Path:
    """Path of a repository's config.json, downloaded or from the hub's cache.

    Args:
        repo: Owner and name, such as "meta-llama/Llama-3.1-8B".

    Returns:
        Path of the local copy.

    Raises:
        ModelConfigError: huggingface_hub is not installed, or the hub does not
            answer, does not know the repository or refuses access.
    """
    start = f"model {repo!r} is neither a preset nor a file, and the hub"
    otherwise = "download its config.json elsewhere and give the path"
    try:
        hub = import_module("huggingface_hub")
    except ImportError as error:
        raise ModelConfigError(
            f"{start} cannot be asked without huggingface_hub: install it, or "
            f"{otherwise}"
        ) from error
    silence = _silence(hub, repo)
    try:
        kept = {"local_files_only": True} if silence else {}
        return Path(hub.hf_hub_download(repo, _CONFIG, **kept))
    except (OSError, RuntimeError, ValueError) as missing:
        cause = silence or missing
        reason = str(cause).strip().split("\n", maxsplit=1)[0]
        raise ModelConfigError(
            f"{start} did not give it ({type(cause).__name__}: {reason}); offline or "
            f"without access, {otherwise}"
        ) from cause


def _silence(hub: ModuleType, repo: str) -> Exception | None:
    """The error of one question to the hub; None where it answers.

    A download asks six times, half a minute, where there is no network.
    """
    try:
        hub.get_hf_file_metadata(hub.hf_hub_url(repo, _CONFIG), timeout=PATIENCE)
    except Exception as error:  # noqa: BLE001  # HTTP libraries of its versions differ
        return error
    return None
