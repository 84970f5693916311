"""Read sets: what a session was shown of a file, and whether others touched the file since.

`SeenFile` has the lines by version: which version a change is made against. `View` says what the session knows: a view
is a short history of read records. Contents are not at hand here: what became of the lines is for
`decisions.stale_regions` to say, and only of views that somebody else touched. Reads, own writes and notices
move a view on; nothing else does.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import msgspec

from orchestrator.core.change import PathChange
from orchestrator.core.content import LineHunk, LineRange, SeenLines
from orchestrator.core.events.sessions import NotifiedPath
from orchestrator.core.ids import Seq, WorkspacePath
from orchestrator.core.text.regions import hull, merged, survivors, written

MOST_READ_RECORDS = 16
MOST_NAMES = 8
MOST_HUNKS = 200

KEPT_VERSIONS = 8
"""Older versions of a file are forgotten per session; a base that old must be named."""


Rule = Literal["seen", "whole", "none"]
"""Of what a session saw, the base of a change that names none. `seen`: the newest version of which it saw any part.
`whole`: the newest that it saw whole. `none`: the change needs no base."""


class Coverage(msgspec.Struct, frozen=True, gc=False):
    """Lines of one version that were shown, merged and in order; `whole` means every one of them."""

    ranges: tuple[LineRange, ...]
    whole: bool
    since_resumed: tuple[LineRange, ...] | None = None  # of these, in a session that was resumed; None: all

    @property
    def recent(self) -> tuple[LineRange, ...]:
        """The lines that were shown since the session was opened, or resumed."""
        return self.ranges if self.since_resumed is None else self.since_resumed


class SeenFile(msgspec.Struct, frozen=True, gc=False):
    """All that one session was shown of one file, by version; the dict is never altered."""

    versions: dict[Seq, Coverage] = {}

    @property
    def newest(self) -> Seq | None:
        """The newest version of which any part was shown."""
        return max(self.versions, default=None)

    @property
    def newest_whole(self) -> Seq | None:
        """The newest version of which every line was shown."""
        return max((seq for seq, coverage in self.versions.items() if coverage.whole), default=None)

    def base(self, rule: Rule) -> tuple[Seq, bool] | None:
        """The version that a change is made against if it names none, and whether it was seen whole."""
        version = {"seen": self.newest, "whole": self.newest_whole, "none": None}[rule]
        return None if version is None else (version, self.versions[version].whole)

    def shown(self, seen: SeenLines) -> SeenFile:
        """After lines were shown; with a cut line the answer counts as a part only, without any line as nothing."""
        if seen.total_lines and not seen.ranges:
            return self
        known = self.versions.get(seen.version)
        ranges, recent = (known.ranges, known.since_resumed) if known else ((), None)
        if not seen.cut:
            ranges = merged((*ranges, *seen.ranges))
            recent = merged((*recent, *seen.ranges)) if recent is not None else None
        whole = bool(known and known.whole) or (
            not seen.cut
            and (
                seen.total_lines == 0
                or (len(ranges) == 1 and ranges[0].start <= 1 and ranges[0].end >= seen.total_lines)
            )
        )
        coverage = Coverage(ranges, whole, recent)
        return self if known == coverage else self._with(seen.version, coverage)

    def written(self, version: Seq, *, whole: bool) -> SeenFile:
        """After the session's own change made this version."""
        return self._with(version, Coverage((), whole))

    def resumed(self) -> SeenFile:
        """After the session was resumed: whoever goes on in it need not have what was shown before."""
        kept = {seq: Coverage(old.ranges, old.whole, ()) for seq, old in self.versions.items()}
        return SeenFile(kept)

    def trimmed(self) -> SeenFile:
        """Without versions that are no base of a change any more: all but the newest, and the newest seen whole."""
        bases = {self.newest, self.newest_whole}
        return SeenFile({seq: coverage for seq, coverage in self.versions.items() if seq in bases})

    def _with(self, version: Seq, coverage: Coverage) -> SeenFile:
        versions = {**self.versions, version: coverage}
        while len(versions) > KEPT_VERSIONS:
            del versions[min(versions)]
        return SeenFile(versions)


class At(NamedTuple):
    """A content, by path and version."""

    path: WorkspacePath
    version: Seq


class ReadRecord(msgspec.Struct, frozen=True, gc=False):
    """Lines of one version that the session knows; or, with `before`, its own change from there to `version`.

    `by_notice`: a notice's diff showed it; a range without lines (end < start)
    is then the place where lines were taken away.
    """

    path: WorkspacePath
    version: Seq
    ranges: tuple[LineRange, ...] = ()
    before: Seq | None = None
    hunks: tuple[LineHunk, ...] = ()
    by_notice: bool = False

    @property
    def met(self) -> At:
        """What the file held when the session looked at it, or changed it."""
        return At(self.path, self.version if self.before is None else self.before)


class OtherAuthor(msgspec.Struct, frozen=True, gc=False):
    """Somebody else who changed a file, and from when to when."""

    who: str
    first: Seq
    last: Seq


class View(msgspec.Struct, frozen=True, gc=False):
    """What one session knows of one file."""

    read_records: tuple[ReadRecord, ...] = ()  # oldest first
    other_authors: tuple[OtherAuthor, ...] = ()  # of others since the oldest read_record, the earliest first
    touched: Seq = Seq(0)  # their last change, 0: none
    notified: Seq = Seq(0)  # the version up to which a notice showed it
    moved_from: WorkspacePath | None = None  # where it was read, until a notice names the move
    shown: tuple[ReadRecord, ...] = ()  # what notices showed of others' changes: seen, and yet no read

    def saw(self, seen: SeenLines) -> View | None:
        """After lines of the present version were shown; None if they are of an earlier one."""
        last = self.read_records[-1] if self.read_records else None
        if seen.version < self.touched or (last is not None and seen.version < last.version):
            return None
        ranges = seen.ranges
        if len(ranges) == 1 and ranges[0].start <= 1 and ranges[0].end >= seen.total_lines:
            return self._knowing((ReadRecord(seen.path, seen.version, ranges),))
        if last is not None and (last.path, last.version) == (seen.path, seen.version):
            joined = msgspec.structs.replace(last, ranges=merged((*last.ranges, *ranges)))
            return self._knowing((*self.read_records[:-1], joined))
        return self._knowing((*self.read_records, ReadRecord(seen.path, seen.version, merged(ranges))))

    def wrote(self, changed: PathChange, version: Seq) -> View:
        """After the session's own change: it knows what it wrote, and what it knew has moved along."""
        path, records = changed.path, self.read_records
        hunks = changed.hunks if len(changed.hunks) <= MOST_HUNKS else (hull(changed.hunks),)
        before = Seq(changed.previous) if changed.previous is not None else None
        if len(records) == 1 and (records[0].path, records[0].version, records[0].before) == (path, before, None):
            ranges = merged((*survivors(records[0].ranges, hunks), *written(hunks)))
            return self._knowing((ReadRecord(path, version, ranges),))
        if changed.moved_from is not None and not hunks:
            return self  # the same lines under another name
        if not records or before is None or changed.moved_from is not None:
            return self._knowing((ReadRecord(path, version, written(hunks)),))
        return self._knowing((*records, ReadRecord(path, version, before=before, hunks=hunks)))

    def touched_by(self, who: str, seq: Seq) -> View:
        """After somebody else's change."""
        return msgspec.structs.replace(self, other_authors=_with(self.other_authors, who, seq), touched=seq)

    def noticed(self, notice: NotifiedPath) -> View:
        """After a notice of what others did."""
        shown = self.shown
        if notice.shown:
            record = ReadRecord(notice.path, notice.version, notice.shown, by_notice=True)
            shown = (*shown, record)[-MOST_READ_RECORDS:]
        return msgspec.structs.replace(self, notified=notice.version, moved_from=None, shown=shown)

    def _knowing(self, records: tuple[ReadRecord, ...]) -> View:
        """With these reads, the other authors since the oldest of them, and what was notified since."""
        records = records[-MOST_READ_RECORDS:]
        oldest = records[0].version
        others = tuple(other for other in self.other_authors if other.last > oldest)
        shown = tuple(record for record in self.shown if record.version >= oldest)
        return msgspec.structs.replace(self, read_records=records, other_authors=others, shown=shown)


def _with(others: tuple[OtherAuthor, ...], who: str, seq: Seq) -> tuple[OtherAuthor, ...]:
    """One more change by somebody; who came before MOST_NAMES others stays."""
    for n, other in enumerate(others):
        if other.who == who:
            return (*others[:n], OtherAuthor(who, other.first, seq), *others[n + 1 :])
    return (*others, OtherAuthor(who, seq, seq))[:MOST_NAMES]
