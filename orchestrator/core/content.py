"""The content of a file at one moment: its digest, its stat signature, and how one content became another."""

from __future__ import annotations

import hashlib
from typing import Final, Literal, get_args

import msgspec

from orchestrator.core.annotations import FromContent, NewContent
from orchestrator.core.ids import Digest, WorkspacePath

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


def digest_of(data: bytes) -> Digest:
    """The SHA-256 of the plain bytes."""
    return Digest("sha256:" + hashlib.sha256(data).hexdigest())
