"""What whoever started the daemon is told: once, and by a stable code."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from orchestrator.api.framing import rejection
from orchestrator.api.locations import POLICY_FILE
from orchestrator.api.policy_files import read_policies
from orchestrator.core.errors import PolicyInvalid, WorkspaceNested
from orchestrator.daemon import Starter, why_not_served


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        pytest.param(OSError(errno.EMFILE, "too many"), "descriptors_exhausted", "the daemon has", id="EMFILE"),
        pytest.param(OSError(errno.ENFILE, "too many"), "descriptors_exhausted", "the system has", id="ENFILE"),
        pytest.param(OSError(errno.ENOSPC, "full"), "disk_full", "no space", id="ENOSPC"),
        pytest.param(OSError(errno.EROFS, "read-only", "/s"), "state_directory_unusable", "/s", id="EROFS"),
        pytest.param(PermissionError(errno.EACCES, "no", "/s"), "state_directory_unusable", "/s", id="EACCES"),
        pytest.param(
            ExceptionGroup("tasks", [ExceptionGroup("inner", [ValueError("x"), WorkspaceNested("inside")])]),
            "workspace_nested",
            "inside",
            id="in groups",
        ),
        pytest.param(ExceptionGroup("tasks", [TypeError("odd")]), "internal", "TypeError: odd", id="unforeseen"),
    ],
)
def test_what_ended_it_has_a_code(error: Exception, code: str, said: str) -> None:
    refused = why_not_served(error)
    assert (refused.code, said in refused.message) == (code, True)
    assert refused.hint or code == "workspace_nested"


def test_it_is_reported_once() -> None:
    """A second word would go to whatever has the descriptor by then."""
    read, write = os.pipe()
    starter = Starter(write)
    starter.report({"ok": True})
    again, other = os.pipe()
    assert write in (again, other), "the number is taken again"
    starter.report(rejection(WorkspaceNested("too late")))
    assert os.read(read, 1000) == b'{"ok":true}\n'
    assert os.read(read, 1000) == b"", "and the pipe is closed"
    os.set_blocking(again, False)
    with pytest.raises(BlockingIOError):
        os.read(again, 1000)
    for handle in (read, again, other):
        os.close(handle)


def test_a_starter_that_went_away_is_no_error() -> None:
    read, write = os.pipe()
    os.close(read)
    Starter(write).report({"ok": True})


def test_a_policy_that_is_no_text_is_refused_by_its_name(tmp_path: Path) -> None:
    (tmp_path / POLICY_FILE).write_bytes(b"\xff\xfe")
    with pytest.raises(PolicyInvalid, match=r"policy\.toml is not UTF-8"):
        read_policies((("state", str(tmp_path / POLICY_FILE)),))


def test_a_policy_that_leads_nowhere_or_is_a_folder_is_not_passed_over(tmp_path: Path) -> None:
    """The default may let through what the policy that should be there denies."""
    own = tmp_path / POLICY_FILE
    own.symlink_to(tmp_path / "gone.toml")
    with pytest.raises(PolicyInvalid, match="leads nowhere"):
        read_policies((("state", str(tmp_path / POLICY_FILE)),))
    own.unlink()
    own.mkdir()
    with pytest.raises(PolicyInvalid, match="can't be read: Is a directory"):
        read_policies((("state", str(tmp_path / POLICY_FILE)),))
