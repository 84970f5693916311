"""The engine: every call comes through here, once, and every refusal is noted before it is answered."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import anyio
import msgspec

from orchestrator.api.feed import FeedEvent, Subscribe
from orchestrator.api.results import ChangeAnswer, Result, TaskAnswer
from orchestrator.core.content import LineRange
from orchestrator.core.errors import (
    Aborted,
    ApproverError,
    CallerError,
    DiskFull,
    IoFailed,
    NotPermitted,
    OrchestratorError,
    RequestIdReused,
    Unauthorised,
    WritesStopped,
    escaped,
)
from orchestrator.core.events.base import Event, Origin
from orchestrator.core.events.conflicts import ConflictResolved
from orchestrator.core.events.files import (
    CallRefused,
    ChangeAborted,
    ChangeIntended,
    ChangeRefused,
    ContentShown,
    ReadRefused,
    SeenLines,
)
from orchestrator.core.events.leases import LeaseGranted, LeaseReleased, LeaseRenewed
from orchestrator.core.events.sessions import SessionClosed, TaskBegun, TaskEnded
from orchestrator.core.ids import Seq, WorkspacePath, show
from orchestrator.core.projections.sessions import Session
from orchestrator.core.system_errors import refusal_in
from orchestrator.engine.administration import Administration, DaemonFacts
from orchestrator.engine.approver import ApproverGate
from orchestrator.engine.caller import Call, Caller
from orchestrator.engine.changes.answers import Answers
from orchestrator.engine.changes.approvals import ApprovalService
from orchestrator.engine.changes.effects import Effects
from orchestrator.engine.changes.pipeline import ChangePipeline
from orchestrator.engine.changes.recovery import Recovery
from orchestrator.engine.changes.renames import RenameTracker
from orchestrator.engine.changes.undo import Undoer
from orchestrator.engine.changes.write_operations import Writer, read_as
from orchestrator.engine.conflicts.proposals import Proposals
from orchestrator.engine.conflicts.rebase import Rebaser
from orchestrator.engine.conflicts.resolution import ConflictResolver
from orchestrator.engine.conflicts.review_context import ReviewContext
from orchestrator.engine.conflicts.reviews import Reviewing
from orchestrator.engine.external.baseline import Baseline
from orchestrator.engine.external.batch_import import BatchImporter
from orchestrator.engine.external.observer import Observer
from orchestrator.engine.external.watch import Watching
from orchestrator.engine.idempotency import RefusalReplayed, kept_details
from orchestrator.engine.leases import Leaser
from orchestrator.engine.paths import Paths
from orchestrator.engine.reads.blame import Blamer
from orchestrator.engine.reads.changes_since import ChangeSummaries
from orchestrator.engine.reads.file_reads import Reader
from orchestrator.engine.reads.history import Historian
from orchestrator.engine.reads.listing import Lister
from orchestrator.engine.reads.search import Searcher
from orchestrator.engine.reads.stale_read_notices import StaleReadNotifier
from orchestrator.engine.reads.time_travel import TimeTravel
from orchestrator.engine.record.audit import Auditor
from orchestrator.engine.record.checkpoints import Sealer
from orchestrator.engine.record.entries import Entries
from orchestrator.engine.record.maintenance import Maintenance
from orchestrator.engine.record.redaction import Redactor
from orchestrator.engine.record.snapshots import Snapshotter
from orchestrator.engine.record.state_check import Rebuilder
from orchestrator.engine.record.subscriptions import Follower
from orchestrator.engine.record.verification import Checking
from orchestrator.engine.services import Services
from orchestrator.engine.session_lifecycle import SessionLifecycle
from orchestrator.engine.sessions import SessionService
from orchestrator.logs import logger
from orchestrator.ports.checks import Checker
from orchestrator.ports.machine import Signer
from orchestrator.ports.maintenance import JournalMaintenance
from orchestrator.ports.reviewers import Reviewer
from orchestrator.ports.watcher import Watcher

Handler = Callable[[Caller, Call, Any], Awaitable[Result]]

EXPIRY_CHECK_S = 60.0
"""How often, at least, approvals and leases are checked for their end."""


class Engine:
    """All operations over one set of services."""

    def __init__(
        self,
        services: Services,
        *,
        roots: tuple[str, ...],
        facts: DaemonFacts,
        read_policy: Callable[[], tuple[str, str]],
        stop: Callable[[], None],
        signer: Signer,
        keeper: JournalMaintenance,
        watcher: Watcher | None = None,
        reviewers: Mapping[str, Reviewer] | None = None,
        checker: Checker | None = None,
    ) -> None:
        self._s = services
        observer, effects = Observer(services, services.holder_of), Effects(services)
        self._observer, self._effects = observer, effects
        answers, paths, gate = Answers(services), Paths(roots), ApproverGate(services)
        changer = ChangePipeline(services, observer, effects, answers)
        self._answers, self._arrivals, self._paths = answers, SessionLifecycle(services), paths
        self._recovery = Recovery(services, observer)
        absorber = BatchImporter(services, observer)
        self.baseline = Baseline(services, observer, absorber)
        self._watching = Watching(services, observer, absorber, watcher)
        self._granter = ApprovalService(services, observer, effects, answers, gate, changer.repositories)
        proposals, briefer = Proposals(services, changer, checker), ReviewContext(services)
        rebaser, self._departures = Rebaser(services, observer), RenameTracker(services)
        self.reviewing = Reviewing(services, rebaser, proposals, briefer, {} if reviewers is None else reviewers)
        self._leaser = Leaser(services, paths)
        self.noticer = StaleReadNotifier(services, observer, paths)
        self._stacks = SessionService(services, answers, self.noticer)
        self._sealer = Sealer(services, signer)
        self._checking = Checking(services, effects.stop)
        self.snapshots = Snapshotter(services)
        reader = Reader(services, observer, paths)
        self._follower = Follower(
            services, lambda caller, item: Entries(services, caller).plain(item.event, item.stream)
        )
        self.people = Administration(
            services,
            observer,
            effects,
            self.baseline,
            gate,
            facts=facts,
            read_policy=read_policy,
            stop=stop,
            recovered=lambda: self._recovery.closed,
            watching=lambda: self._watching.health,
            unnamed=lambda: self._watching.unnamed,
            checking=self._checking,
            whole=lambda: self._sealer.whole,
        )
        rooms: tuple[object, ...] = (
            reader,
            Lister(services, reader, paths),
            Searcher(services, observer, paths),
            Historian(services, observer, paths),
            Blamer(services, observer, paths),
            ChangeSummaries(services),
            TimeTravel(services, paths, self.baseline),
            Writer(services, changer, effects, answers, paths),
            Undoer(services, changer, answers),
            ConflictResolver(services, changer, answers, gate, proposals, briefer, self.reviewing.route, rebaser),
            self._granter,
            self._leaser,
            self._stacks,
            self.people,
            Auditor(services, paths),
            self._sealer,
            Redactor(services, gate, paths),
            Maintenance(services, gate, keeper, state_dir=facts.state_dir, keep_snapshot=self.snapshots.keep),
            Rebuilder(services, self.baseline),
            self.noticer,
        )
        self._rooms = rooms
        self._handlers: dict[str, Handler] = {}
        self._log = logger("engine")
        self._running: dict[tuple[str, str], tuple[str, anyio.Event]] = {}
        self._left: list[Session] = []  # open when the last daemon ended
        self._begun, self._beginning = True, anyio.Lock()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Engine]:
        """Recover, scan, then serve; background work ends before this does."""
        async with anyio.create_task_group() as tasks:
            self._s.tasks = tasks
            await self.snapshots.begin()
            await self._watching.start()
            self._left = [session for session in self._s.state.sessions if session.open]
            try:
                await self._put_right()
            except Exception as error:
                refused = refusal_in(error, "the start")
                if not isinstance(refused, DiskFull | WritesStopped):
                    raise
                self._unfinished(refused)
            self._s.in_background(self.baseline.keep)
            await self._sealer.begin()
            async with anyio.create_task_group() as clocks:
                clocks.start_soon(self._expire)
                clocks.start_soon(self.reviewing.run)
                clocks.start_soon(self._watching.run)
                clocks.start_soon(self._sealer.duty)
                clocks.start_soon(self._checking.run)
                clocks.start_soon(self.snapshots.run)
                yield self
                clocks.cancel_scope.cancel()
        await self._sealer.end()
        self._s.tasks = None
        await self.snapshots.keep()

    async def _put_right(self) -> None:
        """Note what happened while no daemon ran, and close what the last one left open."""
        await self._close_sessions()
        await self._recovery.run()
        await self._leaser.expire()
        await self.baseline.scan()
        await self._granter.resume()
        await self.reviewing.resume()

    def _unfinished(self, error: OrchestratorError) -> None:
        """A start on a full disk: reads are answered; the first write that finds room does the rest of the start."""
        self._effects.stop(f"the start could not be finished: {error.message}")
        self._observer.scanned = True
        self._begun = not isinstance(error, DiskFull)  # after a failed sync only a restart knows what is on the disk
        self._log.error("only reads are served", error=error.message, hint=error.hint)

    async def _begin(self) -> None:
        """What a full disk kept the start from. Raises DiskFull as long as it is full."""
        async with self._beginning:
            if self._begun:
                return
            try:
                await self._put_right()
            except Exception as error:
                refused = refusal_in(error, "the start")
                if refused is None:
                    raise
                raise refused from error
            self._begun, self._effects.stopped = True, None
            self._s.in_background(self.baseline.keep)
            self._log.info("there is room again: the start is finished, and writes go on")

    async def _expire(self) -> None:
        while True:
            moved = self._s.next_move()
            try:
                due = min(filter(None, (await self._granter.expire(), await self._leaser.expire())), default=None)
            except OrchestratorError as error:
                self._log.error("approvals and leases could not be checked for their end", error=error.message)
                due = None
            wait_s = EXPIRY_CHECK_S
            if due is not None:
                wait_s = min(wait_s, max(0.0, (due - self._s.clock.now_ms()) / 1000))
            with anyio.move_on_after(wait_s):
                await moved.wait()

    # --- calls ----------------------------------------------------------------------

    def ticks_us(self) -> int:
        """The clock that calls are measured by."""
        return self._s.clock.ticks_us()

    def size_at(self, raw_path: str) -> int | None:
        """The size of a file, in bytes, as far as it is known; None where there is none, or the path is refused."""
        try:
            path = self._paths.either(raw_path)
            known = self._s.state.registry.get(path)
            if known is not None and known.signature is not None:
                return known.signature.size
            stat = self._s.workspace.stat(path)
        except (OrchestratorError, OSError):
            return None
        return stat.signature.size if stat is not None and stat.kind == "file" else None

    def known_files(self) -> int:
        """How many files the registry has."""
        return len(self._s.state.registry)

    async def call(self, caller: Caller, call: Call) -> Result:
        """Answer one call. Raises OrchestratorError; a refusal is in the journal by then."""
        await self._arrivals.catch_up()
        try:
            self._still_admitted(caller)
            if call.operation.operator_only and not caller.is_person:
                raise NotPermitted(f"{call.operation.name} is for people", hint="Ask the person you work for.")
            if call.operation.writes and not self._begun:
                await self._begin()
            if call.request_id is not None:
                return await self._once(caller, call, call.request_id)
            return await self._handler(call.operation.name)(caller, call, call.params)
        except Refused as refused:
            raise refused.error from refused.error.__cause__
        except (CallerError, ApproverError) as error:
            await self._departures.name(caller, error)
            await self._refused(caller, call, error)
            raise

    async def follow(self, caller: Caller, params: Subscribe) -> tuple[Seq, AsyncGenerator[FeedEvent, None]]:
        """Where a feed starts, and its events from there on, without end. Raises as `Follower.follow`."""
        try:
            return await self._follower.follow(caller, params, partial(self._still_admitted, caller))
        except (CallerError, ApproverError) as error:
            await self.refuse(caller, "subscribe", error)
            raise

    def _still_admitted(self, caller: Caller) -> None:
        """A connection lasts; its token may be revoked meanwhile, or its name be given one. Raises Unauthorised."""
        agent = self._s.state.identities.get(caller.agent)
        if agent is not None and (agent.revoked or agent.token_hash != caller.token_hash):
            raise Unauthorised(f"{caller.agent} may not call any more as it came in: its token was revoked or made new")

    def _handler(self, name: str) -> Handler:
        handler = self._handlers.get(name)
        if handler is None:
            handler = next(getattr(room, name) for room in self._rooms if hasattr(room, name))
            self._handlers[name] = handler
        return handler

    async def refuse(self, caller: Caller, operation: str, error: OrchestratorError) -> None:
        """Note a call that could not even be read."""
        event = CallRefused(operation=escaped(operation)[:200], code=error.code, message=error.message[:2000])
        await self._s.note(caller.origin(), (f"session:{caller.session}", event))

    async def turn_away(self, error: OrchestratorError) -> None:
        """Note a caller that was not let in; who it is, is not known."""
        event = CallRefused(operation="connect", code=error.code, message=error.message[:2000])
        await self._s.note(Origin(), ("door", event))

    async def _once(self, caller: Caller, call: Call, request_id: str) -> Result:
        """Idempotence: the same again joins the call that runs, or gets its answer as it is now."""
        key, digest = (caller.agent, request_id), call.digest
        while (running := self._running.get(key)) is not None:
            if running[0] != digest:
                raise RequestIdReused(f"request_id {request_id!r} is in use for another call")
            await running[1].wait()
        done = anyio.Event()
        self._running[key] = (digest, done)
        try:
            seen = await self._s.journal.request(caller.agent, request_id)
            if seen is not None:
                if seen.digest != digest:
                    raise RequestIdReused(f"request_id {request_id!r} was used before, with other parameters")
                earlier = await self._again(caller, seen.seq)
                if earlier is not None:
                    return await read_as(call.params, earlier) if isinstance(earlier, ChangeAnswer) else earlier
            return await self._handler(call.operation.name)(caller, call, call.params)
        except (CallerError, ApproverError) as error:
            await self._refused(caller, call, error)  # before who waits for this call goes on
            raise Refused(error) from error
        finally:
            del self._running[key]
            done.set()

    async def _again(self, caller: Caller, seq: int) -> Result | None:
        """The answer of an earlier call, as things are now; None if it may run again."""
        recorded = await self._s.journal.event(seq)
        if recorded is None:
            return None
        match recorded.event:
            case TaskBegun(title=title):
                return TaskAnswer(task=show(recorded.seq), title=title, ended=False)
            case TaskEnded(task=task):
                return await self._stacks.ended(task)
            case ConflictResolved(conflict=conflict):
                seq = conflict
            case LeaseGranted() | LeaseRenewed() | LeaseReleased():
                return await self._leaser.again(recorded)
            case ChangeRefused() as refused:
                raise RefusalReplayed(refused)
            case ChangeAborted():
                return None
            case ChangeIntended():
                outcome = await self._answers.outcome(recorded)
                if outcome is not None and isinstance(outcome.event, ChangeAborted):
                    return None
            case _:
                pass
        try:
            answer: ChangeAnswer = await self._answers.of(Seq(seq), shows=partial(self._s.readable, caller))
        except Aborted:
            return None
        return answer

    async def _refused(self, caller: Caller, call: Call, error: CallerError | ApproverError) -> None:
        """One refusal event, and what the refusal showed of the file."""
        claims = not isinstance(error, RefusalReplayed | RequestIdReused | IoFailed)
        origin = caller.origin(call) if claims else msgspec.structs.replace(caller.origin(), call=call.details)
        events: list[tuple[str, Event]] = [(f"session:{caller.session}", self._refusal(call, error))]
        path = error.details.get("path") or getattr(call.params, "path", None)
        if error.shown_lines and isinstance(path, str):
            entry = self._s.state.registry.get(WorkspacePath(path))
            if entry is not None:
                seen = SeenLines(
                    path=entry.path,
                    version=entry.version,
                    ranges=tuple(LineRange(a, b) for a, b in error.shown_lines),
                    total_lines=max(b for _, b in error.shown_lines) + 1_000_000,
                )
                events.append((f"session:{caller.session}", ContentShown(session=caller.session, seen=seen)))
        await self._s.note(origin, *events)

    def _refusal(self, call: Call, error: CallerError | ApproverError) -> Event:
        name, rule = call.operation.name, error.details.get("rule")
        paths = tuple(
            escaped(value)
            for field in ("path", "source", "destination")
            if isinstance(value := getattr(call.params, field, None), str)
        )
        message = error.message[:2000]
        if call.operation.writes:
            return ChangeRefused(
                operation=name,
                paths=paths,
                code=error.code,
                message=message,
                hint=error.hint[:2000],
                rule=rule,
                details=kept_details(error.details),
                quoted=error.shown is not None,
            )
        if paths:
            return ReadRefused(operation=name, path=paths[0], code=error.code, message=message, rule=rule)
        return CallRefused(operation=name, code=error.code, message=message)

    # --- sessions -------------------------------------------------------------------

    async def open_session(self, caller: Caller, client: str) -> None:
        """Note that a caller came in, or came back."""
        await self._arrivals.opened(caller, client)

    async def _close_sessions(self) -> None:
        """Whoever was connected when the last daemon ended is not connected now."""
        while self._left:
            session = self._left[-1]
            origin = Origin(session=session.id, agent=session.agent)
            await self._s.append(origin, (f"session:{session.id}", SessionClosed(session=session.id)))
            self._left.pop()

    async def close_session(self, caller: Caller) -> None:
        """Note that a caller went away."""
        self.noticer.forget(caller.session)
        await self._arrivals.closed(caller)


class Refused(Exception):
    """A refusal that is in the journal already, on its way out."""

    def __init__(self, error: CallerError | ApproverError) -> None:
        super().__init__(error.message)
        self.error = error
