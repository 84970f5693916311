"""Names that no agent writes, or none without a person: FAULTS rows 40 to 58."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests.daemon.daemon_process import RunningDaemon
from tests.security.hostile_workspace import HostileWorkspace, Line

DENIED = [
    pytest.param(".git/config", id="42: git's configuration"),
    pytest.param(".git/hooks/pre-commit", id="42: a hook"),
    pytest.param(".git/info/attributes", id="42: attributes that name a filter"),
    pytest.param("sub/.git/config", id="42: a submodule's"),
    pytest.param(".git", id="42: a file that points elsewhere"),
    pytest.param(".GIT/hooks/x", id="44: capitals"),
    pytest.param(".Git/config", id="44: one capital"),
    pytest.param(".gIT/x", id="44: the other capitals"),
    pytest.param("git~1/config", id="47: the short name"),
    pytest.param("GIT~1/config", id="47: the short name in capitals"),
    pytest.param("\uff0egit/config", id="47: a fullwidth dot"),
    pytest.param(".\uff47\uff49\uff54/config", id="47: fullwidth letters"),
    pytest.param(".\u24d6it/config", id="47: a letter in a circle"),
    pytest.param("\u2024git/config", id="47: a one dot leader"),
    pytest.param(".g\u0131t\u034f/config".replace("\u0131", "i"), id="46: a joiner that no category shows"),
    pytest.param(".git\ufe0f/config", id="46: a variation selector"),
    pytest.param(".nfs0000000000000001", id="40: what NFS keeps open"),
    pytest.param(".a.txt.swp", id="40: an editor's swap file"),
    pytest.param(".#a.txt", id="40: an editor's lock"),
    pytest.param(".wh.a.txt", id="40: a whiteout"),
    pytest.param(".orchestrator-0001-x", id="58: a temporary file of ours"),
    pytest.param("a/.orchestrator-0001-x", id="58: and in a directory"),
]
BAD = [
    pytest.param(".g\u200cit/config", id="46: a non-joiner"),
    pytest.param(".git\u00ad/config", id="46: a soft hyphen"),
    pytest.param(".\u202egit/config", id="46: a bidi override"),
    pytest.param(".git\ufeff/config", id="46: a byte order mark"),
    pytest.param(".git /config", id="47: a space at the end"),
    pytest.param(".git./config", id="47: a dot at the end"),
    pytest.param(".git::$INDEX_ALLOCATION/config", id="47: a stream"),
]
WAITING = [
    ".gitmodules",
    ".gitattributes",
    "sub/.gitattributes",
    ".vscode/settings.json",
    ".vscode/tasks.json",
    ".vscode/launch.json",
    ".vscode/extensions.json",
    ".VSCode/Settings.json",
    "deep/er/.vscode/tasks.json",
    "our.code-workspace",
    ".idea/workspace.xml",
    ".cursor/mcp.json",
    ".mcp.json",
    ".MCP.json",
    ".cursor/rules/a.mdc",
    ".windsurf/rules.md",
    ".zed/settings.json",
    ".roo/x",
    ".claude/settings.json",
    ".claude/settings.local.json",
    ".claude/hooks/x.sh",
    ".claude/agents/x.md",
    ".claude/skills/x/SKILL.md",
    "CLAUDE.md",
    "claude.md",
    "sub/AGENTS.md",
    ".github/copilot-instructions.md",
    ".github/workflows/ci.yml",
    "Makefile",
    "makefile",
    "sub/conftest.py",
    "sitecustomize.py",
    "x.pth",
    "setup.py",
    "package.json",
    "pytest.ini",
    ".agents/skills/x/SKILL.md",
    "pip.conf",
    ".devcontainer/devcontainer.json",
    "Dockerfile",
    "\uff2dakefile",
]


def attempts(path: str) -> list[tuple[str, dict[str, Any]]]:
    """Every way to make this name come to be."""
    return [
        ("write_file", {"path": path, "content": "evil\n", "mode": "create"}),
        ("write_file", {"path": path, "content": "evil\n", "mode": "append"}),
        ("apply_patch", {"patch": f"--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+evil\n"}),
        ("move_file", {"source": "a.txt", "destination": path}),
    ]


@pytest.mark.parametrize("path", DENIED)
def test_denied_in_any_spelling(hostile: HostileWorkspace, path: str) -> None:
    for operation, params in attempts(path):
        answer = hostile.refused(operation, "denied", **params)
        assert answer.error["details"]["rule"]
    hostile.refused("create_directory", "denied", path=path)
    hostile.refused("edit_file", "denied", path=path, changes=[{"search": "x", "replace": "y"}])
    hostile.refused("delete_file", "denied", path=path)


@pytest.mark.parametrize("path", BAD)
def test_spellings_that_are_no_names(hostile: HostileWorkspace, path: str) -> None:
    for operation, params in attempts(path)[:2]:
        answer = hostile.refused(operation, "denied" if operation == "none" else "path_invalid", **params)
        assert answer.error["hint"]


def test_42_what_is_in_git_stays(hostile: HostileWorkspace) -> None:
    config = hostile.work / ".git" / "config"
    config.parent.mkdir()
    config.write_text("[core]\n")
    for path in (".git/config", "./.git/config", str(config)):
        hostile.refused("edit_file", "denied", path=path, changes=[{"search": "[core]", "replace": "[x]"}])
        hostile.refused("delete_file", "denied", path=path)
        hostile.refused("move_file", "denied", source=path, destination="config.txt")
        hostile.refused("move_file", "denied", source="a.txt", destination=path)
    shutil.rmtree(config.parent)


@pytest.mark.parametrize("path", WAITING)
def test_57_creating_waits_for_a_person(hostile: HostileWorkspace, path: str) -> None:
    for operation, params in attempts(path):
        with hostile.untouched(refusals=0):
            answer = hostile.agent.done(operation, **params)
            assert answer["status"] == "waiting", answer
            assert answer.get("success", False) is False
            denied = hostile.person.done("deny", approval=answer["approval"], approver=hostile.approver)
            assert denied["message"]


@pytest.mark.parametrize("path", ["CLAUDE.md", ".vscode/settings.json", "Makefile", ".mcp.json"])
def test_50_changing_waits_for_a_person(hostile: HostileWorkspace, path: str) -> None:
    target = hostile.work / path
    target.parent.mkdir(exist_ok=True)
    target.write_text("old\n")
    with hostile.untouched(refusals=0):
        for operation, params in (
            ("edit_file", {"changes": [{"search": "old", "replace": "evil"}]}),
            ("write_file", {"mode": "append", "content": "evil\n"}),
            ("delete_file", {}),
        ):
            answer = hostile.agent.done(operation, path=path, **params)
            assert answer["status"] == "waiting", (operation, answer)
            hostile.person.done("deny", approval=answer["approval"], approver=hostile.approver)
        away = hostile.agent.done("move_file", source=path, destination="away.txt")
        assert away["status"] == "waiting"
        hostile.person.done("deny", approval=away["approval"], approver=hostile.approver)
    target.unlink()


@pytest.mark.parametrize("path", ["src/.vscode", ".claude", "x/.cursor/rules"])
def test_51_a_protected_directory_waits_too(hostile: HostileWorkspace, path: str) -> None:
    with hostile.untouched(refusals=0):
        assert hostile.agent.done("create_directory", path=path)["status"] == "waiting"


@pytest.mark.parametrize("path", ["README.md", "src/app.py", "gitignore", "my.git.txt", "git/config", "Makefile.am"])
def test_what_only_looks_alike_is_written(hostile: HostileWorkspace, path: str) -> None:
    assert hostile.agent.done("write_file", path=path, content="x\n", mode="create")["status"] == "applied"
    assert (hostile.work / path).read_text() == "x\n"


# --- 58: the daemon's own -----------------------------------------------------------------


@pytest.fixture(scope="module")
def within() -> object:
    """A daemon that was told to keep its state inside the workspace."""
    base = Path(tempfile.mkdtemp(prefix="o-", dir="/tmp")).resolve()
    daemon = RunningDaemon(base)
    daemon.state_dir = daemon.workspace / "state"
    daemon.state_dir.mkdir(mode=0o700)
    daemon.start()
    yield daemon
    assert daemon.stop() == 0
    shutil.rmtree(base)


@pytest.mark.parametrize(
    "path", ["state", "state/journal.db", "state/journal.db-wal", "state/daemon.lock", "state/blobs/x", "STATE/x"]
)
def test_58_state_in_the_workspace_is_as_if_absent(within: RunningDaemon, path: str) -> None:
    before = sorted(item.name for item in within.state_dir.iterdir())
    with Line(within.socket, agent="alice") as agent:
        for operation, params in (
            ("read_file", {}),
            ("search_content", {"pattern": "SQLite"}),
            ("file_history", {}),
            ("edit_file", {"changes": [{"search": "S", "replace": "x"}]}),
            ("delete_file", {}),
            ("write_file", {"content": "x", "mode": "append"}),
            ("create_directory", {}),
            ("list_files", {}),
        ):
            answer = agent.call(operation, path=path, **params)
            assert answer.code in ("denied", "not_found", "not_a_file"), (operation, answer.raw[:300])
            assert b"SQLite format" not in answer.raw
        moved = agent.call("move_file", source=path, destination="mine.db")
        assert moved.code in ("denied", "not_found", "not_a_file")
        names = [
            entry["path"] for entry in agent.done("list_files", recursive=True, include_hidden=True).get("entries", ())
        ]
        assert not [name for name in names if name.startswith("state")]
        assert agent.done("search_content", pattern="SQLite")["total"] == 0
    assert sorted(item.name for item in within.state_dir.iterdir()) == before


def test_58_the_journal_under_another_name(hostile: HostileWorkspace) -> None:
    """By hard link, so by inode: the name in the workspace is as if absent."""
    owned = [item for item in hostile.daemon.state_dir.rglob("*") if item.is_file()]
    assert owned
    for number, item in enumerate(owned):
        alias = hostile.work / f"alias{number}.db"
        os.link(item, alias)
        try:
            for operation, params in (
                ("read_file", {}),
                ("search_content", {"pattern": "SQLite"}),
                ("edit_file", {"changes": [{"search": "SQLite", "replace": "x"}]}),
                ("delete_file", {}),
            ):
                answer = hostile.agent.call(operation, path=alias.name, **params)
                assert answer.code in ("denied", "not_found"), (item, answer.raw[:300])
            written = hostile.agent.call("write_file", path=alias.name, content="x", mode="append")
            assert written.code is not None, written.raw
            assert alias.stat().st_ino == item.stat().st_ino
            names = [entry["path"] for entry in hostile.agent.done("list_files").get("entries", ())]
            assert alias.name not in names
        finally:
            alias.unlink()
    assert hostile.person.done("journal_verify")["ok"]


@pytest.mark.parametrize("where", ["state/journal.db", "run/s", "home/.local/state/orchestrator"])
def test_58_by_full_path(hostile: HostileWorkspace, where: str) -> None:
    answer = hostile.agent.call("read_file", path=str(hostile.base / where))
    assert answer.code == "path_absolute"
