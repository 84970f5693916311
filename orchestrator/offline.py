"""The composition root for a workspace that no daemon serves."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path

import anyio

from orchestrator.api import journal as k
from orchestrator.api import locations
from orchestrator.api.results import VerifyAnswer
from orchestrator.core.checkpoint import Checkpoint, parse_checkpoint
from orchestrator.core.errors import plural
from orchestrator.core.events.base import Origin
from orchestrator.core.events.journal import JournalAdopted
from orchestrator.core.ids import Seq, WorkspacePath, show
from orchestrator.core.policy.parse import parse_policy
from orchestrator.engine.approver import STREAM, new_code
from orchestrator.engine.changes.recovery import Recovery
from orchestrator.engine.external.baseline import Baseline
from orchestrator.engine.external.batch_import import BatchImporter
from orchestrator.engine.external.observer import Observer
from orchestrator.engine.record.maintenance import backup_answer, backup_place
from orchestrator.engine.record.snapshots import restored
from orchestrator.engine.record.verification import verified
from orchestrator.engine.services import Services
from orchestrator.journal.high_water_mark import HighWaterMark, HighWaterMarkFile
from orchestrator.journal.maintenance import STREAM as JOURNAL
from orchestrator.journal.maintenance import SqliteMaintenance
from orchestrator.journal.restore import restore_backup, set_aside, set_unnamed_contents_aside
from orchestrator.journal.sqlite import SqliteJournal
from orchestrator.machine import SystemClock, SystemEntropy
from orchestrator.ports.journal import EventFilter, NewEvent, Unit
from orchestrator.workspace.disk import KernelDisk
from orchestrator.workspace.local import LocalWorkspace
from orchestrator.workspace.own_files import OwnFiles
from orchestrator.workspace.process_lock import hold_root, hold_state

OWNER = "owner_uid"
"""By whom: whoever can do these things can read the journal anyway."""

OUTSIDE = ("external_file_changed", "external_file_created", "external_file_removed")


@contextmanager
def held(workspace: str, state_dir: str) -> Iterator[None]:
    """Keep every daemon away. Raises WorkspaceHeld while one runs."""
    state = hold_state(state_dir)
    try:
        root = hold_root(workspace)
        try:
            yield
        finally:
            root.close()
    finally:
        state.close()


# --- the approver code -----------------------------------------------------------------


def reset_approver(workspace: str, state_dir: str) -> str:
    """Make a new approver code without the old one; the journal says that the owner's uid did it.

    Who can do this can read the journal anyway: it takes the state directory's owner.
    Raises WorkspaceHeld while a daemon runs, and what opening the journal raises.
    """
    with held(workspace, state_dir):
        return anyio.run(_reset, state_dir, _mark(workspace))


async def _reset(state_dir: str, mark: Path) -> str:
    entropy = SystemEntropy()
    journal = await SqliteJournal.open(state_dir, clock=SystemClock(), entropy=entropy, mark=mark)
    try:
        code, event = new_code(entropy, "owner_uid")
        await journal.append(Unit((NewEvent(STREAM, event),), Origin()))
    finally:
        await journal.close()
    return code


# --- the journal itself ----------------------------------------------------------------


def verify(state_dir: str, checkpoint: str | None) -> VerifyAnswer:
    """Check the journal of a stopped daemon, with the text of a checkpoint file perhaps; nothing is written.

    Raises CheckpointInvalid, CheckpointOfAnotherJournal, and what opening the journal raises.
    """
    return anyio.run(_verify, state_dir, parse_checkpoint(checkpoint) if checkpoint is not None else None)


async def _verify(state_dir: str, checkpoint: Checkpoint | None) -> VerifyAnswer:
    journal = await SqliteJournal.open(state_dir, clock=SystemClock(), entropy=SystemEntropy(), readonly=True)
    try:
        return verified(await journal.verify(checkpoint))
    finally:
        await journal.close()


def backup(workspace: str, state_dir: str, directory: str) -> k.BackupAnswer:
    """As `journal_backup`. Raises WorkspaceHeld, and what that raises."""
    target = backup_place(directory, workspace=workspace, state_dir=state_dir)
    with held(workspace, state_dir):
        return anyio.run(_backup, state_dir, str(target))


async def _backup(state_dir: str, directory: str) -> k.BackupAnswer:
    clock = SystemClock()
    journal = await SqliteJournal.open(state_dir, clock=clock, entropy=SystemEntropy(), readonly=True)
    try:
        return backup_answer(await SqliteMaintenance(journal, clock=clock).backup(directory))
    finally:
        await journal.close()


def restore(workspace: str, state_dir: str, directory: str, *, another_journal: bool = False) -> k.RestoreAnswer:
    """Put a backup in the journal's place; the journal before it is moved aside.

    `another_journal`: also one of another journal. Raises BackupInvalid,
    BackupOfAnotherJournal, DiskFull, WorkspaceHeld; then nothing was changed.
    """
    Path(state_dir).mkdir(mode=0o700, parents=True, exist_ok=True)
    with held(workspace, state_dir):
        mark = HighWaterMarkFile(_mark(workspace)).read_if_readable()
        of = mark.journal if mark is not None and not another_journal else None
        backup = Path(directory).resolve()
        manifest, aside = restore_backup(backup, Path(state_dir), now_ms=SystemClock().now_ms(), of=of)
    there = mark is not None and (mark.journal, mark.head, mark.head_hash) == (
        manifest.journal,
        manifest.head,
        manifest.head_hash,
    )
    following = "`orchestrator up` goes on with it" if there or mark is None else "run `orchestrator journal adopt`"
    other = "; it is another journal than the workspace's" if mark and mark.journal != manifest.journal else ""
    return k.RestoreAnswer(
        message=f"the journal is the backup's now{other}, at {show(manifest.head)}; {following}",
        journal=manifest.journal,
        head=show(manifest.head),
        known_head=show(mark.head) if mark is not None else None,
        set_aside=str(aside) if aside is not None else None,
    )


def reset(workspace: str, state_dir: str) -> k.ResetAnswer:
    """Move the journal and its mark aside, so that the next start begins anew. Raises WorkspaceHeld."""
    with held(workspace, state_dir):
        aside = set_aside(Path(state_dir), now_ms=SystemClock().now_ms(), more=(_mark(workspace),))
    if aside is None:
        return k.ResetAnswer(message="there is no journal", set_aside=None)
    return k.ResetAnswer(
        message=f"the next `orchestrator up` begins a new journal; the old one lies in {aside}", set_aside=str(aside)
    )


def adopt(workspace: str, state_dir: str) -> k.AdoptAnswer:
    """Go on with a journal that is not where it had come to: each file that differs becomes an outside change.

    Raises WorkspaceHeld, and what opening the journal raises.
    """
    with held(workspace, state_dir):
        return anyio.run(_adopt, workspace, state_dir)


async def _adopt(workspace: str, state_dir: str) -> k.AdoptAnswer:
    clock, entropy, file = SystemClock(), SystemEntropy(), HighWaterMarkFile(_mark(workspace))
    path = Path(state_dir)
    known = file.read_if_readable()
    aside = set_unnamed_contents_aside(path, now_ms=clock.now_ms()) if (path / "journal.db").exists() else None
    journal = await SqliteJournal.open(state_dir, clock=clock, entropy=entropy)
    try:
        head = journal.head
        if known is not None and journal.is_at(known):
            return k.AdoptAnswer(message="the journal is where it had come to; there is nothing to adopt", files=0)
        event = JournalAdopted(by=OWNER, head=head, known_head=Seq(known.head if known is not None else 0))
        (adopted,) = await journal.append(Unit((NewEvent(JOURNAL, event),), Origin()))
        await _scan(workspace, state_dir, journal, clock, entropy)
        wanted = EventFilter(tags=OUTSIDE, after=adopted.seq)
        files = len([recorded async for recorded in journal.events(wanted)])
        reached: HighWaterMark = journal.here
    finally:
        await journal.close()
    file.write(reached)
    file.close()
    other = ""
    if known is not None and known.journal != reached.journal:
        other = f" another journal ({reached.journal[:8]}…) than the workspace had ({known.journal[:8]}…),"
    return k.AdoptAnswer(
        message=f"adopted{other} at {show(head)}; changes of {plural(files, 'file')} recorded as external",
        files=files,
        head=show(head),
        known_head=show(known.head) if known is not None else None,
        adopted=show(adopted.seq),
        set_aside=str(aside) if aside is not None else None,
    )


async def _scan(
    workspace: str, state_dir: str, journal: SqliteJournal, clock: SystemClock, entropy: SystemEntropy
) -> None:
    """What the start of a daemon does: close what is open, then look at every file."""
    state = await restored(journal)
    files, guarded = _files(workspace, Path(state_dir))
    try:
        text = resources.files("policies").joinpath("default.toml").read_text(encoding="utf-8")
        services = Services(
            journal=journal,
            workspace=files,
            ignore=files.ignore,
            policy=parse_policy(text, source="policies/default.toml").guarding(guarded),
            clock=clock,
            entropy=entropy,
            state=state,
        )
        observer = Observer(services)
        await Recovery(services, observer).run()
        await Baseline(services, observer, BatchImporter(services, observer)).scan()
    finally:
        files.close()


def _files(workspace: str, state_dir: Path) -> tuple[LocalWorkspace, tuple[WorkspacePath, ...]]:
    """The workspace, and the paths of what daemons keep in it."""
    places = locations.own_places(str(state_dir))
    own, root = OwnFiles(places), f"{Path(workspace).resolve()}/"
    inside = tuple(WorkspacePath(place.removeprefix(root)) for place in places if place.startswith(root))
    hidden = own.directories() if inside else frozenset()
    return LocalWorkspace(workspace, disk=KernelDisk(), hidden=hidden, is_own=own.holds), inside


def _mark(workspace: str) -> Path:
    return Path(locations.mark_file(locations.workspace_id(workspace)))
