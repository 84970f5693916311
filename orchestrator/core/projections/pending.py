"""Changes that wait: approvals and conflicts, and what became of those that no longer do.

A reason may be redacted, so none is kept here; who shows one reads it from its event.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Literal

import msgspec

from orchestrator.core.commands import CommandLine
from orchestrator.core.events.base import Event, RecordedLike
from orchestrator.core.events.commands import CommandStarted
from orchestrator.core.events.conflicts import (
    ApprovalDenied,
    ApprovalExpired,
    ApprovalGranted,
    ApprovalRequested,
    ApprovalShown,
    ApprovalUsed,
    ConflictExpired,
    ConflictFound,
    ConflictRebased,
    ConflictResolved,
    ConflictSuperseded,
    ElicitationAnswered,
    ReviewAccepted,
    ReviewAnswered,
    ReviewFailed,
    ReviewRejected,
    ReviewRequested,
    ReviewUsage,
    Verdict,
)
from orchestrator.core.events.files import ChangeAborted, ChangeApplied, ChangeDiverged, ChangeIntended
from orchestrator.core.ids import AgentName, Digest, Seq, SessionId, WorkspacePath
from orchestrator.core.policy.rules import Action
from orchestrator.core.projections.base import Projection

ApprovalState = Literal["waiting", "granted", "used", "denied", "expired"]
ConflictState = Literal["open", "resolved", "superseded", "expired"]
ReviewState = Literal["requested", "answered", "failed", "accepted", "rejected"]

ReviewEvent = ReviewRequested | ReviewAnswered | ReviewFailed | ReviewAccepted | ReviewRejected


_Wish = tuple[AgentName | None, Action, WorkspacePath, Seq]
"""Who asks to see what: by which action, of which path, at which version."""


class Showing(msgspec.Struct, frozen=True, omit_defaults=True):
    """How far somebody was shown a request, page after page from its beginning."""

    to: AgentName | None
    next: str = ""  # where the next page begins
    whole: bool = False
    via: AgentName | None = None  # whose client showed it
    question: Seq | None = None  # by which that client asks; None: it was answered, or asks nothing
    asked: bool = False  # and got an answer, whichever


class Approval(msgspec.Struct, frozen=True):
    """One request for a yes."""

    seq: Seq
    at: int
    agent: AgentName | None
    session: SessionId | None
    request: ApprovalRequested
    state: ApprovalState = "waiting"
    cause: str | None = None  # why it expired
    change: Seq | None = None  # the intent that it led to
    successor: Seq | None = None  # the request or conflict that took its place
    until: int | None = None  # ms since the epoch: how long a granted read may be done
    own_version: Seq | None = None  # the last one that its agent made of the version that it was shown
    shown: tuple[Showing, ...] = ()

    @property
    def for_call(self) -> bool:
        """Whether a yes lets its agent make a call, to see, run or use something; else the change is applied."""
        request = self.request
        return request.read_version is not None or self.command is not None or request.tool_call is not None

    @property
    def command(self) -> CommandLine | None:
        """The command that it asks to run."""
        return next((check.command for check in self.request.permissions), None)

    @property
    def due(self) -> int | None:
        """When it expires by itself, in ms since the epoch; None: it does not."""
        return self.request.expires_at if self.state == "waiting" else self.until

    @property
    def stream(self) -> str:
        """Of its events."""
        return f"approval:{self.request.paths[0].path}"

    def shown_to(self, agent: AgentName | None, via: AgentName | None = None) -> Showing:
        """How far somebody was shown it, by an agent's client or otherwise."""
        return next((each for each in self.shown if (each.to, each.via) == (agent, via)), Showing(agent, via=via))


class Review(msgspec.Struct, frozen=True, omit_defaults=True):
    """One reviewer, asked once about one conflict."""

    seq: Seq
    reviewer: str
    route: str
    deadline: int  # ms since the epoch
    current: Digest | None = None  # the content that the proposal was made for
    state: ReviewState = "requested"
    verdict: Verdict | None = None
    proposal: Digest | None = None
    code: str = ""  # why it failed
    asked: ReviewUsage = ReviewUsage()


class Conflict(msgspec.Struct, frozen=True):
    """One change that could not be applied; `found` has its sides as they are now, however often the file moved on."""

    seq: Seq
    at: int
    agent: AgentName | None
    session: SessionId | None
    found: ConflictFound
    state: ConflictState = "open"
    choice: str | None = None
    change: Seq | None = None  # the intent that resolved or superseded it
    by: str | None = None  # who resolved it
    cause: str | None = None  # why it expired
    fits: bool = False  # nothing conflicts any more, and nobody applied it yet
    reviews: tuple[Review, ...] = ()  # oldest first
    moved_from: WorkspacePath | None = None  # the path of its file before
    moved_at: Seq | None = None  # the version with which it left

    @property
    def stream(self) -> str:
        """Of its events, as long as its file stays where it is."""
        return f"conflict:{self.found.path}"

    @property
    def gone(self) -> bool:
        """Whether its file was deleted since: what is proposed would bring it back."""
        found = self.found
        return found.sides.current_version is None and None not in (found.sides.base, found.sides.proposed)

    @property
    def review(self) -> Review | None:
        """The one that counts: the newest."""
        return self.reviews[-1] if self.reviews else None


class Pending(Projection):
    """Approvals, conflicts and intents without an outcome."""

    folds: ClassVar[frozenset[type[Event]]] = frozenset(
        {
            *(ApprovalRequested, ApprovalGranted, ApprovalDenied, ApprovalExpired, ApprovalShown, ApprovalUsed),
            ElicitationAnswered,
            *(ConflictFound, ConflictResolved, ConflictSuperseded, ConflictRebased, ConflictExpired),
            *(ReviewRequested, ReviewAnswered, ReviewFailed, ReviewAccepted, ReviewRejected),
            *(ChangeIntended, ChangeApplied, ChangeAborted, ChangeDiverged),
            CommandStarted,
        }
    )
    _approvals: dict[Seq, Approval]
    _conflicts: dict[Seq, Conflict]
    _intents: dict[Seq, ChangeIntended]
    _diverged: dict[Seq, None]

    def __init__(self) -> None:
        super().__init__()
        self._resolutions: dict[Seq, Seq] = {}  # conflicts, by the change that resolved each
        self._reads: dict[_Wish, Seq] = {}  # the newest request of each
        self._open: dict[Seq, WorkspacePath] = {}  # conflicts, so that what waits is found however many do not

    def approval(self, seq: int) -> Approval | None:
        return self._approvals.get(Seq(seq))

    def conflict(self, seq: int) -> Conflict | None:
        return self._conflicts.get(Seq(seq))

    def open_conflict(self, seq: int) -> Conflict | None:
        """A conflict that still waits; None if it was closed."""
        return self._conflicts.get(Seq(seq)) if seq in self._open else None

    def waiting(self) -> tuple[Approval, ...]:
        """Approvals that wait for a person, oldest first."""
        return tuple(approval for approval in self._approvals.values() if approval.state == "waiting")

    def open_conflicts(self, path: WorkspacePath | None = None) -> tuple[Conflict, ...]:
        """Conflicts that wait, oldest first."""
        return tuple(self._conflicts[seq] for seq, where in self._open.items() if path in (None, where))

    def resolved_by(self, change: Seq) -> Conflict | None:
        """The conflict that a change resolved."""
        seq = self._resolutions.get(change)
        return self._conflicts.get(seq) if seq is not None else None

    def granted(self) -> tuple[Approval, ...]:
        """Changes that a person granted and that did not take effect yet."""
        return tuple(item for item in self._approvals.values() if item.state == "granted" and not item.for_call)

    def expiring(self) -> tuple[Approval, ...]:
        """Approvals that wait, and granted reads: each has an end."""
        reads = (item for item in self._approvals.values() if item.for_call and item.state == "granted")
        return (*self.waiting(), *reads)

    def read_request(
        self, agent: AgentName, action: Action, path: WorkspacePath, version: Seq, now_ms: int
    ) -> Approval | None:
        """The request to see exactly this that waits, or was granted and still holds."""
        seq = self._reads.get((agent, action, path, version))
        found = self._approvals[seq] if seq is not None else None
        if found is None or found.state not in ("waiting", "granted"):
            return None
        return None if found.due is not None and found.due <= now_ms else found

    def command_request(self, agent: AgentName, command: CommandLine, operation: str, now_ms: int) -> Approval | None:
        """The request to run exactly this that waits, or was granted and still holds; a granted one before others.

        Of the same operation: `run_command` confines what it runs, a tool of the agent's own does not.
        """
        found = [
            item
            for item in self.expiring()
            if (item.agent, item.command, item.request.provenance.operation) == (agent, command, operation)
            and (item.due is None or item.due > now_ms)
        ]
        return min(found, key=lambda item: item.state != "granted", default=None)

    def open_intents(self) -> tuple[tuple[Seq, ChangeIntended], ...]:
        """Intents without an outcome, by number, oldest first."""
        return tuple(self._intents.items())

    @property
    def diverged(self) -> tuple[Seq, ...]:
        """Changes whose bytes were not written."""
        return tuple(self._diverged)

    def apply(self, recorded: RecordedLike) -> None:  # noqa: C901, PLR0912, PLR0915  # one case for each kind of event
        seq, event = recorded.seq, recorded.event
        match event:
            case ApprovalRequested():
                bare = msgspec.structs.replace(event, provenance=event.provenance.without_reason())
                asked = self._approvals[seq] = Approval(seq, recorded.at, recorded.agent, recorded.session, bare)
                self._reads |= dict.fromkeys(_wishes(asked), seq)
                if event.renews is not None:
                    self._turn(event.renews, successor=seq)
            case ApprovalShown():
                self._show(event, seq, recorded.agent)
            case ApprovalGranted(approval=approval, expires_at=until):
                self._turn(approval, state="granted", until=until)
            case ApprovalDenied(approval=approval):
                self._turn(approval, state="denied")
            case ApprovalExpired(approval=approval, cause=cause):
                self._turn(approval, state="expired", cause=cause)
            case ElicitationAnswered():
                self._close_question(event, recorded.agent)
            case ConflictFound():
                found = msgspec.structs.replace(event, provenance=event.provenance.without_reason())
                self._conflicts[seq] = Conflict(seq, recorded.at, recorded.agent, recorded.session, found)
                self._open[seq] = event.path
                if event.provenance.approval is not None:
                    self._turn(event.provenance.approval, successor=seq)
            case ConflictResolved(conflict=conflict, choice=choice, change=change, by=by):
                self._close(conflict, state="resolved", choice=choice, change=change, by=by)
            case ConflictSuperseded(conflict=conflict, change=change):
                self._close(conflict, state="superseded", change=change)
            case ConflictExpired(conflict=conflict, cause=why):
                self._close(conflict, state="expired", cause=why)
            case ConflictRebased():
                self._rebase(event)
            case ChangeIntended():
                provenance = event.provenance.without_reason()
                self._intents[seq] = msgspec.structs.replace(event, provenance=provenance)
                if provenance.approval is not None:
                    self._turn(provenance.approval, change=seq, state="used")
            case ChangeApplied(change=change, provenance=provenance):
                self._intents.pop(change, None)
                if self._reads:
                    self._follow(recorded.agent, seq, event)
                if provenance.resolves is not None:  # the next event says who chose, or was cut off
                    self._close(provenance.resolves, state="resolved", change=change)
            case ChangeAborted(change=change):
                intent = self._intents.pop(change, None)
                if intent is not None and intent.provenance.approval is not None:
                    self._turn(intent.provenance.approval, change=None, state="granted")
            case CommandStarted(approval=int() as approval) | ApprovalUsed(approval=approval):
                self._turn(approval, state="used")
            case ChangeDiverged(change=change):
                self._intents.pop(change, None)
                self._diverged[change] = None
            case ReviewRequested() | ReviewAnswered() | ReviewFailed() | ReviewAccepted() | ReviewRejected():
                if (known := self._conflicts.get(event.conflict)) is not None:
                    reviews = _reviewed(known.reviews, seq, event)
                    self._conflicts[event.conflict] = msgspec.structs.replace(known, reviews=reviews)
            case _:
                return

    def index(self) -> None:
        for approval in self._approvals.values():
            self._reads |= dict.fromkeys(_wishes(approval), approval.seq)
        for conflict in self._conflicts.values():
            self._index(conflict)
            if conflict.state == "open":
                self._open[conflict.seq] = conflict.found.path

    def _follow(self, agent: AgentName | None, version: Seq, event: ChangeApplied) -> None:
        """What an agent makes of a version that it may see, it may see too: all of that is its own, or was shown."""
        for change in event.paths:
            before = self._reads.get((agent, "read", change.path, change.previous)) if change.previous else None
            approval = self._approvals[before] if before is not None else None
            if approval is not None and approval.state == "granted" and change.after is not None:
                self._turn(approval.seq, own_version=version)
                self._reads |= dict.fromkeys(_wishes(self._approvals[approval.seq]), approval.seq)

    def _turn(self, seq: Seq, **changes: Any) -> None:
        known = self._approvals.get(seq)
        if known is not None:
            self._approvals[seq] = msgspec.structs.replace(known, **changes)

    def _show(self, event: ApprovalShown, seq: Seq, agent: AgentName | None) -> None:
        known = self._approvals.get(event.approval)
        if known is None:
            return
        before = known.shown_to(agent, event.via)
        goes_on = event.start in ("", before.next) and not event.unkept
        after = msgspec.structs.replace(
            before,
            next=event.next if goes_on else before.next,
            whole=event.whole or before.whole,
            question=seq if event.via is not None else None,
        )
        self._turn(event.approval, shown=(*(each for each in known.shown if each is not before), after))

    def _close_question(self, event: ElicitationAnswered, agent: AgentName | None) -> None:
        known = self._approvals.get(event.approval)
        if known is not None and (before := known.shown_to(agent, event.via)) in known.shown:
            after = msgspec.structs.replace(before, question=None, asked=True)
            self._turn(event.approval, shown=tuple(after if each is before else each for each in known.shown))

    def _close(self, seq: Seq, **changes: Any) -> None:
        known = self._conflicts.get(seq)
        if known is not None:
            closed = self._conflicts[seq] = msgspec.structs.replace(known, **changes)
            self._open.pop(seq, None)
            self._index(closed)

    def _index(self, conflict: Conflict) -> None:
        if conflict.state == "resolved" and conflict.change is not None:
            self._resolutions[conflict.change] = conflict.seq

    def _rebase(self, event: ConflictRebased) -> None:
        known = self._conflicts.get(event.conflict)
        if known is None or known.state != "open":
            return
        found = msgspec.structs.replace(known.found, sides=event.sides)
        old = found.path
        if event.path is not None and event.path != old:
            names = found.names if old in found.names else (*found.names, old)
            found = msgspec.structs.replace(found, path=event.path, names=names)
            known = msgspec.structs.replace(known, moved_from=old, moved_at=event.moved_at)
            self._open[event.conflict] = event.path
        self._conflicts[event.conflict] = msgspec.structs.replace(known, found=found, fits=event.fits)


def _wishes(approval: Approval) -> Iterator[_Wish]:
    """What of which version a request asks to see."""
    if approval.request.read_version is not None:
        for check in approval.request.permissions:
            for version in {approval.request.read_version, approval.own_version or approval.request.read_version}:
                yield (approval.agent, check.action, check.path, version)


def _reviewed(reviews: tuple[Review, ...], seq: Seq, event: ReviewEvent) -> tuple[Review, ...]:
    """The reviews after one more event about them."""
    changes: dict[str, object]
    match event:
        case ReviewRequested():
            return (*reviews, Review(seq, event.reviewer, event.route, event.deadline, asked=event.asked))
        case ReviewAnswered(ignored=""):
            changes = {"verdict": event.verdict, "proposal": event.proposal, "current": event.current}
            changes["state"] = "answered"
        case ReviewAnswered():
            return reviews
        case ReviewFailed(code=code):
            changes = {"state": "failed", "code": code}
        case ReviewAccepted():
            changes = {"state": "accepted"}
        case ReviewRejected():
            changes = {"state": "rejected"}
    return tuple(msgspec.structs.replace(item, **changes) if item.seq == event.review else item for item in reviews)
