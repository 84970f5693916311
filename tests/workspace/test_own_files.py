from __future__ import annotations

import os
from pathlib import Path

from orchestrator.workspace.disk import identity_of
from orchestrator.workspace.own_files import OwnFiles


def test_what_lies_in_the_places_whenever_it_came(tmp_path: Path) -> None:
    root, single = tmp_path / "state", tmp_path / "s"
    (root / "blobs").mkdir(parents=True)
    other = tmp_path / "other"
    for path in (root / "journal.db", root / "blobs" / "a", single, other):
        path.write_text("x")
    own = OwnFiles((str(root), str(single), str(tmp_path / "absent")))
    held = [
        path
        for path in (root / "journal.db", root / "blobs" / "a", single, other)
        if own.holds(identity_of(path.stat()))
    ]
    assert held == [root / "journal.db", root / "blobs" / "a", single]
    assert own.directories() == {identity_of(root.stat()), identity_of(single.stat())}

    late = root / "blobs" / "b"
    late.write_text("x")
    os.utime(root / "blobs", ns=(1, 1))  # as if the clock had moved on by more than its grain
    os.link(late, tmp_path / "alias")
    assert own.holds(identity_of((tmp_path / "alias").stat()))
    os.link(root / "journal.db", tmp_path / "db")
    (root / "journal.db").unlink()
    os.utime(root, ns=(1, 1))
    assert not own.holds(identity_of((tmp_path / "db").stat())), "nothing of ours has it any more"
    (tmp_path / "link").symlink_to(other)
    assert not OwnFiles((str(tmp_path / "link"),)).holds(identity_of(other.stat()))
