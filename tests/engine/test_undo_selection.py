"""Choosing what to undo among many events: other callers have their turns meanwhile, by count."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from anyio import from_thread

from orchestrator.api.failures import operation_named
from orchestrator.api.history import Rollback
from orchestrator.core.content import Signature, digest_of
from orchestrator.core.decisions.commands import AllFacts
from orchestrator.core.decisions.costs import effort
from orchestrator.core.decisions.decision import Outcome
from orchestrator.core.decisions.lineage import UndoFilter
from orchestrator.core.decisions.undo import Undo
from orchestrator.core.errors import NothingToChange
from orchestrator.core.events.base import Event, Origin
from orchestrator.core.events.files import ExternalFileChanged, ExternalFileCreated
from orchestrator.core.ids import AgentName, Seq, SessionId, WorkspacePath
from orchestrator.core.positions import Timestamp
from orchestrator.engine.caller import Call, Caller, ChangeRequest
from orchestrator.engine.changes.undo import SLICE, UndoSelector
from orchestrator.engine.services import OFF_LOOP_BYTES, Services
from orchestrator.ports.journal import AppendBatch, NewEvent
from orchestrator.workspace.disk import Disk
from orchestrator.workspace.local import LocalWorkspace
from tests.engine.parts import pipeline_of, services_of

pytestmark = pytest.mark.anyio

PATH = WorkspacePath("a.txt")
EVENTS = 5_000


@pytest.fixture
async def services(base: Path) -> Services:
    """A journal in which other programs changed one file again and again."""
    (base / "w").mkdir()
    workspace = LocalWorkspace(str(base / "w"), disk=Disk())
    services = services_of(workspace)
    contents = [digest_of(b"one\n"), digest_of(b"two\n")]
    signature = Signature(4, 1, 1, 1)
    events: list[Event] = [
        ExternalFileCreated(path=PATH, after=contents[0], signature=signature, mode=0o644, kept=True)
    ]
    events += (
        ExternalFileChanged(
            path=PATH,
            before=contents[n % 2],
            after=contents[1 - n % 2],
            signature=signature,
            mode=0o644,
            kept=True,
        )
        for n in range(EVENTS)
    )
    await services.journal.append(AppendBatch(tuple(NewEvent(f"file:{PATH}", event) for event in events), Origin()))
    return services


async def test_others_have_a_turn_after_each_slice_of_events(services: Services) -> None:
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            await anyio.lowlevel.checkpoint()
            turns += 1

    chooser = UndoSelector(services)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(other)
        chosen = await chooser.span(UndoFilter(since=Timestamp(seq=Seq(1))))
        tasks.cancel_scope.cancel()
    assert len(chosen.keys) == EVENTS
    assert turns >= EVENTS // SLICE


class Deciding(Undo, frozen=True, kw_only=True):
    """An undo that does something else while it is decided, in its worker thread."""

    meanwhile: Callable[[], Coroutine[Any, Any, None]]

    def decide(self, facts: AllFacts) -> Outcome:
        from_thread.run(self.meanwhile)
        raise NothingToChange("decided")


async def test_a_file_is_free_while_a_preview_of_its_undo_is_decided(services: Services, base: Path) -> None:
    (base / "w" / PATH).write_bytes(b"one\n")
    taken = False

    async def take() -> None:
        nonlocal taken
        with anyio.fail_after(60):
            async with services.locks.alone([PATH]):
                taken = True

    undo = Deciding(
        histories=await services.journal.histories({PATH}),
        modes={},
        chosen=frozenset(),
        others_work=frozenset(),
        touched=(PATH,),
        meanwhile=take,
    )
    caller = Caller(agent=AgentName("alice"), agent_class="cloud", session=SessionId("s-1"), transport="rpc")
    call = Call(operation=operation_named("rollback"), params=Rollback(agent="alice", preview=True))
    changer = pipeline_of(services)
    with pytest.raises(NothingToChange, match="decided"):
        await changer.change(undo, ChangeRequest(caller=caller, call=call, preview=True))
    assert taken


async def test_a_preview_looks_at_files_that_others_read(services: Services, base: Path) -> None:
    """So a call about one of 200 files does not wait until all of them were looked at."""
    (base / "w" / PATH).write_bytes(b"one\n")
    histories = await services.journal.histories({PATH})
    undo = Undo(histories=histories, modes={}, chosen=frozenset(), others_work=frozenset(), touched=(PATH,))
    caller = Caller(agent=AgentName("alice"), agent_class="cloud", session=SessionId("s-1"), transport="rpc")
    call = Call(operation=operation_named("rollback"), params=Rollback(agent="alice", preview=True))
    changer = pipeline_of(services)
    with anyio.fail_after(60):
        async with services.locks.shared(PATH):
            with pytest.raises(NothingToChange):
                await changer.change(undo, ChangeRequest(caller=caller, call=call, preview=True))


async def test_an_undo_of_many_versions_is_decided_off_the_event_loop(services: Services) -> None:
    histories = await services.journal.histories({PATH})
    undo = Undo(histories=histories, modes={}, chosen=frozenset(), others_work=frozenset(), touched=(PATH,))
    assert effort(undo) == EVENTS + 1 > OFF_LOOP_BYTES // 32
