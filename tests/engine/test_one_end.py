"""Answers to requests and conflicts: each ends once, whoever answers at the same time, and keeps nobody waiting."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import anyio
import pytest

from orchestrator.api import administration as a
from orchestrator.api import operations as o
from orchestrator.api.conflicts import RESOLVE_CONFLICT, ResolveConflict
from orchestrator.api.parameters import WriteFile
from orchestrator.core.change import PathChange, PermissionCheck, Provenance
from orchestrator.core.conflicts.resolution import ConflictClosed
from orchestrator.core.content import digest_of
from orchestrator.core.decisions.commands import Resolve, Write
from orchestrator.core.events.base import Event, Origin, Recorded
from orchestrator.core.events.conflicts import (
    ApprovalDenied,
    ApprovalGranted,
    ApprovalRequested,
    ConflictFound,
    ConflictResolved,
    ConflictSides,
    ConflictSuperseded,
)
from orchestrator.core.ids import AgentName, Seq, SessionId, WorkspacePath, show
from orchestrator.engine.approver import ApproverGate
from orchestrator.engine.caller import Call, Caller, ChangeRequest
from orchestrator.engine.conflicts.proposals import Proposals
from orchestrator.engine.services import Services
from orchestrator.ports.journal import AppendBatch, NewEvent
from orchestrator.ports.machine import LIMIT_S
from tests.engine.parts import approvals_of, pipeline_of, services_of
from tests.in_memory.absent import NoChecks
from tests.in_memory.workspace import MemoryWorkspace

pytestmark = pytest.mark.anyio

FILE = WorkspacePath("f.txt")
BOB = Origin(agent=AgentName("bob"), session=SessionId("s-1"))
CALLER = Caller(agent=AgentName("bob"), agent_class="cloud", session=SessionId("s-1"), transport="rpc")
PERSON = Caller(agent=AgentName("person:p"), agent_class="person", session=SessionId("s-2"), transport="rpc")


@pytest.fixture
def services() -> Services:
    return services_of(MemoryWorkspace())


async def conflict_in(services: Services) -> Seq:
    sides = ConflictSides(base=None, current=None, proposed=None, base_version=None, current_version=None)
    found = ConflictFound(provenance=Provenance(operation="edit_file"), path=FILE, sides=sides)
    return (await services.notes.append(BOB, (f"conflict:{FILE}", found)))[0].seq


async def events_of(services: Services, *kinds: type[Event]) -> list[type[Event]]:
    return [type(item.event) async for item in services.journal.events() if isinstance(item.event, kinds)]


async def test_a_resolved_conflict_is_not_superseded(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    """A person may choose while the change that names the conflict waits for the file."""
    seq, hold = await conflict_in(services), services.locks.hold
    resolved = [ConflictResolved(conflict=seq, choice="current", by="person:p")]

    @asynccontextmanager
    async def late(paths: Iterable[WorkspacePath], *, shared: bool = False) -> AsyncIterator[None]:
        while resolved:
            await services.notes.append(Origin(), (f"conflict:{FILE}", resolved.pop()))
        async with hold(paths, shared=shared):
            yield

    monkeypatch.setattr(services.locks, "hold", late)
    call = Call(operation=o.WRITE_FILE, params=WriteFile(path=FILE, content="x\n", mode="create"))
    request = ChangeRequest(caller=CALLER, call=call, supersedes=show(seq))
    services.background.tasks = tasks = anyio.create_task_group()
    async with tasks:
        answer = await pipeline_of(services).change(Write(path=FILE, content="x\n", mode="create"), request)
    assert answer.status == "applied"
    assert await events_of(services, ConflictSuperseded) == []
    found = services.state.pending.conflict(seq)
    assert found is not None
    assert (found.state, found.choice) == ("resolved", "current")


async def test_a_conflict_is_resolved_once(services: Services) -> None:
    conflict = services.state.pending.open_conflict(await conflict_in(services))
    assert conflict is not None
    proposals = Proposals(services, pipeline_of(services), NoChecks())
    params = ResolveConflict(conflict=show(conflict.seq), choice="current")
    wanted = ChangeRequest(caller=PERSON, call=Call(operation=RESOLVE_CONFLICT, params=params), resolves=conflict.seq)
    resolve = partial(
        proposals.resolve, conflict, None, wanted, choice="current", by="person:p", origin=PERSON.origin()
    )
    await resolve()
    with pytest.raises(ConflictClosed, match="is resolved already"):
        await resolve()
    assert await events_of(services, ConflictResolved) == [ConflictResolved]


async def test_a_closed_conflict_changes_nothing_any_more(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    """One keeps the current side while the other's choice waits for the file."""
    conflict, hold = services.state.pending.open_conflict(await conflict_in(services)), services.locks.hold
    assert conflict is not None
    resolved = [ConflictResolved(conflict=conflict.seq, choice="current", by="person:q")]

    @asynccontextmanager
    async def late(paths: Iterable[WorkspacePath], *, shared: bool = False) -> AsyncIterator[None]:
        while resolved:
            await services.notes.append(Origin(), (f"conflict:{FILE}", resolved.pop()))
        async with hold(paths, shared=shared):
            yield

    monkeypatch.setattr(services.locks, "hold", late)
    params = ResolveConflict(conflict=show(conflict.seq), choice="proposed")
    wanted = ChangeRequest(caller=PERSON, call=Call(operation=RESOLVE_CONFLICT, params=params), resolves=conflict.seq)
    command = Resolve(path=FILE, current=None, chosen=b"x\n")
    services.background.tasks = tasks = anyio.create_task_group()
    async with tasks:
        with pytest.raises(ConflictClosed, match="is resolved already"):
            await Proposals(services, pipeline_of(services), NoChecks()).resolve(
                conflict, command, wanted, choice="proposed", by="person:p", origin=PERSON.origin()
            )
    assert services.workspace.stat(FILE) is None
    assert await events_of(services, ConflictResolved) == [ConflictResolved]


async def test_a_request_that_is_denied_is_not_granted(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    """A yes comes while the no is being noted."""
    asked = ApprovalRequested(
        provenance=Provenance(operation="write_file"),
        paths=(PathChange(FILE, None, digest_of(b"x\n")),),
        rule="ask",
        permissions=(PermissionCheck("create", FILE),),
        expires_at=services.clock.now_ms() + 60_000,
    )
    batch = AppendBatch((NewEvent(f"approval:{FILE}", asked),), BOB, ((digest_of(b"x\n"), b"x\n"),))
    seq = (await services.journal.append(batch))[0].seq
    gate = ApproverGate(services.clock, services.entropy, services.notes, services.state.identities)
    code, approvals = await gate.create(), approvals_of(services, gate)
    append = services.journal.append

    async def met_by_a_yes(batch: AppendBatch) -> tuple[Recorded, ...]:
        if isinstance(batch.events[0].event, ApprovalDenied):
            yes = a.Approve(approval=show(seq), approver=code)
            with anyio.move_on_after(0):
                await approvals.approve(PERSON, Call(operation=a.APPROVE, params=yes), yes)
        return await append(batch)

    monkeypatch.setattr(services.journal, "append", met_by_a_yes)
    no = a.Deny(approval=show(seq), approver=code)
    await approvals.deny(PERSON, Call(operation=a.DENY, params=no), no)
    assert await events_of(services, ApprovalGranted, ApprovalDenied) == [ApprovalDenied]


async def test_a_late_yes_to_a_choice_leaves_a_closed_conflict_as_it_is(services: Services) -> None:
    seq, data = await conflict_in(services), b"x\n"
    asked = ApprovalRequested(
        provenance=Provenance(operation="resolve_conflict", resolves=seq),
        paths=(PathChange(FILE, None, digest_of(data)),),
        rule="ask",
        permissions=(PermissionCheck("create", FILE),),
        expires_at=services.clock.now_ms() + 60_000,
    )
    batch = AppendBatch((NewEvent(f"approval:{FILE}", asked),), BOB, ((digest_of(data), data),))
    (request,) = await services.journal.append(batch)
    kept = ConflictResolved(conflict=seq, choice="current", by="person:q")
    await services.notes.append(Origin(), (f"conflict:{FILE}", kept))
    gate = ApproverGate(services.clock, services.entropy, services.notes, services.state.identities)
    yes = a.Approve(approval=show(request.seq), approver=await gate.create(), unseen=True)
    services.background.tasks = tasks = anyio.create_task_group()
    async with tasks:
        answer = await approvals_of(services, gate).approve(PERSON, Call(operation=a.APPROVE, params=yes), yes)
    assert (answer.status, "is resolved already" in answer.message) == ("dropped", True)
    assert services.workspace.stat(FILE) is None


async def test_a_large_change_is_rebased_beside_the_event_loop(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its file changed elsewhere while the request waited for a yes."""
    lines = [f"line {number}\n" for number in range(20_000)]
    before, after = "".join(lines).encode(), "".join([*lines, "asked for\n"]).encode()
    workspace, work = services.workspace, services.workers.run
    assert isinstance(workspace, MemoryWorkspace)
    workspace.put(FILE, "".join(["changed since\n", *lines[1:]]).encode())
    asked = ApprovalRequested(
        provenance=Provenance(operation="edit_file"),
        paths=(PathChange(FILE, digest_of(before), digest_of(after)),),
        rule="ask",
        permissions=(PermissionCheck("write", FILE),),
        expires_at=services.clock.now_ms() + 60_000,
    )
    blobs = tuple((digest_of(data), data) for data in (before, after))
    recorded = await services.journal.append(AppendBatch((NewEvent(f"approval:{FILE}", asked),), BOB, blobs))
    decided = []

    async def counted(part: Callable[[], Any], *, limit_s: float = LIMIT_S) -> Any:
        decided.append(part)
        return await work(part, limit_s=limit_s)

    monkeypatch.setattr(services.workers, "run", counted)
    gate = ApproverGate(services.clock, services.entropy, services.notes, services.state.identities)
    yes = a.Approve(approval=show(recorded[0].seq), approver=await gate.create(), unseen=True)
    answer = await approvals_of(services, gate).approve(PERSON, Call(operation=a.APPROVE, params=yes), yes)
    assert (answer.status, answer.rung, len(decided)) == ("waiting", "merged", 1)
