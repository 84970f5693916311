"""Of an event of every type, verification demands the contents that it brought, and collection takes no other's."""

from __future__ import annotations

import pytest

from orchestrator.core.annotations import Mark
from orchestrator.core.events.base import Origin
from orchestrator.core.events.codec import EVENTS, tag_of
from orchestrator.core.ids import Seq
from orchestrator.journal.maintenance import SqliteMaintenance
from tests.core.events.filled_events import Filled, Filler
from tests.journal.conftest import Open
from tests.journal.fixtures import unit

pytestmark = pytest.mark.anyio

WITH_CONTENTS = [pytest.param(filled, id=tag_of(filled.event)) for filled in map(Filler().event, EVENTS) if filled.data]
every_event = pytest.mark.parametrize("filled", WITH_CONTENTS)
WHENEVER = 10**15


@every_event
async def test_verification_misses_each_content_that_it_brought(filled: Filled, opened: Open) -> None:
    journal = await opened()
    await journal.append(unit(filled.event))
    reported = " ".join((await journal.verify()).problems)
    assert {digest for digest in filled.data if digest in reported} == filled.kept


@every_event
async def test_collection_takes_what_it_names_only_where_it_proposes(filled: Filled, opened: Open) -> None:
    journal = await opened()
    await journal.append(unit(filled.event, blobs=filled.data.values()))
    maintenance = SqliteMaintenance(journal)

    async def unneeded(*, as_of: int, needed: bool = False) -> set[str]:
        found = await maintenance.collect(
            needed=frozenset(filled.data if needed else ()),
            as_of=Seq(as_of),
            before_ms=WHENEVER,
            origin=Origin(),
            dry_run=True,
        )
        return set(found.digests)

    named = filled.data.keys() - set(filled.marked[Mark.GONE])
    assert await unneeded(as_of=0) == set(), "what came after the look counts, whatever its kind"
    assert await unneeded(as_of=1) == (named if type(filled.event).proposes else set())
    assert await unneeded(as_of=1, needed=True) == set()
