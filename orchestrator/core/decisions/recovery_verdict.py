"""What to make of an intent that a crash left open, by the hashes of the file and of its temporary file."""

from __future__ import annotations

import msgspec

from orchestrator.core.change import PathChange
from orchestrator.core.events.files import AbortCause
from orchestrator.core.ids import Digest


class Undo(msgspec.Struct, frozen=True):
    """The change never took effect."""

    cause: AbortCause


class RollForward(msgspec.Struct, frozen=True):
    """The change took effect; only its outcome is missing."""


class SwapBack(msgspec.Struct, frozen=True):
    """The change replaced somebody else's content, which is in the temporary file now: put that back."""

    cause: AbortCause = "stale"


class Keep(msgspec.Struct, frozen=True):
    """The path holds somebody else's content: leave it, keep all bytes, report it."""


Verdict = Undo | RollForward | SwapBack | Keep


def judge(
    intent: PathChange, *, found: Digest | None, temp: Digest | None, source: Digest | None, busy: bool = False
) -> Verdict:
    """`found` is what the path holds, `temp` what the temporary file holds, None for absent;
    `source` what the path holds that a move left. `busy`: another program holds the temporary file
    open, so that what it writes next would be lost with it."""
    if intent.renamed:
        return _judge_move(intent, found=found, source=source)
    if intent.after is None:
        return _judge_delete(intent, found=found, temp=temp, busy=busy)
    if found == intent.after and found != intent.before:
        if intent.before is not None and temp not in (None, intent.before, intent.after):
            return SwapBack()
        return SwapBack("file_busy") if busy and temp is not None and temp == intent.before else RollForward()
    if found == intent.before:
        return Undo("crash")
    return Keep()


def _judge_delete(intent: PathChange, *, found: Digest | None, temp: Digest | None, busy: bool) -> Verdict:
    """A delete renames the file to its temporary name first."""
    if found is None:
        if temp in (None, intent.before):
            return SwapBack("file_busy") if busy and temp is not None else RollForward()
        return SwapBack()
    return Undo("crash") if found == intent.before else Keep()


def _judge_move(intent: PathChange, *, found: Digest | None, source: Digest | None) -> Verdict:
    """A move is one rename: the content is at one end or at the other."""
    if found == intent.after and source is None:
        return RollForward()
    if found is None and source == intent.after:
        return Undo("crash")
    return Undo("stale") if found is None and source is not None else Keep()
