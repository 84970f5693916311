"""Rollback of 1,000 changes in 200 files, beside `git revert --no-commit` of the same as commits."""

from __future__ import annotations

import time
from pathlib import Path

from anyio import to_thread

from orchestrator.clients.python import FileAccess, Replacement
from tests.benchmarks.blame import fast_import, git
from tests.benchmarks.measuring import Row, Samples, Target
from tests.benchmarks.setting import Rows, Setting

FILES, LINES, CHANGES = 200, 300, 1_000
FOLDER = "rolled"


async def rows(setting: Setting) -> Rows:
    """Ours is one durable, journalled change each time, and is reverted before the next; git's is synced by nobody."""
    work = setting.daemon.workspace / FOLDER
    repository = setting.peers_work / "rolled"
    setting.daemon.stop()
    for folder in (work, repository):
        folder.mkdir()
    before = {path_of(n): "".join(f"line {i} of file {n}\n" for i in range(LINES)) for n in range(FILES)}
    for name, text in before.items():
        (work / name).write_text(text)
        (repository / name).write_text(text)
    setting.daemon.start()
    await to_thread.run_sync(committed, repository)
    async with setting.daemon.client("roller") as files:
        session = files.session
        await changed(files, repository, work)
    theirs = Samples([await to_thread.run_sync(git_revert, repository, before) for _ in range(setting.times(3))])
    ours, preview = await rolled_back(setting, session, work, before)
    title = f"rollback, {CHANGES:,} changes in {FILES} files"
    peer = "git revert --no-commit"
    return [
        Row(work=title, ours=ours, peer=peer, theirs=theirs, target=Target(at_least=round(1 / 3, 2))),
        Row(work=f"{title}, preview", ours=preview, peer=peer, theirs=theirs),
    ]


def path_of(number: int) -> str:
    return f"f{number:03}.txt"


def committed(repository: Path) -> None:
    git(repository, "init", "-q")
    git(repository, "add", ".")
    git(repository, "commit", "-q", "-m", "0")


async def changed(files: FileAccess, repository: Path, work: Path) -> None:
    """Each change edits a line of one file, the files in turns; each is a commit too."""
    head = git(repository, "rev-parse", "HEAD").strip()
    importing = fast_import(repository)
    assert importing.stdin is not None
    try:
        for number in range(CHANGES):
            name, line = path_of(number % FILES), number // FILES * 50 + 10
            search = f"line {line} of file {number % FILES}\n"
            change = Replacement(search=search, replace=f"line {line}, changed by {number}\n")
            answer = await files.edit_file(f"{FOLDER}/{name}", [change])
            assert answer.status == "applied", answer
            data, message = (work / name).read_bytes(), str(number)
            parent = f"from {head}\n" if number == 0 else ""
            importing.stdin.write(
                f"commit refs/heads/imported\ncommitter t <t@t> {number + 1} +0000\ndata {len(message)}\n{message}\n"
                f"{parent}M 100644 inline {name}\ndata {len(data)}\n".encode()
                + data
                + b"\n"
            )
    finally:
        importing.stdin.close()
        importing.wait()
    git(repository, "checkout", "-q", "-f", "imported")


def git_revert(repository: Path, before: dict[str, str]) -> float:
    """One run, in ms."""
    start = time.perf_counter()
    git(repository, "revert", "--no-commit", f"HEAD~{CHANGES}..HEAD")
    taken = (time.perf_counter() - start) * 1e3
    assert {path.name: path.read_text() for path in repository.glob("f*.txt")} == before
    git(repository, "revert", "--quit")
    git(repository, "reset", "-q", "--hard")
    return taken


async def rolled_back(setting: Setting, session: str, work: Path, before: dict[str, str]) -> tuple[Samples, Samples]:
    """Rolling back, and only showing it, in another session of the same agent."""
    done, shown = Samples([]), Samples([])
    async with setting.daemon.client("roller") as files:
        for _ in range(setting.times(3)):
            start = time.perf_counter()
            preview = await files.rollback(session=session, preview=True)
            shown.values.append((time.perf_counter() - start) * 1e3)
            assert preview.status == "preview", preview.message
            start = time.perf_counter()
            answer = await files.rollback(session=session)
            done.values.append((time.perf_counter() - start) * 1e3)
            assert answer.status == "applied", answer.message
            assert {path.name: path.read_text() for path in work.glob("f*.txt")} == before
            assert answer.change is not None
            again = await files.revert(answer.change)
            assert again.status == "applied", again.message
    return done, shown
