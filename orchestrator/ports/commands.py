"""Commands that agents run through us: programs held to what they may touch, and copies of the tree for them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Protocol

import msgspec

from orchestrator.core.ids import Digest, WorkspacePath


class CommandSpec(msgspec.Struct, frozen=True, kw_only=True):
    """What to start, and what it may touch. Paths are absolute and real; its standard input is empty."""

    argv: tuple[str, ...]
    cwd: str
    environment: Mapping[str, str]  # all of it; TMPDIR is added, a private one
    writable: tuple[str, ...]  # folders below which it may write; all else is read-only
    hidden: tuple[str, ...] = ()  # what it must not read, files and folders; the daemon's own files always are
    read_only: tuple[str, ...] = ()  # what it must not write in them: other programs would run it, or obey it
    layers: str | None = None  # of a scratch tree: `ScratchTree.layers`, for one command
    cache: str | None = None  # the name of a folder for its tools' caches, kept for the next command that names it
    network: bool = False
    processes: int = 256
    file_bytes: int = 1 << 30  # the largest file that it may write


class RunningCommand(Protocol):
    """One command, with all that it starts: nothing of it outlives the daemon, nor its own end."""

    @property
    def confined_by(self) -> str:
        """By what, or "nothing: …"; followed by "; " and what that can't keep from it."""

    @property
    def pid(self) -> int: ...

    def output(self) -> AsyncIterator[bytes]:
        """Standard output and error together, as they come, until the end; read once. Who reads slowly slows it."""

    async def wait(self) -> int:
        """The exit code; negative: the signal that ended it. What it left running has ended, too."""

    async def end(self, *, at_once: bool = False) -> None:
        """Ask it to end, then end it, with all that it started; nothing if it has ended. Call it in any case.

        `at_once`: it is not asked.
        """


class CommandRunner(Protocol):
    """Starts commands."""

    @property
    def health(self) -> str:
        """For `status` and `doctor`, as `RunningCommand.confined_by`."""

    async def start(self, spec: CommandSpec) -> RunningCommand:
        """Raises FileNotFoundError where there is no such program, and OSError."""


class ScratchChange(msgspec.Struct, frozen=True, kw_only=True):
    """One file that came out otherwise than it was copied. before None: created; content None: deleted."""

    path: WorkspacePath
    before: Digest | None  # of what was copied
    content: bytes | None
    mode: int | None  # permission bits, as they are now; None where it was deleted


class ScratchChanges(msgspec.Struct, frozen=True):
    """All of them in path order; and what does not come back though it is new or changed, with the reason."""

    files: tuple[ScratchChange, ...]
    left_out: tuple[tuple[str, str], ...] = ()  # path, escaped if no path may have this name; why


class ScratchTree(Protocol):
    """A copy of some of the workspace's files, with the same paths below a folder of its own."""

    @property
    def folder(self) -> str:
        """Absolute; for `CommandSpec.writable` and `cwd`."""

    @property
    def layers(self) -> str | None:
        """For `CommandSpec.layers`: where its parts are, if only a command sees the whole in `folder`."""

    @property
    def copied_by(self) -> str:
        """ "overlay", "reflink" or "copy"."""

    @property
    def missing(self) -> tuple[WorkspacePath, ...]:
        """Of the files asked for, those that were gone, or were no files any more, when they were copied."""

    @property
    def kept_for(self) -> tuple[str, str]:
        """The agent and the session that it is kept for; empty where it goes with the daemon."""

    async def make_directory(self, path: WorkspacePath) -> None:
        """For a command to begin in, where none of its files was copied. Before the command; raises OSError."""

    async def changes(self, *, most_bytes: int) -> ScratchChanges:
        """What is otherwise now; never through a link, and without new files that the workspace ignores.

        Contents beyond `most_bytes` in all are left out, and said so. The command must have ended.
        """

    async def remove(self) -> None:
        """Shielded; call it in any case."""

    def release(self) -> None:
        """Leave a kept one as it is."""


class ScratchTrees(Protocol):
    """Makes scratch trees. What a killed daemon left of them goes at the next start."""

    async def make(
        self,
        files: Sequence[WorkspacePath],
        *,
        linked: Sequence[WorkspacePath] = (),
        kept_for: tuple[str, str] = ("", ""),
    ) -> ScratchTree:
        """Copy regular files with their modes, and links that lead to a place inside the tree.

        `linked`: folders that stand in the copy as links to the workspace's own, such as an ignored `node_modules`:
        there a command reads them, and can't write where the workspace is not writable to it.
        `kept_for`: it stays until it is removed, whatever becomes of the daemon.
        Raises DiskFull where they would not fit, FileTooLarge over the limit of a copy.
        """

    async def forget(self, digest: Digest) -> None:
        """Keep no copy of this content for commands to come; one that a command sees goes after it.

        Kept trees have what they have. Raises OSError.
        """

    async def reopen(self, name: str) -> ScratchTree | None:
        """A kept one by its folder's name; None where there is none."""
