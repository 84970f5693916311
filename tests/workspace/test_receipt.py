"""What is written is read back before any name changes: a disk that garbles bytes is noticed."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from orchestrator.core.errors import IoFailed
from orchestrator.workspace.disk import Disk
from tests.workspace.changes import Make, creating, replacing, tree


class GarblingDisk:
    """Takes every byte, and keeps another in place of the first."""

    def __init__(self, inner: Disk) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def write(self, handle: int, data: memoryview) -> int:
        return self._inner.write(handle, memoryview(b"?" + bytes(data[1:])))


@pytest.mark.parametrize("there", [True, False], ids=["replaced", "created"])
def test_garbled_content_never_gets_a_name(make: Make, root: Path, disk: Disk, there: bool) -> None:
    if there:
        (root / "f").write_bytes(b"before\n")
    change = replacing("f", b"before\n", b"after\n") if there else creating("f", b"after\n")
    writing = make(disk=cast(Disk, GarblingDisk(disk))).atomic_write(change)
    with pytest.raises(IoFailed, match="does not give back what was written"):
        writing.stage()
    writing.abandon()
    assert tree(root) == ({"f": b"before\n"} if there else {})
