"""What one caller does must not stop, mislead or inform another."""

from __future__ import annotations

import pytest

from orchestrator.api.framing import refusal
from orchestrator.clients.python import RemoteError, Replacement
from tests.daemon.daemon_process import RunningDaemon

pytestmark = pytest.mark.anyio


async def test_the_hash_of_a_secret_is_not_in_the_journal_that_agents_see(daemon: RunningDaemon) -> None:
    (daemon.workspace / ".env").write_text("KEY=1\n")
    (daemon.workspace / "a.txt").write_text("x\n")
    async with daemon.client("alice") as alice:
        version = (await alice.file_info(".env")).version_id
        await alice.write_file(".env", "KEY=2\n", mode="truncate", base=version)
        await alice.edit_file("a.txt", [Replacement(search="x", replace="y")])
        entries = {entry.kind: entry.event for entry in (await alice.journal_query(limit=100)).entries}
        assert "before" not in entries["approval_requested"]["paths"][0]
        assert "after" not in entries["approval_requested"]["paths"][0]
        assert "before" in entries["change_applied"]["paths"][0]


async def test_a_line_as_long_as_a_file_shows_some_of_its_matches(daemon: RunningDaemon) -> None:
    (daemon.workspace / "long.txt").write_text("a" * 300_000 + "\nb a\n")
    async with daemon.client("alice") as alice:
        found = await alice.search_content("a", path="long.txt")
        assert [(hit.line, len(hit.submatches) <= 100) for hit in found.hits] == [(1, True), (2, True)]


async def test_a_path_too_deep_is_refused(daemon: RunningDaemon) -> None:
    async with daemon.client("alice") as alice:
        with pytest.raises(RemoteError) as refused:
            await alice.write_file("/".join("d" * 300), "x", mode="create")
        assert refused.value.code == "path_too_long"


async def test_the_addresses_of_remotes_stay_unread(daemon: RunningDaemon) -> None:
    (daemon.workspace / ".git").mkdir()
    (daemon.workspace / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (daemon.workspace / ".git" / "config").write_text('[remote "o"]\n\turl = https://u:t0ken@example.invalid/r\n')
    async with daemon.client("alice") as alice:
        assert (await alice.read_file(".git/HEAD")).text
        for call in (alice.read_file(".git/config"), alice.read_file("./.GIT/config")):
            with pytest.raises(RemoteError) as refused:
                await call
            assert "t0ken" not in str(refusal(refused.value))
            assert refused.value.code in ("denied", "file_not_found")
        assert not (await alice.search_content("t0ken", path=".")).hits
        with pytest.raises(RemoteError) as refused:
            await alice.search_content("t0ken", path=".git/config")
        assert refused.value.code == "denied"


async def test_a_thousand_changes_are_one_edit(daemon: RunningDaemon) -> None:
    (daemon.workspace / "a.txt").write_text("".join(f"line {n} end\n" for n in range(1000)))
    async with daemon.client("alice") as alice:
        changes = [Replacement(search=f"line {n} end", replace=f"new {n}") for n in range(1000)]
        assert (await alice.edit_file("a.txt", changes)).status == "applied"
        assert (daemon.workspace / "a.txt").read_text() == "".join(f"new {n}\n" for n in range(1000))
        with pytest.raises(RemoteError) as refused:
            await alice.edit_file("a.txt", [*changes, changes[0]])
        assert refused.value.code == "invalid_parameter"
