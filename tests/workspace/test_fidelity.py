"""What a file wears stays on: mode, owner, group, attributes, ACL; and never wider than it was."""

from __future__ import annotations

import os
import stat
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.workspace.local import LocalWorkspace
from tests.workspace.changes import TEMP, Make, as_path, carry_out, creating, replacing

pytestmark = pytest.mark.usefixtures("leases", "no_leaks")

OLD, NEW = b"old", b"new\r\n\xff\x00"
ACL = "system.posix_acl_access"
DEFAULT_ACL = "system.posix_acl_default"


def acl(*, user: int, mask: int) -> bytes:
    """u::rw-, u:1234:<user>, g::r--, m::<mask>, o::---"""
    entries = ((0x01, 6, 0xFFFFFFFF), (0x02, user, 1234), (0x04, 4, 0xFFFFFFFF), (0x10, mask, 0xFFFFFFFF))
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *e) for e in (*entries, (0x20, 0, 0xFFFFFFFF)))


@pytest.mark.parametrize("mode", [0o644, 0o600, 0o755, 0o444, 0o000, 0o1777, 0o666])
def test_mode_is_kept(mode: int, workspace: LocalWorkspace, root: Path) -> None:
    (root / "f").write_bytes(OLD)
    (root / "f").chmod(mode)
    assert carry_out(workspace, replacing("f", OLD, NEW)) == ()
    assert stat.S_IMODE((root / "f").stat().st_mode) == mode
    assert (root / "f").read_bytes() == NEW


@pytest.mark.parametrize(("bits", "left"), [(0o4755, 0o755), (0o2750, 0o750), (0o6711, 0o711)])
def test_setuid_and_setgid_are_dropped(bits: int, left: int, workspace: LocalWorkspace, root: Path) -> None:
    (root / "f").write_bytes(OLD)
    (root / "f").chmod(bits)
    (warning,) = carry_out(workspace, replacing("f", OLD, NEW))
    assert "setuid" in warning
    assert stat.S_IMODE((root / "f").stat().st_mode) == left


def test_a_new_file_has_the_usual_mode(workspace: LocalWorkspace, root: Path) -> None:
    umask = os.umask(0o027)
    try:
        carry_out(workspace, creating("f", NEW))
        carry_out(workspace, creating("g", NEW, mode=0o4701))
    finally:
        os.umask(umask)
    assert stat.S_IMODE((root / "f").stat().st_mode) == 0o640
    assert stat.S_IMODE((root / "g").stat().st_mode) == 0o701


def test_a_given_mode_wins(workspace: LocalWorkspace, root: Path) -> None:
    (root / "f").write_bytes(OLD)
    carry_out(workspace, replacing("f", OLD, NEW, mode=0o750))
    assert stat.S_IMODE((root / "f").stat().st_mode) == 0o750


def test_the_temp_is_never_readable_for_more_than_the_file(make: Make, root: Path) -> None:
    (root / "f").write_bytes(OLD)
    (root / "f").chmod(0o600)
    seen: list[int] = []

    def look(name: str) -> None:
        if name.startswith("temp_"):
            seen.append(stat.S_IMODE((root / TEMP).stat().st_mode))

    carry_out(make(step=look), replacing("f", OLD, NEW))
    assert seen == [0o600] * 4


def test_owner_and_group_are_kept(workspace: LocalWorkspace, root: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root may give files away")
    (root / "f").write_bytes(OLD)
    os.chown(root / "f", 1234, 4321)
    assert carry_out(workspace, replacing("f", OLD, NEW)) == ()
    found = (root / "f").stat()
    assert (found.st_uid, found.st_gid) == (1234, 4321)


def test_extended_attributes_are_kept(workspace: LocalWorkspace, root: Path) -> None:
    (root / "f").write_bytes(OLD)
    try:
        os.setxattr(root / "f", "user.note", b"\x00kept")
    except OSError:
        pytest.skip("this file system has no user attributes")
    assert carry_out(workspace, replacing("f", OLD, NEW)) == ()
    assert os.getxattr(root / "f", "user.note") == b"\x00kept"


def _set_acl(path: Path, name: str, value: bytes) -> None:
    try:
        os.setxattr(path, name, value)
    except OSError:
        pytest.skip("this file system has no ACLs")


def test_an_acl_is_kept(workspace: LocalWorkspace, root: Path) -> None:
    (root / "f").write_bytes(OLD)
    _set_acl(root / "f", ACL, acl(user=6, mask=6))
    before = (os.getxattr(root / "f", ACL), (root / "f").stat().st_mode)
    assert carry_out(workspace, replacing("f", OLD, NEW)) == ()
    assert (os.getxattr(root / "f", ACL), (root / "f").stat().st_mode) == before


def test_an_inherited_acl_is_not_added(workspace: LocalWorkspace, root: Path) -> None:
    (root / "f").write_bytes(OLD)
    (root / "f").chmod(0o640)
    _set_acl(root, DEFAULT_ACL, acl(user=6, mask=6))
    assert carry_out(workspace, replacing("f", OLD, NEW)) == ()
    assert ACL not in os.listxattr(root / "f")
    assert stat.S_IMODE((root / "f").stat().st_mode) == 0o640


def test_an_acl_that_cannot_be_kept_does_not_widen_the_group(
    workspace: LocalWorkspace, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "f").write_bytes(OLD)
    _set_acl(root / "f", ACL, acl(user=6, mask=6))

    def refuse(handle: int, name: str, value: bytes) -> None:
        raise PermissionError(1, "not permitted")

    monkeypatch.setattr(workspace._disk, "set_attribute", refuse)
    (warning,) = carry_out(workspace, replacing("f", OLD, NEW))
    assert ACL in warning
    assert stat.S_IMODE((root / "f").stat().st_mode) == 0o600


def test_a_hard_link_is_broken_with_a_warning(workspace: LocalWorkspace, root: Path) -> None:
    outside = root.parent / "outside"
    outside.write_bytes(OLD)
    (root / "f").hardlink_to(outside)
    assert workspace.read(as_path("f"), most=10).data == OLD
    (warning,) = carry_out(workspace, replacing("f", OLD, NEW))
    assert "2 names" in warning
    assert (root / "f").read_bytes() == NEW
    assert outside.read_bytes() == OLD
    assert outside.stat().st_nlink == 1


def test_a_hard_link_made_before_the_swap_keeps_the_old_content(make: Make, root: Path) -> None:
    (root / "f").write_bytes(OLD)
    outside = root.parent / "outside"
    carry_out(
        make(step=lambda name: outside.hardlink_to(root / "f") if name == "hash_rechecked" else None),
        replacing("f", OLD, NEW),
    )
    assert outside.read_bytes() == OLD
    assert (root / "f").read_bytes() == NEW


def test_another_users_file_is_written_with_warnings() -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root, to become somebody else")
    code = """
import os, stat, tempfile
from orchestrator.workspace.disk import Disk, ignore_lease_breaks
from orchestrator.workspace.local import LocalWorkspace
from tests.workspace.changes import carry_out, replacing
ignore_lease_breaks()
root = tempfile.mkdtemp(dir="/tmp")
try:
    os.chmod(root, 0o777)
    with open(root + "/f", "w") as f: f.write("x")
    os.chmod(root + "/f", 0o664)
    workspace = LocalWorkspace(root, disk=Disk(), uid=65534)
    os.setgroups([]); os.setegid(65534); os.seteuid(65534)
    warnings = carry_out(workspace, replacing("f", b"x", b"y"))
    found = os.stat(root + "/f")
    assert ["owner and group" in w for w in warnings] == [True], warnings
    assert (found.st_uid, found.st_gid) == (65534, 65534)
    assert stat.S_IMODE(found.st_mode) == 0o644, oct(found.st_mode)
    assert any("leases" in s for s in workspace.features) is False
finally:
    os.seteuid(0)
    import shutil; shutil.rmtree(root)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=os.getcwd())
    assert (done.returncode, done.stderr) == (0, "")
