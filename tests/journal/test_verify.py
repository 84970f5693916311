"""What was altered behind the journal's back is found, and its place is named."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from orchestrator.core.errors import JournalCorrupt
from orchestrator.core.events.codec import encode
from orchestrator.core.events.journal_maintenance import PayloadRedacted
from orchestrator.core.ids import Seq
from orchestrator.journal import startup_checks
from orchestrator.journal.blobs import zstd
from orchestrator.journal.database_file import FILE_NAME
from tests.journal.altered_journal import alter
from tests.journal.conftest import Open
from tests.journal.fixtures import STREAM, TASK, applied, by, digest, found, intended, looked, unit

pytestmark = pytest.mark.anyio

LARGE = b"0123456789" * 30_000


async def filled(opened: Open) -> None:
    """@1 … @10, two versions of a file, a content in the database and one in a file."""
    journal = await opened()
    await journal.append(unit(looked("1"), looked("2"), stream="x", origin=by(request="r")))
    await journal.append(unit(found(b"one"), stream="workspace", blobs=[b"one"]))
    (intent,) = await journal.append(unit(intended(b"one", LARGE), stream=STREAM, origin=by(), blobs=[LARGE]))
    await journal.append(unit(applied(intent.seq, b"one", LARGE), stream=STREAM, origin=by()))
    await journal.append(unit(*(looked(str(number)) for number in range(6, 11)), stream="x"))
    await journal.close()


IN_THE_CHAIN = [
    pytest.param(
        "UPDATE events SET payload = ? WHERE seq = 6", (encode(looked("!")),), "payload of event @6", id="payload"
    ),
    pytest.param("UPDATE events SET salt = zeroblob(16) WHERE seq = 6", (), "payload of event @6", id="salt"),
    pytest.param("UPDATE events SET payload_hash = zeroblob(32) WHERE seq = 6", (), "event @6", id="payload hash"),
    pytest.param("UPDATE events SET hash = zeroblob(32) WHERE seq = 6", (), "envelope of event @6", id="hash"),
    pytest.param("UPDATE events SET prev_hash = zeroblob(32) WHERE seq = 6", (), "@6 does not follow @5", id="link"),
    *(
        pytest.param(f"UPDATE events SET {column} = ? WHERE seq = 4", (value,), "envelope of event @4", id=column)
        for column, value in (
            ("at", 1),
            ("stream", "file:other"),
            ("stream_version", 9),
            ("tag", "change_applied"),
            ("session", "other"),
            ("agent", "other"),
            ("owner", "other"),
            ("request_id", "other"),
            ("request_digest", "other"),
            ("cause", 1),
            ("trace_id", "other"),
            ("client_call_id", "other"),
        )
    ),
    pytest.param("DELETE FROM events WHERE seq = 7", (), "missing before event @8: @7", id="one event gone"),
    pytest.param("DELETE FROM events WHERE seq IN (7, 8)", (), "missing before event @9: @7 to @8", id="two gone"),
    pytest.param("DELETE FROM events WHERE seq = 1", (), "missing before event @2: @1", id="the first gone"),
]


@pytest.mark.parametrize(("statement", "values", "place"), IN_THE_CHAIN)
async def test_a_broken_chain_is_found_at_the_start(
    state_dir: Path, opened: Open, statement: str, values: tuple[Any, ...], place: str
) -> None:
    await filled(opened)
    alter(state_dir, statement, *values)
    with pytest.raises(JournalCorrupt, match=place):
        await opened()
    report = await (await opened(readonly=True)).verify()
    assert any(place in problem for problem in report.problems), report.problems


async def test_the_start_checks_the_tail_only_and_verify_all(
    state_dir: Path, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    await filled(opened)
    alter(state_dir, "UPDATE events SET payload = ? WHERE seq = 2", encode(looked("!")))
    monkeypatch.setattr(startup_checks, "TAIL", 1)
    monkeypatch.setattr(startup_checks, "MOST_TAIL", 9)
    with pytest.raises(JournalCorrupt, match="event @2"):
        await opened()
    monkeypatch.setattr(startup_checks, "MOST_TAIL", 8)
    report = await (await opened()).verify()
    assert report.problems == ("the payload of event @2 was altered",)


@pytest.mark.parametrize(
    ("statement", "values", "place"),
    [
        pytest.param(
            "UPDATE blobs SET data = (SELECT data FROM blobs WHERE size < 0) WHERE size = 3", (), "read", id="blob gone"
        ),
        pytest.param("UPDATE blobs SET data = x'00' WHERE size = 3", (), "can't be read", id="blob is no zstd"),
        pytest.param("UPDATE blobs SET size = 2 WHERE size = 3", (), "is not what", id="blob larger than it says"),
        pytest.param("UPDATE blobs SET size = 9 WHERE size = 3", (), "is not what", id="blob smaller than it says"),
        pytest.param(
            "UPDATE file_versions SET mode = 511 WHERE seq = 5", (), "/src/a.py/@5/mode: 511 and", id="version altered"
        ),
        pytest.param("DELETE FROM file_versions WHERE seq = 3", (), "/src/a.py/@3: None and", id="version gone"),
        pytest.param(
            "INSERT INTO file_versions SELECT 'b', seq, effective, at, kind, operation, digest, present, size, mode, "
            "change, agent, session, task, approval, undoes, moved_from FROM file_versions WHERE seq = 3",
            (),
            "/file_versions/b/@3: ",
            id="version made up",
        ),
        pytest.param("UPDATE requests SET seq = 99", (), "@99, what no event says", id="request leads nowhere"),
        pytest.param("UPDATE requests SET seq = 3", (), "@3, what no event says", id="request leads elsewhere"),
        pytest.param(
            "UPDATE requests SET digest = 'x'", (), "@1, what no event says", id="request of other parameters"
        ),
        pytest.param("UPDATE requests SET agent = 'x'", (), "what no event says", id="request of another agent"),
        pytest.param("DELETE FROM requests", (), "'r' of event @1 is missing", id="request gone"),
        pytest.param(
            "INSERT INTO requests SELECT agent, 's', digest, seq FROM requests",
            (),
            "'s', event @1, what no event says",
            id="request made up",
        ),
        pytest.param(
            "UPDATE blobs SET data = CAST(data || x'00' AS BLOB) WHERE size = 3",
            (),
            "bytes behind it",
            id="blob with something more",
        ),
    ],
)
async def test_what_hangs_on_the_events_is_checked_too(
    state_dir: Path, opened: Open, statement: str, values: tuple[Any, ...], place: str
) -> None:
    await filled(opened)
    alter(state_dir, statement, *values)
    report = await (await opened()).verify()
    problems = [
        problem for problem in report.problems if "'r' of event @1 is missing" not in problem or place in problem
    ]
    assert len(problems) == 1
    assert place in problems[0]


@pytest.mark.parametrize("more", [b"\0", b"x" * 100_000], ids=len)
async def test_what_lies_behind_a_content_in_its_file_is_found_and_not_read(
    state_dir: Path, opened: Open, more: bytes
) -> None:
    await filled(opened)
    (file,) = (path for path in (state_dir / "blobs").rglob("*") if path.is_file())
    with file.open("ab") as content:
        content.write(more)
    journal = await opened()
    assert len((await journal.verify()).problems) == 1
    assert await journal.blob(digest(LARGE)) == LARGE


async def test_a_request_that_was_sent_again_and_one_that_took_several_units(opened: Open) -> None:
    journal = await opened()
    for _ in range(3):
        await journal.append(unit(looked("1"), looked("2"), stream="x", origin=by(request="r")))
        await journal.append(unit(looked("3"), stream="x", origin=by(request="s")))
    for count in (1, 2, 5):
        await journal.append(unit(*(looked("4") for _ in range(count)), stream="x", origin=by(request="t")))
    assert (await journal.verify()).problems == ()


@pytest.mark.parametrize("key", ["journal", "epoch"])
@pytest.mark.parametrize("readonly", [False, True])
async def test_a_journal_that_does_not_say_which_it_is(state_dir: Path, opened: Open, key: str, readonly: bool) -> None:
    await filled(opened)
    alter(state_dir, "DELETE FROM meta WHERE key = ?", key)
    with pytest.raises(JournalCorrupt, match=f"lacks {key}"):
        await opened(readonly=readonly)


async def test_an_altered_content_is_never_handed_out(state_dir: Path, opened: Open) -> None:
    await filled(opened)
    alter(state_dir, "UPDATE blobs SET data = ? WHERE size = 3", zstd.compress(b"two", 1))
    with pytest.raises(JournalCorrupt, match=digest(b"one")):
        await (await opened()).blob(digest(b"one"))


async def test_a_stream_with_a_hole_in_an_unbroken_chain(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """A defect of ours, not an attack: the chain holds, the numbers don't."""
    from orchestrator.journal.append_validation import AppendValidator

    journal = await opened()
    await journal.append(unit(looked(), stream="x"))
    monkeypatch.setattr(AppendValidator, "_version", lambda self, stream: 5)
    await journal.append(unit(looked(), stream="x"))
    assert (await journal.verify()).problems == ("event @2 is number 6 of x, where 2 should be",)


async def test_a_spoilt_page_is_a_problem_and_no_end(state_dir: Path, opened: Open) -> None:
    journal = await opened()
    for number in range(40):
        await journal.append(unit(*(looked(f"{number} {'x' * 100}") for _ in range(50)), stream="x"))
    await journal.close()
    path = state_dir / FILE_NAME
    connection = sqlite3.connect(path)
    (page,) = connection.execute("PRAGMA page_size").fetchone()
    connection.close()
    data = bytearray(path.read_bytes())
    middle = len(data) // page // 2 * page
    data[middle : middle + page] = bytes(page)
    path.write_bytes(data)
    report = await (await opened(readonly=True)).verify()
    assert report.problems != ()


async def test_an_index_that_hides_an_event_is_found(state_dir: Path, opened: Open) -> None:
    await filled(opened)
    alter(state_dir, "DROP INDEX events_by_tag")
    alter(state_dir, "CREATE INDEX events_by_tag ON events (tag) WHERE seq <> 3")
    connection = sqlite3.connect(state_dir / FILE_NAME)
    connection.execute("PRAGMA writable_schema = ON")
    connection.execute(
        "UPDATE sqlite_schema SET sql = 'CREATE INDEX events_by_tag ON events (tag)' WHERE name = 'events_by_tag'"
    )
    connection.commit()
    connection.close()
    (problem,) = [problem for problem in (await (await opened()).verify()).problems if "missing" in problem]
    assert "events_by_tag" in problem


async def test_a_whole_journal(opened: Open) -> None:
    await filled(opened)
    journal = await opened()
    report = await journal.verify()
    last = await journal.newest(limit=1)
    assert (report.events, report.head, report.blobs, report.problems) == (10, 10, 2, ())
    assert report.head_hash == last[0].hash.hex()
    assert report.unchecked != ()


async def test_a_content_that_an_event_names_and_that_is_gone_is_found(state_dir: Path, opened: Open) -> None:
    journal = await opened()
    await journal.append(unit(intended(b"a", b"b"), stream="file:a", blobs=[b"b"]))
    assert (await journal.verify()).problems == ()
    await journal.close()
    alter(state_dir, "DELETE FROM blobs")
    again = await opened()
    assert [problem for problem in (await again.verify()).problems if "which event @1 names, is missing" in problem]


async def test_a_lost_journal_is_not_begun_anew(state_dir: Path, opened: Open) -> None:
    journal = await opened()
    await journal.append(unit(looked(), blobs=[b"x" * 300_000]))
    await journal.close()
    (state_dir / "journal.db").unlink()
    with pytest.raises(JournalCorrupt, match="is gone"):
        await opened()


# --- redactions ---------------------------------------------------------------------------


async def test_a_payload_that_was_taken_out_without_an_event_is_found(state_dir: Path, opened: Open) -> None:
    await filled(opened)
    alter(state_dir, "UPDATE events SET payload = ?, salt = zeroblob(24) WHERE seq = 6", encode(looked("!")))
    place = "the payload of event @6 was taken out, and no event says that it was redacted"
    with pytest.raises(JournalCorrupt, match=place):
        await opened()
    assert (await (await opened(readonly=True)).verify()).problems == (place,)


async def redacted(opened: Open) -> None:
    await filled(opened)
    journal = await opened()
    await journal.append(unit(TASK, stream="t"))
    await journal.redact(PayloadRedacted(target=Seq(11), fields=("title",), by="ada"), by())
    await journal.close()


async def test_a_redacted_event_is_counted_and_its_rest_is_checked(state_dir: Path, opened: Open) -> None:
    await redacted(opened)
    report = await (await opened()).verify()
    assert report.problems == ()
    assert any(line.startswith("1 redacted payload,") for line in report.unchecked)
    await (await opened(readonly=True)).close()
    alter(state_dir, "UPDATE events SET payload = ? WHERE seq = 11", encode(TASK))
    report = await (await opened(readonly=True)).verify()
    assert report.problems == ("the payload of event @11 is not what its redaction @12 left of it",)


async def test_a_redaction_that_was_altered_is_found(state_dir: Path, opened: Open) -> None:
    await redacted(opened)
    with closing(sqlite3.connect(state_dir / FILE_NAME)) as journal:
        (event,) = journal.execute("SELECT payload FROM events WHERE seq = 12").fetchone()
    alter(
        state_dir,
        "UPDATE events SET payload = ?, salt = zeroblob(24) WHERE seq = 12",
        event.replace(b'"ada"', b'"eve"'),
    )
    place = "the payload of event @12 was taken out, and no event says that it was redacted"
    with pytest.raises(JournalCorrupt, match=place):
        await opened()
    assert (await (await opened(readonly=True)).verify()).problems == (place,)


async def test_a_redaction_of_a_redaction_explains_both(opened: Open) -> None:
    await filled(opened)
    journal = await opened()
    await journal.append(unit(TASK, stream="t"))
    await journal.redact(PayloadRedacted(target=Seq(11), fields=("title",), by="ada", reason="x"), by())
    await journal.redact(PayloadRedacted(target=Seq(12), fields=("reason",), by="ada"), by())
    report = await journal.verify()
    assert report.problems == ()
    assert any(line.startswith("2 redacted payloads,") for line in report.unchecked)
