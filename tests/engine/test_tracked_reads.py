"""What sessions read is followed change by change: the work for a change, and what is kept at hand, by count."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.core.content import LineRange, SeenLines, Signature, digest_of
from orchestrator.core.events.base import Event, Origin
from orchestrator.core.events.files import ExternalFileChanged, ExternalFileCreated, FileRead
from orchestrator.core.events.sessions import NoticeShown, NotifiedPath, SessionOpened
from orchestrator.core.ids import AgentName, Digest, Seq, SessionId, WorkspacePath
from orchestrator.core.projections import versions
from orchestrator.engine.reads import read_regions
from orchestrator.engine.reads.read_regions import Stale
from orchestrator.engine.services import Services
from orchestrator.ports.journal import AppendBatch, NewEvent
from orchestrator.workspace.disk import Disk
from orchestrator.workspace.local import LocalWorkspace
from tests.engine.parts import read_sets_of, services_of

pytestmark = pytest.mark.anyio

PATH = WorkspacePath("shared.txt")
LINES, READERS, CHANGES = 60, 20, 15


class Readers:
    """Sessions that read a file which another program changes, line by line."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self.sets = read_sets_of(services)
        self._lines = [f"line {n}" for n in range(LINES)]
        self._digest: Digest | None = None

    async def change(self, line: int, text: str) -> None:
        self._lines[line] = text
        data = "".join(f"{one}\n" for one in self._lines).encode()
        digest, signature = digest_of(data), Signature(len(data), 1, 1, 1)
        event: Event
        if self._digest is None:
            event = ExternalFileCreated(path=PATH, after=digest, signature=signature, mode=0o644, kept=True)
        else:
            event = ExternalFileChanged(
                path=PATH, before=self._digest, after=digest, signature=signature, mode=0o644, kept=True
            )
        self._digest = digest
        await self.append(event, Origin(), ((digest, data),))

    async def read(self, session: SessionId) -> None:
        if self.services.state.sessions.get(session) is None:
            opened = SessionOpened(session=session, agent=AgentName("alice"), agent_class="cloud", transport="rpc")
            await self.append(opened, Origin(session=session))
        present = self.services.state.registry.get(PATH)
        assert present is not None
        seen = SeenLines(path=PATH, version=present.version, ranges=(LineRange(1, LINES - 1),), total_lines=LINES)
        event = FileRead(operation="read_lines", seen=seen, bytes=1, tokens=1)
        await self.append(event, Origin(session=session, agent=AgentName("alice")))

    async def stale(self, session: SessionId, *, followed: bool) -> Stale | None:
        reader = self.services.state.sessions.get(session)
        assert reader is not None
        sets = self.sets if followed else read_sets_of(self.services)  # which begins anew
        return await sets.stale(session, PATH, reader.views[PATH], news_only=True)

    async def append(self, event: Event, origin: Origin, blobs: tuple[tuple[Digest, bytes], ...] = ()) -> None:
        await self.services.journal.append(AppendBatch((NewEvent(f"file:{PATH}", event),), origin, blobs))


@pytest.fixture
def readers(base: Path) -> Readers:
    (base / "w").mkdir()
    workspace = LocalWorkspace(str(base / "w"), disk=Disk())
    return Readers(services_of(workspace))


def names(found: Stale | None) -> list[tuple[Seq, int, int, int]]:
    assert found is not None
    return [(piece.origin.version, piece.seen.start, piece.seen.end, piece.start) for piece in found.pieces]


async def test_a_change_is_compared_once_however_many_sessions_read_the_file(readers: Readers) -> None:
    await readers.change(0, "first")
    sessions = [SessionId(f"s-{n}") for n in range(READERS)]
    for change in range(CHANGES):
        await readers.read(sessions[change])  # each has seen another version
        await readers.change(2 * change + 1, f"change {change}")
        for session in sessions[: change + 1]:
            assert await readers.stale(session, followed=True) is not None
    assert readers.services.contents.compared == CHANGES


async def test_what_is_followed_is_what_is_compared(readers: Readers) -> None:
    await readers.change(0, "first")
    session = SessionId("s-1")
    await readers.read(session)
    for change in range(CHANGES):
        await readers.change(change * 7 % LINES, f"change {change}")
        followed = await readers.stale(session, followed=True)
        compared = await readers.stale(session, followed=False)
        assert names(followed) == names(compared)
        assert followed is not None
        assert followed.by


async def test_what_is_kept_at_hand_has_a_bound(readers: Readers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(versions, "MOST_OF_ONE", 8)
    monkeypatch.setattr(read_regions, "MOST_TRACKED", 40)
    await readers.change(0, "first")
    sessions = [SessionId(f"s-{n}") for n in range(READERS)]
    for session in sessions:
        await readers.read(session)
    for change in range(CHANGES):
        await readers.change(change, f"change {change}")
        for session in sessions:
            assert names(await readers.stale(session, followed=True))  # also where it could not be followed
            assert readers.sets.held <= 40
        assert len(readers.services.recent) <= 8
    for session in sessions:
        readers.sets.forget(session)
    assert readers.sets.held == 0


async def test_what_a_notice_reported_is_no_news_after_another_look(readers: Readers) -> None:
    """A change's look at what was unseen comes between the notice and the next one."""
    session = SessionId("s-1")
    await readers.change(0, "first")
    await readers.read(session)
    await readers.change(1, "told")
    found = await readers.stale(session, followed=True)
    assert found is not None
    shown = NoticeShown(session=session, paths=(NotifiedPath(PATH, found.version),))
    await readers.append(shown, Origin(session=session))
    await readers.change(5, "news")
    assert await readers.sets.unseen(session, [PATH])
    reader = readers.services.state.sessions.get(session)
    assert reader is not None
    assert await readers.sets.stale(session, PATH, reader.views[PATH]) is not None
    assert [line for _, line, _, _ in names(await readers.stale(session, followed=True))] == [6]
