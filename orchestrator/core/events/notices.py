"""What a session was told of others' changes to what it had read."""

from __future__ import annotations

import msgspec

from orchestrator.core.content import LineRange
from orchestrator.core.events.base import Event
from orchestrator.core.ids import Seq, SessionId, WorkspacePath

MOST_UNSEEN = 20
"""Pieces that a change carries; the rest is for `stale_readers` and the journal to tell."""


class NotifiedPath(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A path, and the version up to which its reader knows what became of what it had seen.

    `shown`: the lines of that version which the notice showed in full, in the place of others or between them;
    end < start: the place where lines were taken away. Nothing, where its diff was cut or left out.
    """

    path: WorkspacePath
    version: Seq
    shown: tuple[LineRange, ...] = ()


class NoticeShown(Event, frozen=True, kw_only=True, tag="notice_shown"):
    """An answer told a session that others had changed what it had read."""

    session: SessionId
    paths: tuple[NotifiedPath, ...]


class UnseenChange(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Lines that the author of a change had read, and that others had changed since without its having looked.

    `seen` counts in `version`, the one that it saw; `now` in what stood there when its change was decided.
    Ranges are 1-based, ends included; end < start: no lines. `added`: `seen` is two lines that stand as they
    did, and `now` came in between.
    """

    path: WorkspacePath
    version: Seq
    seen: LineRange
    now: LineRange
    by: tuple[str, ...]
    since: Seq
    added: bool = False
