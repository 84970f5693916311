"""Changes during which the power fails, on a simulated disk."""

from __future__ import annotations

import os
import random
import shutil
import tempfile
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from orchestrator.api.results import ChangeAnswer
from orchestrator.clients.python import FileAccess, Replacement
from orchestrator.core.errors import OrchestratorError
from tests.crash.conftest import MEMORY
from tests.crash.dropped_fsyncs import ForgettingDisk, PowerGone
from tests.crash.inside import Inside, living
from tests.crash.scenarios import AGENT, about_files


class Act(msgspec.Struct, frozen=True):
    """One change that the agent asks for; `number` tells it from the others and draws what it is about."""

    kind: str
    number: int


async def scenario(
    base: Path, acts: list[Act], luck: int, *, make: Callable[[], ForgettingDisk] = ForgettingDisk
) -> str:
    """Cut the power at a call, perhaps once more while recovering; what became of the act that was cut off."""
    calm = filled(ForgettingDisk())
    rehearsed = await perform(base / "plain", acts, calm, Plug(calm, None))
    assert len(rehearsed.trees) == len(acts) + 1
    if not rehearsed.calls:
        return "nothing to do"
    chance = random.Random(luck)
    disk = filled(make())
    plug = Plug(disk, chance.randint(1, rehearsed.calls))
    done = await perform(base / "cut", acts, disk, plug, lambda: shutil.copytree(base / "cut/state", base / "state"))
    disk = disk.after_the_cut(chance)
    if chance.random() < 0.5:
        disk = await cut_while_recovering(base, disk, chance.randint(1, MOST_IN_RECOVERY), chance)
    return await recovered(base, disk, rehearsed, acknowledged=len(done.trees) - 1)


@contextmanager
def folder() -> Iterator[Path]:
    """One for each example."""
    made = Path(tempfile.mkdtemp(prefix="o-", dir=MEMORY if os.access(MEMORY, os.W_OK) else "/tmp"))
    for name in ("plain/state", "cut/state"):
        (made / name).mkdir(parents=True)
    yield made
    shutil.rmtree(made)


Tree = dict[str, bytes]


AT_FIRST: Tree = {"a.txt": b"a\n", "d/b.txt": b"b\n", "d/e/c.txt": b"c\n"}
KINDS = ("create", "patch", "delete", "move", "several", "move tree", "revert", "rollback")


CLOSING = ("change_applied", "change_aborted", "change_diverged")


MOST_IN_RECOVERY = 8


class Known(msgspec.Struct):
    """What the agent goes by: the tree as it is, and the changes that it can take back."""

    tree: Tree
    changes: list[str]


def wanted(act: Act, known: Known, head: int) -> Callable[[FileAccess], Awaitable[ChangeAnswer]] | None:
    """The call; None where there is nothing of that kind to do."""
    chance = random.Random(act.number)
    request_id = f"act-{act.number}"
    paths = sorted(known.tree)
    path = chance.choice(paths) if paths else None
    new = f"{chance.choice(('', 'd/', 'n/m/'))}new-{act.number}.txt"
    folders = sorted({name.partition("/")[0] for name in paths if "/" in name})
    match act.kind:
        case "create":
            return lambda files: files.write_file(new, f"{act.number}\n", mode="create", request_id=request_id)
        case "patch" if path is not None:
            old = known.tree[path].decode()
            change = Replacement(search=old, replace=f"{old}{act.number}\n")
            return lambda files: files.edit_file(path, [change], request_id=request_id)
        case "delete" if path is not None:
            return lambda files: files.delete_file(path, request_id=request_id)
        case "move" if path is not None:
            return lambda files: files.move_file(path, new, request_id=request_id)
        case "several" if path is not None:
            text = f"--- /dev/null\n+++ b/{new}\n@@ -0,0 +1 @@\n+{act.number}\n{_appended(path, known.tree[path], act)}"
            return lambda files: files.apply_patch(text, base=f"@{head}", request_id=request_id)
        case "move tree" if folders:
            folder = chance.choice(folders)
            return lambda files: files.move_file(folder, f"tree-{act.number}", request_id=request_id)
        case "revert" if known.changes:
            change_id = chance.choice(known.changes)
            return lambda files: files.revert(change_id, request_id=request_id)
        case "rollback":
            return lambda files: files.rollback(agent=AGENT, request_id=request_id)
        case _:
            return None


def _appended(path: str, content: bytes, act: Act) -> str:
    """A patch that adds a line at the end of a file."""
    lines = content.decode().splitlines()
    kept = "".join(f" {line}\n" for line in lines)
    return f"--- a/{path}\n+++ b/{path}\n@@ -1,{len(lines)} +1,{len(lines) + 1} @@\n{kept}+{act.number}\n"


class Rehearsed(msgspec.Struct, frozen=True):
    """What the acts come to where nothing fails: the tree and the count of changes, before them and after each."""

    trees: list[Tree]
    applied: list[int]
    calls: int


class Plug:
    """Pulled at the n-th call to the disk or commit, once it counts."""

    def __init__(self, disk: ForgettingDisk, at: int | None) -> None:
        self._disk, self._at = disk, at
        self._lock = threading.Lock()
        self.counting = False
        self.count = 0
        disk.meet = self.meet

    def meet(self, name: str) -> None:
        with self._lock:
            self.count += self.counting
            if self.counting and self.count == self._at:
                self._disk.cut()

    def step(self, name: str) -> None:
        """The journal's steps, and the engine's: a transaction that is open when the power goes is lost."""
        if name.startswith("txn_open"):
            self.meet(name)
            if self._disk.gone:
                raise PowerGone


async def perform(
    base: Path, acts: list[Act], disk: ForgettingDisk, plug: Plug, leave: Callable[[], object] = lambda: None
) -> Rehearsed:
    """The acts, one after the other; what is acknowledged when the power goes is in the result."""
    done = Rehearsed([disk.tree()], [0], 0)
    known = Known(disk.tree(), [])
    try:
        async with living(base / "state", base / "work", disk, step=plug.step, leave=leave) as life:
            files = await life.client(AGENT)
            plug.counting = True
            for act in acts:
                await one(act, life, files, disk, known, done)
            plug.counting = False
    except* PowerGone:
        pass
    return msgspec.structs.replace(done, calls=plug.count)


async def one(act: Act, life: Inside, files: FileAccess, disk: ForgettingDisk, known: Known, done: Rehearsed) -> None:
    call = wanted(act, known, life.services.journal.head)
    applied = done.applied[-1]
    if call is not None:
        try:
            answer = await call(files)
        except OrchestratorError:
            if disk.gone:
                raise PowerGone from None
        else:
            if answer.status == "applied" and answer.change is not None:
                known.changes.append(answer.change)
                applied += 1
        await life.idle()
    known.tree = {path: data for path, data in disk.tree().items() if not path.endswith(".tmp")}
    done.trees.append(known.tree)
    done.applied.append(applied)
    if disk.gone:
        raise PowerGone


async def cut_while_recovering(base: Path, disk: ForgettingDisk, at: int, chance: random.Random) -> ForgettingDisk:
    plug = Plug(disk, at)
    plug.counting = True

    def leave() -> None:
        if disk.gone:
            shutil.copytree(base / "state", base / "later")

    try:
        async with living(base / "state", base / "work", disk, step=plug.step, leave=leave):
            pass
    except* (OSError, OrchestratorError):
        assert disk.gone
    if disk.gone:
        shutil.rmtree(base / "state")
        (base / "later").rename(base / "state")
        return disk.after_the_cut(chance)
    return disk


async def recovered(base: Path, disk: ForgettingDisk, rehearsed: Rehearsed, *, acknowledged: int) -> str:
    async with living(base / "state", base / "work", disk) as life:
        await life.agrees()
        await life.idle()
        events = await life.events()
        kinds = Counter(entry.kind for entry in events)
    found = disk.tree()
    before, after = acknowledged, min(acknowledged + 1, len(rehearsed.trees) - 1)
    if kinds["change_diverged"]:
        # A rename between two directories, of which one was synced: the file stands under both names.
        assert set(rehearsed.trees[before].values()) <= set(found.values())
        verdict = "diverged"
    elif kinds["change_applied"] == rehearsed.applied[before]:
        assert found == rehearsed.trees[before]
        verdict = "not there"
    else:
        assert kinds["change_applied"] == rehearsed.applied[after]
        assert found == rehearsed.trees[after]
        verdict = "there"
    intents = {entry.seq for entry in events if entry.kind == "change_intended"}
    closed = {f"@{entry.event['change']}" for entry in events if entry.kind in CLOSING}
    assert closed == intents
    async with living(base / "state", base / "work", disk) as life:
        assert about_files(await life.events()) == about_files(events)
    assert disk.tree() == found
    return verdict


def filled(disk: ForgettingDisk) -> ForgettingDisk:
    for path, data in AT_FIRST.items():
        disk.put(path, data)
    return disk
