"""A flipped bit makes a text of bytes, or bytes of a text: whatever reads such a row says `journal_corrupt`."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from orchestrator.core.content import digest_of
from orchestrator.core.errors import JournalCorrupt
from orchestrator.core.events.base import CallDetails
from orchestrator.journal.database_file import FILE_NAME
from orchestrator.journal.sqlite import SqliteJournal
from tests.journal.altered_journal import mistype
from tests.journal.conftest import Open
from tests.journal.fixtures import PATH, by, found, looked, unit

pytestmark = pytest.mark.anyio

CONTENT = b"a content\n"


def columns(table: str) -> list[tuple[str, str, str]]:
    """(table, column, the type that it gets) for those that hold text or bytes."""
    with closing(sqlite3.connect(":memory:")) as memory:
        folder = Path(__file__).parents[2] / "orchestrator" / "journal" / "migrations"
        for script in sorted(folder.glob("*.sql")):
            memory.executescript(script.read_text(encoding="utf-8"))
        other = {"TEXT": "BLOB", "BLOB": "TEXT"}
        found = [(row[1], row[2]) for row in memory.execute(f"PRAGMA table_info({table})")]
    return [(table, name, other[kind]) for name, kind in found if kind in other]


EMPTY = [("file_versions", name) for name in ("agent", "session", "moved_from")]
DAMAGES = [*columns("events"), *columns("blobs"), *columns("file_versions")]


@pytest.mark.parametrize(("table", "column", "kind"), DAMAGES)
async def test_every_reader_says_so(state_dir: Path, opened: Open, table: str, column: str, kind: str) -> None:
    journal = await opened()
    call = CallDetails(operation="file_info")
    origin = msgspec.structs.replace(by(request="r"), owner="o", trace_id="t", client_call_id="c", call=call)
    await journal.append(unit(found(CONTENT), looked(), origin=origin, blobs=[CONTENT]))
    await journal.close()
    with closing(sqlite3.connect(state_dir / FILE_NAME)) as plain:
        (filled,) = plain.execute(f"SELECT count({column}) FROM {table}").fetchone()
    if not filled:
        assert (table, column) in EMPTY
        return
    mistype(state_dir / FILE_NAME, table, column, kind)
    if table == "events":
        with pytest.raises(JournalCorrupt):
            await opened()
    journal = await opened(readonly=True)
    met = [name for name in ("events", "replay", "checks", "blob", "versions") if await met_by(name, journal)]
    assert met, "nobody looked"
    assert (await journal.verify()).problems


async def met_by(name: str, journal: SqliteJournal) -> bool:
    """Whether this reader met the damage; anything but JournalCorrupt is a failure."""
    try:
        match name:
            case "events":
                assert [recorded async for recorded in journal.events()]
            case "replay":
                assert [piece async for piece in journal.replay()]
            case "checks":
                assert [item async for item in journal.checks()]
            case "blob":
                assert await journal.blob(digest_of(CONTENT)) in (CONTENT, None)
            case _:
                await journal.versions(PATH, limit=10)
    except JournalCorrupt:
        return True
    return False
