"""What people and agents ask of the past, when its events are in files: the same answer, or which file is missing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import pytest

from orchestrator.api.history import Changes
from orchestrator.api.journal_operations import ExportPage, JournalPage
from orchestrator.api.results import Result
from orchestrator.clients.python import FileAccess, RemoteError
from tests.daemon.archives import daemon, head_of, past, records_hold
from tests.daemon.daemon_process import RunningDaemon

__all__ = ["daemon"]

pytestmark = pytest.mark.anyio

Ask = Callable[[FileAccess], Awaitable[Result]]

FIRST = "@1"

ASKED: dict[str, Ask] = {
    "blame": lambda files: files.blame("a.txt"),
    "changes_since": lambda files: files.changes_since(FIRST),
    "file_history": lambda files: files.file_history("a.txt"),
    "journal_query": lambda files: files.journal_query(kind="change_applied"),
    "journal_query by path": lambda files: files.journal_query("a.txt", kind="change_intended"),
    "journal_export": lambda files: files.journal_export(kind="change_applied"),
}
"""All of these need events."""

REBUILDING: dict[str, Ask] = {
    "replay_check": lambda files: files.replay_check(),
    "journal_rebuild": lambda files: files.journal_rebuild(),
}

BY_TABLE: dict[str, Ask] = {
    "tree_at": lambda files: files.tree_at(),
    "read_file": lambda files: files.read_file("a.txt"),
}
"""These do not."""


async def answers(files: FileAccess, end: str) -> dict[str, object]:
    """Without what comes after `end`."""
    asked: dict[str, object] = {name: await ask(files) for name, ask in ASKED.items()}
    for name, answer in asked.items():  # the head moves with the asking
        if isinstance(answer, Changes):
            asked[name] = answer.changes
        if isinstance(answer, ExportPage):
            asked[name] = answer.text
        if isinstance(answer, JournalPage):
            asked[name] = (answer.entries, answer.cursor)
    tree = await files.tree_at(at=end)
    diff = await files.get_diff(from_=FIRST, to=end)
    followed = []
    async with files.subscribe(after=FIRST, kinds=["change_applied"]) as events:
        with anyio.fail_after(60):
            async for event in events:
                followed.append((event.seq, event.path, event.agent))
                if len(followed) == 2:
                    break
    return {**asked, "tree_at": tree, "get_diff": diff, "followed": followed}


async def test_every_reader_of_events_reads_archived_ones(daemon: RunningDaemon) -> None:
    end, code = await past(daemon)
    async with daemon.client() as person:
        before = await answers(person, end)
        moved = await person.journal_archive(end, approver=code)
        assert moved.moved
        after = await answers(person, end)
        for name, answer in before.items():
            assert after[name] == answer, name
        assert (await person.replay_check()).ok
    await records_hold(daemon)
    assert daemon.stop() == 0
    assert daemon.start()["ok"]
    await records_hold(daemon)
    async with daemon.client() as person:
        after = await answers(person, end)
        assert after["blame"] == before["blame"]


async def followed_to_its_end(files: FileAccess) -> None:
    async with files.subscribe(after=FIRST) as events:
        async for _ in events:
            pass


async def test_who_needs_a_file_that_is_gone_says_which(daemon: RunningDaemon) -> None:
    end, code = await past(daemon)
    async with daemon.client() as person:
        (moved,) = (await person.journal_archive(end, approver=code)).moved
    path = daemon.state_dir / "archive" / moved.file
    path.rename(aside := path.with_suffix(".aside"))
    assert daemon.stop() == 0
    assert daemon.start()["ok"], "a start reads no file of events"
    async with daemon.client() as person:
        for name, ask in BY_TABLE.items():
            assert await ask(person), name
        for name, ask in {**ASKED, **REBUILDING}.items():
            with pytest.raises(RemoteError) as refused:
                await ask(person)
            assert (refused.value.code, str(path) in refused.value.message) == ("archive_missing", True), name
            assert "Put the file back" in refused.value.hint
        with anyio.fail_after(60), pytest.raises(RemoteError) as ended:
            await followed_to_its_end(person)
        assert ended.value.code == "archive_missing"
        aside.rename(path)
        assert (await person.replay_check()).ok
    await records_hold(daemon)


async def test_an_archived_event_is_redacted_after_it_is_back(daemon: RunningDaemon) -> None:
    end, code = await past(daemon)
    async with daemon.client() as person:
        (entry, *_) = (await person.journal_query(kind="change_intended")).entries[::-1]
        assert entry.event["provenance"]["reason"] == "a secret word"
        (moved,) = (await person.journal_archive(end, approver=code)).moved
        with pytest.raises(RemoteError) as refused:
            await person.journal_redact(event=entry.seq, approver=code)
        assert refused.value.code == "event_archived"
        assert f"`orchestrator journal unarchive {moved.file}`" in refused.value.hint
        await person.journal_unarchive(moved.file, approver=code)
        (daemon.state_dir / "archive" / moved.file).unlink()
        await person.journal_redact(event=entry.seq, approver=code)
        again = await person.journal_archive(end, approver=code)
        assert again.moved
        (blank,) = [
            item for item in (await person.journal_query(kind="change_intended")).entries if item.seq == entry.seq
        ]
        assert blank.event["provenance"]["reason"] == "(redacted)"
    await records_hold(daemon)
    assert not holding(daemon.state_dir, b"a secret word")


async def test_a_content_is_redacted_when_archived_events_name_it(daemon: RunningDaemon) -> None:
    end, code = await past(daemon)
    async with daemon.client() as person:
        made = (await person.file_history("a.txt")).versions[-1]
        await person.journal_archive(end, approver=code)
        await person.journal_redact(blob=made.version_id, approver=code)
        report = await person.journal_verify()
        assert report.ok, report.problems
        await person.journal_archive(await head_of(daemon), approver=code)
    await records_hold(daemon)


async def test_a_checkpoint_of_an_archived_event_is_compared(daemon: RunningDaemon) -> None:
    _, code = await past(daemon)
    async with daemon.client() as person:
        signed = await person.journal_checkpoint()
        await person.journal_archive(await head_of(daemon), approver=code)
        report = await person.journal_verify(checkpoint=signed.text)
        assert report.ok, report.problems
        assert any(signed.seq in line for line in report.proven), report.proven


def holding(state_dir: Path, text: bytes) -> list[Path]:
    return [path for path in state_dir.rglob("*") if path.is_file() and text in path.read_bytes()]
