"""Contents and lines: digests, stat signatures, hunks; the three versions that meet in a merge, and its report."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from typing import Final, Generic, Literal, TypeVar, get_args

import msgspec

from orchestrator.core.annotations import FromContent, NewContent
from orchestrator.core.ids import Digest, Seq, WorkspacePath

Rung = Literal["current", "shifted", "anchored", "fuzzy", "merged"]
"""How a patch fits: on its own base, moved with its lines, found again in the same
symbol or between the same lines, found but for typography, or by three-way merge."""

RUNGS: Final[tuple[Rung, ...]] = get_args(Rung)
"""From the surest down."""


class Signature(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What stat says of a file's bytes; equal signatures make a re-read unlikely to differ, never prove it."""

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int


class LineHunk(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Lines of an old text and those of a new one in their place; 0-based, half-open.

    One of the lengths may be 0: then `start` is the line before which the other's lines are.
    """

    old_start: int
    old_len: int
    new_start: int
    new_len: int

    @property
    def old_end(self) -> int:
        return self.old_start + self.old_len

    @property
    def new_end(self) -> int:
        return self.new_start + self.new_len

    def shifted(self, old: int, new: int) -> LineHunk:
        """The same so many lines below, in the old text and in the new one."""
        return LineHunk(self.old_start + old, self.old_len, self.new_start + new, self.new_len)


class FoundFile(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One file as a scan or a read met it."""

    path: WorkspacePath
    signature: FromContent[Signature]
    mode: int
    digest: NewContent[Digest | None] = None  # None: not hashed yet
    kept: FromContent[bool] = False  # the bytes are in the blob store
    version: int | None = None  # set when this only completes the digest of that earlier version


class LineRange(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """1-based lines, both ends included."""

    start: int
    end: int


class LargeContent(msgspec.Struct, frozen=True):
    """A content that is kept, and stays out of memory. For a decision it is bytes that are no text."""

    digest: Digest
    size: int

    def __len__(self) -> int:
        return self.size


class Splice(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Bytes in the place of those that a content has from an offset on."""

    offset: int
    removed: int
    inserted: bytes


class SplicedContent(LargeContent, frozen=True):
    """A large content that is kept as its differences from another one, which is kept whole.

    The splices are of that one: ascending, with bytes between them. `draft`: it is stored whole there already, for an
    append to keep instead of the splices.
    """

    base: LargeContent
    splices: tuple[Splice, ...]
    draft: str = ""


Content = bytes | LargeContent


def digest_of(data: Content) -> Digest:
    """The SHA-256 of the plain bytes."""
    if isinstance(data, LargeContent):
        return data.digest
    return Digest("sha256:" + hashlib.sha256(data).hexdigest())


T_co = TypeVar("T_co", covariant=True)
U = TypeVar("U")

AutomaticRule = Literal["same_change", "imports", "list_items", "additions"]
"""Why a conflict was safe to merge, in the order in which the rules are tried: both sides changed the same; both added
imports, entries of a list, or definitions."""

AUTOMATIC_RULES: Final[tuple[AutomaticRule, ...]] = get_args(AutomaticRule)

MergeRule = Literal["clean", AutomaticRule, "disjoint_symbols"]
"""As `AutomaticRule`; `clean`: nobody else changed these lines or the ones next to them; `disjoint_symbols`: a rule of
earlier versions, whose merges are in journals."""


class ThreeWay(msgspec.Struct, Generic[T_co], frozen=True):
    """Something of the base, of what the file holds now, and of what the change proposes."""

    base: T_co
    current: T_co
    proposed: T_co

    def __iter__(self) -> Iterator[T_co]:
        return iter((self.base, self.current, self.proposed))

    def map(self, function: Callable[[T_co], U]) -> ThreeWay[U]:
        """The same of what a function makes of each."""
        return ThreeWay(function(self.base), function(self.current), function(self.proposed))


class Span(msgspec.Struct, frozen=True, array_like=True):
    """Lines of one text: the first, from 0, and how many; there may be none."""

    start: int
    length: int

    @property
    def end(self) -> int:
        """The line after the last."""
        return self.start + self.length

    def of(self, lines: Sequence[str]) -> tuple[str, ...]:
        """The lines themselves."""
        return tuple(lines[self.start : self.end])


class Region(ThreeWay[Span], frozen=True):
    """One place of a merge, in each of the three texts."""


class ResolvedRegion(msgspec.Struct, frozen=True):
    """One place of a merge, in the three contents and in the result."""

    path: WorkspacePath
    rule: MergeRule
    why: str
    region: Region
    merged: Span


class SeenLines(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Lines of one version that an answer showed."""

    path: WorkspacePath
    version: Seq
    ranges: FromContent[tuple[LineRange, ...]]
    total_lines: FromContent[int]  # of a large file whose lines are not counted: more than were shown
    cut: bool = False  # a line was shortened, so nothing of it counts as seen whole
