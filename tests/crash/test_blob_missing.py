"""FAULTS row 22: the content of an intent is not kept, which can't be; if it is so, nothing is made up."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from orchestrator.core.content import digest_of
from tests.crash.scenarios import SEVERAL, Ground, outcomes

pytestmark = pytest.mark.anyio

MADE = "made\n"
MISSING = digest_of(MADE.encode())


async def cut_off(base: Path) -> Ground:
    """One of several files is done; of the next, the journal has lost the content."""
    ground = Ground(base)
    ground.prepare(SEVERAL)
    await ground.crash(SEVERAL, at="swapped:1")
    with sqlite3.connect(ground.state_dir / "journal.db") as journal:
        assert journal.execute("DELETE FROM blobs WHERE digest = ?", (MISSING,)).rowcount == 1
    journal.close()
    return ground


async def test_the_content_is_nowhere(base: Path) -> None:
    """The rest is done; the one that can't be is told as apart, and the journal's check says what is missing."""
    ground = await cut_off(base)
    for temp in ground.temps():
        if Path(temp).read_text() == MADE:
            Path(temp).unlink()
    with ground.serving():
        assert ground.contents(SEVERAL) == {**SEVERAL.after, "below/new.txt": None}
        diverged, applied = outcomes(await ground.events())
        assert (diverged["kind"], applied["kind"]) == ("change_diverged", "change_applied")
        assert [item["path"] for item in diverged["paths"]] == ["below/new.txt"]
        async with ground.client() as person:
            verified = await person.journal_verify()
            assert not verified.ok
            assert str(MISSING) in " ".join(verified.problems)


async def test_a_temporary_file_still_holds_it(base: Path) -> None:
    """The leftover's bytes are kept before it is taken away, so the change can be done to its end."""
    ground = await cut_off(base)
    with ground.serving():
        assert ground.contents(SEVERAL) == SEVERAL.after
        (applied,) = outcomes(await ground.events())
        assert applied["kind"] == "change_applied"
        await ground.agrees()
