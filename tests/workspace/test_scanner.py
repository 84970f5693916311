"""The walk over the whole tree."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from orchestrator.core.content import Signature
from orchestrator.core.errors import DiskFull
from orchestrator.core.ids import WorkspacePath
from orchestrator.workspace.local import LocalWorkspace
from tests.workspace.changes import TEMP, as_path

pytestmark = pytest.mark.usefixtures("leases", "no_leaks")


def test_scan(workspace: LocalWorkspace, root: Path) -> None:
    (root / "b/c").mkdir(parents=True)
    (root / "node_modules/x").mkdir(parents=True)
    (root / "empty").mkdir()
    for name in ("b/c/deep.py", "b.py", "z", "node_modules/x/y", TEMP):
        (root / name).write_text(name)
    (root / "z").chmod(0o4750)
    (root / ".gitignore").write_text("node_modules\n")
    (root / "link").symlink_to("b")
    os.mkfifo(root / "pipe")
    (root / "bad\nname").write_text("x")
    (root / "bad\x1bdirectory").mkdir()
    (root / "bad\x1bdirectory/f").write_text("x")
    with open(os.fsencode(root) + b"/not \xff unicode", "wb"):
        pass
    result = workspace.scan()
    assert [(file.path, file.signature.size) for file in result.files] == [
        (".gitignore", 13),
        ("b.py", 4),
        ("b/c/deep.py", 11),
        ("z", 1),
    ]
    assert result.files[3].mode == 0o4750
    stat = workspace.stat(as_path("z"))
    assert stat is not None
    assert stat.signature == result.files[3].signature
    assert result.skipped == {"names that break the name rule": 3}


def test_a_deep_tree(workspace: LocalWorkspace, root: Path) -> None:
    path = "/".join(["d"] * 200)
    (root / path).mkdir(parents=True)
    (root / path / "f").write_text("x")
    assert [file.path for file in workspace.scan().files] == [f"{path}/f"]
    assert workspace.read(as_path(f"{path}/f"), most=10).data == b"x"


def test_names_escape_what_breaks_the_rule(workspace: LocalWorkspace, root: Path) -> None:
    (root / "bad\nname").write_text("x")
    (root / TEMP).write_text("x")
    (root / "link").symlink_to("to\nthere")
    listed = {item.name: item for item in workspace.names(as_path("."))}
    assert set(listed) == {"bad\\nname", "link"}
    assert not listed["bad\\nname"].valid
    assert listed["link"].stat.target == "to\\nthere"


def test_trouble_with_what_is_met_is_no_closed_directory(workspace: LocalWorkspace, root: Path) -> None:
    """What is found is appended while the scan goes on: where that fails, so does the scan."""
    (root / "f").write_text("x")

    def known(path: WorkspacePath, signature: Signature, mode: int) -> bool:
        raise DiskFull("the disk is full")

    with pytest.raises(DiskFull):
        workspace.scan(known)
