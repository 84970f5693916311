"""The program itself: what it answers, and that a model in a folder reaches no network."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from semantic_index.embedders import FolderEmbedder, ServiceEmbedder, Unusable

from tests.semantic.models import embedding_service, model_folder

PROGRAM = (sys.executable, "-P", "-m", "semantic_index")
TEXTS = ["check the credential", "an invoice", ""]


def said(folder: Path, *options: str, ask: tuple[dict[str, Any], ...] = (), **variables: str) -> list[dict[str, Any]]:
    """The answers to these requests."""
    done = subprocess.run(
        [*PROGRAM, "--store", str(folder / "v.db"), *options],
        input="".join(json.dumps({**request, "id": number}) + "\n" for number, request in enumerate(ask, 1)),
        env={"PATH": os.environ["PATH"], **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


ADD = {"do": "add", "contents": [["x", [[1, 5, "f"], [6, 9, ""], [10, 11, ""]], TEXTS]]}
NEAREST = {"do": "nearest", "text": "password", "among": None, "most": 5}


def test_a_folder(tmp_path: Path) -> None:
    folder = model_folder(tmp_path / "model")
    first, added, near = said(tmp_path, "--model", folder, ask=(ADD, NEAREST))
    assert (first["contents"], first["chunks"], first["model"].startswith("model2vec model ")) == ([], 0, True)
    assert (added["left_out"], added["chunks"]) == ([], 3)
    assert near == {"id": 2, "near": [["x", 1, 5, "f", 1.0]]}
    again, gone = said(tmp_path, "--model", folder, ask=({"do": "remove", "contents": ["x"]},))
    assert (again["contents"], gone["chunks"]) == (["x"], 0)


def test_passages_beyond_the_most_are_left_out(tmp_path: Path) -> None:
    folder = model_folder(tmp_path / "model")
    _, added, _ = said(tmp_path, "--model", folder, "--max-chunks", "2", ask=(ADD, NEAREST))
    assert (added["left_out"], added["chunks"]) == (["x"], 0)


@pytest.mark.parametrize("missing", ["config.json", "model.safetensors", "tokenizer.json"])
def test_without_a_file_of_the_model_it_is_off(tmp_path: Path, missing: str) -> None:
    folder = model_folder(tmp_path / "model")
    (tmp_path / "model" / missing).unlink()
    (answer,) = said(tmp_path, "--model", folder)
    assert f"{missing} missing" in answer["off"]


def test_a_broken_model_is_off(tmp_path: Path) -> None:
    folder = model_folder(tmp_path / "model")
    (tmp_path / "model/model.safetensors").write_bytes(b"none")
    (answer,) = said(tmp_path, "--model", folder)
    assert "can't be loaded" in answer["off"]


@pytest.mark.parametrize(("module", "options"), [
    pytest.param("model2vec", "", id="of a folder"),
    pytest.param("openai", "[semantic,reviewers]", id="of a service"),
])  # fmt: skip
def test_without_its_library_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, options: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    service = argparse.Namespace(model="", base_url="http://127.0.0.1:1/v1", service_model="m", api_key_env="")
    with pytest.raises(Unusable, match=f"{module} is not installed: pip install"):
        ServiceEmbedder(service, {}) if options else FolderEmbedder(model_folder(tmp_path / "model"))


def test_a_folder_reaches_no_network(tmp_path: Path) -> None:
    script = (
        "import socket, sys; from semantic_index.embedders import FolderEmbedder\n"
        "FolderEmbedder(sys.argv[1]); socket.create_connection(('127.0.0.1', int(sys.argv[2])))"
    )
    with embedding_service() as service:
        command = [sys.executable, "-P", "-c", script, model_folder(tmp_path / "model"), str(service.port)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert "PermissionError: socket." in done.stderr
    assert done.returncode == 1


def test_a_service_is_sent_the_key_and_shown_without_it(tmp_path: Path) -> None:
    key = "sk-test-0123456789"
    with embedding_service() as service:
        options = ("--base-url", service.url, "--service-model", "tiny", "--api-key-env", "EMBED_KEY")
        _, added, near = said(tmp_path, *options, ask=(ADD, NEAREST), EMBED_KEY=key)
        assert (added["chunks"], near["near"][0][:4]) == (3, ["x", 1, 5, "f"])
        assert service.keys == {f"Bearer {key}"}
        assert service.texts == [*TEXTS, "password"]
        service.broken = 401
        _, failed = said(tmp_path, *options, ask=(NEAREST,), EMBED_KEY=key)
        assert "answered 401" in failed["failed"]
        assert key not in failed["failed"]
        (off,) = said(tmp_path, *options)
        assert "EMBED_KEY is not set" in off["off"]


@pytest.mark.parametrize("url", ["http://example.com/v1", "https://user:pass@example.com/v1", "ftp://127.0.0.1/"])
def test_a_service_elsewhere_needs_https_and_no_password(tmp_path: Path, url: str) -> None:
    assert said(tmp_path, "--base-url", url) == []
