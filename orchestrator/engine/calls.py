"""Calls: each is answered once by its operation's handler, and in the journal before it is answered."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

import anyio
import msgspec

from orchestrator.api.operation import AnyOperation, Operation
from orchestrator.api.operations import BY_NAME
from orchestrator.api.parameters import Params
from orchestrator.api.results import ChangeAnswer, Result
from orchestrator.api.session_operations import TaskAnswer
from orchestrator.api.tags import TaggedFile
from orchestrator.core.errors import (
    Aborted,
    AnswerTooLarge,
    ApprovalRequired,
    ApproverError,
    CallerError,
    IoFailed,
    NotPermitted,
    OrchestratorError,
    RequestIdReused,
    escaped,
)
from orchestrator.core.events.base import Event, Origin
from orchestrator.core.events.commands import CommandStarted
from orchestrator.core.events.conflicts import ConflictResolved
from orchestrator.core.events.files import CallRefused, ChangeRefused, ContentShown, FileTagged, ReadRefused
from orchestrator.core.events.sessions import LeaseGranted, LeaseReleased, LeaseRenewed, TaskBegun, TaskEnded
from orchestrator.core.ids import EscapedPath, Seq, show
from orchestrator.engine.caller import Call, Caller, Fits, HeldNote
from orchestrator.engine.changes.change_answers import Answers
from orchestrator.engine.changes.diffs import Shows
from orchestrator.engine.changes.facts import RenameTracker
from orchestrator.engine.commands.command_service import CommandService
from orchestrator.engine.leases import Leases
from orchestrator.engine.limits import BudgetSpent, TooManyCalls
from orchestrator.engine.policy_files import PolicyKeeper
from orchestrator.engine.services import Services
from orchestrator.engine.sessions import SessionLifecycle, SessionService
from orchestrator.engine.shown import ShownAnswers
from orchestrator.logs import logger

P = TypeVar("P", bound=Params)
R = TypeVar("R", bound=Result)


Handler = Callable[[Caller, Call, Any], Awaitable[Result]]


def handled_by(
    operation: Operation[..., P, R], handler: Callable[[Caller, Call, P], Awaitable[R]]
) -> tuple[str, Handler]:
    """A row of the table of handlers; what it takes and answers is what the operation declares."""
    return operation.name, handler


def handlers_of(*rows: tuple[str, Handler]) -> dict[str, Handler]:
    """The one handler of each operation of the catalogue. Raises LookupError unless each has one."""
    found = Counter(name for name, _ in rows)
    found.subtract(BY_NAME.keys())
    if differing := sorted(name for name, count in found.items() if count):
        raise LookupError(f"operations without one handler each: {', '.join(differing)}")
    return dict(rows)


class CallService:
    """Every call of every transport."""

    def __init__(  # noqa: PLR0913  # made once, by the engine
        self,
        services: Services,
        handlers: Mapping[str, Handler],
        *,
        answers: Answers,
        sessions: SessionService,
        leases: Leases,
        commands: CommandService,
        lifecycle: SessionLifecycle,
        renames: RenameTracker,
        policies: PolicyKeeper,
        shown: ShownAnswers,
    ) -> None:
        self._s, self._handlers, self._policies = services, handlers, policies
        self._answers, self._sessions, self._leases, self._lifecycle = answers, sessions, leases, lifecycle
        self._commands = commands
        self._renames, self._shown = renames, shown
        self._running: dict[tuple[str, str], tuple[str, anyio.Event]] = {}
        self._log = logger("engine")

    async def answer(self, caller: Caller, call: Call) -> Result:
        """Answer one call. Raises OrchestratorError; a refusal is in the journal by then."""
        await self._lifecycle.catch_up()
        await self._policies.refresh()
        try:
            self.check_authorized(caller, call.operation)
            reviews = call.operation.reviewers and caller.agent_class == "review"
            if call.operation.operator_only and not (caller.is_person or reviews):
                raise NotPermitted(f"{call.operation.name} is for people", hint="Ask the person you work for.")
            if not call.operation.operator_only:
                self._s.check_in_place()
            await self._s.permissions.learn_task(caller.session)
            if call.operation.writes or call.operation.opens_session:
                await self._lifecycle.begin(caller)
            with self._shown.following(call):
                result = await (self._once if call.request_id is not None else self._handle)(caller, call)
                if not call.operation.writes:  # who may not call any more is shown nothing for which it waited
                    self._s.permissions.check_open(caller)
                result = await self._s.redaction.answer(caller, result)
                if call.fits is not None:
                    await self._check_fits(caller, call, call.fits, result)
                await self._shown.note(caller, call, result)
        except (CallerError, ApproverError) as error:
            if not error.journalled:
                await self.note_refusal(caller, call, error)
            raise
        return result

    async def _check_fits(self, caller: Caller, call: Call, fits: Fits, result: Result) -> None:
        """What it shows is noted once it is sure to go out. Raises AnswerTooLarge; a change is made all the same."""
        try:
            fits(result)
        except AnswerTooLarge as error:
            await self.refuse(caller, call.operation.name, error, call)
            raise
        await self.release(call.released())

    async def _handle(self, caller: Caller, call: Call) -> Result:
        await self._s.limits.admit(caller, call)
        return await self._handlers[call.operation.name](caller, call, call.params)

    def check_authorized(self, caller: Caller, operation: AnyOperation | None = None) -> None:
        """Raises Unauthorised; NotPermitted where the operation is more than the caller's token is for."""
        self._s.permissions.check_open(caller)
        agent = self._s.state.identities.get(caller.agent)
        if agent is not None and agent.read_only and operation is not None and operation.writes:
            raise NotPermitted(
                f"{operation.name} is not for {caller.agent}, whose token is for reading",
                hint="Say what you would change to the person you work for, or use the tools that read.",
            )

    async def refuse(
        self,
        caller: Caller | None,
        operation: str,
        error: OrchestratorError,
        call: Call | None = None,
        client_call_id: str | None = None,
    ) -> None:
        """Note a call that could not even be read, or failed in the daemon, or a connection of nobody known.

        The journal may be what failed: then the log says so, and the caller is told what it would be told anyhow.
        """
        origin, stream = Origin(), "transport"
        if caller is not None:
            origin = caller.aside(call) if call is not None else caller.origin()
            origin = msgspec.structs.replace(origin, client_call_id=client_call_id)
            stream = f"session:{caller.session}"
        event = CallRefused(operation=escaped(operation)[:200], code=error.code, message=error.message[:2000])
        try:
            await self._s.notes.note(origin, (stream, event))
        except Exception:  # noqa: BLE001  # whatever it is, it must not take the place of the error that is told
            self._log.exception("a refusal is not in the journal", operation=event.operation, code=error.code)
        error.journalled = True

    async def _once(self, caller: Caller, call: Call) -> Result:
        """Idempotence: the same again joins the call that runs, or gets its answer as it is now."""
        request_id = call.request_id or ""
        key, digest = (caller.agent, request_id), await call.hashed()
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
                    return earlier
            return await self._handle(caller, call)
        except (CallerError, ApproverError) as error:
            await self.note_refusal(caller, call, error)  # before who waits for this call goes on
            raise
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
                return await self._sessions.ended(task)
            case LeaseGranted() | LeaseRenewed() | LeaseReleased():
                return await self._leases.again(recorded)
            case CommandStarted():
                return await self._commands.present(caller, recorded.seq)
            case FileTagged(path=path):
                return TaggedFile(path=path, tags=self._s.state.tags.of(path))
            case ChangeRefused() as refused:
                raise RefusalReplayed(refused)
            case ConflictResolved(conflict=conflict):
                seq = conflict
            case _:
                pass
        try:
            answer: ChangeAnswer = await self._answers.of(Seq(seq), Shows.readable(self._s, caller))
        except Aborted:
            return None
        return answer

    async def release(self, held: Sequence[HeldNote]) -> None:
        """Note what an answer shows that is made of other answers."""
        await self._s.notes.release(held)

    async def note_refusal(self, caller: Caller, call: Call, error: CallerError | ApproverError) -> None:
        """One refusal event, and what the refusal showed of the file; secrets are in neither."""
        await self._renames.name(caller, error)
        self._s.redaction.refusal(caller, error)
        claims = not isinstance(
            error, RefusalReplayed | RequestIdReused | IoFailed | TooManyCalls | BudgetSpent | ApprovalRequired
        )
        origin = caller.origin(call) if claims else caller.aside(call)
        events: list[Event] = [_refusal(call, error)]
        if error.seen is not None:
            events.append(ContentShown(session=caller.session, seen=error.seen))
        await self._s.notes.note(origin, *((f"session:{caller.session}", event) for event in events))
        error.journalled = True


def _refusal(call: Call, error: CallerError | ApproverError) -> Event:
    name, rule, message = call.operation.name, error.details.get("rule"), error.message[:2000]
    named = [getattr(call.params, field, None) for field in ("path", "source", "destination")]
    paths = tuple(EscapedPath(escaped(path)) for path in named if isinstance(path, str))
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


_NAMED = ("path", "rule", "action", "state", "code", "parameter")
"""Details whose text is the caller's own, or policy's."""

_VERSION = re.compile(r"@\d+")


class RefusalReplayed(CallerError):
    """The refusal that the same request got before, once more."""

    def __init__(self, refused: ChangeRefused) -> None:
        hint = refused.hint
        if refused.quoted:
            hint += " The lines themselves are not kept for a repeated call: a new request_id shows the present ones."
        super().__init__(refused.message, hint=hint.strip(), details=refused.details)
        self.code = refused.code  # type: ignore[misc]  # the first refusal's code


def kept_details(details: Mapping[str, Any]) -> dict[str, Any]:
    """Numbers, versions and names out of a refusal's details; any other text may quote the file, and is left out."""
    kept: dict[str, Any] = {}
    for name, value in details.items():
        if name in _NAMED and isinstance(value, str):
            kept[name] = value[:1000]
        elif (plain := _plain(value)) is not None:
            kept[name] = plain
    return kept


def _plain(value: Any) -> Any:
    """The value without what is text; None where nothing is left."""
    match value:
        case bool() | int() | float():
            return value
        case str() if _VERSION.fullmatch(value):
            return value
        case Mapping():
            return kept_details(value) or None
        case list() | tuple():
            found = [_plain(item) for item in value]
            return None if any(item is None for item in found) else found
        case _:
            return None
