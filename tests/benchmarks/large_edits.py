"""One exact edit of a 97 MB log: ours journalled, synced and to be undone, the peers' neither; and what it takes."""

from __future__ import annotations

import hashlib
import os
import shutil
from contextlib import AsyncExitStack
from pathlib import Path

from orchestrator.clients.python import FileAccess, Replacement
from tests.benchmarks.edits import Edit, filesystem_edit, largefile_edit
from tests.benchmarks.large_reads import write_log
from tests.benchmarks.measuring import Row, Samples, Target, Work, in_turns, plain
from tests.benchmarks.searches import Memory
from tests.benchmarks.setting import Rows, Setting

WORK = "one exact durable edit, 97 MB, socket"
UNIQUE = "request 700000 finished"
MOST_PRIVATE_MB = 350


async def rows(setting: Setting) -> Rows:
    """Each contender edits a copy of its own; each edit replaces the text that its last one wrote."""
    daemon, log = setting.daemon, setting.daemon.workspace / "edited.log"
    write_log(log)
    assert daemon.process is not None
    async with AsyncExitStack() as stack:
        files = await stack.enter_async_context(daemon.client("editor"))
        contenders = {"ours": _turns(_ours(files)), "bare": plain(lambda: _bare(_copy(log, setting, "bare.log")))}
        if setting.largefile.command:
            theirs = await largefile_edit(setting, stack, str(_copy(log, setting, "largefile.log")))
            contenders["largefile"] = _turns(theirs)
        if setting.filesystem.command:
            theirs = await filesystem_edit(setting, stack, str(_copy(log, setting, "filesystem.log")))
            contenders["filesystem"] = _turns(theirs)
        with Memory(daemon.process.pid) as memory:
            taken = await in_turns(contenders, setting.times(5), warm_up=1)
    ours = taken["ours"]
    return [
        _row(ours, "largefile edit_content", taken.get("largefile") or Samples([], setting.largefile.trouble), 2.0),
        _row(ours, "filesystem edit_file", taken.get("filesystem") or Samples([], setting.filesystem.trouble), 1.0),
        _row(ours, "copied, hashed, synced, renamed", taken["bare"], None),
        Row(
            work="private memory, daemon and workers, edits of 97 MB",
            ours=Samples([memory.most_mb]),
            target=Target(at_most_ms=MOST_PRIVATE_MB),
            unit="MB",
        ),
    ]


def _row(ours: Samples, peer: str, theirs: Samples, times: float | None) -> Row:
    return Row(work=WORK, ours=ours, peer=peer, theirs=theirs, target=Target(at_least=times))


def _turns(edit: Edit) -> Work:
    written, turn = UNIQUE, 0

    async def work() -> None:
        nonlocal written, turn
        turn += 1
        old, written = written, f"request 700000 edited {turn:04d}"
        await edit(old, written)

    return work


def _ours(files: FileAccess) -> Edit:
    async def edit(old: str, new: str) -> None:
        answer = await files.edit_file("edited.log", [Replacement(search=old, replace=new)])
        assert answer.status == "applied", answer

    return edit


def _copy(log: Path, setting: Setting, name: str) -> Path:
    path = setting.peers_work / name
    if not path.exists():
        shutil.copyfile(log, path)
    return path


def _bare(path: Path) -> None:
    """The least that a durable edit does."""
    data = path.read_bytes()
    hashlib.sha256(data).digest()
    changed = data.replace(UNIQUE.encode(), UNIQUE.encode())
    with path.with_suffix(".tmp").open("wb") as file:
        file.write(changed)
        file.flush()
        os.fsync(file.fileno())
    os.replace(path.with_suffix(".tmp"), path)
