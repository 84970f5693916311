"""Leases: who works where, what a request for one leads to, and who may give one back.

A reason may be redacted, so none is kept here; who shows one reads it from its event.

Two sets of globs overlap if they name a known path both, or if a glob of one and a glob of the other may meet:
the directories that they begin with (`src/api/*.py`: `src/api`) do not separate them. A bare name (`docs`) meets
the directories that bear it, and globs that hold at any depth; one with a dot in it is a file's, in any directory.
Exceptions (`!…`) are not looked at. Where that misses one (`docs` and `src` in `src/docs`) and no file is there
yet, two agents hold a path alone, and a change by either is judged by the other's lease.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import product
from typing import ClassVar, NamedTuple

import msgspec

from orchestrator.core.errors import NotPermitted, VersionUnknown
from orchestrator.core.events.base import Event, RecordedLike
from orchestrator.core.events.sessions import LeaseExpired, LeaseGranted, LeaseMode, LeaseReleased, LeaseRenewed
from orchestrator.core.globs import Globs
from orchestrator.core.ids import AgentName, Seq, SessionId, WorkspacePath, show
from orchestrator.core.projections.base import Projection

_MARK = re.compile(r"[*?\[\]\\]")


class Lease(msgspec.Struct, frozen=True, dict=True):
    """One lease. Its `seq` is its fencing number: of two leases on a path, the later has the higher one."""

    seq: Seq
    at: int  # ms since the epoch
    agent: AgentName
    session: SessionId | None
    globs: tuple[str, ...]
    mode: LeaseMode
    expires_at: int  # ms since the epoch
    task: Seq | None = None

    @cached_property
    def compiled(self) -> Globs:
        """Its globs, ready to match."""
        return Globs(self.globs)

    def ended(self, now_ms: int) -> bool:
        """Whether its time is over, also where no event says so yet."""
        return self.expires_at <= now_ms


class Leases(Projection):
    """The leases that were granted, and neither released nor expired.

    Folds have no clock: a lease whose time is over stays here until LeaseExpired. Who must not
    take it for one that holds asks `ended`, or gives `at_ms`.
    """

    folds: ClassVar[frozenset[type[Event]]] = frozenset({LeaseGranted, LeaseRenewed, LeaseReleased, LeaseExpired})
    _leases: dict[Seq, Lease]

    def get(self, seq: int) -> Lease | None:
        return self._leases.get(Seq(seq))

    def live(self, at_ms: int | None = None) -> tuple[Lease, ...]:
        """All of them, oldest first; with `at_ms` those whose time is not over then."""
        return tuple(lease for lease in self._leases.values() if at_ms is None or not lease.ended(at_ms))

    def covering(self, path: WorkspacePath, at_ms: int | None = None) -> tuple[Lease, ...]:
        """The leases whose globs name this path or a directory above it, oldest first. Cost: all leases."""
        return tuple(lease for lease in self.live(at_ms) if lease.compiled.match(path))

    def holder_of(self, path: WorkspacePath, at_ms: int | None = None) -> tuple[AgentName, Seq] | None:
        """The one agent that holds a path alone, with its oldest lease on it; None where none or several do."""
        alone = [lease for lease in self.covering(path, at_ms) if lease.mode == "exclusive"]
        if len({lease.agent for lease in alone}) != 1:
            return None
        return alone[0].agent, alone[0].seq

    def apply(self, recorded: RecordedLike) -> None:
        match recorded.event:
            case LeaseGranted(globs=globs, mode=mode, expires_at=expires_at, task=task) if recorded.agent is not None:
                seq, agent = recorded.seq, recorded.agent
                self._leases[seq] = Lease(seq, recorded.at, agent, recorded.session, globs, mode, expires_at, task)
            case LeaseRenewed(lease=seq, expires_at=expires_at):
                known = self._leases.get(seq)
                if known is not None:
                    self._leases[seq] = msgspec.structs.replace(known, expires_at=expires_at)
            case LeaseReleased(lease=seq) | LeaseExpired(lease=seq):
                self._leases.pop(seq, None)
            case _:
                return


# --- requests -----------------------------------------------------------------------------


def reserve(
    wanted: LeaseGranted, agent: AgentName, session: SessionId, live: Sequence[Lease], known: Sequence[WorkspacePath]
) -> LeaseGranted | LeaseRenewed | tuple[Lease, ...]:
    """Grant what is wanted, or renew what the same session holds already; or name the leases in the way, oldest first.

    `live` are the leases that hold now, `known` the paths that files have. An exclusive request overlaps
    with every lease of another agent on overlapping paths, a shared one with exclusive leases only; leases
    of one agent never overlap. Cost: O(live × known) matches at worst.
    """
    same = (agent, session, wanted.globs, wanted.mode)
    for lease in live:
        if (lease.agent, lease.session, lease.globs, lease.mode) == same:
            return LeaseRenewed(lease=lease.seq, expires_at=wanted.expires_at)
    rivals = [lease for lease in live if lease.agent != agent and "exclusive" in (lease.mode, wanted.mode)]
    wished = Globs(wanted.globs)
    meant = [path for path in known if wished.match(path)] if rivals else []
    return tuple(lease for lease in rivals if overlap(wanted.globs, lease.globs, among=meant)) or wanted


def release(lease: Lease | None, number: Seq, *, by: AgentName, person: bool) -> LeaseReleased:
    """Give a lease back: its holder may, from any session, and so may a person.

    Raises VersionUnknown when there is none, NotPermitted.
    """
    if lease is None:
        raise VersionUnknown(
            f"{show(number)} is no lease that holds",
            hint="It was released or its time is over; session_status names yours.",
        )
    if lease.agent != by and not person:
        raise NotPermitted(
            f"{show(number)} is held by {lease.agent}", hint="Its holder releases it, or a person; or it expires."
        )
    return LeaseReleased(lease=number, by=by)


# --- whether globs overlap ----------------------------------------------------------------


def overlap(one: Iterable[str], other: Iterable[str], *, among: Iterable[WorkspacePath]) -> bool:
    """Whether two sets of globs may name a common path. `among` are known paths that the first set names."""
    other = tuple(other)
    first, second = map(_shapes, (one, other))
    if any(_may_meet(a, b) for a, b in product(first, second)):
        return True
    return any(map(Globs(other).match, among))


class _Shape(NamedTuple):
    """What of a glob is plain text."""

    above: tuple[str, ...] = ()  # the components it begins with; () if it holds at any depth
    bare: str = ""  # the name that it is, and nothing else: most often a directory's


def _shapes(globs: Iterable[str]) -> tuple[_Shape, ...]:
    globs = tuple(globs)
    meant = tuple(_shape(glob) for glob in globs if not glob.startswith("!"))
    return meant or ((_Shape(),) if globs else ())  # only exceptions: everything but these


def _shape(glob: str) -> _Shape:
    parts = [part for part in glob.split("/") if part]
    anchored = "/" in glob.rstrip("/")
    plain = next((at for at, part in enumerate(parts) if _MARK.search(part)), len(parts))
    if len(parts) == plain == 1 and not anchored:
        return _Shape(bare=parts[0])
    return _Shape(tuple(parts[:plain]) if anchored else ())


def _may_meet(one: _Shape, other: _Shape) -> bool:
    if one.bare and other.bare:
        return one.bare == other.bare or _of_file(one.bare) != _of_file(other.bare)
    name, above = one.bare or other.bare, one.above or other.above
    if name and above:
        return name in above or (_of_file(name) and not _of_file(above[-1]))
    short, long = sorted((one.above, other.above), key=len)
    return long[: len(short)] == short


def _of_file(name: str) -> bool:
    return "." in name[1:]
