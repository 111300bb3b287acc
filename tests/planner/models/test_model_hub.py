"""A hub id is fetched where it can be, and a clear refusal where it cannot."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from planner.models import (
    ModelConfigError,
    find_config,
    load_model,
    preset,
    read_preset,
)


def _hub(
    monkeypatch: pytest.MonkeyPatch, download: object, answers: object = None
) -> None:
    """The library, with a download of ours and a hub that answers or raises."""

    def metadata(url: str, timeout: float) -> None:
        assert url.endswith("/config.json")
        assert timeout <= 10
        if isinstance(answers, Exception):
            raise answers

    fake = SimpleNamespace(
        hf_hub_download=download,
        hf_hub_url=lambda repo, file: f"https://hub/{repo}/{file}",
        get_hf_file_metadata=metadata,
    )
    monkeypatch.setitem(sys.modules, "huggingface_hub", fake)


def test_config_of_a_hub_id_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def download(repo: str, file: str) -> str:
        assert (repo, file) == ("owner/model", "config.json")
        (tmp_path / file).write_text(json.dumps(read_preset("qwen3-8b").config))
        return str(tmp_path / file)

    _hub(monkeypatch, download)
    model = load_model("owner/model")
    assert (model.name, model.runs) == ("owner/model", preset("qwen3-8b").runs)
    assert model.source == "Hugging Face owner/model, config.json"


def test_a_folder_of_that_name_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _hub(monkeypatch, None)
    folder = tmp_path / "owner" / "model"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(read_preset("gpt2").config))
    assert load_model("owner/model", tmp_path).layers == 12


def test_offline_is_said_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """The download is not tried: it would ask again and again for half a minute."""

    def download(_repo: str, _file: str, *, local_files_only: bool = False) -> str:
        assert local_files_only
        raise FileNotFoundError("not in the cache")

    _hub(monkeypatch, download, ConnectionError("no route\nlong trace"))
    with pytest.raises(ModelConfigError) as caught:
        load_model("owner/model")
    assert "(ConnectionError: no route)" in str(caught.value)
    assert "download its config.json elsewhere and give the path" in str(caught.value)


def test_offline_a_copy_in_the_cache_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "config.json"
    file.write_text(json.dumps(read_preset("gpt2").config))

    def download(_repo: str, _file: str, *, local_files_only: bool = False) -> str:
        assert local_files_only
        return str(file)

    _hub(monkeypatch, download, ConnectionError("no route"))
    assert load_model("owner/model").layers == 12


def test_missing_library_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(ModelConfigError, match="without huggingface_hub: install it"):
        load_model("owner/model")


@pytest.mark.parametrize("reference", ["./x/y", "a/b/c", "jobs/model.json", "zzz"])
def test_a_path_is_no_hub_id(
    reference: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _hub(monkeypatch, None)
    with pytest.raises(ModelConfigError, match="neither a preset nor a file: "):
        find_config(reference, tmp_path)
