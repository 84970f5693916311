"""What is closed to a command stays exact, although little of it is looked up anew for each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from orchestrator.core.content import FoundFile
from orchestrator.core.events.base import Event, Origin
from orchestrator.core.events.files import ExternalFileRemoved, FilesFound
from orchestrator.core.ids import WorkspacePath
from orchestrator.core.policy.parse import parse_policy
from orchestrator.engine.caller import Caller
from orchestrator.engine.commands.closed_paths import RECENT_MS, ClosedPathFinder, ClosedPaths
from orchestrator.engine.services import Services
from orchestrator.machine import SystemClock
from orchestrator.ports.workspace import FileStat, ListedName
from orchestrator.workspace.disk import Disk
from orchestrator.workspace.local import LocalWorkspace
from tests.engine.parts import OPEN, services_of

pytestmark = pytest.mark.anyio

CALLER = Caller(agent="alice", agent_class="cloud", session="s-1", transport="rpc")  # type: ignore[arg-type]
SECRETS = OPEN + '[[rule]]\nname = "secrets"\nagents = ["*"]\nactions = ["read"]\npaths = [{}]\nverdict = "deny"\n'
NOW_MS = 1_000_000_000


class StillClock(SystemClock):
    def now_ms(self) -> int:
        return NOW_MS


class Stamped(LocalWorkspace):
    """Directories changed when the test says so; by itself long ago."""

    def __init__(self, root: Path) -> None:
        super().__init__(str(root), disk=Disk())
        self.changed_ms: dict[str, int] = {}
        self.listed: list[str] = []

    def stats(self, paths: Sequence[WorkspacePath]) -> list[FileStat | None]:
        return [stat and self._stamped(path, stat) for path, stat in zip(paths, super().stats(paths), strict=True)]

    def _stamped(self, path: str, stat: FileStat) -> FileStat:
        at = self.changed_ms.get(path, NOW_MS - 10 * RECENT_MS) * 1_000_000
        signature = msgspec.structs.replace(stat.signature, ctime_ns=at, mtime_ns=at, size=0)
        return msgspec.structs.replace(stat, signature=signature)

    def names(self, path: WorkspacePath) -> list[ListedName]:
        self.listed.append(path)
        return super().names(path)


class Place:
    """A workspace with a file in it and one in a folder; what it tracks is said by the test."""

    def __init__(self, root: Path) -> None:
        (root / "src").mkdir(parents=True)
        (root / "a.txt").touch()
        (root / "src" / "b.txt").touch()
        self.root, self.workspace = root, Stamped(root)
        self.services: Services = services_of(
            self.workspace, clock=StillClock(), policy=SECRETS.format('"*.key", "new.txt"')
        )
        self.finder = ClosedPathFinder(self.services)

    async def tracked(self, *paths: str) -> None:
        found = [(WorkspacePath(path), self.workspace.stat(WorkspacePath(path))) for path in paths]
        entries = [FoundFile(path, stat.signature, stat.mode, None, False) for path, stat in found if stat is not None]
        await self._noted(FilesFound(entries=tuple(entries)))

    async def removed(self, path: str) -> None:
        (self.root / path).unlink()
        await self._noted(ExternalFileRemoved(path=WorkspacePath(path), before=None))

    async def _noted(self, event: Event) -> None:
        await self.services.notes.append(Origin(), ("external", event))

    def closed(self) -> ClosedPaths:
        """As one who has not looked before finds it, too."""
        found = self.finder.closed_to(CALLER)
        self.workspace.listed, listed = [], self.workspace.listed
        assert found == ClosedPathFinder(self.services).closed_to(CALLER)
        self.workspace.listed = listed
        return found


@pytest.fixture
async def place(base: Path) -> Place:
    place = Place(base / "w")
    await place.tracked("a.txt", "src/b.txt")
    assert place.closed() == ClosedPaths((), ())
    assert sorted(place.workspace.listed) == [".", "src"]
    place.workspace.listed.clear()
    return place


async def test_what_did_not_change_is_not_listed_again(place: Place) -> None:
    place.closed()
    assert place.workspace.listed == []


async def test_an_untracked_name_beside_tracked_ones(place: Place) -> None:
    (place.root / "src" / "a.key").touch()
    place.workspace.changed_ms["src"] = NOW_MS - 2 * RECENT_MS
    assert place.closed().hidden == ("src/a.key",)
    assert place.workspace.listed == ["src"]
    (place.root / "src" / "a.key").unlink()
    place.workspace.changed_ms["src"] += 1
    assert place.closed().hidden == ()


async def test_the_clock_of_stats_is_coarse(place: Place) -> None:
    """The second change leaves the same time as the first one."""
    place.workspace.changed_ms["."] = NOW_MS - RECENT_MS + 1
    assert place.closed().hidden == ()
    (place.root / "a.key").touch()
    assert place.closed().hidden == ("a.key",)


async def test_a_tracked_file_that_came_and_went(place: Place) -> None:
    """Also in a folder of its own, whose names were not looked at before."""
    (place.root / "keys").mkdir()
    (place.root / "keys" / "a.key").touch()
    (place.root / "keys" / "untracked.key").touch()
    await place.tracked("keys/a.key")
    assert place.closed().hidden == ("keys/a.key", "keys/untracked.key")
    await place.removed("keys/a.key")
    assert place.closed().hidden == ()


async def test_another_policy(place: Place) -> None:
    place.services.permissions.policy = parse_policy(SECRETS.format('"src"'), source="test")
    assert place.closed().hidden == ("src", "src/b.txt")


async def test_a_policy_that_comes_meanwhile(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is closed by the one, and open by the other."""
    later = parse_policy(SECRETS.format('"b.txt"'), source="test")
    stats = place.workspace.stats

    def loads(paths: Sequence[WorkspacePath]) -> list[FileStat | None]:
        place.services.permissions.policy = later
        return stats(paths)

    monkeypatch.setattr(place.workspace, "stats", loads)
    assert place.closed().hidden == ("src/b.txt",)
