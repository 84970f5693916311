"""The composition root for a workspace that no daemon serves, and what it opens in the same way as a daemon."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Literal

from orchestrator.api import journal_operations as k
from orchestrator.api import locations
from orchestrator.api.administration import ApproverCode
from orchestrator.api.journal_checks import VerifyAnswer
from orchestrator.api.policy_files import read_policies, shipped_policies, signatures
from orchestrator.api.processes import hold_root, hold_state
from orchestrator.core.errors import ApproverCodeNeeded, JournalBehind, plural
from orchestrator.core.events.base import Event, Origin
from orchestrator.core.events.chain import parse_checkpoint
from orchestrator.core.events.codec import tags_with
from orchestrator.core.events.journal_maintenance import JournalAdopted
from orchestrator.core.events.sessions import ApproverSet
from orchestrator.core.ids import Seq, show
from orchestrator.core.policy.rules import WORKSPACE_FILE
from orchestrator.engine.approver import STREAM, is_code, new_code
from orchestrator.engine.changes.recovery import Recovery
from orchestrator.engine.external.batch_import import BatchImporter
from orchestrator.engine.external.observer import Observer
from orchestrator.engine.names import Names
from orchestrator.engine.policy_files import LoadedPolicy, PolicyFiles, load
from orchestrator.engine.record.folded_state import restored
from orchestrator.engine.record.verification import verified
from orchestrator.engine.services import Services
from orchestrator.journal.backup import restore_backup, set_aside, set_unnamed_contents_aside
from orchestrator.journal.cache_files import CacheFiles
from orchestrator.journal.high_water_mark import HighWaterMark, HighWaterMarkFile
from orchestrator.journal.sqlite import STREAM as JOURNAL
from orchestrator.journal.sqlite import SqliteJournal
from orchestrator.logs import start_logging
from orchestrator.machine import SystemClock, SystemEntropy
from orchestrator.ports.journal import AppendBatch, EventFilter, NewEvent
from orchestrator.ports.machine import Step
from orchestrator.workspace.disk import Disk
from orchestrator.workspace.local import LocalWorkspace
from orchestrator.workspace.local_parser import LocalParser
from orchestrator.workspace.own_files import OwnFiles
from orchestrator.workspace.token_counter import VocabularyCounter
from orchestrator.workspace.workers import WorkerPool

OWNER: Literal["owner_uid"] = "owner_uid"
"""By whom: whoever can do these things can read the journal anyway."""


@contextmanager
def held(workspace: str, state_dir: str) -> Iterator[None]:
    """Keep every daemon away. Raises WorkspaceHeld while one runs."""
    with ExitStack() as stack:
        stack.callback(os.close, hold_state(state_dir))
        stack.callback(os.close, hold_root(workspace))
        yield


@asynccontextmanager
async def _opened(state_dir: str, *, mark: Path | None = None, readonly: bool = False) -> AsyncIterator[SqliteJournal]:
    start_logging()
    journal = await SqliteJournal.open(
        state_dir, clock=SystemClock(), entropy=SystemEntropy(), mark=mark, readonly=readonly
    )
    try:
        yield journal
    finally:
        await journal.close()


async def reset_approver(workspace: str, state_dir: str, own: str | None = None) -> ApproverCode:
    """Make a new approver code without the old one; the journal says that the owner's uid did it.

    Who can do this can read the journal anyway: it takes the state directory's owner. A journal that is behind its
    workspace gets one too, since adopting it asks for the code.
    Raises WorkspaceHeld while a daemon runs, and what `new_code` and opening the journal raise.
    """
    code, event = new_code(SystemEntropy(), OWNER, own)
    with held(workspace, state_dir):
        try:
            await _append(state_dir, event, mark=_mark(workspace))
        except JournalBehind:
            if not (Path(state_dir) / "journal.db").exists():
                raise
            await _append(state_dir, event)
    return ApproverCode(approver_code=code if own is None else None)


async def _append(state_dir: str, event: Event, *, mark: Path | None = None) -> None:
    async with _opened(state_dir, mark=mark) as journal:
        await journal.append(AppendBatch((NewEvent(STREAM, event),), Origin()))


async def _check_approver(state_dir: str, asked: Callable[[], str | None]) -> None:
    """Ask for the code of the journal of a stopped daemon. Raises ApproverCodeNeeded."""
    approver = None
    async with _opened(state_dir, readonly=True) as journal:
        async for recorded in journal.events(EventFilter(stream=STREAM)):
            if isinstance(recorded.event, ApproverSet):
                approver = recorded.event
    hint = "`orchestrator approver reset` makes a new one while no daemon runs; the journal says so."
    if approver is None:
        raise ApproverCodeNeeded("this needs the approver code, and this journal has none", hint=hint)
    code = asked()
    if not code or not is_code(code, approver):
        raise ApproverCodeNeeded("that is not the approver code of this journal", hint=hint)


async def verify(state_dir: str, checkpoint: str | None) -> VerifyAnswer:
    """Check the journal of a stopped daemon, with the text of a checkpoint file perhaps; nothing is written.

    Raises CheckpointInvalid, CheckpointOfAnotherJournal, and what opening the journal raises.
    """
    parsed = parse_checkpoint(checkpoint) if checkpoint is not None else None
    async with _opened(state_dir, readonly=True) as journal:
        return verified(await journal.verify(parsed))


def restore(workspace: str, state_dir: str, directory: str) -> k.JournalReplaced:
    """Put a backup in the journal's place; the journal before it is moved aside.

    One of another journal too: the next start refuses it until it is adopted. Raises BackupInvalid, DiskFull,
    WorkspaceHeld; then nothing was changed.
    """
    Path(state_dir).mkdir(mode=0o700, parents=True, exist_ok=True)
    with held(workspace, state_dir):
        made, aside = restore_backup(Path(directory).resolve(), Path(state_dir), now_ms=SystemClock().now_ms())
    before = f". The journal before it is in {aside}" if aside is not None else ""
    return k.JournalReplaced(
        message=f"the journal is the backup's now, at {show(made.head)}; run `orchestrator journal adopt`{before}",
        journal=made.journal,
        head=show(made.head),
        set_aside=str(aside) if aside is not None else None,
    )


def reset(workspace: str, state_dir: str) -> k.JournalReplaced:
    """Move the journal and its mark aside, so that the next start begins anew. Raises WorkspaceHeld."""
    with held(workspace, state_dir):
        aside = set_aside(Path(state_dir), now_ms=SystemClock().now_ms(), more=(_mark(workspace),))
    if aside is None:
        return k.JournalReplaced(message="there is no journal")
    message = f"the next `orchestrator up` begins a new journal; the old one is in {aside}"
    return k.JournalReplaced(message=message, set_aside=str(aside))


async def adopt(workspace: str, state_dir: str, approver: Callable[[], str | None]) -> k.JournalReplaced:
    """Go on with a journal that is behind the files: each file that differs becomes an external change.

    `approver` asks for the code, which is that of the journal. Where there is no journal, a new one begins.
    Raises WorkspaceHeld, ApproverCodeNeeded, and what opening the journal raises.
    """
    file, path = HighWaterMarkFile(_mark(workspace)), Path(state_dir)
    with held(workspace, state_dir):
        if (path / "journal.db").exists():
            await _check_approver(state_dir, approver)
        known = None
        with suppress(JournalBehind):
            known = file.read()
        now_ms = SystemClock().now_ms()
        aside = set_unnamed_contents_aside(path, now_ms=now_ms) if (path / "journal.db").exists() else None
        async with _opened(state_dir) as journal, AsyncExitStack() as stack:
            head = journal.head
            places = locations.own_places(state_dir)
            services, *_ = await opened(stack, journal, workspace, state_dir=state_dir, places=places)
            event = JournalAdopted(by=OWNER, head=head, known_head=Seq(known.head if known is not None else 0))
            (adopted,) = await journal.append(AppendBatch((NewEvent(JOURNAL, event),), Origin()))
            observer = Observer(services)  # what the start of a daemon does: close what is open, look at every file
            await Recovery(services, observer).run()
            names = Names(services.workspace, services.ignore, services.state.registry, None)
            await BatchImporter(services, observer, names).scan()
            wanted = EventFilter(tags=tags_with("external"), after=adopted.seq)
            changed = len([recorded async for recorded in journal.events(wanted)])
            reached: HighWaterMark = journal.here
        file.write(reached)
        file.close()
    other = " another journal than the workspace's," if known is not None and known.journal != reached.journal else ""
    moved = f". Contents that only the newer journal knew are in {aside}" if aside is not None else ""
    return k.JournalReplaced(
        message=f"adopted{other} at {show(head)}; changes of {plural(changed, 'file')} recorded as external{moved}",
        files=changed,
        head=show(head),
        set_aside=str(aside) if aside is not None else None,
    )


async def opened(
    stack: AsyncExitStack,
    journal: SqliteJournal,
    root: str,
    *,
    state_dir: str,
    places: Iterable[str],
    system_policy: str = locations.SYSTEM_POLICY,
    step: Step = lambda name: None,
) -> tuple[Services, LocalWorkspace, PolicyFiles, LoadedPolicy, tuple[str, ...]]:
    """What the engine works with, its files, and notes for a person; what is opened is closed with the stack.

    The files are those of the workspace without `places`, which daemons keep. Raises PolicyInvalid, and as `restored`.
    """
    doubts: list[str] = []
    state = await restored(journal, doubts)
    policies = locations.policy_files(state_dir, system_policy)
    paths = tuple(path for _, path in policies)
    own = OwnFiles((*places, *paths, *map(os.path.realpath, paths)))
    workspace = LocalWorkspace(root, disk=Disk(), own=own, step=step)
    stack.callback(workspace.close)
    files = PolicyFiles(
        read=partial(read_policies, policies),
        signature=partial(signatures, (*paths, f"{root}/{WORKSPACE_FILE}")),
        shipped=shipped_policies(),
        own_state=own.inside(root),
        mark_tools=partial(_mark_tools, Path(state_dir) / locations.TOOLS_MARK),
    )
    loaded = await load(files, state.policies, journal, workspace)
    workers = WorkerPool()
    stack.push_async_callback(workers.aclose)
    services = Services(
        journal=journal,
        workspace=workspace,
        ignore=workspace.ignore,
        policy=loaded.policy,
        clock=SystemClock(),
        entropy=SystemEntropy(),
        state=state,
        step=step,
        parser=LocalParser(workers),
        workers=workers,
        tokens=VocabularyCounter(workers),
        sweep=workspace.sweep(),
        cache=CacheFiles(Path(state_dir)),
    )
    return services, workspace, files, loaded, (*workspace.features, *doubts)


def _mark_tools(mark: Path, off: bool) -> None:
    """A mark that can't be set costs what tools/list leaves out, not the refusal of the call."""
    with suppress(OSError):
        if off:
            mark.touch(mode=0o600)
        else:
            mark.unlink(missing_ok=True)


def _mark(workspace: str) -> Path:
    return Path(locations.mark_file(locations.workspace_id(workspace)))
