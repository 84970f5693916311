"""A home folder and a workspace of the test's own, with paths short enough for a socket."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.fakes import FakeDaemon


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="o-", dir="/tmp")).resolve()
    (folder / "run").mkdir(mode=0o700)
    for name in list(os.environ):
        if name.startswith(("ORCHESTRATOR_", "XDG_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder / "run"))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def workspace(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = home / "w"
    (root / ".git").mkdir(parents=True)
    (root / "src").mkdir()
    monkeypatch.chdir(root)
    return root


@pytest.fixture
def daemon(workspace: Path) -> Iterator[FakeDaemon]:
    fake = FakeDaemon(workspace)
    yield fake
    fake.close()
