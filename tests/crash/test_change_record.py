"""Who and why, and how a change fits, is in its intent and its outcome, whichever way it comes to be."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from orchestrator.core.change import Fit, PathChange, PermissionCheck, Provenance, UnseenChange
from orchestrator.core.content import LineHunk, LineRange, ResolvedRegion, Span, digest_of
from orchestrator.core.decisions.decision import Apply, NewContent
from orchestrator.core.events.base import Event, Origin
from orchestrator.core.events.conflicts import ApprovalGranted, ApprovalRequested
from orchestrator.core.events.files import ChangeApplied, ChangeIntended
from orchestrator.core.ids import AgentName, Seq, SessionId, WorkspacePath
from orchestrator.engine.changes.effects import Effects
from orchestrator.ports.journal import AppendBatch, EventFilter, NewEvent
from orchestrator.workspace.disk import Disk
from tests.crash.inside import Inside, living
from tests.crash.scenarios import NEW, OLD
from tests.regions import region

pytestmark = pytest.mark.anyio

PATH = WorkspacePath("file.txt")
ORIGIN = Origin(agent=AgentName("alice"), session=SessionId("s-alice"))
PROVENANCE = Provenance(
    operation="edit_file",
    task=Seq(90),
    reason="the tests fail",
    reverts=(Seq(91),),
    supersedes=Seq(92),
    resolves=Seq(93),
    approval=Seq(94),
    grants=(Seq(97),),
    accepted_by="person:ada",
    unseen=(UnseenChange(PATH, Seq(1), LineRange(4, 5), LineRange(6, 5), ("bob",), Seq(95)),),
    brought=4,
)
FIT = Fit(
    rung="merged",
    score=0.975,
    base=Seq(96),
    on_seen_whole=True,
    same_symbol=("Shop.close",),
    merge=(ResolvedRegion(PATH, "imports", "only imports stand here", region(1, 0, 1, 2, 1, 3), Span(1, 5)),),
    warnings=("look at Shop.close",),
)
CHANGE = PathChange(PATH, digest_of(OLD.encode()), digest_of(NEW.encode()), hunks=(LineHunk(6, 1, 6, 2),))
PLAN = Apply(paths=(CHANGE,), contents={digest_of(NEW.encode()): NewContent(NEW.encode())}, fit=FIT)


class Killed(Exception):
    """Stands for the end of the process."""


@pytest.mark.parametrize("record", [PROVENANCE, FIT], ids=lambda record: type(record).__name__)
def test_every_field_has_a_value_here(record: msgspec.Struct) -> None:
    given = msgspec.json.decode(msgspec.json.encode(record))
    assert given.keys() == set(record.__struct_fields__), "give the new field a value above"


async def events_of(life: Inside) -> list[Event]:
    return [recorded.event async for recorded in life.services.journal.events(EventFilter())]


def check(events: list[Event], provenance: Provenance, *, recovered: bool) -> None:
    """The last change has all of it; the reason stands in the intent alone, so that one redaction takes it out."""
    intended = [event for event in events if isinstance(event, ChangeIntended)][-1]
    applied = [event for event in events if isinstance(event, ChangeApplied)][-1]
    assert (intended.provenance, intended.fit) == (provenance, FIT)
    assert (applied.provenance, applied.fit) == (msgspec.structs.replace(provenance, reason=""), FIT)
    assert applied.recovered == recovered
    assert [(item.before, item.after, item.hunks) for item in applied.paths] == [
        (CHANGE.before, CHANGE.after, CHANGE.hunks)
    ]


@pytest.mark.parametrize("killed_at", [None, "written"])
async def test_of_a_change_that_is_carried_out_or_recovered(tmp_path: Path, killed_at: str | None) -> None:
    root = tmp_path / "work"
    root.mkdir()
    (root / PATH).write_text(OLD)

    def step(name: str) -> None:
        if name == killed_at:
            raise Killed

    async with living(tmp_path / "state", root, Disk(), step=step) as life:
        carry_out = Effects(life.services).carry_out(PLAN, PROVENANCE, ORIGIN)
        if killed_at is None:
            await carry_out
        else:
            with pytest.raises(Killed):
                await carry_out
        await life.idle()
    async with living(tmp_path / "state", root, Disk()) as life:
        check(await events_of(life), PROVENANCE, recovered=killed_at is not None)
    assert (root / PATH).read_text() == NEW


async def test_another_file_of_the_temporary_files_name_is_not_taken_for_it(tmp_path: Path) -> None:
    """Agents can read the name, and write a file that has it into another folder."""
    root = tmp_path / "work"
    (root / "decoy").mkdir(parents=True)
    (root / PATH).write_text(OLD)

    def step(name: str) -> None:
        if name == "written":
            raise Killed

    async with living(tmp_path / "state", root, Disk(), step=step) as life:
        with pytest.raises(Killed):
            await Effects(life.services).carry_out(PLAN, PROVENANCE, ORIGIN)
        await life.idle()
    (temp,) = root.glob(".orchestrator-*")
    (root / "decoy" / temp.name).write_text("foreign")
    async with living(tmp_path / "state", root, Disk()) as life:
        check(await events_of(life), PROVENANCE, recovered=True)
    assert (root / PATH).read_text() == NEW
    assert sorted(path.name for path in root.rglob("*")) == ["decoy", PATH]


async def test_of_a_change_that_a_person_granted(tmp_path: Path) -> None:
    root = tmp_path / "work"
    root.mkdir()
    (root / PATH).write_text(OLD)
    asked = ApprovalRequested(
        provenance=msgspec.structs.replace(PROVENANCE, approval=None),
        paths=PLAN.paths,
        rule="ci: look first",
        permissions=(PermissionCheck("write", PATH),),
        expires_at=2**52,
        fit=FIT,
    )
    async with living(tmp_path / "state", root, Disk()) as life:
        blobs = tuple(
            (digest, content.data) for digest, content in PLAN.contents.items() if isinstance(content.data, bytes)
        )
        stream = f"approval:{PATH}"
        (request,) = await life.services.journal.append(AppendBatch((NewEvent(stream, asked),), ORIGIN, blobs))
        granted = ApprovalGranted(approval=request.seq, by="person:ada")
        await life.services.journal.append(AppendBatch((NewEvent(stream, granted),), Origin()))
    async with living(tmp_path / "state", root, Disk()) as life:
        provenance = msgspec.structs.replace(PROVENANCE, approval=request.seq)
        check(await events_of(life), provenance, recovered=False)
    assert (root / PATH).read_text() == NEW


async def test_a_grant_asks_policy_for_what_the_request_was_asked_for(tmp_path: Path) -> None:
    """A write that was asked for as a review is refused, as nobody may review here."""
    root = tmp_path / "work"
    root.mkdir()
    (root / PATH).write_text(OLD)
    asked = ApprovalRequested(
        provenance=Provenance(operation="edit_file"),
        paths=PLAN.paths,
        rule="ci: look first",
        permissions=(PermissionCheck("review", PATH), PermissionCheck("write", PATH)),
        expires_at=2**52,
    )
    async with living(tmp_path / "state", root, Disk()) as life:
        blobs = tuple(
            (digest, content.data) for digest, content in PLAN.contents.items() if isinstance(content.data, bytes)
        )
        (request,) = await life.services.journal.append(
            AppendBatch((NewEvent(f"approval:{PATH}", asked),), ORIGIN, blobs)
        )
        granted = ApprovalGranted(approval=request.seq, by="person:ada")
        await life.services.journal.append(AppendBatch((NewEvent(f"approval:{PATH}", granted),), Origin()))
    async with living(tmp_path / "state", root, Disk()) as life:
        approval = life.services.state.pending.approval(request.seq)
        assert approval is not None
        assert (approval.state, approval.cause) == ("expired", "policy_changed")
    assert (root / PATH).read_text() == OLD
