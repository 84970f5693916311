"""What every journal promises; see `ports.Journal`."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import msgspec
import pytest
from anyio import to_thread
from anyio.lowlevel import checkpoint
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestrator.core.change import PathChange, Provenance
from orchestrator.core.content import FoundFile, LargeContent, Signature, Splice, SplicedContent, digest_of
from orchestrator.core.errors import CheckpointOfAnotherJournal, RequestIdReused, VersionUnknown, WritesStopped
from orchestrator.core.events.base import Event, Origin, Recorded
from orchestrator.core.events.chain import Checkpoint
from orchestrator.core.events.codec import EventNotSerializable, encode
from orchestrator.core.events.files import ChangeApplied, ExternalFileRemoved, FilesFound
from orchestrator.core.events.journal_maintenance import ContentRedacted, PayloadRedacted
from orchestrator.core.events.sessions import TaskBegun
from orchestrator.core.ids import Digest, Seq, SessionId, WorkspacePath
from orchestrator.core.projections.versions import VersionRow
from orchestrator.journal.sqlite import SqliteJournal
from orchestrator.ports.journal import (
    ANY_VERSION,
    AppendBatch,
    EventFilter,
    Journal,
    Mention,
    NewEvent,
    RequestSeen,
    StreamMoved,
)
from tests.in_memory.journal import MemoryJournal, mentioned
from tests.journal.fixtures import (
    PATH,
    STREAM,
    SeededEntropy,
    SteppingClock,
    aborted,
    applied,
    by,
    digest,
    found,
    intended,
    looked,
    seqs,
    unit,
)

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(params=["sqlite", "memory"])
async def journal(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Journal]:
    clock, entropy = SteppingClock(), SeededEntropy()
    made: Journal
    if request.param == "sqlite":
        made = await SqliteJournal.open(tmp_path / "state", clock=clock, entropy=entropy)
    else:
        made = MemoryJournal(clock=clock, entropy=entropy)
    yield made
    report = await made.verify()
    await made.close()
    assert report.problems == ()


async def all_of(journal: Journal, wanted: EventFilter | None = None, *, batch: int = 1000) -> list[Recorded]:
    return [recorded async for recorded in journal.events(wanted or EventFilter(), batch=batch)]


# --- appending --------------------------------------------------------------------------


async def test_an_empty_journal(journal: Journal) -> None:
    assert journal.head == 0
    assert journal.stream_version("session:s") == 0
    assert await all_of(journal) == []
    assert await journal.newest(limit=3) == []
    assert await journal.event(1) is None
    assert (await journal.verify()).events == 0


async def test_an_append_gives_positions_and_versions(journal: Journal) -> None:
    one, two = await journal.append(unit(looked("a"), looked("b"), stream="x", origin=by()))
    (three,) = await journal.append(unit(looked("c"), stream="y"))
    assert seqs((one, two, three)) == [1, 2, 3]
    assert [one.stream_version, two.stream_version, three.stream_version] == [1, 2, 1]
    assert (journal.head, journal.stream_version("x"), journal.stream_version("y")) == (3, 2, 1)
    assert (one.origin, one.event) == (by(), looked("a"))
    assert one.at == two.at < three.at
    assert (two.prev_hash, three.prev_hash) == (one.hash, two.hash)
    assert await all_of(journal) == [one, two, three]
    assert await journal.event(2) == two


async def test_expected_versions_count_within_the_unit(journal: Journal) -> None:
    await journal.append(unit(looked(), looked(), stream="x", expected=0))
    await journal.append(unit(looked(), stream="x", expected=2))
    assert journal.stream_version("x") == 3


async def test_a_stream_that_moved_takes_nothing(journal: Journal) -> None:
    await journal.append(unit(looked(), stream="x", expected=0))
    late = AppendBatch(
        (NewEvent("y", looked(), ANY_VERSION), NewEvent("x", looked(), 0)),
        by(request="r"),
        ((digest(b"late"), b"late"),),
    )
    with pytest.raises(StreamMoved) as moved:
        await journal.append(late)
    assert (moved.value.stream, moved.value.expected, moved.value.found) == ("x", 0, 1)
    assert (journal.head, journal.stream_version("y")) == (1, 0)
    assert await journal.blob(digest(b"late")) is None
    assert await journal.request("bot", "r") is None
    (after,) = await journal.append(unit(looked(), stream="x", expected=1))
    assert after.seq == 2


async def test_an_event_that_cannot_be_stored_takes_nothing(journal: Journal) -> None:
    with pytest.raises(EventNotSerializable):
        await journal.append(unit(looked("ok"), looked("\ud800")))
    assert await all_of(journal) == []
    await journal.append(unit(looked()))
    assert journal.head == 1


async def test_one_of_many_that_compete_for_a_version_wins(journal: Journal) -> None:
    won: list[int] = []
    lost: list[int] = []

    async def compete(number: int) -> None:
        try:
            await journal.append(unit(looked(str(number)), stream="x", expected=0))
        except StreamMoved:
            lost.append(number)
        else:
            won.append(number)

    async with anyio.create_task_group() as group:
        for number in range(20):
            group.start_soon(compete, number)
    assert (len(won), len(lost)) == (1, 19)
    assert seqs(await all_of(journal)) == [1]


# --- requests ---------------------------------------------------------------------------


async def test_a_request_is_known_by_its_agent_and_id(journal: Journal) -> None:
    await journal.append(unit(looked()))
    await journal.append(unit(looked(), looked(), origin=by("bot", request="r", digest="d1")))
    assert await journal.request("bot", "r") == RequestSeen("d1", Seq(2))
    assert await journal.request("bot", "other") is None
    assert await journal.request("other", "r") is None


async def test_a_later_unit_of_the_same_request_is_what_it_led_to(journal: Journal) -> None:
    """So a retry after an aborted change is not run a third time."""
    origin = by(request="r")
    for event in (intended(b"a", b"b"), aborted(Seq(1)), intended(b"a", b"b"), applied(Seq(3), b"a", b"b")):
        await journal.append(unit(event, stream=STREAM, origin=origin, blobs=[b"b"]))
    seen = await journal.request("bot", "r")
    assert seen is not None
    assert seen.seq == 4


async def test_a_request_id_with_another_digest_takes_nothing(journal: Journal) -> None:
    await journal.append(unit(looked(), origin=by(request="r", digest="d1")))
    with pytest.raises(RequestIdReused):
        await journal.append(unit(looked(), origin=by(request="r", digest="d2")))
    assert journal.head == 1
    assert await journal.request("bot", "r") == RequestSeen("d1", Seq(1))


async def test_two_digests_of_one_request_id_at_once(journal: Journal) -> None:
    refused: list[str] = []

    async def ask(name: str) -> None:
        try:
            await journal.append(unit(looked(name), origin=by(request="r", digest=name)))
        except RequestIdReused:
            refused.append(name)

    async with anyio.create_task_group() as group:
        for name in "abcd":
            group.start_soon(ask, name)
    assert len(refused) == 3
    assert journal.head == 1


# --- contents ---------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 1, 16 * 1024 + 1, 256 * 1024, 256 * 1024 + 1, 700_000])
async def test_contents_come_with_their_events(journal: Journal, size: int) -> None:
    data = (b"0123456789abcdef" * (size // 16 + 1))[:size]
    assert await journal.blob(digest(data)) is None
    assert not await journal.has_blob(digest(data))
    for _ in range(2):
        await journal.append(unit(looked(), blobs=(data, data)))
    assert await journal.has_blob(digest(data))
    assert await journal.blob(digest(data)) == data
    assert (await journal.verify()).blobs == 1


async def test_a_content_is_stored_and_read_piece_by_piece(journal: Journal) -> None:
    pieces = [os.urandom(100_000) for _ in range(30)]
    data = b"".join(pieces)
    staged = await to_thread.run_sync(journal.stage, iter(pieces), len(data))
    assert staged is not None
    assert (staged.digest, staged.size) == (digest_of(data), len(data))
    assert not await journal.has_blob(staged.digest)
    await journal.append(AppendBatch((), Origin(), ((staged.digest, staged),)))
    journal.discard(staged)
    assert await journal.content(staged.digest, most=len(data)) == data
    content = await journal.content(staged.digest, most=len(data) - 1)
    assert content == LargeContent(staged.digest, len(data))
    assert b"".join(await to_thread.run_sync(list, journal.blocks(LargeContent(staged.digest, len(data))))) == data
    again = await to_thread.run_sync(journal.stage, iter(pieces), len(data))
    assert again is not None
    await journal.append(AppendBatch((), Origin(), ((again.digest, again),)))
    journal.discard(again)
    assert await journal.blob(staged.digest) == data


async def test_a_content_is_kept_as_splices_of_another(journal: Journal) -> None:
    data = os.urandom(400_000)
    whole = LargeContent(digest_of(data), len(data))
    splices = (Splice(0, 10, b"begin"), Splice(200_000, 0, b"middle"), Splice(399_999, 1, b"end"))
    made = b"begin" + data[10:200_000] + b"middle" + data[200_000:-1] + b"end"
    content = SplicedContent(digest_of(made), len(made), whole, splices)
    await journal.append(AppendBatch((), Origin(), ((whole.digest, data),)))
    await journal.append(AppendBatch((), Origin(), ((content.digest, content),)))
    assert await journal.blob(content.digest) == made
    found = await journal.content(content.digest, most=1000)
    assert isinstance(found, LargeContent)
    assert (found.digest, found.size) == (content.digest, content.size)
    assert b"".join(await to_thread.run_sync(list, journal.blocks(found))) == made
    assert await journal.spliced_of(whole.digest) == [content.digest]
    assert await journal.spliced_of(content.digest) == []
    assert (await journal.verify()).problems == ()


@pytest.mark.parametrize("size", [2_999, 3_001], ids=["more than was said", "less than was said"])
async def test_a_content_of_another_size_is_not_stored(journal: Journal, size: int) -> None:
    assert await to_thread.run_sync(journal.stage, iter([b"x" * 3_000]), size) is None


async def test_a_content_that_is_not_wanted_leaves_nothing(journal: Journal) -> None:
    staged = await to_thread.run_sync(journal.stage, iter([b"y" * 3_000]), 3_000)
    assert staged is not None
    journal.discard(staged)
    assert not Path(staged.draft).exists()
    assert await journal.content(staged.digest, most=10) is None


async def test_contents_may_come_alone(journal: Journal) -> None:
    assert await journal.append(unit(origin=by(request="r"), blobs=[b"alone"])) == ()
    assert await journal.blob(digest(b"alone")) == b"alone"
    assert (journal.head, await journal.request("bot", "r")) == (0, None)


# --- folds ------------------------------------------------------------------------------


async def test_folds_see_events_in_order_before_the_caller_goes_on(journal: Journal) -> None:
    folded: list[int] = []
    heads: list[int] = []

    def fold(recorded: Recorded) -> None:
        folded.append(recorded.seq)
        heads.append(journal.head)

    journal.subscribe(fold)
    behind: list[int] = []

    async def append(number: int) -> None:
        recorded = await journal.append(unit(looked(), looked(), stream=f"s{number % 3}"))
        behind.extend(seq for seq in seqs(recorded) if seq not in folded)

    async with anyio.create_task_group() as group:
        for number in range(50):
            group.start_soon(append, number)
    assert folded == list(range(1, 101))
    assert all(head >= seq for head, seq in zip(heads, folded, strict=True))
    assert behind == []


@pytest.mark.parametrize("size", [10, 300_000], ids=["small", "large content"])
async def test_a_cancelled_append_still_happens_and_is_folded(journal: Journal, size: int) -> None:
    folded: list[Event] = []
    journal.subscribe(lambda recorded: folded.append(recorded.event))
    data = b"x" * size
    with anyio.CancelScope() as scope:
        scope.cancel()
        await journal.append(unit(looked("cancelled"), blobs=[data]))
        pytest.fail("nobody was cancelled")
    await resolved(journal, 1)
    await journal.append(unit(looked("later")))
    assert folded == [looked("cancelled"), looked("later")]
    assert await journal.blob(digest(data)) == data


async def test_a_fold_that_fails_stops_writing_and_hangs_nobody(journal: Journal) -> None:
    def fold(recorded: Recorded) -> None:
        raise KeyError(recorded.seq)

    journal.subscribe(fold)
    with pytest.raises(WritesStopped, match="event @1"):
        await journal.append(unit(looked()))
    with pytest.raises(WritesStopped, match="event @1"):
        await journal.append(unit(looked()))
    assert seqs(await all_of(journal)) == [1]


async def resolved(journal: Journal, head: int) -> None:
    with anyio.fail_after(60):
        while journal.head < head:
            await checkpoint()


async def test_nothing_is_appended_after_the_end(journal: Journal, tmp_path: Path) -> None:
    other: Journal
    if isinstance(journal, SqliteJournal):
        other = await SqliteJournal.open(tmp_path / "other", clock=SteppingClock(), entropy=SeededEntropy())
    else:
        other = MemoryJournal(clock=SteppingClock(), entropy=SeededEntropy())
    await other.close()
    with pytest.raises(WritesStopped):
        await other.append(unit(looked()))


# --- versions of files ------------------------------------------------------------------


async def version_seqs(journal: Journal, *ats: int) -> list[int | None]:
    rows: list[VersionRow | None] = [await journal.version_at(PATH, at) for at in ats]
    return [row.seq if row else None for row in rows]


async def test_a_change_is_the_content_from_its_intent_on(journal: Journal) -> None:
    await journal.append(unit(looked()))
    await journal.append(unit(found(b"one"), stream="workspace", blobs=[b"one"]))  # @2
    (intent,) = await journal.append(unit(intended(b"one", b"two"), stream=STREAM, blobs=[b"two"]))  # @3
    await journal.append(unit(looked()))  # @4
    assert await version_seqs(journal, 1, 2, 3, 4) == [None, 2, 2, 2]
    (outcome,) = await journal.append(unit(applied(intent.seq, b"one", b"two"), stream=STREAM, origin=by()))  # @5
    assert await version_seqs(journal, 1, 2, 3, 4, 5, 99) == [None, 2, 5, 5, 5, 5]
    rows = await journal.versions(PATH, limit=10)
    assert rows[0] == VersionRow(
        path=PATH,
        seq=outcome.seq,
        effective=intent.seq,
        at=outcome.at,
        kind="change",
        operation="edit_file",
        digest=digest(b"two"),
        size=3,
        mode=0o644,
        change=intent.seq,
        agent=by().agent,
        session="s",
        undoes=True,
    )
    assert [row.seq for row in rows] == [5, 2]
    assert await journal.versions(WorkspacePath("other"), limit=10) == []


async def test_versions_come_in_pages(journal: Journal) -> None:
    for number in range(5):
        await journal.append(unit(found(b"%d" % number), stream="workspace"))
    assert [row.seq for row in await journal.versions(PATH, limit=2)] == [5, 4]
    assert [row.seq for row in await journal.versions(PATH, limit=2, before=4)] == [3, 2]
    assert [row.seq for row in await journal.versions(PATH, limit=9, before=2)] == [1]


async def test_versions_come_with_their_events(journal: Journal) -> None:
    await journal.append(unit(found(b"one"), stream="workspace", blobs=[b"one"]))  # @1
    await journal.append(unit(looked()))  # @2
    (intent,) = await journal.append(unit(intended(b"one", b"two"), stream=STREAM, blobs=[b"two"]))  # @3
    (outcome,) = await journal.append(unit(applied(intent.seq, b"one", b"two"), stream=STREAM, origin=by()))  # @4
    await journal.append(unit(found(b"two", version=1), stream="workspace"))  # @5: no version of its own
    versions = await journal.changes_of(PATH, until=99)
    assert [(known.row.seq, known.recorded.seq) for known in versions] == [(1, 1), (4, 4)]
    assert versions[1].recorded == outcome
    assert versions[1].row == await journal.version_at(PATH, 4)
    assert [known.row.seq for known in await journal.changes_of(PATH, until=3)] == [1]
    assert await journal.changes_of(WorkspacePath("other"), until=99) == []


async def test_many_versions_come_in_order(journal: Journal) -> None:
    for number in range(300):
        await journal.append(unit(found(b"%d" % number), stream="workspace"))
    versions = await journal.changes_of(PATH, until=299)
    assert [known.row.seq for known in versions] == list(range(1, 300))
    assert all(known.recorded.seq == known.row.seq for known in versions)


async def test_a_digest_learned_later_leaves_the_version(journal: Journal) -> None:
    await journal.append(unit(found(None), stream="workspace"))
    before = await journal.version_at(PATH, 1)
    assert before is not None
    assert before.digest is None
    await journal.append(unit(found(b"one", version=1), stream="workspace"))
    (row,) = await journal.versions(PATH, limit=10)
    assert (row.seq, row.digest, row.at) == (1, digest(b"one"), before.at)
    await journal.append(unit(found(b"two", version=1), stream="workspace"))
    assert await journal.version_at(PATH, 3) == row


async def test_the_newest_version_with_a_content(journal: Journal) -> None:
    for data in (b"one", b"two", b"one", b"three"):
        await journal.append(unit(found(data), stream="workspace"))
    row = await journal.version_with(PATH, digest(b"one"))
    assert row is not None
    assert row.seq == 3
    assert await journal.version_with(PATH, digest(b"four")) is None


def undo(*changes: int) -> Provenance:
    return Provenance(operation="rollback", reverts=tuple(map(Seq, changes)))


async def test_where_a_file_was_moved_and_what_was_undone(journal: Journal) -> None:
    old, new = WorkspacePath("old"), WorkspacePath("new")
    moved = (
        PathChange(path=old, before=digest(b"x"), after=None),
        PathChange(path=new, before=None, after=digest(b"x"), moved_from=old),
    )
    await journal.append(
        unit(ChangeApplied(change=Seq(1), provenance=Provenance(operation="move_file"), paths=moved), stream="file:old")
    )
    await journal.append(unit(ChangeApplied(change=Seq(2), provenance=undo(1), paths=moved[:1]), stream="file:old"))
    await journal.append(unit(ChangeApplied(change=Seq(3), provenance=undo(1, 2), paths=moved), stream="file:old"))
    assert [(row.path, row.seq) for row in await journal.moved_away((old,))] == [("new", 1), ("new", 3)]
    assert await journal.moved_away((new,)) == []
    assert await journal.reverters() == [(3, (1, 2)), (2, (1,))]


async def test_whole_histories_of_many_files(journal: Journal) -> None:
    other = WorkspacePath("größe,\"'")
    await journal.append(unit(found(b"one"), stream="workspace"))  # @1
    await journal.append(unit(seen_at(other, b"x"), stream="workspace"))  # @2
    await journal.append(unit(found(b"two"), stream="workspace"))  # @3
    kept = FoundFile(PATH, Signature(1, 1, 1, 1), 0o755, digest(b"two"), version=Seq(3))
    await journal.append(unit(FilesFound(entries=(kept,)), stream="workspace"))  # @4: only its bits
    await journal.append(unit(FilesFound(entries=(kept,)), stream="workspace"))  # @5: nothing new
    found_rows = await journal.histories({PATH, other, WorkspacePath("never")})
    assert {path: [row.seq for row in rows] for path, rows in found_rows.items()} == {
        PATH: [1, 3],
        other: [2],
        "never": [],
    }
    assert list(found_rows[PATH]) == (await journal.versions(PATH, limit=9))[::-1]
    assert await journal.modes({PATH, other, WorkspacePath("never")}) == {PATH: ((4, 0o755),)}


# --- trees ------------------------------------------------------------------------------


def seen_at(path: str, data: bytes | None) -> FilesFound:
    known = digest(data) if data is not None else None
    return FilesFound(entries=(FoundFile(WorkspacePath(path), Signature(1, 1, 1, 1), 0o644, known),))


def removed(path: str) -> ExternalFileRemoved:
    return ExternalFileRemoved(path=WorkspacePath(path), before=None)


async def tree(journal: Journal, at: int) -> dict[str, Digest | None]:
    return {row.path: row.digest for row in await journal.tree_at(at, limit=100)}


async def test_a_tree_holds_what_was_there(journal: Journal) -> None:
    one, two = digest(b"one"), digest(b"two")
    await journal.append(unit(seen_at("b", b"one"), stream="workspace"))  # @1
    await journal.append(unit(seen_at("a", None), stream="workspace"))  # @2
    await journal.append(unit(removed("b"), stream="file:b"))  # @3
    await journal.append(unit(seen_at("b", b"two"), stream="workspace"))  # @4
    trees = [await tree(journal, at) for at in range(6)]
    assert trees == [{}, {"b": one}, {"a": None, "b": one}, {"a": None}, {"a": None, "b": two}, {"a": None, "b": two}]


async def test_a_tree_has_a_change_from_its_intent_on(journal: Journal) -> None:
    await journal.append(unit(found(b"one"), stream="workspace"))  # @1
    (intent,) = await journal.append(unit(intended(b"one", b"two"), stream=STREAM, blobs=[b"two"]))  # @2
    await journal.append(unit(looked()))  # @3
    assert await tree(journal, 3) == {PATH: digest(b"one")}
    await journal.append(unit(applied(intent.seq, b"one", b"two"), stream=STREAM))  # @4
    assert [(await tree(journal, at))[PATH] for at in (1, 2, 3, 4)] == [digest(b"one"), *[digest(b"two")] * 3]
    (row,) = await journal.tree_at(3, limit=9)
    assert row == await journal.version_at(PATH, 3)


async def test_a_tree_has_the_modes_of_its_time(journal: Journal) -> None:
    await journal.append(unit(found(b"one"), stream="workspace", blobs=[b"one"]))  # @1
    for mode in (0o755, 0o755, 0o600):  # @2, @3, @4: the version stays
        entry = FoundFile(PATH, Signature(5, 2, 2, 2), mode, digest(b"one"), version=1)
        await journal.append(unit(FilesFound(entries=(entry,)), stream=STREAM))
    (intent,) = await journal.append(unit(intended(b"one", b"two"), stream=STREAM, blobs=[b"two"]))  # @5
    await journal.append(unit(applied(intent.seq, b"one", b"two"), stream=STREAM))  # @6, 0644
    modes = [[(row.seq, row.mode) for row in await journal.tree_at(at, limit=9)] for at in range(1, 7)]
    assert modes == [[(1, 0o644)], [(1, 0o755)], [(1, 0o755)], [(1, 0o600)], [(6, 0o644)], [(6, 0o644)]]


async def test_a_tree_comes_in_pages_in_the_order_of_its_paths(journal: Journal) -> None:
    names = ["z", "a b", "a/b", "a-b", "ä", "\U0001f600", "Z", "\uffff"]
    for name in names:
        await journal.append(unit(seen_at(name, b"x"), stream="workspace"))
    await journal.append(unit(removed("a-b"), stream="file:a-b"))
    read: list[str] = []
    for _ in range(len(names)):
        page = await journal.tree_at(99, after=read[-1] if read else "", limit=3)
        read += [row.path for row in page]
        if len(page) < 3:
            break
    assert read == sorted({*names} - {"a-b"})


@given(
    steps=st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from([None, b"1", b"2"])), max_size=30),
    limit=st.integers(1, 4),
)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_a_tree_is_every_path_by_itself(
    tmp_path: Path, steps: list[tuple[str, bytes | None]], limit: int
) -> None:
    clock, entropy = SteppingClock(), SeededEntropy()
    with tempfile.TemporaryDirectory(dir=tmp_path) as state:
        real = await SqliteJournal.open(state, clock=clock, entropy=entropy)
        twin = MemoryJournal(clock=clock, entropy=entropy)
        both: tuple[Journal, Journal] = (real, twin)
        for name, data in steps:
            event: Event = removed(name) if data is None else seen_at(name, data)
            for journal in both:
                await journal.append(unit(event, stream=f"file:{name}"))
        for at in range(len(steps) + 1):
            for journal in both:
                alone = [await journal.version_at(WorkspacePath(name), at) for name in "abc"]
                paged: list[VersionRow] = []
                while page := await journal.tree_at(at, after=paged[-1].path if paged else "", limit=limit):
                    paged += page
                assert [row.seq for row in paged] == [row.seq for row in alone if row is not None and row.present]
        await real.close()


async def test_what_is_lacking(journal: Journal) -> None:
    await journal.append(unit(looked(), blobs=[b"kept"]))
    assert await journal.lacking([digest(b"kept"), digest(b"not"), digest(b"not")]) == {digest(b"not")}
    assert await journal.lacking([]) == set()


# --- reading events ---------------------------------------------------------------------

TASK = TaskBegun(session=SessionId("s"), title="t")


async def write_mixed(journal: Journal) -> None:
    for number in range(1, 31):
        await journal.append(
            unit(
                TASK if number % 3 == 0 else found(None) if number % 3 == 1 else looked(),
                stream=f"stream:{number % 4}",
                origin=msgspec.structs.replace(
                    by("ab"[number % 2], session=f"s{number % 5}"), client_call_id=f"call{number % 3}"
                )
                if number % 7
                else Origin(),
            )
        )


AT = SteppingClock().ms
"""Event @N is appended N ms later."""


def fits(number: int, wanted: EventFilter) -> bool:
    tag = ("task_begun", "files_found", "metadata_read")[number % 3]
    agent, session = ("ab"[number % 2], f"s{number % 5}") if number % 7 else (None, None)
    return (
        (not wanted.tags or tag in wanted.tags)
        and wanted.stream in (None, f"stream:{number % 4}")
        and wanted.agent in (None, agent)
        and wanted.session in (None, session)
        and wanted.client_call_id in (None, f"call{number % 3}" if number % 7 else "")
        and number > wanted.after
        and (wanted.until is None or number <= wanted.until)
        and (wanted.since_at is None or AT + number >= wanted.since_at)
        and (wanted.until_at is None or AT + number <= wanted.until_at)
        and all(
            mentioned(
                mention,
                stream=f"stream:{number % 4}",
                payload=encode((TASK, found(None), looked())[number % 3]),
                session=session,
                seq=number,
            )
            for mention in wanted.mentions
        )
    )


@pytest.mark.parametrize(
    "wanted",
    [
        pytest.param(EventFilter(), id="all"),
        pytest.param(EventFilter(after=10, until=20), id="between"),
        pytest.param(EventFilter(after=30), id="after the end"),
        pytest.param(EventFilter(tags=("task_begun",)), id="tag"),
        pytest.param(EventFilter(tags=("task_begun", "files_found"), after=3), id="tags"),
        pytest.param(EventFilter(tags=("task_begun", "task_begun")), id="a tag twice"),
        pytest.param(EventFilter(tags=("no_such",)), id="unknown tag"),
        pytest.param(EventFilter(stream="stream:2"), id="stream"),
        pytest.param(
            EventFilter(stream="stream:2", tags=("task_begun", "files_found"), until=22), id="stream and tags"
        ),
        pytest.param(EventFilter(agent="a"), id="agent"),
        pytest.param(EventFilter(client_call_id="call2"), id="a client's call"),
        pytest.param(EventFilter(client_call_id="call2", agent="a", until=20), id="an agent's client's call"),
        pytest.param(EventFilter(since_at=AT + 10), id="since a time"),
        pytest.param(EventFilter(since_at=AT + 5, until_at=AT + 20, agent="b"), id="between times"),
        pytest.param(EventFilter(until_at=AT + 12, tags=("task_begun", "files_found")), id="tags until a time"),
        pytest.param(EventFilter(mentions=(Mention(texts=(b'"title":"t"',)),)), id="a text"),
        pytest.param(EventFilter(mentions=(Mention(streams=("stream:1", "stream:2")),)), id="streams"),
        pytest.param(EventFilter(mentions=(Mention(session="s2", first=8, last=20),)), id="a session's span"),
        pytest.param(EventFilter(mentions=(Mention(),)), id="a mention of nothing"),
        pytest.param(
            EventFilter(
                tags=("task_begun", "metadata_read"),
                mentions=(
                    Mention(streams=("stream:3",), texts=(b'"path":"a"',), session="s1"),
                    Mention(session="s1", first=2, last=28, streams=("stream:0",)),
                ),
            ),
            id="two mentions",
        ),
        pytest.param(EventFilter(session="s3", agent="b"), id="session and agent"),
        pytest.param(
            EventFilter(
                tags=("task_begun", "metadata_read"), stream="stream:1", agent="b", session="s4", after=1, until=29
            ),
            id="everything",
        ),
    ],
)
async def test_a_filter_lets_through_what_fits(journal: Journal, wanted: EventFilter) -> None:
    await write_mixed(journal)
    expected = [number for number in range(1, 31) if fits(number, wanted)]
    assert seqs(await all_of(journal, wanted)) == expected
    assert seqs(await all_of(journal, wanted, batch=3)) == expected
    assert seqs(await journal.newest(wanted, limit=4)) == expected[::-1][:4]


async def test_a_page_is_not_disturbed_by_what_comes_in_between(journal: Journal) -> None:
    await write_mixed(journal)
    read: list[int] = []
    async for recorded in journal.events(EventFilter(tags=("task_begun",)), batch=2):
        read.append(recorded.seq)
        if recorded.seq == 3:
            await journal.append(unit(TASK))
    assert read == [3, 6, 9, 12, 15, 18, 21, 24, 27, 30, 31]


# --- redaction --------------------------------------------------------------------------


async def test_its_id_is_32_hex_digits_and_stays(journal: Journal) -> None:
    before = journal.id
    await journal.append(unit(looked()))
    assert re.fullmatch(r"[0-9a-f]{32}", before)
    assert journal.id == before


async def test_a_redacted_field_is_blank_and_the_chain_holds(journal: Journal) -> None:
    recorded, _ = await journal.append(unit(TASK, looked()))
    done = await journal.redact(
        PayloadRedacted(target=recorded.seq, fields=("title",), by="ada", reason="private"), by()
    )
    now = await journal.event(recorded.seq)
    assert now is not None
    assert now.event == TaskBegun(session=SessionId("s"), title="(redacted)")
    assert (now.hash, now.payload_hash) == (recorded.hash, recorded.payload_hash)
    assert done.scrubbed
    assert done.recorded.seq == journal.head == 3
    assert isinstance(done.recorded.event, PayloadRedacted)
    assert len(done.recorded.event.rest_hash) == 64
    await journal.append(unit(looked()))


async def test_an_event_is_redacted_twice(journal: Journal) -> None:
    recorded, _ = await journal.append(unit(TASK, looked()))
    await journal.redact(PayloadRedacted(target=recorded.seq, fields=("title",), by="ada", reason="wrong"), by())
    await journal.redact(PayloadRedacted(target=recorded.seq, fields=("title",), by="ada"), by())
    await journal.redact(PayloadRedacted(target=Seq(3), fields=("reason",), by="ada"), by())
    now = await journal.event(3)
    assert now is not None
    assert isinstance(now.event, PayloadRedacted)
    assert now.event.reason == "(redacted)"


async def test_what_is_not_there_is_not_redacted(journal: Journal) -> None:
    with pytest.raises(VersionUnknown):
        await journal.redact(PayloadRedacted(target=Seq(7), fields=("title",), by="ada"), by())
    assert journal.head == 0


@pytest.mark.parametrize("data", [pytest.param(b"small", id="small"), pytest.param(b"large" * 100_000, id="large")])
async def test_a_forgotten_content_is_gone_until_it_comes_again(journal: Journal, data: bytes) -> None:
    await journal.append(unit(intended(b"a", data), stream=STREAM, blobs=[data]))
    await journal.forget(ContentRedacted(digest=digest(data), size=len(data), by="ada"), by())
    assert not await journal.has_blob(digest(data))
    assert await journal.blob(digest(data)) is None
    assert (await journal.verify()).problems == ()
    await journal.append(unit(intended(b"a", data), stream=STREAM, blobs=[data]))
    assert await journal.blob(digest(data)) == data


async def test_a_text_is_found_in_events(journal: Journal) -> None:
    await journal.append(unit(looked('say "hä"'), looked("other"), looked('I say "hä"!')))
    assert await journal.holding('say "hä"', limit=5) == (1, 3)
    assert await journal.holding('say "hä"', limit=1) == (1,)


async def test_a_checkpoint_of_another_journal_is_refused(journal: Journal) -> None:
    (recorded,) = await journal.append(unit(looked()))
    other = Checkpoint(
        journal="00" * 16, seq=recorded.seq, hash=recorded.hash.hex(), key="0b" * 32, signature="0c" * 64
    )
    with pytest.raises(CheckpointOfAnotherJournal):
        await journal.verify(other)
    unsigned = await journal.verify(msgspec.structs.replace(other, journal=journal.id))
    assert unsigned.problems == ("the checkpoint file's signature does not hold: the file was altered",)
