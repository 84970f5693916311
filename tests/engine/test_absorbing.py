"""Hints to events, over a real folder and a journal in memory; the watcher is told what to say."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path

import anyio
import pytest

from orchestrator.core.content import FoundFile
from orchestrator.core.errors import RevertImpossible
from orchestrator.core.events.base import Origin, Recorded
from orchestrator.core.events.files import (
    ExternalBatchClosed,
    ExternalBatchOpened,
    ExternalFileChanged,
    ExternalFileCreated,
    ExternalFileRemoved,
    FilesFound,
)
from orchestrator.core.events.sessions import LeaseGranted
from orchestrator.core.ids import AgentName, SessionId, WorkspacePath
from orchestrator.engine.external.batch_import import BatchImporter, paired
from orchestrator.engine.external.batches import members
from orchestrator.engine.external.first_scan import ENTRIES
from orchestrator.engine.external.observer import Observer
from orchestrator.engine.external.watch import Watching
from orchestrator.engine.names import Names
from orchestrator.machine import SystemClock, SystemEntropy
from orchestrator.ports.journal import AppendBatch
from orchestrator.ports.workspace import FileBytes, Hints
from orchestrator.workspace.disk import Disk
from orchestrator.workspace.local import LocalWorkspace
from tests.engine.parts import services_of
from tests.in_memory.journal import MemoryJournal

pytestmark = pytest.mark.anyio


class ReportedWatcher:
    """Gives the hints that a test sends it."""

    health = "live"

    def __init__(self) -> None:
        self.send, self._receive = anyio.create_memory_object_stream[Hints](10)

    exact = False

    def start(self) -> None: ...

    def subscribe(self, heard: Callable[[Hints], None]) -> None: ...

    def drain(self) -> Hints:
        return Hints()

    async def hints(self) -> AsyncIterator[Hints]:
        async for hints in self._receive:
            yield hints

    def close(self) -> None:
        self.send.close()
        self._receive.close()


class Place:
    """Everything but a daemon."""

    def __init__(self, root: Path) -> None:
        self.root = root
        workspace = LocalWorkspace(str(root), disk=Disk())
        self.journal = MemoryJournal(clock=SystemClock(), entropy=SystemEntropy())
        self.services = services_of(workspace, journal=self.journal)
        self.observer = Observer(self.services)
        self.watcher = ReportedWatcher()
        self.names = Names(workspace, self.services.ignore, self.services.state.registry, self.watcher)
        self.importer = BatchImporter(self.services, self.observer, self.names)
        self.watching = Watching(self.observer, self.importer, self.names, self.watcher)

    async def closed(self) -> ExternalBatchClosed:
        """The first group that is whole."""
        with anyio.fail_after(60):
            while True:
                moved = self.services.state_changes.next()
                async for recorded in self.journal.events():
                    if isinstance(recorded.event, ExternalBatchClosed):
                        return recorded.event
                with anyio.move_on_after(0.1):
                    await moved.wait()


@pytest.fixture
async def place(base: Path) -> AsyncIterator[Place]:
    """Five files that the journal knows, contents kept; watched."""
    root = base / "w"
    root.mkdir()
    for n in range(5):
        (root / f"f{n}").write_text(f"before {n}\n")
    made = Place(root)
    await made.watching.start()
    await made.importer.scan()
    await made.importer.keep()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(made.watching.run)
        yield made
        tasks.cancel_scope.cancel()
    made.watcher.close()


async def test_a_large_first_scan_is_noted_as_it_goes_on(base: Path) -> None:
    """Each event in the order of its paths, whatever order the system lists them in."""
    paths = {f"{folder}/{number}" for folder in "ab" for number in range(ENTRIES)} | {"c"}
    for path in paths:
        (base / "w" / path).parent.mkdir(parents=True, exist_ok=True)
        (base / "w" / path).touch()
    place = Place(base / "w")
    await place.importer.scan()
    events = [recorded async for recorded in place.journal.events()]
    found = [recorded.event for recorded in events if isinstance(recorded.event, FilesFound)]
    assert [(len(event.entries), event.more) for event in found] == [(ENTRIES, True), (ENTRIES, True), (1, False)]
    assert {entry.path for event in found for entry in event.entries} == paths
    for event in found:
        assert [entry.path for entry in event.entries] == sorted(entry.path for entry in event.entries)
    assert place.services.state.registry.start == events[-1].seq
    place.watcher.close()


async def test_a_first_scan_that_a_crash_cut_short_goes_on(base: Path) -> None:
    (base / "w").mkdir()
    for name in ("a", "b", "c"):
        (base / "w" / name).write_text("1\n")
    place = Place(base / "w")
    stat = place.services.workspace.stat(WorkspacePath("a"))
    assert stat is not None
    entry = FoundFile(WorkspacePath("a"), stat.signature, stat.mode)
    await place.services.notes.append(Origin(), ("workspace", FilesFound(entries=(entry,), more=True)))
    assert place.services.state.registry.start is None
    (base / "w" / "a").write_text("changed since\n")
    await place.importer.scan()
    events = [recorded async for recorded in place.journal.events()]
    second = events[1].event
    assert isinstance(second, FilesFound)
    assert [found.path for found in second.entries] == ["b", "c"]
    assert place.services.state.registry.start == events[1].seq
    assert [r.event.path for r in events if isinstance(r.event, ExternalFileChanged)] == ["a"]
    place.watcher.close()


async def test_lost_hints_lead_to_a_look_everywhere(place: Place) -> None:
    (place.root / "f0").write_text("after\n")
    (place.root / "f1").unlink()
    (place.root / "new").write_text("new\n")
    await place.watcher.send.send(Hints(rescan="overflow"))
    closed = await place.closed()
    assert closed.changes == 3
    opened = await place.journal.event(closed.group)
    assert opened is not None
    assert opened.event == ExternalBatchOpened(trigger="overflow")


async def test_a_hint_is_no_change(place: Place) -> None:
    head = place.journal.head
    (place.root / "f1").write_text("after, and longer\n")
    (place.root / "f3").write_text("after, and longer\n")
    await place.watcher.send.send(Hints(frozenset(WorkspacePath(f"f{n}") for n in range(5))))
    assert (await place.closed()).changes == 2
    paths = [getattr(r.event, "path", None) async for r in place.journal.events() if r.seq > head]
    assert paths == [None, "f1", "f3", None]


async def test_a_group_is_resolved_into_changes_that_can_be_reverted(place: Place) -> None:
    before = {entry.path: entry.digest for entry in place.services.state.registry.files()}
    (place.root / "f0").write_text("after\n")
    (place.root / "f1").unlink()
    (place.root / "f2").rename(place.root / "moved")
    names = ("f0", "f1", "f2", "moved")
    await place.watcher.send.send(Hints(frozenset(map(WorkspacePath, names))))
    closed = await place.closed()
    found = [recorded async for recorded in members(place.journal, closed.group)]
    reported = sorted(
        (getattr(r.event, "path", ""), getattr(r.event, "before", None), getattr(r.event, "after", None) is None)
        for r in found
    )
    assert reported == [
        ("f0", before[WorkspacePath("f0")], False),
        ("f1", before[WorkspacePath("f1")], True),
        ("f2", before[WorkspacePath("f2")], True),
        ("moved", None, False),
    ]
    with pytest.raises(RevertImpossible):
        _ = [recorded async for recorded in members(place.journal, found[0].seq)]


async def test_a_file_that_is_back_at_its_old_path_was_not_moved_there(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program that saves by renaming may write the new file between the look at both paths and their import."""
    before = place.services.state.registry.get(WorkspacePath("f2"))
    assert before is not None
    (place.root / "f2").rename(place.root / "moved")
    take = place.services.locks.alone

    def late(paths: Iterable[WorkspacePath]) -> AbstractAsyncContextManager[None]:
        (place.root / "f2").write_text("after, and longer\n")
        return take(paths)

    monkeypatch.setattr(place.services.locks, "alone", late)
    await place.watcher.send.send(Hints(frozenset(map(WorkspacePath, ("f2", "moved")))))
    closed = await place.closed()
    events = [recorded.event async for recorded in members(place.journal, closed.group)]
    assert [(type(e), getattr(e, "path", ""), getattr(e, "moved_from", "")) for e in events] == [
        (ExternalFileChanged, "f2", None),
        (ExternalFileCreated, "moved", "f2"),
    ]


async def test_what_a_caller_met_first_is_of_the_group_too(place: Place) -> None:
    for n in range(3):
        (place.root / f"f{n}").write_text("after, and longer\n")
    async with place.services.locks.shared(WorkspacePath("f1")):
        await place.observer.refresh(WorkspacePath("f1"), content=True)
    met = place.journal.head
    await place.watcher.send.send(Hints(frozenset(WorkspacePath(f"f{n}") for n in range(3))))
    closed = await place.closed()
    assert (closed.changes, closed.also) == (3, (met,))
    found = [recorded.event async for recorded in members(place.journal, closed.group)]
    assert sorted(getattr(event, "path", "") for event in found) == ["f0", "f1", "f2"]


async def test_two_readers_who_meet_the_same_change_note_it_once(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Readers share the lock: the one's look may end while the other still reads the file."""
    path = WorkspacePath("f0")
    look = partial(place.observer.refresh, path, content=True)
    read, others = place.services.workspace.read, iter((look,))

    def interrupted(path: WorkspacePath, *, most: int, growing: bool) -> FileBytes:
        found = read(path, most=most, growing=growing)
        for other in others:
            anyio.from_thread.run(other)
        return found

    monkeypatch.setattr(place.services.workspace, "read", interrupted)
    (place.root / path).write_text("after, and longer\n")
    async with place.services.locks.shared(path):
        await look()
    changes = [r.seq async for r in place.journal.events() if isinstance(r.event, ExternalFileChanged)]
    assert changes == [place.journal.head]


async def test_nobody_changes_a_file_while_its_content_is_kept(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was read before a change would be noted after it, as if the file held that again."""
    path = WorkspacePath("f5")
    (place.root / path).write_text("new\n")
    stat = place.services.workspace.stat(path)
    assert stat is not None
    entries = (FoundFile(path, stat.signature, stat.mode),)
    await place.services.notes.append(Origin(), ("workspace", FilesFound(entries=entries)))
    append, locked = place.journal.append, []

    async def watched(batch: AppendBatch) -> tuple[Recorded, ...]:
        with anyio.move_on_after(0) as wait:
            async with place.services.locks.alone((path,)):
                pass
        locked.append(wait.cancelled_caught)
        return await append(batch)

    monkeypatch.setattr(place.journal, "append", watched)
    await place.importer.keep()
    assert locked == [True]
    entry = place.services.state.registry.get(path)
    assert entry is not None
    assert entry.kept


async def test_who_holds_the_lease_is_named(place: Place) -> None:
    (place.root / "leased").mkdir()
    (place.root / "leased" / "a").write_text("1\n")
    (place.root / "free").write_text("1\n")
    expires_at = place.services.clock.now_ms() + 600_000
    granted = LeaseGranted(globs=("/leased/**",), mode="exclusive", expires_at=expires_at)
    (lease,) = await place.services.notes.append(
        Origin(session=SessionId("s-1"), agent=AgentName("alice")), ("lease:1", granted)
    )
    folder = frozenset((WorkspacePath("leased"),))
    await place.watcher.send.send(Hints(frozenset((WorkspacePath("free"),)), folder))
    await place.closed()
    made = [r.event async for r in place.journal.events() if isinstance(r.event, ExternalFileCreated)]
    assert [(e.path, e.lease_holder, e.lease) for e in made] == [("free", None, None), ("leased/a", "alice", lease.seq)]
    (version,) = await place.journal.versions(WorkspacePath("leased/a"), limit=5)
    assert version.author == "outside"


async def test_a_directory_that_became_a_file_takes_its_files_away(place: Place) -> None:
    (place.root / "d").mkdir()
    (place.root / "d" / "a").write_text("1\n")
    (place.root / "d" / "b").write_text("2\n")
    await place.watcher.send.send(Hints(folders=frozenset((WorkspacePath("d"),))))
    await place.closed()
    head = place.journal.head
    for name in ("a", "b"):
        (place.root / "d" / name).unlink()
    (place.root / "d").rmdir()
    (place.root / "d").write_text("a file\n")
    await place.watcher.send.send(Hints(rescan="scan"))
    with anyio.fail_after(60):
        while WorkspacePath("d") not in place.services.state.registry.paths():
            await place.services.state_changes.next().wait()
    events = [r.event async for r in place.journal.events() if r.seq > head]
    assert {e.path for e in events if isinstance(e, ExternalFileRemoved)} == {"d/a", "d/b"}
    assert not [e for e in events if isinstance(e, ExternalFileChanged)]


@pytest.mark.parametrize(
    ("gone", "created", "moves"),
    [
        pytest.param([("a", "1")], [("b", "1")], {"b": "a"}, id="one"),
        pytest.param([("a", "1")], [("b", "2")], {}, id="another content"),
        pytest.param([("a", "1"), ("b", "1")], [("c", "1")], {}, id="two went"),
        pytest.param([("a", "1")], [("b", "1"), ("c", "1")], {}, id="two came"),
        pytest.param([("a", "1"), ("b", "2")], [("c", "2"), ("d", "1")], {"d": "a", "c": "b"}, id="crosswise"),
    ],
)
def test_paired(gone: list[tuple[str, str]], created: list[tuple[str, str]], moves: dict[str, str]) -> None:
    def typed(items: list[tuple[str, str]]) -> list[tuple[WorkspacePath, str]]:
        return [(WorkspacePath(path), digest) for path, digest in items]

    assert paired(typed(gone), typed(created)) == moves
