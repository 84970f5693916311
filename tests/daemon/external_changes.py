"""What other programs do in a workspace, and how a test learns that the daemon has seen it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import anyio

from orchestrator.api.journal_operations import JournalEntry
from orchestrator.clients.python import FileAccess
from orchestrator.core.positions import parse_seq

SEEN_S = 60

KINDS = ("external_file_changed", "external_file_created", "external_file_removed")
OPENED, CLOSED = "external_batch_opened", "external_batch_closed"


async def entries(person: FileAccess, kind: str) -> list[JournalEntry]:
    """Every event of a kind, oldest first."""
    found: list[JournalEntry] = []
    cursor = None
    while True:
        page = await person.journal_query(kind=kind, limit=500, cursor=cursor)
        found += page.entries
        cursor = page.cursor
        if cursor is None:
            return found[::-1]


async def outside(person: FileAccess) -> list[tuple[str, str]]:
    """(kind, path) of every external change, in order, without the marks of `seen`."""
    found = [entry for kind in KINDS for entry in await entries(person, kind)]
    found.sort(key=lambda entry: parse_seq(entry.seq))
    return [
        (entry.kind.removeprefix("external_file_"), entry.event["path"])
        for entry in found
        if not entry.event["path"].startswith("~mark")
    ]


async def seen(person: FileAccess, workspace: Path) -> None:
    """Return once all that happened up to now is in the journal.

    A file is made last, and asked for until its event is there: hints come in order, and a burst is
    taken in by the order of its paths, in which `~` is last.
    """
    mark = f"~mark{os.urandom(4).hex()}"
    (workspace / mark).write_text("x")
    with anyio.fail_after(SEEN_S):
        while not (await person.journal_query(kind="external_file_created", path=mark, limit=1)).entries:
            pass  # each turn is an answered call


async def resolved(person: FileAccess, changes: int) -> JournalEntry:
    """The close of the first group that has so many changes."""
    with anyio.fail_after(SEEN_S):
        while True:
            for entry in await entries(person, CLOSED):
                if entry.event["changes"] >= changes:
                    return entry


def git(folder: Path, *args: str) -> None:
    """A git command that takes nothing from the machine's settings."""
    settings = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1", "PATH": os.environ["PATH"]}
    names: dict[str, Any] = {
        f"GIT_{who}_{what}": value
        for who in ("AUTHOR", "COMMITTER")
        for what, value in (("NAME", "t"), ("EMAIL", "t@example.invalid"))
    }
    subprocess.run(["git", "-C", str(folder), *args], check=True, capture_output=True, env={**settings, **names})


def save(path: Path, text: str, *, by_way_of: Path) -> None:
    """Another content in one step, so that nobody meets the file half written; the way is outside the workspace."""
    by_way_of.write_text(text)
    by_way_of.replace(path)
