"""What agents' own tools are about to change, as hooks told: what is met meanwhile is theirs."""

from __future__ import annotations

import msgspec

from orchestrator.core.events.base import Event
from orchestrator.core.events.files import ExternalFileChanged, ExternalFileCreated, ExternalFileRemoved
from orchestrator.core.ids import Digest, Seq, SessionId, WorkspacePath
from orchestrator.engine.external.batches import ExternalBatch
from orchestrator.ports.journal import NewContents, NewEvent
from orchestrator.ports.machine import Clock

CLAIM_MS = 600_000
"""A hook may never tell that its tool has ended. Claude's own limit for a command is 10 minutes."""

MOST_CLAIMS = 1_000
"""Of all agents; the oldest goes first, as each change that is met is held against all of them."""

GONE = Digest("gone")
"""Instead of a content: the tool removes the file."""

Key = tuple[SessionId, str]
"""A client's session, and its own id of the call."""


class NativeClaim(msgspec.Struct):
    """One call of an agent's own tool, from before it until after it."""

    group: ExternalBatch
    path: WorkspacePath | None  # None: a command, which may change any
    contents: frozenset[Digest] = frozenset()  # that it may leave there; empty: whatever it is
    version: Seq | None = None  # of the file before it
    whole: bool = False  # its session has seen that version whole
    until_ms: int = 0

    def fits(self, event: Event) -> bool:
        """Whether this change is what the tool was about to do."""
        match event:
            case ExternalFileChanged(path=path, after=after) | ExternalFileCreated(path=path, after=after):
                return self.path is None or (path == self.path and (not self.contents or after in self.contents))
            case ExternalFileRemoved(path=path):
                return self.path is None or (path == self.path and GONE in self.contents)
            case _:
                return False


class NativeClaims:
    """The calls that are under way."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._open: dict[Key, NativeClaim] = {}

    def __len__(self) -> int:
        return len(self._open)

    def begin(self, key: Key, claim: NativeClaim) -> None:
        """From here on what fits it is its own; the same call again begins anew."""
        now = self._clock.now_ms()
        self._open = {known: old for known, old in self._open.items() if old.until_ms > now}
        while len(self._open) >= MOST_CLAIMS:
            del self._open[next(iter(self._open))]
        claim.until_ms = now + CLAIM_MS
        self._open.pop(key, None)
        self._open[key] = claim

    def get(self, key: Key) -> NativeClaim | None:
        """A call that is under way."""
        return self._open.get(key)

    def end(self, key: Key) -> None:
        """It is over."""
        self._open.pop(key, None)

    async def take(self, events: tuple[NewEvent, ...], blobs: NewContents) -> tuple[tuple[NewEvent, ...], NewContents]:
        """Append what is known to be a tool's doing, to its group; the rest is returned."""
        left = list[NewEvent]()
        for new in events:
            claim = self._of(new.event)
            if claim is None:
                left.append(new)
                continue
            digest = getattr(new.event, "after", None)
            own = tuple(blob for blob in blobs if blob[0] == digest)
            await claim.group.append((new,), own, external=1)
        return tuple(left), blobs

    def _of(self, event: Event) -> NativeClaim | None:
        """Whose it is: a tool's that names the path, else a running command's; None where it may be two sessions'.

        Of one session's the newest: a tool that failed may be tried again, and clients do not tell of a failure.
        """
        now = self._clock.now_ms()
        fitting = [(key[0], claim) for key, claim in self._open.items() if claim.until_ms > now and claim.fits(event)]
        found = [each for each in fitting if each[1].path is not None] or fitting
        return found[-1][1] if len({session for session, _ in found}) == 1 else None
