"""A person's preview and conflict are shown whole; what is cut for an agent is said with its size."""

from __future__ import annotations

import hashlib

import pytest

from orchestrator.clients.python import Replacement
from tests.daemon.cli import run
from tests.daemon.daemon_process import RunningDaemon

pytestmark = pytest.mark.anyio

LONG = "".join(f"line {number}\n" for number in range(400))


async def test_a_cut_diff_says_how_much_of_it_is_shown_and_what_shows_all(daemon: RunningDaemon) -> None:
    names = ("a.txt", "b.txt", "c.txt")
    for name in names:
        (daemon.workspace / name).write_text(LONG)
    rows = "".join(f"-line {number}\n" for number in range(400))
    patch = "".join(f"--- a/{name}\n+++ /dev/null\n@@ -1,400 +0,0 @@\n{rows}" for name in names)
    async with daemon.client("alice") as alice:
        asked = await alice.apply_patch(patch)
        assert asked.diff_truncated
        size = "shown: 117 of 1200 changed lines of 3 files"
        assert asked.diff_rest == f"{size}; `orchestrator approvals show {asked.approval}` shows all of it"
        preview = await alice.apply_patch(patch, preview=True)
        assert preview.diff_rest == f"{size}; a preview of fewer files shows all of it"
        one = await alice.delete_file("a.txt", preview=True)
        assert one.diff_rest.startswith("shown: 117 of 400 changed lines; ")


async def test_a_persons_preview_shows_everything(daemon: RunningDaemon) -> None:
    folder = daemon.workspace / "old"
    folder.mkdir()
    for number in range(12):
        (folder / f"{number}.txt").write_text(LONG)
    (folder / "x.bin").write_bytes(bytes([0, 1, 2]))
    async with daemon.client() as person:
        preview = await person.delete_file("old", preview=True)
    assert not preview.diff_truncated
    assert (preview.diff or "").count("\n-line") == 12 * 400
    assert f"# before: 3 bytes, sha256:{hashlib.sha256(bytes([0, 1, 2])).hexdigest()}\n" in (preview.diff or "")


async def test_a_conflict_is_shown_whole_to_a_person(daemon: RunningDaemon) -> None:
    (daemon.workspace / "a.txt").write_text(LONG)
    async with daemon.client("alice") as alice, daemon.client("bob") as bob:
        base = (await alice.read_file("a.txt")).version_id
        await alice.edit_file("a.txt", [Replacement(search="line 7\n", replace="alice\n")], base=base)
        new = "".join(f"bob {number}\n" for number in range(400))
        answer = await bob.write_file("a.txt", new, mode="truncate", base=base)
        assert answer.conflict is not None
        assert answer.diff_rest.startswith("shown: 117 of 800 changed lines; list_conflicts(")
    code, text = run(daemon, "show", answer.conflict)
    assert (code, text.count("\n+bob"), text.count("\n-line")) == (0, 400, 399)
    assert "the diff goes on" not in text
