"""Backing up, restoring, adopting, archiving, collecting, resetting, through the real daemon and the command line."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from orchestrator.clients.python import FileAccess, RemoteError, Replacement
from tests.daemon.archives import LARGE, daemon, head_of, records_hold, write
from tests.daemon.cli import adopt, command
from tests.daemon.daemon_process import RunningDaemon

__all__ = ["daemon"]

pytestmark = pytest.mark.anyio


async def history_of(files: FileAccess, path: str) -> list[tuple[str, str | None]]:
    found = await files.file_history(path)
    return [(version.version_id, version.agent) for version in found.versions]


# --- backing up and restoring ----------------------------------------------------------


async def test_a_backup_is_whole_and_can_be_served(daemon: RunningDaemon) -> None:
    async with daemon.client("bot") as files:
        await write(files, "a.txt", "one\n", LARGE)
    target = daemon.base / "backup"
    code, answer = command(daemon, "journal", "backup", str(target))
    assert code == 0, answer
    assert {item.name for item in target.iterdir()} == {"journal.db", "blobs", "manifest.json"}

    daemon.stop()
    code, answer = command(daemon, "journal", "restore", str(target))
    assert code == 0, answer
    moved = Path(answer["set_aside"])
    assert (moved / "journal.db").is_file()
    assert (moved / "blobs").is_dir()
    assert daemon.start()["code"] == "journal_behind", "the session's end came after the backup"
    daemon.wait()
    assert adopt(daemon)[0] == 0
    assert daemon.start()["ok"]
    async with daemon.client("bot") as files:
        await records_hold(daemon)
        assert len(await history_of(files, "a.txt")) == 2


@pytest.mark.parametrize(
    ("place", "code"),
    [
        pytest.param("work/backup", "backup_refused", id="in the workspace"),
        pytest.param("state/backup", "backup_refused", id="in the state directory"),
        pytest.param("link/backup", "backup_refused", id="in the workspace, by a link"),
        pytest.param("full", "backup_refused", id="there already"),
        pytest.param("file", "backup_refused", id="a file"),
        pytest.param("no/such/parent", "backup_refused", id="no parent"),
        pytest.param("n" * 300, "backup_refused", id="too long a name"),
    ],
)
async def test_where_no_backup_goes(daemon: RunningDaemon, place: str, code: str) -> None:
    (daemon.base / "link").symlink_to(daemon.workspace)
    (daemon.base / "full").mkdir()
    (daemon.base / "full" / "mine").write_text("mine")
    (daemon.base / "file").write_text("mine")
    exit_code, answer = command(daemon, "journal", "backup", str(daemon.base / place))
    assert (exit_code, answer["code"]) == (1, code), answer
    assert [item.name for item in (daemon.base / "full").iterdir()] == ["mine"]
    assert not (daemon.workspace / "backup").exists()


async def test_a_backup_that_was_touched_is_not_restored(daemon: RunningDaemon) -> None:
    async with daemon.client("bot") as files:
        await write(files, "a.txt", "one\n", LARGE)
        whole = daemon.base / "whole"
        await files_backup(daemon, whole)
    daemon.stop()
    (content,) = [path for path in (whole / "blobs").rglob("*") if path.is_file()]
    spoils: dict[str, Callable[[Path], object]] = {
        "no manifest": lambda folder: (folder / "manifest.json").unlink(),
        "manifest cut": lambda folder: (folder / "manifest.json").write_text("{"),
        "content gone": lambda folder: (folder / content.relative_to(whole)).unlink(),
        "content cut": lambda folder: (folder / content.relative_to(whole)).write_bytes(b"x"),
        "database cut": lambda folder: (folder / "journal.db").write_bytes(b""),
    }
    for name, spoil in spoils.items():
        spoilt = daemon.base / name.replace(" ", "-")
        shutil.copytree(whole, spoilt)
        spoil(spoilt)
        before = {path: path.read_bytes() for path in daemon.state_dir.rglob("journal.db")}
        code, answer = command(daemon, "journal", "restore", str(spoilt))
        assert (code, answer["code"]) == (1, "backup_invalid"), name
        assert {path: path.read_bytes() for path in daemon.state_dir.rglob("journal.db")} == before
    assert daemon.start()["ok"]


async def files_backup(daemon: RunningDaemon, target: Path) -> None:
    async with daemon.client() as person:
        await person.journal_backup(str(target))


async def test_only_a_stopped_journal_is_restored_adopted_or_reset(daemon: RunningDaemon) -> None:
    for arguments in (("restore", "/nowhere"), ("adopt",), ("reset", "--yes")):
        code, answer = command(daemon, "journal", *arguments)
        assert (code, answer["code"]) == (1, "workspace_held"), arguments


# --- a journal that is behind ----------------------------------------------------------


async def test_a_journal_from_an_old_backup_is_refused_until_it_is_adopted(daemon: RunningDaemon) -> None:
    approver = await daemon.make_approver()
    async with daemon.client("bot") as files:
        await write(files, "a.txt", "one\n")
        await write(files, "b.txt", "kept\n")
        await write(files, "gone.txt", "x\n")
    await files_backup(daemon, daemon.base / "old")
    async with daemon.client("bot") as files:
        await files.edit_file("a.txt", [Replacement(search="one", replace="two")])
        await write(files, "new.txt", LARGE)
    (daemon.workspace / "gone.txt").unlink()
    daemon.stop()
    assert command(daemon, "journal", "restore", str(daemon.base / "old"))[0] == 0

    said = daemon.start()
    assert said["code"] == "journal_behind"
    assert "orchestrator journal adopt" in str(said["hint"])
    details = said["details"]
    assert isinstance(details, dict)
    assert int(details["head"][1:]) < int(details["known_head"][1:])
    assert daemon.wait() == 1
    code, refused = command(daemon, "up")
    assert (code, refused["code"]) == (1, "journal_behind")

    for wrong in ("", "aaaaa-aaaaa"):  # nor without a code, as an agent with a shell would
        assert command(daemon, "journal", "adopt", approver=wrong)[1]["code"] == "approver_code_needed"
    assert daemon.start()["code"] == "journal_behind"
    daemon.wait()
    code, adopted = command(daemon, "journal", "adopt", approver=approver)
    assert (code, adopted["files"]) == (0, 3), adopted
    assert daemon.start()["ok"]
    async with daemon.client() as person:
        await records_hold(daemon)
        (entry,) = (await person.journal_query(kind="journal_adopted")).entries
        assert (entry.event["known_head"], entry.event["by"]) == (int(details["known_head"][1:]), "owner_uid")
        assert [version.kind for version in (await person.file_history("a.txt")).versions] == ["external", "change"]
        outside = (await person.file_history("gone.txt")).versions[0]
        waiting = await person.revert(outside.version_id)
        assert (await person.approve(waiting.approval or "", approver=approver, unseen=True)).status == "applied"
        assert (daemon.workspace / "gone.txt").read_text() == "x\n"
    daemon.stop()
    code, again = command(daemon, "journal", "adopt", approver=approver)
    assert (code, again["files"]) == (0, 0)


async def test_what_nobody_may_read_is_not_kept_where_a_journal_is_adopted(daemon: RunningDaemon) -> None:
    """The policy of the state directory says so, as at the start of a daemon."""
    rule = 'name = "no"\nagents = ["*"]\nactions = ["read", "search"]\npaths = ["hidden.txt"]\nverdict = "deny"\n'
    daemon.stop()
    (daemon.state_dir / "policy.toml").write_text(f'name = "p"\ndefault = "allow"\n[[rule]]\n{rule}', encoding="utf-8")
    assert daemon.start()["ok"]
    async with daemon.client("bot") as files:
        for name in ("shown.txt", "hidden.txt"):
            assert (await files.write_file(name, "as it was\n", "create")).status == "applied"
    await files_backup(daemon, daemon.base / "old")
    async with daemon.client("bot") as files:
        await files.file_info("shown.txt")
    daemon.stop()
    for name in ("shown.txt", "hidden.txt"):
        (daemon.workspace / name).write_text("nobody shows this\n")
    assert command(daemon, "journal", "restore", str(daemon.base / "old"))[0] == 0
    code, adopted = adopt(daemon)
    assert (code, adopted["files"]) == (0, 2), adopted
    assert daemon.start()["ok"]
    async with daemon.client() as person:
        while (await person.status()).health.baseline != "done":
            pass
        assert any("contents not kept: 1 file" in note for note in (await person.status()).health.notes)


async def test_a_journal_killed_after_its_last_mark_starts(daemon: RunningDaemon) -> None:
    """The mark may be behind the journal, never ahead of it."""
    async with daemon.client("bot") as files:
        await write(files, "a.txt", "one\n", "two\n")
        daemon.kill()
    assert daemon.start()["ok"]


async def test_the_mark_follows_while_the_daemon_runs(daemon: RunningDaemon) -> None:
    """A kill, then an old journal: found by a mark that was set on the way."""
    daemon.stop()
    shutil.copytree(daemon.state_dir, daemon.base / "copy")
    daemon.start()
    async with daemon.client("bot") as files:
        for _ in range(300):
            await files.file_info("a.txt")
    daemon.kill()
    shutil.rmtree(daemon.state_dir)
    shutil.copytree(daemon.base / "copy", daemon.state_dir)
    said = daemon.start()
    assert said["code"] == "journal_behind"
    details = said["details"]
    assert isinstance(details, dict)
    assert int(details["known_head"][1:]) >= 200
    daemon.wait()
    assert adopt(daemon)[0] == 0
    assert daemon.start()["ok"]


@pytest.mark.parametrize("what", ["another journal", "another history", "none", "an unreadable mark"])
async def test_what_else_is_not_vouched_for(daemon: RunningDaemon, what: str) -> None:
    daemon.stop()
    (mark,) = (daemon.home / ".local/state/orchestrator").glob("*.mark")
    if what == "none":
        (daemon.state_dir / "journal.db").unlink()
    elif what == "an unreadable mark":
        mark.write_text("{")
    else:
        field = '"journal":"' if what == "another journal" else '"head_hash":"'
        text = mark.read_text()
        at = text.index(field) + len(field)
        mark.write_text(text[:at] + ("0" if text[at] != "0" else "1") + text[at + 1 :])
    assert daemon.start()["code"] == "journal_behind"
    daemon.wait()
    assert (daemon.state_dir / "journal.db").exists() is (what != "none")
    assert adopt(daemon)[0] == 0
    assert daemon.start()["ok"]


async def test_reset_begins_anew_and_keeps_the_old(daemon: RunningDaemon) -> None:
    async with daemon.client("bot") as files:
        await write(files, "a.txt", LARGE)
    await daemon.make_approver()
    daemon.stop()
    code, answer = command(daemon, "journal", "reset", "--yes")
    assert code == 0
    old = Path(answer["set_aside"])
    assert {"journal.db", "blobs"} <= {item.name for item in old.iterdir()}
    daemon.approver = ""
    assert daemon.start()["ok"]
    async with daemon.client() as person:
        assert (await person.approver_create()).approver_code
        assert [version.kind for version in (await person.file_history("a.txt")).versions] == ["found"]
        await records_hold(daemon)
    daemon.stop()
    with closing(sqlite3.connect(old / "journal.db")) as journal:
        assert journal.execute("SELECT count(*) FROM events WHERE tag = 'change_applied'").fetchone() == (1,)


# --- archiving -------------------------------------------------------------------------


async def test_archived_events_stay_readable_and_come_back(daemon: RunningDaemon) -> None:
    approver = await daemon.make_approver()
    async with daemon.client("bot") as files:
        versions = await write(files, "a.txt", "one\n", "two\n", "three\n")
        head = await head_of(daemon)
    async with daemon.client() as person:
        before = (await person.journal_query(limit=500)).entries
    code, answer = command(daemon, "journal", "archive", "--before", head, approver=approver)
    assert code == 0, answer
    (segment,) = answer["archived"]
    assert (daemon.state_dir / "archive" / segment["file"]).stat().st_size == segment["size"]
    assert kept_events(daemon)[0] == int(head[1:])

    async with daemon.client() as person:
        after = (await person.journal_query(limit=500)).entries
        assert [entry for entry in after if int(entry.seq[1:]) <= int(before[0].seq[1:])] == list(before)
        await records_hold(daemon)
    assert daemon.stop() == 0
    assert daemon.start()["ok"]
    async with daemon.client("bot") as files:
        await records_hold(daemon)
        assert [version for version, _ in await history_of(files, "a.txt")] == versions[::-1]
        assert (await files.get_diff("a.txt", from_=versions[0], to=versions[2])).diff.count("\n-one") == 1
        reverted = await files.revert(versions[2])  # an archived change
        assert reverted.status == "applied"
        assert (daemon.workspace / "a.txt").read_text() == "two\n"
        await write(files, "b.txt", "new\n")

    code, answer = command(daemon, "journal", "unarchive", segment["file"], approver=approver)
    assert (code, answer.get("archived", [])) == (0, []), answer
    assert kept_events(daemon)[0] == 1
    await records_hold(daemon)
    assert daemon.stop() == 0
    assert daemon.start()["ok"]


def kept_events(daemon: RunningDaemon) -> tuple[int, int]:
    """The first and last event in the database."""
    with closing(sqlite3.connect(daemon.state_dir / "journal.db")) as journal:
        first, last = journal.execute("SELECT min(seq), max(seq) FROM events").fetchone()
        return int(first), int(last)


@pytest.mark.parametrize(("spoil", "code"), [("gone", "archive_missing"), ("altered", "journal_corrupt")])
async def test_an_archived_file_that_is_spoilt_is_named_when_it_is_needed(
    daemon: RunningDaemon, spoil: str, code: str
) -> None:
    approver = await daemon.make_approver()
    async with daemon.client() as person:
        (moved,) = (await person.journal_archive(await head_of(daemon), approver=approver)).moved
    path = daemon.state_dir / "archive" / moved.file
    held = path.read_bytes()
    daemon.stop()
    path.unlink()
    if spoil == "altered":
        path.write_bytes(held[:-1] + bytes((held[-1] ^ 1,)))
    assert daemon.start()["ok"]
    async with daemon.client() as person:
        with pytest.raises(RemoteError) as refused:
            await person.journal_query(kind="approver_set")
        assert (refused.value.code, str(path) in refused.value.message) == (code, True)
        path.write_bytes(held)
        assert (await person.journal_query(kind="approver_set")).entries


async def test_verify_says_what_it_could_not_check(daemon: RunningDaemon) -> None:
    approver = await daemon.make_approver()
    async with daemon.client("bot") as files:
        await write(files, "a.txt", "one\n", "two\n")
    async with daemon.client() as person:
        (moved,) = (await person.journal_archive(await head_of(daemon), approver=approver)).moved
        path = daemon.state_dir / "archive" / moved.file
        assert (await person.journal_verify()).ok
        held = path.read_bytes()
        path.unlink()
        report = await person.journal_verify()
        assert report.ok
        assert [what for what in report.unchecked if str(path) in what and f"events @1 to {moved.last}" in what]
        path.write_bytes(b"x")
        assert not (await person.journal_verify()).ok
        path.write_bytes(held)


async def test_what_is_not_over_is_not_archived(daemon: RunningDaemon) -> None:
    approver = await daemon.make_approver()
    async with daemon.client("bot") as files:
        (daemon.workspace / "a.txt").write_text("one\n")
        waiting = await files.delete_file("a.txt")
        assert waiting.status == "waiting"
        await write(files, "b.txt", "b\n")
    async with daemon.client() as person:
        head = await head_of(daemon)
        with pytest.raises(RemoteError) as refused:
            await person.journal_archive(head, approver=approver)
        assert refused.value.code == "still_needed"
        assert f"archive --before {waiting.approval}" in refused.value.hint
        await person.journal_archive(waiting.approval or "", approver=approver)
        await person.deny(waiting.approval or "", approver=approver)
        assert (await person.journal_archive(head, approver=approver)).moved
        with pytest.raises(RemoteError) as unknown:
            await person.journal_archive("@100000", approver=approver)
        assert unknown.value.code == "invalid_parameter"


@pytest.mark.parametrize("operation", ["archive", "unarchive", "collect"])
async def test_the_approver_code_is_asked_for(daemon: RunningDaemon, operation: str) -> None:
    await daemon.make_approver()
    calls: dict[str, Any] = {
        "archive": lambda person: person.journal_archive("@2", approver="wrong"),
        "unarchive": lambda person: person.journal_unarchive("x", approver="wrong"),
        "collect": lambda person: person.journal_collect(approver="wrong"),
    }
    async with daemon.client() as person:
        with pytest.raises(RemoteError) as refused:
            await calls[operation](person)
        assert refused.value.code == "approver_code_needed"
    async with daemon.client("bot") as agent:
        with pytest.raises(RemoteError) as forbidden:
            await calls[operation](agent)
        assert forbidden.value.code == "not_permitted"


# --- collecting ------------------------------------------------------------------------


async def test_only_what_nothing_needs_is_collected(daemon: RunningDaemon) -> None:
    approver = await daemon.make_approver()
    async with daemon.client("bot") as files:
        versions = await write(files, "a.txt", "one\n", "two\n", LARGE, "four\n")
        await write(files, "b.txt", "standing\n")
        head = await head_of(daemon)
        later = await write_again(files, "a.txt", "five\n", "six\n")
    async with daemon.client() as person:
        assert (await person.journal_collect(approver=approver, grace_days=0)).contents == 0
        await person.journal_archive(head, approver=approver)
        dry = await person.journal_collect(grace_days=0, dry_run=True)
        assert dry.contents == 3
        assert (await person.journal_collect(approver=approver)).contents == 0
        done = await person.journal_collect(approver=approver, grace_days=0)
        assert (done.contents, done.size) == (3, len(LARGE) + 8)
        assert not [path for path in (daemon.state_dir / "blobs").rglob("*") if path.is_file()]
        await records_hold(daemon)
    async with daemon.client("bot") as files:
        assert "four" in (await files.get_diff("a.txt", from_=versions[3], to=later[0])).diff
        with pytest.raises(RemoteError) as gone:
            await files.get_diff("a.txt", from_=versions[1], to="current")
        assert gone.value.code == "version_not_kept"
        assert "collected since" in gone.value.hint
        for version in later[::-1]:
            assert (await files.revert(version)).status == "applied"
        assert (daemon.workspace / "a.txt").read_text() == "four\n"
        again = await files.write_file("c.txt", LARGE, mode="create")  # collected, and needed again
        assert again.status == "applied"
    await records_hold(daemon)
    assert daemon.stop() == 0
    assert daemon.start()["ok"]
    await records_hold(daemon)


async def write_again(files: FileAccess, path: str, *contents: str) -> list[str]:
    return [(await files.write_file(path, content, mode="truncate")).version_id or "" for content in contents]
