"""The promises of `ports.Workspace`, kept alike by the disk (opened both ways) and by its twin in memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

import pytest

from orchestrator.core.content import digest_of
from orchestrator.core.errors import (
    FileBusy,
    FileExists,
    FileNotFound,
    FileTooLarge,
    NotADirectory,
    NotAFile,
    NotARegularFile,
    OrchestratorError,
    SymlinkRefused,
)
from orchestrator.core.ids import WorkspacePath
from orchestrator.core.name_index import read_line
from orchestrator.ports.machine import Step
from orchestrator.ports.workspace import ChangedMeanwhile, DiskChange, Workspace, blocks_of
from orchestrator.workspace.disk import Disk, ignore_lease_breaks
from orchestrator.workspace.local import LocalWorkspace
from tests.in_memory.workspace import MemoryWorkspace

TEMP = ".orchestrator-1.tmp"
OLD, NEW, FOREIGN = b"old content", b"new", b"somebody else's"


class World(Protocol):
    """The workspace under test, and what other programs do to it."""

    on_step: Step

    @property
    def workspace(self) -> Workspace: ...

    def put(self, path: str, data: bytes, mode: int = 0o644) -> None: ...
    def make_directory(self, path: str) -> None: ...
    def link(self, path: str, target: str) -> None: ...
    def pipe(self, path: str) -> None: ...
    def remove(self, path: str) -> None: ...
    def hold_open(self, path: str) -> None: ...
    def close(self) -> None: ...


class DiskWorld:
    def __init__(self, root: Path, *, walk: bool) -> None:
        ignore_lease_breaks()
        self._root = root
        self.on_step: Step = lambda name: None
        self.workspace = LocalWorkspace(str(root), disk=Disk(walk=walk), step=self._meet)
        self._open: list[int] = []

    def _meet(self, name: str) -> None:
        self.on_step(name)

    def put(self, path: str, data: bytes, mode: int = 0o644) -> None:
        (self._root / path).parent.mkdir(parents=True, exist_ok=True)
        beside = self._root / (path + "~")
        beside.write_bytes(data)
        beside.chmod(mode)
        beside.rename(self._root / path)

    def make_directory(self, path: str) -> None:
        (self._root / path).mkdir(parents=True)

    def link(self, path: str, target: str) -> None:
        (self._root / path).symlink_to(target)

    def pipe(self, path: str) -> None:
        os.mkfifo(self._root / path)

    def remove(self, path: str) -> None:
        (self._root / path).unlink()

    def hold_open(self, path: str) -> None:
        self._open.append(os.open(self._root / path, os.O_WRONLY))

    def close(self) -> None:
        for handle in self._open:
            os.close(handle)
        self.workspace.close()


class MemoryWorld:
    def __init__(self) -> None:
        self.on_step: Step = lambda name: None
        self.workspace = MemoryWorkspace(step=self._meet)
        self.put, self.make_directory, self.link = (
            self.workspace.put,
            self.workspace.make_directory,
            self.workspace.link,
        )
        self.pipe, self.remove, self.close = self.workspace.pipe, self.workspace.remove, self.workspace.close

    def _meet(self, name: str) -> None:
        self.on_step(name)

    def hold_open(self, path: str) -> None:
        self.workspace.writers.add(WorkspacePath(path))


@pytest.fixture(params=["openat2", "walk", "memory"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    made: World = MemoryWorld() if request.param == "memory" else DiskWorld(tmp_path, walk=request.param == "walk")
    yield made
    made.close()


def at(path: str) -> WorkspacePath:
    return WorkspacePath(path)


def replacing(path: str, before: bytes = OLD, after: bytes = NEW, mode: int | None = None) -> DiskChange:
    return DiskChange(path=at(path), before=digest_of(before), after=digest_of(after), data=after, temp=TEMP, mode=mode)


def creating(path: str, *parents: str, mode: int | None = None) -> DiskChange:
    above = tuple(map(at, parents))
    return DiskChange(path=at(path), before=None, after=digest_of(NEW), data=NEW, temp=TEMP, mode=mode, parents=above)


def deleting(path: str) -> DiskChange:
    return DiskChange(path=at(path), before=digest_of(OLD), after=None, temp=TEMP)


def moving(source: str, path: str) -> DiskChange:
    return DiskChange(path=at(path), before=None, after=digest_of(OLD), moved_from=at(source))


def carry_out(world: World, change: DiskChange) -> None:
    write = world.workspace.atomic_write(change)
    write.stage()
    write.commit()
    assert write.finish() == ()


def files(world: World) -> dict[str, bytes]:
    """Every file's content, leftovers too."""
    paths = [file.path for file in world.workspace.scan().files] + world.workspace.temps()
    return {path: world.workspace.read(path, most=1000).data for path in paths}


def test_looking(world: World) -> None:
    world.put("d/f", OLD, 0o640)
    world.link("l", "d/f")
    world.pipe("p")
    stat = world.workspace.stat(at("d/f"))
    assert stat is not None
    assert (stat.kind, stat.mode, stat.signature.size, stat.target) == ("file", 0o640, 11, None)
    read = world.workspace.read(at("d/f"), most=11)
    assert (read.data, read.digest, read.stat) == (OLD, digest_of(OLD), stat)
    kinds = {item.name: (item.stat.kind, item.valid, item.stat.target) for item in world.workspace.names(at("."))}
    assert kinds == {"d": ("directory", True, None), "l": ("symlink", True, "d/f"), "p": ("other", True, None)}
    link = world.workspace.stat(at("l"))
    assert link is not None
    assert stat.identity != link.identity
    scanned = world.workspace.scan()
    assert [(file.path, file.signature, file.mode) for file in scanned.files] == [("d/f", stat.signature, 0o640)]
    assert [read_line(line) for line in scanned.lines] == [
        ("d", "directory"),
        ("d/f", "file"),
        ("l", "other"),
        ("p", "other"),
    ]
    assert scanned.skipped == {}
    known = world.workspace.scan(lambda path, signature, mode: (signature, mode) == (stat.signature, 0o640))
    assert known.files == ()
    assert known.lines == scanned.lines
    asked = [at(path) for path in ("d/f", "d/none", "l", "none/f", "l/f")]
    assert world.workspace.stats(asked) == [stat, None, link, None, None]


@pytest.mark.parametrize("path", ["x", "d/x", "x/y/z"])
def test_nothing_there(path: str, world: World) -> None:
    world.make_directory("d")
    assert world.workspace.stat(at(path)) is None
    with pytest.raises(FileNotFound):
        world.workspace.read(at(path), most=1)
    with pytest.raises(FileNotFound):
        world.workspace.names(at(path))


@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("l", SymlinkRefused),
        ("up/f", SymlinkRefused),
        ("d", NotAFile),
        ("p", NotARegularFile),
        ("f/x", NotADirectory),
    ],
)
def test_what_is_refused(path: str, error: type[OrchestratorError], world: World) -> None:
    world.put("f", OLD)
    world.make_directory("d")
    world.link("l", "f")
    world.link("up", "d")
    world.pipe("p")
    with pytest.raises(error):
        world.workspace.read(at(path), most=100)
    for change in (replacing(path), deleting(path), moving(path, "new")):
        with pytest.raises(error):
            carry_out(world, change)
    with pytest.raises(NotADirectory):
        world.workspace.names(at("f"))
    with pytest.raises(SymlinkRefused):
        world.workspace.names(at("up"))
    assert files(world) == {"f": OLD}


def test_too_large(world: World) -> None:
    world.put("f", OLD)
    with pytest.raises(FileTooLarge):
        world.workspace.read(at("f"), most=10)


def test_a_file_is_read_piece_by_piece(world: World) -> None:
    world.put("f", OLD)
    pieces = world.workspace.pieces(at("f"))
    try:
        assert b"".join(blocks_of(pieces)) == OLD
        assert (pieces.read(2, 3), pieces.read(len(OLD), 5)) == (OLD[2:5], b"")
        assert pieces.data_from(1) == 1
        assert pieces.stat == pieces.stat_now() == world.workspace.stat(at("f"))
    finally:
        pieces.close()


def test_a_file_is_hashed_piece_by_piece(world: World) -> None:
    world.put("f", OLD)
    assert world.workspace.hash(at("f"), most=len(OLD)) == (digest_of(OLD), world.workspace.stat(at("f")))
    with pytest.raises(FileTooLarge):
        world.workspace.hash(at("f"), most=len(OLD) - 1)


def test_a_changed_file_has_another_signature(world: World) -> None:
    world.put("f", OLD)
    before = world.workspace.stat(at("f"))
    world.put("f", OLD)
    after = world.workspace.stat(at("f"))
    assert before is not None
    assert after is not None
    assert before.signature != after.signature


LANDED: list[tuple[DiskChange, dict[str, bytes], dict[str, bytes]]] = [
    (replacing("f"), {"f": NEW}, {TEMP: OLD}),
    (creating("g"), {"f": OLD, "g": NEW}, {}),
    (creating("a/b/g", "a", "a/b"), {"f": OLD, "a/b/g": NEW}, {}),
    (deleting("f"), {}, {TEMP: OLD}),
    (moving("f", "g"), {"g": OLD}, {}),
]


@pytest.mark.parametrize(("change", "after", "leftovers"), LANDED)
def test_write(change: DiskChange, after: dict[str, bytes], leftovers: dict[str, bytes], world: World) -> None:
    world.put("f", OLD, 0o640)
    met: list[str] = []
    world.on_step = met.append
    write = world.workspace.atomic_write(change)
    write.stage()
    staged = {TEMP: NEW} if change.data else {}
    above = change.path.rpartition("/")[0]
    assert files(world) == {"f": OLD, **{f"{above}/{k}" if above else k: v for k, v in staged.items()}}
    stat = write.commit()
    assert stat == world.workspace.stat(change.path)
    assert files(world) == {**after, **leftovers}
    assert write.finish() == ()
    assert files(world) == after
    writing = ["temp_created", "temp_half_written", "temp_half_written", "temp_synced"] if change.data else []
    assert met == [*writing, "hash_rechecked", "swapped", "directory_synced", "unlinked"]
    write.abandon()
    assert files(world) == after


@pytest.mark.parametrize("back", [False, True], ids=["finished", "rolled back"])
@pytest.mark.parametrize(("change", "after", "_leftovers"), LANDED)
def test_write_released_between_its_steps(
    change: DiskChange, after: dict[str, bytes], _leftovers: dict[str, bytes], back: bool, world: World
) -> None:
    world.put("f", OLD)
    write = world.workspace.atomic_write(change)
    for step in (write.stage, write.commit, write.roll_back if back else write.finish, write.abandon):
        step()
        write.release()
    assert files(world) == ({"f": OLD} if back else after)


def test_modes(world: World) -> None:
    world.put("f", OLD, 0o640)
    for change in (replacing("f"), creating("g", mode=0o750)):
        carry_out(world, change)
    modes = {file.path: file.mode for file in world.workspace.scan().files}
    assert modes == {"f": 0o640, "g": 0o750}


def test_a_directory(world: World) -> None:
    change = DiskChange(path=at("a/b"), before=None, after=None, directory="made", parents=(at("a"),))
    write = world.workspace.atomic_write(change)
    write.stage()
    stat = write.commit()
    assert stat is not None
    assert stat.kind == "directory"
    assert write.finish() == ()
    again = world.workspace.atomic_write(change)
    again.stage()
    with pytest.raises(FileExists):
        again.commit()


def test_an_empty_directory_is_removed(world: World) -> None:
    carry_out(world, creating("d/f", "d"))
    change = DiskChange(path=at("d"), before=None, after=None, directory="removed")
    with pytest.raises(FileExists):
        carry_out(world, change)
    carry_out(world, DiskChange(path=at("d/f"), before=digest_of(NEW), after=None, temp=TEMP))
    carry_out(world, change)
    assert world.workspace.stat(at("d")) is None
    with pytest.raises(FileNotFound):
        carry_out(world, change)


@pytest.mark.parametrize("change", [replacing("f"), creating("a/g", "a"), deleting("f"), moving("f", "g")])
def test_abandoned(change: DiskChange, world: World) -> None:
    world.put("f", OLD)
    write = world.workspace.atomic_write(change)
    write.abandon()
    write.stage()
    write.abandon()
    write.abandon()
    assert files(world) == {"f": OLD}
    assert world.workspace.stat(at("a")) is None


Meddle = Callable[[World], None]
MEDDLED: list[tuple[DiskChange, Meddle, dict[str, bytes]]] = [
    (replacing("f"), lambda world: world.put("f", FOREIGN), {"f": FOREIGN}),
    (replacing("f"), lambda world: world.remove("f"), {}),
    (deleting("f"), lambda world: world.put("f", FOREIGN), {"f": FOREIGN}),
    (deleting("f"), lambda world: world.remove("f"), {}),
    (moving("f", "g"), lambda world: world.put("f", FOREIGN), {"f": FOREIGN}),
    (moving("f", "g"), lambda world: world.put("g", FOREIGN), {"f": OLD, "g": FOREIGN}),
    (creating("g"), lambda world: world.put("g", FOREIGN), {"f": OLD, "g": FOREIGN}),
]


@pytest.mark.parametrize("when", ["staged", "hash_rechecked"])
@pytest.mark.parametrize(("change", "meddle", "after"), MEDDLED)
def test_displaced(change: DiskChange, meddle: Meddle, after: dict[str, bytes], when: str, world: World) -> None:
    world.put("f", OLD)
    world.on_step = lambda name: meddle(world) if name == when else None
    write = world.workspace.atomic_write(change)
    write.stage()
    if when == "staged":
        meddle(world)
    with pytest.raises(ChangedMeanwhile) as displaced:
        write.commit()
    assert not displaced.value.diverged
    assert files(world) == after


@pytest.mark.parametrize("change", [replacing("f"), deleting("f")])
def test_diverged(change: DiskChange, world: World) -> None:
    world.put("f", OLD)

    def meddle(name: str) -> None:
        if name == "hash_rechecked":
            world.put("f", FOREIGN)
        if name == "swapped_stale":
            world.put("f", b"third")

    world.on_step = meddle
    write = world.workspace.atomic_write(change)
    write.stage()
    with pytest.raises(ChangedMeanwhile) as displaced:
        write.commit()
    assert displaced.value.diverged
    found = files(world)
    assert displaced.value.unexpected == (found["f"], found[TEMP])
    assert {found["f"], found[TEMP]} == {FOREIGN, b"third"}
    assert write.finish() == ()
    assert files(world) == {"f": found["f"]}


@pytest.mark.parametrize("change", [replacing("f"), deleting("f"), moving("f", "g")])
def test_busy(change: DiskChange, world: World) -> None:
    world.put("f", OLD)
    world.hold_open("f")
    write = world.workspace.atomic_write(change)
    write.stage()
    with pytest.raises(FileBusy):
        write.commit()
    write.abandon()
    assert files(world) == {"f": OLD}


@pytest.mark.parametrize("change", [change for change, _, _ in LANDED])
def test_taken_back(change: DiskChange, world: World) -> None:
    world.put("f", OLD, 0o640)
    write = world.workspace.atomic_write(change)
    write.stage()
    write.commit()
    write.roll_back()
    assert files(world) == {"f": OLD}
    assert world.workspace.stat(at("a")) is None
    assert write.finish() == ()
    write.abandon()
    assert files(world) == {"f": OLD}
    carry_out(world, change)


@pytest.mark.parametrize("place", ["path", "gone"])
@pytest.mark.parametrize("change", [replacing("f"), creating("g"), moving("f", "g")])
def test_what_somebody_wrote_since_is_not_taken_back(change: DiskChange, place: str, world: World) -> None:
    world.put("f", OLD)
    write = world.workspace.atomic_write(change)
    write.stage()
    write.commit()
    if place == "path":
        world.put(change.path, FOREIGN)
    else:
        world.remove(change.path)
    with pytest.raises(ChangedMeanwhile) as displaced:
        write.roll_back()
    assert displaced.value.diverged
    assert (FOREIGN in displaced.value.unexpected) == (place == "path")
    assert write.finish() == ()
    others = {} if change.path == "f" or change.moved_from else {"f": OLD}
    assert files(world) == ({change.path: FOREIGN, **others} if place == "path" else others)


def test_a_name_that_was_taken_since_keeps_a_deleted_file_away(world: World) -> None:
    world.put("f", OLD)
    write = world.workspace.atomic_write(deleting("f"))
    write.stage()
    write.commit()
    world.put("f", FOREIGN)
    with pytest.raises(ChangedMeanwhile) as displaced:
        write.roll_back()
    assert displaced.value.diverged
    assert write.finish() == ()
    assert files(world) == {"f": FOREIGN}


def test_finish_hands_over_what_is_not_before(world: World) -> None:
    world.put("f", OLD)
    write = world.workspace.atomic_write(replacing("f"))
    write.stage()
    write.commit()
    world.put(TEMP, FOREIGN)
    assert write.finish() == (FOREIGN,)
    assert files(world) == {"f": NEW, TEMP: FOREIGN}
    assert write.finish() == ()
    assert files(world) == {"f": NEW}


def test_recovery(world: World) -> None:
    world.put("d/f", NEW)
    world.put(f"d/{TEMP}", FOREIGN)
    (temp,) = world.workspace.temps()
    assert temp == f"d/{TEMP}"
    assert [item.name for item in world.workspace.names(at("d"))] == ["f"]
    held = world.workspace.read_temp(temp, most=1 << 20)
    assert held is not None
    assert held.data == FOREIGN
    world.workspace.exchange_back(temp, at("d/f"))
    world.workspace.sync_directory(at("d/f"))
    assert files(world) == {"d/f": FOREIGN, f"d/{TEMP}": NEW}
    world.remove("d/f")
    world.workspace.exchange_back(temp, at("d/f"))
    assert files(world) == {"d/f": NEW}
    world.workspace.unlink_temp(temp)
    assert world.workspace.read_temp(temp, most=1 << 20) is None
