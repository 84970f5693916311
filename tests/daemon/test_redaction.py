"""What is redacted through the real daemon is gone from every file of the state directory, and nothing else changed."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.clients.python import RemoteError, Replacement
from orchestrator.core.content import digest_of
from orchestrator.core.errors import DaemonRestarted, DaemonUnreachable
from orchestrator.journal.blobs import LEVEL, zstd
from tests.crash.scenarios import CRASHING, Ground
from tests.daemon.daemon_process import RunningDaemon, running

pytestmark = pytest.mark.anyio

MARKER = "swordfish-7f3a-never-to-be-seen"
SECRET = "".join(f"password_{n} = '{n * 7919}-{MARKER}'\n" for n in range(30))
LARGE = "".join(f"{n * 2654435761 % 2**32:08x} {MARKER}\n" for n in range(20_000))


@pytest.fixture
def daemon(base: Path) -> Iterator[RunningDaemon]:
    with running(base) as started:
        yield started


def holding(state_dir: Path, *wanted: bytes) -> list[str]:
    """The files of the state directory whose raw bytes hold one of these."""
    files = [path for path in state_dir.rglob("*") if path.is_file()]
    assert any(path.name == "journal.db" for path in files)
    return [path.name for path in files if any(bytes_ in path.read_bytes() for bytes_ in wanted)]


async def sound(daemon: RunningDaemon) -> tuple[str, ...]:
    """Chain, projections and disk agree; what could not be checked."""
    async with daemon.client() as person:
        rebuilt = await person.journal_rebuild()
        assert rebuilt.ok, rebuilt.first_difference
        report = await person.journal_verify()
        assert report.ok, report.problems
    return report.unchecked


async def test_a_reason_and_a_pattern_are_gone_and_the_rest_stays(daemon: RunningDaemon) -> None:
    code = await daemon.make_approver()
    (daemon.workspace / "a.txt").write_text("one\ntwo\n")
    async with daemon.client("alice") as alice:
        await alice.read_file("a.txt")
        made = await alice.edit_file("a.txt", [Replacement(search="two", replace="2")], reason=f"because {MARKER}")
        await alice.search_content(MARKER)
    async with daemon.client() as person:
        (search,) = (await person.journal_query(kind="content_searched")).entries
        assert MARKER.encode() in (daemon.state_dir / "journal.db-wal").read_bytes()
        first = await person.journal_redact(event=made.change, approver=code, reason="a password")
        second = await person.journal_redact(event=search.seq, approver=code, fields=("pattern",))
        assert (first.fields, second.fields) == (("reason",), ("pattern",))
        assert first.scrubbed, "the log was cut"
        assert second.scrubbed, "the log was cut"
        assert holding(daemon.state_dir, MARKER.encode()) == []
        history = await person.file_history("a.txt")
        assert history.versions[0].reason == "(redacted)"
        (redacted,) = (await person.journal_query(kind="content_searched")).entries
        assert redacted.event["pattern"] == "(redacted)"
        with pytest.raises(RemoteError) as nothing_left:
            await person.journal_redact(event=made.change, approver=code)
        assert nothing_left.value.code == "not_redactable"
    unchecked = await sound(daemon)
    assert any("2 redacted payloads," in line for line in unchecked), unchecked
    assert daemon.stop() == 0
    assert holding(daemon.state_dir, MARKER.encode()) == []
    daemon.start()  # the check of the chain's end lets redacted events through
    await sound(daemon)


async def test_the_same_text_elsewhere_is_named(daemon: RunningDaemon) -> None:
    code = await daemon.make_approver()
    async with daemon.client("alice") as alice:
        await alice.search_content(MARKER)
        await alice.search_content(f"{MARKER} once more")
    async with daemon.client() as person:
        later, earlier = (await person.journal_query(kind="content_searched")).entries
        done = await person.journal_redact(event=earlier.seq, approver=code)
    assert f"the same text is also in {later.seq}: redact those too" in done.warnings


@pytest.mark.parametrize(("event", "code"), [("@1", "not_redactable"), ("@9999", "version_unknown")])
async def test_what_cannot_be_redacted_is_said(daemon: RunningDaemon, event: str, code: str) -> None:
    approver = await daemon.make_approver()
    async with daemon.client() as person:
        with pytest.raises(RemoteError) as refused:
            await person.journal_redact(event=event, approver=approver)
        assert refused.value.code == code
        with pytest.raises(RemoteError) as unapproved:
            await person.journal_redact(event=event, approver="wrong")
        assert unapproved.value.code == "approver_code_needed"


@pytest.mark.parametrize("text", [pytest.param(SECRET, id="in the database"), pytest.param(LARGE, id="a file")])
async def test_a_content_is_gone_in_every_form(daemon: RunningDaemon, text: str) -> None:
    code = await daemon.make_approver()
    data = text.encode()
    packed = zstd.compress(data, LEVEL)[20:2000]
    assert len(packed) > 200
    async with daemon.client("alice") as alice:
        made = await alice.write_file("secret.py", text, mode="create")
        gone = await alice.write_file("secret.py", "harmless\n", mode="truncate")
    if text is SECRET:  # a page of the database; before the log is folded it is there
        assert holding(daemon.state_dir, packed) != []
    else:
        assert holding(daemon.state_dir, packed) == [digest_of(data)[9:]]
    async with daemon.client() as person:
        done = await person.journal_redact(blob=made.version_id, approver=code, reason="leaked")
        assert (done.digest, done.size, done.scrubbed) == (digest_of(data), len(data), True)
        assert holding(daemon.state_dir, packed) == []
        versions = (await person.file_history("secret.py")).versions
        assert [version.not_kept for version in versions] == [False, True]
    async with daemon.client("alice") as alice:
        with pytest.raises(RemoteError) as refused:
            await alice.revert(gone.change or "")
        assert refused.value.code == "version_not_kept"
        assert "redacted" in refused.value.hint
    await sound(daemon)
    assert daemon.stop() == 0
    assert holding(daemon.state_dir, packed) == []


async def test_a_content_that_is_still_in_a_file_is_warned_of_and_kept_again(daemon: RunningDaemon) -> None:
    code = await daemon.make_approver()
    (daemon.workspace / "secret.py").write_text(SECRET)
    digest = digest_of(SECRET.encode())
    async with daemon.client("alice") as alice, daemon.client() as person:
        await alice.read_file("secret.py")
        done = await person.journal_redact(blob=digest, approver=code)
        assert any(warning.startswith("secret.py holds this content now") for warning in done.warnings)
        with pytest.raises(RemoteError) as gone:
            await person.journal_redact(blob=digest, approver=code)
        assert gone.value.code == "version_not_kept"
        await sound(daemon)
        await alice.read_file("secret.py")
        await sound(daemon)
        (version,) = (await person.file_history("secret.py")).versions
        assert not version.not_kept


async def test_an_altered_rest_of_a_redacted_event_is_found(daemon: RunningDaemon) -> None:
    code = await daemon.make_approver()
    async with daemon.client("alice") as alice:
        await alice.search_content(MARKER)
    async with daemon.client() as person:
        (search,) = (await person.journal_query(kind="content_searched")).entries
        await person.journal_redact(event=search.seq, approver=code)
        connection = sqlite3.connect(daemon.state_dir / "journal.db")
        connection.execute(
            "UPDATE events SET payload = CAST(replace(CAST(payload AS TEXT), 'redacted', 'altered') AS BLOB) "
            "WHERE tag = 'content_searched'"
        )
        connection.commit()
        connection.close()
        report = await person.journal_verify()
    assert any("is not what its redaction" in problem for problem in report.problems), report.problems


# --- cut off ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "at", "there"),
    [
        pytest.param("event", "txn_open:payload_redacted", True, id="event, inside the transaction"),
        pytest.param("event", "txn_committed:payload_redacted", False, id="event, committed and not yet scrubbed"),
        pytest.param("blob", "txn_open:content_redacted", True, id="content, inside the transaction"),
        pytest.param("blob", "txn_committed:content_redacted", False, id="content, committed and its file still there"),
    ],
)
async def test_a_redaction_cut_off_is_whole_or_not_there(base: Path, kind: str, at: str, there: bool) -> None:
    ground = Ground(base, module=CRASHING)
    ground.start("--at", at)
    code = await ground.make_approver()
    async with ground.client("alice") as alice:
        made = await alice.write_file("secret.py", LARGE, mode="create", reason=f"for {MARKER} only")
        await alice.write_file("secret.py", "harmless\n", mode="truncate")
    async with ground.client() as person:
        event, blob = (made.change, None) if kind == "event" else (None, made.version_id)
        with pytest.raises((DaemonRestarted, DaemonUnreachable)):
            await person.journal_redact(event=event, blob=blob, approver=code)
    assert ground.wait() == -9
    sought = f"for {MARKER} only".encode() if kind == "event" else zstd.compress(LARGE.encode(), LEVEL)[20:2000]
    with ground.serving():
        tag = "payload_redacted" if kind == "event" else "content_redacted"
        async with ground.client() as person:
            said = (await person.journal_query(kind=tag)).entries
            newest = (await person.file_history("secret.py")).versions[-1]
        assert len(said) == (0 if there else 1)
        if kind == "event":
            assert newest.reason == (f"for {MARKER} only" if there else "(redacted)")
        else:
            assert newest.not_kept is not there
        await ground.agrees()
    assert bool(holding(ground.state_dir, sought)) is there
    assert os.listdir(ground.state_dir / "blobs" / "incoming") == []
