"""blame of a 20,000-line file with 2,000 changes: ours from the journal, git's from the same 2,000 commits."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path
from random import Random

from anyio import to_thread

from orchestrator.api.history import BlamedLines
from orchestrator.clients.python import FileAccess, Replacement
from tests.benchmarks.measuring import Row, Samples, Target
from tests.benchmarks.setting import Rows, Setting

LINES, CHANGES, PATH = 20_000, 2_000, "blamed.txt"


async def rows(setting: Setting) -> Rows:
    """The same history on both sides; a cold call is the first one after the daemon's start."""
    changes = setting.times(CHANGES)
    setting.daemon.stop()
    (setting.daemon.workspace / PATH).write_text("".join(f"line {n} of the file\n" for n in range(LINES)))
    setting.daemon.start()
    repository = setting.peers_work / "history"
    async with setting.daemon.client("writer") as files:
        await to_thread.run_sync(begin, repository, setting.daemon.workspace / PATH)
        await written(files, repository, setting.daemon.workspace / PATH, changes)
    theirs = Samples([await to_thread.run_sync(git_blame, repository) for _ in range(setting.times(3))])
    cold, warm, owners = await ours(setting, setting.times(3))
    commits = await to_thread.run_sync(git_owners, repository)
    if owners != commits:
        raise AssertionError(f"{sum(a != b for a, b in zip(owners, commits, strict=True))} lines are not as git's")
    work = f"blame, {LINES:,} lines, {changes:,} changes"
    return [
        Row(work=f"{work}, first call after start", ours=cold, peer="git blame", theirs=theirs, target=Target(1.0)),
        Row(work=f"{work}, again", ours=warm, peer="git blame", theirs=theirs, target=Target(1.0)),
    ]


def begin(repository: Path, file: Path) -> None:
    """A repository whose first commit is the file as it stands."""
    repository.mkdir()
    git(repository, "init", "-q")
    (repository / PATH).write_bytes(file.read_bytes())
    git(repository, "add", PATH)
    git(repository, "commit", "-q", "-m", "0")


async def written(files: FileAccess, repository: Path, file: Path, changes: int) -> None:
    """Edits all over the file, by the daemon, and each result as a commit; git is fed by one fast-import."""
    random = Random(1)
    head = git(repository, "rev-parse", "HEAD").strip()
    importing = fast_import(repository)
    assert importing.stdin is not None
    try:
        for number in range(1, changes + 1):
            lines = file.read_text().splitlines()
            old = lines[random.randrange(len(lines))]
            new = random.choice((f"{old}\nadded by {number}\n", f"changed by {number}\n"))
            answer = await files.edit_file(PATH, [Replacement(search=f"{old}\n", replace=new.rstrip("\n") + "\n")])
            assert answer.status == "applied", answer
            data, message = file.read_bytes(), str(number)
            parent = f"from {head}\n" if number == 1 else ""
            importing.stdin.write(
                f"commit refs/heads/imported\ncommitter t <t@t> {number} +0000\ndata {len(message)}\n{message}\n"
                f"{parent}M 100644 inline {PATH}\ndata {len(data)}\n".encode()
                + data
                + b"\n"
            )
    finally:
        importing.stdin.close()
        importing.wait()
    git(repository, "checkout", "-q", "-f", "imported")


def fast_import(repository: Path) -> subprocess.Popen[bytes]:
    """What takes commits in as a stream."""
    command = ["git", "-C", str(repository), "fast-import", "--quiet", "--force"]
    return subprocess.Popen(command, stdin=subprocess.PIPE)


def git_blame(repository: Path) -> float:
    """One call, in ms."""
    start = time.perf_counter()
    git(repository, "blame", "-s", PATH)
    return (time.perf_counter() - start) * 1000


def git_owners(repository: Path) -> list[str]:
    """For each line the number of the change that git says brought it in."""
    said = git(repository, "-c", "diff.indentHeuristic=false", "blame", "--line-porcelain", PATH)
    return [row.removeprefix("summary ") for row in said.splitlines() if row.startswith("summary ")]


async def ours(setting: Setting, times: int) -> tuple[Samples, Samples, list[str]]:
    """Calls after a start each, calls after those, and for each line the number of the change."""
    cold: list[float] = []
    warm: list[float] = []
    for _ in range(times):
        setting.daemon.stop()
        setting.daemon.start()
        async with setting.daemon.client("reader") as files:
            for samples in (cold, warm):
                start = time.perf_counter()
                ranges = await whole_blame(files)
                samples.append((time.perf_counter() - start) * 1000)
    versions = sorted({int(part.version[1:]) for part in ranges if part.kind == "change"})
    async with setting.daemon.client() as person:
        reported = await history(person)
    place = {version: str(number) for number, version in enumerate(reported, 1)}
    assert set(versions) <= set(place)
    owners = [place.get(int(r.version[1:]), "0") for r in ranges for _ in range(r.start, r.end + 1)]
    return Samples(cold), Samples(warm), owners


async def whole_blame(files: FileAccess) -> list[BlamedLines]:
    """Of all lines, page by page."""
    ranges: list[BlamedLines] = []
    answer = await files.blame(PATH)
    while True:
        ranges += answer.ranges
        if answer.end == answer.total_lines:
            return ranges
        answer = await files.blame(PATH, start=answer.end + 1)


async def history(person: FileAccess) -> list[int]:
    """Every change's version, oldest first."""
    versions: list[int] = []
    head = "@0"
    while True:
        page = await person.changes_since(head, globs=[PATH], limit=1000)
        versions += [int(change.version[1:]) for change in page.changes if change.by == "change"]
        head = page.head
        if not page.more:
            return versions


def git(repository: Path, *arguments: str) -> str:
    """What git says; nothing of the machine's settings goes in."""
    identity = ("-c", "user.name=t", "-c", "user.email=t@t", "-c", "commit.gpgsign=false")
    env = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    command = ("git", "-C", str(repository), *identity, *arguments)
    return subprocess.run(command, check=True, capture_output=True, text=True, env=env).stdout
