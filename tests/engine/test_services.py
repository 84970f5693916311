"""What the disk says of a path counts beside its spelling."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.core.ids import WorkspacePath
from orchestrator.core.policy.rules import Allow, Deny
from orchestrator.engine.caller import Caller
from orchestrator.engine.services import Services
from orchestrator.ports.workspace import FileStat
from orchestrator.workspace.disk import Disk
from orchestrator.workspace.local import LocalWorkspace
from tests.engine.parts import services_of

CALLER = Caller(agent="alice", agent_class="cloud", session="s-1", transport="rpc")  # type: ignore[arg-type]


class TwoSpellings(LocalWorkspace):
    """A file system that knows `.git` as `GITDIR` too, as those that fold case know `.GIT`."""

    def stat(self, path: WorkspacePath) -> FileStat | None:
        return super().stat(WorkspacePath(path.replace("GITDIR", ".git")))


@pytest.fixture
def services(base: Path) -> Services:
    root = base / "w"
    (root / ".git").mkdir(parents=True)
    (root / "src").mkdir()
    workspace = TwoSpellings(str(root), disk=Disk())
    return services_of(workspace)


def test_git_by_another_spelling_is_closed_to_changes(services: Services) -> None:
    there, elsewhere = WorkspacePath("GITDIR/config"), WorkspacePath("src/config")
    assert isinstance(services.permissions.verdict(CALLER, "create", there, on_disk=True), Deny)
    assert isinstance(services.permissions.verdict(CALLER, "create", elsewhere, on_disk=True), Allow)
    assert isinstance(services.permissions.verdict(CALLER, "read", there, on_disk=True), Allow)
