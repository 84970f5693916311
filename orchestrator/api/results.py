"""What operations on files answer. `@N` strings throughout; sizes in bytes, times in ms since the epoch."""

from __future__ import annotations

from typing import ClassVar, Literal

import msgspec

from orchestrator.core.text.search import MatchType

ChangeStatus = Literal[
    "applied", "preview", "waiting", "conflict", "denied", "expired", "dropped", "diverged", "still_waiting", "granted"
]


class Result(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The base of all answers. A member at its default is left out: no answer holds null, false or what is empty."""

    file_names: ClassVar[frozenset[str]] = frozenset()
    """Members that name a file, beside its path: what names one is no content, and is never redacted."""


class Lines(Result, frozen=True, kw_only=True):
    """1-based lines, ends included (end < start: nothing there any more)."""

    start: int
    end: int


class NoticeLines(Result, frozen=True, kw_only=True):
    """Lines that the session saw in version `seen_in`, and those in their place now (end < start: none).

    `added`: the lines `start` and `end` are unchanged, those from `now_start` on were inserted between them.
    """

    seen_in: str
    start: int
    end: int
    now_start: int | None = None  # null: the file is gone, or its content is not shown to the caller
    now_end: int | None = None
    added: bool = False


class Notice(Result, frozen=True, kw_only=True):
    """Somebody else changed what this session has read. Reported once; read the file to see it whole."""

    path: str
    kind: Literal["changed", "deleted", "moved"]
    by: tuple[str, ...] = ()  # agents, or "outside", the one who touched the lines first before the others
    since: str  # the first change that touched them
    version_id: str | None = None  # of what is there now; null: nothing
    moved_from: str | None = None
    lines: tuple[NoticeLines, ...] = ()
    more_lines: int = 0  # further pieces, that are not listed
    diff: str | None = None  # of these lines only, a few of them
    diff_truncated: bool = False
    more_files: int = 0  # on the last notice of an answer: files that others changed too, which it leaves out


class UnseenText(NoticeLines, frozen=True, kw_only=True):
    """Lines that the author of a change had read, and that others had changed when it was decided; at most 20."""

    path: str
    by: tuple[str, ...] = ()
    since: str


class ChangedPath(Result, frozen=True, kw_only=True):
    path: str
    before: str | None = None  # version_id, null: was absent
    after: str | None = None  # version_id, null: is absent now, or not applied
    written: tuple[Lines, ...] = ()  # the lines of `after` that the change wrote, the first of them
    more_written: int = 0  # further pieces, that are not listed


class RegionLines(Result, frozen=True, kw_only=True):
    """One place of a merge or conflict on each side. Lines [first, last] from 1; last < first: none there."""

    base: tuple[int, int]
    current: tuple[int, int]
    proposed: tuple[int, int]


class MergeText(RegionLines, frozen=True, kw_only=True):
    """One place where a change met what others had done."""

    path: str
    lines: tuple[int, int]  # in the file as it is now
    rule: str
    why: str


class ChangeAnswer(Result, frozen=True, kw_only=True):
    status: ChangeStatus
    success: bool = False  # true for `applied`, `preview` and `granted`
    message: str
    would_be: str | None = None
    conflict: str | None = None
    diff: str | None = None  # of an applied change only where the result is not what the caller sent
    diff_truncated: bool = False
    diff_rest: str = ""  # of a diff that was cut: how much of it is shown, and the call that shows all
    added: int | None = None  # lines, of an applied change; null where they were not compared (large, binary)
    removed: int | None = None
    version_id: str | None = None
    change: str | None = None
    paths: tuple[ChangedPath, ...] = ()
    more_paths: int = 0  # further ones, that are not listed
    rung: str | None = None
    score: float | None = None  # 0.0-1.0, of a passage that was found again by likeness
    base: str | None = None
    same_symbol: tuple[str, ...] = ()
    approval: str | None = None
    grants: tuple[str, ...] = ()  # by which a person allowed what policy asks about; of `approve`, what it gave
    regions: tuple[RegionLines, ...] = ()
    regions_left_out: int = 0  # so many more
    merge: tuple[MergeText, ...] = ()  # of a merge: each place, the rule that brought it together, and why
    merge_truncated: bool = False
    notices: tuple[Notice, ...] = ()
    warnings: tuple[str, ...] = ()
    unseen: tuple[UnseenText, ...] = ()  # what others did to lines that its author had read and not seen since
    shown: str | None = None  # current lines of a conflict; over MCP a second text block


class Entry(Result, frozen=True, kw_only=True):
    """One name in a listing."""

    file_names: ClassVar[frozenset[str]] = frozenset({"name", "target"})

    type: Literal["FileEntry", "DirectoryEntry", "SymbolicLinkEntry", "OtherEntry"] = msgspec.field(name="@type")
    name: str
    path: str
    size: int | None = None  # left out where the content may not be shown
    last_modified: int = msgspec.field(name="lastModified")
    target: str | None = None
    version_id: str | None = None
    tags: tuple[str, ...] = ()
    sensitivity: str | None = None


class FileFacts(Result, frozen=True, kw_only=True):
    """An entry, and what is known of its content; of an absent path only that there is none."""

    file_names: ClassVar[frozenset[str]] = frozenset({"name", "target"})

    path: str
    exists: bool
    type: str | None = msgspec.field(default=None, name="@type")
    name: str | None = None
    size: int | None = None
    last_modified: int | None = msgspec.field(default=None, name="lastModified")
    target: str | None = None
    mode: str | None = None  # octal, e.g. "0644"
    encoding: str | None = None
    eol: str | None = None
    line_count: int | None = None
    is_binary: bool = False
    content_hash: str | None = None
    tags: tuple[str, ...] = ()
    sensitivity: str | None = None
    version_id: str | None = None
    last_change: str | None = None  # the change that gave it its content, if one did
    reads: int = 0  # how often its content was shown


class Listing(Result, frozen=True, kw_only=True):
    path: str
    entries: tuple[Entry, ...] = ()
    total: int
    at_least: bool = False  # there may be more than `total` and `unlisted`: they were counted no further
    hint: str | None = None  # of an answer without entries: what was left out, and how it is listed
    unlisted: int = 0  # so many more names take a person's yes: file_info of a path asks, or list_files of their folder
    truncated: bool = False
    cursor: str | None = None


class Submatch(Result, frozen=True, kw_only=True):
    start: int  # characters in `text`, half-open
    end: int


class Hit(Result, frozen=True, kw_only=True):
    path: str
    line: int
    end_line: int | None = None  # of a match over several lines
    text: str = ""  # a long line as a window around the match; several lines are joined by newlines
    column: int | None = None  # the character of the line, 1-based, with which a window begins; null at its beginning
    submatches: tuple[Submatch, ...] = ()
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    context: str | None = None  # the symbols around it, where that was asked for: "class Cart > function net"
    match_type: MatchType = "exact"
    score: float = 1.0
    more_matches: int = 0  # of this line, behind the window; no more than 100 of a line are counted
    next_column: int | None = None  # where the first of those is; null: it was not counted

    @property
    def end(self) -> int:
        """Its last line."""
        return self.end_line or self.line

    @property
    def rows(self) -> list[str]:
        """Its lines, as far as they are shown."""
        return self.text.split("\n") if self.end_line else [self.text]

    @property
    def shown_rows(self) -> list[str]:
        """Its lines with where a window begins, and where in the line the next match is."""
        first, *others = self.rows
        where = f", the next: column={self.next_column}" if self.next_column is not None else ""
        more = f" [more matches in this line: {self.more_matches}{where}]" if self.more_matches else ""
        return [f"{from_character(self.column)}{first}{more}", *others]


def from_character(column: int | None) -> str:
    """What stands before a part of a line that `read_file(column=…)` shows as well."""
    return "" if column is None else f"[from character {column}] "


class FileHits(Result, frozen=True, kw_only=True):
    path: str
    total: int  # matching lines
    score: float = 1.0  # of the best


class SearchResult(Result, frozen=True, kw_only=True):
    hits: tuple[Hit, ...] = ()
    files: tuple[FileHits, ...] = ()  # with files_only, instead of hits
    total: int  # matching lines in all files searched
    files_searched: int
    files_left_out: int  # kept out by policy, which lets the caller know of them
    truncated: bool = False
    partial: bool = False  # not all was searched (changed meanwhile, too many places); `warnings` may say why
    cursor: str | None = None
    versions: dict[str, str] = {}  # path → version_id of each file with a hit
    hint: str | None = None  # what to send instead, where nothing was found
    warnings: tuple[str, ...] = ()


class ImageContent(Result, frozen=True, kw_only=True):
    media_type: str
    size: int
    data: bytes  # over MCP an image of its own beside the text


class FileText(Result, frozen=True, kw_only=True):
    path: str
    version_id: str  # `@0`: the content can't be noted now, and has no version; `warnings` say why
    start: int  # 1-based; 0 for an empty file; negative: from the end, of a large file whose lines are not counted yet
    end: int
    total_lines: int | None = None  # null: not counted yet
    column: int | None = None  # of a part of the line `start`: its first character
    text: str = ""  # numbered when asked
    encoding: str
    eol: str
    content_hash: str | None = None  # null: of a large file, which was not hashed
    image: ImageContent | None = None  # in place of text
    summary: bool = False  # `text` is a summary of the file, which is too large for the caller's profile
    truncated: bool = False
    next: str | None = None  # the exact call that goes on
    next_in_line: str | None = None  # the one that goes on in the first line that was shortened
    redactions: tuple[str, ...] = ()
    symbol: str | None = None  # the dotted name of what is shown, where that was asked for
    unchanged_since: str | None = None  # of a delta: these lines are as the session has seen them there
    changed_since: str | None = None  # of a delta: `text` has only what is not as it was seen, below `@@ -old +new @@`
    warnings: tuple[str, ...] = ()
    notices: tuple[Notice, ...] = ()


class Authored(Result, frozen=True, kw_only=True):
    """When something was changed, by whom, and by what."""

    at: int
    agent: str | None = None  # "outside": not through the daemon
    lease_holder: str | None = None  # of what came from outside: who alone held a lease on the file then
    session: str | None = None
    task: str | None = None
    change: str | None = None  # null for what did not come through the daemon
    operation: str | None = None


class FileVersion(Authored, frozen=True, kw_only=True):
    version_id: str
    kind: str
    size: int | None = None
    hash: str | None = None
    approver: str | None = None
    reverts: tuple[str, ...] = ()  # changes that it undid, or the group that they are
    more_reverts: int = 0  # that it undid besides
    reason: str | None = None
    moved_from: str | None = None
    not_kept: bool = False  # its content, so that it can't be undone
    removed: bool = False  # the path is absent since


class History(Result, frozen=True, kw_only=True):
    path: str
    versions: tuple[FileVersion, ...] = ()
    cursor: str | None = None
    warnings: tuple[str, ...] = ()


FileStatus = Literal["added", "deleted", "modified", "renamed", "mode"]
LeftOut = Literal["policy", "not_kept", "too_large"]


class FileDiff(Result, frozen=True, kw_only=True):
    """One file in the diff of a tree. `mode`: only permission bits changed; git's patch knows but the executable bit.

    left_out: why its lines are not in `diff`. With `too_large`, `next` is the call that shows them.
    """

    path: str
    status: FileStatus
    moved_from: str | None = None
    added: int | None = None  # lines; null where they are left out or it is binary
    removed: int | None = None
    binary: bool = False
    mode_before: str | None = None  # octal, where the mode changed
    mode_after: str | None = None
    left_out: LeftOut | None = None
    next: str | None = None


class Diff(Result, frozen=True, kw_only=True):
    """Of one file, or of the tree: then path is `.`, and `files` says what is in `diff` and what was left out."""

    path: str
    from_version: str
    to_version: str
    diff: str = ""
    added: int  # of what `diff` shows
    removed: int
    next: str | None = None  # of one file, where the answer has no room for all: the call that shows the rest
    next_in_line: str | None = None  # of the first long line of which a part is shown: the call that shows more of it
    files: tuple[FileDiff, ...] = ()
    total_files: int | None = None  # of the tree: all that differ, on this page and others
    unlisted: int = 0  # of those: names that the caller may not see either
    cursor: str | None = None
    warnings: tuple[str, ...] = ()


class Done(Result, frozen=True, kw_only=True):
    message: str
