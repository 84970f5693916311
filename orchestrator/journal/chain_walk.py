"""Whether events follow one another in the chain, and whether redactions explain what is gone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from orchestrator.core.events import chain
from orchestrator.core.events.catalog import tag_of
from orchestrator.core.events.journal_maintenance import PayloadRedacted
from orchestrator.journal.event_rows import mistyped

_REDACTION = tag_of(PayloadRedacted)


class ChainWalk:
    """Takes events in order, and says of each what does not hold.

    `end` is the position and hash that the next event must follow; an empty hash is not compared.
    """

    def __init__(self, end: tuple[int, bytes] = (0, chain.GENESIS)) -> None:
        self.end = end
        self.redacted: dict[int, str] = {}
        """Redacted events, and the hash of what is left of each."""
        self.redactions: dict[int, tuple[int, str]] = {}
        """By redacted event: the event that says so, and the hash that it says."""

    def take(self, row: Any) -> str | None:
        """What is wrong with the next event, a row of EVENT_COLUMNS."""
        problem, before = mistyped(row), self.end
        self.end = row[0], row[17] if problem is None else b""
        problem = problem or _link_problem(row, before)
        if problem is None and chain.is_redacted(row[14]):
            self.redacted[row[0]] = chain.payload_hash(row[14], row[13]).hex()
        if problem is None and row[4] == _REDACTION:  # a redacted one counts too; what is left of it is checked as well
            event = msgspec.json.decode(row[13], type=PayloadRedacted)
            self.redactions[event.target] = row[0], event.rest_hash
        return problem

    def redaction_problems(self, after: int = 0) -> Iterator[str]:
        """Redacted events after a position that no event explains, or that are not what it left of them."""
        for seq, rest_hash in sorted(self.redacted.items()):
            by = self.redactions.get(seq)
            if by is not None and by[1] != rest_hash:
                yield f"the payload of event @{seq} is not what its redaction @{by[0]} left of it"
            elif by is None and seq > after:
                yield f"the payload of event @{seq} was taken out, and no event says that it was redacted"


def _link_problem(row: Any, before: tuple[int, bytes]) -> str | None:
    """What is wrong with an event and its place in the chain. A redaction leaves only the hashes."""
    seq, (payload, salt, digest, prev_hash, own_hash, details, details_digest) = row[0], row[13:]
    redacted = chain.is_redacted(salt)
    if seq != before[0] + 1:
        missing = f"@{before[0] + 1}" if seq == before[0] + 2 else f"@{before[0] + 1} to @{seq - 1}"
        return f"missing before event @{seq}: {missing}"
    if before[1] and prev_hash != before[1]:
        return f"event @{seq} does not follow @{before[0]}: the chain is broken"
    if not redacted and chain.payload_hash(salt, payload) != digest:
        return f"the payload of event @{seq} was altered"
    if details is None and details_digest is not None and not redacted:
        return f"the details of the call of event @{seq} are gone"
    if details is not None and details_digest is None:
        return f"event @{seq} has details of a call that the chain does not cover"
    if details is not None and chain.payload_hash(salt, details) != details_digest:
        return f"the details of the call of event @{seq} were altered"
    if chain.link(prev_hash, chain.header(row[:13], details_digest), digest) != own_hash:
        return f"the envelope of event @{seq} was altered"
    return None
