"""A daemon whose journal archives early, and what its records must say."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.clients.python import FileAccess, Replacement
from tests.daemon.daemon_process import RunningDaemon

LARGE = "0123456789\n" * 30_000


async def write(files: FileAccess, path: str, *contents: str) -> list[str]:
    """Give a file these contents, one after the other; the versions."""
    versions: list[str] = []
    for content in contents:
        answer = await files.write_file(path, content, mode="truncate" if versions else "create")
        versions.append(answer.version_id or "")
    return versions


@pytest.fixture
def daemon(base: Path) -> Iterator[RunningDaemon]:
    """One that may be refused its start, or killed, in the course of a test."""
    started = RunningDaemon(base)
    assert started.start()["ok"]
    yield started
    started.stop()


async def records_hold(daemon: RunningDaemon) -> None:
    async with daemon.client() as person:
        report = await person.journal_verify()
        assert report.ok, report.problems
        rebuilt = await person.journal_rebuild()
        assert rebuilt.ok, rebuilt.first_difference
        compared = await person.workspace_check()
        assert compared.ok, compared.differences


async def head_of(daemon: RunningDaemon) -> str:
    async with daemon.client() as person:
        return (await person.status()).head


async def past(daemon: RunningDaemon) -> tuple[str, str]:
    """A file with several versions by two agents, and a task; where that ends, and the approver code."""
    code = await daemon.make_approver()
    async with daemon.client("alice") as alice, daemon.client("bob") as bob:
        task = await bob.begin_task("numbers")
        await alice.write_file("a.txt", "one\ntwo\n", mode="create", reason="a secret word")
        await bob.read_file("a.txt")
        await bob.edit_file("a.txt", [Replacement(search="two", replace="2")])
        await bob.end_task(task.task)
        lease = await alice.reserve_paths(["b*"])
        await alice.release_paths(lease.lease or "")
    return await head_of(daemon), code
