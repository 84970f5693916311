"""Attribution over a journal: versions by other programs, moves, contents that are gone, folds in memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.core.content import LineHunk, Signature, digest_of
from orchestrator.core.events.base import Event, Origin
from orchestrator.core.events.files import ExternalFileChanged, ExternalFileCreated, ExternalFileRemoved
from orchestrator.core.ids import Digest, Seq, WorkspacePath
from orchestrator.core.text.encoding import Document
from orchestrator.engine.reads.blame import KEPT_FOLDS, Attributions
from orchestrator.engine.services import Services
from orchestrator.ports.journal import AppendBatch, NewEvent
from orchestrator.workspace.disk import Disk
from orchestrator.workspace.local import LocalWorkspace
from tests.engine.parts import services_of

pytestmark = pytest.mark.anyio

A, B = WorkspacePath("a"), WorkspacePath("b")


class Past:
    """Writes a journal of what other programs did, and asks for owners; `-N`: not certain since @N."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self.attributions = Attributions(services.journal, services.contents)
        self._now: dict[WorkspacePath, Digest] = {}

    async def put(
        self, path: WorkspacePath, text: str, *, moved_from: WorkspacePath | None = None, kept: bool = True
    ) -> int:
        data = text.replace(" ", "\n").encode() + b"\n"
        before, after = self._now.get(path), digest_of(data)
        self._now[path] = after
        signature = Signature(len(data), 1, 1, 1)
        event: Event
        if before is None:
            event = ExternalFileCreated(
                path=path, after=after, signature=signature, mode=0o644, kept=kept, moved_from=moved_from
            )
        else:
            event = ExternalFileChanged(
                path=path, before=before, after=after, signature=signature, mode=0o644, kept=kept
            )
        return await self._append(path, event, ((after, data),) if kept else ())

    async def gone(self, path: WorkspacePath, *, moved_to: WorkspacePath | None = None) -> int:
        return await self._append(path, ExternalFileRemoved(path=path, before=self._now.pop(path), moved_to=moved_to))

    async def owners(self, path: WorkspacePath, version: int) -> list[int]:
        lineage = await self.attributions.of(path, Seq(version))
        assert lineage.lost is None
        return [
            part.version if part.certain else -part.version
            for part in lineage.attribution.owned()
            for _ in range(part.start, part.end + 1)
        ]

    async def _append(self, path: WorkspacePath, event: Event, blobs: tuple[tuple[Digest, bytes], ...] = ()) -> int:
        recorded = await self.services.journal.append(AppendBatch((NewEvent(f"file:{path}", event),), Origin(), blobs))
        return recorded[0].seq


@pytest.fixture
def past(base: Path) -> Past:
    (base / "w").mkdir()
    workspace = LocalWorkspace(str(base / "w"), disk=Disk())
    services = services_of(workspace)
    return Past(services)


async def test_changes_without_hunks_are_compared(past: Past) -> None:
    one, two = await past.put(A, "a b c"), await past.put(A, "a x b c")
    assert await past.owners(A, two) == [one, two, one, one]
    assert await past.owners(A, one) == [one, one, one]


@pytest.mark.parametrize("removed_first", [True, False], ids=["removed, then met", "met, then removed"])
async def test_a_move_by_another_program_goes_on(past: Past, removed_first: bool) -> None:
    one, two = await past.put(A, "a b"), await past.put(A, "a b c")
    if removed_first:
        await past.gone(A, moved_to=B)
    moved = await past.put(B, "a b c", moved_from=A)
    if not removed_first:
        await past.gone(A, moved_to=B)
    last = await past.put(B, "z a b c")
    assert await past.owners(B, moved) == [one, one, two]
    assert await past.owners(B, last) == [last, one, one, two]


async def test_there_and_back_again(past: Past) -> None:
    """Each name's history up to its move, and nothing of a file that stood there meanwhile."""
    one = await past.put(A, "a b")
    for here, there in ((A, B), (B, A), (A, B)):
        await past.gone(here, moved_to=there)
        await past.put(there, "a b", moved_from=here)
    other = await past.put(A, "other")
    last = await past.put(B, "a b c")
    assert await past.owners(B, last) == [one, one, last]
    assert await past.owners(A, other) == [other]


async def test_a_file_made_anew_is_its_makers(past: Past) -> None:
    await past.put(A, "a b")
    await past.gone(A)
    anew = await past.put(A, "a b")
    assert await past.owners(A, anew) == [anew, anew]


async def test_lines_since_a_content_that_was_not_kept_are_not_certain(past: Past) -> None:
    one = await past.put(A, "a b c")
    lost = await past.put(A, "a q c", kept=False)
    assert (await past.attributions.of(A, Seq(lost))).lost == lost
    after = await past.put(A, "a q c d")
    assert await past.owners(A, after) == [one, -lost, one, -lost]
    last = await past.put(A, "a q c d e")
    assert await past.owners(A, last) == [one, -lost, one, -lost, last]


async def test_nothing_is_certain_where_the_first_content_was_not_kept(past: Past) -> None:
    lost = await past.put(A, "a b", kept=False)
    after = await past.put(A, "a b c")
    assert await past.owners(A, after) == [-lost, -lost, -lost]


async def test_a_binary_version_has_no_lines(past: Past) -> None:
    await past.put(A, "a b")
    binary = await past.put(A, "a \0 b")
    text = await past.put(A, "a b c")
    assert await past.owners(A, binary) == []
    assert await past.owners(A, text) == [text, text, text]


async def test_a_fold_of_one_version_leaves_the_others_as_they_were(past: Past) -> None:
    versions = [await past.put(A, " ".join("abcdefgh"[: n + 1])) for n in range(8)]
    for n in (3, 5, 7, 4):
        assert await past.owners(A, versions[n]) == versions[: n + 1]
    assert await past.owners(A, versions[3]) == versions[:4]


async def test_what_is_at_hand_is_bounded(past: Past) -> None:
    paths = [WorkspacePath(f"f{n}") for n in range(50)]
    versions = [await past.put(path, "a b c") for path in paths]
    for _ in range(2):
        for path, version in zip(paths, versions, strict=True):
            assert await past.owners(path, version) == [version] * 3
    assert len(past.attributions.kept) == KEPT_FOLDS


async def test_contents_are_compared_once(past: Past, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a file that other programs save often would cost each question all of its versions."""
    compared: list[int] = []
    line_hunks = past.services.contents.line_hunks

    async def counted(old: Document, new: Document) -> tuple[LineHunk, ...]:
        compared.append(new.line_count)
        return await line_hunks(old, new)

    monkeypatch.setattr(past.services.contents, "line_hunks", counted)
    versions = [await past.put(A, " ".join("abcdefgh"[: n + 1])) for n in range(8)]
    assert await past.owners(A, versions[6]) == versions[:7]
    assert await past.owners(A, versions[7]) == versions
    assert compared == [1, 2, 3, 4, 5, 6, 7, 8]
    assert await past.owners(A, versions[3]) == versions[:4]
    assert len(compared) == 8
    assert list(past.attributions.kept) == [A]
